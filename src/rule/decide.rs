use std::fmt;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, StatusCode};

use super::{AttemptOutcome, Methods, RetryRule};

/// What is known when one attempt has failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// Retries already made.
    pub attempt: u32,
    /// The jitter sample, in `[0, 1)`.
    pub random: f64,
    /// The time of day.
    pub now: Option<SystemTime>,
    /// Time since the send began.
    pub elapsed: Duration,
    /// Time left to the caller.
    pub remaining: Option<Duration>,
    /// The wait that the caller read from the response.
    pub server_delay: Option<Duration>,
    /// The methods for which the caller's test of the response held.
    pub condition: Option<&'a Methods>,
    /// Whether sending twice does what sending once does.
    pub idempotent: bool,
    /// Whether the request can be sent again at all.
    pub replayable: bool,
}

impl<'a> Attempt<'a> {
    /// The first attempt with `method`.
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

/// What to do about a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Send again after this wait.
    Wait(Duration),
    /// Return what there is.
    Stop(StopReason),
}

/// Why no retry is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// Every retry was made.
    Exhausted,
    /// The request cannot be sent again.
    NotReplayable,
    /// The server asks for no retry.
    ServerSaidNo,
    /// Nothing in the rule retries this.
    NotRetryable,
    /// The rule retries this, but not for this method.
    MethodNotAllowed,
    /// The server asks for this wait, and it is above the cap.
    RetryAfterTooLong(Duration),
    /// This wait would reach the hard limit.
    HardLimit(Duration),
    /// The soft limit has passed.
    SoftLimit,
    /// This wait would outlast the time left.
    Budget(Duration),
    /// The retry budget is empty.
    Throttled,
    /// The total timeout ran out while an attempt was in flight.
    TotalTimeout,
}

impl StopReason {
    /// Whether a retry was wanted and none was left.
    pub fn retries_exhausted(&self) -> bool {
        matches!(
            self,
            StopReason::Exhausted
                | StopReason::RetryAfterTooLong(_)
                | StopReason::HardLimit(_)
                | StopReason::SoftLimit
                | StopReason::Budget(_)
                | StopReason::TotalTimeout
        )
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Where a wait came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitSource {
    /// The backoff.
    Backoff,
    /// The server.
    Server,
}

impl RetryRule {
    /// Decides.
    pub fn decide(&self, outcome: &AttemptOutcome<'_>, attempt: &Attempt<'_>) -> Decision {
        if attempt.attempt >= self.max_retries {
            return Decision::Stop(StopReason::Exhausted);
        }
        let _ = outcome;
        Decision::Stop(StopReason::NotRetryable)
    }

    /// The first status rule that contains `status`.
    pub(crate) fn status_methods(&self, status: StatusCode) -> Option<&Methods> {
        self.statuses
            .iter()
            .find(|rule| rule.contains(status))
            .map(|rule| &rule.methods)
    }

    /// What the override header says, from status 400 on.
    pub(crate) fn server_override(&self, status: StatusCode, headers: &HeaderMap) -> Option<bool> {
        let name = self
            .override_header
            .as_ref()
            .filter(|_| status.as_u16() >= 400)?;
        let value = headers.get(name)?.as_bytes().trim_ascii();
        if value.eq_ignore_ascii_case(b"true") {
            Some(true)
        } else if value.eq_ignore_ascii_case(b"false") {
            Some(false)
        } else {
            None
        }
    }

    /// Whether anything in the rule could ever retry this method.
    pub(crate) fn could_retry(&self, method: &Method, idempotent: bool) -> bool {
        self.max_retries > 0
            && (self.unsent_failures
                || self.override_header.is_some()
                || self.sent_failures.allows(method, idempotent)
                || self
                    .statuses
                    .iter()
                    .any(|rule| rule.methods.allows(method, idempotent)))
    }

    /// The wait, and where it came from.
    pub(crate) fn planned_wait(
        &self,
        _outcome: &AttemptOutcome<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<(Duration, WaitSource), StopReason> {
        Ok((
            self.backoff.delay(attempt.attempt, attempt.random),
            WaitSource::Backoff,
        ))
    }

    /// What the server asks.
    pub(crate) fn asked(
        &self,
        _outcome: &AttemptOutcome<'_>,
        attempt: &Attempt<'_>,
    ) -> Option<Duration> {
        attempt.server_delay
    }
}
