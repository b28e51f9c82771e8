//! What one attempt came to.

use http::{HeaderMap, StatusCode};

/// What one attempt came to.
#[derive(Clone, Copy, Debug)]
pub enum AttemptOutcome<'a> {
    /// An answer came.
    Response {
        /// The status.
        status: StatusCode,
        /// The headers.
        headers: &'a HeaderMap,
    },
    /// No answer came.
    Failure(TransportError),
}

/// Why no answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum TransportError {
    Dns,
    Connect,
    ConnectTimeout,
    Tls,
    Proxy { status: Option<StatusCode> },
    NotProcessed,
    AfterRedirect,
    Timeout,
    Closed,
    Body,
    Certificate,
    Protocol,
}
