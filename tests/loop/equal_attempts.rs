//! A retry equals the first attempt in every part, as a middleware further in sees it that takes the
//! request apart: also in what reqwest keeps to itself, such as the extensions of an `http::Request`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use http_body::{Body as _, SizeHint};
use http_body_util::BodyExt;
use reqwest::{Body, Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
use reqwest_retry_rules::{
    BodySource, Methods, ReplaySafe, RetryMiddleware, RetryPolicy, RetryRule, StatusMatch,
    StatusRule,
};

use crate::support;
use crate::support::scripted::errors;

/// What a signer further in looks for in the request's own extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Credentials(&'static str);

/// All that can be seen of a request.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    debug: String,
    timeout: Option<Duration>,
    method: Method,
    uri: Uri,
    version: Version,
    headers: Vec<(HeaderName, HeaderValue, bool)>,
    credentials: Option<Credentials>,
    /// How many values there are, those of reqwest's own included.
    extensions: usize,
    /// What a body says of itself, and what it is in memory.
    body: Option<(Length, Option<Bytes>)>,
}

/// At least so many bytes, and at most.
type Length = (u64, Option<u64>);

fn length(hint: &SizeHint) -> Length {
    (hint.lower(), hint.upper())
}

/// How an attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// 503, after the body was read.
    Refused,
    /// No connection; the body is dropped unread.
    NotConnected,
}

/// The end of the chain: takes each request apart, and never answers.
#[derive(Clone)]
struct Signer {
    end: End,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// What the bodies were that were read.
    read: Arc<Mutex<Vec<Bytes>>>,
}

#[async_trait]
impl Middleware for Signer {
    async fn handle(&self, request: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
        let debug = format!("{request:?}");
        let timeout = request.timeout().copied();
        let had_body = request.body().is_some();
        let url = request.url().clone();
        let request = http::Request::<Body>::try_from(request).unwrap();
        let (parts, body) = request.into_parts();
        let told = (
            length(&body.size_hint()),
            body.as_bytes().map(Bytes::copy_from_slice),
        );
        self.seen.lock().unwrap().push(Seen {
            debug,
            timeout,
            method: parts.method,
            uri: parts.uri,
            version: parts.version,
            headers: in_order(&parts.headers),
            credentials: parts.extensions.get().cloned(),
            extensions: parts.extensions.len(),
            body: had_body.then_some(told),
        });
        match self.end {
            End::Refused => {
                let whole = body.collect().await?.to_bytes();
                self.read.lock().unwrap().push(whole);
                let answer = http::Response::builder().status(503).body(Body::from(""));
                Ok(Response::from(answer.unwrap()))
            }
            End::NotConnected => Err(errors::refused().with_url(url).into()),
        }
    }
}

fn in_order(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue, bool)> {
    headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone(), value.is_sensitive()))
        .collect()
}

/// A request with something in each of its parts.
fn request(body: Body) -> Request {
    let mut request = http::Request::post("http://user:word@origin.test:8080/a/b?c=d%20e#f")
        .version(Version::HTTP_2)
        .header("x-many", "one")
        .header("content-type", "text/plain")
        .header("x-many", "two")
        .header("x-bytes", HeaderValue::from_bytes(b"\xff\xfe").unwrap())
        .extension(Credentials("of this request"))
        .extension(7_u16)
        .body(body)
        .unwrap();
    let mut secret = HeaderValue::from_static("secret");
    secret.set_sensitive(true);
    request.headers_mut().insert("authorization", secret);
    Request::try_from(request).unwrap()
}

fn without_body() -> Request {
    let mut request = request(Body::from(""));
    *request.body_mut() = None;
    request
}

fn stream_of(pieces: [&'static str; 2]) -> Body {
    Body::wrap_stream(stream::iter(pieces.map(Ok::<_, std::io::Error>)))
}

/// Two retries of everything.
fn twice() -> RetryRule {
    RetryRule {
        max_retries: 2,
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(503)],
            methods: Methods::Any,
            backoff: None,
        }],
        unsent_failures: true,
        ..RetryRule::never()
    }
}

/// What each attempt of a request looked like, and the bodies that were read.
async fn attempts(
    mut request: Request,
    timeout: Option<Duration>,
    source: Option<BodySource>,
    end: End,
    rule: RetryRule,
) -> (Vec<Seen>, Vec<Bytes>) {
    if timeout.is_some() {
        *request.timeout_mut() = timeout;
    }
    let signer = Signer {
        end,
        seen: Arc::default(),
        read: Arc::default(),
    };
    let client = ClientBuilder::new(support::client().build().unwrap())
        .with(RetryMiddleware::new(RetryPolicy::from(rule).no_budget()))
        .with(signer.clone())
        .build();
    let mut extensions = Extensions::new();
    extensions.insert(ReplaySafe(true));
    if let Some(source) = source {
        extensions.insert(source);
    }
    let _ = client
        .execute_with_extensions(request, &mut extensions)
        .await;
    let seen = std::mem::take(&mut *signer.seen.lock().unwrap());
    let read = std::mem::take(&mut *signer.read.lock().unwrap());
    (seen, read)
}

