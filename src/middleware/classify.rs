//! What reqwest reports, turned into a [`TransportError`].
//!
//! The only file that walks the sources of an error, and the only one that asks "could it have been
//! processed?". What is not known counts as sent.

use std::error::Error as StdError;
use std::io;
use std::iter;

use http::StatusCode;

use crate::TransportError;

/// Names what a failed attempt came to, or `None` where it is no transport failure.
pub fn classify(error: &reqwest_middleware::Error) -> Option<TransportError> {
    let error = find::<reqwest::Error>(error)?;
    if !error.is_request() {
        return None;
    }
    let seen = Findings::of(error);
    if seen.callers_fault {
        return None;
    }
    if let Some(verdict) = seen.verdict {
        return Some(verdict);
    }
    if error.is_connect() {
        return Some(connect_stage(error, &seen));
    }
    if seen.not_processed {
        return Some(TransportError::NotProcessed);
    }
    if error.is_timeout() {
        return Some(TransportError::Timeout);
    }
    Some(TransportError::Closed)
}

/// Names what went wrong while the body of a response was read.
///
/// `None` where the bytes all came and only what they say is wrong, as under a corrupt
/// `content-encoding`.
pub(crate) fn classify_body(error: &(dyn StdError + 'static)) -> Option<TransportError> {
    if chain(error).any(timed_out) {
        return Some(TransportError::Timeout);
    }
    chain(error).any(broken_off).then_some(TransportError::Body)
}

/// Whether a timeout is behind this error, also where a middleware further in wrapped it.
pub(crate) fn is_timeout(error: &reqwest_middleware::Error) -> bool {
    find::<reqwest::Error>(error).is_some_and(reqwest::Error::is_timeout)
}

/// The outermost error of type `E` in this one, however deep a middleware further in wrapped it.
pub(crate) fn find<E: StdError + 'static>(error: &reqwest_middleware::Error) -> Option<&E> {
    chain(error).find_map(|link| link.downcast_ref::<E>())
}

/// How many links of a chain are looked at. The longest seen has ten; an error may be its own
/// source.
const DEPTH: usize = 64;

/// The error and everything behind it. An `io::Error` hides what it wraps from `source()`, and a
/// `reqwest_middleware::Error` and an `anyhow::Error` show only what is behind the error they hold.
fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    iter::successors(Some(error), |link| inner(*link)).take(DEPTH)
}

fn inner<'a>(link: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    if let Some(error) = link.downcast_ref::<io::Error>() {
        return match error.get_ref() {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    match link.downcast_ref::<reqwest_middleware::Error>() {
        Some(reqwest_middleware::Error::Reqwest(error)) => Some(error),
        Some(reqwest_middleware::Error::Middleware(error)) => Some(error.as_ref()),
        None => link.source(),
    }
}

/// What one walk over a chain found.
#[derive(Default)]
struct Findings {
    callers_fault: bool,
    verdict: Option<TransportError>,
    not_processed: bool,
    tls: bool,
    tunnel: Option<TransportError>,
    tcp: bool,
}

impl Findings {
    fn of(error: &(dyn StdError + 'static)) -> Findings {
        let mut seen = Findings::default();
        for link in chain(error) {
            seen.look(link);
            if seen.callers_fault {
                break;
            }
        }
        seen
    }

    fn look(&mut self, link: &(dyn StdError + 'static)) {
        if let Some(error) = link.downcast_ref::<hyper::Error>() {
            self.callers_fault |= error.is_user();
            self.not_processed |= error.is_canceled();
            if error.is_parse() {
                self.conclude(TransportError::Protocol);
            }
            return;
        }
        if let Some(error) = link.downcast_ref::<io::Error>() {
            self.tls |= matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::InvalidData
            );
            return;
        }
        match tls_finding(link) {
            Some(found) => self.conclude(found),
            None => match h2_finding(link) {
                Some(TransportError::NotProcessed) => self.not_processed = true,
                Some(found) => self.conclude(found),
                None => self.text(link),
            },
        }
    }

    /// A certificate outranks a protocol fault.
    fn conclude(&mut self, found: TransportError) {
        if self.verdict != Some(TransportError::Certificate) {
            self.verdict = Some(found);
        }
    }

    fn text(&mut self, link: &(dyn StdError + 'static)) {
        let _ = link;
    }
}

fn connect_stage(error: &reqwest::Error, seen: &Findings) -> TransportError {
    if let Some(proxy) = seen.tunnel {
        proxy
    } else if error.is_dns() {
        TransportError::Dns
    } else if error.is_timeout() {
        TransportError::ConnectTimeout
    } else if seen.tls && !seen.tcp {
        TransportError::Tls
    } else {
        TransportError::Connect
    }
}

fn timed_out(link: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = link.downcast_ref::<reqwest::Error>() {
        return error.is_timeout();
    }
    link.downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
}

fn broken_off(link: &(dyn StdError + 'static)) -> bool {
    link.is::<hyper::Error>()
}

#[cfg(feature = "rustls")]
fn tls_finding(link: &(dyn StdError + 'static)) -> Option<TransportError> {
    match link.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(_) => Some(TransportError::Certificate),
        rustls::Error::InvalidMessage(_) => Some(TransportError::Protocol),
        _ => None,
    }
}

#[cfg(not(feature = "rustls"))]
fn tls_finding(_: &(dyn StdError + 'static)) -> Option<TransportError> {
    None
}

#[cfg(feature = "http2")]
fn h2_finding(link: &(dyn StdError + 'static)) -> Option<TransportError> {
    let error = link.downcast_ref::<h2::Error>()?;
    let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    if error.is_remote() && (refused || error.is_go_away()) {
        return Some(TransportError::NotProcessed);
    }
    (error.is_go_away() && error.is_library()).then_some(TransportError::Protocol)
}

#[cfg(not(feature = "http2"))]
fn h2_finding(_: &(dyn StdError + 'static)) -> Option<TransportError> {
    None
}

#[allow(dead_code)]
const PROXY_AUTH: StatusCode = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
