//! The rest that an origin asked for, which every send to it waits for.

use std::time::Duration;

use reqwest::Url;
use reqwest_middleware::Error;
use tokio::time::Instant;

use super::attempt::Failed;
use super::call::Call;
use crate::middleware::clock;
use crate::middleware::error::RetryError;
use crate::middleware::origins::OriginPauses;
use crate::middleware::trace;
use crate::rule::StopReason;

impl Call<'_> {
    fn pauses(&self) -> Option<&OriginPauses> {
        self.in_force.settings().pause_origins.as_ref()
    }

    /// Notes that an origin asked for this wait with its answer to the current attempt: the one that
    /// the request went to, or the one to which it was redirected.
    pub(super) fn note_rest(
        &self,
        asked: Duration,
        failed: &Failed<'_>,
        answered_by: Option<&Url>,
    ) {
        let url = match answered_by {
            Some(url) if failed.on_the_way.redirected => Some(url),
            _ => self.request.url(),
        };
        if let (Some(pauses), Some(url)) = (self.pauses(), url) {
            let begun = self.history.attempt_begun();
            pauses.ask(&url.into(), asked, begun, failed.at);
        }
    }

    /// How long the origin still asks for rest; `None` if it does not.
    fn origin_pause(&self, now: Instant) -> Option<Duration> {
        let random = || self.in_force.settings().jitter_source();
        self.pauses()?
            .left(&self.request.url()?.into(), random, now)
    }

    /// The same for a send that was itself asked for the wait `own`.
    pub(super) fn origin_pause_after(&self, own: Duration, now: Instant) -> Option<Duration> {
        let random = || self.in_force.settings().jitter_source();
        let (pauses, origin) = (self.pauses()?, self.request.url()?.into());
        pauses.left_after(&origin, own, random, now)
    }

    /// Waits before the first attempt while the origin asks for rest.
    ///
    /// # Errors
    ///
    /// The error of the send, and the reason to stop: its time cannot hold the wait, or it woke too
    /// late.
    pub(super) async fn wait_for_origin(&mut self) -> Result<(), (Error, StopReason)> {
        loop {
            let now = clock::now();
            let Some(wait) = self.origin_pause(now) else {
                return Ok(());
            };
            if self.time.remaining(now).is_some_and(|left| wait >= left) {
                let error = Error::middleware(RetryError::OriginPaused { wait });
                return Err((error, StopReason::Budget(wait)));
            }
            self.hold_back(wait, now).await;
            if self.time.is_over(clock::now()) {
                return Err((self.total_timeout(), StopReason::TotalTimeout));
            }
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
