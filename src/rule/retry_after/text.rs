//! The texts in which a server says how long to wait.

use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::date::until_date;

static RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// Reads the value of a `Retry-After` header (RFC 9110, 10.2.3): seconds, or with `now` an HTTP
/// date.
///
/// Seconds are ASCII decimal digits, and may have a fraction, as some servers send it; fractions of
/// a millisecond are dropped, and a number above `u64::MAX` milliseconds counts as that many. A
/// date comes in any of the three forms of RFC 9110, 5.6.7. It is read as strictly as the
/// `httpdate` crate does: English names, the right weekday, GMT, nothing before 1970. Of a year
/// with two digits, 70 to 99 are 1970 to 1999 and 00 to 69 are 2000 to 2069. Beyond that crate, UTC
/// may stand for GMT in the first form, and `:60` is a leap second, which is the second after it. A
/// date that has passed is a wait of zero. Spaces, tabs and line ends around the value are ignored.
/// Anything else is `None`.
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

/// The wait that `retry-after-ms` asks for, or if that is absent or cannot be read, `Retry-After`.
///
/// `retry-after-ms` holds milliseconds, as decimals like those of [`parse_retry_after`], which
/// reads the other. Of a header that occurs more than once the first value that can be read counts.
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
    first_that_reads(headers, &RETRY_AFTER_MS, |value| millis(trimmed(value)))
        .or_else(|| retry_after(headers, now))
}

/// The wait that the first `Retry-After` that can be read asks for.
#[inline]
pub(super) fn retry_after(headers: &HeaderMap, now: Option<SystemTime>) -> Option<Duration> {
    first_that_reads(headers, &RETRY_AFTER, |value| parse_retry_after(value, now))
}

/// What `read` makes of the first value of a header that it can read.
#[inline(always)] // a call costs a tenth of a decision
pub(super) fn first_that_reads(
    headers: &HeaderMap,
    name: &HeaderName,
    read: impl Fn(&str) -> Option<Duration>,
) -> Option<Duration> {
    let read = |value: &HeaderValue| read(value.to_str().ok()?);
    // Nearly always there is no such header, or its first value reads, and `get` is the faster.
    match read(headers.get(name)?) {
        Some(wait) => Some(wait),
        None => headers.get_all(name).into_iter().skip(1).find_map(read),
    }
}

/// `value` without the white space that HTTP knows; `str::trim` would take more.
#[inline]
pub(super) fn trimmed(value: &str) -> &str {
    match value.as_bytes() {
        // Nearly always there is none.
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => value,
        _ => value.trim_matches([' ', '\t', '\r', '\n']),
    }
}

pub(super) fn seconds(value: &str) -> Option<Duration> {
    let (whole, thousandths) = decimal(value)?;
    Some(Duration::from_millis(
        whole.saturating_mul(1000).saturating_add(thousandths),
    ))
}

pub(super) fn millis(value: &str) -> Option<Duration> {
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

/// The number that one or more digits make, `u64::MAX` if it is larger.
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
