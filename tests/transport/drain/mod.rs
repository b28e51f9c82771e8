//! Draining: the rest of a refused answer is read while the wait runs, so that its connection is
//! used again, and costs neither memory nor time.

mod connections;
mod given_back;
mod limits;

use std::time::Duration;

use http::StatusCode;
use reqwest_retry_rules::{AttemptResult, Backoff, Jitter, RetryRule};

use crate::support::sends::at_once;

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
