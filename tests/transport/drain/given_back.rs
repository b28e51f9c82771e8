//! An answer that was being drained when the send stopped after all comes back whole.

use std::io;

use http_body_util::BodyExt;
use reqwest::Response;
use reqwest_retry_rules::{BodySource, Limits, RetryPolicy, RetryRule, StopReason};

use super::{UNAVAILABLE, after, ms};
use crate::support;
use crate::support::h1::H1;
use crate::support::h2::{Act as Act2, H2};
use crate::support::script::{Answer, Body, End};
use crate::support::sends::{OnRetry, Went, retrying, send};

/// Makes one body and fails from then on.
pub fn failing_source() -> BodySource {
    let asked = std::sync::atomic::AtomicBool::new(false);
    BodySource::new(move || {
        if asked.swap(true, std::sync::atomic::Ordering::SeqCst) {
            return Err(io::Error::other("no more"));
        }
        Ok("body")
    })
}

/// A rule whose hard limit has passed by the time that the send wakes up: the thread is held up
/// before the wait.
fn met_on_waking() -> RetryPolicy {
    let rule = RetryRule {
        limits: Limits {
            hard_elapsed: Some(ms(40)),
            ..Limits::default()
        },
        ..after(ms(10))
    };
    let hold_up = OnRetry::once(|| std::thread::sleep(ms(60)));
    RetryPolicy::from(rule).observer(hold_up)
}

/// How an answer may be framed and paced, and what of its trailers is left.
fn bodies() -> Vec<Body> {
    let trailers = vec![("x-sum".to_owned(), "7".to_owned())];
    vec![
        Body::Whole("one, two, three".into()),
        Body::Later(ms(5), "one, two, three".into()),
        Body::Later(ms(100), "one, two, three".into()),
        Body::UntilClose("one, two, three".into()),
        Body::Slow(vec!["one, ".into(), "two, ".into(), "three".into()], ms(8)),
        Body::Chunked(
            vec!["one, ".into(), "two, ".into(), "three".into()],
            trailers,
        ),
    ]
}

/// The whole body, and its trailer.
async fn read(answer: Response) -> (String, Option<String>) {
    let body = reqwest::Body::from(answer).collect().await.unwrap();
    let trailer = body.trailers().and_then(|trailers| trailers.get("x-sum"));
    let trailer = trailer.map(|value| value.to_str().unwrap().to_owned());
    (
        String::from_utf8(body.to_bytes().to_vec()).unwrap(),
        trailer,
    )
}

fn trailer(body: &Body) -> Option<String> {
    matches!(body, Body::Chunked(..)).then(|| "7".to_owned())
}

