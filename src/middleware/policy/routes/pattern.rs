//! Where a route leads: a host, maybe a port, maybe the start of a path.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use reqwest::Url;
use url::Host;

/// Requests that have a rule of their own: those to a host, to one of its ports, or below one of
/// its paths.
///
/// It is written `host[:port][/path]`:
///
/// | pattern | has | does not have |
/// | --- | --- | --- |
/// | `api.example.com` | that host, every port and path | `v2.api.example.com` |
/// | `*.example.com` | `a.example.com`, `b.a.example.com` | `example.com` |
/// | `localhost:8080` | that port | `localhost` on port 80 |
/// | `api.example.com/search` | `/search`, `/search/`, `/search/x` | `/searching` |
///
/// Both sides are compared as a URL has them: letters in a host are small, an international name
/// is in its ASCII form (IDNA), an IPv6 address is in brackets, and a path is percent-encoded and
/// case-sensitive. A dot at the end of a host and a slash at the end of the path are ignored. The
/// scheme does not count; `example.com:443` has `https://example.com` too, since 443 is the port of
/// that scheme.
///
/// # Errors
///
/// A pattern with a scheme, user information, a query or a fragment; a host that no URL can have,
/// an empty one, or one with a `*` that is not followed by a dot and a name; a port that is no
/// number from 1 to 65535; a path with white space, a backslash, or a segment `.` or `..`.
///
/// # Examples
///
/// ```
/// use reqwest_retry_rules::RoutePattern;
///
/// let pattern: RoutePattern = "*.Example.com/search/".parse()?;
/// assert_eq!(pattern.to_string(), "*.example.com/search");
/// assert!(pattern.matches(&"https://eu.example.com/search/books?q=x".parse()?));
/// assert!(!pattern.matches(&"https://eu.example.com/searching".parse()?));
///
/// let error = "https://example.com".parse::<RoutePattern>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "invalid route `https://example.com`: expected a host without a scheme",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoutePattern {
    pub(super) host: HostPattern,
    pub(super) path: PathPrefix,
}

impl RoutePattern {
    /// True if a request to this URL is among those that are meant.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::RoutePattern;
    ///
    /// let pattern: RoutePattern = "localhost:8080".parse()?;
    /// assert!(pattern.matches(&"http://localhost:8080/items".parse()?));
    /// assert!(!pattern.matches(&"http://localhost/items".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn matches(&self, url: &Url) -> bool {
        Target::of(url)
            .is_some_and(|target| self.host.matches(&target) && self.path.matches(&target))
    }
}

impl FromStr for RoutePattern {
    type Err = InvalidRoute;

    fn from_str(text: &str) -> Result<Self, InvalidRoute> {
        let invalid = |expected| InvalidRoute::new(text, expected);
        if text.contains("://") {
            return Err(invalid(NO_SCHEME));
        }
        let (host, path) = match text.find('/') {
            Some(at) => text.split_at(at),
            None => (text, "/"),
        };
        Ok(Self {
            host: HostPattern::parse(host).map_err(invalid)?,
            path: PathPrefix::parse(path).map_err(invalid)?,
        })
    }
}

impl fmt::Display for RoutePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.host, self.path.0)
    }
}

/// A text that is no [`RoutePattern`], and what was expected instead.
///
/// # Examples
///
/// ```
/// use reqwest_retry_rules::RoutePattern;
///
/// let error = "*".parse::<RoutePattern>().unwrap_err();
/// assert_eq!(error.pattern(), "*");
/// assert_eq!(error.expected(), "`*.` and a name, such as `*.example.com`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InvalidRoute {
    pattern: String,
    expected: &'static str,
}

impl InvalidRoute {
    fn new(text: &str, expected: &'static str) -> Self {
        // What comes before an `@` may be a password.
        let pattern = match text.rsplit_once('@') {
            Some((_, host)) => format!("…@{host}"),
            None => text.to_owned(),
        };
        Self { pattern, expected }
    }

