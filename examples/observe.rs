//! How to see retries: counters through an observer, `tracing` events as they happen,
//! and the report of each send.
//!
//! Run it with `cargo run --example observe`.

mod support;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request};
use hyper::body::Incoming;
use reqwest_middleware::ClientBuilder;
use reqwest_retry_rules::{
    AttemptResult, Backoff, Jitter, RecoveredEvent, ResponseExt, RetryEvent, RetryLabel,
    RetryMiddleware, RetryObserver, RetryPolicy, RetryReport, RetryRule, StopEvent, WaitSource,
    client_builder,
};

use support::{Answer, Service, answer};

/// Counts retries by what came before them, recoveries by the attempts that they took, and stops by
/// their reason.
///
/// It is called inside the send, so it must not take long: a counter of a metrics library will do.
#[derive(Default)]
struct Counters {
    retries: Count,
    recoveries: Count,
    stops: Count,
}

impl RetryObserver for Counters {
    fn on_retry(&self, event: &RetryEvent<'_>) {
        match event.result() {
            AttemptResult::Status(status) => self.retries.add(status.as_str()),
            AttemptResult::Failure(failure) => self.retries.add(failure.name()),
            other => self.retries.add(&other.to_string()),
        }
    }

    fn on_recovered(&self, event: &RecoveredEvent<'_>) {
        self.recoveries
            .add(&format!("{} attempts", event.attempts()));
    }

    fn on_stop(&self, event: &StopEvent<'_>) {
        // A name stays the same; the sentence of a reason may have a wait in it.
        self.stops.add(event.reason().name());
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let service = Service::start(bad_day).await?;

    // A retry and a recovery are events of level INFO, a send that is given up is one of level WARN;
    // `RetryPolicy::log_levels` sets other levels. Of the URL they have the host alone, and of the
    // headers nothing, so there is no secret in them.
    tracing_subscriber::fmt()
        .with_target(false)
        .with_ansi(false)
        .without_time()
        .init();

    let counters = Arc::new(Counters::default());
    let policy = RetryPolicy::from(rule()).observer(counters.clone());
    let client = ClientBuilder::new(client_builder().no_proxy().build()?)
        .with(RetryMiddleware::new(policy))
        .build();

    println!("What tracing says of five calls\n");
    let mut reports = Vec::new();
    for (label, method, path) in [
        ("list-orders", Method::GET, "/orders?token=secret"),
        ("read-order", Method::GET, "/orders/17"),
        ("create-order", Method::POST, "/orders/new"),
        ("price-list", Method::GET, "/prices"),
        ("year-report", Method::GET, "/years/2025"),
    ] {
        let response = client
            .request(method, service.url(path))
            .with_extension(RetryLabel::from(label))
            .send()
            .await?;
        // There is a report if a retry was made, or wanted. That of a send which ends in an error is
        // read from a `RetryLog`, which goes with the request as the label does.
        reports.extend(response.retry_report().cloned());
    }

    println!("\nWhat the observer counted\n");
    counters.retries.print("retries");
    counters.recoveries.print("recoveries");
    counters.stops.print("stops");

    println!("What the reports hold\n");
    reports.iter().for_each(print);
    Ok(())
}

fn print(report: &RetryReport) {
    let name = report.label().map_or("a call", RetryLabel::as_str);
    println!("    {name}, {} ms in all", report.elapsed().as_millis());
    for (n, record) in (1..).zip(report.records()) {
        print!("    {n:>4}. {}", record.result());
        match (record.wait(), record.wait_source()) {
            (Some(wait), Some(WaitSource::Server)) => {
                print!("; waited {} ms, as asked", wait.as_millis());
            }
            (Some(wait), _) => print!("; waited {} ms", wait.as_millis()),
            (None, _) => {}
        }
        println!();
    }
    if let Some(reason) = report.stop_reason() {
        println!("          given up: {reason}");
    }
    println!();
}

fn rule() -> RetryRule {
    RetryRule {
        backoff: Backoff {
            base: Duration::from_millis(40),
            max: Duration::from_millis(500),
            growth: 2000,
            jitter: Jitter::NoJitter,
        },
        ..RetryRule::transient()
    }
}

/// A service that has a bad day.
async fn bad_day(nth: u32, request: Request<Incoming>) -> Answer {
    match (request.uri().path(), nth) {
        ("/orders", 1) => answer(503, &[]),
        ("/orders", 2) => answer(429, &[("retry-after-ms", "150")]),
        ("/orders/17", 1) => Err(io::Error::other("closed without an answer")),
        ("/orders/new", _) => answer(503, &[]),
        ("/prices", _) => answer(429, &[("retry-after", "3600")]),
        ("/years/2025", _) => answer(502, &[]),
        _ => answer(200, &[]),
    }
}

/// How often each of several things happened.
#[derive(Default)]
struct Count(Mutex<BTreeMap<String, u32>>);

impl Count {
    fn add(&self, what: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(what.to_owned()).or_default() += 1;
    }

    fn print(&self, heading: &str) {
        println!("    {heading}");
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (what, count) in &*counts {
            println!("    {count:>4}  {what}");
        }
        println!();
    }
}
