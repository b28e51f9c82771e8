//! What happened in a send, for the caller to read afterwards.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http::StatusCode;

use super::response::answered_at;
use crate::rule::{StopReason, TransportError, WaitSource, retry_after_ms};

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
    pub(crate) result: AttemptResult,
    pub(crate) elapsed: Duration,
    pub(crate) asked: Option<Duration>,
    pub(crate) wait: Option<(Duration, WaitSource)>,
}

impl AttemptRecord {
    /// An attempt that nothing was asked after and no wait followed, so far.
    pub(crate) fn new(result: AttemptResult, elapsed: Duration) -> Self {
        Self {
            result,
            elapsed,
            asked: None,
            wait: None,
        }
    }

    /// Whether it proves that nothing was processed.
    pub(crate) fn is_unsent(&self) -> bool {
        matches!(self.result, AttemptResult::Failure(failure) if failure.is_unsent())
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
    stop: Option<StopReason>,
    elapsed: Duration,
    label: Option<RetryLabel>,
}

impl RetryReport {
    pub(crate) fn new(
        records: Vec<AttemptRecord>,
        stop: Option<StopReason>,
        elapsed: Duration,
        label: Option<RetryLabel>,
    ) -> Self {
        Self(Arc::new(Inner {
            records,
            stop,
            elapsed,
            label,
        }))
    }

    /// Every attempt in turn, the first included.
    pub fn records(&self) -> &[AttemptRecord] {
        &self.0.records
    }

    /// How many attempts were made, the first included: 0 only if the total timeout ran out before
    /// the first.
    pub fn attempts(&self) -> u32 {
        u32::try_from(self.0.records.len()).unwrap_or(u32::MAX)
    }

    /// Why no further attempt was made; `None` if the last response was an answer.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.0.stop
    }

    /// Whether a retry was wanted, but none was left: the number of retries or a time limit was
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

    /// The name that the caller gave the call, if any.
    pub fn label(&self) -> Option<&RetryLabel> {
        self.0.label.as_ref()
    }
}

impl fmt::Debug for RetryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryReport")
            .field("records", &self.0.records)
            .field("stop", &self.0.stop)
            .field("elapsed", &self.0.elapsed)
            .field("label", &self.0.label)
            .finish()
    }
}

/// A handle that holds the [`RetryReport`] of the last send that it went with.
///
/// Put a clone into the request's extensions and keep the other. It also works when the send ended
/// in an error, or succeeded at the first attempt.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # rustls::crypto::ring::default_provider().install_default().ok();
/// use reqwest_middleware::ClientBuilder;
/// use reqwest_retry_rules::{RetryLog, RetryMiddleware, RetryRule, StopReason, client_builder};
///
/// # let refused = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
/// let client = ClientBuilder::new(client_builder().build()?)
///     .with(RetryMiddleware::new(RetryRule::transient()))
///     .build();
/// let log = RetryLog::new();
/// let sent = client.get(format!("http://{refused}/")).with_extension(log.clone()).send().await;
/// assert!(sent.is_err());
/// let report = log.report().ok_or("no report")?;
/// assert_eq!(report.attempts(), 4);
/// assert_eq!(report.stop_reason(), Some(StopReason::Exhausted));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct RetryLog(Arc<Mutex<Option<RetryReport>>>);

impl RetryLog {
    /// An empty handle.
    pub fn new() -> Self {
        Self::default()
    }

    /// The report of the last send that has ended, or `None` before one has.
    pub fn report(&self) -> Option<RetryReport> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set(&self, report: RetryReport) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}

/// A name for a call, in events and reports.
///
/// # Examples
///
/// ```
/// use reqwest_retry_rules::RetryLabel;
///
/// assert_eq!(RetryLabel::from("create-invoice").as_str(), "create-invoice");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetryLabel(Cow<'static, str>);

impl RetryLabel {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for RetryLabel {
    fn from(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl From<Cow<'static, str>> for RetryLabel {
    fn from(name: Cow<'static, str>) -> Self {
        Self(name)
    }
}

impl AsRef<str> for RetryLabel {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<String> for RetryLabel {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

impl fmt::Display for RetryLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How many times the request has been sent before: 1 on the first retry.
///
/// It is in the request's `Extensions` while a retry is on its way, and absent on the first
/// attempt, as OpenTelemetry's `http.request.resend_count` is; a middleware further in reads it to
/// label its spans.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use std::sync::{Arc, Mutex};
/// use http::Extensions;
/// use reqwest::{Request, Response};
/// use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
/// use reqwest_retry_rules::{ResendCount, RetryMiddleware, RetryRule};
///
/// #[derive(Default)]
/// struct Spans(Mutex<Vec<Option<u32>>>);
///
/// #[async_trait::async_trait]
/// impl Middleware for Spans {
///     async fn handle(
///         &self,
///         request: Request,
///         extensions: &mut Extensions,
///         next: Next<'_>,
///     ) -> Result<Response> {
///         let count = extensions.get::<ResendCount>().map(|count| count.0);
///         self.0.lock().unwrap().push(count); // or name a span after it
///         next.run(request, extensions).await
///     }
/// }
///
/// # rustls::crypto::ring::default_provider().install_default().ok();
/// let spans = Arc::new(Spans::default());
/// let client = ClientBuilder::new(reqwest::Client::new())
///     .with(RetryMiddleware::new(RetryRule::transient()))
///     .with_arc(spans.clone())
/// #   .with(Answers(|_: &Request| status(503)))
///     .build();
/// client.get("http://127.0.0.1/").send().await?; // answered with 503 each time
/// assert_eq!(*spans.0.lock().unwrap(), [None, Some(1), Some(2), Some(3)]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResendCount(pub u32);

/// What can be asked of a final response.
///
/// Implemented for [`reqwest::Response`], and for nothing else.
pub trait ResponseExt: sealed::Sealed {
    /// The report of the send; `None` if the first response was an answer.
    fn retry_report(&self) -> Option<&RetryReport>;

    /// How many attempts it took: 1 if there was no retry.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::ResponseExt;
    ///
    /// let response = reqwest::Response::from(http::Response::new("at once"));
    /// assert_eq!(response.attempts(), 1);
    /// ```
    fn attempts(&self) -> u32;

    /// How long the server asks to wait, from `retry-after-ms` or `Retry-After` (RFC 9110,
    /// 10.2.3), whatever the status and whether or not a rule acted on it.
    ///
    /// A date is measured against the response's own `Date` header if that can be read, else
    /// against `now`; without either the result is `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use reqwest_retry_rules::ResponseExt;
    ///
    /// let response = http::Response::builder()
    ///     .status(404)
    ///     .header("retry-after", "7")
    ///     .body("")?;
    /// let response = reqwest::Response::from(response);
    /// assert_eq!(response.retry_after(None), Some(Duration::from_secs(7)));
    /// # Ok::<(), http::Error>(())
    /// ```
    fn retry_after(&self, now: Option<SystemTime>) -> Option<Duration>;
}

impl ResponseExt for reqwest::Response {
    fn retry_report(&self) -> Option<&RetryReport> {
        self.extensions().get()
    }

    fn attempts(&self) -> u32 {
        self.retry_report().map_or(1, RetryReport::attempts)
    }

    fn retry_after(&self, now: Option<SystemTime>) -> Option<Duration> {
        retry_after_ms(self.headers(), answered_at(self.headers()).or(now))
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for reqwest::Response {}
}