    /// The text, without user information.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// What was expected instead.
    pub fn expected(&self) -> &str {
        self.expected
    }
}

impl fmt::Display for InvalidRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pattern, expected } = self;
        write!(f, "invalid route `{pattern}`: expected {expected}")
    }
}

impl Error for InvalidRoute {}

/// What a pattern is compared with.
pub(super) struct Target<'a> {
    host: &'a str,
    port: Option<u16>,
    path: &'a str,
}

impl<'a> Target<'a> {
    /// `None` for a URL without a host.
    pub(super) fn of(url: &'a Url) -> Option<Self> {
        let host = url.host_str()?;
        Some(Self {
            host: host.strip_suffix('.').unwrap_or(host),
            port: url.port_or_known_default(),
            path: url.path(),
        })
    }
}

/// `host[:port]`, as a URL has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::middleware::policy) struct HostPattern {
    /// With a dot at the start, the end of a host; else the whole of it.
    name: Box<str>,
    port: Option<u16>,
}

const NO_SCHEME: &str = "a host without a scheme";
const A_HOST: &str = "a host such as `api.example.com`";

impl HostPattern {
    /// # Errors
    ///
    /// What was expected.
    pub(in crate::middleware::policy) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.contains('@') {
            return Err("a host without user information");
        }
        if text.contains("://") {
            return Err(NO_SCHEME);
        }
        if text.contains(['?', '#']) {
            return Err("a host without query and fragment");
        }
        if text.contains('/') {
            return Err("a host without a path");
        }
        let (below, text) = match text.strip_prefix("*.") {
            Some(text) => (true, text),
            None => (false, text),
        };
        if text.contains('*') {
            return Err("`*.` and a name, such as `*.example.com`");
        }
        let (host, port) = split_port(text)?;
        let host = Host::parse(host).map_err(|_| A_HOST)?;
        if below && !matches!(host, Host::Domain(_)) {
            return Err("`*.` and a name, not an address");
        }
        // An IPv6 address in its brackets.
        let host = host.to_string();
        let name = host.strip_suffix('.').unwrap_or(&host);
        if name.split('.').any(str::is_empty) {
            return Err(A_HOST);
        }
        let name = if below {
            format!(".{name}")
        } else {
            name.to_owned()
        };
        Ok(Self {
            name: name.into(),
            port,
        })
    }

    pub(super) fn matches(&self, target: &Target<'_>) -> bool {
        let host_matches = if self.name.starts_with('.') {
            // At least one character of a label is left of the dot.
            target.host.len() > self.name.len() && target.host.ends_with(&*self.name)
        } else {
            *self.name == *target.host
        };
        host_matches && (self.port.is_none() || self.port == target.port)
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.name.starts_with('.') { "*" } else { "" };
        write!(f, "{star}{}", self.name)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), &'static str> {
    // An IPv6 address is in brackets, and has colons of its own.
    let address_end = text.rfind(']').map_or(0, |at| at + 1);
    let (address, rest) = text.split_at(address_end);
    let Some((before, digits)) = rest.rsplit_once(':') else {
        return Ok((text, None));
    };
    if before.contains(':') {
        return Err("an IPv6 address in brackets");
    }
    // `parse` would allow a sign.
    let port = match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse().ok().filter(|port| *port != 0),
        false => None,
    };
    match port {
        Some(port) => Ok((&text[..address.len() + before.len()], Some(port))),
        None => Err("a host with a port from 1 to 65535"),
    }
}

/// The first segments of a path, as a URL has them, without a slash at the end: empty for every
/// path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::middleware::policy) struct PathPrefix(Box<str>);

