//! The download of the examples: no byte is written twice or left out, whatever a server makes of a
//! `Range`.

#[path = "../../examples/download/resume.rs"]
mod resume;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use indicatif::ProgressBar;
use reqwest_retry_rules::RetryPolicy;
use sha2::{Digest, Sha256};

use crate::support::chain::{at_once, retrying};
use crate::support::h1::H1;
use crate::support::log::Received;
use crate::support::script::{Act, Answer, Body, End};

const LENGTH: usize = 100_000;

/// A file that differs from place to place, and from version to version.
fn content(version: u8) -> Vec<u8> {
    (0..LENGTH).map(|n| (n / 251) as u8 ^ version).collect()
}

/// What came of a download.
struct Got {
    outcome: anyhow::Result<[u8; 32]>,
    on_disk: Vec<u8>,
    /// The `range` and the `if-range` of each request.
    asked: Vec<(Option<String>, Option<String>)>,
}

impl Got {
    #[track_caller]
    fn assert_is(&self, expected: &[u8]) {
        let digest = self.outcome.as_ref().unwrap();
        assert!(self.on_disk == expected, "the disk has something else");
        assert_eq!(digest[..], Sha256::digest(expected)[..]);
    }

    /// The `range` of each request.
    fn ranges(&self) -> Vec<Option<&str>> {
        self.asked
            .iter()
            .map(|(range, _)| range.as_deref())
            .collect()
    }
}

/// Downloads from a server that does this with the nth request, counted from 1.
async fn download(answer: impl Fn(u32, &Received) -> Act + Send + Sync + 'static) -> Got {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let count = Mutex::new(0);
    let server = H1::start(Act::ask(move |request| {
        let mut count = count.lock().unwrap();
        *count += 1;
        answer(*count, request)
    }))
    .await;
    let policy = RetryPolicy::from(at_once());
    let client = retrying(policy.clone());
    let nth = FILES.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("download-{}-{nth}", std::process::id()));
    let (url, bar) = (server.url("/file"), ProgressBar::hidden());
    let outcome = resume::download(&policy, &client, &url, &path, &bar).await;
    let on_disk = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let header = |request: &Received, name: &str| {
        let value = request.headers.get(name)?;
        Some(value.to_str().unwrap().to_owned())
    };
    let requests = server.requests();
    let asked = |request| (header(request, "range"), header(request, "if-range"));
    Got {
        outcome,
        on_disk,
        asked: requests.iter().map(asked).collect(),
    }
}

/// The whole file, which breaks off after so many bytes.
fn breaks_off(version: u8, after: usize) -> Act {
    let body = Body::Short(LENGTH as u64, content(version)[..after].to_vec().into());
    let answer = Answer::new(200).header("etag", &format!("\"{version}\""));
    answer.send(body).end(End::Close).into()
}

/// The whole file.
fn whole(version: u8) -> Act {
    let answer = Answer::new(200).header("etag", &format!("\"{version}\""));
    answer.body(content(version)).into()
}

/// What `content-range` promises, and these bytes.
fn part(etag: &str, range: &str, bytes: impl Into<bytes::Bytes>) -> Act {
    Answer::new(206)
        .header("etag", etag)
        .header("content-range", range)
        .body(bytes)
        .into()
}

const EVERYTHING: Option<&str> = None;
const REST: Option<&str> = Some("bytes=40000-");

#[tokio::test]
async fn it_goes_on_where_it_broke() {
    let got = download(|nth, _| match nth {
        1 => breaks_off(1, 40_000),
        2 => {
            let body = Body::Short(60_000, content(1)[40_000..70_000].to_vec().into());
            Answer::new(206)
                .header("etag", "\"1\"")
                .header("content-range", "bytes 40000-99999/100000")
                .send(body)
                .end(End::Close)
                .into()
        }
        _ => part(
            "\"1\"",
            "bytes 70000-99999/100000",
            content(1)[70_000..].to_vec(),
        ),
    })
    .await;
    got.assert_is(&content(1));
    assert_eq!(got.ranges(), [EVERYTHING, REST, Some("bytes=70000-")]);
    let if_range: Vec<_> = got.asked.iter().map(|(_, etag)| etag.as_deref()).collect();
    assert_eq!(if_range, [None, Some("\"1\""), Some("\"1\"")]);
}

/// The twin.
#[tokio::test]
async fn one_that_does_not_break_is_asked_for_once() {
    let got = download(|_, _| whole(1)).await;
    got.assert_is(&content(1));
    assert_eq!(got.ranges(), [EVERYTHING]);
}

#[tokio::test]
async fn if_all_of_it_comes_in_place_of_the_rest_it_begins_again() {
    // A server that has no ranges, and one whose file has changed.
    for version in [1, 2] {
        let got = download(move |nth, _| match nth {
            1 => breaks_off(1, 40_000),
            _ => whole(version),
        })
        .await;
        got.assert_is(&content(version));
        assert_eq!(got.ranges(), [EVERYTHING, REST]);
    }
}

#[tokio::test]
async fn a_range_that_is_not_the_one_that_was_asked_for_is_not_taken() {
    for (what, etag, range) in [
        (
            "another state of the file",
            "\"2\"",
            "bytes 40000-99999/100000",
        ),
        ("another length", "\"1\"", "bytes 40000-99999/100001"),
        ("another beginning", "\"1\"", "bytes 0-99999/100000"),
        ("a hole", "\"1\"", "bytes 40001-99999/100000"),
        ("a length that is not known", "\"1\"", "bytes 40000-99999/*"),
        (
            "an end before the beginning",
            "\"1\"",
            "bytes 40000-39999/100000",
        ),
        (
            "an end behind the end",
            "\"1\"",
            "bytes 40000-100000/100000",
        ),
        ("no range", "\"1\"", "all of it"),
    ] {
        let got = download(move |nth, _| match nth {
            1 => breaks_off(1, 40_000),
            2 => part(etag, range, content(2)[40_000..].to_vec()),
            _ => whole(2),
        })
        .await;
        assert_eq!(got.ranges(), [EVERYTHING, REST, EVERYTHING], "{what}");
        got.assert_is(&content(2));
    }
}

