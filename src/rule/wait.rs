use std::time::Duration;

use super::millis::{floored, per_mille, sample, whole_ms};
use super::{Attempt, AttemptOutcome, RetryAfterCap, RetryAfterRole, RetryRule, StopReason};

/// Where the wait before a retry came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitSource {
    /// The rule's [`Backoff`](crate::Backoff).
    Backoff,
    /// The server: a header of its response, or what the caller read from it.
    Server,
}

impl RetryRule {
    /// What the server asks for, to the millisecond, before the cap and the spread: the caller's
    /// `server_delay`, else the wait headers, else the standard ones.
    pub(crate) fn asked(
        &self,
        outcome: &AttemptOutcome<'_>,
        attempt: &Attempt<'_>,
    ) -> Option<Duration> {
        attempt.server_delay.map(floored).or_else(|| match outcome {
            AttemptOutcome::Response { headers, .. } => self.retry_after.read(headers, attempt.now),
            AttemptOutcome::Failure(_) => None,
        })
    }

    /// The wait before a retry and where it came from, were there a retry.
    ///
    /// Under [`RetryAfterRole::Floor`] it came from whichever is longer, from the server where
    /// they are equal.
    ///
    /// # Errors
    ///
    /// `RetryAfterTooLong` where the server asks for more than the cap, and the cap is to stop.
    pub(crate) fn planned_wait(
        &self,
        outcome: &AttemptOutcome<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<(Duration, WaitSource), StopReason> {
        let backoff = || self.backoff.delay(attempt.attempt, attempt.random);
        let Some(asked) = self.accepted(outcome, attempt)? else {
            return Ok((backoff(), WaitSource::Backoff));
        };
        let share = (sample(attempt.random) * f64::from(self.retry_after.spread)) as u64;
        let asked_ms = whole_ms(asked);
        let wait = Duration::from_millis(asked_ms.saturating_add(per_mille(asked_ms, share)));
        match self.retry_after.role {
            RetryAfterRole::Replace => Ok((wait, WaitSource::Server)),
            RetryAfterRole::Floor => Ok(match backoff() {
                longer if longer > wait => (longer, WaitSource::Backoff),
                _ => (wait, WaitSource::Server),
            }),
        }
    }

    /// What the server asks for, where it is not for the backoff to say.
    fn accepted(
        &self,
        outcome: &AttemptOutcome<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<Option<Duration>, StopReason> {
        let zero_counts = !self.retry_after.zero_means_backoff;
        let asked = self
            .asked(outcome, attempt)
            .filter(|asked| zero_counts || !asked.is_zero());
        let Some(asked) = asked else {
            return Ok(None);
        };
        match self.retry_after.cap {
            RetryAfterCap::StopAbove(cap) if asked > floored(cap) => {
                Err(StopReason::RetryAfterTooLong(asked))
            }
            RetryAfterCap::BackoffAbove(cap) if asked > floored(cap) => Ok(None),
            _ => Ok(Some(asked)),
        }
    }
}
