//! The budget of one origin, and when it was asked.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tower::retry::budget::Budget;

use super::parts::Parts;
use super::terms::WHOLE;

pub(super) type AnyBudget = Box<dyn Budget + Send + Sync>;

/// The budget of one origin.
pub(super) struct Slot {
    /// What answers were worth that is not a whole deposit yet.
    parts: Parts,
    /// The [`Second`] in which it was last asked, or made.
    asked: AtomicU32,
    /// Made when it is first asked, so an origin that is met once costs its name and its parts, and
    /// outside of every other lock.
    budget: OnceLock<AnyBudget>,
}

impl Slot {
    pub(super) fn new(now: Second) -> Self {
        Slot {
            parts: Parts::default(),
            asked: AtomicU32::new(now),
            budget: OnceLock::new(),
        }
    }

    /// The budget, made where it was not asked before.
    pub(super) fn budget(&self, make: impl FnOnce() -> AnyBudget) -> &(dyn Budget + Send + Sync) {
        &**self.budget.get_or_init(make)
    }

    /// Counts an answer that is worth `share` thousandths of a deposit, and says how many deposits
    /// are complete with it.
    pub(super) fn earns(&self, share: u32) -> u32 {
        if share >= WHOLE {
            return 1;
        }
        self.parts.add(share)
    }

    /// The deposits that are complete once the parts of all threads are put together.
    pub(super) fn gathered(&self) -> u32 {
        self.parts.gather()
    }

    /// Notes that the slot is asked now; `false`, and nothing noted, where it is idle.
    pub(super) fn touch(&self, now: Second, idle_after: Second) -> bool {
        let idle = self.is_idle(now, idle_after);
        if !idle && self.asked() != now {
            self.asked.store(now, Ordering::Relaxed);
        }
        !idle
    }

    /// Seconds are cut off, so only more of them than the limit are certain to be as long as it.
    pub(super) fn is_idle(&self, now: Second, idle_after: Second) -> bool {
        now.saturating_sub(self.asked()) > idle_after
    }

    pub(super) fn asked(&self) -> Second {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Whole seconds of 136 years.
///
/// Coarse on purpose: a slot that is asked all the time then seldom has a new moment to note,
/// which keeps its memory from moving between processors.
pub(super) type Second = u32;

pub(super) fn whole_seconds(duration: Duration) -> Second {
    Second::try_from(duration.as_secs()).unwrap_or(Second::MAX)
}
