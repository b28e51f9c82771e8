//! What is to be done about a failed attempt: the facts, and whom to ask in which order.

use std::result::Result;
use std::time::Duration;

use reqwest::Response;

use super::call::{Call, Failed};
use super::clock;
use super::in_flight;
use super::report::{AttemptRecord, AttemptResult};
use super::response::answered_at;
use crate::rule::{Attempt, AttemptOutcome, StopReason, WaitSource};

/// A wait that was decided.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(super) duration: Duration,
    pub(super) source: WaitSource,
}

impl<'a> Call<'a> {
    /// Asks the rule, then the policy's veto, then the budget; and tells who is to be told.
    pub(crate) fn judge(
        &mut self,
        in_hand: &reqwest_middleware::Result<Response>,
        failed: &Failed<'a>,
    ) -> Result<Wait, StopReason> {
        let mut record = AttemptRecord::new(failed.result, failed.elapsed);
        let judged = self.decide(in_hand, failed, &mut record);
        self.record(record);
        if judged.is_err() && failed.replaced {
            // Its answer may be passed on as that of a send around this one.
            in_flight::note_replaced();
        }
        let wait = judged?;
        self.tell_retry(failed, wait);
        // Those who were told may have taken their time.
        let wake = clock::later(clock::now(), wait.duration);
        if let Some(reason) = self.overdue(wake, wait) {
            return Err(reason);
        }
        if let Some(record) = self.records.last_mut() {
            record.wait = Some((wait.duration, wait.source));
        }
        Ok(wait)
    }

    fn decide(
        &mut self,
        in_hand: &reqwest_middleware::Result<Response>,
        failed: &Failed<'a>,
        record: &mut AttemptRecord,
    ) -> Result<Wait, StopReason> {
        let policy = &*self.plan.policy;
        let rule = policy.rule();
        let (outcome, failure) = match (in_hand, failed.result) {
            (_, AttemptResult::Failure(failure)) => {
                (AttemptOutcome::Failure(failure), Some(failure))
            }
            (Ok(response), _) => {
                let (status, headers) = (response.status(), response.headers());
                (AttemptOutcome::Response { status, headers }, None)
            }
            (Err(_), _) => return Err(StopReason::NotRetryable),
        };
        let response = in_hand.as_ref().ok().filter(|_| failure.is_none());
        let unsent = failure.is_some_and(|failure| failure.is_unsent());
        let facts = Attempt {
            attempt: self.retries,
            random: policy.random(),
            now: response.map(|response| {
                answered_at(response.headers()).unwrap_or_else(|| policy.time_of_day())
            }),
            elapsed: self.span.elapsed(),
            remaining: self.span.remaining(),
            server_delay: response.and_then(|response| policy.delay_of(response)),
            condition: failed.condition,
            idempotent: self.idempotent,
            // Where nothing was kept the rule has a reason of its own to stop.
            replayable: self
                .replay
                .as_ref()
                .is_none_or(|replay| replay.is_ready(unsent)),
            ..Attempt::new(&self.method)
        };
        record.asked = rule.asked(&outcome, &facts);
        // What was found in a header is not read there again.
        let facts = Attempt {
            server_delay: record.asked,
            ..facts
        };
        let decided = rule.wait_or_reason(&outcome, &facts, failed.replaced);
        let vetoed = || failure.is_some_and(|failure| policy.refuses(&failure));
        let (duration, source) = match decided {
            Err(reason @ (StopReason::Exhausted | StopReason::NotReplayable)) => {
                return Err(reason);
            }
            _ if vetoed() => return Err(StopReason::NotRetryable),
            decided => decided?,
        };
        let replay = self.replay.as_ref().ok_or(StopReason::NotReplayable)?;
        let granted = self
            .budget
            .is_none_or(|budget| budget.withdraw(replay.origin()));
        if granted {
            Ok(Wait { duration, source })
        } else {
            Err(StopReason::Throttled)
        }
    }
}
