//! Bodies that break off.

use bytes::Bytes;
use h2::Reason;
use reqwest::{ClientBuilder, Response, Version};
use reqwest_retry_rules::AttemptResult::Failure;
use reqwest_retry_rules::TransportError::{Body as BrokenBody, Timeout};
use reqwest_retry_rules::{
    ErrorExt, ReplaySafe, RetryError, RetryPolicy, RetryRule, StopReason, TotalTimeout,
};

use super::{OK, completing, ms};
use crate::support;
use crate::support::h1::H1;
use crate::support::h2::H2;
use crate::support::script::{Answer, Body, End};
use crate::support::sends::{Went, at_once, on_both_runtimes, retrying, send};

const WHOLE: &str = "one, two, three";

fn ok() -> Answer {
    Answer::new(200).header("x-answer", "yes")
}

/// Bodies that break off after a part. A reset may overtake the part.
fn broken() -> Vec<Answer> {
    let mut broken = vec![ok().send(Body::BadChunk)];
    for end in [End::Close, End::Reset] {
        broken.push(ok().send(Body::Short(15, "one, ".into())).end(end));
        broken.push(ok().send(Body::Short(15, "".into())).end(end));
        broken.push(
            ok().send(Body::ShortChunks(vec!["one, ".into(), "two, ".into()]))
                .end(end),
        );
    }
    broken
}

on_both_runtimes! {
    async fn a_body_that_breaks_off_is_retried_and_comes_back_whole() {
        for broken in broken() {
            for _ in 0..5 {
                let server = H1::start(vec![broken.clone(), broken.clone(), ok().body(WHOLE)]);
                let server = server.await;
                let client = retrying(support::client(), completing(2));
                let (outcome, went) = send(client.get(server.url("/a?b"))).await;
                let expected = Went::answered([Failure(BrokenBody), Failure(BrokenBody), OK]);
                assert_eq!(went, expected, "{broken:?}");
                let answer = outcome.unwrap();
                assert_eq!(answer.url().as_str(), server.url("/a?b"));
                assert_eq!(answer.remote_addr(), Some(server.addr));
                assert_eq!(answer.version(), Version::HTTP_11);
                assert_eq!(answer.headers()["x-answer"], "yes");
                assert_eq!(answer.text().await.unwrap(), WHOLE);
                assert_eq!(server.count(), 3);
            }
        }
    }
}

/// What reqwest says of an error that it met in a body.
fn flags(error: &reqwest::Error) -> [bool; 7] {
    [
        error.is_body(),
        error.is_decode(),
        error.is_timeout(),
        error.is_request(),
        error.is_connect(),
        error.is_status(),
        error.is_builder(),
    ]
}

/// The part that comes and then the error.
async fn part(mut answer: Response) -> (Vec<u8>, reqwest::Error) {
    let mut part = Vec::new();
    loop {
        match answer.chunk().await {
            Ok(Some(piece)) => part.extend_from_slice(&piece),
            Ok(None) => panic!("the body ended after {part:?}"),
            Err(error) => {
                // It comes once.
                assert_eq!(answer.chunk().await.unwrap(), None);
                return (part, error);
            }
        }
    }
}

#[tokio::test]
async fn where_it_is_not_retried_the_part_comes_and_then_the_error() {
    for broken in broken() {
        let server = H1::start(broken.clone()).await;
        let client = retrying(support::client(), completing(2));
        let (outcome, went) = send(client.post(server.url("/a?b"))).await;
        assert_eq!(
            went,
            Went::stopped([Failure(BrokenBody)], StopReason::MethodNotAllowed),
            "{broken:?}"
        );
        assert_eq!(server.count(), 1);
        let answer = outcome.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.url().as_str(), server.url("/a?b"));
        assert_eq!(answer.headers()["x-answer"], "yes");
        let (read, error) = part(answer).await;

        // The twin: a client that retries nothing.
        let plain = support::client().build().unwrap();
        let plain = plain.post(server.url("/")).send().await.unwrap();
        let mut alone = plain;
        let mut expected = Vec::new();
        let twin = loop {
            match alone.chunk().await {
                Ok(piece) => expected.extend_from_slice(&piece.expect("it breaks off")),
                Err(error) => break error,
            }
        };
        if broken.end != End::Reset {
            assert_eq!(read, expected, "{broken:?}");
        }
        assert_eq!(flags(&error), flags(&twin), "{error:?} {twin:?}");
    }
}

