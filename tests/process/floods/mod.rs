//! Servers that send without end, or very slowly: no hang beyond the timeouts that are set, no
//! memory without bound, and never a second sending of what may have been processed.
//!
//! Each has its turn in the process, since they ask how much memory it takes.

mod frames;
mod words;

use std::future::Future;
use std::time::Duration;

use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::RetryPolicy;

use crate::soaking::MEMORY;
use crate::support::sends::{at_once, retrying};

/// Reads bodies up to 100 bytes and waits so long.
fn patient(client: reqwest::ClientBuilder, millis: u64) -> ClientWithMiddleware {
    let client = client.gzip(true).timeout(Duration::from_millis(millis));
    retrying(client, RetryPolicy::from(at_once(2)).complete_body(100))
}

/// Nothing hangs beyond the timeouts that are set. This bound is far above them.
async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(Duration::from_secs(60), future).await {
        Ok(output) => output,
        Err(_) => panic!("it hangs: {what}"),
    }
}

/// More than a few buffers, and less than what comes in a tenth of a second.
const LITTLE: usize = 8 << 20;

/// Runs it, and panics if more than so many bytes were allocated for it at any moment.
async fn within<F: Future>(bytes: usize, future: F) -> F::Output {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let output = future.await;
    let more = MEMORY.peak_usage().saturating_sub(before);
    assert!(more < bytes, "{more} bytes more");
    output
}
