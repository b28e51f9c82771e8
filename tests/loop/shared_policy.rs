//! A policy that is exchanged while sends are under way.

use std::time::Duration;

use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
use reqwest_retry_rules::{
    BudgetTerms, PauseTerms, ResponseExt, RetryBudget, RetryMiddleware, RetryPolicy, RetryReport,
    RetryRule, SharedPolicy, StopReason,
};

use crate::support::scripted::{Transport, ok, status};

const URL: &str = "http://origin.test/";

fn retries(max_retries: u32) -> RetryRule {
    RetryRule {
        max_retries,
        ..RetryRule::transient()
    }
}

fn client(
    transport: &Transport,
    shared: &SharedPolicy,
) -> reqwest_middleware::ClientWithMiddleware {
    crate::support::install_crypto();
    ClientBuilder::new(reqwest::Client::new())
        .with(RetryMiddleware::shared(shared.clone()))
        .with(transport.clone())
        .build()
}

#[tokio::test(start_paused = true)]
async fn a_send_keeps_the_policy_that_it_began_with_and_the_next_has_the_new_one() {
    let transport = Transport::choose(|_| status(503).after(10));
    let shared = SharedPolicy::new(retries(3));
    let client = client(&transport, &shared);
    let exchange = async {
        tokio::time::sleep(Duration::from_millis(15)).await;
        shared.replace(retries(0));
    };
    let (sent, ()) = tokio::join!(client.get(URL).send(), exchange);
    assert_eq!(sent.unwrap().attempts(), 4);
    assert_eq!(client.get(URL).send().await.unwrap().attempts(), 1);
    assert_eq!(shared.current().rule(), &retries(0));
}

/// A send begins when its future is first polled, not when that is made.
#[tokio::test(start_paused = true)]
async fn a_policy_that_is_exchanged_before_the_first_poll_is_the_one_that_counts() {
    struct Exchange(SharedPolicy);

    #[async_trait::async_trait]
    impl Middleware for Exchange {
        async fn handle(
            &self,
            request: Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<Response> {
            let rest = next.run(request, extensions);
            self.0.replace(retries(1));
            rest.await
        }
    }

    let transport = Transport::choose(|_| status(503));
    let shared = SharedPolicy::new(retries(3));
    crate::support::install_crypto();
    let client = ClientBuilder::new(reqwest::Client::new())
        .with(Exchange(shared.clone()))
        .with(RetryMiddleware::shared(shared.clone()))
        .with(transport.clone())
        .build();
    assert_eq!(client.get(URL).send().await.unwrap().attempts(), 2);
}

/// One retry for each policy, as long as nothing is earned.
fn limited(rule: RetryRule, reserve: u32) -> RetryPolicy {
    let terms = BudgetTerms {
        window: Duration::from_secs(1),
        reserve_per_second: reserve,
        ratio: 0,
    };
    RetryPolicy::from(rule).budget(RetryBudget::new(terms).unwrap())
}

async fn stops(transport: &Transport, shared: &SharedPolicy) -> StopReason {
    let response = client(transport, shared).get(URL).send().await.unwrap();
    let report = response.retry_report().and_then(RetryReport::stop_reason);
    report.unwrap()
}

#[tokio::test(start_paused = true)]
async fn budgets_on_equal_terms_go_on() {
    let transport = Transport::choose(|_| status(503));
    let shared = SharedPolicy::new(limited(retries(1), 1));
    assert_eq!(stops(&transport, &shared).await, StopReason::Exhausted);
    assert_eq!(stops(&transport, &shared).await, StopReason::Throttled);
    shared.replace(limited(retries(1), 1));
    assert_eq!(stops(&transport, &shared).await, StopReason::Throttled);
}

#[tokio::test(start_paused = true)]
async fn a_budget_on_other_terms_is_a_fresh_one() {
    let transport = Transport::choose(|_| status(503));
    let shared = SharedPolicy::new(limited(retries(1), 1));
    assert_eq!(stops(&transport, &shared).await, StopReason::Exhausted);
    assert_eq!(stops(&transport, &shared).await, StopReason::Throttled);
    shared.replace(limited(retries(1), 2));
    assert_eq!(stops(&transport, &shared).await, StopReason::Exhausted);
}

#[tokio::test(start_paused = true)]
async fn pauses_on_equal_terms_go_on_and_end_with_them() {
    let terms = PauseTerms {
        spread: 0,
        ..PauseTerms::default()
    };
    let policy = || RetryPolicy::from(retries(0)).pause_origins(terms);
    let asking = || status(503).header("retry-after", "2");
    for (next, waited) in [(policy(), 2000), (RetryPolicy::from(retries(0)), 0)] {
        let transport = Transport::new([asking(), ok()]);
        let shared = SharedPolicy::new(policy());
        client(&transport, &shared).get(URL).send().await.unwrap();
        shared.replace(next);
        client(&transport, &shared).get(URL).send().await.unwrap();
        assert_eq!(transport.now(), waited);
    }
}
