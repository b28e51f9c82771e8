//! What reqwest reports, turned into a [`TransportError`].
//!
//! The only file that walks the sources of an error. What is not known counts as sent.

use std::error::Error as StdError;
use std::io;
use std::iter;

use http::StatusCode;

use super::error::RetryError;
use crate::TransportError;

/// Names the failure of an attempt, or `None` if it is no failure of the transport.
///
/// An error of a middleware further in is searched for the `reqwest::Error` behind it; without one
/// it is no failure of the transport. Neither is an error of the caller's own making, nor one after
/// the head of a response had come.
///
/// # What is what
///
/// "Unsent" says that the error proves that nothing was processed. The last column names the part
/// of the rule that decides whether the request is sent again.
///
/// | fault | what reqwest reports | class | unsent | decided by |
/// | --- | --- | --- | --- | --- |
/// | connection refused | connect: "tcp connect error" | `Connect` | yes | `unsent_failures` |
/// | name not resolved | connect, dns | `Dns` | yes | `unsent_failures` |
/// | connect timeout, also in the TLS handshake or at a proxy | connect, timeout | `ConnectTimeout` | yes | `timeouts`, `unsent_failures` |
/// | total or read timeout before the head, wherever it struck | timeout | `Timeout` | no | `timeouts`, `sent_failures` |
/// | connection gone before a byte was written | hyper: canceled | `NotProcessed` | yes | `unsent_failures` |
/// | closed before a whole head | hyper: incomplete message | `Closed` | no | `sent_failures` |
/// | reset before a whole head | hyper: connection reset | `Closed` | no | `sent_failures` |
/// | runtime of the connection gone | hyper: "dispatch task is gone" | `Closed` | no | `sent_failures` |
/// | upload cut off | hyper: incomplete message, broken pipe or connection reset | `Closed` | no | `sent_failures` |
/// | no HTTP where a head should be, or a head without end | hyper: parse error | `Protocol` | – | never |
/// | certificate that does not verify | connect: rustls `InvalidCertificate` | `Certificate`; `Tls` without `rustls` | – | never |
/// | client certificate demanded or refused | connect: a rustls alert about certificates | `Certificate`; `Tls` without `rustls` | – | never |
/// | client certificate demanded or refused after the handshake (TLS 1.3) | hyper: a rustls alert about certificates | `Certificate`; `Closed` without `rustls` | – | never |
/// | no TLS where it was asked for, or none in common | connect: another rustls alert, an invalid message | `Protocol`; `Tls` without `rustls` | – | never |
/// | TLS broken after the handshake | hyper: another rustls alert, an invalid message | `Protocol`; `Closed` without `rustls` | – | never |
/// | closed or reset in the TLS handshake | connect: "tls handshake eof", connection reset | `Tls` | yes | `unsent_failures` |
/// | proxy demands credentials | connect: "proxy authorization required" | `Proxy { status: Some(407) }` | yes | `unsent_failures`, `statuses` |
/// | proxy refuses the tunnel, or is none | connect: "tunnel error", "SOCKS error" | `Proxy { status: None }` | yes | `unsent_failures` |
/// | HTTP/2 stream refused | h2: a reset, REFUSED_STREAM, by the peer | `NotProcessed`; `Closed` without `http2` | yes | `unsent_failures` |
/// | HTTP/2 GOAWAY, whether it covers the request or leaves it out | hyper: broken pipe; h2: a GOAWAY by the peer | `Closed` | no | `sent_failures` |
/// | HTTP/2 stream reset for another reason | h2: a reset by the peer | `Closed` | no | `sent_failures` |
/// | HTTP/2 connection closed or reset | hyper: broken pipe, connection reset | `Closed` | no | `sent_failures` |
/// | HTTP/2 connection gone before there was a stream for the request | hyper: "dispatch task is gone" | `Closed` | no | `sent_failures` |
/// | HTTP/2 ping not answered in time | hyper: timeout | `Timeout` | no | `timeouts`, `sent_failures` |
/// | no HTTP/2 where it was spoken | h2: a GOAWAY of its own | `Protocol`; `Closed` without `http2` | – | never |
/// | body stream of the request failed | hyper: an error of the user's | none | – | comes straight back |
/// | body stream of the request failed over HTTP/2 | h2: a reset by the user | none; `Closed` without `http2` | – | comes straight back |
/// | URL or version that this client cannot ask for | builder, "invalid URL", "client error (User…)" | none | – | comes straight back |
/// | redirect that is not followed | redirect, builder | none | – | comes straight back |
/// | after the head: a refused status, a body that broke off or reads as nonsense | status, decode | none | – | comes straight back |
///
/// # What it cannot tell
///
/// - Which hop failed. After a redirect an error is that of the first hop; only a client whose
///   redirects are tracked knows better.
/// - Whose request failed. A middleware further in that sends requests of its own and passes their
///   `reqwest::Error` on makes it look like one of this request.
/// - Whether an HTTP/2 GOAWAY leaves the request out, which would prove it unsent. hyper reports
///   one that comes in while it opens a stream on that stream, also when it covers it and the
///   request goes out and is processed.
/// - What a wrapper hides. One whose `source()` leads past the `reqwest::Error`, as thiserror's
///   `transparent` does, is no failure of the transport.
/// - A certificate that does not verify under another TLS than rustls: that is `Connect`.
///
/// # Examples
///
/// ```
/// use reqwest_retry_rules::{TransportError, classify};
///
/// # rustls::crypto::ring::default_provider().install_default().ok();
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let client = reqwest::Client::builder().no_proxy().build()?;
/// let client = reqwest_middleware::ClientBuilder::new(client).build();
///
/// // A port that was free a moment ago.
/// let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
/// let refused = client.post(format!("http://127.0.0.1:{port}/")).send().await.unwrap_err();
/// assert_eq!(classify(&refused), Some(TransportError::Connect));
///
/// let never_sent = client.get("not a URL").send().await.unwrap_err();
/// assert_eq!(classify(&never_sent), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn classify(error: &reqwest_middleware::Error) -> Option<TransportError> {
    // Of another send further in: what it failed with before its time ran out says nothing of the
    // attempt that was ended.
    if find::<RetryError>(error).is_some() {
        return None;
    }
    let error = find::<reqwest::Error>(error).filter(|error| error.is_request())?;
    // The connect stage comes before the timeout: a connect timeout is both, and proves more.
    let connecting = error.is_connect();
    let class = match chain(error).filter_map(Finding::of).min() {
        Some(Finding::Caller) => return None,
        Some(Finding::Certificate) => TransportError::Certificate,
        Some(Finding::Protocol) => TransportError::Protocol,
        Some(Finding::Proxy(status)) if connecting => TransportError::Proxy { status },
        _ if connecting && error.is_dns() => TransportError::Dns,
        _ if connecting && error.is_timeout() => TransportError::ConnectTimeout,
        Some(Finding::Tls) if connecting => TransportError::Tls,
        _ if connecting => TransportError::Connect,
        Some(Finding::NotProcessed) => TransportError::NotProcessed,
        _ if error.is_timeout() => TransportError::Timeout,
        _ => TransportError::Closed,
    };
    Some(class)
}

