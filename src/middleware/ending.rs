//! How a send ends: who is told, and where the report is left.

use reqwest::{Response, Url};
use reqwest_middleware::Result;

use super::call::{Call, Failed};
use super::in_flight::{self, MaybeProcessed};
use super::judge::Wait;
use super::lent::Lent;
use super::observer::{CallFacts, RetryEvent, StopEvent};
use super::policy::RetryPolicy;
use super::replay::Replay;
use super::report::{AttemptRecord, AttemptResult, RetryReport};
use super::trace;
use crate::rule::StopReason;

/// Whether there is anybody to tell of a send that is given up.
pub(super) fn is_told(policy: &RetryPolicy) -> bool {
    !policy.observers().is_empty() || trace::hears_stops()
}

impl Call<'_> {
    /// There is an answer. A first attempt that was answered leaves no report, unless the caller
    /// holds a log.
    pub(crate) fn answered(&mut self, in_hand: &mut Result<Response>, lent: &mut Lent<'_>) {
        self.ended = true;
        let told = !self.records.is_empty() || self.plan.log().is_some();
        if let (true, Ok(response)) = (told, &in_hand) {
            self.note(AttemptResult::Status(response.status()));
        }
        // Only now: a budget may take its time, which is no part of the attempt.
        if let (Some(budget), Some(replay)) = (self.budget, &self.replay) {
            budget.deposit(replay.origin());
        }
        self.pass_on(in_hand);
        if !told {
            return;
        }
        self.leave_report(in_hand, None, lent);
    }

    /// Tells a send around this one, which may be given the response as its answer, that there was
    /// more than that.
    fn pass_on(&self, in_hand: &mut Result<Response>) {
        let was_lost = |record: &AttemptRecord| match record.result {
            AttemptResult::Failure(failure) => !failure.is_unsent(),
            _ => false,
        };
        if let Ok(response) = in_hand {
            if self.replaced || self.records.iter().any(was_lost) {
                MaybeProcessed::mark(response);
            }
        }
    }

    pub(crate) fn give_up(
        mut self,
        mut in_hand: Result<Response>,
        reason: StopReason,
        lent: &mut Lent<'_>,
    ) -> Result<Response> {
        self.tell_stop(&in_hand, reason);
        self.ended = true;
        if in_hand.is_err() && self.may_be_processed() {
            // Its error may be passed on as that of a send around this one.
            in_flight::note_replaced();
        }
        self.pass_on(&mut in_hand);
        self.leave_report(&mut in_hand, Some(reason), lent);
        in_hand
    }

    /// Leaves the report where it is looked for.
    fn leave_report(
        &mut self,
        in_hand: &mut Result<Response>,
        stop: Option<StopReason>,
        lent: &mut Lent<'_>,
    ) {
        let records = std::mem::take(&mut self.records);
        let report = RetryReport::new(
            records,
            stop,
            self.span.elapsed(),
            self.plan.label().cloned(),
        );
        if let Some(log) = self.plan.log() {
            log.set(report.clone());
        }
        if let Ok(response) = in_hand {
            response.extensions_mut().insert(report.clone());
        }
        lent.report(report);
    }

    pub(super) fn tell_retry(&self, failed: &Failed<'_>, wait: Wait) {
        let event = RetryEvent {
            call: self.facts(),
            retry: self.retries.saturating_add(1),
            result: failed.result,
            wait: wait.duration,
            source: wait.source,
        };
        trace::retry(&event);
        self.plan
            .policy
            .observers()
            .iter()
            .for_each(|observer| observer.on_retry(&event));
    }

    fn tell_stop(&self, in_hand: &Result<Response>, reason: StopReason) {
        let mut call = self.facts();
        if let (None, Err(error)) = (call.host, in_hand) {
            // `tracing` may write to `log`, of which one cannot ask whether it is heard.
            call.host = error.url().and_then(Url::host_str);
        }
        let event = StopEvent {
            call,
            attempts: self.attempts(),
            result: self.records.last().map(|record| record.result),
            reason,
        };
        trace::stop(&event);
        self.plan
            .policy
            .observers()
            .iter()
            .for_each(|observer| observer.on_stop(&event));
    }

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            method: &self.method,
            host: self
                .host
                .as_deref()
                .or(self.replay.as_ref().and_then(Replay::host)),
            label: self.plan.label(),
            elapsed: self.span.elapsed(),
        }
    }
}
