//! What reqwest reports, turned into a [`TransportError`].
//!
//! No other file says which failure of a request it is. What is not known counts as sent.

use std::error::Error as StdError;
use std::io;
#[cfg(feature = "rustls")]
use std::sync::LazyLock;

use http::StatusCode;

use super::error::RetryError;
use super::error_chain::{chain, find};
use crate::TransportError;

/// Names the failure of an attempt, or `None` if it is no failure of the transport.
///
/// An error of a middleware further in is searched for the `reqwest::Error` behind it; without one
/// it is no failure of the transport. Neither is an error of the caller's own making, nor one after
/// the head of a response had come.
///
/// # What is what
///
/// The last column names the part of the rule that decides whether the request is sent again.
/// `unsent_failures` stands where the error proves that nothing was processed.
///
/// | fault | class | decided by |
/// | --- | --- | --- |
/// | connection refused | `Connect` | `unsent_failures` |
/// | name not resolved | `Dns` | `unsent_failures` |
/// | no connection in time | `ConnectTimeout` | `timeouts`, `unsent_failures` |
/// | no head in time | `Timeout` | `timeouts`, `sent_failures` |
/// | connection gone before a byte was written | `NotProcessed` | `unsent_failures` |
/// | closed before a whole head | `Closed` | `sent_failures` |
/// | reset before a whole head | `Closed` | `sent_failures` |
/// | runtime of the connection gone | `Closed` | `sent_failures` |
/// | upload cut off | `Closed` | `sent_failures` |
/// | no HTTP, or a head without end | `Protocol` | never |
/// | certificate that does not verify | `Certificate` | never |
/// | client certificate demanded or refused | `Certificate` | never |
/// | the same after the handshake (TLS 1.3) | `Certificate` | never |
/// | no TLS, or none in common | `Protocol` | never |
/// | TLS handshake broken off | `Tls` | `unsent_failures` |
/// | TLS broken after the handshake | `Closed` | `sent_failures` |
/// | proxy demands credentials | `Proxy { status: Some(407) }` | `unsent_failures`, `statuses` |
/// | proxy refuses the tunnel, or is none | `Proxy { status: None }` | `unsent_failures` |
/// | HTTP/2 stream refused | `NotProcessed` | `unsent_failures` |
/// | HTTP/2 GOAWAY | `Closed` | `sent_failures` |
/// | HTTP/2 stream reset | `Closed` | `sent_failures` |
/// | HTTP/2 refused: HTTP_1_1_REQUIRED | `Protocol` | never |
/// | HTTP/2 connection closed or reset | `Closed` | `sent_failures` |
/// | HTTP/2 connection gone before a stream | `Closed` | `sent_failures` |
/// | HTTP/2 ping not answered | `Timeout` | `timeouts`, `sent_failures` |
/// | no HTTP/2 where it was spoken | `Protocol` | never |
/// | request's body stream failed | none | comes straight back |
/// | the same over HTTP/2 | none | comes straight back |
/// | URL or version not to be had | none | comes straight back |
/// | redirect that is not followed | none | comes straight back |
/// | failure after the head | none | comes straight back |
///
/// # By which sign
///
/// - `ConnectTimeout`: `connect_timeout` ran out, in the TLS handshake or at a proxy too; or the
///   resolver gave up waiting. reqwest's `timeout` and `read_timeout` are `Timeout` wherever they
///   strike, since they do not say whether the request had left.
/// - `NotProcessed`: hyper gave the request up before it wrote a byte; or the server reset the
///   stream with REFUSED_STREAM (RFC 9113, 8.7).
/// - `Certificate`: a certificate that does not verify, or an alert of the peer about one, whenever
///   it comes.
/// - `Protocol` in the TLS handshake: what the peer says is no TLS, or no version, cipher or other
///   term is shared. Later a record that does not decrypt, plain text between two records, or an
///   alert about either is noise on the wire, which says nothing of the peer: `Closed`.
/// - `Tls`: closed or reset in the handshake, or an alert that says nothing of what the peer
///   supports: `internal_error`, `user_canceled`, `bad_record_mac`.
/// - `Proxy`: hyper-util's words, since its types are private. Words that it does not use today are
///   `Connect`.
/// - Failure after the head: a status turned into an error, a body that breaks off or reads as
///   nonsense. [`complete_body`](crate::RetryPolicy::complete_body) brings a body that breaks off
///   inside the attempt.
///
/// # Without a feature
///
/// A feature that is off makes the answer less precise, and a certificate is then tried again:
///
/// | fault | feature | class without it |
/// | --- | --- | --- |
/// | certificate that does not verify | `rustls` | `Tls` |
/// | client certificate demanded or refused | `rustls` | `Tls` |
/// | the same after the handshake (TLS 1.3) | `rustls` | `Closed` |
/// | no TLS, or none in common | `rustls` | `Tls` |
/// | HTTP/2 stream refused | `http2` | `Closed` |
/// | HTTP/2 refused: HTTP_1_1_REQUIRED | `http2` | `Closed` |
/// | no HTTP/2 where it was spoken | `http2` | `Closed` |
/// | the same over HTTP/2 | `http2` | `Closed` |
///
/// # Beside native-tls
///
/// reqwest's feature `native-tls` brings the TLS of the platform, whose errors have no types of
/// their own. The feature `rustls` of this crate says nothing there and can be left out, as `http2`
/// can if the client speaks HTTP/1.1 only.
///
/// - On Linux (OpenSSL) a certificate that does not verify and the peer's alerts about certificates
///   are `Certificate`, by OpenSSL's words. A peer that speaks no TLS, or none in common, is
///   `Connect`.
/// - On Windows (SChannel) and macOS (Secure Transport) the words are the system's, on Windows in
///   the language of the user, and are not read: a certificate that does not verify is `Connect` or
///   `Tls`, and with `unsent_failures` it is tried again until the rule gives up. Nothing is
///   processed by that, and [`classify_with`](crate::RetryPolicy::classify_with) can read the words.
///
/// # What it cannot tell
///
/// - Which hop failed. After a redirect an error is that of the first hop; only a client whose
///   redirects are tracked knows better.
/// - Whose request failed. A middleware further in that sends requests of its own and passes their
///   `reqwest::Error` on makes it look like one of this request. The middleware looks at the URL of
///   the error too, and does not take it for unsent if that is another one. A request of its own to
///   the very same URL, such as a GET after the POST, is not told apart.
/// - Whether an HTTP/2 GOAWAY leaves the request out, which would prove it unsent. hyper reports
///   one that comes in while it opens a stream on that stream, also when it covers it and the
///   request goes out and is processed.
/// - Why an HTTP/2 connection broke before the request was written: hyper reports no cause. If the
///   alert about a client certificate comes that early, the class is `NotProcessed`, and the next
///   attempt tells.
/// - What a wrapper hides. One whose `source()` leads past the `reqwest::Error`, as thiserror's
///   `transparent` does, is no failure of the transport.
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
pub fn classify(error: &(dyn StdError + 'static)) -> Option<TransportError> {
    // Of another send further in: what it failed with before its time ran out says nothing of the
    // attempt that was ended.
    if find::<RetryError>(error).is_some() {
        return None;
    }
    classify_request(find(error).filter(|error: &&reqwest::Error| error.is_request())?)
}

/// Names the failure of a request that got no head of a response.
pub(crate) fn classify_request(error: &reqwest::Error) -> Option<TransportError> {
    let finding = chain(error).filter_map(Finding::of).min();
    Some(match finding {
        Some(Finding::Caller) => return None,
        Some(Finding::Certificate) => TransportError::Certificate,
        Some(Finding::Protocol) => TransportError::Protocol,
        // Before the timeout: a connect timeout is both, and proves more.
        _ if error.is_connect() => connecting(error, finding),
        Some(Finding::NotProcessed) => TransportError::NotProcessed,
        _ if chain(error).any(timed_out) => TransportError::Timeout,
        _ => TransportError::Closed,
    })
}

/// Names a failure before there was a connection.
fn connecting(error: &reqwest::Error, finding: Option<Finding>) -> TransportError {
    match finding {
        Some(Finding::Incompatible) => TransportError::Protocol,
        // Before the rest, so that a rule without timeouts retries none, whatever it was that took
        // too long.
        _ if chain(error).any(timed_out) => TransportError::ConnectTimeout,
        _ if error.is_dns() && chain(error).any(resolver_timed_out) => {
            TransportError::ConnectTimeout
        }
        Some(Finding::Proxy(status)) => TransportError::Proxy { status },
        _ if error.is_dns() => TransportError::Dns,
        Some(Finding::Tls) => TransportError::Tls,
        _ => TransportError::Connect,
    }
}

/// Names what went wrong while the body of an answer was read, or `None` if all of it came and only
/// what it says is wrong, as under a corrupt `content-encoding`.
pub(crate) fn classify_body(error: &(dyn StdError + 'static)) -> Option<TransportError> {
    if chain(error).any(timed_out) {
        return Some(TransportError::Timeout);
    }
    chain(error).any(broke_off).then_some(TransportError::Body)
}

/// True if the peer refused the HTTP/2 stream of a request (REFUSED_STREAM), and so did not process
/// it.
pub(crate) fn is_refused_stream(error: &(dyn StdError + 'static)) -> bool {
    chain(error).any(|link| of_h2(link) == Some(Finding::NotProcessed))
}

/// What one link of a chain gives away. If there are several, the first in this order counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Finding {
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

/// What is said in words only, since the types of these errors are private. Words that hyper-util
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
        _ if is_certificate_alert_of_rustls(words) => Some(Finding::Certificate),
        _ if is_certificate_error_of_openssl(words) => Some(Finding::Certificate),
        _ => None,
    }
}

/// What OpenSSL says of a certificate: of the peer's, and in alerts of the peer about ours. Before
/// its version 3.2 the words of an alert begin with "sslv3" or "tlsv1", since then some begin with
/// "ssl/tls".
fn is_certificate_error_of_openssl(words: &str) -> bool {
    const REASONS: [&str; 12] = [
        ":certificate verify failed",
        " alert no certificate",
        " alert bad certificate",
        " alert unsupported certificate",
        " alert certificate revoked",
        " alert certificate expired",
        " alert certificate unknown",
        " alert unknown ca",
        " alert access denied",
        " alert certificate required",
        " bad certificate status response",
        " bad certificate hash value",
    ];
    words.starts_with("error:")
        && words.contains(":SSL routines:")
        && REASONS.iter().any(|reason| words.contains(reason))
}

#[cfg(feature = "rustls")]
const CERTIFICATE_ALERTS: [rustls::AlertDescription; 12] = {
    use rustls::AlertDescription as Alert;
    [
        Alert::NoCertificate,
        Alert::BadCertificate,
        Alert::UnsupportedCertificate,
        Alert::CertificateRevoked,
        Alert::CertificateExpired,
        Alert::CertificateUnknown,
        Alert::UnknownCA,
        Alert::AccessDenied,
        Alert::CertificateUnobtainable,
        Alert::BadCertificateStatusResponse,
        Alert::BadCertificateHashValue,
        Alert::CertificateRequired,
    ]
};

#[cfg(feature = "rustls")]
fn of_rustls(link: &(dyn StdError + 'static)) -> Option<Finding> {
    use rustls::AlertDescription as Alert;
    use rustls::Error;

    Some(match link.downcast_ref()? {
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented => Finding::Certificate,
        Error::AlertReceived(alert) if CERTIFICATE_ALERTS.contains(alert) => Finding::Certificate,
        // These say nothing of what the peer supports.
        Error::AlertReceived(
            Alert::InternalError
            | Alert::UserCanceled
            | Alert::BadRecordMac
            | Alert::DecryptionFailed,
        ) => Finding::Tls,
        Error::AlertReceived(_)
        | Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerIncompatible(_)
        | Error::PeerMisbehaved(_)
        | Error::PeerSentOversizedRecord
        | Error::NoApplicationProtocol => Finding::Incompatible,
        _ => Finding::Tls,
    })
}

#[cfg(not(feature = "rustls"))]
fn of_rustls(_: &(dyn StdError + 'static)) -> Option<Finding> {
    None
}

/// Over HTTP/2 nothing is left of an alert but the words that rustls has for it.
#[cfg(feature = "rustls")]
fn is_certificate_alert_of_rustls(words: &str) -> bool {
    static WORDS: LazyLock<[String; 12]> = LazyLock::new(|| {
        CERTIFICATE_ALERTS.map(|alert| rustls::Error::AlertReceived(alert).to_string())
    });
    WORDS.iter().any(|alert| alert == words)
}

#[cfg(not(feature = "rustls"))]
fn is_certificate_alert_of_rustls(_: &str) -> bool {
    false
}

#[cfg(feature = "http2")]
fn of_h2(link: &(dyn StdError + 'static)) -> Option<Finding> {
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
fn of_h2(_: &(dyn StdError + 'static)) -> Option<Finding> {
    None
}

fn timed_out(link: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = link.downcast_ref::<reqwest::Error>() {
        error.is_timeout()
    } else if let Some(error) = link.downcast_ref::<hyper::Error>() {
        error.is_timeout()
    } else if let Some(error) = link.downcast_ref::<io::Error>() {
        error.kind() == io::ErrorKind::TimedOut
    } else {
        // Of a resolver or a connector that bounds its time with tokio.
        link.is::<tokio::time::error::Elapsed>()
    }
}

/// What hickory says, the resolver that reqwest's feature `hickory-dns` brings.
fn resolver_timed_out(link: &(dyn StdError + 'static)) -> bool {
    link.to_string() == "request timed out"
}

/// Whether a body ended before it was whole: the connection broke off, or a decoder came to the end
/// of what the server sent and wanted more. The second is all that is seen if the end of the
/// connection is the end of the body.
fn broke_off(link: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = link.downcast_ref::<io::Error>() {
        // So say the decoders of gzip, brotli and zstd; the words are those of the one of deflate.
        error.kind() == io::ErrorKind::UnexpectedEof || error.to_string() == "unexpected BufError"
    } else {
        link.is::<hyper::Error>()
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
        ask(answer, then_close).await.unwrap_err()
    }

    async fn ask(answer: &[u8], then_close: bool) -> reqwest::Result<bytes::Bytes> {
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
            .timeout(Duration::from_millis(if then_close { 30_000 } else { 200 }));
        let answer = client.build().unwrap().get(url).send().await?;
        answer.bytes().await
    }

    /// A text in each coding that reqwest decodes.
    fn coded() -> [(&'static str, Vec<u8>); 4] {
        let text = [b'x'; 10_000];
        let level = flate2::Compression::none();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), level);
        gzip.write_all(&text).unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
        zlib.write_all(&text).unwrap();
        [
            ("gzip", gzip.finish().unwrap()),
            ("deflate", zlib.finish().unwrap()),
            ("br", brotli(&text)),
            ("zstd", zstd(&text)),
        ]
    }

    /// One uncompressed meta-block and the empty last one (RFC 7932, 9.2).
    fn brotli(text: &[u8]) -> Vec<u8> {
        let head = ((text.len() - 1) << 4) | (1 << 20);
        [&head.to_le_bytes()[..3], text, &[3]].concat()
    }

    /// One frame of one raw block (RFC 8878, 3.1.1).
    fn zstd(text: &[u8]) -> Vec<u8> {
        let size = u16::try_from(text.len() - 256).unwrap().to_le_bytes();
        let block = (text.len() << 3) | 1;
        let magic = [0x28, 0xb5, 0x2f, 0xfd, 0x60];
        [&magic, &size[..], &block.to_le_bytes()[..3], text].concat()
    }

    fn answer(coding: &str, header: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\n{header}\r\n");
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
    async fn a_compressed_body_shorter_than_its_length_is_broken_off() {
        for (coding, whole) in coded() {
            let length = format!("content-length: {}\r\n", whole.len());
            let answer = answer(coding, &length, &whole[..whole.len() / 2]);
            assert_eq!(
                body(&answer, true).await,
                Some(TransportError::Body),
                "{coding}"
            );
        }
    }

    #[tokio::test]
    async fn a_compressed_body_that_the_end_of_the_connection_cuts_off_is_broken_off() {
        for (coding, whole) in coded() {
            for length in [1, whole.len() / 2, whole.len() - 1] {
                let answer = answer(coding, "", &whole[..length]);
                assert_eq!(
                    body(&answer, true).await,
                    Some(TransportError::Body),
                    "{coding}, {length} bytes"
                );
            }
        }
    }

    #[tokio::test]
    async fn a_compressed_body_that_the_end_of_the_connection_ends_is_whole() {
        for (coding, whole) in coded() {
            let answer = answer(coding, "", &whole);
            assert_eq!(
                ask(&answer, true).await.unwrap()[..],
                [b'x'; 10_000],
                "{coding}"
            );
        }
    }

    #[tokio::test]
    async fn a_compressed_body_that_reads_as_nonsense_is_no_transport_failure() {
        for (coding, _) in coded() {
            for header in ["", "content-length: 22\r\n"] {
                let answer = answer(coding, header, b"this was never encoded");
                assert_eq!(body(&answer, true).await, None, "{coding}, {header}");
            }
        }
    }

    /// What OpenSSL 3.0 says (`openssl errstr`, with what the crate `openssl` puts around it).
    fn openssl(reason: &str) -> String {
        format!("error:0A000086:SSL routines:ssl3_read_bytes:{reason}:ssl/record/x.c:1605:")
    }

    #[test]
    fn what_openssl_says_of_certificates_is_about_certificates() {
        for reason in [
            "certificate verify failed",
            "sslv3 alert no certificate",
            "sslv3 alert bad certificate",
            "ssl/tls alert bad certificate",
            "sslv3 alert unsupported certificate",
            "sslv3 alert certificate revoked",
            "sslv3 alert certificate expired",
            "ssl/tls alert certificate expired",
            "sslv3 alert certificate unknown",
            "tlsv1 alert unknown ca",
            "tlsv1 alert access denied",
            "tlsv1 bad certificate status response",
            "tlsv1 bad certificate hash value",
            "tlsv13 alert certificate required",
        ] {
            let words = openssl(reason);
            assert!(of_words(&words) == Some(Finding::Certificate), "{words}");
            let words = format!("{words} (unable to get local issuer certificate)");
            assert!(of_words(&words) == Some(Finding::Certificate), "{words}");
        }
    }

    #[test]
    fn what_openssl_says_of_other_things_is_not() {
        for reason in [
            "wrong version number",
            "sslv3 alert bad record mac",
            "sslv3 alert handshake failure",
            "tlsv1 alert internal error",
            "tlsv1 alert decrypt error",
            "decryption failed or bad record mac",
            "unexpected eof while reading",
        ] {
            let words = openssl(reason);
            assert!(of_words(&words).is_none(), "{words}");
        }
        assert!(of_words("certificate verify failed").is_none());
        assert!(of_words("connection error received: (b\"error:SSL routines\")").is_none());
    }
}
