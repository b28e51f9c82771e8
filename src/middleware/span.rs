//! From when to when a send may last.

use std::time::Duration;

use tokio::time::Instant;

use super::clock;

#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) started: Instant,
    /// When the whole send must be over.
    pub(crate) ends: Option<Instant>,
}

impl Span {
    /// Starts now, and ends at the earlier of `total` from now and `deadline`. A time that the clock
    /// cannot hold is never reached.
    pub(crate) fn new(total: Option<Duration>, deadline: Option<Instant>) -> Self {
        let started = clock::now();
        let total = total.and_then(|total| started.checked_add(total));
        Self {
            started,
            ends: total.into_iter().chain(deadline).min(),
        }
    }

    /// Whether it is over at `moment`.
    pub(crate) fn is_over(self, moment: Instant) -> bool {
        self.ends.is_some_and(|end| end <= moment)
    }

    pub(crate) fn elapsed(self) -> Duration {
        clock::now().saturating_duration_since(self.started)
    }

    /// What is left of it.
    pub(crate) fn remaining(self) -> Option<Duration> {
        Some(self.ends?.saturating_duration_since(clock::now()))
    }
}