#[tokio::test]
async fn where_the_retries_are_used_up_the_last_part_comes_and_then_the_error() {
    let broken = ok().send(Body::Short(15, "one, ".into()));
    let server = H1::start(broken).await;
    let client = retrying(support::client(), completing(2));
    let (outcome, went) = send(client.get(server.url("/"))).await;
    assert_eq!(
        went,
        Went::stopped([Failure(BrokenBody); 3], StopReason::Exhausted)
    );
    let (read, _) = part(outcome.unwrap()).await;
    assert_eq!(read, b"one, ");
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn a_post_that_is_said_to_be_safe_is_retried() {
    let broken = ok().send(Body::Short(15, "one, ".into()));
    let server = H1::start(vec![broken, ok().body(WHOLE)]).await;
    let client = retrying(support::client(), completing(2));
    let request = client
        .post(server.url("/"))
        .with_extension(ReplaySafe(true));
    let (outcome, went) = send(request).await;
    assert_eq!(went, Went::answered([Failure(BrokenBody), OK]));
    assert_eq!(outcome.unwrap().text().await.unwrap(), WHOLE);
}

#[tokio::test]
async fn without_it_a_body_that_breaks_off_is_the_callers() {
    let broken = ok().send(Body::Short(15, "one, ".into()));
    let server = H1::start(broken).await;
    let client = retrying(support::client(), at_once(2));
    let (outcome, went) = send(client.get(server.url("/"))).await;
    assert_eq!(went, Went::answered([OK]));
    let (read, _) = part(outcome.unwrap()).await;
    assert_eq!(read, b"one, ");
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_long_body_that_breaks_off_past_the_limit_is_the_callers() {
    let pieces = vec![Bytes::from(vec![b'x'; 600]); 3];
    let server = H1::start(ok().send(Body::ShortChunks(pieces))).await;
    let client = retrying(support::client(), completing(2));
    let (outcome, went) = send(client.get(server.url("/"))).await;
    assert_eq!(went, Went::answered([OK]));
    let (read, _) = part(outcome.unwrap()).await;
    assert_eq!(read, [b'x'; 1800]);
    assert_eq!(server.count(), 1);
}

// ---- in time ----

/// Ways to bound the reading of a body.
fn bounded() -> [(ClientBuilder, RetryPolicy); 3] {
    [
        (support::client().read_timeout(ms(400)), completing(2)),
        (support::client().timeout(ms(400)), completing(2)),
        (support::client(), completing(2).attempt_timeout(ms(400))),
    ]
}

#[tokio::test]
async fn a_body_that_stalls_is_a_timeout() {
    for (client, policy) in bounded() {
        let stalling = ok().send(Body::Short(15, "one, ".into())).end(End::Stall);
        let server = H1::start(vec![stalling.clone(), ok().body(WHOLE)]).await;
        let client = retrying(client, policy);
        let (outcome, went) = send(client.get(server.url("/"))).await;
        assert_eq!(went, Went::answered([Failure(Timeout), OK]));
        assert_eq!(outcome.unwrap().text().await.unwrap(), WHOLE);

        // The twin.
        server.script.replace(stalling);
        let (outcome, went) = send(client.post(server.url("/"))).await;
        assert_eq!(
            went,
            Went::stopped([Failure(Timeout)], StopReason::MethodNotAllowed)
        );
        let (read, error) = part(outcome.unwrap()).await;
        assert_eq!(read, b"one, ");
        assert!(error.is_timeout());
    }
}

#[tokio::test]
async fn a_body_that_stalls_is_not_retried_where_timeouts_are_not() {
    let stalling = ok().send(Body::Short(15, "one, ".into())).end(End::Stall);
    let server = H1::start(stalling).await;
    let rule = RetryRule {
        timeouts: false,
        ..at_once(2)
    };
    let policy = RetryPolicy::from(rule).complete_body(1000);
    let client = retrying(support::client().read_timeout(ms(50)), policy);
    let (_, went) = send(client.get(server.url("/"))).await;
    assert_eq!(
        went,
        Went::stopped([Failure(Timeout)], StopReason::NotRetryable)
    );
}

#[tokio::test]
async fn a_total_timeout_bounds_the_reading_of_the_body() {
    let stalling = ok().send(Body::Short(15, "one, ".into())).end(End::Stall);
    let server = H1::start(stalling).await;
    let client = retrying(support::client(), completing(2));
    let request = client
        .get(server.url("/"))
        .with_extension(TotalTimeout(ms(400)));
    let (outcome, went) = send(request).await;
    let error = outcome.unwrap_err();
    assert!(error.timed_out());
    let Some(RetryError::TotalTimeout { attempts, .. }) = error.retry_error() else {
        panic!("{error:?}");
    };
    assert_eq!(*attempts, 1);
    assert_eq!(
        went,
        Went::stopped([Failure(Timeout)], StopReason::TotalTimeout)
    );
}

// ---- HTTP/2 ----

#[tokio::test]
async fn a_stream_that_is_reset_in_the_body_is_retried() {
    for end in [End::Keep, End::Close, End::Reset] {
        for body in [
            Body::Short(15, "one, ".into()),
            Body::ShortChunks(vec!["one, ".into()]),
        ] {
            let broken = ok().send(body).end(end);
            let server = H2::start(vec![broken.clone(), ok().body(WHOLE)]).await;
            let client = support::client().http2_prior_knowledge();
            let client = retrying(client, completing(2));
            let (outcome, went) = send(client.get(server.url("/a?b"))).await;
            assert_eq!(
                went,
                Went::answered([Failure(BrokenBody), OK]),
                "{broken:?}"
            );
            let answer = outcome.unwrap();
            assert_eq!(answer.version(), Version::HTTP_2);
            assert_eq!(answer.url().as_str(), server.url("/a?b"));
            assert_eq!(answer.text().await.unwrap(), WHOLE);

            // The twin.
            server.script.replace(broken);
            let (outcome, went) = send(client.post(server.url("/"))).await;
            assert_eq!(
                went,
                Went::stopped([Failure(BrokenBody)], StopReason::MethodNotAllowed)
            );
            part(outcome.unwrap()).await;
        }
    }
}

/// A server that answers and then says that it has not looked at the request.
#[tokio::test]
async fn a_stream_that_is_refused_in_its_body_is_not_unsent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let streams = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(socket).await.unwrap();
        let mut streams = 0;
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            streams += 1;
            let mut body = respond
                .send_response(http::Response::new(()), false)
                .unwrap();
            tokio::spawn(async move {
                body.send_data("one, ".into(), false).unwrap();
                tokio::time::sleep(ms(20)).await;
                body.send_reset(Reason::REFUSED_STREAM);
            });
        }
        streams
    });
    let client = support::client().http2_prior_knowledge();
    let client = retrying(client, completing(2));
    let (_, went) = send(client.post(url)).await;
    assert_eq!(
        went,
        Went::stopped([Failure(BrokenBody)], StopReason::MethodNotAllowed)
    );
    drop(client);
    assert_eq!(streams.await.unwrap(), 1);
}
