//! A rule from a configuration file: what it will do, what it decides, and what is said of a bad
//! one.
//!
//! Run it with `cargo run --example rule_from_toml --features serde`. The file is `rule.toml`,
//! beside this one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest_retry_rules::{
    Attempt, AttemptOutcome, Backoff, Decision, Limits, Methods, RetryRule, StatusMatch,
    StatusRule, TransportError,
};

fn main() -> anyhow::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/rule.toml");
    let rule: RetryRule = toml::from_str(&fs::read_to_string(file)?)?;

    // It is a rule like any other now: `RetryMiddleware::new(rule)` goes by it.
    println!("What it will do\n\n{}", rule.schedule());

    println!("What it decides, in the middle of the jitter\n");
    print_decisions(&rule)?;

    println!("\nWhat is said of a bad file\n");
    for file in [
        "max_retries = \"three\"",
        "sent_failures = \"sometimes\"",
        "sent_failures = [\"get\", \"any\"]",
        "statuses = [{ statuses = [429, \"50x\"], methods = \"any\" }]",
        "retry_after.cap = { stop_above = 60 }",
        "backoff.base_ms = -1",
        "backof.base_ms = 1",
        "limits = { soft_elapsed_ms = 5000, hard_elapsed_ms = 500 }",
    ] {
        if let Err(error) = toml::from_str::<RetryRule>(file) {
            // The whole text of the error says the line and the column too.
            println!("    {file}\n        {}", error.message());
        }
    }

    // A rule that is built in code is not checked by itself. This names every fault of it.
    println!("\nWhat is said of a bad rule in code\n");
    if let Err(invalid) = faulty().validate() {
        for fault in invalid.faults() {
            let (field, found, expected) = (fault.field(), fault.found(), fault.expected());
            println!("    {field} is {found}\n        expected {expected}");
        }
    }
    Ok(())
}

fn faulty() -> RetryRule {
    let transient = RetryRule::transient();
    RetryRule {
        statuses: vec![StatusRule::new(
            [StatusMatch::Code(42), StatusMatch::Range(599, 500)],
            Methods::Any,
        )],
        backoff: Backoff {
            base: Duration::ZERO,
            ..transient.backoff
        },
        limits: Limits {
            soft_elapsed: Some(Duration::from_secs(60)),
            hard_elapsed: Some(Duration::from_secs(6)),
            ..Limits::default()
        },
        ..transient
    }
}

/// Asks the rule about attempts that failed, which takes neither a network nor time.
fn print_decisions(rule: &RetryRule) -> anyhow::Result<()> {
    let first = |method| Attempt {
        random: 0.5,
        ..Attempt::new(method)
    };
    let (get, post) = (first(&Method::GET), first(&Method::POST));

    for (attempt, status, header) in [
        (get, 503, None),
        (post, 503, None),
        (get, 501, None),
        (post, 429, Some(("retry-after", "7"))),
        (post, 429, Some(("retry-after", "3600"))),
        (post, 500, Some(("x-should-retry", "true"))),
        (get, 503, Some(("x-should-retry", "false"))),
    ] {
        let mut headers = HeaderMap::new();
        let mut what = status.to_string();
        if let Some((name, value)) = header {
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
            what = format!("{what}, {name}: {value}");
        }
        let outcome = AttemptOutcome::Response {
            status: StatusCode::from_u16(status)?,
            headers: &headers,
        };
        print_decision(&what, rule, &outcome, &attempt);
    }

    let late = |retries, seconds| Attempt {
        attempt: retries,
        elapsed: Duration::from_secs(seconds),
        ..get
    };
    for (what, failure, attempt) in [
        ("no answer in time", TransportError::Timeout, get),
        ("no answer in time", TransportError::Timeout, post),
        ("no connection", TransportError::Connect, post),
        ("a bad certificate", TransportError::Certificate, get),
        (
            "no connection, 6 s after the start",
            TransportError::Connect,
            late(0, 6),
        ),
        (
            "no connection, after 1 retry and 6 s",
            TransportError::Connect,
            late(1, 6),
        ),
        (
            "no connection, after 4 retries",
            TransportError::Connect,
            late(4, 3),
        ),
    ] {
        print_decision(what, rule, &AttemptOutcome::Failure(failure), &attempt);
    }
    Ok(())
}

fn print_decision(what: &str, rule: &RetryRule, outcome: &AttemptOutcome, attempt: &Attempt) {
    let method = attempt.method.as_str();
    match rule.decide(outcome, attempt) {
        Decision::Wait(wait) => println!("    {method:<6}{what:<38}wait {} ms", wait.as_millis()),
        Decision::Stop(reason) => println!("    {method:<6}{what:<38}stop: {reason}"),
    }
}
