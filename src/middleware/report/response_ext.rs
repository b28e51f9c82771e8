//! What is asked of a final response.

use std::time::{Duration, SystemTime};

use super::RetryReport;
use crate::middleware::response::answered_at;
use crate::rule::retry_after_ms;

/// What can be asked of a final response.
///
/// Implemented for [`reqwest::Response`], and for nothing else.
pub trait ResponseExt: sealed::Sealed {
    /// The report of the send; `None` if the first response was an answer, or if nothing in the rule
    /// could have retried the request.
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
    /// A date is measured against the response's own `Date` plus its `Age`
    /// ([`ResponseHead::date`](crate::ResponseHead::date)) if that can be read, else against `now`.
    /// Without either the result is `None`.
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
