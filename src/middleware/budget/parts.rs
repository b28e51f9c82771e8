//! Parts of deposits.

use std::sync::atomic::{AtomicU32, Ordering};

use super::lanes::Lanes;
use super::terms::WHOLE;

/// Thousandths of deposits, added up until they are whole.
///
/// Threads count apart, and what they have left over is put together when a retry asks for it. It
/// has no age: what came long ago counts like new, but that is less than a deposit for each lane.
#[derive(Default)]
pub(super) struct Parts {
    /// Less than a deposit each.
    counts: Lanes<AtomicU32>,
}

impl Parts {
    /// Adds thousandths to those of this thread, and takes out the whole deposits that they make.
    pub(super) fn add(&self, thousandths: u32) -> u32 {
        let own = self.counts.own();
        let sum = |before: u32| before.saturating_add(thousandths);
        let rest = |before| Some(sum(before) % WHOLE);
        let (Ok(before) | Err(before)) =
            own.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        sum(before) / WHOLE
    }

    /// Takes out the whole deposits that the parts of all threads make.
    pub(super) fn gather(&self) -> u32 {
        let counts = self.counts.iter();
        // Reading leaves a cache line where it is.
        let used = counts.filter(|count| count.load(Ordering::Relaxed) > 0);
        let left_over = used.map(|count| count.swap(0, Ordering::Relaxed));
        self.add(left_over.sum())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_is_left_over_is_kept() {
        let parts = Parts::default();
        let added = [300, 300, 300, 300, 999, 1, 1].map(|part| parts.add(part));
        assert_eq!(added, [0, 0, 0, 1, 1, 0, 0]);
        let added = [798, 1, 2999].map(|part| parts.add(part));
        assert_eq!(added, [0, 1, 2]);
    }

    /// Threads that have a fifth each.
    #[test]
    fn parts_of_all_threads_are_put_together() {
        let parts = Parts::default();
        let add = || thread::scope(|scope| scope.spawn(|| parts.add(200)).join().unwrap());
        let added: u32 = (0..4).map(|_| add()).sum();
        assert_eq!(added + parts.gather(), 0);
        // The fifth is on this thread's own where another eight have started meanwhile.
        assert_eq!(add() + parts.gather(), 1);
        assert_eq!(parts.gather(), 0);
    }

    #[test]
    fn nothing_is_lost_or_doubled_while_others_gather() {
        let parts = Parts::default();
        let wholes = thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|n| {
                    let parts = &parts;
                    scope.spawn(move || -> u32 {
                        let each = |answer: u32| match answer % 7 {
                            0 if n % 2 == 0 => parts.add(300) + parts.gather(),
                            _ => parts.add(300),
                        };
                        (0..10_000).map(each).sum()
                    })
                })
                .collect();
            let wholes = threads.into_iter().map(|thread| thread.join().unwrap());
            wholes.sum::<u32>()
        });
        assert_eq!(wholes + parts.gather(), 8 * 10_000 * 300 / WHOLE);
    }
}
