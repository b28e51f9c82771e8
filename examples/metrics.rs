//! Retries as metrics: the `metrics` crate's counters and histograms, as Prometheus scrapes them.
//!
//! Run it with `cargo run --example metrics`.

mod support;

use std::io;

use http::{Method, Request};
use hyper::body::Incoming;
use metrics::{counter, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use reqwest_middleware::ClientBuilder;
use reqwest_retry_rules::{
    AttemptResult, RecoveredEvent, RetryEvent, RetryLabel, RetryMiddleware, RetryObserver,
    RetryPolicy, RetryRule, StopEvent, client_builder,
};

use support::{Answer, Service, answer};

/// Counts what became of the sends that did not go well at once.
///
/// Labels are names that stay the same and are few: never a path, and a host only if you know that
/// there are few of them.
struct Metrics;

const WAIT: &str = "http_client_retry_wait_seconds";

impl RetryObserver for Metrics {
    fn on_retry(&self, event: &RetryEvent<'_>) {
        let after = match event.result() {
            AttemptResult::Status(status) => status.as_str().to_owned(),
            other => other.name().to_owned(),
        };
        let call = name(event.label());
        counter!("http_client_retries_total", "call" => call, "after" => after).increment(1);
        histogram!(WAIT, "source" => event.wait_source().name()).record(event.wait().as_secs_f64());
    }

    fn on_recovered(&self, event: &RecoveredEvent<'_>) {
        let attempts = match event.attempts() {
            few @ ..=4 => few.to_string(),
            _ => "more".to_owned(),
        };
        counter!("http_client_recoveries_total", "attempts" => attempts).increment(1);
    }

    fn on_stop(&self, event: &StopEvent<'_>) {
        let (call, reason) = (name(event.label()), event.reason().name());
        counter!("http_client_given_up_total", "call" => call, "reason" => reason).increment(1);
    }
}

fn name(label: Option<&RetryLabel>) -> String {
    label.map_or("other", RetryLabel::as_str).to_owned()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // A program that runs on would have its listener here, which answers scrapes.
    let prometheus = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full(WAIT.to_owned()), &[0.01, 0.1, 1.0, 10.0])?
        .install_recorder()?;

    let service = Service::start(bad_day).await?;
    let policy = RetryPolicy::from(RetryRule::transient()).observer(Metrics);
    let client = ClientBuilder::new(client_builder().no_proxy().build()?)
        .with(RetryMiddleware::new(policy))
        .build();
    for (label, method, path) in [
        ("list-orders", Method::GET, "/orders"),
        ("list-orders", Method::GET, "/orders"),
        ("create-order", Method::POST, "/orders/new"),
        ("price-list", Method::GET, "/prices"),
        ("year-report", Method::GET, "/years/2025"),
    ] {
        let request = client.request(method, service.url(path));
        request
            .with_extension(RetryLabel::from(label))
            .send()
            .await?;
    }
    print!("{}", prometheus.render());
    Ok(())
}

/// A service that has a bad day.
async fn bad_day(nth: u32, request: Request<Incoming>) -> Answer {
    match (request.uri().path(), nth) {
        ("/orders", 1) => answer(503, &[]),
        ("/orders", 2) => answer(429, &[("retry-after-ms", "150")]),
        ("/orders", 4) => Err(io::Error::other("closed without an answer")),
        ("/orders/new", _) => answer(503, &[]),
        ("/prices", _) => answer(429, &[("retry-after", "3600")]),
        ("/years/2025", _) => answer(502, &[]),
        _ => answer(200, &[]),
    }
}
