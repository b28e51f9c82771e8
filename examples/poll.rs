//! Asking until the answer is there: 202 until it is 200.
//!
//! Run it with `cargo run --example poll`.

mod support;

use std::time::Duration;

use http::{Method, Request};
use hyper::body::Incoming;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry_rules::{
    Backoff, BudgetTerms, Jitter, Limits, Methods, ResponseExt, RetryBudget, RetryMiddleware,
    RetryPolicy, RetryRule, StatusRule, client_builder,
};

use support::{Answer, Service, answer};

/// Asks again for as long as the answer is "not yet", and for as long as usual after a failure.
fn polling(patience: Duration) -> RetryPolicy {
    let usual = RetryRule::transient();
    let not_yet = StatusRule {
        statuses: vec![202.into()],
        methods: Methods::Listed(vec![Method::GET]),
        // Every 50 ms at first, and every half second in the end, if the service says nothing else.
        backoff: Some(Backoff {
            base: Duration::from_millis(50),
            max: Duration::from_millis(500),
            growth: 1500,
            jitter: Jitter::Proportional { lo: 900, hi: 1100 },
        }),
    };
    let rule = RetryRule {
        // Time is the limit.
        max_retries: u32::MAX,
        statuses: [vec![not_yet], usual.statuses].concat(),
        limits: Limits {
            hard_elapsed: Some(patience),
            ..Limits::default()
        },
        ..usual
    };
    // A budget is against failures. A poll that is not ready yet is none.
    RetryPolicy::from(rule).no_budget()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let service = Service::start(exports).await?;
    // The client's own policy, for everything else. Its budget has few retries to give.
    let budget = RetryBudget::new(BudgetTerms {
        reserve_per_second: 1,
        ratio: 0,
        window: Duration::from_secs(2),
    })?;
    let policy = RetryPolicy::from(RetryRule::transient()).budget(budget);
    let client = ClientBuilder::new(client_builder().no_proxy().build()?)
        .with(RetryMiddleware::new(policy))
        .build();

    for export in ["/exports/small", "/exports/endless"] {
        ask(&client, &service, export).await?;
    }
    let response = client.get(service.url("/news")).send().await?;
    if let Some(report) = response.retry_report() {
        support::print(
            "The budget is still there for the failures of others",
            report,
        );
    }
    Ok(())
}

async fn ask(client: &ClientWithMiddleware, service: &Service, export: &str) -> anyhow::Result<()> {
    let response = client
        .get(service.url(export))
        .with_extension(polling(Duration::from_secs(1)))
        .send()
        .await?;
    if let Some(report) = response.retry_report() {
        support::print(&format!("GET {export}"), report);
    }
    // A poll that ran out of time gives back the last "not yet".
    let ready = response.status() == 200;
    println!(
        "    {}\n",
        if ready {
            "it is ready"
        } else {
            "it is not ready, and may be later"
        }
    );
    Ok(())
}

async fn exports(nth: u32, request: Request<Incoming>) -> Answer {
    match (request.uri().path(), nth) {
        ("/exports/small", 1 | 2) => answer(202, &[]),
        ("/exports/small", 3) => answer(503, &[]),
        ("/exports/small", 4) => answer(202, &[("retry-after-ms", "200")]),
        ("/exports/endless", _) => answer(202, &[]),
        ("/news", 1) => answer(503, &[]),
        _ => answer(200, &[]),
    }
}
