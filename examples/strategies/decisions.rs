//! What a rule decides about the first attempt, as a table.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use reqwest_retry_rules::{Attempt, AttemptOutcome, Decision, RetryRule, TransportError};

const METHODS: [Method; 3] = [Method::GET, Method::PUT, Method::POST];

const STATUSES: [u16; 7] = [404, 408, 409, 429, 500, 501, 503];

const FAILURES: [TransportError; 7] = [
    TransportError::Connect,
    TransportError::ConnectTimeout,
    TransportError::NotProcessed,
    TransportError::Timeout,
    TransportError::Closed,
    TransportError::Certificate,
    TransportError::Protocol,
];

/// A row for each outcome, a column for each method: the wait where jitter is in the middle of its
/// range, or nothing for a request that is not sent again.
pub fn decisions(rule: &RetryRule) -> String {
    let mut table = String::new();
    line(&mut table, "", METHODS.iter().map(ToString::to_string));
    for status in STATUSES
        .iter()
        .filter_map(|status| StatusCode::from_u16(*status).ok())
    {
        let headers = HeaderMap::new();
        let outcome = AttemptOutcome::Response {
            status,
            headers: &headers,
        };
        row(&mut table, status.as_str(), rule, &outcome);
    }
    let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("7"))]);
    let status = StatusCode::TOO_MANY_REQUESTS;
    let outcome = AttemptOutcome::Response {
        status,
        headers: &headers,
    };
    row(&mut table, "429, in 7 s", rule, &outcome);
    for failure in FAILURES {
        let outcome = AttemptOutcome::Failure(failure);
        row(&mut table, &format!("{failure:?}"), rule, &outcome);
    }
    table
}

/// The waits of all retries, where jitter is in the middle of its range.
pub fn waits(rule: &RetryRule) -> Vec<Duration> {
    (0..rule.max_retries)
        .map(|retry| rule.backoff.delay(retry, 0.5))
        .collect()
}

fn row(table: &mut String, name: &str, rule: &RetryRule, outcome: &AttemptOutcome<'_>) {
    line(
        table,
        name,
        METHODS.iter().map(|method| {
            let attempt = Attempt {
                random: 0.5,
                ..Attempt::new(method)
            };
            match rule.decide(outcome, &attempt) {
                Decision::Wait(wait) => format!("{wait:?}"),
                Decision::Stop(_) => "-".to_owned(),
            }
        }),
    );
}

fn line(table: &mut String, name: &str, cells: impl Iterator<Item = String>) {
    let cells: String = cells.map(|cell| format!("{cell:<8}")).collect();
    table.push_str(format!("{name:<15}{cells}").trim_end());
    table.push('\n');
}
