//! Where a request goes.

use std::borrow::Cow;

use reqwest::Url;
use url::Position;

/// Scheme, host and port of a URL (RFC 6454, 4) as text, such as `https://a.test:8080`.
///
/// The port is left out if it is the scheme's own.
pub(in crate::middleware) struct Origin<'a>(pub(super) Cow<'a, str>);

impl Origin<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a Url> for Origin<'a> {
    fn from(url: &'a Url) -> Self {
        let has_user = !url.username().is_empty() || url.password().is_some();
        Self(if has_user {
            let host_and_port = &url[Position::BeforeHost..Position::BeforePath];
            Cow::Owned(format!("{}://{host_and_port}", url.scheme()))
        } else {
            // As it stands in the URL: most requests need no text of their own for it.
            Cow::Borrowed(&url[..Position::BeforePath])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn origin(url: &str, expected: &str) {
        let url: Url = url.parse().unwrap();
        assert_eq!(Origin::from(&url).as_str(), expected);
    }

    #[test]
    fn it_is_scheme_host_and_port() {
        origin("http://a.test", "http://a.test");
        origin("https://A.test:80/b:c", "https://a.test:80");
        origin("http://127.0.0.1:81/", "http://127.0.0.1:81");
        origin("http://[::1]/", "http://[::1]");
        origin("http://[::1]:8080/", "http://[::1]:8080");
    }

    #[test]
    fn user_path_and_the_schemes_own_port_are_no_part_of_it() {
        origin("http://u:p@a.test:80/b?c#d", "http://a.test");
        origin("http://u@a.test:81/", "http://a.test:81");
        origin("http://:p@a.test/", "http://a.test");
        origin("http://a.test/u@b.test", "http://a.test");
        origin("https://a.test:443/?x=[1]:2", "https://a.test");
    }

    #[test]
    fn a_url_without_a_host_has_its_scheme() {
        origin("data:text/plain,a:b", "data:");
        origin("unknown://a.test/", "unknown://a.test");
        // These are never sent. What counts is that nothing panics.
        for odd in ["file:///a:b", "foo:/.//x", "foo:///"] {
            let url: Url = odd.parse().unwrap();
            assert!(Origin::from(&url).as_str().starts_with(url.scheme()));
        }
    }
}
