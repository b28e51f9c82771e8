//! What a request's extensions change, and what they leave alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::Method;
use reqwest_middleware::{ClientBuilder, RequestBuilder, RequestInitialiser};
use reqwest_retry_rules::{
    BudgetTerms, Methods, ReplaySafe, ResponseExt, RetryBudget, RetryEvent, RetryMiddleware,
    RetryObserver, RetryPolicy, RetryRule, StatusMatch, StatusRule, StopReason, with_rule,
};

use crate::support::chain::{at_once, retrying};
use crate::support::client;
use crate::support::h1::H1;
use crate::support::script::{Act, Answer};

async fn flaky() -> H1 {
    H1::start([Act::status(503), Act::ok("fine")]).await
}

/// Sends, and says how many requests that made and what came back.
async fn sent(request: RequestBuilder, server: &H1) -> (usize, u16) {
    let response = request.send().await.unwrap();
    (server.count(), response.status().as_u16())
}

#[derive(Default)]
struct Counted(AtomicU32);

impl Counted {
    fn times(&self) -> u32 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl RetryObserver for Counted {
    fn on_retry(&self, _: &RetryEvent<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_rule_turns_retries_off_for_one_request() {
    let client = retrying(at_once());
    let server = flaky().await;
    let request = client
        .get(server.url("/"))
        .with_extension(RetryRule::never());
    assert_eq!(sent(request, &server).await, (1, 503));

    let server = flaky().await;
    assert_eq!(sent(client.get(server.url("/")), &server).await, (2, 200));
}

/// One rule for many requests need not be copied for each.
#[tokio::test]
async fn a_shared_rule_is_a_rule() {
    let (on, off) = (Arc::new(at_once()), Arc::new(RetryRule::never()));
    let server = flaky().await;
    let request = retrying(RetryRule::never()).get(server.url("/"));
    assert_eq!(
        sent(request.with_extension(on.clone()), &server).await,
        (2, 200)
    );

    let server = flaky().await;
    let request = retrying(RetryRule::never()).get(server.url("/"));
    assert_eq!(with_rule(on, sent(request, &server)).await, (2, 200));

    let server = flaky().await;
    let request = retrying(at_once()).get(server.url("/"));
    assert_eq!(sent(request.with_extension(off), &server).await, (1, 503));
}

#[tokio::test]
async fn a_rule_turns_retries_on_for_one_request() {
    let client = retrying(RetryRule::never());
    let server = flaky().await;
    let request = client.get(server.url("/")).with_extension(at_once());
    assert_eq!(sent(request, &server).await, (2, 200));

    let server = flaky().await;
    assert_eq!(sent(client.get(server.url("/")), &server).await, (1, 503));
}

#[tokio::test]
async fn a_policy_turns_retries_off_and_on() {
    for (built_with, carried, expected) in [
        (at_once(), RetryRule::never(), (1, 503)),
        (RetryRule::never(), at_once(), (2, 200)),
    ] {
        let server = flaky().await;
        let request = retrying(built_with).get(server.url("/"));
        let request = request.with_extension(RetryPolicy::from(carried));
        assert_eq!(sent(request, &server).await, expected);
    }
}

#[tokio::test]
async fn a_rule_is_replaced_whole() {
    let only_500 = RetryRule {
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(500)],
            methods: Methods::Any,
            backoff: None,
        }],
        max_retries: 1,
        ..RetryRule::never()
    };
    for (status, expected) in [(500, (2, 500)), (503, (1, 503))] {
        let server = H1::start(Act::status(status)).await;
        let request = retrying(at_once()).post(server.url("/"));
        let request = request.with_extension(only_500.clone());
        assert_eq!(sent(request, &server).await, expected);
    }
}

#[tokio::test]
async fn a_rule_keeps_the_rest_of_the_policy_and_a_policy_replaces_it() {
    let (built_with, carried) = (Arc::new(Counted::default()), Arc::new(Counted::default()));
    let client = retrying(RetryPolicy::from(RetryRule::never()).observer(built_with.clone()));
    let policy = RetryPolicy::from(RetryRule::never()).observer(carried.clone());
    let policy_that_retries = RetryPolicy::from(at_once()).observer(carried.clone());

    let server = flaky().await;
    let request = client.get(server.url("/")).with_extension(at_once());
    assert_eq!(sent(request, &server).await, (2, 200));
    assert_eq!((built_with.times(), carried.times()), (1, 0));

    let server = flaky().await;
    let request = client
        .get(server.url("/"))
        .with_extension(policy_that_retries);
    assert_eq!(sent(request, &server).await, (2, 200));
    assert_eq!((built_with.times(), carried.times()), (0, 1));

    // Both: the rule is the one by itself, all else is the policy's.
    let server = flaky().await;
    let request = client.get(server.url("/"));
    let request = request.with_extension(policy).with_extension(at_once());
    assert_eq!(sent(request, &server).await, (2, 200));
    assert_eq!((built_with.times(), carried.times()), (0, 1));
}