impl PathPrefix {
    /// # Errors
    ///
    /// What was expected.
    pub(in crate::middleware::policy) fn parse(text: &str) -> Result<Self, &'static str> {
        if !text.starts_with('/') {
            return Err("a path that starts with a slash");
        }
        if text.contains(['?', '#']) {
            return Err("a path without query and fragment");
        }
        if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err("a path without white space and backslashes");
        }
        let is_dots = |segment: &str| {
            let segment = segment.replace("%2e", ".").replace("%2E", ".");
            segment == "." || segment == ".."
        };
        if text.split('/').any(is_dots) {
            return Err("a path without `.` and `..`");
        }
        let url = Url::parse(&format!("http://host{text}"));
        let url = url.map_err(|_| "a path such as `/search`")?;
        Ok(Self(url.path().trim_end_matches('/').into()))
    }

    pub(super) fn matches(&self, target: &Target<'_>) -> bool {
        let rest = target.path.strip_prefix(&*self.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    pub(super) fn is_every(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(feature = "serde")]
impl fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_every() { "/" } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn pattern(text: &str) -> RoutePattern {
        text.parse().unwrap()
    }

    /// The pattern has each URL of `has`, and none of `has_not`.
    #[track_caller]
    fn matches(text: &str, has: &[&str], has_not: &[&str]) {
        let pattern = pattern(text);
        for url in has {
            assert!(pattern.matches(&url.parse().unwrap()), "{text} has {url}");
        }
        for url in has_not {
            assert!(
                !pattern.matches(&url.parse().unwrap()),
                "{text} has no {url}"
            );
        }
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let error = text.parse::<RoutePattern>().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("invalid route `{text}`: expected {expected}")
        );
    }

    #[test]
    fn a_host_is_itself_on_every_port_and_path() {
        matches(
            "api.example.com",
            &[
                "https://api.example.com",
                "http://api.example.com:8080/x?y#z",
                "https://user:word@API.example.com./",
            ],
            &[
                "https://example.com",
                "https://v2.api.example.com",
                "https://xapi.example.com",
                "https://api.example.com.evil.test",
                "data:api.example.com",
                "file:///api.example.com",
            ],
        );
        matches(
            "my_service",
            &["http://my_service/"],
            &["http://my-service/"],
        );
    }

    #[test]
    fn a_star_is_one_label_or_more() {
        matches(
            "*.example.com",
            &["https://a.example.com", "https://b.a.example.com./x"],
            &[
                "https://example.com",
                "https://.example.com",
                "https://aexample.com",
                "https://a.example.com.test",
            ],
        );
        matches(
            "*.example.com:81/x",
            &["http://a.example.com:81/x"],
            &["http://a.example.com/x"],
        );
        matches("*.test", &["http://a.test"], &["http://test"]);
    }

    #[test]
    fn a_port_is_the_urls_or_its_schemes() {
        matches(
            "a.test:443",
            &["https://a.test", "https://a.test:443/", "http://a.test:443"],
            &["http://a.test", "https://a.test:8443"],
        );
        matches(
            "a.test:80",
            &["http://a.test", "http://a.test:80"],
            &["https://a.test"],
        );
        matches("a.test:08080", &["http://a.test:8080"], &["http://a.test"]);
    }

    #[test]
    fn a_path_is_whole_segments() {
        for text in ["a.test/search", "a.test/search/", "a.test/search//"] {
            matches(
                text,
                &[
                    "http://a.test/search",
                    "http://a.test/search/",
                    "http://a.test/search?x=/y",
                    "http://a.test/search/x/y",
                    "http://a.test/x/../search",
                ],
                &[
                    "http://a.test/",
                    "http://a.test/searching",
                    "http://a.test/Search",
                    "http://a.test/x/search",
                    "http://a.test//search",
                    "http://a.test/search/../x",
                    "http://b.test/search",
                ],
            );
        }
        matches(
            "a.test/",
            &["http://a.test", "http://a.test/x"],
            &["http://b.test"],
        );
        matches(
            "a.test/a/b",
            &["http://a.test/a/b/c"],
            &["http://a.test/a", "http://a.test/a/bc"],
        );
        matches(
            "a.test/süß:x@y",
            &["http://a.test/s%C3%BC%C3%9F:x@y/1"],
            &["http://a.test/s"],
        );
    }

    #[test]
    fn both_sides_are_as_a_url_has_them() {
        let same = |text: &str, url: &str| matches(text, &[url], &["http://other.test"]);
        same("EXAMPLE.com.", "http://example.COM");
        same("bücher.example", "http://xn--bcher-kva.example");
        same("xn--bcher-kva.example", "http://BÜCHER.example./");
        same("*.bücher.example", "http://a.xn--bcher-kva.example");
        same("bücher。example。", "http://bücher.example");
        same("127.1", "http://127.0.0.1");
        same("127.0.0.1.", "http://127.0.0.1./");
        same("[::1]", "http://[0:0:0:0:0:0:0:1]:8080/");
        same("[0:0::1]:8080/x", "http://[::1]:8080/x");
    }

    #[test]
    fn a_pattern_is_written_as_it_is_read() {
        for (text, written) in [
            ("API.example.com.", "api.example.com"),
            ("*.Bücher.example:0443/a/", "*.xn--bcher-kva.example:443/a"),
            (
                "[0::1]:80/a b".replace(' ', "%20").as_str(),
                "[::1]:80/a%20b",
            ),
            ("a.test/", "a.test"),
            ("a.test/a//", "a.test/a"),
            ("a.test/ü", "a.test/%C3%BC"),
        ] {
            assert_eq!(pattern(text).to_string(), written);
            assert_eq!(pattern(written), pattern(text));
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let host = "a host such as `api.example.com`";
        let star = "`*.` and a name, such as `*.example.com`";
        let port = "a host with a port from 1 to 65535";
        for (text, expected) in [
            ("", host),
            ("/search", host),
            (":80", host),
            (".", host),
            ("..", host),
            ("a..b", host),
            (".a.test", host),
            ("a.test..", host),
            ("a b", host),
            (" a.test", host),
            ("a.test\n", host),
            ("a\\b", host),
            ("a%2fb", host),
            ("a<b", host),
            ("[::1", "an IPv6 address in brackets"),
            ("::1]", host),
            ("[::1]x", host),
            ("[a.test]", host),
            ("1.2.3.256", host),
            ("xn--a", host),
            ("*.", host),
            ("*./x", host),
            ("*.:80", host),
            ("*", star),
            ("*/x", star),
            ("*:80", star),
            ("**.a.test", star),
            ("*.*.test", star),
            ("a*.test", star),
            ("api.*.com", star),
            ("*.127.0.0.1", "`*.` and a name, not an address"),
            ("*.[::1]", "`*.` and a name, not an address"),
            ("a.test:", port),
            ("a.test:0", port),
            ("a.test:65536", port),
            ("a.test:+80", port),
            ("a.test:x", port),
            ("a.test:8*", star),
            ("[::1]:", port),
            ("::1", "an IPv6 address in brackets"),
            ("a:80:80", "an IPv6 address in brackets"),
            ("https://a.test", "a host without a scheme"),
            ("a.test/https://b.test", "a host without a scheme"),
            ("http:/a.test", port),
            ("a.test?x", "a host without query and fragment"),
            ("a.test#x", "a host without query and fragment"),
            ("a.test/x?y", "a path without query and fragment"),
            ("a.test/x#y", "a path without query and fragment"),
            ("a.test/x y", "a path without white space and backslashes"),
            ("a.test/x ", "a path without white space and backslashes"),
            ("a.test/x\ty", "a path without white space and backslashes"),
            ("a.test/x\\y", "a path without white space and backslashes"),
            ("a.test/.", "a path without `.` and `..`"),
            ("a.test/x/../y", "a path without `.` and `..`"),
            ("a.test/x/.%2E", "a path without `.` and `..`"),
        ] {
            refused(text, expected);
        }
    }

    #[test]
    fn user_information_is_refused_and_not_shown() {
        let error = "user:secret@a.test/x".parse::<RoutePattern>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid route `…@a.test/x`: expected a host without user information",
        );
        assert!(!format!("{error:?}").contains("secret"));
    }
}
