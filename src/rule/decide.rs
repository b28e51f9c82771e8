use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, StatusCode};

use super::{AttemptOutcome, Methods, RetryRule, StopReason, TransportError};

/// The facts from which [`RetryRule::decide`] judges a failed attempt, besides its outcome.
///
/// They come in as values, the clock and chance included, so that one rule gives the same answer
/// everywhere.
///
/// # Examples
///
/// ```
/// use http::Method;
/// use reqwest_retry_rules::Attempt;
///
/// let third = Attempt { attempt: 2, ..Attempt::new(&Method::POST) };
/// assert!(!third.idempotent);
/// let vouched_for = Attempt { idempotent: true, ..third };
/// assert_eq!(vouched_for.attempt, 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// How many retries were already made: 0 when the first attempt fails.
    pub attempt: u32,
    /// A sample of `[0, 1)` for the jitter and the spread; what is outside counts as the nearest
    /// that is inside, what is not a number as 0.
    pub random: f64,
    /// The time of day, without which a date or another moment in a header means nothing.
    pub now: Option<SystemTime>,
    /// How long the send has taken so far, all attempts and waits together.
    pub elapsed: Duration,
    /// How much time is left to the send, where something bounds it.
    pub remaining: Option<Duration>,
    /// What the caller itself found out that the server asks for; it goes before the headers, and
    /// counts for failures too.
    pub server_delay: Option<Duration>,
    /// The methods for which the caller's own test of the response held, where one did: what is
    /// to be retried although its status is in no [`StatusRule`](crate::StatusRule).
    pub condition: Option<&'a Methods>,
    /// Whether the request may be sent twice without doing more than once (RFC 9110, 9.2.2).
    ///
    /// Take it from the method, or from somebody who knows the service. A request that carries an
    /// `Idempotency-Key` is not idempotent for that alone: a server that does not know the header
    /// ignores it.
    pub idempotent: bool,
    /// Whether the request can be sent again at all, body included.
    pub replayable: bool,
}

impl<'a> Attempt<'a> {
    /// The first attempt with `method`, from which to set what is known to be different.
    ///
    /// # Defaults
    ///
    /// No retry made, a `random` of 0, no clock, nothing elapsed, no time limit, nothing asked or
    /// tested by the caller, idempotent as the method is, replayable.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::Method;
    /// use reqwest_retry_rules::Attempt;
    ///
    /// let first = Attempt::new(&Method::PUT);
    /// assert_eq!((first.attempt, first.elapsed), (0, Duration::ZERO));
    /// assert!(first.idempotent && first.replayable);
    /// ```
    pub fn new(method: &'a Method) -> Self {
        Attempt {
            method,
            attempt: 0,
            random: 0.0,
            now: None,
            elapsed: Duration::ZERO,
            remaining: None,
            server_delay: None,
            condition: None,
            idempotent: method.is_idempotent(),
            replayable: true,
        }
    }
}

/// What to do about a failed attempt: send again after a wait, or stop and say why.
///
/// There is no third, so this enum is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Send again after this wait, which may be zero.
    Wait(Duration),
    /// Return what there is.
    Stop(StopReason),
}

impl RetryRule {
    /// Decides what to do about an attempt that came to `outcome`.
    ///
    /// The checks run in this order, and the first that applies decides:
    ///
    /// 1. [`max_retries`](RetryRule::max_retries) retries made: `Exhausted`.
    /// 2. A request that cannot be sent again: `NotReplayable`.
    /// 3. A response of status 400 or above whose [`override_header`](RetryRule::override_header)
    ///    says `false`: `ServerSaidNo`. One that says `true` is retried whatever its method, and
    ///    step 4 is left out; what says anything else, says nothing.
    /// 4. An outcome that the rule retries for no method: `NotRetryable`; for others than this
    ///    one: `MethodNotAllowed`.
    ///    - A response is retried for the methods of the first of
    ///      [`statuses`](RetryRule::statuses) that contains its status; where none does, for those
    ///      of [`Attempt::condition`].
    ///    - A failed certificate or a peer that speaks no valid protocol is not retried.
    ///    - A proxy's refusal with a status is retried for every method where
    ///      [`unsent_failures`](RetryRule::unsent_failures) is set and the first of `statuses`
    ///      that contains the status is not for [`Methods::Never`]; else it is not retried.
    ///    - A timeout is not retried where [`timeouts`](RetryRule::timeouts) is not set.
    ///    - Another failure that proves the request unsent is retried for every method where
    ///      `unsent_failures` is set.
    ///    - Any other failure is retried for the methods of
    ///      [`sent_failures`](RetryRule::sent_failures).
    /// 5. The wait is what the server asks for, as [`retry_after`](RetryRule::retry_after) takes
    ///    it, else the [`backoff`](RetryRule::backoff). One above a cap that stops:
    ///    `RetryAfterTooLong`.
    /// 6. No time for the wait: `HardLimit`, `SoftLimit`, or `Budget`, as
    ///    [`limits`](RetryRule::limits) and [`Attempt::remaining`] say.
    ///
    /// So a time limit is given as the reason only for what would have been retried, and a wait
    /// above the cap is `RetryAfterTooLong` even where a time limit would stop too.
    ///
    /// Every rule and all facts give an answer, the same one each time: sums saturate, and a
    /// header that cannot be read counts as absent.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::Method;
    /// use reqwest_retry_rules::{
    ///     Attempt, AttemptOutcome, Decision, RetryRule, StopReason, TransportError,
    /// };
    ///
    /// let rule = RetryRule::transient();
    /// let closed = AttemptOutcome::Failure(TransportError::Closed);
    ///
    /// let get = Attempt { random: 0.5, ..Attempt::new(&Method::GET) };
    /// assert_eq!(rule.decide(&closed, &get), Decision::Wait(Duration::from_millis(50)));
    ///
    /// // The server may have acted on it before the connection went.
    /// let post = Attempt::new(&Method::POST);
    /// assert_eq!(rule.decide(&closed, &post), Decision::Stop(StopReason::MethodNotAllowed));
    /// ```
    pub fn decide(&self, outcome: &AttemptOutcome<'_>, attempt: &Attempt<'_>) -> Decision {
        match self.wait_or_reason(outcome, attempt) {
            Ok(wait) => Decision::Wait(wait),
            Err(reason) => Decision::Stop(reason),
        }
    }

