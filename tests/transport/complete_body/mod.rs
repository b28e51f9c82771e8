//! Bodies that are read inside the attempt, so that one that breaks off can be retried.

mod breaks_off;
mod compressed;
mod left_alone;
mod whole;

use std::time::Duration;

use http::StatusCode;
use reqwest_retry_rules::{AttemptResult, RetryPolicy};

use crate::support::sends::at_once;

const OK: AttemptResult = AttemptResult::Status(StatusCode::OK);

/// Reads bodies up to 1000 bytes.
fn completing(retries: u32) -> RetryPolicy {
    RetryPolicy::from(at_once(retries)).complete_body(1000)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
