//! From when to when a send may last.

use std::time::Duration;

use tokio::time::Instant;

use crate::middleware::clock;

#[derive(Clone, Copy)]
pub(super) struct SendTime {
    pub(super) started: Instant,
    /// The moment by which the whole send must be over.
    pub(super) ends: Option<Instant>,
}

impl SendTime {
    /// Starts now, and ends at the earlier of `total` from now and `deadline`. A time that the clock
    /// cannot hold is never reached.
    pub(super) fn new(total: Option<Duration>, deadline: Option<Instant>) -> Self {
        let started = clock::now();
        let total = total.and_then(|total| started.checked_add(total));
        Self {
            started,
            ends: total.into_iter().chain(deadline).min(),
        }
    }

    /// True if the send must be over by `moment`.
    pub(super) fn is_over(self, moment: Instant) -> bool {
        self.ends.is_some_and(|end| end <= moment)
    }

    /// How long the send has taken by `moment`.
    pub(super) fn elapsed(self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.started)
    }

    /// How much time is left at `moment`.
    pub(super) fn remaining(self, moment: Instant) -> Option<Duration> {
        Some(self.ends?.saturating_duration_since(moment))
    }
}
