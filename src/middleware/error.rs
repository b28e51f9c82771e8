//! The few errors that are ours, and what one asks of an error that came back.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use super::error_chain;
use super::request::BoxError;

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
    /// An attempt brought no head of a response within the policy's `head_timeout`, and was
    /// dropped: it may have been processed.
    #[non_exhaustive]
    HeadTimeout {
        /// How long an attempt may take up to its response's head.
        timeout: Duration,
    },
    /// The origin had asked for a wait that the time left to this send cannot hold: the policy
    /// pauses origins, and nothing was sent.
    #[non_exhaustive]
    OriginPaused {
        /// How much longer the origin asks to be left alone.
        wait: Duration,
    },
    /// The [`BodySource`](crate::BodySource) of a request without a body failed to make the first
    /// one.
    #[non_exhaustive]
    BodySource {
        /// The error of the maker.
        source: BoxError,
    },
}

impl RetryError {
    /// A short name that stays the same, for metrics and logs: in snake case, such as
    /// `total_timeout`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TotalTimeout { .. } => "total_timeout",
            Self::HeadTimeout { .. } => "head_timeout",
            Self::OriginPaused { .. } => "origin_paused",
            Self::BodySource { .. } => "body_source",
        }
    }

    fn is_timeout(&self) -> bool {
        match self {
            Self::TotalTimeout { .. } | Self::HeadTimeout { .. } => true,
            Self::OriginPaused { .. } | Self::BodySource { .. } => false,
        }
    }
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
            Self::HeadTimeout { timeout } => {
                write!(f, "no response began within {timeout:?}")
            }
            Self::OriginPaused { wait } => {
                write!(f, "the origin asks to be left alone for another {wait:?}")
            }
            Self::BodySource { .. } => f.write_str("the body source made no body"),
        }
    }
}

impl StdError for RetryError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::TotalTimeout { last, .. } => last.as_deref().map(|last| last as _),
            Self::HeadTimeout { .. } | Self::OriginPaused { .. } => None,
            Self::BodySource { source } => Some(source.as_ref()),
        }
    }
}

/// What can be asked of the error of a send.
///
/// Implemented for [`reqwest_middleware::Error`] and, with the feature `astral`, for the error of
/// that fork; for nothing else.
pub trait ErrorExt: sealed::Sealed {
    /// True if time ran out: [`RetryError::TotalTimeout`], [`RetryError::HeadTimeout`], or a timeout
    /// that reqwest reports, even if another middleware has wrapped it.
    ///
    /// [`reqwest_middleware::Error::is_timeout`] cannot see into errors of a middleware and says
    /// `false` for this crate's own and for what is wrapped. [`RetryError::OriginPaused`] is no
    /// timeout: the time was not used up, it would not have been enough.
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
    fn timed_out(&self) -> bool {
        let ours = self.retry_error().is_some_and(RetryError::is_timeout);
        ours || error_chain::is_timeout(self)
    }

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
    /// assert_eq!(own.name(), "total_timeout");
    /// # Ok(())
    /// # }
    /// ```
    fn retry_error(&self) -> Option<&RetryError> {
        error_chain::find(self)
    }
}

impl ErrorExt for reqwest_middleware::Error {}

#[cfg(feature = "astral")]
#[cfg_attr(docsrs, doc(cfg(feature = "astral")))]
impl ErrorExt for astral_reqwest_middleware::Error {}

mod sealed {
    pub trait Sealed: std::error::Error + Sized + 'static {}
    impl Sealed for reqwest_middleware::Error {}
    #[cfg(feature = "astral")]
    impl Sealed for astral_reqwest_middleware::Error {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_each_kind() -> [RetryError; 4] {
        let (wait, timeout) = (Duration::from_secs(3), Duration::from_millis(1500));
        [
            RetryError::TotalTimeout {
                attempts: 2,
                last: None,
            },
            RetryError::HeadTimeout { timeout },
            RetryError::OriginPaused { wait },
            RetryError::BodySource {
                source: "no file".into(),
            },
        ]
    }

    #[test]
    fn only_a_timeout_has_timed_out_also_where_another_middleware_has_wrapped_it() {
        let timed_out = |error: reqwest_middleware::Error| error.timed_out();
        let bare =
            of_each_kind().map(|error| timed_out(reqwest_middleware::Error::middleware(error)));
        assert_eq!(bare, [true, true, false, false]);
        let wrapped = of_each_kind().map(|error| {
            let context = anyhow::Error::new(error).context("around it");
            timed_out(reqwest_middleware::Error::Middleware(context))
        });
        assert_eq!(wrapped, bare);
        let other = anyhow::anyhow!("another's");
        assert!(!timed_out(reqwest_middleware::Error::Middleware(other)));
    }

    #[test]
    fn each_is_one_of_ours_and_reads_as_a_person_would_say_it() {
        let shown = of_each_kind().map(|error| {
            let error = reqwest_middleware::Error::middleware(error);
            error.retry_error().map(ToString::to_string)
        });
        let expected = [
            "the total timeout ran out in attempt 2",
            "no response began within 1.5s",
            "the origin asks to be left alone for another 3s",
            "the body source made no body",
        ];
        assert_eq!(shown, expected.map(|text| Some(text.to_owned())));
    }

    #[test]
    fn each_has_a_name_for_a_label() {
        let names = of_each_kind().map(|error| error.name());
        let expected = [
            "total_timeout",
            "head_timeout",
            "origin_paused",
            "body_source",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn only_one_with_a_cause_has_a_source() {
        let sources = of_each_kind().map(|error| error.source().map(ToString::to_string));
        assert_eq!(sources, [None, None, None, Some("no file".to_owned())]);
    }
}
