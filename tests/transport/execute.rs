//! Sends through a plain client, as far as they differ from those of a chain.

use std::time::Duration;

use http::{Extensions, StatusCode};
use reqwest::{Client, Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
use reqwest_retry_rules::AttemptResult::{Failure, Status};
use reqwest_retry_rules::TransportError::{AfterRedirect, Connect};
use reqwest_retry_rules::{
    BudgetTerms, ResponseExt, RetryBudget, RetryLog, RetryMiddleware, RetryPolicy, RetryReport,
    RetryRule, StopReason,
};

use crate::support;
use crate::support::h1::H1;
use crate::support::refused::Refused;
use crate::support::script::Act;
use crate::support::sends::{Went, at_once, send};

fn client() -> Client {
    support::client().build().unwrap()
}

fn get(url: &str) -> Request {
    client().get(url).build().unwrap()
}

#[tokio::test]
async fn a_rule_without_retries_leaves_no_report() {
    let server = H1::start(Act::status(503)).await;
    let mut map = Extensions::new();
    let (policy, client) = (RetryPolicy::from(RetryRule::never()), client());
    let sent = policy.execute_with(&client, get(&server.url("/")), &mut map);
    assert_eq!(sent.await.unwrap().attempts(), 1);
    assert!(map.is_empty());
    assert_eq!(server.count(), 1);
}

/// The twin, and `execute` alone: it can be spawned with what it needs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_send_can_be_a_task_of_its_own() {
    let server = H1::start(Act::status(503)).await;
    let (policy, client) = (RetryPolicy::from(at_once(2)), client());
    let request = get(&server.url("/"));
    let task = tokio::spawn(async move { policy.execute(&client, request).await });
    let response = task.await.unwrap().unwrap();
    assert_eq!(response.attempts(), 3);
    assert!(response.extensions().get::<RetryReport>().is_some());
}

#[tokio::test]
async fn sends_of_one_policy_share_its_budget() {
    let server = H1::start(Act::status(503)).await;
    let terms = BudgetTerms {
        ratio: 0,
        reserve_per_second: 1,
        window: Duration::from_secs(3),
    };
    let policy = RetryPolicy::from(at_once(9)).budget(RetryBudget::new(terms).unwrap());
    let mut stops = Vec::new();
    for _ in 0..2 {
        let response = policy.execute(&client(), get(&server.url("/"))).await;
        stops.push(
            response
                .unwrap()
                .extensions()
                .get::<RetryReport>()
                .unwrap()
                .stop_reason(),
        );
    }
    let throttled = |stop: &Option<StopReason>| matches!(stop, Some(StopReason::Throttled));
    assert!(stops.iter().all(throttled), "{stops:?}");
    assert_eq!(server.count(), 5, "three retries for both");
}

/// A map that is used again is that of a new send.
#[tokio::test]
async fn a_map_that_is_used_again_holds_the_report_of_the_last_send() {
    let server = H1::start(vec![Act::status(503), Act::status(503), Act::ok("")]).await;
    let (policy, client) = (RetryPolicy::from(at_once(1)), client());
    let mut map = Extensions::new();
    for (attempts, stop) in [(2, Some(StopReason::Exhausted)), (1, None)] {
        let sent = policy.execute_with(&client, get(&server.url("/")), &mut map);
        assert_eq!(sent.await.unwrap().attempts(), attempts);
        let report = map.get::<RetryReport>();
        assert_eq!(report.and_then(RetryReport::stop_reason), stop);
    }
}

/// Sends in place of the network through a plain client, with the request's own extensions or with
/// others.
struct Last {
    policy: RetryPolicy,
    same_map: bool,
}

#[async_trait::async_trait]
impl Middleware for Last {
    async fn handle(
        &self,
        request: Request,
        map: &mut Extensions,
        _: Next<'_>,
    ) -> Result<Response> {
        if self.same_map {
            self.policy.execute_with(&client(), request, map).await
        } else {
            self.policy.execute(&client(), request).await
        }
    }
}

#[tokio::test]
async fn inside_a_chain_it_is_part_of_that_if_it_is_given_the_same_extensions() {
    for (same_map, requests) in [(true, 3), (false, 6)] {
        let server = H1::start(Act::status(503)).await;
        let last = Last {
            policy: RetryPolicy::from(at_once(1)),
            same_map,
        };
        let chain = ClientBuilder::new(client())
            .with(RetryMiddleware::new(at_once(2)))
            .with(last)
            .build();
        let (_, went) = send(chain.get(server.url("/"))).await;
        let unavailable = Status(StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(went, Went::stopped([unavailable; 3], StopReason::Exhausted));
        assert_eq!(server.count(), requests);
    }
}

/// Sends a POST of its own before each request, and does not mind if that fails.
struct Posts {
    method: reqwest::Method,
    url: String,
}

#[async_trait::async_trait]
impl Middleware for Posts {
    async fn handle(
        &self,
        request: Request,
        map: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let own = client().request(self.method.clone(), &self.url).build()?;
        let _ = RetryPolicy::from(at_once(1)).execute(&client(), own).await;
        next.run(request, map).await
    }
}

#[tokio::test]
async fn what_it_lost_inside_an_attempt_counts_for_the_send_around_it() {
    for (method, expected) in [
        (
            reqwest::Method::POST,
            Went::stopped([Failure(AfterRedirect)], StopReason::MethodNotAllowed),
        ),
        (
            reqwest::Method::GET,
            Went::stopped([Failure(Connect); 3], StopReason::Exhausted),
        ),
    ] {
        let (server, nobody) = (H1::start(Act::CloseAfterReading).await, Refused::new());
        let posts = Posts {
            method,
            url: server.url("/session"),
        };
        let chain = ClientBuilder::new(client())
            .with(RetryMiddleware::new(at_once(2)))
            .with(posts)
            .build();
        let (_, went) = send(chain.post(nobody.url("/"))).await;
        assert_eq!(went, expected);
    }
}

#[tokio::test]
async fn fifty_at_a_time_keep_their_reports_apart() {
    let server = H1::start(Act::ask(|seen| {
        let number: u32 = seen.path.trim_start_matches("/").parse().unwrap();
        if number % 2 == 0 {
            Act::ok("")
        } else {
            Act::status(503)
        }
    }))
    .await;
    let policy = RetryPolicy::from(at_once(2)).no_budget();
    let sends = (0..50).map(|number| {
        let (policy, request) = (policy.clone(), get(&server.url(&format!("/{number}"))));
        async move {
            let log = RetryLog::new();
            let mut map = Extensions::new();
            map.insert(log.clone());
            let response = policy
                .execute_with(&client(), request, &mut map)
                .await
                .unwrap();
            (
                number,
                response.attempts(),
                log.report().unwrap().attempts(),
            )
        }
    });
    for (number, attempts, reported) in futures_util::future::join_all(sends).await {
        let expected = if number % 2 == 0 { 1 } else { 3 };
        assert_eq!((attempts, reported), (expected, expected), "{number}");
    }
    assert_eq!(server.count(), 25 + 75);
}