#[tokio::test]
async fn where_a_limit_is_met_on_waking_the_answer_comes_back_whole() {
    for body in bodies() {
        let server = H1::start(Answer::new(503).send(body.clone())).await;
        let client = retrying(support::client(), met_on_waking());
        let (outcome, went) = send(client.get(server.url("/a?b"))).await;
        assert_eq!(
            went,
            Went::stopped([UNAVAILABLE], StopReason::HardLimit(ms(10)))
        );
        let answer = outcome.unwrap();
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.url().as_str(), server.url("/a?b"));
        assert_eq!(answer.remote_addr(), Some(server.addr));
        let expected = ("one, two, three".to_owned(), trailer(&body));
        assert_eq!(read(answer).await, expected, "{body:?}");
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn where_a_body_source_fails_the_answer_comes_back_whole() {
    for body in bodies() {
        let server = H1::start(Answer::new(503).send(body.clone())).await;
        let client = retrying(support::client(), after(ms(0)));
        let request = client.put(server.url("/")).with_extension(failing_source());
        let (outcome, went) = send(request).await;
        assert_eq!(
            went,
            Went::stopped([UNAVAILABLE], StopReason::NotReplayable)
        );
        let expected = ("one, two, three".to_owned(), trailer(&body));
        assert_eq!(read(outcome.unwrap()).await, expected, "{body:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_longer_than_the_limit_comes_back_whole() {
    let pieces: Vec<bytes::Bytes> = (0..40_u8).map(|n| vec![n; 5000].into()).collect();
    let whole = pieces.concat();
    for body in [
        Body::Whole(whole.clone().into()),
        Body::Later(ms(5), whole.clone().into()),
        Body::Chunked(pieces.clone(), Vec::new()),
        Body::Slow(pieces.clone(), ms(1)),
    ] {
        for limit in [1, 4999, 5000, 5001, 64 * 1024] {
            let server = H1::start(Answer::new(503).send(body.clone())).await;
            let policy = RetryPolicy::from(after(ms(0))).drain_limit(limit);
            let client = retrying(support::client(), policy);
            let request = client.put(server.url("/")).with_extension(failing_source());
            let (outcome, _) = send(request).await;
            assert!(outcome.unwrap().bytes().await.unwrap() == whole, "{limit}");
        }
    }
}

#[tokio::test]
async fn over_http2_the_answer_comes_back_whole() {
    for body in bodies() {
        let server = H2::start(Act2::from(Answer::new(503).send(body.clone()))).await;
        let client = support::client().http2_prior_knowledge();
        let client = retrying(client, after(ms(0)));
        let request = client.put(server.url("/")).with_extension(failing_source());
        let (outcome, _) = send(request).await;
        let expected = ("one, two, three".to_owned(), trailer(&body));
        assert_eq!(read(outcome.unwrap()).await, expected, "{body:?}");
    }
}

#[tokio::test]
async fn an_answer_that_broke_off_comes_back_with_its_part_and_then_the_error() {
    for end in [End::Close, End::Reset] {
        for body in [
            Body::Short(1000, "part".into()),
            Body::ShortChunks(vec!["part".into()]),
        ] {
            let server = H1::start(Answer::new(503).send(body.clone()).end(end)).await;
            let client = retrying(support::client(), after(ms(15)));
            let request = client.put(server.url("/")).with_extension(failing_source());
            let (outcome, _) = send(request).await;
            let mut answer = outcome.unwrap();
            let part = answer.chunk().await;
            // A reset may overtake what was sent before it.
            if end == End::Close {
                assert_eq!(part.unwrap().unwrap(), "part", "{body:?}");
                let error = answer.chunk().await.unwrap_err();
                assert!(error.is_decode() || error.is_body(), "{error:?}");
                assert_eq!(answer.chunk().await.unwrap(), None);
            } else if part.is_ok() {
                answer.chunk().await.unwrap_err();
            }
        }
    }
}

/// The answer to a PUT that comes back after 800 ms, with most of its body unread.
async fn comes_back_late(limits: impl FnOnce(RetryPolicy) -> RetryPolicy) -> (H1, Response) {
    let server = H1::start(Answer::new(503).body(vec![b'x'; 1_000_000])).await;
    let policy = limits(RetryPolicy::from(after(ms(800))));
    let client = retrying(support::client(), policy);
    let request = client.put(server.url("/")).with_extension(failing_source());
    let (outcome, went) = send(request).await;
    let expected = Went::stopped([UNAVAILABLE], StopReason::NotReplayable);
    assert_eq!(went, expected);
    (server, outcome.unwrap())
}

#[tokio::test]
async fn the_timeout_of_an_attempt_goes_on_over_the_answer_that_comes_back() {
    let (_server, answer) = comes_back_late(|policy| policy.attempt_timeout(ms(700))).await;
    let error = answer.bytes().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
}

/// The twin.
#[tokio::test]
async fn the_timeout_of_a_head_does_not() {
    let (_server, answer) = comes_back_late(|policy| policy.head_timeout(ms(700))).await;
    assert_eq!(answer.bytes().await.unwrap(), vec![b'x'; 1_000_000]);
}
