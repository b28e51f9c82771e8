use std::error::Error;
use std::fmt;

use http::{HeaderMap, StatusCode};

/// What one attempt came to: a response, or a failure that kept one away.
///
/// There is no third, so this enum is closed.
///
/// # Examples
///
/// ```
/// use http::{HeaderMap, Method, StatusCode};
/// use reqwest_retry_rules::{
///     Attempt, AttemptOutcome, Decision, RetryRule, StopReason, TransportError,
/// };
///
/// let rule = RetryRule::transient();
/// let get = Attempt::new(&Method::GET);
///
/// let headers = HeaderMap::new();
/// let found = AttemptOutcome::Response { status: StatusCode::NOT_FOUND, headers: &headers };
/// assert_eq!(rule.decide(&found, &get), Decision::Stop(StopReason::NotRetryable));
///
/// let refused = AttemptOutcome::Failure(TransportError::Certificate);
/// assert_eq!(rule.decide(&refused, &get), Decision::Stop(StopReason::NotRetryable));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome<'a> {
    /// A response came, whatever its status.
    Response {
        /// Its status.
        status: StatusCode,
        /// Its headers: the override header and the waits are read from them.
        headers: &'a HeaderMap,
    },
    /// No response came, or not all of it.
    Failure(TransportError),
}

impl<'a, B> From<&'a http::Response<B>> for AttemptOutcome<'a> {
    /// The response's status and headers.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::{Method, Response};
    /// use reqwest_retry_rules::{Attempt, AttemptOutcome, Decision, RetryRule, StopReason};
    ///
    /// let answer = Response::builder().status(404).body(()).unwrap();
    /// let outcome = AttemptOutcome::from(&answer);
    /// let decision = RetryRule::transient().decide(&outcome, &Attempt::new(&Method::GET));
    /// assert_eq!(decision, Decision::Stop(StopReason::NotRetryable));
    /// ```
    fn from(response: &'a http::Response<B>) -> Self {
        AttemptOutcome::Response {
            status: response.status(),
            headers: response.headers(),
        }
    }
}

/// Shows the names of the headers and not their values, which may be secret.
impl fmt::Debug for AttemptOutcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttemptOutcome::Response { status, headers } => f
                .debug_struct("Response")
                .field("status", status)
                .field("headers", &headers.keys().collect::<Vec<_>>())
                .finish(),
            AttemptOutcome::Failure(failure) => f.debug_tuple("Failure").field(failure).finish(),
        }
    }
}

/// Why an attempt brought no response, by what it proves.
///
/// What counts is whether the request may have been processed. A failure for which [`is_unsent`]
/// holds proves that it was not, so the request may be sent again whatever its method; after any
/// other, only if sending it twice does no harm (RFC 9110, 9.2.2).
///
/// [`is_unsent`]: TransportError::is_unsent
///
/// # Examples
///
/// ```
/// use reqwest_retry_rules::TransportError;
///
/// assert!(TransportError::ConnectTimeout.is_unsent());
/// assert!(!TransportError::Timeout.is_unsent()); // the server may still be working on it
/// assert_eq!(TransportError::Dns.to_string(), "the host name could not be resolved");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportError {
    /// The host name could not be resolved. Unsent.
    Dns,
    /// No connection could be made. Unsent.
    Connect,
    /// No connection could be made in time. Unsent, and a timeout.
    ConnectTimeout,
    /// The TLS handshake broke off in a way that may pass. Unsent.
    Tls,
    /// A proxy refused the tunnel. Unsent.
    Proxy {
        /// The status of the proxy's answer to CONNECT, if it is known.
        status: Option<StatusCode>,
    },
    /// The server says that it did not process the request (HTTP/2: REFUSED_STREAM; RFC 9113, 8.7),
    /// or the connection was gone before a byte was written. Unsent.
    NotProcessed,
    /// A failure that would prove the request unsent, had nothing been sent before it: but a
    /// redirect was followed, so the first request was answered, or a middleware further in had
    /// another client send something on the way.
    AfterRedirect,
    /// No response came in time. A timeout.
    Timeout,
    /// The connection was closed or reset before the response.
    Closed,
    /// The response's body broke off.
    Body,
    /// A certificate does not verify. Another attempt would not change that, so it is never
    /// retried.
    Certificate,
    /// The peer does not speak valid HTTP or TLS. Never retried either.
    Protocol,
}

