//! How a send ends: the observers' events, and where the report is left.

use http::StatusCode;
use reqwest::{Response, Url};
use reqwest_middleware::{Error, Result};

use super::attempt::{Failed, Refusal};
use super::call::Call;
use super::extensions::SendExtensions;
use crate::middleware::clock;
use crate::middleware::observer::{CallFacts, RecoveredEvent, RetryEvent, StopEvent};
use crate::middleware::origins::RetryBudget;
use crate::middleware::report::{AttemptResult, RetryReport};
use crate::middleware::tracking::{EndedWith, MaybeProcessed};
use crate::middleware::wait::Wait;
use crate::rule::{StopReason, TransportError};

impl Call<'_> {
    /// There is an answer. The answer to a first attempt leaves no report, unless the caller holds a
    /// log.
    #[inline]
    pub(super) fn answer(&mut self, answer: &mut Response, extensions: &mut SendExtensions<'_>) {
        self.end(true);
        let is_reported = !self.history.is_empty() || self.in_force.log().is_some();
        if is_reported {
            let result = AttemptResult::Status(answer.status());
            self.history.record_result(result, clock::now());
        }
        // Only now: a budget may take its time, which is no part of the attempt.
        if let (Some(budget), Some(kept)) = (self.budget(), self.request.kept()) {
            budget.deposit(kept.url());
        }
        self.mark(answer);
        self.end_in_work(Ok(answer), None);
        if is_reported {
            self.announce_recovery(answer.status());
            self.leave_report(Some(answer), None, extensions);
        }
    }

    /// No further attempt is made. `refusal` is what was found in the response, if one was refused.
    pub(super) fn give_up(
        &mut self,
        mut outcome: Result<Response>,
        refusal: Option<&Refusal<'_>>,
        reason: StopReason,
        extensions: &mut SendExtensions<'_>,
    ) -> Result<Response> {
        self.announce_stop(&outcome, reason);
        self.end(outcome.is_ok() && !self.history.was_replaced());
        if let Ok(response) = &mut outcome {
            self.mark(response);
        }
        self.end_in_work(outcome.as_ref(), refusal);
        self.leave_report(outcome.as_mut().ok(), Some(reason), extensions);
        outcome
    }

    /// Notes in the work around this send how it ended.
    fn end_in_work(
        &self,
        outcome: std::result::Result<&Response, &Error>,
        refusal: Option<&Refusal<'_>>,
    ) {
        let Some(work) = &self.work else {
            return;
        };
        let lost_answers = self.history.has_lost_answers();
        match outcome {
            Ok(response) => {
                let with = EndedWith::answer(response, work.url(), refusal.map(Refusal::for_work));
                work.end(with, lost_answers);
            }
            Err(_) => {
                let class = match self.history.last_result() {
                    Some(AttemptResult::Failure(failure)) => Some(failure),
                    Some(_) => None,
                    // No attempt was made.
                    None => Some(TransportError::NotProcessed),
                };
                let processed = self.history.may_be_processed();
                let with = EndedWith::Failure { class, processed };
                work.end(with, lost_answers);
            }
        }
    }

    /// The send is over. If no answer was lost, that is noted for the send around it: a middleware in
    /// between may drop the outcome and go on by itself.
    fn end(&mut self, answered: bool) {
        self.history.end();
        if self.history.is_harmless(answered) {
            self.request.set_harmless();
        }
    }

    /// Marks a response that is not all that became of the request, for a send further out that is
    /// given it as its answer.
    #[inline]
    fn mark(&self, response: &mut Response) {
        if self.history.has_lost_answers() {
            MaybeProcessed::mark(response);
        }
    }

    /// The budget that limits the retries of this send.
    #[inline]
    pub(super) fn budget(&self) -> Option<&RetryBudget> {
        self.in_force.budget()
    }

    /// Leaves the report in each place in which it is looked for.
    fn leave_report(
        &mut self,
        response: Option<&mut Response>,
        stop: Option<StopReason>,
        extensions: &mut SendExtensions<'_>,
    ) {
        let elapsed = self.time.elapsed(clock::now());
        let label = self.in_force.label().cloned();
        let report = RetryReport::new(
            self.history.take_records(),
            stop,
            elapsed,
            self.history.paused(),
            label,
        );
        if let Some(log) = self.in_force.log() {
            log.set(report.clone());
        }
        if let Some(response) = response {
            response.extensions_mut().insert(report.clone());
        }
        extensions.leave_report(report);
    }

    pub(super) fn announce_retry(&self, failed: &Failed<'_>, wait: Wait) {
        let event = RetryEvent {
            call: self.facts(),
            retry: self.history.retries().saturating_add(1),
            result: failed.result,
            wait: wait.duration,
            source: wait.source,
        };
        self.in_force.settings().announce_retry(&event);
    }

    /// Announces an answer that took a retry.
    fn announce_recovery(&self, status: StatusCode) {
        if self.history.retries() == 0 || self.work.is_some() {
            return;
        }
        let event = RecoveredEvent {
            call: self.facts(),
            attempts: self.history.attempts(),
            status,
        };
        self.in_force.settings().announce_recovery(&event);
    }

    fn announce_stop(&self, outcome: &Result<Response>, reason: StopReason) {
        if self.work.is_some() {
            // Only the end of the work is announced.
            return;
        }
        let mut call = self.facts();
        if let (None, Err(error)) = (call.host, outcome) {
            // `tracing` may write to `log`, and nobody can ask whether that is on.
            call.host = error.url().and_then(Url::host_str);
        }
        let event = StopEvent {
            call,
            attempts: self.history.attempts(),
            result: self.history.last_result(),
            reason,
        };
        self.in_force.settings().announce_stop(&event);
    }

    pub(super) fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            method: &self.request.method,
            host: self.request.url().and_then(Url::host_str),
            label: self.in_force.label(),
            elapsed: self.time.elapsed(clock::now()),
        }
    }
}
