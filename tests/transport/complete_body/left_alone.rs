//! Answers whose bodies are none of its business.

use http::Version;
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::{RetryMiddleware, RetryPolicy, StopReason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{OK, completing, ms};
use crate::support;
use crate::support::h1::H1;
use crate::support::script::{Act, Answer, Body, End};
use crate::support::sends::{Went, retrying, send};
use crate::support::staged::{Fate, Stage, Step, answer};

fn staged(stage: Stage, policy: RetryPolicy) -> ClientWithMiddleware {
    let client = support::client().build().unwrap();
    reqwest_middleware::ClientBuilder::new(client)
        .with(RetryMiddleware::new(policy))
        .with(stage)
        .build()
}

/// How much of a body is read before the caller has the answer.
async fn begun(status: u16, length: Option<u64>, kind: Option<&str>) -> Fate {
    let (mut response, probe) = answer(Version::HTTP_11, status, length, [Step::data("body")]);
    if let Some(kind) = kind {
        let kind = kind.parse().unwrap();
        response.headers_mut().insert("content-type", kind);
    }
    let client = staged(Stage::new([response]), completing(2));
    let response = client.get("http://target.test/").send().await.unwrap();
    let fate = probe.fate();
    assert_eq!(response.text().await.unwrap(), "body");
    fate
}

const LEFT_ALONE: Fate = Fate {
    begun: false,
    taken: 0,
    dropped: false,
};

const READ: Fate = Fate {
    begun: true,
    taken: 4,
    dropped: true,
};

#[tokio::test]
async fn only_a_success_is_read() {
    for status in [200, 201, 203, 206, 226, 299] {
        assert_eq!(begun(status, None, None).await, READ, "{status}");
    }
    for status in [300, 304, 400, 401, 404, 410, 600, 999] {
        assert_eq!(begun(status, None, None).await, LEFT_ALONE, "{status}");
    }
}

#[tokio::test]
async fn a_stream_is_left_alone() {
    for kind in [
        "text/event-stream",
        "text/event-stream; charset=utf-8",
        "Text/Event-Stream",
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/json-seq",
        "application/geo+json-seq",
        "application/grpc",
        "application/grpc+proto",
        "application/grpc-web-text",
        "multipart/x-mixed-replace; boundary=frame",
    ] {
        assert_eq!(begun(200, None, Some(kind)).await, LEFT_ALONE, "{kind}");
    }
}

/// The twin.
#[tokio::test]
async fn what_only_looks_like_a_stream_is_read() {
    for kind in [
        "text/plain",
        "text/event",
        "text/event-streams",
        "application/json",
        "application/json; profile=\"text/event-stream\"",
        "multipart/mixed; boundary=frame",
        "application/grp",
    ] {
        assert_eq!(begun(200, None, Some(kind)).await, READ, "{kind}");
    }
}

#[tokio::test]
async fn a_body_that_says_it_is_longer_is_not_begun() {
    for length in [1001, 1 << 30, u64::MAX] {
        assert_eq!(begun(200, Some(length), None).await, LEFT_ALONE, "{length}");
    }
    assert_eq!(begun(200, Some(4), None).await, READ);
}

#[tokio::test]
async fn a_refused_answer_is_not_completed() {
    let (refused, probe) = answer(Version::HTTP_11, 500, None, [Step::data("body")]);
    let client = staged(Stage::new([refused]), completing(2));
    let (outcome, went) = send(client.post("http://target.test/")).await;
    assert_eq!(went.stop, Some(StopReason::MethodNotAllowed));
    assert!(!probe.fate().begun);
    assert_eq!(outcome.unwrap().text().await.unwrap(), "body");
}

#[tokio::test]
async fn an_endless_body_is_read_just_past_the_limit() {
    let page = bytes::Bytes::from(vec![b'x'; 600]);
    let (response, probe) = answer(Version::HTTP_11, 200, None, [Step::Endless(page)]);
    let client = staged(Stage::new([response]), completing(2));
    let mut response = client.get("http://target.test/").send().await.unwrap();
    assert_eq!(probe.fate().taken, 1200);
    let mut read = 0;
    while read < 6000 {
        read += response.chunk().await.unwrap().unwrap().len();
    }
    assert_eq!(read, probe.fate().taken);
}

// ---- over real sockets ----

#[tokio::test]
async fn the_pieces_of_a_stream_come_as_they_are_sent() {
    for kind in [
        "text/event-stream",
        "application/x-ndjson",
        "application/grpc",
        "multipart/x-mixed-replace; boundary=frame",
    ] {
        let pieces = Answer::new(200)
            .header("content-type", kind)
            .send(Body::ShortChunks(vec!["data: 1\n\n".into()]))
            .end(End::Stall);
        let server = H1::start(pieces).await;
        let client = retrying(support::client(), completing(2));
        let (outcome, went) = send(client.get(server.url("/"))).await;
        let piece = outcome.unwrap().chunk().await.unwrap().unwrap();
        assert_eq!(piece, "data: 1\n\n");
        assert_eq!(went, Went::answered([OK]));
    }
}

#[tokio::test]
async fn an_answer_without_a_body_comes_back_as_it_is() {
    let cases = [
        (
            reqwest::Method::HEAD,
            Answer::new(200).body(vec![b'x'; 500]),
        ),
        (
            reqwest::Method::HEAD,
            Answer::new(200).body(vec![b'x'; 5000]),
        ),
        (
            reqwest::Method::HEAD,
            Answer::new(200).send(Body::Chunked(Vec::new(), Vec::new())),
        ),
        (reqwest::Method::GET, Answer::new(204)),
        (reqwest::Method::GET, Answer::new(205)),
        (
            reqwest::Method::GET,
            Answer::new(304).header("etag", "\"1\""),
        ),
        (reqwest::Method::GET, Answer::new(200)),
        (
            reqwest::Method::GET,
            Answer::new(200).send(Body::Chunked(Vec::new(), Vec::new())),
        ),
    ];
    for (method, answer) in cases {
        let server = H1::start(answer.clone()).await;
        let client = retrying(support::client(), completing(2));
        let (outcome, _) = send(client.request(method.clone(), server.url("/"))).await;
        let answered = outcome.unwrap();
        let plain = support::client().build().unwrap();
        let twin = plain.request(method, server.url("/")).send().await.unwrap();
        assert_eq!(answered.status(), twin.status(), "{answer:?}");
        assert_eq!(answered.headers(), twin.headers(), "{answer:?}");
        assert_eq!(answered.text().await.unwrap(), "", "{answer:?}");
        assert_eq!(server.count(), 2);
    }
}

#[tokio::test]
async fn an_upgraded_connection_is_the_callers() {
    let switching = "HTTP/1.1 101 Switching Protocols\r\n\
                     connection: upgrade\r\nupgrade: echo\r\n\r\nhello";
    let server = H1::start(Act::Raw(switching.into(), End::Stall)).await;
    let client = retrying(support::client(), completing(2));
    let request = client
        .get(server.url("/"))
        .header("connection", "upgrade")
        .header("upgrade", "echo");
    let (outcome, _) = send(request).await;
    let answer = outcome.unwrap();
    assert_eq!(answer.status(), 101);
    let mut upgraded = answer.upgrade().await.unwrap();
    upgraded.write_all(b"anybody there?").await.unwrap();
    let mut greeting = [0; 5];
    upgraded.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"hello");
}

#[tokio::test]
async fn the_body_of_a_404_comes_as_it_is_sent() {
    let missing = Answer::new(404)
        .send(Body::ShortChunks(vec!["not ".into()]))
        .end(End::Stall);
    let server = H1::start(missing).await;
    let client = retrying(support::client().read_timeout(ms(2000)), completing(2));
    let (outcome, _) = send(client.get(server.url("/"))).await;
    assert_eq!(outcome.unwrap().chunk().await.unwrap().unwrap(), "not ");
}
