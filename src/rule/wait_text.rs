//! The texts in which a server says how long to wait.

use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName};

use super::millis::floored;

static RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// How the value of a [`WaitHeader`](crate::WaitHeader) is read.
///
/// Numbers are decimals as in [`parse_retry_after`], a moment that has passed is a wait of zero,
/// and one that comes without the time of day to compare it with counts as absent.
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
///     WaitHeader { name, format, statuses: vec![] }.read(&headers, Some(now)).map(|wait| wait.as_millis())
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

/// Reads the value of a `Retry-After` header (RFC 9110, 10.2.3): seconds, or with `now` an HTTP
/// date.
///
/// Seconds are ASCII decimal digits, and may have a fraction, as some servers send it; fractions of
/// a millisecond are dropped, and a number above `u64::MAX` milliseconds counts as that many. A
/// date comes in any of the three forms of RFC 9110, 5.6.7, is as strict as the `httpdate` crate
/// (English names, the right weekday, GMT, nothing before 1970), and may name a leap second,
/// which is the second after it; one that has passed is a wait of zero. Spaces, tabs and line
/// ends around the value are ignored. Anything else is `None`.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use reqwest_retry_rules::parse_retry_after;
///
/// assert_eq!(parse_retry_after("120", None), Some(Duration::from_secs(120)));
/// assert_eq!(parse_retry_after("1.5", None), Some(Duration::from_millis(1500)));
///
/// let date = "Sun, 06 Nov 1994 08:49:37 GMT";
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_767);
/// assert_eq!(parse_retry_after(date, Some(now)), Some(Duration::from_secs(10)));
/// assert_eq!(parse_retry_after(date, None), None);
///
/// for unreadable in ["-1", "1e3", "0x10", "1m0s", ".5", "soon", ""] {
///     assert_eq!(parse_retry_after(unreadable, Some(now)), None);
/// }
/// ```
pub fn parse_retry_after(value: &str, now: Option<SystemTime>) -> Option<Duration> {
    let value = trimmed(value);
    match value.as_bytes().first() {
        Some(b'0'..=b'9') => seconds(value),
        _ => until_date(value, now?),
    }
}

/// The wait that `retry-after-ms` asks for, or where that is absent or cannot be read,
/// `Retry-After`.
///
/// `retry-after-ms` holds milliseconds, as decimals like those of [`parse_retry_after`], which
/// reads the other. A header that occurs twice counts by its first value.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, HeaderValue};
/// use reqwest_retry_rules::retry_after_ms;
///
/// let mut headers = HeaderMap::new();
/// assert_eq!(retry_after_ms(&headers, None), None);
/// headers.insert("retry-after", HeaderValue::from_static("2"));
/// assert_eq!(retry_after_ms(&headers, None), Some(Duration::from_secs(2)));
/// headers.insert("retry-after-ms", HeaderValue::from_static("1250"));
/// assert_eq!(retry_after_ms(&headers, None), Some(Duration::from_millis(1250)));
/// headers.insert("retry-after-ms", HeaderValue::from_static("-1"));
/// assert_eq!(retry_after_ms(&headers, None), Some(Duration::from_secs(2)));
/// ```
#[inline]
pub fn retry_after_ms(headers: &HeaderMap, now: Option<SystemTime>) -> Option<Duration> {
    text(headers, &RETRY_AFTER_MS)
        .and_then(|value| millis(trimmed(value)))
        .or_else(|| parse_retry_after(text(headers, &RETRY_AFTER)?, now))
}

/// The first value of a header, where it is visible ASCII.
#[inline]
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// `value` without the white space that HTTP knows; `str::trim` would take more.
fn trimmed(value: &str) -> &str {
    value.trim_matches(|each| matches!(each, ' ' | '\t' | '\r' | '\n'))
}

fn seconds(value: &str) -> Option<Duration> {
    let (whole, thousandths) = decimal(value)?;
    Some(Duration::from_millis(
        whole.saturating_mul(1000).saturating_add(thousandths),
    ))
}

