//! What reqwest reports, turned into a [`TransportError`].
//!
//! Nothing outside of this folder says which failure of a request it is. What is not known counts as
//! sent.

mod body;
mod finding;
mod tls;

use std::error::Error as StdError;
use std::io;

use self::finding::Finding;
use super::error::RetryError;
use super::error_chain::{chain, find};
use crate::rule::TransportError;

pub(super) use self::body::classify_body;

/// Names the failure of an attempt, or `None` if it is no failure of the transport.
///
/// An error of a middleware further in is searched for the `reqwest::Error` behind it; without one
/// it is no failure of the transport. Neither is an error of the caller's own making, nor one after
/// the head of a response had come.
///
/// # What is what
///
/// The last column names the part of the rule that decides whether the request is sent again.
/// It is `unsent_failures` if the error proves that nothing was processed.
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
/// - Which URL failed. After a redirect was followed, an error looks like one of the first URL; only
///   a client whose redirects are tracked knows better.
/// - Whose request failed. A middleware further in that sends requests of its own and passes their
///   `reqwest::Error` on makes it look like one of this request. The middleware looks at the URL of
///   the error too, and does not take it for unsent if that is another one. A request of its own to
///   the very same URL, such as a GET after the POST, cannot be recognized.
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
pub(in crate::middleware) fn classify_request(error: &reqwest::Error) -> Option<TransportError> {
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

/// True if the peer refused the HTTP/2 stream of a request (REFUSED_STREAM), and so did not process
/// it.
pub(in crate::middleware) fn is_refused_stream(error: &(dyn StdError + 'static)) -> bool {
    chain(error).any(|link| finding::of_h2(link) == Some(Finding::NotProcessed))
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