#[tokio::test]
async fn a_policy_keeps_the_budget_of_the_middleware_unless_it_sets_one() {
    let empty = || {
        RetryBudget::new(BudgetTerms {
            window: Duration::from_secs(1),
            reserve_per_second: 0,
            ratio: 0,
        })
        .unwrap()
    };
    let carried = || RetryPolicy::from(at_once());
    for (policy, expected) in [
        (carried(), (1, 503)),
        (carried().no_budget(), (2, 200)),
        (carried().budget(RetryBudget::default()), (2, 200)),
    ] {
        let server = flaky().await;
        let client = retrying(RetryPolicy::from(at_once()).budget(empty()));
        let request = client.get(server.url("/")).with_extension(policy);
        assert_eq!(sent(request, &server).await, expected);
    }

    let server = flaky().await;
    let client = retrying(RetryPolicy::from(at_once()).budget(empty()));
    let response = client.get(server.url("/")).send().await.unwrap();
    let report = response.retry_report().unwrap();
    assert_eq!(report.stop_reason(), Some(StopReason::Throttled));
}

#[tokio::test]
async fn replay_safe_says_for_one_request_what_its_method_does_not() {
    for (method, safe, expected) in [
        (Method::POST, None, (1, 503)),
        (Method::POST, Some(true), (2, 200)),
        (Method::POST, Some(false), (1, 503)),
        (Method::PUT, None, (2, 200)),
        (Method::PUT, Some(true), (2, 200)),
        (Method::PUT, Some(false), (1, 503)),
    ] {
        let server = flaky().await;
        let mut request = retrying(at_once()).request(method.clone(), server.url("/"));
        if let Some(safe) = safe {
            request = request.with_extension(ReplaySafe(safe));
        }
        assert_eq!(sent(request, &server).await, expected, "{method} {safe:?}");
    }
}

#[tokio::test]
async fn replay_safe_concerns_idempotence_and_no_list_of_methods() {
    let listed = |methods| RetryRule {
        statuses: vec![StatusRule {
            statuses: vec![StatusMatch::Code(503)],
            methods,
            backoff: None,
        }],
        ..at_once()
    };
    for (methods, method, safe, expected) in [
        (Methods::Any, Method::POST, false, (2, 200)),
        (
            Methods::Listed(vec![Method::GET]),
            Method::POST,
            true,
            (1, 503),
        ),
        (
            Methods::Listed(vec![Method::GET]),
            Method::GET,
            false,
            (2, 200),
        ),
        (Methods::Never, Method::GET, true, (1, 503)),
    ] {
        let server = flaky().await;
        let request = retrying(listed(methods)).request(method, server.url("/"));
        let request = request.with_extension(ReplaySafe(safe));
        assert_eq!(sent(request, &server).await, expected);
    }
}

#[tokio::test]
async fn a_client_gives_its_requests_a_default_that_each_can_replace() {
    struct Default(RetryRule);

    impl RequestInitialiser for Default {
        fn init(&self, request: RequestBuilder) -> RequestBuilder {
            request.with_extension(self.0.clone())
        }
    }

    let client = ClientBuilder::new(client().build().unwrap())
        .with_init(Default(RetryRule::never()))
        .with(RetryMiddleware::new(at_once()))
        .build();
    let server = flaky().await;
    assert_eq!(sent(client.get(server.url("/")), &server).await, (1, 503));

    let server = flaky().await;
    let request = client.get(server.url("/")).with_extension(at_once());
    assert_eq!(sent(request, &server).await, (2, 200));
}

#[tokio::test]
async fn the_wait_is_that_of_the_rule_in_force() {
    let deaf = RetryRule {
        retry_after: Default::default(),
        ..at_once()
    };
    for (rule, wait) in [(at_once(), 40), (deaf, 0)] {
        let later = Answer::new(503).header("retry-after-ms", "40");
        let server = H1::start([later, Answer::new(200)]).await;
        let request = retrying(RetryRule::never()).get(server.url("/"));
        let response = request.with_extension(rule).send().await.unwrap();
        let report = response.retry_report().unwrap();
        let expected = Some(Duration::from_millis(wait));
        assert_eq!(report.records()[0].wait(), expected);
    }
}

#[tokio::test]
async fn a_request_is_nearer_than_the_task_it_is_sent_in() {
    for (around, carried, expected) in [
        (RetryRule::never(), Some(at_once()), (2, 200)),
        (at_once(), Some(RetryRule::never()), (1, 503)),
        (RetryRule::never(), None, (1, 503)),
    ] {
        let server = flaky().await;
        let mut request = retrying(at_once()).get(server.url("/"));
        if let Some(carried) = carried {
            request = request.with_extension(carried);
        }
        let sending = with_rule(around, sent(request, &server));
        assert_eq!(sending.await, expected);
    }
}
