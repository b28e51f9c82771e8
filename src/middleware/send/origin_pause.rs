//! The rest that an origin asked for, which every send to it waits for.

use std::time::Duration;

use tokio::time::Instant;

use super::call::Call;
use crate::middleware::clock;
use crate::middleware::origins::OriginPauses;
use crate::middleware::trace;
use crate::rule::StopReason;

impl Call<'_> {
    fn pauses(&self) -> Option<&OriginPauses> {
        self.in_force.settings().pause_origins.as_ref()
    }

    /// Notes that the origin asked for this wait with its answer to the current attempt.
    pub(super) fn note_rest(&self, asked: Duration, now: Instant) {
        if let (Some(pauses), Some(url)) = (self.pauses(), self.asked.url()) {
            pauses.ask(&url.into(), asked, self.history.attempt_begun(), now);
        }
    }

    /// How long the origin still asks for rest; `None` if it does not.
    pub(super) fn origin_pause(&self, now: Instant) -> Option<Duration> {
        let random = || self.in_force.settings().jitter_source();
        self.pauses()?.left(&self.asked.url()?.into(), random, now)
    }

    /// Waits before the first attempt while the origin asks for rest.
    ///
    /// # Errors
    ///
    /// The wait that the time of the send cannot hold.
    pub(super) async fn wait_for_origin(&mut self) -> Result<(), Duration> {
        loop {
            let now = clock::now();
            let Some(wait) = self.origin_pause(now) else {
                return Ok(());
            };
            if self.time.remaining(now).is_some_and(|left| wait >= left) {
                return Err(wait);
            }
            self.hold_back(wait, now).await;
        }
    }

    /// Waits before a retry if the pause has become longer since the rule decided.
    ///
    /// # Errors
    ///
    /// The limit that the wait would reach.
    pub(super) async fn wait_for_origin_again(&mut self) -> Result<(), StopReason> {
        loop {
            let now = clock::now();
            let Some(wait) = self.origin_pause(now) else {
                return Ok(());
            };
            if let Some(reason) = self.overdue(clock::later(now, wait), wait) {
                return Err(reason);
            }
            self.hold_back(wait, now).await;
        }
    }

    async fn hold_back(&mut self, wait: Duration, now: Instant) {
        let level = self.in_force.settings().log_levels.retry;
        trace::paused(&self.facts(), wait, level);
        clock::sleep_until(clock::later(now, wait)).await;
        self.history.add_pause(wait);
    }
}
