//! The caller's own tests, which a policy asks beside its rule.

use std::sync::Arc;
use std::time::Duration;

use reqwest_middleware::Error;

use super::RetryPolicy;
use crate::middleware::response::ResponseHead;
use crate::rule::{Methods, TransportError};

type HeadTest = dyn Fn(&ResponseHead<'_>) -> bool + Send + Sync;
pub(super) type DelayOf = dyn Fn(&ResponseHead<'_>) -> Option<Duration> + Send + Sync;
pub(super) type ClassOf = dyn Fn(&Error) -> Option<TransportError> + Send + Sync;
pub(super) type FailureTest = dyn Fn(&TransportError) -> bool + Send + Sync;

#[derive(Clone)]
pub(super) struct Condition {
    pub(super) methods: Methods,
    pub(super) holds: Arc<HeadTest>,
}

impl RetryPolicy {
    /// Also retries a response for which `test` holds, where the method is one of `methods`.
    ///
    /// It is asked of a response whose status is in none of the rule's `statuses`, whatever that
    /// status is, 2xx included. Where several are set, the first that holds and allows the
    /// method decides. It sees the head alone: a body is not read to decide.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::{Methods, ResponseHead, RetryPolicy, RetryRule};
    ///
    /// // A status that means "not there yet" with one service.
    /// fn not_there_yet(head: &ResponseHead<'_>) -> bool {
    ///     head.status() == 202
    /// }
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient())
    ///     .retry_if(Methods::Idempotent, not_there_yet);
    /// # let _ = policy;
    ///
    /// let response = http::Response::builder().status(202).body("")?;
    /// assert!(not_there_yet(&ResponseHead::from(&reqwest::Response::from(response))));
    /// # Ok::<(), http::Error>(())
    /// ```
    pub fn retry_if(
        self,
        methods: Methods,
        test: impl Fn(&ResponseHead<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(|s| {
            s.conditions.push(Condition {
                methods,
                holds: Arc::new(test),
            })
        })
    }

    /// Reads the wait that a refused response asks for, before the rule's headers do.
    ///
    /// What it returns counts as what the server asks, under the rule's cap, role and spread.
    /// `None` leaves it to the headers.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{ResponseHead, RetryPolicy, RetryRule};
    ///
    /// fn in_minutes(head: &ResponseHead<'_>) -> Option<Duration> {
    ///     let minutes = head.headers().get("x-retry-in-minutes")?.to_str().ok()?.parse().ok()?;
    ///     Some(Duration::from_secs(60).saturating_mul(minutes))
    /// }
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient()).server_delay(in_minutes);
    /// # let _ = policy;
    ///
    /// let response = http::Response::builder().header("x-retry-in-minutes", "5").body("")?;
    /// let response = reqwest::Response::from(response);
    /// assert_eq!(in_minutes(&ResponseHead::from(&response)), Some(Duration::from_secs(300)));
    /// # Ok::<(), http::Error>(())
    /// ```
    pub fn server_delay(
        self,
        delay: impl Fn(&ResponseHead<'_>) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.with(|s| s.server_delay = Some(Arc::new(delay)))
    }

    /// Classifies errors before [`classify`](crate::classify) does; `None` leaves it to that.
    ///
    /// A closure that names an unsent class vouches that nothing was processed. After a tracked
    /// redirect no class counts as unsent, not even this one.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_middleware::Error;
    /// use reqwest_retry_rules::{RetryPolicy, RetryRule, TransportError};
    ///
    /// // An error of a signing middleware further in, which never got as far as sending.
    /// # #[derive(Debug)] struct NoCredentials;
    /// # impl std::fmt::Display for NoCredentials {
    /// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    /// #         f.write_str("none")
    /// #     }
    /// # }
    /// # impl std::error::Error for NoCredentials {}
    /// fn class(error: &Error) -> Option<TransportError> {
    ///     match error {
    ///         Error::Middleware(error) if error.is::<NoCredentials>() => {
    ///             Some(TransportError::NotProcessed)
    ///         }
    ///         _ => None,
    ///     }
    /// }
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient()).classify_with(class);
    /// # let _ = policy;
    /// assert_eq!(class(&Error::middleware(NoCredentials)), Some(TransportError::NotProcessed));
    /// assert_eq!(class(&Error::middleware(std::fmt::Error)), None);
    /// ```
    pub fn classify_with(
        self,
        classify: impl Fn(&Error) -> Option<TransportError> + Send + Sync + 'static,
    ) -> Self {
        self.with(|s| s.classify_with = Some(Arc::new(classify)))
    }

    /// Retries only those transport failures for which `test` holds: it may refuse one that the
    /// rule allows, with [`StopReason::NotRetryable`](crate::StopReason::NotRetryable), and never
    /// allows one that the rule refuses.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::{RetryPolicy, RetryRule, TransportError};
    ///
    /// let only_timeouts = TransportError::is_timeout;
    /// let policy = RetryPolicy::from(RetryRule::transient()).retry_failures_if(only_timeouts);
    /// # let _ = policy;
    /// assert!(only_timeouts(&TransportError::Timeout));
    /// assert!(!only_timeouts(&TransportError::Closed));
    /// ```
    pub fn retry_failures_if(
        self,
        test: impl Fn(&TransportError) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(|s| s.retry_failures_if = Some(Arc::new(test)))
    }
}
