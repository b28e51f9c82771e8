//! The head of a response: what may be looked at before its body is.

use std::fmt;
use std::time::{Duration, SystemTime};

use http::header::{AGE, DATE};
use http::{HeaderMap, Method, StatusCode, Version};
use reqwest::{Response, Url};

use crate::rule::http_date;

/// The head of a response and what it answers, as the closures of a
/// [`RetryPolicy`](crate::RetryPolicy) see it.
///
/// One can be made of any response, so a closure can be tested by itself. It is then the answer to
/// a GET of the URL that answered, before any retry; [`with_method`](Self::with_method),
/// [`with_request_url`](Self::with_request_url) and [`with_retries`](Self::with_retries) say
/// otherwise.
///
/// # Examples
///
/// ```
/// use http::Method;
/// use reqwest_retry_rules::ResponseHead;
///
/// /// A conflict is worth a second look, but not a third.
/// fn once(head: &ResponseHead<'_>) -> bool {
///     head.status() == 409 && head.method() == Method::PUT && head.retries() == 0
/// }
///
/// let response = http::Response::builder().status(409).body("")?;
/// let response = reqwest::Response::from(response);
/// let head = ResponseHead::from(&response).with_method(&Method::PUT);
/// assert!(once(&head));
/// assert!(!once(&head.with_retries(1)));
/// assert!(!once(&head.with_method(&Method::POST)));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct ResponseHead<'a> {
    status: StatusCode,
    version: Version,
    headers: &'a HeaderMap,
    url: &'a Url,
    method: &'a Method,
    request_url: &'a Url,
    retries: u32,
}

impl<'a> From<&'a Response> for ResponseHead<'a> {
    fn from(response: &'a Response) -> Self {
        Self {
            status: response.status(),
            version: response.version(),
            headers: response.headers(),
            url: response.url(),
            method: &Method::GET,
            request_url: response.url(),
            retries: 0,
        }
    }
}

impl<'a> ResponseHead<'a> {
    /// The head of a response that is taken apart.
    pub(super) fn of_parts(parts: &'a http::response::Parts, url: &'a Url) -> Self {
        Self {
            status: parts.status,
            version: parts.version,
            headers: &parts.headers,
            url,
            method: &Method::GET,
            request_url: url,
            retries: 0,
        }
    }

    /// The head of a response that is gone.
    pub(in crate::middleware) fn of_kept(
        status: StatusCode,
        version: Version,
        headers: &'a HeaderMap,
        url: &'a Url,
    ) -> Self {
        Self {
            status,
            version,
            headers,
            url,
            method: &Method::GET,
            request_url: url,
            retries: 0,
        }
    }

    /// The same head as the answer to a request of this method.
    #[must_use]
    pub fn with_method(self, method: &'a Method) -> Self {
        Self { method, ..self }
    }

    /// The same head as the answer to a request for this URL.
    #[must_use]
    pub fn with_request_url(self, request_url: &'a Url) -> Self {
        Self {
            request_url,
            ..self
        }
    }

    /// The same head after so many retries.
    #[must_use]
    pub fn with_retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers.
    pub fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// The HTTP version of the response.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The server's own time of day when the response came: the `Date` header (RFC 9110, 6.6.1)
    /// plus the `Age` that a cache gave it (RFC 9111, 5.1); `None` if the `Date` cannot be read.
    ///
    /// An `Age` is a whole number of seconds. One that cannot be read, or that leads past the end
    /// of the clock, is taken for zero.
    ///
    /// A moment in another header is best measured against this: the clocks of server and client
    /// need not agree.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use reqwest_retry_rules::ResponseHead;
    ///
    /// fn date(response: http::Response<&'static str>) -> Option<SystemTime> {
    ///     ResponseHead::from(&reqwest::Response::from(response)).date()
    /// }
    /// let second = |n| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(n));
    ///
    /// let fresh = http::Response::builder().header("date", "Thu, 01 Jan 1970 00:00:07 GMT");
    /// assert_eq!(date(fresh.body("")?), second(7));
    ///
    /// let cached = http::Response::builder()
    ///     .header("date", "Thu, 01 Jan 1970 00:00:07 GMT")
    ///     .header("age", "60");
    /// assert_eq!(date(cached.body("")?), second(67));
    ///
    /// let without = http::Response::builder().header("age", "60");
    /// assert_eq!(date(without.body("")?), None);
    /// # Ok::<(), http::Error>(())
    /// ```
    pub fn date(&self) -> Option<SystemTime> {
        answered_at(self.headers)
    }