/// Names what went wrong while the body of an answer was read, or `None` where all of it came and
/// only what it says is wrong, as under a corrupt `content-encoding`.
pub(crate) fn classify_body(error: &(dyn StdError + 'static)) -> Option<TransportError> {
    if chain(error).any(timed_out) {
        return Some(TransportError::Timeout);
    }
    let broken_off = chain(error).any(|link| link.is::<hyper::Error>() || ended_early(link));
    broken_off.then_some(TransportError::Body)
}

/// Whether a decoder wanted more than came. If the end of the connection is the end of the body,
/// nothing else tells that a part is missing.
fn ended_early(link: &(dyn StdError + 'static)) -> bool {
    link.downcast_ref::<io::Error>().is_some_and(|error| {
        // The decoder of `deflate` says it in words only.
        error.kind() == io::ErrorKind::UnexpectedEof || error.to_string() == "unexpected BufError"
    })
}

/// Whether reqwest gave up waiting, also where a middleware further in wrapped its error.
pub(crate) fn is_timeout(error: &reqwest_middleware::Error) -> bool {
    find::<reqwest::Error>(error).is_some_and(reqwest::Error::is_timeout)
}

/// The outermost `E` in an error, however deep middlewares further in wrapped it.
pub(crate) fn find<E: StdError + 'static>(error: &reqwest_middleware::Error) -> Option<&E> {
    chain(error).find_map(|link| link.downcast_ref())
}

/// True if the error names another URL than the one that was asked, query and fragment aside: a
/// middleware further in made another request, and passes on what became of that.
pub(crate) fn is_of_another_request(
    error: &reqwest_middleware::Error,
    asked: &reqwest::Url,
) -> bool {
    use url::Position;
    let named = find::<reqwest::Error>(error).and_then(reqwest::Error::url);
    named.is_some_and(|url| url[..Position::AfterPath] != asked[..Position::AfterPath])
}

/// True if the peer refused the HTTP/2 stream of a request (REFUSED_STREAM), and so did not process
/// it.
pub(crate) fn is_refused_stream(error: &(dyn StdError + 'static)) -> bool {
    chain(error).any(|link| of_h2(link) == Some(Finding::NotProcessed))
}

/// How far a chain is followed. The longest that reqwest makes has fewer than ten links; this
/// is against one that bites its own tail.
const DEPTH: usize = 64;

/// An error and all that is behind it.
fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    iter::successors(Some(error), |link| behind(*link)).take(DEPTH)
}

/// What is behind an error. The `source()` of these two leads past the error that they hold.
fn behind<'a>(link: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    if let Some(error) = link.downcast_ref::<io::Error>() {
        return match error.get_ref() {
            Some(held) => Some(held),
            None => error.source(),
        };
    }
    match link.downcast_ref::<reqwest_middleware::Error>() {
        Some(reqwest_middleware::Error::Reqwest(held)) => Some(held),
        Some(reqwest_middleware::Error::Middleware(held)) => Some(held.as_ref()),
        None => link.source(),
    }
}

