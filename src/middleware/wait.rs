//! A wait that was decided, before a retry of a send or a repetition of a work.

use std::time::Duration;

use tokio::time::Instant;

use super::clock;
use crate::rule::WaitSource;

#[derive(Clone, Copy)]
pub(super) struct Wait {
    pub(super) duration: Duration,
    pub(super) source: WaitSource,
    /// The moment at which it is over.
    pub(super) until: Instant,
}

impl Wait {
    /// The wait that the rule decided after what failed at this moment.
    pub(super) fn after((duration, source): (Duration, WaitSource), failed_at: Instant) -> Self {
        Self {
            duration,
            source,
            until: clock::later(failed_at, duration),
        }
    }
}
