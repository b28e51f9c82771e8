//! How a send ends: who is told, and where the report is left.

use reqwest::{Response, Url};
use reqwest_middleware::{Error, Result};

use super::call::{Call, Failed};
use super::in_flight;
use super::judge::Wait;
use super::lent::Lent;
use super::observer::{CallFacts, RetryEvent, StopEvent};
use super::replay::Replay;
use super::report::{AttemptRecord, RetryReport};
use super::trace;
use crate::rule::StopReason;

impl Call<'_> {
    pub(crate) fn answered(mut self, response: Response, lent: &mut Lent<'_>) -> Result<Response> {
        if let (Some(budget), Some(replay)) = (self.budget, &self.replay) {
            budget.deposit(replay.url());
        }
        self.finish(Ok(response), None, lent)
    }

    pub(crate) fn give_up(
        mut self,
        in_hand: Result<Response>,
        reason: StopReason,
        lent: &mut Lent<'_>,
    ) -> Result<Response> {
        self.tell_stop(&in_hand, reason);
        if in_hand.is_err() && !self.records.iter().all(AttemptRecord::is_unsent) {
            // Its error may be passed on as that of a send around this one.
            in_flight::note_processed();
        }
        self.finish(in_hand, Some(reason), lent)
    }

    pub(crate) fn out_of_time(self, error: Error, lent: &mut Lent<'_>) -> Result<Response> {
        self.give_up(Err(error), StopReason::TotalTimeout, lent)
    }

    /// Leaves the report where it is looked for. A first attempt that was answered has none, unless
    /// the caller holds a log.
    fn finish(
        &mut self,
        mut in_hand: Result<Response>,
        stop: Option<StopReason>,
        lent: &mut Lent<'_>,
    ) -> Result<Response> {
        if self.records.is_empty() && stop.is_none() {
            return in_hand;
        }
        let records = std::mem::take(&mut self.records);
        let report = RetryReport::new(records, stop, self.plan.elapsed(), self.plan.label.clone());
        if let Some(log) = &self.plan.log {
            log.set(report.clone());
        }
        if let Ok(response) = &mut in_hand {
            response.extensions_mut().insert(report.clone());
        }
        lent.report(report);
        in_hand
    }

    pub(super) fn tell_retry(&self, failed: &Failed<'_>, wait: Wait) {
        let event = RetryEvent {
            call: self.facts(&failed.in_hand),
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
        let event = StopEvent {
            call: self.facts(in_hand),
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

    fn facts<'s>(&'s self, in_hand: &'s Result<Response>) -> CallFacts<'s> {
        let url = self.replay.as_ref().map(Replay::url).or(match in_hand {
            Ok(response) => Some(response.url()),
            Err(error) => error.url(),
        });
        CallFacts {
            method: &self.method,
            host: self.host.as_deref().or(url.and_then(Url::host_str)),
            label: self.plan.label.as_ref(),
            elapsed: self.plan.elapsed(),
        }
    }
}
