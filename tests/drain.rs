//! Draining: the rest of a refused answer is read while the wait runs, so that its connection is
//! used again, and costs neither memory nor time.
#![allow(clippy::disallowed_methods)]

#[path = "support/sends.rs"]
mod sends;
#[path = "support/staged.rs"]
mod staged;
mod support;

#[path = "drain/connections.rs"]
mod connections;
#[path = "drain/given_back.rs"]
mod given_back;
#[path = "drain/limits.rs"]
mod limits;

use std::time::Duration;

use http::StatusCode;
use reqwest_retry_rules::{AttemptResult, Backoff, Jitter, RetryRule};

use sends::at_once;

const OK: AttemptResult = AttemptResult::Status(StatusCode::OK);
const UNAVAILABLE: AttemptResult = AttemptResult::Status(StatusCode::SERVICE_UNAVAILABLE);

/// Three retries after this wait each.
fn after(wait: Duration) -> RetryRule {
    RetryRule {
        backoff: Backoff {
            base: wait,
            max: wait,
            growth: 1000,
            jitter: Jitter::NoJitter,
        },
        ..at_once(3)
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
