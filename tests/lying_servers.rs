//! Servers that lie: no hang beyond the timeouts that are set, no panic, no memory without bound,
//! and never a second sending of what may have been processed.
#![allow(clippy::disallowed_methods)]

#[path = "support/sends.rs"]
mod sends;
mod support;

#[path = "lying_servers/floods.rs"]
mod floods;
#[path = "lying_servers/frames.rs"]
mod frames;
#[path = "lying_servers/out_of_turn.rs"]
mod out_of_turn;
#[path = "lying_servers/words.rs"]
mod words;

use std::future::Future;
use std::time::Duration;

use http::StatusCode;
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry_rules::{AttemptResult, RetryPolicy};

use sends::{at_once, retrying};

const OK: AttemptResult = AttemptResult::Status(StatusCode::OK);

/// Reads bodies up to 100 bytes and waits half a second.
fn client() -> ClientWithMiddleware {
    patient(Duration::from_millis(500))
}

fn patient(timeout: Duration) -> ClientWithMiddleware {
    let client = support::client().gzip(true).timeout(timeout);
    retrying(client, policy())
}

fn policy() -> RetryPolicy {
    RetryPolicy::from(at_once(2)).complete_body(100)
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

/// What ran in between has not left more than this behind, other tests at the same time included:
/// what those hold they give back in a while.
#[track_caller]
fn assert_no_more_than(bytes: usize, before: Option<usize>) {
    let mut more = 0;
    for _ in 0..50 {
        let (Some(before), Some(after)) = (before, held()) else {
            return;
        };
        more = after.saturating_sub(before);
        if more < bytes {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{more} bytes more");
}
