//! What happened in a send so far.
//!
//! Only the methods here touch the records: `attempt`, `end` and `judgement` add through them, and
//! `end` takes. A work has records of its own, in `work/progress.rs`.

use std::time::Duration;

use tokio::time::Instant;

use crate::middleware::report::{AttemptRecord, AttemptResult, Records};
use crate::middleware::request::BoxError;
use crate::rule::WaitSource;

/// The attempts of one send, and what became of each.
pub(super) struct History {
    records: Records,
    /// When the current attempt began.
    begun: Instant,
    /// True while there is an attempt without a record.
    open: bool,
    /// How many retries a work around this send had come to before.
    begun_with: u32,
    /// How many retries of this send were begun.
    resends: u32,
    /// True if an attempt was answered by something else than the last outcome.
    replaced: bool,
    /// How long attempts were held back for the pause of the origin.
    paused: Duration,
    /// What the attempt before failed with, for the error of a total timeout.
    last_error: Option<BoxError>,
    /// True once the send has ended.
    ended: bool,
}

impl History {
    #[inline]
    pub(super) fn new(started: Instant, begun_with: u32) -> Self {
        Self {
            records: Records::default(),
            begun: started,
            open: false,
            begun_with,
            resends: 0,
            replaced: false,
            paused: Duration::ZERO,
            last_error: None,
            ended: false,
        }
    }

    #[inline]
    pub(super) fn begin_attempt(&mut self, moment: Instant) {
        self.begun = moment;
        self.open = true;
    }

    /// When the current attempt began.
    pub(super) fn attempt_begun(&self) -> Instant {
        self.begun
    }

    /// How long the current attempt has taken by `moment`.
    #[inline]
    pub(super) fn attempt_elapsed(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.begun)
    }

    /// Ends the current attempt.
    pub(super) fn record(&mut self, record: AttemptRecord) {
        self.records.push(record);
        self.open = false;
    }

    /// Ends the current attempt. No decision was asked about it.
    pub(super) fn record_result(&mut self, result: AttemptResult, moment: Instant) {
        self.record(AttemptRecord::new(result, self.attempt_elapsed(moment)));
    }

    /// Adds to the last attempt the wait that follows it.
    pub(super) fn record_wait(&mut self, wait: Duration, source: WaitSource) {
        if let Some(record) = self.records.last_mut() {
            record.wait = Some((wait, source));
        }
    }

    /// Counts the retry that is about to begin.
    pub(super) fn count_retry(&mut self) -> u32 {
        self.resends = self.resends.saturating_add(1);
        self.resends
    }

    /// How many retries of this send were begun.
    pub(super) fn resends(&self) -> u32 {
        self.resends
    }

    /// How many retries were begun, those of the work around this send included.
    #[inline]
    pub(super) fn retries(&self) -> u32 {
        self.begun_with.saturating_add(self.resends)
    }

    /// How many attempts have a record.
    pub(super) fn attempts(&self) -> u32 {
        self.records.count()
    }

    /// True if no attempt has a record.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn last_result(&self) -> Option<AttemptResult> {
        self.records.last().map(AttemptRecord::result)
    }

    /// Notes that an attempt was answered, and that its outcome is that of another request.
    pub(super) fn note_replaced(&mut self) {
        self.replaced = true;
    }

    pub(super) fn was_replaced(&self) -> bool {
        self.replaced
    }

    /// Adds a time for which an attempt was held back for the pause of the origin.
    pub(super) fn add_pause(&mut self, time: Duration) {
        self.paused = self.paused.saturating_add(time);
    }

    pub(super) fn paused(&self) -> Duration {
        self.paused
    }

    pub(super) fn set_last_error(&mut self, error: Option<BoxError>) {
        self.last_error = error;
    }

    pub(super) fn take_last_error(&mut self) -> Option<BoxError> {
        self.last_error.take()
    }

    /// True if an attempt may have been processed: one that is on its way, or one whose result does
    /// not prove the opposite.
    #[inline]
    pub(super) fn may_be_processed(&self) -> bool {
        self.open || self.records.may_have_been_processed()
    }

    /// True if no attempt was processed without an answer: none can have been processed, or the last
    /// was `answered` and no answer before it was lost. An attempt that is on its way may be.
    pub(super) fn is_harmless(&self, answered: bool) -> bool {
        if answered {
            !self.records.lost_an_answer()
        } else {
            !self.may_be_processed()
        }
    }

    /// True if the last response is not all that became of the request: an attempt was lost, or
    /// another request went in its place.
    #[inline]
    pub(super) fn has_lost_answers(&self) -> bool {
        self.replaced || self.records.lost_an_answer()
    }

    #[inline]
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn take_records(&mut self) -> Records {
        std::mem::take(&mut self.records)
    }
}