impl TransportError {
    /// True if it proves that the request was not processed; `false` for `Certificate` and
    /// `Protocol`, which are never retried.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::TransportError;
    ///
    /// assert!(TransportError::Connect.is_unsent());
    /// assert!(!TransportError::AfterRedirect.is_unsent());
    /// ```
    pub fn is_unsent(&self) -> bool {
        match self {
            TransportError::Dns
            | TransportError::Connect
            | TransportError::ConnectTimeout
            | TransportError::Tls
            | TransportError::Proxy { .. }
            | TransportError::NotProcessed => true,
            TransportError::AfterRedirect
            | TransportError::Timeout
            | TransportError::Closed
            | TransportError::Body
            | TransportError::Certificate
            | TransportError::Protocol => false,
        }
    }

    /// True if time ran out.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::TransportError;
    ///
    /// assert!(TransportError::ConnectTimeout.is_timeout());
    /// assert!(!TransportError::Closed.is_timeout());
    /// ```
    pub fn is_timeout(&self) -> bool {
        matches!(
            self,
            TransportError::Timeout | TransportError::ConnectTimeout
        )
    }

    /// A short name that stays the same, for metrics and logs, in snake case.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::TransportError;
    ///
    /// assert_eq!(TransportError::ConnectTimeout.name(), "connect_timeout");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            TransportError::Dns => "dns",
            TransportError::Connect => "connect",
            TransportError::ConnectTimeout => "connect_timeout",
            TransportError::Tls => "tls",
            TransportError::Proxy { .. } => "proxy",
            TransportError::NotProcessed => "not_processed",
            TransportError::AfterRedirect => "after_redirect",
            TransportError::Timeout => "timeout",
            TransportError::Closed => "closed",
            TransportError::Body => "body",
            TransportError::Certificate => "certificate",
            TransportError::Protocol => "protocol",
        }
    }

    /// What this failure is once a redirect was followed: no failure after it proves that
    /// the first request was not processed.
    pub(crate) fn after_redirect(self) -> Self {
        match self {
            // Still a timeout, so that a rule without timeouts does not retry it.
            TransportError::ConnectTimeout => TransportError::Timeout,
            unsent if unsent.is_unsent() => TransportError::AfterRedirect,
            sent => sent,
        }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TransportError::Dns => "the host name could not be resolved",
            TransportError::Connect => "no connection could be made",
            TransportError::ConnectTimeout => "no connection could be made in time",
            TransportError::Tls => "the TLS handshake broke off",
            TransportError::Proxy {
                status: Some(status),
            } => {
                return write!(
                    f,
                    "the proxy refused the tunnel with status {}",
                    status.as_u16()
                );
            }
            TransportError::Proxy { status: None } => "the proxy refused the tunnel",
            TransportError::NotProcessed => "the server did not process the request",
            TransportError::AfterRedirect => "the request failed after it may have been processed",
            TransportError::Timeout => "no response came in time",
            TransportError::Closed => "the connection was closed before the response",
            TransportError::Body => "the response's body broke off",
            TransportError::Certificate => "a certificate could not be verified",
            TransportError::Protocol => "the peer spoke no valid HTTP or TLS",
        })
    }
}

impl Error for TransportError {}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::TransportError::*;
    use super::*;

    #[test]
    fn debug_shows_no_header_value() {
        let mut headers = HeaderMap::new();
        headers.insert("set-cookie", HeaderValue::from_static("session=secret"));
        headers.append("set-cookie", HeaderValue::from_static("other=secret"));
        headers.insert("retry-after", HeaderValue::from_static("2"));
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let response = AttemptOutcome::Response {
            status,
            headers: &headers,
        };
        let shown = format!("{response:?}");
        assert!(!shown.contains("secret"), "{shown}");
        assert_eq!(
            shown,
            r#"Response { status: 503, headers: ["set-cookie", "retry-after"] }"#
        );
        let failure = AttemptOutcome::Failure(Closed);
        assert_eq!(format!("{failure:?}"), "Failure(Closed)");
    }

    #[test]
    fn nothing_is_unsent_after_a_redirect() {
        for unsent in [Dns, Connect, Tls, Proxy { status: None }, NotProcessed] {
            assert_eq!(unsent.after_redirect(), AfterRedirect);
        }
        assert_eq!(ConnectTimeout.after_redirect(), Timeout);
        for sent in [AfterRedirect, Timeout, Closed, Body, Certificate, Protocol] {
            assert_eq!(sent.after_redirect(), sent);
        }
    }
}
