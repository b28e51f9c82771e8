//! The wait that a server asks for: which headers are read, and what becomes of their wait.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};

mod date;
mod header;
mod text;

pub(crate) use date::http_date;
pub use header::{WaitFormat, WaitHeader};
use text::retry_after;
pub use text::{parse_retry_after, retry_after_ms};

/// How the wait that a server asks for is treated, in `Retry-After` (RFC 9110, 10.2.3) or in a
/// header of its own.
///
/// If a header occurs more than once, its first value that can be read counts. A header without such
/// a value is as if absent. If nothing is asked, the [`Backoff`](crate::Backoff) applies.
///
/// # Defaults
///
/// No header is read, any wait is accepted, zero means at once, the server's wait replaces the
/// backoff, and nothing is added to it.
///
/// # Examples
///
/// A rate-limited POST waits as long as the server asks, while there are retries left:
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, HeaderValue, Method, StatusCode};
/// use reqwest_retry_rules::{
///     Attempt, AttemptOutcome, Decision, Methods, RetryAfter, RetryAfterCap, RetryAfterSource,
///     RetryRule, StatusRule, StopReason,
/// };
///
/// let rule = RetryRule {
///     max_retries: 3,
///     statuses: vec![StatusRule::new([429], Methods::Any)],
///     retry_after: RetryAfter {
///         source: RetryAfterSource::Header,
///         cap: RetryAfterCap::StopAbove(Duration::from_secs(60)),
///         ..RetryAfter::default()
///     },
///     ..RetryRule::never()
/// };
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", HeaderValue::from_static("2"));
/// let outcome =
///     AttemptOutcome::Response { status: StatusCode::TOO_MANY_REQUESTS, headers: &headers };
///
/// let first = Attempt::new(&Method::POST);
/// assert_eq!(rule.decide(&outcome, &first), Decision::Wait(Duration::from_secs(2)));
/// let last = Attempt { attempt: 3, ..first };
/// assert_eq!(rule.decide(&outcome, &last), Decision::Stop(StopReason::Exhausted));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RetryAfter {
    /// Headers of the service's own, read before the standard ones and whatever `source` says;
    /// the first that can be read counts.
    pub headers: Vec<WaitHeader>,
    /// The standard headers that are read.
    pub source: RetryAfterSource,
    /// What becomes of a wait that is too long.
    pub cap: RetryAfterCap,
    /// Whether a wait of zero means the backoff, as if the server had asked for nothing: for
    /// servers that answer `Retry-After: 0` in an outage, or a date that has passed.
    pub zero_means_backoff: bool,
    /// How the server's wait meets the backoff.
    pub role: RetryAfterRole,
    /// The most that is added at random to the server's wait, in thousandths of it: 100 makes 10 s
    /// anything in `[10 s, 11 s)`. So clients that were given the same moment do not all come back at
    /// once. The sum may exceed the cap.
    pub spread: u32,
}

/// The standard headers that are read for a wait.
///
/// The default is [`RetryAfterSource::Ignore`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, HeaderValue, Method, StatusCode};
/// use reqwest_retry_rules::{
///     Attempt, AttemptOutcome, Decision, RetryAfter, RetryAfterSource, RetryRule,
/// };
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", HeaderValue::from_static("2"));
/// headers.insert("retry-after-ms", HeaderValue::from_static("1250"));
/// let outcome =
///     AttemptOutcome::Response { status: StatusCode::SERVICE_UNAVAILABLE, headers: &headers };
///
/// let decide = |source| {
///     let retry_after = RetryAfter { source, ..RetryAfter::default() };
///     let rule = RetryRule { retry_after, ..RetryRule::transient() };
///     rule.decide(&outcome, &Attempt { random: 0.5, ..Attempt::new(&Method::GET) })
/// };
/// let wait = |ms| Decision::Wait(Duration::from_millis(ms));
/// assert_eq!(decide(RetryAfterSource::Ignore), wait(50)); // the backoff
/// assert_eq!(decide(RetryAfterSource::Header), wait(2000));
/// assert_eq!(decide(RetryAfterSource::MsThenHeader), wait(1250));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RetryAfterSource {
    /// None of them.
    #[default]
    Ignore,
    /// `Retry-After` (RFC 9110, 10.2.3).
    Header,
    /// `retry-after-ms` if it can be read, else `Retry-After`, as [`retry_after_ms`] does.
    MsThenHeader,
}

