//! A layer further in that refuses without awaiting anything leaves room for all else on its thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Body, Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, Result};
use reqwest_retry_rules::{
    Methods, RetryMiddleware, RetryPolicy, RetryRule, StatusMatch, StatusRule, TransportError,
};

use crate::support;

/// What the layer does with a request.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Answer,
    Failure,
}

/// Refuses every request as soon as it is asked.
struct Refusing(Refusal, Arc<AtomicU32>);

#[async_trait]
impl Middleware for Refusing {
    async fn handle(&self, _: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
        self.1.fetch_add(1, Ordering::Relaxed);
        match self.0 {
            Refusal::Answer => {
                let answer = http::Response::builder().status(503).body(Body::from(""));
                Ok(Response::from(answer.unwrap()))
            }
            Refusal::Failure => Err(Error::middleware(std::io::Error::other("no"))),
        }
    }
}

/// Retries it so many times without a wait or a budget.
fn client(refusal: Refusal, max_retries: u32) -> (ClientWithMiddleware, Arc<AtomicU32>) {
    let rule = RetryRule {
        max_retries,
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(503)],
            methods: Methods::Any,
            backoff: None,
        }],
        sent_failures: Methods::Any,
        ..RetryRule::never()
    };
    let policy = RetryPolicy::from(rule)
        .no_budget()
        .classify_with(|_| Some(TransportError::Closed));
    let attempts = Arc::new(AtomicU32::new(0));
    let client = ClientBuilder::new(support::client().build().unwrap())
        .with(RetryMiddleware::new(policy))
        .with(Refusing(refusal, Arc::clone(&attempts)))
        .build();
    (client, attempts)
}

/// More than can be made in the time that the tests below give; few enough for a test that fails to
/// end.
const VERY_MANY: u32 = 500_000;

#[tokio::test]
async fn a_timeout_further_out_ends_the_send() {
    for refusal in [Refusal::Answer, Refusal::Failure] {
        let (client, attempts) = client(refusal, VERY_MANY);
        let sent = client.get("http://origin.test/").send();
        let ended = tokio::time::timeout(Duration::from_millis(20), sent).await;
        assert!(ended.is_err(), "{refusal:?}: {attempts:?} attempts");
        assert!(attempts.load(Ordering::Relaxed) > 1, "{refusal:?}");
    }
}

#[tokio::test]
async fn other_tasks_have_their_turns() {
    for refusal in [Refusal::Answer, Refusal::Failure] {
        let (client, attempts) = client(refusal, 1000);
        let turns = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&turns);
        let other = tokio::spawn(async move {
            loop {
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let _ = client.get("http://origin.test/").send().await;
        other.abort();
        assert_eq!(attempts.load(Ordering::Relaxed), 1001, "{refusal:?}");
        let turns = turns.load(Ordering::Relaxed);
        assert!(turns >= 1000, "{refusal:?}: {turns} turns");
    }
}

/// The twin: what is not retried is given back at once.
#[tokio::test]
async fn a_send_that_is_not_retried_comes_before_the_timeout_and_gives_way_to_nobody() {
    for refusal in [Refusal::Answer, Refusal::Failure] {
        let (client, attempts) = client(refusal, 0);
        let turns = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&turns);
        let other = tokio::spawn(async move { counter.fetch_add(1, Ordering::Relaxed) });
        let sent = client.get("http://origin.test/").send();
        let ended = tokio::time::timeout(Duration::from_secs(30), sent).await;
        match (refusal, ended.expect("no timeout")) {
            (Refusal::Answer, Ok(answer)) => assert_eq!(answer.status(), 503),
            (Refusal::Failure, Err(Error::Middleware(error))) => {
                assert_eq!(error.to_string(), "no");
            }
            (_, other) => panic!("{refusal:?}: {other:?}"),
        }
        assert_eq!(attempts.load(Ordering::Relaxed), 1);
        assert_eq!(turns.load(Ordering::Relaxed), 0);
        other.await.unwrap();
    }
}
