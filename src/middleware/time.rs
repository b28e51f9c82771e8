//! From when to when a send may last.

use std::time::Duration;

use tokio::time::Instant;

use super::clock;
use crate::rule::{Limits, StopReason};

#[derive(Clone, Copy)]
pub(super) struct SendTime {
    pub(super) started: Instant,
    /// The moment by which the whole send must be over.
    pub(super) ends: Option<Instant>,
}

impl SendTime {
    /// Starts now, and ends at the earlier of `total` from now and `deadline`. A time that the clock
    /// cannot hold is never reached.
    #[inline]
    pub(super) fn new(total: Option<Duration>, deadline: Option<Instant>) -> Self {
        let started = clock::now();
        let total = total.and_then(|total| started.checked_add(total));
        Self {
            started,
            ends: total.into_iter().chain(deadline).min(),
        }
    }

    /// The same time, which ends by `end` too.
    pub(super) fn within(self, end: Option<Instant>) -> Self {
        Self {
            ends: self.ends.into_iter().chain(end).min(),
            ..self
        }
    }

    /// True if the send must be over by `moment`.
    #[inline]
    pub(super) fn is_over(self, moment: Instant) -> bool {
        self.ends.is_some_and(|end| end <= moment)
    }

    /// How long the send has taken by `moment`.
    #[inline]
    pub(super) fn elapsed(self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.started)
    }

    /// The limit that would be reached by starting an attempt at `moment`, after this wait.
    pub(super) fn overdue(
        self,
        limits: &Limits,
        moment: Instant,
        wait: Duration,
    ) -> Option<StopReason> {
        if limits.hard_reached(self.elapsed(moment)) {
            Some(StopReason::HardLimit(wait))
        } else if self.is_over(moment) {
            Some(StopReason::Budget(wait))
        } else {
            None
        }
    }

    /// How much time is left at `moment`.
    #[inline]
    pub(super) fn remaining(self, moment: Instant) -> Option<Duration> {
        Some(self.ends?.saturating_duration_since(moment))
    }
}