#[tokio::test]
async fn a_range_that_is_not_there_any_more_begins_again() {
    let got = download(|nth, _| match nth {
        1 => breaks_off(1, 40_000),
        2 => Answer::new(416)
            .header("content-range", "bytes */100")
            .into(),
        _ => Answer::new(200)
            .header("etag", "\"2\"")
            .body("short")
            .into(),
    })
    .await;
    got.assert_is(b"short");
    assert_eq!(got.ranges(), [EVERYTHING, REST, EVERYTHING]);
}

#[tokio::test]
async fn without_a_strong_name_for_its_state_a_file_comes_from_its_start() {
    for etag in [Some("W/\"1\""), None] {
        let got = download(move |nth, _| {
            let mut answer = Answer::new(200);
            if let Some(etag) = etag {
                answer = answer.header("etag", etag);
            }
            let broken = Body::Short(LENGTH as u64, content(1)[..40_000].to_vec().into());
            match nth {
                1 => answer.send(broken).end(End::Close).into(),
                _ => answer.body(content(2)).into(),
            }
        })
        .await;
        got.assert_is(&content(2));
        assert_eq!(got.ranges(), [EVERYTHING, EVERYTHING], "{etag:?}");
    }
}

/// A server may answer with less than it was asked for. That is no failure, and takes no retry.
#[tokio::test]
async fn a_part_of_the_rest_is_taken_and_what_is_missing_asked_for() {
    let got = download(|nth, _| {
        let first = 40_000 + 10_000 * (nth as usize).saturating_sub(2);
        let last = first + 9_999;
        match nth {
            1 => breaks_off(1, 40_000),
            _ => part(
                "\"1\"",
                &format!("bytes {first}-{last}/100000"),
                content(1)[first..=last].to_vec(),
            ),
        }
    })
    .await;
    got.assert_is(&content(1));
    assert_eq!(got.asked.len(), 7);
}

#[tokio::test]
async fn more_or_less_than_was_promised_is_an_error() {
    for (bytes, says) in [
        (content(1)[40_000..].to_vec(), "more came than was promised"),
        (
            content(1)[40_000..49_999].to_vec(),
            "less came than the range that was promised",
        ),
    ] {
        let got = download(move |nth, _| match nth {
            1 => breaks_off(1, 40_000),
            _ => Answer::new(206)
                .header("etag", "\"1\"")
                .header("content-range", "bytes 40000-49999/100000")
                .send(Body::Chunked(vec![bytes.clone().into()], Vec::new()))
                .into(),
        })
        .await;
        assert_eq!(got.outcome.unwrap_err().to_string(), says);
        assert_eq!(got.asked.len(), 2);
        // Nothing that is on the disk is wrong.
        assert!(content(1).starts_with(&got.on_disk));
    }
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_an_error() {
    let got = download(|_, _| part("\"1\"", "bytes 0-9/10", "0123456789")).await;
    let error = got.outcome.unwrap_err().to_string();
    assert_eq!(error, "206 Partial Content is no answer to this request");
    let got = download(|_, _| Answer::new(204).into()).await;
    let error = got.outcome.unwrap_err().to_string();
    assert_eq!(error, "204 No Content is no answer to this request");
}

#[tokio::test]
async fn what_the_rule_does_not_retry_ends_it() {
    let got = download(|_, _| Act::status(404)).await;
    let error = got.outcome.unwrap_err();
    let error = error.downcast_ref::<reqwest::Error>().unwrap();
    assert_eq!(error.status().unwrap(), 404);
    assert_eq!(got.asked.len(), 1);
    // Its twin: three retries, and no more for all of the work.
    let got = download(|_, _| Act::status(503)).await;
    got.outcome.unwrap_err();
    assert_eq!(got.asked.len(), 4);
    let got = download(|_, _| breaks_off(1, 40_000)).await;
    got.outcome.unwrap_err();
    assert_eq!(got.asked.len(), 4);
    assert!(got.on_disk == content(1)[..40_000]);
}

#[tokio::test]
async fn an_empty_file_and_one_of_unknown_length_are_files() {
    let got = download(|_, _| Answer::new(200).into()).await;
    got.assert_is(b"");
    assert_eq!(got.asked.len(), 1);
    let got = download(|_, _| {
        let pieces = vec![content(1).into()];
        Answer::new(200)
            .send(Body::Chunked(pieces, Vec::new()))
            .into()
    })
    .await;
    got.assert_is(&content(1));
    assert_eq!(got.asked.len(), 1);
    let got = download(|nth, _| {
        let pieces = vec![content(1)[..40_000].to_vec().into()];
        let answer = Answer::new(200).header("etag", "\"1\"");
        match nth {
            1 => answer
                .send(Body::ShortChunks(pieces))
                .end(End::Close)
                .into(),
            _ => part(
                "\"1\"",
                "bytes 40000-99999/100000",
                content(1)[40_000..].to_vec(),
            ),
        }
    })
    .await;
    got.assert_is(&content(1));
    assert_eq!(got.ranges(), [EVERYTHING, REST]);
}