const TIMEOUTS: [Option<Duration>; 2] = [None, Some(Duration::from_millis(70_001))];

/// What the first attempt has to look like.
fn check_first(seen: &Seen, timeout: Option<Duration>, name: &str) {
    assert_eq!(seen.credentials, Some(Credentials("of this request")));
    assert_eq!(seen.timeout, timeout, "{name}");
    assert_eq!(seen.method, Method::POST, "{name}");
    assert_eq!(seen.version, Version::HTTP_2, "{name}");
    assert_eq!(seen.headers.len(), 5, "{name}: {:?}", seen.headers);
    assert!(seen.headers.iter().any(|(_, _, sensitive)| *sensitive));
}

/// A way to make a request, the bytes of its body, and what it is called.
type Kind = (&'static str, fn() -> Request, &'static str);

fn in_memory() -> [Kind; 7] {
    [
        ("none", without_body, ""),
        ("empty", || request(Body::from("")), ""),
        ("static text", || request(Body::from("a text")), "a text"),
        (
            "text",
            || request(Body::from(String::from("a text"))),
            "a text",
        ),
        ("bytes", || request(Body::from(vec![b'x'; 3])), "xxx"),
        (
            "shared bytes",
            || request(Body::from(Bytes::from(vec![b'y'; 3]))),
            "yyy",
        ),
        (
            "a part of shared bytes",
            || request(Body::from(Bytes::from(vec![b'z'; 9]).slice(2..5))),
            "zzz",
        ),
    ]
}

#[tokio::test]
async fn with_a_body_in_memory() {
    for (name, make, bytes) in in_memory() {
        for timeout in TIMEOUTS {
            for end in [End::Refused, End::NotConnected] {
                let (seen, read) = attempts(make(), timeout, None, end, twice()).await;
                assert_eq!(seen.len(), 3, "{name}");
                check_first(&seen[0], timeout, name);
                assert_eq!(seen, vec![seen[0].clone(); 3], "{name} {end:?}");
                if end == End::Refused {
                    assert_eq!(read, [bytes; 3], "{name}");
                }
            }
        }
    }
}

/// The twin: what is not sent again is as it was, too.
#[tokio::test]
async fn of_a_request_that_is_sent_once_nothing_is_lost() {
    for (name, make, bytes) in in_memory() {
        for timeout in TIMEOUTS {
            let sent = attempts(make(), timeout, None, End::Refused, RetryRule::never());
            let (seen, read) = sent.await;
            assert_eq!(seen.len(), 1, "{name}");
            check_first(&seen[0], timeout, name);
            assert_eq!(read, [bytes], "{name}");
        }
    }
}

/// A stream that nothing was read of is taken back.
#[tokio::test]
async fn with_a_stream_that_was_not_read() {
    for timeout in TIMEOUTS {
        let stream = || request(stream_of(["one ", "two"]));
        let (seen, _) = attempts(stream(), timeout, None, End::NotConnected, twice()).await;
        assert_eq!(seen.len(), 3);
        check_first(&seen[0], timeout, "a stream");
        assert_eq!(seen, vec![seen[0].clone(); 3]);
        // The twin: of one that was read there is no second attempt.
        let (seen, read) = attempts(stream(), timeout, None, End::Refused, twice()).await;
        assert_eq!(seen.len(), 1);
        check_first(&seen[0], timeout, "a stream");
        assert_eq!(read, ["one two"]);
    }
}

#[tokio::test]
async fn with_a_source_of_bodies() {
    let streams = || BodySource::new(|| Ok::<_, std::io::Error>(stream_of(["one ", "two"])));
    let texts = || BodySource::new(|| Ok::<_, std::io::Error>(Body::from("one two")));
    for (name, source) in [("streams", streams()), ("texts", texts())] {
        for timeout in TIMEOUTS {
            for end in [End::Refused, End::NotConnected] {
                let source = Some(source.clone());
                let (seen, read) = attempts(without_body(), timeout, source, end, twice()).await;
                assert_eq!(seen.len(), 3, "{name}");
                check_first(&seen[0], timeout, name);
                assert_eq!(seen, vec![seen[0].clone(); 3], "{name} {end:?}");
                if end == End::Refused {
                    assert_eq!(read, ["one two"; 3], "{name}");
                }
            }
        }
    }
}

/// Its first body is the caller's own, all others are of the source; the rest is the same.
#[tokio::test]
async fn with_a_stream_whose_copies_a_source_makes() {
    let source = BodySource::new(|| Ok::<_, std::io::Error>(stream_of(["one ", "two"])));
    let stream = request(stream_of(["one ", "two"]));
    let (seen, read) = attempts(stream, None, Some(source), End::Refused, twice()).await;
    assert_eq!(seen.len(), 3);
    check_first(&seen[0], None, "a stream");
    assert_eq!(seen, vec![seen[0].clone(); 3]);
    assert_eq!(read, ["one two"; 3]);
}
