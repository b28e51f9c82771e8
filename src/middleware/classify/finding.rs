//! What the errors of the libraries below give away, one by one.

use std::error::Error as StdError;
use std::io;

use http::StatusCode;

use super::tls;

/// What one link of a chain gives away. If there are several, the first in this order counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Finding {
    /// It is the caller's doing. First, since what failed in a body stream of the caller's can look
    /// like anything, a refused connection included.
    Caller,
    Certificate,
    Protocol,
    /// The proxy refused, with a status if its words give one away.
    Proxy(Option<StatusCode>),
    /// The request was not written, or the peer says that it did not look at it.
    NotProcessed,
    /// TLS does not understand the peer, or the peer does not understand it. In the handshake the
    /// two have nothing in common; later something on the way spoilt what they said.
    #[cfg_attr(not(feature = "rustls"), allow(dead_code))] // only the types of rustls tell
    Incompatible,
    /// It happened below TLS. Before `Tls`, since it has an `io::Error` behind it too.
    Tcp,
    /// It happened in TLS, or in I/O, which is TLS's if nothing says that it was TCP's.
    Tls,
}

impl Finding {
    pub(super) fn of(link: &(dyn StdError + 'static)) -> Option<Finding> {
        if let Some(error) = link.downcast_ref::<hyper::Error>() {
            return of_hyper(error);
        }
        if let Some(error) = link.downcast_ref::<io::Error>() {
            return of_io(error);
        }
        if link.is::<reqwest::Error>() {
            return None;
        }
        tls::of_rustls(link)
            .or_else(|| of_h2(link))
            .or_else(|| of_words(&link.to_string()))
    }
}

fn of_hyper(error: &hyper::Error) -> Option<Finding> {
    if error.is_user() {
        // The task of the connection went away with the request, which is nobody's doing: hyper
        // counts it among its user's errors, for the caller may have ended the runtime. Whether the
        // request was written by then it does not say.
        (error.to_string() != "dispatch task is gone").then_some(Finding::Caller)
    } else if error.is_parse() {
        Some(Finding::Protocol)
    } else if error.is_canceled() {
        Some(Finding::NotProcessed)
    } else {
        None
    }
}

/// The kinds by which a handshake ends. A Unix socket that is not there has others.
fn of_io(error: &io::Error) -> Option<Finding> {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::InvalidData => Some(Finding::Tls),
        _ => None,
    }
}

/// What is said in words only, since the types of these errors are private. Words that hyper-util
/// may choose one day are those of an ordinary connect error.
pub(super) fn of_words(words: &str) -> Option<Finding> {
    match words {
        "tunnel error: proxy authorization required" => Some(Finding::Proxy(Some(
            StatusCode::PROXY_AUTHENTICATION_REQUIRED,
        ))),
        "tunnel error: unsuccessful"
        | "tunnel error: unexpected end of file"
        | "tunnel error: io error establishing tunnel"
        | "tunnel error: proxy response headers too long" => Some(Finding::Proxy(None)),
        "SOCKS error: failed to create underlying connection" => Some(Finding::Tcp),
        // A body stream of the caller's, in the task of the connection.
        "user code panicked" => Some(Finding::Caller),
        _ if words.starts_with("SOCKS error: ") => Some(Finding::Proxy(None)),
        _ if words.starts_with("tcp ") => Some(Finding::Tcp),
        _ if words.starts_with("invalid URL, ") => Some(Finding::Caller),
        _ if words.starts_with("client error (User") => Some(Finding::Caller),
        _ if tls::is_certificate_alert_of_rustls(words) => Some(Finding::Certificate),
        _ if tls::is_certificate_error_of_openssl(words) => Some(Finding::Certificate),
        _ => None,
    }
}

#[cfg(feature = "http2")]
pub(super) fn of_h2(link: &(dyn StdError + 'static)) -> Option<Finding> {
    let error: &h2::Error = link.downcast_ref()?;
    if error.is_remote() {
        match error.reason() {
            // It will not speak HTTP/2 about this, however often it is asked.
            Some(h2::Reason::HTTP_1_1_REQUIRED) => Some(Finding::Protocol),
            // Not for a GOAWAY, which may cover the request: hyper 1.12 sends the stream and then
            // asks whether the connection is sound, and hands a GOAWAY that came in between to the
            // request.
            Some(h2::Reason::REFUSED_STREAM) if error.is_reset() => Some(Finding::NotProcessed),
            _ => None,
        }
    } else if error.is_library() {
        Some(Finding::Protocol)
    } else if error.is_reset() {
        // Neither the peer nor h2: hyper, because the body stream of the request failed.
        Some(Finding::Caller)
    } else {
        None
    }
}

#[cfg(not(feature = "http2"))]
pub(super) fn of_h2(_: &(dyn StdError + 'static)) -> Option<Finding> {
    None
}