fn millis(value: &str) -> Option<Duration> {
    decimal(value).map(|(whole, _)| Duration::from_millis(whole))
}

/// The whole part and the thousandths of `digits [ "." digits ]`.
fn decimal(value: &str) -> Option<(u64, u64)> {
    let Some((whole, fraction)) = value.split_once('.') else {
        return Some((digits(value)?, 0));
    };
    digits(fraction)?;
    let thousandths = fraction.bytes().map(digit).chain([0, 0]).take(3);
    Some((
        digits(whole)?,
        thousandths.fold(0, |sum, digit| sum * 10 + digit),
    ))
}

/// The number that one or more digits make, `u64::MAX` where it is larger.
fn digits(value: &str) -> Option<u64> {
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(value.bytes().map(digit).fold(0, |sum: u64, digit| {
        sum.saturating_mul(10).saturating_add(digit)
    }))
}

fn digit(byte: u8) -> u64 {
    u64::from(byte.saturating_sub(b'0'))
}

fn until_unix(moment: Duration, now: SystemTime) -> Duration {
    // Where the clock cannot hold the moment, it is as far off as can be.
    SystemTime::UNIX_EPOCH
        .checked_add(moment)
        .map_or(moment, |moment| until(moment, now))
}

fn until_date(value: &str, now: SystemTime) -> Option<Duration> {
    date(value).map(|moment| until(moment, now))
}

/// The moment that an HTTP date names.
pub(crate) fn http_date(value: &str) -> Option<SystemTime> {
    date(trimmed(value))
}

fn date(value: &str) -> Option<SystemTime> {
    // `httpdate` would trim white space that is none in HTTP.
    match value.as_bytes() {
        [first, .., last] if first.is_ascii_alphabetic() && last.is_ascii_alphanumeric() => {}
        _ => return None,
    }
    if !is_parted(value) {
        return None;
    }
    httpdate::parse_http_date(value)
        .ok()
        .or_else(|| leap_second(value))
}

/// Whether there is a space between day and time, for which `httpdate` does not look in the form
/// of RFC 850.
fn is_parted(value: &str) -> bool {
    match value.strip_suffix(" GMT") {
        Some(date) => date.bytes().nth_back("08:49:37".len()) == Some(b' '),
        None => true,
    }
}

/// The second after the leap second that a date names: `httpdate` knows no `:60`, RFC 9110 does.
fn leap_second(value: &str) -> Option<SystemTime> {
    const LONGEST: usize = "Wednesday, 31-Dec-08 23:59:60 GMT".len();
    let mut date = [0; LONGEST];
    let date = date.get_mut(..value.len())?;
    date.copy_from_slice(value.as_bytes());

    let behind = if value.ends_with("GMT") {
        " GMT".len()
    } else {
        " 1994".len()
    };
    let end = value.len().checked_sub(behind)?;
    let second = date.get_mut(end.checked_sub(2)?..end)?;
    if second != b"60" {
        return None;
    }
    second.copy_from_slice(b"59");
    let before = httpdate::parse_http_date(std::str::from_utf8(date).ok()?).ok()?;
    before.checked_add(Duration::from_secs(1))
}

fn until(moment: SystemTime, now: SystemTime) -> Duration {
    floored(moment.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn names(date: &str, seconds: Option<u64>) {
        let moment = seconds.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(http_date(date), moment);
    }

    #[test]
    fn a_space_parts_day_and_time_in_every_form() {
        names("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777));
        names("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777));
        names("Sun Nov  6 08:49:37 1994", Some(784_111_777));
        names("Sun, 06 Nov 1994T08:49:37 GMT", None);
        names("Sunday, 06-Nov-94T08:49:37 GMT", None);
        names("Sunday, 06-Nov-94T08:49:60 GMT", None);
        names("Sun Nov  6T08:49:37 1994", None);
    }

    #[test]
    fn what_is_too_short_to_be_a_date_is_none() {
        for short in ["", "a", " GMT", "a GMT", "08:49:37 GMT", "a08:49:37 GMT"] {
            names(short, None);
        }
    }
}
