//! What the files of the example `strategies` leave to code.

use http::Method;
use reqwest::Body;
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::{
    AttemptOutcome, Judgement, Methods, ReplaySafe, RetryConfig, RetryPolicy, StopReason,
};

use crate::support::scripted::{
    Act, Transport, URL, errors, fail, get, get_with, ok, send, status, time_out,
};

fn settings(text: &str) -> RetryPolicy {
    RetryPolicy::from(toml::from_str::<RetryConfig>(text).unwrap())
}

/// `RetryStrategy::Timeout`: a timeout is tried once more, and no other failure is.
fn turborepo_timeouts() -> RetryPolicy {
    let text = include_str!("../../examples/strategies/turborepo.toml");
    let mut rule = settings(text).rule().clone();
    rule.sent_failures = Methods::Any;
    RetryPolicy::from(rule)
        .no_budget()
        .veto(|outcome| match outcome {
            AttemptOutcome::Failure(failure) => !failure.is_timeout(),
            AttemptOutcome::Response { .. } => false,
        })
}

#[tokio::test(start_paused = true)]
async fn turborepo_tries_a_timeout_once_more_and_no_other_failure() {
    let post = |client: ClientWithMiddleware| {
        let timeout = std::time::Duration::from_millis(100);
        client.post(URL).timeout(timeout)
    };
    let transport = Transport::new([time_out(), ok()]);
    let (outcome, _) = send(&transport, turborepo_timeouts(), post).await;
    assert_eq!(outcome.unwrap().status(), 200);
    assert_eq!(transport.times(), [0, 2100]);

    for error in [errors::refused(), errors::closed()] {
        let transport = Transport::new([fail(error)]);
        let (outcome, report) = send(&transport, turborepo_timeouts(), post).await;
        assert!(outcome.is_err());
        assert_eq!(report.stop_reason(), Some(StopReason::NotRetryable));
    }
    let transport = Transport::new([status(500), status(500)]);
    let (_, report) = send(&transport, turborepo_timeouts(), post).await;
    assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
}

/// An S3 client, with what its settings leave to code.
fn object_store() -> RetryPolicy {
    settings(include_str!("../../examples/strategies/object_store.toml"))
        .jitter_source(|| 0.5)
        .retry_if(Methods::Idempotent, |head| {
            head.status() == 409 && head.method() == Method::PUT
        })
        .judge_body(Methods::Any, 64 * 1024, |head, body| {
            let said = |words: &[u8]| body.windows(words.len()).any(|part| part == words);
            if head.status().is_success() && (said(b"InternalError") || said(b"SlowDown")) {
                Judgement::Retry
            } else {
                Judgement::ByRule
            }
        })
}

#[tokio::test(start_paused = true)]
async fn object_store_looks_into_the_body_of_a_200() {
    let slow = || status(200).body("<Error><Code>SlowDown</Code></Error>");
    let transport = Transport::new([slow(), slow(), ok()]);
    let (_, report) = get(&transport, object_store()).await;
    assert_eq!((report.attempts(), report.stop_reason()), (3, None));
    assert_eq!(transport.times(), [0, 50, 150]);
    // The twin.
    let transport = Transport::new([status(200).body("<CopyObjectResult/>")]);
    let (outcome, _) = get(&transport, object_store()).await;
    assert_eq!(
        outcome.unwrap().text().await.unwrap(),
        "<CopyObjectResult/>"
    );
}

#[tokio::test(start_paused = true)]
async fn object_store_asks_again_after_a_conflict_of_a_put() {
    let conflicts = || [status(409), ok()];
    let put = |client: ClientWithMiddleware| client.put(URL).body("part");
    let transport = Transport::new(conflicts());
    let (outcome, _) = send(&transport, object_store(), put).await;
    assert_eq!(outcome.unwrap().status(), 200);
    let transport = Transport::new(conflicts());
    let (outcome, _) = get(&transport, object_store()).await;
    assert_eq!(outcome.unwrap().status(), 409);
}

#[tokio::test(start_paused = true)]
async fn object_store_says_which_requests_are_idempotent() {
    let acts = || -> [Act; 2] { [fail(errors::closed()), ok()] };
    for (method, safe, attempts) in [
        (Method::PUT, None, 2),
        (Method::PUT, Some(false), 1),
        (Method::POST, None, 1),
        (Method::POST, Some(true), 2),
    ] {
        let transport = Transport::new(acts());
        let make = |client: ClientWithMiddleware| {
            let request = client.request(method, URL).body(Body::from("part"));
            match safe {
                Some(safe) => request.with_extension(ReplaySafe(safe)),
                None => request,
            }
        };
        let (_, report) = send(&transport, object_store(), make).await;
        assert_eq!(report.attempts(), attempts);
    }
    let transport = Transport::new(acts());
    let (_, report) = get_with(&transport, object_store(), |map| {
        map.insert(ReplaySafe(false));
    })
    .await;
    assert_eq!(report.attempts(), 1);
}
