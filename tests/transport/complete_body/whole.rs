//! What was read comes back as it came: nothing lost, nothing twice.

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Extensions, HeaderMap, Version};
use http_body_util::BodyExt;
use reqwest::{Request, Response};
use reqwest_middleware::{Middleware, Next, Result};
use reqwest_retry_rules::{ResponseExt, RetryMiddleware, RetryPolicy, client_builder};

use super::{OK, completing, ms};
use crate::support;
use crate::support::h1::H1;
use crate::support::h2::H2;
use crate::support::script::{Answer, Body, End};
use crate::support::sends::{Went, at_once, retrying, send};
use crate::support::staged::{Stage, Step, answer};

/// Bodies of 1500 bytes, so framed and paced.
fn bodies() -> Vec<Body> {
    let pieces: Vec<Bytes> = (0..15_u8).map(|n| vec![n; 100].into()).collect();
    let whole = Bytes::from(pieces.concat());
    let trailers = vec![("x-sum".to_owned(), "7".to_owned())];
    vec![
        Body::Whole(whole.clone()),
        Body::Later(ms(5), whole.clone()),
        Body::UntilClose(whole),
        Body::Chunked(pieces.clone(), trailers),
        Body::Slow(pieces, ms(1)),
    ]
}

fn whole() -> Vec<u8> {
    (0..15_u8).flat_map(|n| [n; 100]).collect()
}

async fn read(answer: Response) -> (Vec<u8>, Option<HeaderMap>) {
    let body = reqwest::Body::from(answer).collect().await.unwrap();
    let trailers = body.trailers().cloned();
    (body.to_bytes().to_vec(), trailers)
}

#[tokio::test]
async fn a_body_comes_whole_whatever_the_limit() {
    for body in bodies() {
        for limit in [1, 99, 100, 101, 1000, 1499, 1500, 1501, usize::MAX] {
            let server = H1::start(Answer::new(200).send(body.clone())).await;
            let policy = RetryPolicy::from(at_once(2)).complete_body(limit);
            let client = retrying(support::client(), policy);
            let (outcome, went) = send(client.get(server.url("/"))).await;
            assert_eq!(went, Went::answered([OK]));
            let (bytes, trailers) = read(outcome.unwrap()).await;
            assert!(bytes == whole(), "{limit} {body:?}");
            let sum = trailers.map(|trailers| trailers["x-sum"].clone());
            let expected = matches!(body, Body::Chunked(..)).then_some("7");
            assert_eq!(sum, expected.map(|sum| sum.parse().unwrap()));
        }
    }
}

#[tokio::test]
async fn a_body_comes_whole_over_http2() {
    for body in bodies() {
        for limit in [1, 100, 1000, 1500, usize::MAX] {
            let server = H2::start(Answer::new(200).send(body.clone())).await;
            let policy = RetryPolicy::from(at_once(2)).complete_body(limit);
            let client = support::client().http2_prior_knowledge();
            let client = retrying(client, policy);
            let (outcome, _) = send(client.get(server.url("/"))).await;
            let (bytes, trailers) = read(outcome.unwrap()).await;
            assert!(bytes == whole(), "{limit} {body:?}");
            let sum = trailers.map(|trailers| trailers["x-sum"].clone());
            let expected = matches!(body, Body::Chunked(..)).then_some("7");
            assert_eq!(sum, expected.map(|sum| sum.parse().unwrap()));
        }
    }
}

