//! Servers that send without end, or very slowly: no hang beyond the timeouts that are set, no
//! memory without bound, and never a second sending of what may have been processed.
//!
//! They have a process of their own, since they ask how much memory it holds.
#![allow(clippy::disallowed_methods)]

#[path = "support/sends.rs"]
mod sends;
mod support;

#[path = "floods/frames.rs"]
mod frames;
#[path = "floods/words.rs"]
mod words;

use std::future::Future;
use std::time::Duration;

use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::RetryPolicy;

use sends::{at_once, retrying};

/// Reads bodies up to 100 bytes and waits so long.
fn patient(client: reqwest::ClientBuilder, millis: u64) -> ClientWithMiddleware {
    let client = client.gzip(true).timeout(Duration::from_millis(millis));
    retrying(client, RetryPolicy::from(at_once(2)).complete_body(100))
}

/// Nothing hangs beyond the timeouts that are set. This bound is far above them.
async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(Duration::from_secs(20), future).await {
        Ok(output) => output,
        Err(_) => panic!("it hangs: {what}"),
    }
}

/// How much memory this process holds, where that can be asked.
fn held() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}

/// What ran in between has not left more than this behind, other tests at the same time included.
#[track_caller]
fn assert_no_more_than(bytes: usize, before: Option<usize>) {
    if let (Some(before), Some(after)) = (before, held()) {
        let more = after.saturating_sub(before);
        assert!(more < bytes, "{more} bytes more");
    }
}
