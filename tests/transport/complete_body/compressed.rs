//! Bodies in every coding that reqwest decodes.

use std::error::Error as _;

use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
use bytes::Bytes;
use reqwest_retry_rules::AttemptResult::Failure;
use reqwest_retry_rules::TransportError::Body as BrokenBody;
use reqwest_retry_rules::{RetryMiddleware, StopReason};
use tokio::io::AsyncWriteExt;

use super::{OK, completing};
use crate::support;
use crate::support::h1::H1;
use crate::support::h2::H2;
use crate::support::script::{Answer, Body};
use crate::support::sends::{Went, retrying, send};

/// Long enough that the codings really pack it.
const WHOLE: &str = "one, two, three, one, two, three, four, one, two, three, four, five";

const CODINGS: [&str; 4] = ["gzip", "br", "deflate", "zstd"];

macro_rules! encoded {
    ($encoder:ident, $plain:expr) => {{
        let mut encoder = $encoder::new(Vec::new());
        encoder.write_all($plain).await.unwrap();
        encoder.shutdown().await.unwrap();
        Bytes::from(encoder.into_inner())
    }};
}

async fn encode(coding: &str, plain: &[u8]) -> Bytes {
    match coding {
        "gzip" => encoded!(GzipEncoder, plain),
        "br" => encoded!(BrotliEncoder, plain),
        "deflate" => encoded!(ZlibEncoder, plain),
        "zstd" => encoded!(ZstdEncoder, plain),
        other => panic!("{other}"),
    }
}

/// A client that decodes all of them, as reqwest does by default.
fn decoding() -> reqwest::ClientBuilder {
    support::client()
        .gzip(true)
        .brotli(true)
        .deflate(true)
        .zstd(true)
}

fn packed(coding: &str, body: Body) -> Answer {
    Answer::new(200)
        .header("content-encoding", coding)
        .send(body)
}

#[tokio::test]
async fn a_body_that_breaks_off_is_retried_in_every_coding() {
    for coding in CODINGS {
        let all = encode(coding, WHOLE.as_bytes()).await;
        let (length, half) = (all.len() as u64, all.slice(..all.len() / 2));
        for broken in [
            Body::Short(length, half.clone()),
            Body::ShortChunks(vec![half.clone()]),
            Body::ShortChunks(vec![all.clone()]),
        ] {
            let whole = packed(coding, Body::Whole(all.clone()));
            let server = H1::start(vec![packed(coding, broken.clone()), whole]).await;
            let client = retrying(decoding(), completing(2));
            let (outcome, went) = send(client.get(server.url("/"))).await;
            let expected = Went::answered([Failure(BrokenBody), OK]);
            assert_eq!(went, expected, "{coding} {broken:?}");
            assert_eq!(outcome.unwrap().text().await.unwrap(), WHOLE);
        }
    }
}

/// The connection ends the body, so nothing but the coding tells that a part is missing.
#[tokio::test]
async fn a_body_that_ends_too_early_broke_off_wherever_it_ends() {
    let client = decoding().build().unwrap();
    for coding in CODINGS {
        let all = encode(coding, WHOLE.as_bytes()).await;
        for end in 1..all.len() {
            let part = all.slice(..end);
            for body in [
                Body::UntilClose(part.clone()),
                Body::Whole(part.clone()),
                Body::Chunked(vec![part], Vec::new()),
            ] {
                let whole = packed(coding, Body::UntilClose(all.clone()));
                let server = H1::start(vec![packed(coding, body.clone()), whole]).await;
                let client = reqwest_middleware::ClientBuilder::new(client.clone())
                    .with(RetryMiddleware::new(completing(2)))
                    .build();
                let (outcome, went) = send(client.get(server.url("/"))).await;
                let expected = Went::answered([Failure(BrokenBody), OK]);
                assert_eq!(went, expected, "{coding}, {end} of {} {body:?}", all.len());
                assert_eq!(outcome.unwrap().text().await.unwrap(), WHOLE);
            }
        }
    }
}

/// The twin of the two above.
#[tokio::test]
async fn a_post_whose_answer_ends_too_early_is_not_sent_again() {
    for coding in CODINGS {
        let all = encode(coding, WHOLE.as_bytes()).await;
        let server = H1::start(packed(coding, Body::UntilClose(all.slice(..all.len() - 1)))).await;
        let client = retrying(decoding(), completing(2));
        let (outcome, went) = send(client.post(server.url("/"))).await;
        let expected = Went::stopped([Failure(BrokenBody)], StopReason::MethodNotAllowed);
        assert_eq!(went, expected, "{coding}");
        let error = outcome.unwrap().bytes().await.unwrap_err();
        assert!(error.is_decode(), "{coding} {error:?}");
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn a_body_that_is_whole_is_an_answer_in_every_coding() {
    for coding in CODINGS {
        let all = encode(coding, WHOLE.as_bytes()).await;
        for body in [
            Body::Whole(all.clone()),
            Body::UntilClose(all.clone()),
            Body::Chunked(vec![all.clone()], Vec::new()),
        ] {
            let server = H1::start(packed(coding, body)).await;
            let client = retrying(decoding(), completing(2));
            let (outcome, went) = send(client.get(server.url("/"))).await;
            assert_eq!(went, Went::answered([OK]));
            assert_eq!(outcome.unwrap().text().await.unwrap(), WHOLE);
        }
    }
}

/// A body of no bytes is not packed, whatever its head says.
#[tokio::test]
async fn a_body_of_no_bytes_is_an_answer_in_every_coding() {
    for coding in CODINGS {
        for body in [Body::Whole(Bytes::new()), Body::UntilClose(Bytes::new())] {
            let server = H1::start(packed(coding, body)).await;
            let client = retrying(decoding(), completing(2));
            let (outcome, went) = send(client.get(server.url("/"))).await;
            assert_eq!(went, Went::answered([OK]), "{coding}");
            assert_eq!(outcome.unwrap().text().await.unwrap(), "");
        }
    }
}

/// Another attempt would bring the same.
#[tokio::test]
async fn a_body_that_reads_as_nonsense_comes_back_with_its_error() {
    let gzip = encode("gzip", WHOLE.as_bytes()).await;
    let mut wrong_sum = gzip.to_vec();
    *wrong_sum.last_mut().unwrap() ^= 1;
    let nonsense =
        CODINGS.map(|coding| (coding, Bytes::from_static(b"no such coding at all, is it")));
    for (coding, body) in nonsense.into_iter().chain([("gzip", wrong_sum.into())]) {
        let server = H1::start(packed(coding, Body::Whole(body))).await;
        let client = retrying(decoding(), completing(2));
        let (outcome, went) = send(client.get(server.url("/"))).await;
        assert_eq!(went, Went::answered([OK]), "{coding}");
        let error = outcome.unwrap().text().await.unwrap_err();
        assert!(error.is_decode(), "{coding} {error:?}");
        assert!(error.source().is_some(), "{coding}");
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn over_http2_a_body_that_ends_too_early_broke_off() {
    for coding in CODINGS {
        let all = encode(coding, WHOLE.as_bytes()).await;
        let part = all.slice(..all.len() / 2);
        let server = H2::start(vec![
            packed(coding, Body::Whole(part)),
            packed(coding, Body::Whole(all)),
        ])
        .await;
        let client = retrying(decoding().http2_prior_knowledge(), completing(2));
        let (outcome, went) = send(client.get(server.url("/"))).await;
        let expected = Went::answered([Failure(BrokenBody), OK]);
        assert_eq!(went, expected, "{coding}");
        assert_eq!(outcome.unwrap().text().await.unwrap(), WHOLE);
    }
}
