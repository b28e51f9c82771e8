//! The caller's own tests, which a policy asks beside its rule.

use std::sync::Arc;
use std::time::Duration;

use reqwest_middleware::Error;

use super::RetryPolicy;
use crate::middleware::response::{Judgement, ResponseHead};
use crate::rule::{AttemptOutcome, Methods, TransportError};

type HeadTest = dyn Fn(&ResponseHead<'_>) -> bool + Send + Sync;
type JudgeOfBodies = dyn Fn(&ResponseHead<'_>, &[u8]) -> Judgement + Send + Sync;
pub(super) type ServerDelay = dyn Fn(&ResponseHead<'_>) -> Option<Duration> + Send + Sync;
pub(super) type Classify = dyn Fn(&Error) -> Option<TransportError> + Send + Sync;
pub(super) type Veto = dyn Fn(&AttemptOutcome<'_>) -> bool + Send + Sync;

/// Looks into the bodies of responses.
#[derive(Clone)]
pub(in crate::middleware) struct BodyJudge {
    /// The methods for which a response that it wants again is retried.
    pub(in crate::middleware) methods: Methods,
    /// A body longer than this many bytes is not judged.
    pub(in crate::middleware) limit: usize,
    pub(in crate::middleware) judge: Arc<JudgeOfBodies>,
}

#[derive(Clone)]
pub(super) struct Condition {
    pub(super) methods: Methods,
    pub(super) holds: Arc<HeadTest>,
}

impl RetryPolicy {
    /// Also retries a response for which `test` holds, if the method is one of `methods`.
    ///
    /// It is asked of every response, whatever its status, 2xx included. A
    /// [`StatusRule`](crate::StatusRule) that allows the method needs no condition, and one with
    /// [`Methods::Never`] outranks it. Several conditions may be set: of those that hold, the first
    /// that allows the method decides. A condition sees the head alone: the body is not read.
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
            s.retry_if.push(Condition {
                methods,
                holds: Arc::new(test),
            })
        })
    }

    /// Looks into the body of every response that is no longer than `limit` bytes, whatever its
    /// status, and says what it means: see [`Judgement`](crate::Judgement).
    ///
    /// A response that `judge` wants again is refused, as if a condition for `methods` held. A body
    /// that is longer is not judged and streams on, with nothing lost; so are the kinds that
    /// [`complete_body`](Self::complete_body) leaves alone. A body that breaks off is not judged: that
    /// of a success is then a [`Body`](crate::TransportError::Body) failure. What comes back has its
    /// whole body. A second judge replaces the first.
    ///
    /// # Examples
    ///
    /// An error that a service sends with status 200:
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use reqwest_retry_rules::{Judgement, Methods, ResponseExt, RetryPolicy, RetryRule};
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient()).judge_body(
    ///     Methods::Idempotent,
    ///     64 * 1024,
    ///     |_, body| match body {
    ///         br#"{"error":"busy"}"# => Judgement::Retry,
    ///         _ => Judgement::ByRule,
    ///     },
    /// );
    /// // In place of the network.
    /// let server = |_: &reqwest::Request| http::Response::new(r#"{"error":"busy"}"#);
    /// let response = client(policy, server).get("http://127.0.0.1/").send().await?;
    /// assert_eq!((response.status().as_u16(), response.attempts()), (200, 4));
    /// assert_eq!(response.text().await?, r#"{"error":"busy"}"#);
    /// # Ok(())
    /// # }
    /// ```
    pub fn judge_body(
        self,
        methods: Methods,
        limit: usize,
        judge: impl Fn(&ResponseHead<'_>, &[u8]) -> Judgement + Send + Sync + 'static,
    ) -> Self {
        self.with(|s| {
            s.judge_body = Some(BodyJudge {
                methods,
                limit,
                judge: Arc::new(judge),
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

    /// Refuses a retry if `test` holds for the response or failure: with
    /// [`StopReason::NotRetryable`](crate::StopReason::NotRetryable), whatever else allows it.
    ///
    /// Several may be set; it is enough that one refuses. None of them ever allows what the rule
    /// refuses.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use reqwest_retry_rules::{AttemptOutcome, ResponseExt, RetryPolicy, RetryRule};
    ///
    /// // A 429 of this service with this header will not pass by waiting.
    /// fn out_of_credit(outcome: &AttemptOutcome<'_>) -> bool {
    ///     match outcome {
    ///         AttemptOutcome::Response { status, headers } => {
    ///             *status == 429 && headers.contains_key("x-out-of-credit")
    ///         }
    ///         AttemptOutcome::Failure(_) => false,
    ///     }
    /// }
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient()).veto(out_of_credit);
    /// // In place of the network.
    /// let server = |_: &reqwest::Request| {
    ///     http::Response::builder().status(429).header("x-out-of-credit", "1").body("").unwrap()
    /// };
    /// let response = client(policy, server).get("http://127.0.0.1/").send().await?;
    /// assert_eq!(response.attempts(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn veto(self, test: impl Fn(&AttemptOutcome<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.with(|s| s.veto.push(Arc::new(test)))
    }
}
