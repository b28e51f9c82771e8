//! Walking an error and all that is behind it.

use std::error::Error as StdError;
use std::io;
use std::iter;

use reqwest::Url;

/// How many links of a chain are followed. The longest chain that reqwest makes has fewer than ten.
/// The limit is against an error that is its own source.
const DEPTH: usize = 64;

/// An error and all that is behind it, the outermost first.
pub(super) fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    iter::successors(Some(error), |link| behind(*link)).take(DEPTH)
}

/// The outermost `E` in an error, however deep other middlewares have wrapped it.
pub(super) fn find<'a, E: StdError + 'static>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a E> {
    chain(error).find_map(|link| link.downcast_ref())
}

/// True if reqwest gave up waiting, even if another middleware has wrapped its error.
pub(super) fn is_timeout(error: &(dyn StdError + 'static)) -> bool {
    find::<reqwest::Error>(error).is_some_and(reqwest::Error::is_timeout)
}

/// True if the error is that of another request than the one to `asked`: it has a URL, and that is
/// another one. A middleware that sends requests of its own may hand such an error on, and then it
/// says nothing about what became of this request.
///
/// Its query may have more parameters, since middlewares that sign a request add some. None may be
/// missing: a service with one path for everything tells its requests apart by them. The fragment may
/// differ, and so may user and password, which reqwest moves into a header. reqwest reports the first
/// URL of a request even after it followed redirects, so a redirect makes no difference. An error
/// without a URL says nothing.
pub(super) fn is_of_another_request(error: &reqwest_middleware::Error, asked: &Url) -> bool {
    find::<reqwest::Error>(error)
        .and_then(reqwest::Error::url)
        .is_some_and(|url| !same_resource(url, asked) || !has_parameters_of(url, asked))
}

/// True if the URL has every query parameter of the one that was asked, in any order and encoding.
fn has_parameters_of(url: &Url, asked: &Url) -> bool {
    url.query() == asked.query()
        || asked
            .query_pairs()
            .all(|wanted| url.query_pairs().any(|pair| pair == wanted))
}

/// True if two URLs differ in query, fragment and user at most.
pub(super) fn same_resource(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
        && one.path() == other.path()
}

/// What is behind an error.
fn behind<'a>(link: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    held(link).or_else(|| link.source())
}

/// The error that an error holds, if its `source()` leads past that.
fn held<'a>(link: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    if let Some(error) = link.downcast_ref::<io::Error>() {
        return error.get_ref().map(|held| held as _);
    }
    if let Some(error) = link.downcast_ref::<reqwest_middleware::Error>() {
        return Some(match error {
            reqwest_middleware::Error::Reqwest(held) => held,
            reqwest_middleware::Error::Middleware(held) => held.as_ref(),
        });
    }
    #[cfg(feature = "astral")]
    if let Some(error) = link.downcast_ref::<astral_reqwest_middleware::Error>() {
        return Some(match error {
            astral_reqwest_middleware::Error::Reqwest(held) => held,
            astral_reqwest_middleware::Error::Middleware(held) => held.as_ref(),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::time::Duration;

    use reqwest_middleware::Error;

    use super::*;

    /// The error of a request to a server that closes at once, or never says a word.
    async fn failed(closes: bool) -> reqwest::Error {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let _ = client.read(&mut [0; 4096]).unwrap();
            if !closes {
                let _ = client.read(&mut [0]);
            }
        });
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_millis(if closes { 30_000 } else { 200 }));
        client.build().unwrap().get(url).send().await.unwrap_err()
    }

    /// The error of a request that was never sent: its URL is put in afterwards.
    fn with_url(url: &str) -> reqwest::Error {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let never_sent = client.get("not a URL").build().unwrap_err();
        never_sent.without_url().with_url(url.parse().unwrap())
    }

    #[track_caller]
    fn compared(url: &str, asked: &str, another: bool) {
        let (error, asked) = (with_url(url), asked.parse().unwrap());
        let error = Error::from(error);
        assert_eq!(is_of_another_request(&error, &asked), another, "{url}");
        let wrapped = Error::middleware(Error::middleware(error));
        assert_eq!(is_of_another_request(&wrapped, &asked), another, "{url}");
    }

    #[tokio::test]
    async fn a_timeout_is_found_however_deep_it_is_wrapped() {
        let timed_out = Error::from(failed(false).await);
        assert!(is_timeout(&timed_out));
        assert!(is_timeout(&Error::middleware(timed_out)));
    }

    #[tokio::test]
    async fn what_is_no_timeout_is_none_however_deep_it_is_wrapped() {
        let closed = Error::from(failed(true).await);
        assert!(!is_timeout(&closed));
        assert!(!is_timeout(&Error::middleware(closed)));
    }

    /// One kind of chain inside the other, and outside it again.
    #[cfg(feature = "astral")]
    #[tokio::test]
    async fn a_timeout_is_found_through_errors_of_the_fork() {
        use astral_reqwest_middleware::Error as AstralError;
        let timed_out = AstralError::from(failed(false).await);
        assert!(is_timeout(&timed_out));
        let wrapped = Error::middleware(AstralError::middleware(timed_out));
        assert!(is_timeout(&wrapped));
        assert!(is_timeout(&AstralError::middleware(wrapped)));
        let closed = AstralError::middleware(AstralError::from(failed(true).await));
        assert!(!is_timeout(&Error::middleware(closed)));
    }

    #[test]
    fn an_error_is_found_by_its_type() {
        let timed_out = io::Error::from(io::ErrorKind::TimedOut);
        let error = Error::middleware(io::Error::other(timed_out));
        assert_eq!(
            find::<io::Error>(&error).map(io::Error::kind),
            Some(io::ErrorKind::Other)
        );
        assert!(find::<reqwest::Error>(&error).is_none());
        assert!(!is_timeout(&error));
    }

    #[test]
    fn an_error_with_another_host_port_scheme_or_path_is_another_requests() {
        let asked = "https://api.test/orders";
        compared("https://audit.test/orders", asked, true);
        compared("https://api.test:8443/orders", asked, true);
        compared("http://api.test/orders", asked, true);
        compared("https://api.test/orders/", asked, true);
        compared("https://api.test/", asked, true);
        let asked = "https://api.test/?action=create&id=7";
        compared("https://api.test/?action=audit&id=7", asked, true);
        compared("https://api.test/?action=create", asked, true);
        compared("https://api.test/", asked, true);
    }

    #[test]
    fn an_error_with_the_url_that_was_asked_is_this_requests() {
        let asked = "https://api.test/orders";
        compared("https://api.test/orders", asked, false);
        compared("https://API.test:443/orders", asked, false);
        compared("https://api.test/orders?signature=1", asked, false);
        compared("https://api.test/orders#part", asked, false);
        compared(
            "https://api.test/orders",
            "https://u:p@api.test/orders#c",
            false,
        );
        let asked = "https://api.test/?action=create&id=7";
        compared("https://api.test/?action=create&id=7", asked, false);
        compared(
            "https://api.test/?id=7&signature=1&action=%63reate",
            asked,
            false,
        );
        compared("https://api.test/?action=create&id=7&", asked, false);
    }

    #[test]
    fn an_error_without_a_url_says_nothing() {
        let asked = "https://api.test/orders".parse().unwrap();
        let without = with_url("https://audit.test/").without_url();
        assert!(!is_of_another_request(&without.into(), &asked));
        let own = Error::middleware(io::Error::other("no reqwest error"));
        assert!(!is_of_another_request(&own, &asked));
    }
}
