//! What a request or a task sets of a send, one value each.

use std::cmp::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use crate::middleware::clock;

/// States whether sending the request twice does the same as sending it once, whatever its method.
///
/// `ReplaySafe(true)` lets a POST be retried as an idempotent method would be; with
/// `ReplaySafe(false)` a GET is not. It replaces what RFC 9110, 9.2.2 says of the method and what
/// an [`idempotency_key`](crate::RetryPolicy::idempotency_key) adds.
///
/// It answers the question that [`Methods::Idempotent`](crate::Methods::Idempotent) asks, and no
/// other: under `Any` and `Listed` the rule has spoken, so `ReplaySafe(false)` does not keep a
/// request from being sent again, and `ReplaySafe(true)` puts no method on a list. To switch
/// retries off for one request, give it [`RetryRule::never`](crate::RetryRule::never).
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use reqwest_retry_rules::{ReplaySafe, ResponseExt, RetryRule};
///
/// // A client that gets its answers from a function, in place of the network.
/// let client = client(RetryRule::transient(), |_| status(503));
/// // A search that happens to be a POST may be repeated.
/// let search = client.post("http://127.0.0.1/search").with_extension(ReplaySafe(true));
/// assert_eq!(search.send().await?.attempts(), 4);
/// assert_eq!(client.post("http://127.0.0.1/orders").send().await?.attempts(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReplaySafe(pub bool);

/// Bounds one send, waits and attempts together, from its start: it replaces
/// [`RetryPolicy::total_timeout`](crate::RetryPolicy::total_timeout) for a single request or a task.
///
/// The nearest one counts, whether it is longer or shorter: that of the request, then that of the
/// task, then that of the policy, even of a policy that the request itself carries. A
/// [`Deadline`] bounds the send besides. Zero sends nothing. One that is too long for the clock is
/// no bound, so `TotalTimeout(Duration::MAX)` lifts the bound that was set further out.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use std::time::Duration;
/// use reqwest_retry_rules::{
///     ResponseExt, RetryPolicy, RetryReport, RetryRule, StopReason, TotalTimeout,
/// };
///
/// // Answers, in place of the network.
/// let busy = |_: &reqwest::Request| {
///     http::Response::builder().status(503).header("retry-after", "10").body("").unwrap()
/// };
/// let policy = RetryPolicy::from(RetryRule::transient()).total_timeout(Duration::from_secs(20));
/// let client = client(policy, busy);
/// let get = || client.get("http://127.0.0.1/");
///
/// // One wait of 10 s fits into the 20 s of the policy.
/// assert_eq!(get().send().await?.attempts(), 2);
/// // Into 2 s none does, so the answer comes back at once.
/// let response = get().with_extension(TotalTimeout(Duration::from_secs(2))).send().await?;
/// let reason = response.retry_report().and_then(RetryReport::stop_reason);
/// assert_eq!(reason, Some(StopReason::Budget(Duration::from_secs(10))));
/// // A report that takes long has more time than the rest.
/// let response = get().with_extension(TotalTimeout(Duration::from_secs(60))).send().await?;
/// assert_eq!(response.attempts(), 4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TotalTimeout(pub Duration);

/// The moment by which a send must be over, on tokio's clock: one `Deadline` can bound several
/// sends together.
///
/// It bounds a send besides its [`TotalTimeout`] or the policy's
/// [`total_timeout`](crate::RetryPolicy::total_timeout). Of all deadlines that are set the earliest
/// holds, so a nearer one can only be shorter.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
/// use reqwest_retry_rules::Deadline;
///
/// assert!(Deadline::after(Duration::from_secs(1)) < Deadline::after(Duration::from_secs(60)));
/// assert!(Deadline::after(Duration::from_secs(60)) < Deadline::after(Duration::MAX));
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// The moment `duration` from now; one that is too far away for the clock is never reached.
    pub fn after(duration: Duration) -> Self {
        Self(clock::after(duration))
    }

    /// This moment of tokio's clock; `None` if it is never reached.
    pub(super) fn moment(self) -> Option<Instant> {
        self.0
    }
}

impl PartialOrd for Deadline {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Deadline {
    fn cmp(&self, other: &Self) -> Ordering {
        // A moment comes before never.
        match (self.0, other.0) {
            (Some(own), Some(other)) => own.cmp(&other),
            (own, other) => own.is_none().cmp(&other.is_none()),
        }
    }
}

impl From<std::time::Instant> for Deadline {
    fn from(moment: std::time::Instant) -> Self {
        Self(Some(Instant::from_std(moment)))
    }
}
