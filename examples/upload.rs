//! An upload that survives a cut: the file is opened anew for each attempt, and never held in
//! memory.
//!
//! Run it with `cargo run --example upload`.

mod support;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use http::Request;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use reqwest_middleware::ClientBuilder;
use reqwest_retry_rules::{
    BodySource, FreshBody, RetryLog, RetryMiddleware, RetryRule, client_builder,
};
use tokio::fs::{self, File};

use support::{Answer, Service, answer};

/// Makes the body of each attempt: the file from its start, and how long it is.
///
/// With its length known it goes out with a `Content-Length`, without one in chunks.
fn contents_of(path: &Path) -> BodySource {
    let path = Arc::<Path>::from(path);
    BodySource::from_async(move || {
        let path = path.clone();
        async move {
            let file = File::open(&path).await?;
            let bytes = file.metadata().await?.len();
            Ok::<_, io::Error>(FreshBody::from(file).content_length(bytes))
        }
    })
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Store::default();
    let receiving = store.clone();
    let service =
        Service::start(move |nth, request| receiving.clone().receive(nth, request)).await?;
    let file = Scratch::file().await?;

    // A PUT is retried by the usual rule when its connection is lost. Its body could not be sent
    // again by itself: what was read of it is gone.
    let client = ClientBuilder::new(client_builder().no_proxy().build()?)
        .with(RetryMiddleware::new(RetryRule::transient()))
        .build();
    let log = RetryLog::new();
    client
        .put(service.url("/backup"))
        .with_extension(contents_of(&file.path))
        .with_extension(log.clone())
        .send()
        .await?
        .error_for_status()?;

    if let Some(report) = log.report() {
        support::print(
            "A file is put into a store, whose first connection breaks",
            &report,
        );
    }
    println!("What the store got");
    for upload in store.uploads() {
        let (got, of) = (upload.body.len(), &upload.content_length);
        println!("    {got:>7} bytes of {of}");
    }
    let last = store.uploads().pop().unwrap_or_default();
    anyhow::ensure!(
        last.body == fs::read(&file.path).await?,
        "the store has something else"
    );
    println!("    the last of them byte for byte what is in the file");
    Ok(())
}

/// A store that cuts the connection in the middle of the first upload.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<Vec<Upload>>>);

/// What arrived of one attempt.
#[derive(Clone, Default)]
struct Upload {
    content_length: String,
    body: Vec<u8>,
}

impl Store {
    async fn receive(self, nth: u32, request: Request<Incoming>) -> Answer {
        let mut upload = Upload {
            content_length: match request.headers().get(CONTENT_LENGTH) {
                Some(length) => String::from_utf8_lossy(length.as_bytes()).into_owned(),
                None => "unknown".to_owned(),
            },
            body: Vec::new(),
        };
        let mut body = request.into_body();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame.map_err(io::Error::other)?.into_data() {
                upload.body.extend_from_slice(&data);
            }
            if nth == 1 && upload.body.len() >= BYTES / 2 {
                self.keep(upload);
                return Err(io::Error::other("the connection is cut"));
            }
        }
        self.keep(upload);
        answer(201, &[])
    }

    fn keep(&self, upload: Upload) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(upload);
    }

    fn uploads(&self) -> Vec<Upload> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// How long the file is: half a million lines of 16 bytes.
const BYTES: usize = 8_000_000;

/// A temporary file, which goes when this is dropped.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    async fn file() -> io::Result<Scratch> {
        let name = format!("reqwest-retry-rules-upload-{}.txt", std::process::id());
        let path = std::env::temp_dir().join(name);
        let lines: String = (0..BYTES / 16).map(|n| format!("{n:015}\n")).collect();
        fs::write(&path, lines).await?;
        Ok(Scratch { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // One that stays is the temporary directory's to remove.
        let _ = std::fs::remove_file(&self.path);
    }
}