    fn wait_or_reason(
        &self,
        outcome: &AttemptOutcome<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<Duration, StopReason> {
        // 1.
        if attempt.attempt >= self.max_retries {
            return Err(StopReason::Exhausted);
        }
        // 2.
        if !attempt.replayable {
            return Err(StopReason::NotReplayable);
        }
        // 3.
        let said = match *outcome {
            AttemptOutcome::Response { status, headers } => self.server_override(status, headers),
            AttemptOutcome::Failure(_) => None,
        };
        match said {
            Some(true) => {}
            Some(false) => return Err(StopReason::ServerSaidNo),
            // 4.
            None => self.check_retryable(outcome, attempt)?,
        }
        // 5.
        let (wait, _) = self.planned_wait(outcome, attempt)?;
        // 6.
        self.limits
            .check(wait, attempt.attempt, attempt.elapsed, attempt.remaining)?;
        Ok(wait)
    }

    fn check_retryable(
        &self,
        outcome: &AttemptOutcome<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<(), StopReason> {
        let methods = match *outcome {
            AttemptOutcome::Response { status, .. } => {
                self.status_methods(status).or(attempt.condition)
            }
            AttemptOutcome::Failure(failure) => self.failure_methods(failure),
        };
        match methods {
            None | Some(Methods::Never) => Err(StopReason::NotRetryable),
            Some(methods) if methods.allows(attempt.method, attempt.idempotent) => Ok(()),
            Some(_) => Err(StopReason::MethodNotAllowed),
        }
    }

    /// The methods for which `failure` is retried: the one place that asks whether the request
    /// may have been processed.
    fn failure_methods(&self, failure: TransportError) -> Option<&Methods> {
        match failure {
            TransportError::Protocol | TransportError::Certificate => None,
            // Never through `sent_failures`: a proxy that wants a password wants it again.
            TransportError::Proxy {
                status: Some(status),
            } => {
                let refused = matches!(self.status_methods(status)?, Methods::Never);
                (self.unsent_failures && !refused).then_some(&Methods::Any)
            }
            timeout if timeout.is_timeout() && !self.timeouts => None,
            unsent if unsent.is_unsent() && self.unsent_failures => Some(&Methods::Any),
            _ => Some(&self.sent_failures),
        }
    }

    /// The methods of the first of `statuses` that contains `status`.
    pub(crate) fn status_methods(&self, status: StatusCode) -> Option<&Methods> {
        self.statuses
            .iter()
            .find(|rule| rule.contains(status))
            .map(|rule| &rule.methods)
    }

    /// What the override header of a response says, from status 400 on: whether to retry.
    pub(crate) fn server_override(&self, status: StatusCode, headers: &HeaderMap) -> Option<bool> {
        let name = self.override_header.as_ref()?;
        if status.as_u16() < 400 {
            return None;
        }
        match headers.get(name)?.as_bytes().trim_ascii() {
            yes if yes.eq_ignore_ascii_case(b"true") => Some(true),
            no if no.eq_ignore_ascii_case(b"false") => Some(false),
            _ => None,
        }
    }

    /// Whether anything in the rule could ever retry a request of `method`; where it is false,
    /// only the caller's own condition can.
    pub(crate) fn could_retry(&self, method: &Method, idempotent: bool) -> bool {
        let allows = |methods: &Methods| methods.allows(method, idempotent);
        self.max_retries > 0
            && (self.unsent_failures
                || self.override_header.is_some()
                || allows(&self.sent_failures)
                || self.statuses.iter().any(|rule| allows(&rule.methods)))
    }
}