/// What one link of a chain gives away. Of several the first in this order counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Finding {
    /// It is the caller's doing. First, since what failed in a body stream of the caller's can look
    /// like anything, a refused connection included.
    Caller,
    #[cfg_attr(not(feature = "rustls"), allow(dead_code))] // only rustls tells
    Certificate,
    Protocol,
    /// The proxy refused, with a status where its words give one away.
    Proxy(Option<StatusCode>),
    /// The request was not written, or the peer says that it did not look at it.
    NotProcessed,
    /// It happened below TLS. Before `Tls`, since it has an `io::Error` behind it too.
    Tcp,
    /// It happened in TLS, or in I/O, which is TLS's where nothing says that it was TCP's.
    Tls,
}

impl Finding {
    fn of(link: &(dyn StdError + 'static)) -> Option<Finding> {
        if let Some(error) = link.downcast_ref::<hyper::Error>() {
            return of_hyper(error);
        }
        if let Some(error) = link.downcast_ref::<io::Error>() {
            return of_io(error);
        }
        if link.is::<reqwest::Error>() {
            return None;
        }
        of_rustls(link)
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

/// What hyper-util says in words only, since the types of these errors are its own. Words that it
/// may choose one day are those of an ordinary connect error.
fn of_words(words: &str) -> Option<Finding> {
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
        _ => None,
    }
}

#[cfg(feature = "rustls")]
fn of_rustls(link: &(dyn StdError + 'static)) -> Option<Finding> {
    use rustls::AlertDescription as Alert;
    use rustls::Error;

    Some(match link.downcast_ref()? {
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented => Finding::Certificate,
        Error::AlertReceived(
            Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::CertificateUnobtainable
            | Alert::BadCertificateStatusResponse
            | Alert::BadCertificateHashValue
            | Alert::CertificateRequired,
        ) => Finding::Certificate,
        Error::AlertReceived(_)
        | Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerIncompatible(_)
        | Error::PeerMisbehaved(_)
        | Error::PeerSentOversizedRecord
        | Error::NoApplicationProtocol => Finding::Protocol,
        _ => Finding::Tls,
    })
}

#[cfg(not(feature = "rustls"))]
fn of_rustls(_: &(dyn StdError + 'static)) -> Option<Finding> {
    None
}

#[cfg(feature = "http2")]
fn of_h2(link: &(dyn StdError + 'static)) -> Option<Finding> {
    let error: &h2::Error = link.downcast_ref()?;
    if error.is_remote() {
        // Not for a GOAWAY, which may cover the request: hyper 1.12 sends the stream and then asks
        // whether the connection is sound, and hands a GOAWAY that came in between to the request.
        let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
        (error.is_reset() && refused).then_some(Finding::NotProcessed)
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
fn of_h2(_: &(dyn StdError + 'static)) -> Option<Finding> {
    None
}

fn timed_out(link: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = link.downcast_ref::<reqwest::Error>() {
        error.is_timeout()
    } else if let Some(error) = link.downcast_ref::<hyper::Error>() {
        error.is_timeout()
    } else {
        link.downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    /// What became of reading a body, where one server says one thing and closes or holds its
    /// peace.
    async fn body(answer: &[u8], then_close: bool) -> Option<TransportError> {
        classify_body(&read(answer, then_close).await)
    }

    async fn read(answer: &[u8], then_close: bool) -> reqwest::Error {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let answer = answer.to_vec();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let _ = client.read(&mut [0; 4096]).unwrap();
            client.write_all(&answer).unwrap();
            if !then_close {
                let _ = client.read(&mut [0]);
            }
        });
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_millis(200));
        match client.build().unwrap().get(url).send().await {
            Ok(answer) => answer.bytes().await.unwrap_err(),
            Err(error) => error,
        }
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn gzip_answer(body: &[u8], length: usize) -> Vec<u8> {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {length}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    }

    #[tokio::test]
    async fn a_body_shorter_than_its_length_is_broken_off() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart";
        assert_eq!(body(answer, true).await, Some(TransportError::Body));
    }

    #[tokio::test]
    async fn chunks_without_the_last_are_broken_off() {
        let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n";
        assert_eq!(body(answer, true).await, Some(TransportError::Body));
    }

    #[tokio::test]
    async fn a_chunk_whose_size_is_no_number_is_broken_off() {
        let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\npart\r\n";
        assert_eq!(body(answer, true).await, Some(TransportError::Body));
    }

    #[tokio::test]
    async fn a_body_that_stalls_times_out() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart";
        assert_eq!(body(answer, false).await, Some(TransportError::Timeout));
    }

    #[tokio::test]
    async fn a_compressed_body_that_breaks_off_is_broken_off() {
        let whole = gzip(&[b'x'; 10_000]);
        let answer = gzip_answer(&whole[..whole.len() / 2], whole.len());
        assert_eq!(body(&answer, true).await, Some(TransportError::Body));
    }

    #[tokio::test]
    async fn a_compressed_body_that_came_whole_and_reads_as_nonsense_is_no_transport_failure() {
        let answer = gzip_answer(b"no gzip", 7);
        assert_eq!(body(&answer, true).await, None);
    }

    #[tokio::test]
    async fn a_timeout_is_found_however_deep_it_is_wrapped() {
        let timed_out = reqwest_middleware::Error::from(read(b"", false).await);
        assert!(is_timeout(&timed_out));
        assert!(is_timeout(&reqwest_middleware::Error::middleware(
            timed_out
        )));
    }

    #[tokio::test]
    async fn what_is_no_timeout_is_none_however_deep_it_is_wrapped() {
        let closed = reqwest_middleware::Error::from(read(b"", true).await);
        assert!(!is_timeout(&closed));
        assert!(!is_timeout(&reqwest_middleware::Error::middleware(closed)));
    }

    #[test]
    fn an_error_is_found_by_its_type() {
        let timed_out = io::Error::from(io::ErrorKind::TimedOut);
        let error = reqwest_middleware::Error::middleware(io::Error::other(timed_out));
        assert_eq!(
            find::<io::Error>(&error).map(io::Error::kind),
            Some(io::ErrorKind::Other)
        );
        assert!(find::<reqwest::Error>(&error).is_none());
        assert!(!is_timeout(&error));
    }
}