/// What becomes of a wait that is longer than one cares to wait.
///
/// The wait that is compared is the one that the server asks for, before
/// [`RetryAfter::spread`]. The default is [`RetryAfterCap::NoCap`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use http::Method;
/// use reqwest_retry_rules::{
///     Attempt, AttemptOutcome, Decision, RetryAfter, RetryAfterCap, RetryRule, StopReason,
///     TransportError,
/// };
///
/// let asked = Duration::from_secs(90);
/// let attempt =
///     Attempt { random: 0.5, server_delay: Some(asked), ..Attempt::new(&Method::GET) };
/// let decide = |cap| {
///     let retry_after = RetryAfter { cap, ..RetryAfter::default() };
///     let rule = RetryRule { retry_after, ..RetryRule::transient() };
///     rule.decide(&AttemptOutcome::Failure(TransportError::Closed), &attempt)
/// };
/// let minute = Duration::from_secs(60);
/// assert_eq!(
///     decide(RetryAfterCap::StopAbove(minute)),
///     Decision::Stop(StopReason::RetryAfterTooLong(asked)),
/// );
/// assert_eq!(
///     decide(RetryAfterCap::BackoffAbove(minute)),
///     Decision::Wait(Duration::from_millis(50)),
/// );
/// assert_eq!(decide(RetryAfterCap::NoCap), Decision::Wait(asked));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RetryAfterCap {
    /// Above this the send stops, with
    /// [`StopReason::RetryAfterTooLong`](crate::StopReason::RetryAfterTooLong).
    StopAbove(Duration),
    /// Above this the backoff applies, as if the server had asked for nothing.
    BackoffAbove(Duration),
    /// Above this it is as if the server had asked for this much.
    ClampTo(Duration),
    /// Any wait is accepted, even one of years.
    #[default]
    NoCap,
}

/// How the server's wait meets the backoff.
///
/// The default is [`RetryAfterRole::Replace`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use http::Method;
/// use reqwest_retry_rules::{
///     Attempt, AttemptOutcome, Decision, RetryAfter, RetryAfterRole, RetryRule, TransportError,
/// };
///
/// let asked = Some(Duration::from_millis(10));
/// let attempt = Attempt { random: 0.5, server_delay: asked, ..Attempt::new(&Method::GET) };
/// let decide = |role| {
///     let retry_after = RetryAfter { role, ..RetryAfter::default() };
///     let rule = RetryRule { retry_after, ..RetryRule::transient() };
///     rule.decide(&AttemptOutcome::Failure(TransportError::Closed), &attempt)
/// };
/// // The backoff would be 50 ms.
/// assert_eq!(decide(RetryAfterRole::Replace), Decision::Wait(Duration::from_millis(10)));
/// assert_eq!(decide(RetryAfterRole::Floor), Decision::Wait(Duration::from_millis(50)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RetryAfterRole {
    /// The server's wait is the wait.
    #[default]
    Replace,
    /// The server's wait or the backoff, whichever is longer.
    Floor,
}

impl RetryAfter {
    /// True if any header is read.
    pub(super) fn reads_headers(&self) -> bool {
        self.source != RetryAfterSource::Ignore || !self.headers.is_empty()
    }

    /// The wait that a response of this status with these headers asks for.
    #[inline]
    pub(super) fn read(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        now: Option<SystemTime>,
    ) -> Option<Duration> {
        self.headers
            .iter()
            .filter(|header| header.is_for(status))
            .find_map(|header| header.read(headers, now))
            .or_else(|| match self.source {
                RetryAfterSource::Ignore => None,
                RetryAfterSource::Header => retry_after(headers, now),
                RetryAfterSource::MsThenHeader => retry_after_ms(headers, now),
            })
    }
}
