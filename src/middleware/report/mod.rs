//! What happened in a send, for the caller to read afterwards.

mod attempt;
mod label;
mod log;
mod records;
mod resend_count;
mod response_ext;

pub use self::attempt::{AttemptRecord, AttemptResult};
pub use self::label::RetryLabel;
pub use self::log::RetryLog;
pub(super) use self::records::Records;
pub use self::resend_count::ResendCount;
pub use self::response_ext::ResponseExt;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::rule::StopReason;

/// What happened in a send: every attempt, every wait, and why it stopped.
///
/// It is in the extensions of the final response and in the request's `Extensions` after a retry,
/// and after a first attempt that failed or was refused and was not retried. To read it after a
/// send that ended in an error, put a [`RetryLog`] into the request's extensions. A clone costs no
/// allocation.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use reqwest_retry_rules::{ResponseExt, RetryRule, StopReason};
///
/// // Answers, in place of the network.
/// let busy = |_: &reqwest::Request| {
///     http::Response::builder().status(503).header("retry-after-ms", "5").body("").unwrap()
/// };
/// let response = client(RetryRule::transient(), busy).get("http://127.0.0.1/").send().await?;
/// let report = response.retry_report().ok_or("a report")?;
/// assert_eq!(report.attempts(), 4);
/// assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
/// assert!(report.retries_exhausted());
/// assert_eq!(report.retry_after(), Some(Duration::from_millis(5)));
/// assert_eq!(report.elapsed(), Duration::from_millis(15)); // three waits
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RetryReport(Arc<Inner>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Inner {
    records: Vec<AttemptRecord>,
    attempts: u32,
    stop: Option<StopReason>,
    elapsed: Duration,
    paused: Duration,
    label: Option<RetryLabel>,
}

impl RetryReport {
    pub(in crate::middleware) fn new(
        records: Records,
        stop: Option<StopReason>,
        elapsed: Duration,
        paused: Duration,
        label: Option<RetryLabel>,
    ) -> Self {
        Self(Arc::new(Inner {
            attempts: records.count(),
            records: records.into_kept(),
            stop,
            elapsed,
            paused,
            label,
        }))
    }

    /// Every attempt in turn, the first included. Of more than a thousand only the first and the
    /// last five hundred are kept, while [`attempts`](Self::attempts) counts all.
    pub fn records(&self) -> &[AttemptRecord] {
        &self.0.records
    }

    /// How many attempts were made, the first included: 0 only if none could begin, since the total
    /// timeout had run out or the origin was paused for longer.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Why no further attempt was made; `None` if the last response was an answer.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.0.stop
    }

    /// True if a retry was wanted, but none was left: the number of retries or a time limit was
    /// used up, or the server asked for a longer wait than the rule accepts.
    pub fn retries_exhausted(&self) -> bool {
        self.0.stop.is_some_and(|stop| stop.retries_exhausted())
    }

    /// How long the server asked to wait with its last answer, as the rule reads it.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.records.last().and_then(AttemptRecord::retry_after)
    }

    /// How long the send took, attempts and waits together, up to the end of its last attempt.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }

    /// How long attempts were held back since the origin had asked for rest, besides the waits of the
    /// records: zero unless the policy [pauses origins](crate::RetryPolicy::pause_origins).
    pub fn paused(&self) -> Duration {
        self.0.paused
    }

    /// The name that the caller gave the call, if any.
    pub fn label(&self) -> Option<&RetryLabel> {
        self.0.label.as_ref()
    }
}

impl fmt::Debug for RetryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryReport")
            .field("records", &self.0.records)
            .field("attempts", &self.0.attempts)
            .field("stop", &self.0.stop)
            .field("elapsed", &self.0.elapsed)
            .field("paused", &self.0.paused)
            .field("label", &self.0.label)
            .finish()
    }
}
