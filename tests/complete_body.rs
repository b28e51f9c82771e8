//! Bodies that are read inside the attempt, so that one that breaks off can be retried.
#![allow(clippy::disallowed_methods)]

#[path = "support/sends.rs"]
mod sends;
#[path = "support/staged.rs"]
mod staged;
mod support;

#[path = "complete_body/breaks_off.rs"]
mod breaks_off;
#[path = "complete_body/compressed.rs"]
mod compressed;
#[path = "complete_body/left_alone.rs"]
mod left_alone;
#[path = "complete_body/whole.rs"]
mod whole;

use std::time::Duration;

use http::StatusCode;
use reqwest_retry_rules::{AttemptResult, RetryPolicy};

use sends::at_once;

const OK: AttemptResult = AttemptResult::Status(StatusCode::OK);

/// Reads bodies up to 1000 bytes.
fn completing(retries: u32) -> RetryPolicy {
    RetryPolicy::from(at_once(retries)).complete_body(1000)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
