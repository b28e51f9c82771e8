//! A work on its way: what it has come to, and what is reported of it.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use reqwest::Url;
use tokio::time::Instant;

use super::judgement::FailedCall;
use crate::middleware::clock;
use crate::middleware::observer::{CallFacts, RecoveredEvent, RetryEvent, StopEvent};
use crate::middleware::overrides::InForce;
use crate::middleware::report::{AttemptRecord, AttemptResult, Records, RetryReport};
use crate::middleware::time::SendTime;
use crate::middleware::tracking::{self, UNSEEN, WorkCall};
use crate::middleware::wait::Wait;
use crate::rule::StopReason;

/// A work on its way.
pub(super) struct Progress<'a> {
    pub(super) in_force: &'a InForce<'a>,
    /// The call of another work in which this work is done.
    around: Option<Arc<WorkCall>>,
    started: Instant,
    /// That of the outermost work, bounded by the time of this one.
    time: SendTime,
    /// How many retries the work had come to when its current call began.
    begun_with: u32,
    /// When that call began.
    begun: Instant,
    calls: u32,
    records: Records,
    /// What the last call failed with.
    failed: Option<Box<FailedCall>>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(in_force: &'a InForce<'a>) -> Self {
        let around = tracking::current_work();
        let own = in_force.time();
        let time = around
            .as_ref()
            .map_or(own, |around| around.time().within(own.ends));
        Self {
            in_force,
            begun_with: around.as_ref().map_or(0, |around| around.begun_with()),
            around,
            started: own.started,
            time,
            begun: own.started,
            calls: 0,
            records: Records::default(),
            failed: None,
        }
    }

    /// Begins the next call of the work, and gives what its sends are to find.
    pub(super) fn begin_call(&mut self) -> Arc<WorkCall> {
        if self.calls > 0 {
            self.begun = clock::now();
        }
        self.calls = self.calls.saturating_add(1);
        let around = self.around.clone();
        Arc::new(WorkCall::new(around, self.begun_with, self.time))
    }

    /// The number of the current call, 1 for the first.
    pub(super) fn calls(&self) -> u32 {
        self.calls
    }

    /// How long the current call has taken by `moment`.
    pub(super) fn call_elapsed(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.begun)
    }

    pub(super) fn record(&mut self, record: AttemptRecord, failed: FailedCall) {
        self.records.push(record);
        self.failed = Some(Box::new(failed));
    }

    /// Adds to the last call the wait that follows it.
    pub(super) fn record_wait(&mut self, wait: Wait) {
        if let Some(record) = self.records.last_mut() {
            record.wait = Some((wait.duration, wait.source));
        }
    }

    /// Looks at the time once more after a wait, and makes ready for the next call.
    ///
    /// # Errors
    ///
    /// The limit that was reached.
    pub(super) fn go_on(&mut self, call: &WorkCall, wait: Wait) -> Result<(), StopReason> {
        let now = clock::now();
        let url = self.failed.as_ref().and_then(|failed| failed.url.as_ref());
        let limits = &self.in_force.rule_for(url).limits;
        if let Some(reason) = self.time.overdue(limits, now, wait.duration) {
            return Err(reason);
        }
        self.begun_with = call.retries();
        Ok(())
    }

    /// The work is done.
    pub(super) fn succeed(&mut self, call: &WorkCall) {
        let retries = call.retries();
        if retries == 0 && self.in_force.log().is_none() {
            return;
        }
        let sends = call.sends();
        let status = sends.kept().rev().find_map(|sent| sent.status());
        let status = status.unwrap_or(StatusCode::OK);
        let elapsed = self.call_elapsed(clock::now());
        let record = AttemptRecord::new(AttemptResult::Status(status), elapsed);
        self.records.push(record);
        if retries > 0 && self.around.is_none() {
            let last = call.last_send();
            let event = RecoveredEvent {
                call: CallFacts {
                    method: last.as_ref().map_or(&UNSEEN, |sent| &sent.method),
                    host: last.as_ref().and_then(|sent| sent.url.host_str()),
                    ..self.call_facts()
                },
                attempts: retries.saturating_add(1),
                status,
            };
            self.in_force.settings().announce_recovery(&event);
        }
        self.leave_report(None);
    }

    /// The work is not done again.
    pub(super) fn give_up(&mut self, call: &WorkCall, reason: StopReason) {
        if self.around.is_none() {
            let event = StopEvent {
                call: self.call_facts(),
                attempts: call.retries().saturating_add(1),
                result: self.records.last().map(AttemptRecord::result),
                reason,
            };
            self.in_force.settings().announce_stop(&event);
        }
        self.leave_report(Some(reason));
    }

    pub(super) fn announce_retry(&self, call: &WorkCall, wait: Wait) {
        let event = RetryEvent {
            call: self.call_facts(),
            retry: call.retries(),
            result: self
                .records
                .last()
                .map_or(AttemptResult::Error, AttemptRecord::result),
            wait: wait.duration,
            source: wait.source,
        };
        self.in_force.settings().announce_retry(&event);
    }

    /// The facts of the call that failed last.
    fn call_facts(&self) -> CallFacts<'_> {
        let failed = self.failed.as_deref();
        let url = failed.and_then(|failed| failed.url.as_ref());
        CallFacts {
            method: failed.map_or(&UNSEEN, FailedCall::method),
            host: url.and_then(Url::host_str),
            label: self.in_force.label(),
            elapsed: self.elapsed(),
        }
    }

    /// How long this work has taken so far.
    fn elapsed(&self) -> Duration {
        clock::now().saturating_duration_since(self.started)
    }

    fn leave_report(&mut self, stop: Option<StopReason>) {
        let Some(log) = self.in_force.log() else {
            return;
        };
        let (records, label) = (std::mem::take(&mut self.records), self.in_force.label());
        let report = RetryReport::new(
            records,
            stop,
            self.elapsed(),
            Duration::ZERO,
            label.cloned(),
        );
        log.set(report);
    }
}
