//! The head of a response: what may be looked at before its body is.

use std::fmt;
use std::time::SystemTime;

use http::header::DATE;
use http::{HeaderMap, StatusCode, Version};
use reqwest::{Response, Url};

use crate::rule::http_date;

/// The head of a response, as the closures of a [`RetryPolicy`](crate::RetryPolicy) see it.
///
/// One can be made of any response, so a closure can be tested by itself.
///
/// # Examples
///
/// ```
/// use reqwest_retry_rules::ResponseHead;
///
/// let response = reqwest::Response::from(http::Response::new(""));
/// assert_eq!(ResponseHead::from(&response).status(), 200);
/// ```
#[derive(Clone, Copy)]
pub struct ResponseHead<'a>(&'a Response);

impl<'a> From<&'a Response> for ResponseHead<'a> {
    fn from(response: &'a Response) -> Self {
        Self(response)
    }
}

impl<'a> ResponseHead<'a> {
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// The headers.
    pub fn headers(&self) -> &'a HeaderMap {
        self.0.headers()
    }

    /// The HTTP version of the response.
    pub fn version(&self) -> Version {
        self.0.version()
    }

    /// The server's own time of day: the `Date` header (RFC 9110, 6.6.1), if it can be read.
    ///
    /// A moment in another header is best measured against it: the clocks of server and client need
    /// not agree.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use reqwest_retry_rules::ResponseHead;
    ///
    /// let date = "Thu, 01 Jan 1970 00:00:07 GMT";
    /// let response = http::Response::builder().header("date", date).body("")?;
    /// let response = reqwest::Response::from(response);
    /// let seventh_second = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(7));
    /// assert_eq!(ResponseHead::from(&response).date(), seventh_second);
    /// # Ok::<(), http::Error>(())
    /// ```
    pub fn date(&self) -> Option<SystemTime> {
        answered_at(self.headers())
    }

    /// The URL that answered, after redirects.
    pub fn url(&self) -> &'a Url {
        self.0.url()
    }
}

/// Shows neither the URL nor the headers: there may be secrets in both.
impl fmt::Debug for ResponseHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseHead")
            .field("status", &self.status())
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}

/// The time of day at which a server says that it answered.
pub(crate) fn answered_at(headers: &HeaderMap) -> Option<SystemTime> {
    http_date(headers.get(DATE)?.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_time_of_an_answer_is_read_like_any_other_date() {
        let seconds = |date| {
            let headers = HeaderMap::from_iter([(DATE, HeaderValue::from_static(date))]);
            let moment = answered_at(&headers)?;
            moment.duration_since(SystemTime::UNIX_EPOCH).ok()
        };
        let leap = Some(Duration::from_secs(1_483_228_800));
        assert_eq!(seconds("Sat, 31 Dec 2016 23:59:60 GMT"), leap);
        assert_eq!(seconds("Sun, 01 Jan 2017 00:00:00 GMT"), leap);
        assert_eq!(seconds("Saturday, 31-Dec-16T23:59:59 GMT"), None);
    }
}