/// Pieces that are kept as they are and pieces that are put together, in turn.
#[tokio::test]
async fn pieces_of_every_length_stay_in_their_order() {
    let lengths = [600, 1, 2000, 3, 1023, 1024, 1025, 5, 5];
    let pieces = lengths.iter().zip(0_u8..);
    let pieces: Vec<Bytes> = pieces.map(|(length, n)| vec![n; *length].into()).collect();
    let whole = pieces.concat();
    let mut steps: Vec<_> = pieces.into_iter().map(Step::Data).collect();
    steps.push(Step::trailer("x-sum", "7"));
    for limit in [1, 601, 602, 3000, 100_000] {
        let (response, _) = answer(Version::HTTP_11, 200, None, steps.clone());
        let client = support::client().build().unwrap();
        let client = reqwest_middleware::ClientBuilder::new(client)
            .with(RetryMiddleware::new(
                RetryPolicy::from(at_once(2)).complete_body(limit),
            ))
            .with(Stage::new([response]))
            .build();
        let response = client.get("http://target.test/").send().await.unwrap();
        let mut body = reqwest::Body::from(response);
        let mut read = Vec::new();
        let mut trailers = None;
        while let Some(frame) = body.frame().await {
            assert_eq!(trailers, None, "nothing comes after the trailers");
            match frame.unwrap().into_data() {
                Ok(data) => read.extend_from_slice(&data),
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        assert!(read == whole, "{limit}");
        assert_eq!(trailers.unwrap()["x-sum"], "7");
    }
}

#[tokio::test]
async fn a_longer_body_streams_on_as_it_comes() {
    let pieces = vec![Bytes::from(vec![b'x'; 600]); 2];
    let stalling = Answer::new(200)
        .send(Body::ShortChunks(pieces))
        .end(End::Stall);
    let server = H1::start(stalling).await;
    let client = retrying(support::client(), completing(2));
    let (outcome, _) = send(client.get(server.url("/"))).await;
    let mut answer = outcome.unwrap();
    let mut bytes = 0;
    while bytes < 1200 {
        bytes += answer.chunk().await.unwrap().unwrap().len();
    }
    assert_eq!(bytes, 1200);
}

#[tokio::test]
async fn a_body_that_was_read_can_be_read_in_every_way() {
    let answer = Answer::new(200).send(Body::Chunked(
        vec!["[1, ".into(), "2, ".into(), "3]".into()],
        Vec::new(),
    ));
    let server = H1::start(answer).await;
    let client = retrying(support::client(), completing(2));
    let get = || async { client.get(server.url("/")).send().await.unwrap() };
    assert_eq!(get().await.text().await.unwrap(), "[1, 2, 3]");
    assert_eq!(get().await.bytes().await.unwrap(), "[1, 2, 3]");
    assert_eq!(get().await.json::<[u8; 3]>().await.unwrap(), [1, 2, 3]);
    let pieces: Vec<_> = get().await.bytes_stream().collect().await;
    let pieces: Vec<_> = pieces.into_iter().map(reqwest::Result::unwrap).collect();
    assert_eq!(pieces.concat(), b"[1, 2, 3]");
    assert_eq!(server.connections(), 1);
}

/// Leaves a mark in what comes back.
struct Marking;

#[derive(Clone, Debug, PartialEq)]
struct Mark(&'static str);

#[async_trait::async_trait]
impl Middleware for Marking {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let mut response = next.run(request, extensions).await?;
        response.extensions_mut().insert(Mark("further in"));
        Ok(response)
    }
}

#[tokio::test]
async fn the_head_of_an_answer_is_as_it_was() {
    let end = H1::start(Answer::new(203).header("x-answer", "yes").body("there")).await;
    let start = H1::start(Answer::new(302).header("location", &end.url("/c?d"))).await;
    support::install_crypto();
    let client = client_builder()
        .no_proxy()
        .tls_certs_only([])
        .build()
        .unwrap();
    let client = reqwest_middleware::ClientBuilder::new(client)
        .with(RetryMiddleware::new(completing(2)))
        .with(Marking)
        .build();
    let answer = client.get(start.url("/a?b")).send().await.unwrap();
    assert_eq!(answer.status(), 203);
    assert_eq!(answer.url().as_str(), end.url("/c?d"));
    assert_eq!(answer.remote_addr(), Some(end.addr));
    assert_eq!(answer.version(), Version::HTTP_11);
    assert_eq!(answer.headers()["x-answer"], "yes");
    assert_eq!(answer.content_length(), Some(5));
    assert_eq!(answer.extensions().get(), Some(&Mark("further in")));
    assert_eq!(answer.attempts(), 1);
    assert_eq!(answer.text().await.unwrap(), "there");
}

#[tokio::test]
async fn a_body_of_single_bytes_is_held_in_few_pieces() {
    let mut steps = vec![Step::data("x"); 900];
    steps.push(Step::trailer("x-sum", "7"));
    let (response, _) = answer(Version::HTTP_11, 200, None, steps);
    let client = support::client().build().unwrap();
    let client = reqwest_middleware::ClientBuilder::new(client)
        .with(RetryMiddleware::new(completing(2)))
        .with(Stage::new([response]))
        .build();
    let mut response = client.get("http://target.test/").send().await.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), vec![b'x'; 900]);
    assert_eq!(response.chunk().await.unwrap(), None);
}
