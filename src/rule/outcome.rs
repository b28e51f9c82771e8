use std::error::Error;
use std::fmt;

use http::{HeaderMap, StatusCode};

/// What one attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome<'a> {
    /// An answer came.
    Response {
        /// Its status.
        status: StatusCode,
        /// Its headers.
        headers: &'a HeaderMap,
    },
    /// No answer came.
    Failure(TransportError),
}

/// Why no answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportError {
    /// The name did not resolve.
    Dns,
    /// No connection came about.
    Connect,
    /// No connection came about in time.
    ConnectTimeout,
    /// The TLS handshake broke off.
    Tls,
    /// The proxy refused the tunnel.
    Proxy {
        /// With this status, where it is known.
        status: Option<StatusCode>,
    },
    /// The peer says that it did not process the request.
    NotProcessed,
    /// What would be unsent, on a later hop.
    AfterRedirect,
    /// No answer came in time.
    Timeout,
    /// Closed or reset before the answer.
    Closed,
    /// The answer's body broke off.
    Body,
    /// A certificate does not verify.
    Certificate,
    /// The peer speaks no valid HTTP or TLS.
    Protocol,
}

impl TransportError {
    /// Whether it proves that nothing was processed.
    pub fn is_unsent(&self) -> bool {
        matches!(
            self,
            TransportError::Dns
                | TransportError::Connect
                | TransportError::ConnectTimeout
                | TransportError::Tls
                | TransportError::Proxy { .. }
                | TransportError::NotProcessed
        )
    }

    /// Whether time ran out.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self,
            TransportError::Timeout | TransportError::ConnectTimeout
        )
    }

    /// What this failure is once a redirect was followed.
    pub(crate) fn after_redirect(self) -> Self {
        match self {
            TransportError::ConnectTimeout => TransportError::Timeout,
            unsent if unsent.is_unsent() => TransportError::AfterRedirect,
            other => other,
        }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Error for TransportError {}
