//! What one attempt of a send came to.

use std::fmt;
use std::time::Duration;

use http::StatusCode;

use crate::rule::{TransportError, WaitSource};

/// What one attempt came to, as a report keeps it.
///
/// # Examples
///
/// ```
/// use reqwest_retry_rules::{AttemptResult, TransportError};
///
/// let refused = AttemptResult::Status(http::StatusCode::BAD_GATEWAY);
/// assert_eq!(refused.to_string(), "502");
/// let failed = AttemptResult::Failure(TransportError::Closed);
/// assert_eq!(failed.to_string(), "the connection was closed before the response");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptResult {
    /// A response with this status.
    Status(StatusCode),
    /// A transport failure.
    Failure(TransportError),
    /// An error that is no transport failure: of a middleware further in, of the request itself,
    /// of a redirect policy, of the caller's own body.
    Error,
}

impl AttemptResult {
    /// A short name that stays the same, for metrics and logs: `response` for every status, the
    /// [name](TransportError::name) of a failure, or `error`.
    ///
    /// Into which classes statuses are put is for the caller to say.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::{AttemptResult, TransportError};
    ///
    /// assert_eq!(AttemptResult::Status(http::StatusCode::BAD_GATEWAY).name(), "response");
    /// assert_eq!(AttemptResult::Failure(TransportError::Closed).name(), "closed");
    /// assert_eq!(AttemptResult::Error.name(), "error");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            Self::Status(_) => "response",
            Self::Failure(failure) => failure.name(),
            Self::Error => "error",
        }
    }
}

impl fmt::Display for AttemptResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{}", status.as_u16()),
            Self::Failure(failure) => failure.fmt(f),
            Self::Error => f.write_str("an error that is no transport failure"),
        }
    }
}

/// One attempt of a send, and the wait that followed it.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use reqwest_retry_rules::{AttemptResult, ResponseExt, RetryRule, WaitSource};
///
/// // Answers, in place of the network.
/// let busy = |_: &reqwest::Request| {
///     http::Response::builder().status(503).header("retry-after-ms", "5").body("").unwrap()
/// };
/// let rule = RetryRule { max_retries: 1, ..RetryRule::transient() };
/// let response = client(rule, busy).get("http://127.0.0.1/").send().await?;
/// let report = response.retry_report().ok_or("a report")?;
///
/// let (first, last) = (&report.records()[0], &report.records()[1]);
/// assert_eq!(first.result(), AttemptResult::Status(http::StatusCode::SERVICE_UNAVAILABLE));
/// assert_eq!(first.wait(), Some(Duration::from_millis(5)));
/// assert_eq!(first.wait_source(), Some(WaitSource::Server));
/// assert_eq!(last.wait(), None);
/// assert_eq!(last.retry_after(), Some(Duration::from_millis(5))); // asked, and not waited for
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttemptRecord {
    result: AttemptResult,
    elapsed: Duration,
    pub(in crate::middleware) asked: Option<Duration>,
    pub(in crate::middleware) wait: Option<(Duration, WaitSource)>,
}

impl AttemptRecord {
    /// An attempt after which no wait was asked for or begun so far.
    pub(in crate::middleware) fn new(result: AttemptResult, elapsed: Duration) -> Self {
        Self {
            result,
            elapsed,
            asked: None,
            wait: None,
        }
    }

    /// What the attempt came to.
    pub fn result(&self) -> AttemptResult {
        self.result
    }

    /// How long the attempt itself took, without the wait after it.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// The wait that was begun after this attempt, in whole milliseconds; `None` if there was none.
    /// The last attempt has one only if time ran out during the wait, or no body could be made for
    /// the next attempt.
    pub fn wait(&self) -> Option<Duration> {
        self.wait.map(|(wait, _)| wait)
    }

    /// Where the wait came from; `None` if there was none.
    pub fn wait_source(&self) -> Option<WaitSource> {
        self.wait.map(|(_, source)| source)
    }

    /// How long the server asked to wait, as the rule reads it, whether or not it was waited for.
    pub fn retry_after(&self) -> Option<Duration> {
        self.asked
    }
}
