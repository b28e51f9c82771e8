//! A wait that was decided, before a retry of a send or a repetition of a work.

use std::time::Duration;

use tokio::time::Instant;

use crate::middleware::clock;
use crate::rule::WaitSource;

#[derive(Clone, Copy)]
pub(in crate::middleware) struct Wait {
    pub(in crate::middleware) duration: Duration,
    pub(in crate::middleware) source: WaitSource,
    /// The moment at which it is over.
    pub(in crate::middleware) until: Instant,
}

impl Wait {
    /// The wait that the rule decided after what failed at this moment.
    pub(in crate::middleware) fn after(
        (duration, source): (Duration, WaitSource),
        failed_at: Instant,
    ) -> Self {
        Self {
            duration,
            source,
            until: clock::later(failed_at, duration),
        }
    }
}
