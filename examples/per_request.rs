//! What one request changes: it carries its own rule, policy, limits and name in its extensions,
//! and they go before whatever the client was built with.
//!
//! Run it with `cargo run --example per_request`.

mod support;

use std::time::Duration;

use http::{HeaderName, Request};
use hyper::body::Incoming;
use reqwest_middleware::{ClientBuilder, RequestBuilder};
use reqwest_retry_rules::{
    Backoff, Deadline, ReplaySafe, RetryLabel, RetryLog, RetryMiddleware, RetryPolicy, RetryRule,
    TotalTimeout, client_builder,
};

use support::{Answer, Service, answer};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let service = Service::start(unavailable_twice).await?;
    let client = ClientBuilder::new(client_builder().no_proxy().build()?)
        .with(RetryMiddleware::new(without_jitter()))
        .build();

    let request = client.get(service.url("/1"));
    send("GET, as the client was built", request).await?;

    // A rule replaces the rule. What else the client's policy sets stays.
    let once = RetryRule {
        max_retries: 1,
        ..without_jitter()
    };
    let request = client.get(service.url("/2")).with_extension(once);
    send("GET with a RetryRule: one retry", request).await?;

    let request = client
        .get(service.url("/3"))
        .with_extension(RetryRule::never());
    send("GET with RetryRule::never(): no retries", request).await?;

    // A POST that may have been processed is not sent twice, unless you vouch for it.
    let request = client.post(service.url("/4")).body("amount=5");
    send("POST", request).await?;

    let request = client
        .post(service.url("/5"))
        .body("query=red+shoes")
        .with_extension(ReplaySafe(true));
    send("POST with ReplaySafe(true): it is only a search", request).await?;

    // A policy replaces the policy: here one with a key by which the service knows a repetition.
    let keyed = RetryPolicy::from(without_jitter())
        .idempotency_key(HeaderName::from_static("idempotency-key"));
    let request = client
        .post(service.url("/6"))
        .body("amount=5")
        .with_extension(keyed);
    send("POST with a RetryPolicy: an idempotency key", request).await?;

    // A limit for attempts and waits together, in place of the policy's. A wait that would outlast
    // it is not begun...
    let patience = TotalTimeout(Duration::from_millis(250));
    let request = client.get(service.url("/7")).with_extension(patience);
    send("GET with a TotalTimeout of 250 ms", request).await?;

    // ...and an attempt that does is ended, with an error for which `ErrorExt::timed_out` holds.
    let request = client.get(service.url("/hangs")).with_extension(patience);
    send("GET with a TotalTimeout of 250 ms, of what hangs", request).await?;

    // One moment by which several sends must be over.
    let deadline = Deadline::after(Duration::from_millis(450));
    let request = client.get(service.url("/8")).with_extension(deadline);
    send("GET with a Deadline 450 ms ahead", request).await?;
    let request = client.get(service.url("/9")).with_extension(deadline);
    send("GET with the same Deadline", request).await?;

    // A name for events and reports, and a handle on the report itself.
    let log = RetryLog::new();
    client
        .get(service.url("/10"))
        .with_extension(RetryLabel::from("list-orders"))
        .with_extension(log.clone())
        .send()
        .await?;
    if let Some(report) = log.report() {
        let name = report.label().map_or("a call", RetryLabel::as_str);
        let (attempts, took) = (report.attempts(), report.elapsed().as_millis());
        println!("GET with a RetryLabel and a RetryLog");
        println!("    {name}: {attempts} attempts in {took} ms");
    }
    Ok(())
}

/// The usual rule, without chance, so that every run prints the same.
fn without_jitter() -> RetryRule {
    let transient = RetryRule::transient();
    RetryRule {
        backoff: Backoff {
            jitter: Default::default(),
            ..transient.backoff
        },
        ..transient
    }
}

/// Sends the request and prints what it went through, even if it ends in an error.
async fn send(heading: &str, request: RequestBuilder) -> anyhow::Result<()> {
    let log = RetryLog::new();
    let sent = request.with_extension(log.clone()).send().await;
    match log.report() {
        Some(report) => support::print(heading, &report),
        // There was no attempt: the request itself is at fault.
        None => drop(sent?),
    }
    Ok(())
}

/// A service that answers every path with 503 two times and then with 200.
async fn unavailable_twice(nth: u32, request: Request<Incoming>) -> Answer {
    if request.uri().path() == "/hangs" {
        std::future::pending::<()>().await;
    }
    answer(if nth <= 2 { 503 } else { 200 }, &[])
}
