//! HTTP dates (RFC 9110, 5.6.7): what `httpdate` reads, and a few more.

use std::time::{Duration, SystemTime};

use super::text::trimmed;
use crate::rule::millis::floored;

const FIRST_FORM: usize = "Sun, 06 Nov 1994 08:49:37 GMT".len();

/// The moment that an HTTP date names.
pub(crate) fn http_date(value: &str) -> Option<SystemTime> {
    date(trimmed(value))
}

/// How long it is until the moment that a date names.
pub(super) fn until_date(value: &str, now: SystemTime) -> Option<Duration> {
    date(value).map(|moment| until(moment, now))
}

/// How long it is until `moment`: zero if it has passed.
pub(super) fn until(moment: SystemTime, now: SystemTime) -> Duration {
    floored(moment.duration_since(now).unwrap_or(Duration::ZERO))
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
        .or_else(|| utc_or_leap_second(value))
}

/// True if there is a space between day and time, which `httpdate` does not check in the form of
/// RFC 850, the longest.
fn is_parted(value: &str) -> bool {
    let before_time = value.len().checked_sub(" 08:49:37 GMT".len());
    let before_time = before_time.and_then(|index| value.as_bytes().get(index));
    value.len() <= FIRST_FORM || before_time == Some(&b' ')
}

/// What `httpdate` does not read: UTC in place of GMT in the first form, as some servers write it,
/// and a leap second, which is the second after it.
fn utc_or_leap_second(value: &str) -> Option<SystemTime> {
    const LONGEST: usize = "Wednesday, 31-Dec-08 23:59:60 GMT".len();

    let mut date = [0; LONGEST];
    let date = date.get_mut(..value.len())?;
    date.copy_from_slice(value.as_bytes());

    let is_utc = value.len() == FIRST_FORM && replace_end(date, b" UTC", b" GMT");
    let before_zone_or_year = date.len().checked_sub(if date.ends_with(b" GMT") {
        " GMT".len()
    } else {
        " 1994".len()
    })?;
    let is_leap_second = replace_end(date.get_mut(..before_zone_or_year)?, b":60", b":59");
    if !is_utc && !is_leap_second {
        return None;
    }
    let moment = httpdate::parse_http_date(std::str::from_utf8(date).ok()?).ok()?;
    moment.checked_add(Duration::from_secs(u64::from(is_leap_second)))
}

/// Writes `new` in place of `old` at the end of `text`, if that is how it ends.
fn replace_end<const N: usize>(text: &mut [u8], old: &[u8; N], new: &[u8; N]) -> bool {
    match text.last_chunk_mut() {
        Some(end) if end == old => {
            *end = *new;
            true
        }
        _ => false,
    }
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
    fn utc_is_gmt_in_the_first_form_alone() {
        names("Sun, 06 Nov 1994 08:49:37 UTC", Some(784_111_777));
        names("Sat, 31 Dec 2016 23:59:60 UTC", Some(1_483_228_800));
        names("Sun, 06 Nov 1994 08:49:37 utc", None);
        names("Sun, 06 Nov 1994 08:49:37 EST", None);
        names("Mon, 06 Nov 1994 08:49:37 UTC", None);
        names("Sun, 06 Nov 1994T08:49:37 UTC", None);
        names("Sunday, 06-Nov-94 08:49:37 UTC", None);
        names("Sun Nov  6 08:49:37 1994 UTC", None);
    }

    #[test]
    fn a_leap_second_is_the_second_after_it_in_every_form() {
        names("Sat, 31 Dec 2016 23:59:60 GMT", Some(1_483_228_800));
        names("Saturday, 31-Dec-16 23:59:60 GMT", Some(1_483_228_800));
        names("Sat Dec 31 23:59:60 2016", Some(1_483_228_800));
        names("Sat, 31 Dec 2016 23:59:61 GMT", None);
    }

    #[test]
    fn two_digits_of_a_year_are_from_1970_to_2069() {
        names("Thursday, 01-Jan-70 00:00:00 GMT", Some(0));
        names("Tuesday, 31-Dec-69 23:59:59 GMT", Some(3_155_759_999));
    }

    #[test]
    fn what_is_too_short_to_be_a_date_is_none() {
        for short in [
            "",
            "a",
            " GMT",
            "a GMT",
            "08:49:37 GMT",
            "a08:49:37 GMT",
            "60",
            ":60",
            "a:60 GMT",
        ] {
            names(short, None);
        }
    }
}
