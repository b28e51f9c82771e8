//! A download that goes on where it broke: copy this file.

use std::path::Path;

use anyhow::{bail, ensure};
use http::header::{ACCEPT_ENCODING, CONTENT_RANGE, ETAG, IF_RANGE, RANGE};
use http::{HeaderValue, StatusCode};
use indicatif::ProgressBar;
use reqwest::Response;
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::{Failure, RetryPolicy};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};
use tokio::sync::Mutex;

/// Gets `url` into the file at `path`, and gives its SHA-256.
///
/// What was got before a break stays, and only the rest is asked for. A file that has changed
/// meanwhile is begun again. After an error the file holds what there was until then.
///
/// # Errors
///
/// The last failure if `policy` does not retry it, or what is wrong with an answer.
pub async fn download(
    policy: &RetryPolicy,
    client: &ClientWithMiddleware,
    url: &str,
    path: &Path,
    bar: &ProgressBar,
) -> anyhow::Result<[u8; 32]> {
    let partial = Mutex::new(Partial {
        file: File::create(path).await?,
        digest: Sha256::new(),
        got: 0,
        length: None,
        etag: None,
        bar,
    });
    policy
        .run_judged(
            |error: &anyhow::Error| Failure::ByRule(error.as_ref()),
            |_attempt| async { partial.lock().await.complete(client, url).await },
        )
        .await?;
    Ok(partial.into_inner().digest.finalize().into())
}

/// What there is of a file so far.
struct Partial<'a> {
    file: File,
    /// Of the bytes in the file.
    digest: Sha256,
    /// How many bytes are in the file.
    got: u64,
    /// How many there are to be, once that is known.
    length: Option<u64>,
    /// What the server calls this state of the file, if it has a strong name for it.
    etag: Option<HeaderValue>,
    bar: &'a ProgressBar,
}

impl Partial<'_> {
    /// Asks until the file is there. A server may answer with less than it was asked for.
    async fn complete(&mut self, client: &ClientWithMiddleware, url: &str) -> anyhow::Result<()> {
        while self.length.is_none_or(|length| self.got < length) {
            let rest = self.rest();
            // A range of a compressed body would be one of the compressed bytes.
            let mut request = client.get(url).header(ACCEPT_ENCODING, "identity");
            if let Some((from, etag)) = &rest {
                request = request.header(RANGE, from).header(IF_RANGE, etag);
            }
            let response = request.send().await?;
            match response.status() {
                StatusCode::OK => self.take_all(response).await?,
                StatusCode::PARTIAL_CONTENT if rest.is_some() => self.take_rest(response).await?,
                // There is no such range: the file has become shorter.
                StatusCode::RANGE_NOT_SATISFIABLE if rest.is_some() => self.forget().await?,
                status => {
                    response.error_for_status()?;
                    bail!("{status} is no answer to this request");
                }
            }
        }
        self.file.sync_all().await?;
        Ok(())
    }

    /// What is to be asked for, if the server's copy can be told from a changed one.
    fn rest(&self) -> Option<(String, HeaderValue)> {
        let etag = self.etag.clone().filter(|_| self.got > 0)?;
        Some((format!("bytes={}-", self.got), etag))
    }

    /// The whole file, be it that it was asked for, that it has changed, or that the server has no
    /// ranges.
    async fn take_all(&mut self, response: Response) -> anyhow::Result<()> {
        self.forget().await?;
        let etag = response.headers().get(ETAG);
        // A weak one stands for any copy that is as good, not for the same bytes.
        self.etag = etag
            .filter(|etag| !etag.as_bytes().starts_with(b"W/"))
            .cloned();
        self.length = response.content_length();
        self.bar.set_length(self.length.unwrap_or_default());
        self.append(response, self.length).await?;
        self.length = Some(self.got);
        Ok(())
    }

    /// What is missing, or a part of it. If it is not what was asked for, the download begins again.
    async fn take_rest(&mut self, response: Response) -> anyhow::Result<()> {
        let range = response.headers().get(CONTENT_RANGE).and_then(Range::read);
        let is_same = response.headers().get(ETAG) == self.etag.as_ref();
        match range {
            Some(range)
                if is_same
                    && range.first == self.got
                    && range.last >= range.first
                    && self.length.is_none_or(|length| length == range.length)
                    && range.last < range.length =>
            {
                self.length = Some(range.length);
                self.append(response, Some(range.last + 1)).await?;
                ensure!(
                    self.got == range.last + 1,
                    "less came than the range that was promised"
                );
                Ok(())
            }
            _ => self.forget().await,
        }
    }

    /// Writes what comes, up to `end` bytes of the file in all.
    async fn append(&mut self, response: Response, end: Option<u64>) -> anyhow::Result<()> {
        let written = self.write(response, end).await;
        // tokio writes in the background: what came before a break is to be in the file as well.
        self.file.flush().await?;
        written
    }

    async fn write(&mut self, mut response: Response, end: Option<u64>) -> anyhow::Result<()> {
        while let Some(piece) = response.chunk().await? {
            let got = self.got + piece.len() as u64;
            ensure!(
                end.is_none_or(|end| got <= end),
                "more came than was promised"
            );
            self.file.write_all(&piece).await?;
            self.digest.update(&piece);
            self.got = got;
            self.bar.set_position(got);
        }
        Ok(())
    }

    /// Begins again: the next request asks for the whole file.
    async fn forget(&mut self) -> anyhow::Result<()> {
        (self.got, self.length, self.etag) = (0, None, None);
        self.digest = Sha256::new();
        self.file.set_len(0).await?;
        self.file.rewind().await?;
        Ok(())
    }
}

/// `bytes 100-199/1000`: the first and the last byte, and how many there are in all.
struct Range {
    first: u64,
    last: u64,
    length: u64,
}

impl Range {
    fn read(header: &HeaderValue) -> Option<Range> {
        let (range, length) = header
            .to_str()
            .ok()?
            .strip_prefix("bytes ")?
            .split_once('/')?;
        let (first, last) = range.split_once('-')?;
        Some(Range {
            first: first.parse().ok()?,
            last: last.parse().ok()?,
            length: length.parse().ok()?,
        })
    }
}
