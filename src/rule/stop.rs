use std::fmt;
use std::time::Duration;

/// Why no retry is made.
///
/// A reason that is about a wait carries it, for callers who want to come back later.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::StopReason;
///
/// let reason = StopReason::RetryAfterTooLong(Duration::from_secs(90));
/// assert_eq!(reason.to_string(), "the server asks for a wait of 90s, which is above the cap");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// Every retry that the rule allows was made.
    Exhausted,
    /// The request cannot be sent again: its body was a stream that is used up, or its
    /// [`BodySource`](crate::BodySource) failed to make another.
    NotReplayable,
    /// The override header or the veto header of the response says `false`.
    ServerSaidNo,
    /// The rule retries this outcome for no method, or the caller's own test refuses.
    NotRetryable,
    /// The rule retries this outcome, but not for this method; or the request was processed, another
    /// went in its place, and this method may not be repeated.
    MethodNotAllowed,
    /// The server asks for this wait, and the rule's cap is below it.
    RetryAfterTooLong(Duration),
    /// After this wait the hard limit would be reached.
    HardLimit(Duration),
    /// The soft limit has passed, and [`min_retries`](crate::Limits::min_retries) were made.
    SoftLimit,
    /// This wait is not shorter than the time that is left to the whole send: to its total timeout
    /// or deadline. It is a budget of time, and not the [`RetryBudget`](crate::RetryBudget), whose
    /// reason is [`Throttled`](StopReason::Throttled).
    Budget(Duration),
    /// Too many of the recent requests to this origin were retries: its
    /// [`RetryBudget`](crate::RetryBudget) is empty. (Where time is short, the reason is
    /// [`Budget`](StopReason::Budget).)
    Throttled,
    /// The total timeout ran out while an attempt was in flight, or before the first. Given by the
    /// middleware only, never by a rule.
    TotalTimeout,
}

impl StopReason {
    /// True if a retry was wanted, but none was left, or no time for one: for `Exhausted`,
    /// `RetryAfterTooLong` and every time limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::StopReason;
    ///
    /// assert!(StopReason::Exhausted.retries_exhausted());
    /// assert!(StopReason::SoftLimit.retries_exhausted());
    /// assert!(!StopReason::NotRetryable.retries_exhausted());
    /// assert!(!StopReason::Throttled.retries_exhausted());
    /// ```
    pub fn retries_exhausted(&self) -> bool {
        match self {
            StopReason::Exhausted
            | StopReason::RetryAfterTooLong(_)
            | StopReason::HardLimit(_)
            | StopReason::SoftLimit
            | StopReason::Budget(_)
            | StopReason::TotalTimeout => true,
            StopReason::NotReplayable
            | StopReason::ServerSaidNo
            | StopReason::NotRetryable
            | StopReason::MethodNotAllowed
            | StopReason::Throttled => false,
        }
    }

    /// A short name that stays the same, for metrics and logs: without the wait, in snake case.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use reqwest_retry_rules::StopReason;
    ///
    /// let reason = StopReason::RetryAfterTooLong(Duration::from_secs(90));
    /// assert_eq!(reason.name(), "retry_after_too_long");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            StopReason::Exhausted => "exhausted",
            StopReason::NotReplayable => "not_replayable",
            StopReason::ServerSaidNo => "server_said_no",
            StopReason::NotRetryable => "not_retryable",
            StopReason::MethodNotAllowed => "method_not_allowed",
            StopReason::RetryAfterTooLong(_) => "retry_after_too_long",
            StopReason::HardLimit(_) => "hard_limit",
            StopReason::SoftLimit => "soft_limit",
            StopReason::Budget(_) => "budget",
            StopReason::Throttled => "throttled",
            StopReason::TotalTimeout => "total_timeout",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::Exhausted => "every retry that the rule allows was made",
            StopReason::NotReplayable => "the request cannot be sent again",
            StopReason::ServerSaidNo => "the server asks not to retry",
            StopReason::NotRetryable => "the rule does not retry this",
            StopReason::MethodNotAllowed => "the rule retries this, but not for this method",
            StopReason::RetryAfterTooLong(asked) => {
                return write!(
                    f,
                    "the server asks for a wait of {asked:?}, which is above the cap"
                );
            }
            StopReason::HardLimit(wait) => {
                return write!(f, "a wait of {wait:?} would reach the hard limit");
            }
            StopReason::SoftLimit => "the soft limit has passed",
            StopReason::Budget(wait) => {
                return write!(f, "a wait of {wait:?} is not shorter than the time left");
            }
            StopReason::Throttled => "the retry budget is empty",
            StopReason::TotalTimeout => "the total timeout ran out",
        })
    }
}
