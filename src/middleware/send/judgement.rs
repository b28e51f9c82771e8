//! What is to be done about a failed attempt: the facts are put together, and the rule decides.

use std::result::Result;

use reqwest::Response;

use super::attempt::Failed;
use super::call::Call;
use crate::middleware::report::{AttemptRecord, AttemptResult};
use crate::middleware::response::answered_at;
use crate::middleware::wait::Wait;
use crate::rule::{Attempt, AttemptOutcome, StopReason};

impl<'a> Call<'a> {
    /// Asks the rule, then the budget. The attempt is recorded, and a retry is announced.
    pub(super) fn judge(
        &mut self,
        outcome: &reqwest_middleware::Result<Response>,
        failed: &Failed<'a>,
    ) -> Result<Wait, StopReason> {
        let elapsed = self.history.attempt_elapsed(failed.at);
        let mut record = AttemptRecord::new(failed.result, elapsed);
        let decided = self.decide(outcome, failed, &mut record);
        self.history.record(record);
        let wait = decided?;
        if let Some(work) = &self.work {
            work.count(self.history.retries().saturating_add(1));
        }
        self.announce_retry(failed, wait);
        self.history.record_wait(wait.duration, wait.source);
        Ok(wait)
    }

    fn decide(
        &mut self,
        outcome: &reqwest_middleware::Result<Response>,
        failed: &Failed<'a>,
        record: &mut AttemptRecord,
    ) -> Result<Wait, StopReason> {
        let (rule, settings) = (self.in_force.rule(), self.in_force.settings());
        let (outcome, response) = match (failed.result, outcome) {
            (AttemptResult::Failure(failure), _) => (AttemptOutcome::Failure(failure), None),
            (_, Ok(response)) => {
                let (status, headers) = (response.status(), response.headers());
                (AttemptOutcome::Response { status, headers }, Some(response))
            }
            // What is no failure of the transport comes back at once.
            (_, Err(_)) => return Err(StopReason::NotRetryable),
        };
        let unsent = matches!(outcome, AttemptOutcome::Failure(failure) if failure.is_unsent());
        let time_of_day = |response: &Response| {
            answered_at(response.headers()).unwrap_or_else(|| settings.wall_clock())
        };
        let server_delay = |response| settings.server_delay(&self.head_of(response));
        let mut facts = Attempt {
            attempt: self.history.retries(),
            random: settings.jitter_source(),
            now: response.map(time_of_day),
            elapsed: self.time.elapsed(failed.at),
            remaining: self.time.remaining(failed.at),
            server_delay: failed
                .refusal
                .server_delay
                .or_else(|| response.and_then(server_delay)),
            condition: failed.refusal.condition,
            idempotent: self.request.idempotent(),
            // If nothing was kept, the rule has a reason of its own to stop.
            replayable: self.request.kept().is_none_or(|kept| kept.is_ready(unsent)),
            vetoed: failed.refusal.vetoed || settings.veto(&outcome),
            replaced: failed.on_the_way.replaced,
            ..Attempt::new(&self.request.method)
        };
        record.asked = rule.asked(&outcome, &facts);
        if let Some(asked) = record.asked {
            self.note_rest(asked, failed, response.map(Response::url));
        }
        facts.paused = self.origin_pause_after(record.asked.unwrap_or_default(), failed.at);
        // What was found in a header is not read there again.
        facts.server_delay = record.asked;
        let decided = rule.wait_or_reason(&outcome, &facts)?;
        let kept = self.request.kept().ok_or(StopReason::NotReplayable)?;
        if let Some(budget) = self.budget() {
            if !budget.withdraw(kept.url()) {
                return Err(StopReason::Throttled);
            }
        }
        Ok(Wait::after(decided, failed.at))
    }
}
