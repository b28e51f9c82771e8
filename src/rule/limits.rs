use std::time::Duration;

use super::millis::whole_ms;
use super::{Attempt, StopReason};

/// How long one send may go on retrying.
///
/// Elapsed time counts from the start of the first attempt, waits and attempts together, in whole
/// milliseconds. A limit bounds when a retry may *start*; it never interrupts an attempt in
/// flight. So the longest that a send can take is the hard limit plus one attempt's own timeout:
/// set one on the client, or a send may take as long as the server likes.
///
/// # Defaults
///
/// No limits.
///
/// # Examples
///
/// Give up after five minutes, but not before two retries were made, and after ten in any case:
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, Method, StatusCode};
/// use reqwest_retry_rules::{Attempt, AttemptOutcome, Decision, Limits, RetryRule, StopReason};
///
/// let rule = RetryRule {
///     max_retries: 10,
///     limits: Limits {
///         soft_elapsed: Some(Duration::from_secs(300)),
///         min_retries: 2,
///         hard_elapsed: Some(Duration::from_secs(600)),
///         ..Limits::default()
///     },
///     ..RetryRule::transient()
/// };
/// let headers = HeaderMap::new();
/// let outcome =
///     AttemptOutcome::Response { status: StatusCode::SERVICE_UNAVAILABLE, headers: &headers };
/// let after = |attempt, seconds| {
///     let elapsed = Duration::from_secs(seconds);
///     rule.decide(&outcome, &Attempt { attempt, elapsed, ..Attempt::new(&Method::GET) })
/// };
/// assert_eq!(after(1, 301), Decision::Wait(Duration::ZERO));
/// assert_eq!(after(2, 301), Decision::Stop(StopReason::SoftLimit));
/// assert_eq!(after(1, 600), Decision::Stop(StopReason::HardLimit(Duration::ZERO)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Once more than this time has passed, no retry is made beyond the first `min_retries`.
    pub soft_elapsed: Option<Duration>,
    /// This many retries may be made even after the soft limit. They lift neither the hard limit
    /// nor [`RetryRule::max_retries`](crate::RetryRule::max_retries).
    pub min_retries: u32,
    /// No retry starts once this time has passed, or if it would have passed after the wait.
    pub hard_elapsed: Option<Duration>,
}

impl Limits {
    /// True if so much time has passed that no retry may start any more, whatever its wait.
    pub(crate) fn hard_reached(&self, elapsed: Duration) -> bool {
        self.hard_elapsed
            .is_some_and(|hard| whole_ms(elapsed) >= whole_ms(hard))
    }

    /// Why there is no time for a retry after `wait`, if there is none.
    #[inline]
    pub(super) fn check(&self, wait: Duration, attempt: &Attempt<'_>) -> Result<(), StopReason> {
        // The wait is whole milliseconds, so the sum is floored as its parts are.
        if self.hard_elapsed.is_some() && self.hard_reached(attempt.elapsed.saturating_add(wait)) {
            return Err(StopReason::HardLimit(wait));
        }
        if self
            .soft_elapsed
            .is_some_and(|soft| whole_ms(attempt.elapsed) > whole_ms(soft))
            && attempt.attempt >= self.min_retries
        {
            return Err(StopReason::SoftLimit);
        }
        if attempt
            .remaining
            .is_some_and(|remaining| whole_ms(wait) >= whole_ms(remaining))
        {
            return Err(StopReason::Budget(wait));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn the_hard_limit_is_reached_when_it_is_met() {
        let ms = Duration::from_millis;
        let limits = Limits {
            hard_elapsed: Some(ms(5000)),
            ..Limits::default()
        };
        assert!(!limits.hard_reached(ms(5000) - Duration::from_nanos(1)));
        assert!(limits.hard_reached(ms(5000)));
        assert!(!Limits::default().hard_reached(Duration::MAX));
    }

    #[test]
    fn times_that_are_too_long_to_count_reach_any_limit() {
        let hard_elapsed = Some(Duration::MAX);
        let limits = Limits {
            hard_elapsed,
            ..Limits::default()
        };
        let wait = Duration::from_millis(1);
        let attempt = Attempt {
            elapsed: Duration::MAX,
            ..Attempt::new(&Method::GET)
        };
        let hard = Err(StopReason::HardLimit(wait));
        assert_eq!(limits.check(wait, &attempt), hard);
        assert_eq!(Limits::default().check(wait, &attempt), Ok(()));
    }
}
