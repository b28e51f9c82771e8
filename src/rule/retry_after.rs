use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName};

/// What is made of the wait that a server asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryAfter {
    /// Headers that are looked at before the standard ones.
    pub headers: Vec<WaitHeader>,
    /// The standard headers that are read.
    pub source: RetryAfterSource,
    /// What becomes of a wait that is too long.
    pub cap: RetryAfterCap,
    /// Whether zero is read as if the server had asked for nothing.
    pub zero_means_backoff: bool,
    /// How it meets the backoff.
    pub role: RetryAfterRole,
    /// What is added at random, per mille of what the server asks.
    pub spread: u32,
}

/// The standard headers that are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryAfterSource {
    /// None.
    #[default]
    Ignore,
    /// `Retry-After`.
    Header,
    /// `retry-after-ms`, else `Retry-After`.
    MsThenHeader,
}

/// What becomes of a wait that is too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryAfterCap {
    /// A longer wait ends the send.
    StopAbove(Duration),
    /// A longer wait is replaced by the backoff.
    BackoffAbove(Duration),
    /// Any wait is accepted.
    #[default]
    NoCap,
}

/// How the server's wait meets the backoff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryAfterRole {
    /// The server's wait is the wait.
    #[default]
    Replace,
    /// The larger of the two is the wait.
    Floor,
}

/// A header of a service's own that says when to come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitHeader {
    /// Its name.
    pub name: HeaderName,
    /// How its value is read.
    pub format: WaitFormat,
}

/// How the value of a [`WaitHeader`] is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFormat {
    /// Seconds to wait.
    Seconds,
    /// Milliseconds to wait.
    Millis,
    /// A moment, in seconds since 1970.
    UnixSeconds,
    /// A moment, in milliseconds since 1970.
    UnixMillis,
    /// A moment, as an HTTP date.
    HttpDate,
}

/// Reads the value of a `Retry-After` header.
pub fn parse_retry_after(value: &str, now: Option<SystemTime>) -> Option<Duration> {
    match value.trim().parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(value)
            .ok()?
            .duration_since(now?)
            .ok(),
    }
}

/// The wait that `retry-after-ms` or else `Retry-After` asks for.
pub fn retry_after_ms(headers: &HeaderMap, now: Option<SystemTime>) -> Option<Duration> {
    parse_retry_after(headers.get(http::header::RETRY_AFTER)?.to_str().ok()?, now)
}
