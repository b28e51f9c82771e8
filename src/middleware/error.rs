//! The few errors that are ours, and what one asks of an error that came back.

use std::error::Error as StdError;
use std::fmt;

use super::request::BoxError;
use super::classify;

/// An error that the middleware itself made: every other error comes back as it came in.
///
/// It is inside [`reqwest_middleware::Error::Middleware`]; [`ErrorExt::retry_error`] finds it, as
/// `downcast_ref` does.
#[derive(Debug)]
#[non_exhaustive]
pub enum RetryError {
    /// The total timeout or the deadline of the send ran out while an attempt was in flight, or
    /// before the first could begin.
    #[non_exhaustive]
    TotalTimeout {
        /// How many attempts were begun, the one that was ended included; 0 if the time was over
        /// before the first.
        attempts: u32,
        /// What the last finished attempt failed with: its transport error; for a response with a
        /// status of 400 or above, the error that
        /// [`Response::error_for_status`](reqwest::Response::error_for_status) makes of it; for a
        /// body that broke off, its [`TransportError`](crate::TransportError).
        ///
        /// The text and the `Debug` of an error of reqwest's hold the URL with its query, here as
        /// elsewhere. Only events promise [never to hold a query
        /// string](crate::RetryObserver#events).
        last: Option<BoxError>,
    },
    /// An attempt was dropped since the head of its response did not come in time
    /// ([`RetryPolicy::head_timeout`](crate::RetryPolicy::head_timeout)), and it was not retried.
    HeadTimeout,
    /// The [`BodySource`](crate::BodySource) of a request without a body failed to make the first
    /// one.
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
            Self::HeadTimeout => f.write_str("the head of the response did not come in time"),
            Self::BodySource { .. } => f.write_str("the body source made no body"),
        }
    }
}

impl StdError for RetryError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::TotalTimeout { last, .. } => last.as_deref().map(|last| last as _),
            Self::HeadTimeout => None,
            Self::BodySource { source } => Some(source.as_ref()),
        }
    }
}

/// What can be asked of the error of a send.
///
/// Implemented for [`reqwest_middleware::Error`], and for nothing else.
pub trait ErrorExt: sealed::Sealed {
    /// Whether time ran out: [`RetryError::TotalTimeout`], or a timeout that reqwest reports, even
    /// if another middleware has wrapped it.
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
    /// use reqwest_retry_rules::{
    ///     ErrorExt, RetryMiddleware, RetryRule, TotalTimeout, client_builder,
    /// };
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

    /// The error that this crate made, if it is one, even if another middleware has wrapped it.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{ErrorExt, RetryRule, TotalTimeout};
    ///
    /// let client = client(RetryRule::transient(), |_| status(200)); // in place of the network
    /// let request = client.get("http://127.0.0.1/").with_extension(TotalTimeout(Duration::ZERO));
    /// let error = request.send().await.unwrap_err();
    /// let own = error.retry_error().ok_or("one of this crate's own")?;
    /// assert_eq!(own.to_string(), "the total timeout was over before the first attempt");
    /// # Ok(())
    /// # }
    /// ```
    fn retry_error(&self) -> Option<&RetryError>;
}

impl ErrorExt for reqwest_middleware::Error {
    fn timed_out(&self) -> bool {
        matches!(
            self.retry_error(),
            Some(RetryError::TotalTimeout { .. } | RetryError::HeadTimeout)
        )
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
