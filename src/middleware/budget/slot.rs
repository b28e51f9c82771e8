//! The budget of one origin, and when it was asked.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tower::retry::budget::Budget;

use super::terms::WHOLE;

pub(super) type AnyBudget = Box<dyn Budget + Send + Sync>;

/// The budget of one origin.
pub(super) struct Slot {
    /// Counts round and round: only its value modulo 1000 matters.
    answers: AtomicU32,
    /// The [`Second`] in which it was last asked, or made.
    asked: AtomicU32,
    /// Made when it is first asked, so an origin that is met once costs its name alone, and
    /// outside of every other lock.
    budget: OnceLock<AnyBudget>,
}

impl Slot {
    pub(super) fn new(now: Second) -> Self {
        Slot {
            answers: AtomicU32::new(0),
            asked: AtomicU32::new(now),
            budget: OnceLock::new(),
        }
    }

    /// The budget, made where it was not asked before.
    pub(super) fn budget(&self, make: impl FnOnce() -> AnyBudget) -> &(dyn Budget + Send + Sync) {
        &**self.budget.get_or_init(make)
    }

    /// Counts an answer that is worth `share` thousandths of a deposit, and says whether it
    /// completes one. Of any thousand answers in a row, `share` do.
    pub(super) fn earns(&self, share: u32) -> bool {
        if share >= WHOLE {
            return true;
        }
        let before = self.answers.fetch_add(1, Ordering::Relaxed) % WHOLE;
        before * share / WHOLE < (before + 1) * share / WHOLE
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
