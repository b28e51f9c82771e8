use std::ops::RangeInclusive;

use http::StatusCode;

use super::{Backoff, Methods};

/// The methods for which a response with one of these statuses is retried.
///
/// In [`RetryRule::statuses`](crate::RetryRule::statuses) the first rule that contains a status
/// decides about it, so an exception comes before the rule that it is an exception to.
///
/// # Examples
///
/// Every 5xx but 501, for idempotent methods:
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, Method, StatusCode};
/// use reqwest_retry_rules::{
///     Attempt, AttemptOutcome, Decision, Methods, RetryRule, StatusRule, StopReason,
/// };
///
/// let rule = RetryRule {
///     max_retries: 3,
///     statuses: vec![
///         StatusRule::new([501], Methods::Never),
///         StatusRule::new([500..=599], Methods::Idempotent),
///     ],
///     ..RetryRule::never()
/// };
/// let headers = HeaderMap::new();
/// let answer = |status, method| {
///     let outcome = AttemptOutcome::Response { status, headers: &headers };
///     rule.decide(&outcome, &Attempt::new(method))
/// };
/// assert_eq!(answer(StatusCode::BAD_GATEWAY, &Method::GET), Decision::Wait(Duration::ZERO));
/// assert_eq!(
///     answer(StatusCode::BAD_GATEWAY, &Method::POST),
///     Decision::Stop(StopReason::MethodNotAllowed),
/// );
/// assert_eq!(
///     answer(StatusCode::NOT_IMPLEMENTED, &Method::GET),
///     Decision::Stop(StopReason::NotRetryable),
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatusRule {
    /// The statuses that this is about.
    pub statuses: Vec<StatusMatch>,
    /// The methods for which they are retried.
    pub methods: Methods,
    /// The backoff after one of these statuses, in place of
    /// [`RetryRule::backoff`](crate::RetryRule::backoff); `None` leaves it at that.
    pub backoff: Option<Backoff>,
}

impl StatusRule {
    /// The row for `statuses` and `methods`, with the rule's backoff.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::StatusCode;
    /// use reqwest_retry_rules::{Methods, StatusMatch, StatusRule};
    ///
    /// let limited = StatusRule::new([429], Methods::Any);
    /// assert_eq!(limited.statuses, [StatusMatch::Code(429)]);
    /// assert_eq!(limited.backoff, None);
    ///
    /// let failing = StatusRule::new([500..=599], Methods::Idempotent);
    /// assert!(failing.contains(StatusCode::BAD_GATEWAY));
    /// ```
    pub fn new(
        statuses: impl IntoIterator<Item = impl Into<StatusMatch>>,
        methods: Methods,
    ) -> Self {
        StatusRule {
            statuses: statuses.into_iter().map(Into::into).collect(),
            methods,
            backoff: None,
        }
    }

    /// True if `status` is one of its statuses.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::StatusCode;
    /// use reqwest_retry_rules::{Methods, StatusMatch, StatusRule};
    ///
    /// let statuses = [StatusMatch::Code(429), StatusMatch::Range(502, 504)];
    /// let rule = StatusRule::new(statuses, Methods::Any);
    /// assert!(rule.contains(StatusCode::BAD_GATEWAY));
    /// assert!(!rule.contains(StatusCode::INTERNAL_SERVER_ERROR));
    /// ```
    pub fn contains(&self, status: StatusCode) -> bool {
        self.statuses.iter().any(|each| each.contains(status))
    }
}

/// One status, or every status from one to another.
///
/// The numbers are status codes (RFC 9110, 15), 100 to 999. Others, and a range that runs
/// backwards, contain nothing, and [`RetryRule::validate`](crate::RetryRule::validate) reports
/// them.
///
/// # Examples
///
/// ```
/// use http::StatusCode;
/// use reqwest_retry_rules::StatusMatch;
///
/// assert!(StatusMatch::Code(503).contains(StatusCode::SERVICE_UNAVAILABLE));
/// assert!(StatusMatch::Range(500, 503).contains(StatusCode::SERVICE_UNAVAILABLE));
/// assert!(!StatusMatch::Range(503, 500).contains(StatusCode::SERVICE_UNAVAILABLE));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusMatch {
    /// This status.
    Code(u16),
    /// Every status from the first to the last, both included.
    Range(u16, u16),
}

impl StatusMatch {
    /// True if `status` is this status, or in this range.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::StatusCode;
    /// use reqwest_retry_rules::StatusMatch;
    ///
    /// let range = StatusMatch::Range(500, 599);
    /// assert!(range.contains(StatusCode::INTERNAL_SERVER_ERROR));
    /// assert!(!range.contains(StatusCode::NOT_FOUND));
    /// ```
    pub fn contains(&self, status: StatusCode) -> bool {
        match *self {
            StatusMatch::Code(code) => status.as_u16() == code,
            StatusMatch::Range(first, last) => (first..=last).contains(&status.as_u16()),
        }
    }

    /// The status codes in it, from 100 to 999.
    pub(super) fn codes(self) -> RangeInclusive<u16> {
        let (first, last) = match self {
            StatusMatch::Code(code) => (code, code),
            StatusMatch::Range(first, last) => (first, last),
        };
        first.max(100)..=last.min(999)
    }
}

impl From<u16> for StatusMatch {
    /// This status alone.
    fn from(code: u16) -> Self {
        StatusMatch::Code(code)
    }
}

impl From<StatusCode> for StatusMatch {
    /// This status alone.
    fn from(status: StatusCode) -> Self {
        StatusMatch::Code(status.as_u16())
    }
}

impl From<RangeInclusive<u16>> for StatusMatch {
    /// Every status from the first to the last, both included.
    fn from(range: RangeInclusive<u16>) -> Self {
        let (first, last) = range.into_inner();
        StatusMatch::Range(first, last)
    }
}