    /// The URL that answered, after redirects.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest::{ResponseBuilderExt, Url};
    /// use reqwest_retry_rules::ResponseHead;
    ///
    /// let asked = Url::parse("https://api.example/latest")?;
    /// let response = http::Response::builder().url(Url::parse("https://api.example/v7")?).body("")?;
    /// let response = reqwest::Response::from(response);
    /// let head = ResponseHead::from(&response).with_request_url(&asked);
    /// assert_eq!(head.url().path(), "/v7");
    /// assert_eq!(head.request_url().path(), "/latest");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn url(&self) -> &'a Url {
        self.url
    }

    /// The URL that was asked for, before redirects. [`url`](Self::url) is the one that answered.
    pub fn request_url(&self) -> &'a Url {
        self.request_url
    }

    /// The method of the request that was sent. After a redirect that turned a POST into a GET it
    /// is still POST.
    pub fn method(&self) -> &'a Method {
        self.method
    }

    /// How many retries the send has made: 0 after the first attempt. It is the
    /// [`attempt`](crate::Attempt::attempt) that the rule is asked with.
    pub fn retries(&self) -> u32 {
        self.retries
    }
}

/// Shows neither the URLs nor the headers: there may be secrets in them.
impl fmt::Debug for ResponseHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseHead")
            .field("status", &self.status)
            .field("version", &self.version)
            .field("method", &self.method)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

/// The time of day by the server's clock when the response came: its `Date` (RFC 9110, 6.6.1), and
/// the time since then that it spent in caches, its `Age` (RFC 9111, 5.1).
pub(in crate::middleware) fn answered_at(headers: &HeaderMap) -> Option<SystemTime> {
    let date = http_date(headers.get(DATE)?.to_str().ok()?)?;
    let cached = age(headers).and_then(|age| date.checked_add(age));
    Some(cached.unwrap_or(date))
}

/// How long a response spent in caches, if one says so in a way that can be read.
fn age(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(AGE)?.to_str().ok()?;
    // Of a list the first member counts (RFC 9111, 5.1).
    let first = text.split(',').next()?.trim_matches([' ', '\t']);
    // `parse` alone would take a plus sign.
    let is_number = first.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = first.parse().ok().filter(|_| is_number)?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// The seconds since 1970 at which a response with these headers was answered.
    fn seconds(headers: &[(http::HeaderName, &'static str)]) -> Option<u64> {
        let headers = headers.iter().cloned();
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        let mut map = HeaderMap::new();
        headers.for_each(|(name, value)| {
            map.append(name, value);
        });
        let moment = answered_at(&map)?;
        let since = moment.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(since.as_secs())
    }

    /// 1_483_228_800 seconds after the epoch.
    const NEW_YEAR: &str = "Sun, 01 Jan 2017 00:00:00 GMT";

    #[test]
    fn the_time_of_an_answer_is_read_like_any_other_date() {
        let leap = "Sat, 31 Dec 2016 23:59:60 GMT";
        assert_eq!(seconds(&[(DATE, leap)]), Some(1_483_228_800));
        assert_eq!(seconds(&[(DATE, NEW_YEAR)]), Some(1_483_228_800));
        let wrong_weekday = "Saturday, 31-Dec-16T23:59:59 GMT";
        assert_eq!(seconds(&[(DATE, wrong_weekday)]), None);
    }

    #[test]
    fn the_time_in_caches_is_added() {
        for (age, expected) in [
            ("0", 1_483_228_800),
            ("3600", 1_483_232_400),
            (" 3600\t", 1_483_232_400),
            ("3600, 7", 1_483_232_400),
            ("0003600", 1_483_232_400),
        ] {
            let found = seconds(&[(DATE, NEW_YEAR), (AGE, age)]);
            assert_eq!(found, Some(expected), "{age:?}");
        }
        // Of several lines the first counts.
        let found = seconds(&[(DATE, NEW_YEAR), (AGE, "1"), (AGE, "2")]);
        assert_eq!(found, Some(1_483_228_801));
    }

    #[test]
    fn an_age_that_cannot_be_read_adds_nothing() {
        for age in [
            "",
            ",",
            ", 7",
            "-1",
            "+1",
            "1.5",
            "1s",
            "0x10",
            "an hour",
            "18446744073709551615",
            "18446744073709551616",
            "99999999999999999999999999999999999999",
        ] {
            let found = seconds(&[(DATE, NEW_YEAR), (AGE, age)]);
            assert_eq!(found, Some(1_483_228_800), "{age:?}");
        }
    }

    #[test]
    fn an_age_without_a_date_says_nothing() {
        assert_eq!(seconds(&[(AGE, "3600")]), None);
        assert_eq!(seconds(&[(DATE, "yesterday"), (AGE, "3600")]), None);
    }

    #[test]
    fn a_head_shows_no_secret() {
        let response = http::Response::builder()
            .header("set-cookie", "session=secret")
            .body("")
            .map(Response::from);
        let url = Url::parse("https://user:secret@host.test/?token=secret");
        let (Ok(response), Ok(url)) = (response, url) else {
            panic!("a response and a URL");
        };
        let head = ResponseHead::from(&response).with_request_url(&url);
        let shown = format!("{head:?}");
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("200"), "{shown}");
    }
}
