//! The few errors that are ours, and what one asks of an error that came back.

use std::error::Error as StdError;
use std::fmt;

use super::body_source::BoxError;
use super::classify;

/// An error that the middleware itself made: everything else comes back as it came in.
///
/// It travels in [`reqwest_middleware::Error::Middleware`] and is found by `downcast_ref`, or
/// shorter by [`ErrorExt::retry_error`].
#[derive(Debug)]
#[non_exhaustive]
pub enum RetryError {
    /// The total timeout or the deadline of the send ran out while an attempt was in flight, or
    /// before the first could begin.
    #[non_exhaustive]
    TotalTimeout {
        /// How many attempts were begun, the one that was ended included; 0 where the time was
        /// over before the first.
        attempts: u32,
        /// What the last finished attempt failed with: its transport error, or for a response with
        /// a status of 400 or above the error that
        /// [`Response::error_for_status`](reqwest::Response::error_for_status) makes of it, for a
        /// body that broke off its [`TransportError`](crate::TransportError).
        last: Option<BoxError>,
    },
    /// The [`BodySource`](crate::BodySource) of a request without a body failed to make its first.
    #[non_exhaustive]
    BodySource {
        /// The error of the maker.
        source: BoxError,
    },
}

impl fmt::Display for RetryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TotalTimeout { attempts: 0, .. } => {
                f.write_str("the total timeout was over before the first attempt")
            }
            Self::TotalTimeout { attempts: 1, .. } => {
                f.write_str("the total timeout ran out in the first attempt")
            }
            Self::TotalTimeout { attempts, .. } => {
                write!(f, "the total timeout ran out in attempt {attempts}")
            }
            Self::BodySource { .. } => f.write_str("the body source made no body"),
        }
    }
}

impl StdError for RetryError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::TotalTimeout { last, .. } => last.as_deref().map(|last| last as _),
            Self::BodySource { source } => Some(source.as_ref()),
        }
    }
}

/// What one asks of the error of a send.
///
/// Implemented for [`reqwest_middleware::Error`], and for nothing else.
pub trait ErrorExt: sealed::Sealed {
    /// Whether time ran out: [`RetryError::TotalTimeout`], or a timeout that reqwest reports, also
    /// where another middleware has wrapped it.
    ///
    /// [`reqwest_middleware::Error::is_timeout`] cannot see into errors of a middleware and says
    /// `false` for both.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # rustls::crypto::ring::default_provider().install_default().ok();
    /// use std::time::Duration;
    /// use reqwest_middleware::ClientBuilder;
    /// use reqwest_retry_rules::{ErrorExt, RetryMiddleware, RetryRule, TotalTimeout, client_builder};
    ///
    /// let client = ClientBuilder::new(client_builder().build()?)
    ///     .with(RetryMiddleware::new(RetryRule::transient()))
    ///     .build();
    /// let error = client
    ///     .get("http://127.0.0.1:9/")
    ///     .with_extension(TotalTimeout(Duration::ZERO))
    ///     .send()
    ///     .await
    ///     .unwrap_err();
    /// assert!(error.timed_out());
    /// assert!(!error.is_timeout());
    /// # Ok(())
    /// # }
    /// ```
    fn timed_out(&self) -> bool;

    /// The error that this crate made, if it is one, also where another middleware has wrapped it.
    fn retry_error(&self) -> Option<&RetryError>;
}

impl ErrorExt for reqwest_middleware::Error {
    fn timed_out(&self) -> bool {
        matches!(self.retry_error(), Some(RetryError::TotalTimeout { .. }))
            || classify::is_timeout(self)
    }

    fn retry_error(&self) -> Option<&RetryError> {
        classify::find(self)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for reqwest_middleware::Error {}
}
