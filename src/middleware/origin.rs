//! Where a request goes.

use reqwest::Url;
use url::Position;

/// Scheme, host and port (RFC 6454, 4), as they stand in a URL.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) scheme: &'a [u8],
    /// The host, and the port where it is not the scheme's own.
    pub(crate) authority: &'a [u8],
}

impl<'a> From<&'a Url> for Origin<'a> {
    fn from(url: &'a Url) -> Self {
        Self {
            scheme: url.scheme().as_bytes(),
            authority: if url.has_host() {
                url[Position::BeforeHost..Position::BeforePath].as_bytes()
            } else {
                &[]
            },
        }
    }
}

impl<'a> Origin<'a> {
    /// The host without the port; `None` where there is none.
    pub(crate) fn host(self) -> Option<&'a str> {
        let port_at = match self.authority {
            // An IPv6 address is in brackets, and has colons of its own.
            [.., b']'] => None,
            authority => authority.iter().rposition(|byte| *byte == b':'),
        };
        let host = self
            .authority
            .get(..port_at.unwrap_or(self.authority.len()))?;
        std::str::from_utf8(host)
            .ok()
            .filter(|host| !host.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn host(url: &str, expected: Option<&str>) {
        let url: Url = url.parse().unwrap();
        assert_eq!(Origin::from(&url).host(), expected);
        assert_eq!(url.host_str(), expected);
    }

    #[test]
    fn the_host_is_that_of_the_url() {
        host("http://a.test", Some("a.test"));
        host("http://a.test:80/", Some("a.test"));
        host("https://A.test:80/b:c", Some("a.test"));
        host("http://user:word@a.test:8080/?x=[1]:2", Some("a.test"));
        host("http://127.0.0.1:81/", Some("127.0.0.1"));
        host("http://[::1]/", Some("[::1]"));
        host("http://[::1]:8080/", Some("[::1]"));
        host("data:text/plain,a:b", None);
        host("file:///a:b", None);
        host("foo:/.//x", None);
    }

    #[test]
    fn userinfo_path_and_the_schemes_own_port_are_no_part_of_an_origin() {
        let text = |url: &str| {
            let url: Url = url.parse().unwrap();
            let Origin { scheme, authority } = Origin::from(&url);
            [scheme, authority].map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
        };
        assert_eq!(text("http://u:p@a.test:80/b?c#d"), ["http", "a.test"]);
        assert_eq!(text("https://a.test:80"), ["https", "a.test:80"]);
        assert_eq!(text("https://a.test:443/"), ["https", "a.test"]);
    }
}
