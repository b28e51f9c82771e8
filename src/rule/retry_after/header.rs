//! A header of a service's own that asks for a wait, and the formats of its value.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, StatusCode};

use super::date::{until, until_date};
use super::text::{first_that_reads, millis, seconds, trimmed};
use crate::rule::StatusMatch;

/// A header of a service's own that says how long to wait, or until when.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::{HeaderMap, HeaderName, HeaderValue};
/// use reqwest_retry_rules::{WaitFormat, WaitHeader};
///
/// let reset = WaitHeader {
///     name: HeaderName::from_static("x-ratelimit-reset"),
///     format: WaitFormat::UnixSeconds,
///     statuses: vec![],
/// };
/// let mut headers = HeaderMap::new();
/// headers.insert("x-ratelimit-reset", HeaderValue::from_static("784111779"));
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_776);
/// assert_eq!(reset.read(&headers, Some(now)), Some(Duration::from_secs(3)));
/// // A moment means nothing without the time of day.
/// assert_eq!(reset.read(&headers, None), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WaitHeader {
    /// Its name.
    pub name: HeaderName,
    /// How its value is read.
    pub format: WaitFormat,
    /// The statuses of the responses in which it is read; if there are none, it is read in every
    /// response.
    pub statuses: Vec<StatusMatch>,
}

impl WaitHeader {
    /// True if it is read in a response of this status.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::{HeaderName, StatusCode};
    /// use reqwest_retry_rules::{StatusMatch, WaitFormat, WaitHeader};
    ///
    /// let reset = WaitHeader {
    ///     name: HeaderName::from_static("x-ratelimit-reset"),
    ///     format: WaitFormat::UnixSeconds,
    ///     statuses: vec![StatusMatch::Code(403), StatusMatch::Code(429)],
    /// };
    /// assert!(reset.is_for(StatusCode::FORBIDDEN));
    /// assert!(!reset.is_for(StatusCode::SERVICE_UNAVAILABLE));
    /// assert!(WaitHeader { statuses: vec![], ..reset }.is_for(StatusCode::SERVICE_UNAVAILABLE));
    /// ```
    #[inline]
    pub fn is_for(&self, status: StatusCode) -> bool {
        self.statuses.is_empty() || self.statuses.iter().any(|each| each.contains(status))
    }

    /// The wait that its first value that can be read asks for; `None` if there is none. Without
    /// `now` a moment cannot be read.
    ///
    /// It looks at no status: see [`is_for`](Self::is_for).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::{HeaderMap, HeaderName, HeaderValue};
    /// use reqwest_retry_rules::{WaitFormat, WaitHeader};
    ///
    /// let name = HeaderName::from_static("x-backoff");
    /// let header = WaitHeader { name, format: WaitFormat::Millis, statuses: vec![] };
    /// let mut headers = HeaderMap::new();
    /// assert_eq!(header.read(&headers, None), None);
    /// headers.insert("x-backoff", HeaderValue::from_static("1500"));
    /// assert_eq!(header.read(&headers, None), Some(Duration::from_millis(1500)));
    /// ```
    pub fn read(&self, headers: &HeaderMap, now: Option<SystemTime>) -> Option<Duration> {
        first_that_reads(headers, &self.name, |value| self.format.parse(value, now))
    }
}

/// How the value of a [`WaitHeader`](crate::WaitHeader) is read.
///
/// Numbers are decimals as in [`parse_retry_after`](crate::parse_retry_after), a moment that has
/// passed is a wait of zero, and one that comes without the time of day to compare it with counts as
/// absent.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::{HeaderMap, HeaderName, HeaderValue};
/// use reqwest_retry_rules::{WaitFormat, WaitHeader};
///
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_775);
/// let read = |format, value| {
///     let name = HeaderName::from_static("x-reset");
///     let headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static(value))]);
///     let header = WaitHeader { name, format, statuses: vec![] };
///     header.read(&headers, Some(now)).map(|wait| wait.as_millis())
/// };
/// assert_eq!(read(WaitFormat::Seconds, "2"), Some(2000));
/// assert_eq!(read(WaitFormat::Millis, "2"), Some(2));
/// assert_eq!(read(WaitFormat::UnixSeconds, "784111777"), Some(2000));
/// assert_eq!(read(WaitFormat::UnixMillis, "784111775002"), Some(2));
/// assert_eq!(read(WaitFormat::HttpDate, "Sun, 06 Nov 1994 08:49:37 GMT"), Some(2000));
/// assert_eq!(read(WaitFormat::UnixSeconds, "2"), Some(0)); // long ago
/// assert_eq!(read(WaitFormat::Seconds, "soon"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitFormat {
    /// Seconds to wait.
    Seconds,
    /// Milliseconds to wait.
    Millis,
    /// A moment, in seconds since 1970-01-01 00:00 UTC.
    UnixSeconds,
    /// A moment, in milliseconds since 1970-01-01 00:00 UTC.
    UnixMillis,
    /// A moment, as an HTTP date (RFC 9110, 5.6.7).
    HttpDate,
}

impl WaitFormat {
    pub(super) fn parse(self, value: &str, now: Option<SystemTime>) -> Option<Duration> {
        let value = trimmed(value);
        match self {
            WaitFormat::Seconds => seconds(value),
            WaitFormat::Millis => millis(value),
            WaitFormat::UnixSeconds => Some(until_unix(seconds(value)?, now?)),
            WaitFormat::UnixMillis => Some(until_unix(millis(value)?, now?)),
            WaitFormat::HttpDate => until_date(value, now?),
        }
    }
}

fn until_unix(moment: Duration, now: SystemTime) -> Duration {
    // If the clock cannot hold the moment, it is as far off as can be.
    SystemTime::UNIX_EPOCH
        .checked_add(moment)
        .map_or(moment, |moment| until(moment, now))
}
