//! Servers that lie: no hang beyond the timeouts that are set, no panic, no memory without bound,
//! and never a second sending of what may have been processed.

mod frames;
mod noise;
mod out_of_turn;
mod words;

use std::future::Future;
use std::time::Duration;

use http::StatusCode;
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::{AttemptResult, RetryPolicy};

use crate::support;
use crate::support::sends::{at_once, retrying};

const OK: AttemptResult = AttemptResult::Status(StatusCode::OK);

/// Reads bodies up to 100 bytes and waits a second.
fn client() -> ClientWithMiddleware {
    let timeout = Duration::from_millis(1000);
    retrying(support::client().gzip(true).timeout(timeout), policy())
}

fn policy() -> RetryPolicy {
    RetryPolicy::from(at_once(2)).complete_body(100)
}

/// Nothing hangs beyond the timeouts that are set. This bound is far above them.
async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(Duration::from_secs(60), future).await {
        Ok(output) => output,
        Err(_) => panic!("it hangs: {what}"),
    }
}
