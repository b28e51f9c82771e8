//! A few of the same thing, so that threads keep out of each other's way.

use std::array;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As many threads that start one after the other keep apart; of others, some share.
const LANES: usize = 8;

/// One for each of a few threads.
///
/// What all threads write to moves from core to core with every write, which takes a busy client
/// longer than all else that its budget does.
pub(super) struct Lanes<T>([Lane<T>; LANES]);

/// Alone in its cache line, and in the one that processors fetch with it.
#[repr(align(128))]
struct Lane<T>(T);

impl<T> Lanes<T> {
    /// The one of this thread.
    pub(super) fn own(&self) -> &T {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
        }
        let number = NUMBER.try_with(|number| *number).unwrap_or(0);
        let Lane(own) = &self.0[number % LANES];
        own
    }

    /// Those of all threads.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|Lane(each)| each)
    }
}

impl<T: Default> Default for Lanes<T> {
    fn default() -> Self {
        Lanes(array::from_fn(|_| Lane(T::default())))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn threads_are_spread_over_the_lanes() {
        let lanes = Lanes::<AtomicUsize>::default();
        let visit = || {
            let own = lanes.own();
            assert!(std::ptr::eq(own, lanes.own()));
            own.fetch_add(1, Ordering::Relaxed);
        };
        (0..100).for_each(|_| thread::scope(|scope| scope.spawn(visit).join().unwrap()));
        let visits: Vec<_> = lanes
            .iter()
            .map(|lane| lane.load(Ordering::Relaxed))
            .collect();
        assert_eq!(visits.iter().sum::<usize>(), 100);
        assert!(visits.iter().all(|visits| *visits < 100), "{visits:?}");
    }

    #[test]
    fn no_two_lanes_are_within_a_cache_line() {
        let lanes = Lanes::<u8>::default();
        let addresses: Vec<_> = lanes
            .iter()
            .map(|lane| std::ptr::from_ref(lane).addr())
            .collect();
        assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] >= 128));
    }
}
