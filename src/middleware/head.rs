//! The head of a response: what may be looked at before its body is.

use http::{HeaderMap, StatusCode, Version};
use reqwest::{Response, Url};

/// The head of a response, as the closures of a [`RetryPolicy`] see it.
///
/// One is made of any response, so a closure can be tested by itself.
///
/// # Examples
///
/// ```
/// use reqwest_retry_rules::ResponseHead;
///
/// let response = reqwest::Response::from(http::Response::new(""));
/// assert_eq!(ResponseHead::from(&response).status(), 200);
/// ```
#[derive(Clone, Copy, Debug)]
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

    /// The version of the answer.
    pub fn version(&self) -> Version {
        self.0.version()
    }

    /// The URL that answered, after redirects.
    pub fn url(&self) -> &'a Url {
        self.0.url()
    }
}
