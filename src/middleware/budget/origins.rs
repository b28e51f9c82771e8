//! The origins that are remembered.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LockResult, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;
use tower::retry::budget::Budget;

use super::key::Key;
use super::lanes::Lanes;
use super::slot::{AnyBudget, Second, Slot, whole_seconds};
use super::table::{Entry, Table};
use crate::middleware::clock;

/// The most origins that are remembered.
const MOST: usize = 1024;

/// How many are forgotten at once where [`MOST`] are in use, so that looking for the longest idle
/// is paid for once in as many new origins.
const FORGOTTEN_AT_ONCE: usize = MOST / 8;

/// The origins that are remembered.
///
/// The same table for each of a few threads, behind a lock of its own. Every request passes here,
/// so finding a known origin takes one read lock that other threads seldom touch, allocates nothing
/// and reads no clock.
///
/// No code of the caller's runs while one of the locks is held: budgets are made, asked and dropped
/// outside, so one that panics or takes its time does not matter to the others.
pub(super) struct Origins {
    tables: Lanes<RwLock<Table>>,
    /// Held by whoever adds or removes entries, and taken before a table's lock, so that all tables
    /// are the same whenever nobody holds it, and no two newcomers take the same last place.
    register: Mutex<()>,
    /// Where [`Second`]s are counted from.
    start: Instant,
    /// When the idle ones were last looked for.
    tidied: AtomicU32,
    idle_after: Second,
    make: Box<dyn Fn() -> AnyBudget + Send + Sync>,
}

impl Origins {
    /// None yet. An origin that is not asked for two windows, to the second, counts as idle.
    pub(super) fn new<B>(window: Duration, make: impl Fn() -> B + Send + Sync + 'static) -> Self
    where
        B: Budget + Send + Sync + 'static,
    {
        let two_windows = window.saturating_mul(2);
        Origins {
            tables: Lanes::default(),
            register: Mutex::default(),
            start: clock::now(),
            tidied: AtomicU32::new(0),
            idle_after: whole_seconds(two_windows.saturating_add(Duration::from_millis(999))),
            make: Box::new(move || Box::new(make())),
        }
    }

    /// What `look` says of the origin's entry, if it is remembered.
    ///
    /// `look` runs under a lock: it must not call anything of the caller's.
    pub(super) fn known<R>(&self, key: &Key<'_>, look: impl FnOnce(&Arc<Entry>) -> R) -> Option<R> {
        unpoisoned(self.tables.own().read()).find(key).map(look)
    }

    /// The entry to ask: the known one, or a new one where there is none or it is idle.
    ///
    /// An idle one is never asked: tower's budget steps through every tenth of a window that has
    /// passed since it was asked last. By then it holds nothing but its reserve, like a new one.
    pub(super) fn awake(&self, key: &Key<'_>) -> Arc<Entry> {
        let now = whole_seconds(clock::now().saturating_duration_since(self.start));
        let known = if self.is_untidy(now) {
            None
        } else {
            self.known_awake(key, now)
        };
        known.unwrap_or_else(|| {
            let (entry, forgotten) = self.enter(key, now);
            drop(forgotten);
            entry
        })
    }

    fn known_awake(&self, key: &Key<'_>, now: Second) -> Option<Arc<Entry>> {
        let touch = |entry: &Arc<Entry>| {
            let is_awake = entry.slot.touch(now, self.idle_after);
            is_awake.then(|| Arc::clone(entry))
        };
        self.known(key, touch).flatten()
    }

    /// The budget in `slot`, made where it was not asked before.
    pub(super) fn budget<'a>(&self, slot: &'a Slot) -> &'a (dyn Budget + Send + Sync) {
        slot.budget(&self.make)
    }

    /// How many origins are remembered.
    pub(super) fn len(&self) -> usize {
        let _register = unpoisoned(self.register.lock());
        self.count()
    }

    /// Finds or makes the entry, with the register in hand. Those that had to go are the caller's to
    /// drop, as that runs the code of their budgets.
    fn enter(&self, key: &Key<'_>, now: Second) -> (Arc<Entry>, Vec<Arc<Entry>>) {
        let _register = unpoisoned(self.register.lock());
        let mut forgotten = Vec::new();
        if self.is_untidy(now) {
            self.tidied.store(now, Ordering::Relaxed);
            let mut idle = self.registered();
            idle.retain(|entry| entry.slot.is_idle(now, self.idle_after));
            self.forget(&mut forgotten, idle);
        }
        if let Some(entry) = self.known_awake(key, now) {
            return (entry, forgotten);
        }
        match self.known(key, Arc::clone) {
            Some(idle) => self.forget(&mut forgotten, vec![idle]),
            None => self.make_room(&mut forgotten),
        }
        let entry = Arc::new(Entry::new(key, now));
        for table in self.tables.iter() {
            unpoisoned(table.write()).insert(&entry);
        }
        (entry, forgotten)
    }

    /// How many entries there are, for whoever has the register.
    fn count(&self) -> usize {
        unpoisoned(self.tables.own().read()).len()
    }

    /// All entries, for whoever has the register.
    fn registered(&self) -> Vec<Arc<Entry>> {
        unpoisoned(self.tables.own().read()).all()
    }

    fn is_untidy(&self, now: Second) -> bool {
        now.saturating_sub(self.tidied.load(Ordering::Relaxed)) > self.idle_after
    }

    /// Forgets the longest idle where there are too many.
    fn make_room(&self, forgotten: &mut Vec<Arc<Entry>>) {
        if self.count() >= MOST {
            let mut entries = self.registered();
            entries.sort_by_cached_key(|entry| entry.slot.asked());
            entries.truncate(FORGOTTEN_AT_ONCE);
            self.forget(forgotten, entries);
        }
    }

    fn forget(&self, forgotten: &mut Vec<Arc<Entry>>, entries: Vec<Arc<Entry>>) {
        for table in self.tables.iter() {
            let mut table = unpoisoned(table.write());
            entries.iter().for_each(|entry| table.remove(entry));
        }
        forgotten.extend(entries);
    }
}

/// A lock as it was left. No panic can happen while one is held, so it was left in order.
fn unpoisoned<T>(lock: LockResult<T>) -> T {
    lock.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Barrier, OnceLock};
    use std::thread;

    use reqwest::Url;

    use super::*;
    use crate::middleware::budget::{BudgetTerms, RetryBudget};

    /// A budget that counts what happens to it, and to all others of its maker.
    #[derive(Clone, Default)]
    struct Counts(Arc<Counted>);

    #[derive(Default)]
    struct Counted {
        made: AtomicUsize,
        deposits: AtomicUsize,
        withdrawals: AtomicUsize,
        dropped: AtomicUsize,
    }

    struct Counting(Arc<Counted>);

    impl Counts {
        fn budget(&self) -> RetryBudget {
            let counted = Arc::clone(&self.0);
            RetryBudget::from_maker(move || {
                counted.made.fetch_add(1, Ordering::Relaxed);
                Counting(Arc::clone(&counted))
            })
        }

        /// How many were made, deposits, withdrawals, and how many were dropped.
        fn all(&self) -> [usize; 4] {
            let Counted {
                made,
                deposits,
                withdrawals,
                dropped,
            } = &*self.0;
            [made, deposits, withdrawals, dropped].map(|count| count.load(Ordering::Relaxed))
        }
    }

    impl Budget for Counting {
        fn deposit(&self) {
            self.0.deposits.fetch_add(1, Ordering::Relaxed);
        }

        fn withdraw(&self) -> bool {
            self.0.withdrawals.fetch_add(1, Ordering::Relaxed);
            true
        }
    }

    impl Drop for Counting {
        fn drop(&mut self) {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[track_caller]
    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn nth(n: usize) -> Url {
        url(&format!("https://tenant-{n}.example.com/"))
    }

    async fn wait(milliseconds: u64) {
        tokio::time::advance(Duration::from_millis(milliseconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_maker_is_called_once_for_each_origin() {
        let counts = Counts::default();
        let budget = counts.budget();
        assert_eq!(counts.all(), [0, 0, 0, 0]);
        for _ in 0..3 {
            budget.deposit(&nth(1));
            assert!(budget.withdraw(&nth(1)));
            assert!(budget.withdraw(&nth(2)));
        }
        assert_eq!(counts.all(), [2, 3, 6, 0]);
        drop(budget);
        assert_eq!(counts.all(), [2, 3, 6, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_budget_is_replaced_and_not_asked() {
        let counts = Counts::default();
        let budget = counts.budget();
        assert!(budget.withdraw(&nth(1)));
        wait(20_000).await;
        assert!(budget.withdraw(&nth(1)));
        assert_eq!(counts.all(), [1, 0, 2, 0]);
        wait(21_000).await;
        budget.deposit(&nth(1));
        assert_eq!(counts.all(), [2, 1, 2, 1]);
        wait(21_000).await;
        assert!(budget.withdraw(&nth(1)));
        assert_eq!(counts.all(), [3, 1, 3, 2]);
        assert_eq!(budget.origins(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_budget_is_replaced_between_two_tidyings() {
        let counts = Counts::default();
        let budget = counts.budget();
        wait(10_000).await;
        budget.deposit(&nth(1));
        // Tidied at 21 seconds, when the first is not idle, and next at 42.
        wait(11_000).await;
        budget.deposit(&nth(2));
        wait(11_000).await;
        budget.deposit(&nth(1));
        assert_eq!(counts.all(), [3, 3, 0, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_that_is_asked_now_and_then_is_kept() {
        let counts = Counts::default();
        let budget = counts.budget();
        for _ in 0..10 {
            budget.deposit(&nth(1));
            wait(19_000).await;
        }
        assert_eq!(counts.all(), [1, 10, 0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn two_windows_are_what_makes_idle() {
        for (window, kept, replaced) in [(1, 2_000, 3_000), (60, 120_000, 121_000)] {
            let window = Duration::from_secs(window);
            let origins = Origins::new(window, || Counting(Arc::default()));
            let slot = || {
                let url = nth(1);
                let key = Key::of(&url);
                origins.awake(&key)
            };
            let first = slot();
            wait(kept).await;
            assert!(Arc::ptr_eq(&first, &slot()));
            wait(replaced).await;
            assert!(!Arc::ptr_eq(&first, &slot()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn idle_origins_are_forgotten_when_any_is_asked() {
        let counts = Counts::default();
        let budget = counts.budget();
        (0..100).for_each(|n| budget.deposit(&nth(n)));
        assert_eq!(budget.origins(), 100);
        wait(11_000).await;
        budget.deposit(&nth(0));
        wait(11_000).await;
        assert_eq!(budget.origins(), 100);
        budget.deposit(&nth(0));
        assert_eq!(budget.origins(), 1);
        assert_eq!(counts.all(), [100, 102, 0, 99]);
    }

    #[tokio::test(start_paused = true)]
    async fn thousands_of_origins_stay_bounded() {
        let budget = RetryBudget::default();
        let mut most = 0;
        for n in 0..5000 {
            budget.deposit(&nth(n));
            most = most.max(budget.origins());
        }
        assert_eq!(most, 1024);
    }

    #[tokio::test(start_paused = true)]
    async fn where_too_many_are_in_use_the_longest_idle_go() {
        let counts = Counts::default();
        let budget = counts.budget();
        (0..256).for_each(|n| budget.deposit(&nth(n)));
        wait(1_000).await;
        (256..1024).for_each(|n| budget.deposit(&nth(n)));
        (0..128).for_each(|n| budget.deposit(&nth(n)));
        assert_eq!(budget.origins(), 1024);
        budget.deposit(&nth(1024));
        assert_eq!(budget.origins(), 1024 - 128 + 1);
        assert_eq!(counts.all(), [1025, 1153, 0, 128]);
        // All but the 128 that were asked in the first second only are known still.
        (0..128).for_each(|n| budget.deposit(&nth(n)));
        (256..1025).for_each(|n| budget.deposit(&nth(n)));
        assert_eq!(counts.all(), [1025, 2050, 0, 128]);
    }

    #[test]
    fn origins_with_one_hash_are_told_apart() {
        let counts = Counts::default();
        let budget = counts.budget();
        let [a, b] = ["https://host0303papbbbab/", "https://host01134h5xx99x/"].map(url);
        assert_eq!(Key::of(&a).hash, Key::of(&b).hash);
        budget.deposit(&a);
        budget.deposit(&b);
        assert_eq!(budget.origins(), 2);
        assert_eq!(counts.all(), [2, 2, 0, 0]);
    }

    #[test]
    fn a_maker_that_panics_is_called_again() {
        let calls = AtomicUsize::new(0);
        let budget = RetryBudget::from_maker(move || {
            assert!(calls.fetch_add(1, Ordering::Relaxed) > 0, "the first call");
            Counting(Arc::default())
        });
        let first = catch_unwind(AssertUnwindSafe(|| budget.withdraw(&nth(1))));
        assert!(first.is_err());
        assert!(budget.withdraw(&nth(1)));
        assert!(budget.withdraw(&nth(2)));
        assert_eq!(budget.origins(), 2);
    }

    #[test]
    fn a_budget_that_panics_leaves_the_others_working() {
        struct Panics(usize);

        impl Budget for Panics {
            fn deposit(&self) {
                assert!(self.0 > 0, "the first budget");
            }

            fn withdraw(&self) -> bool {
                self.0 > 0 || panic!("the first budget")
            }
        }

        let made = AtomicUsize::new(0);
        let budget = RetryBudget::from_maker(move || Panics(made.fetch_add(1, Ordering::Relaxed)));
        for _ in 0..2 {
            let sick = catch_unwind(AssertUnwindSafe(|| budget.withdraw(&nth(1))));
            assert!(sick.is_err());
            let sick = catch_unwind(AssertUnwindSafe(|| budget.deposit(&nth(1))));
            assert!(sick.is_err());
            budget.deposit(&nth(2));
            assert!(budget.withdraw(&nth(2)));
        }
        assert_eq!(budget.origins(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_may_use_the_others_while_it_is_made_asked_and_dropped() {
        struct Curious(Arc<OnceLock<RetryBudget>>);

        impl Curious {
            fn look(&self) -> bool {
                let Some(budget) = self.0.get() else {
                    return false;
                };
                budget.origins() > 0
            }
        }

        impl Budget for Curious {
            fn deposit(&self) {
                self.look();
            }

            fn withdraw(&self) -> bool {
                self.look()
            }
        }

        impl Drop for Curious {
            fn drop(&mut self) {
                self.look();
            }
        }

        let own = Arc::new(OnceLock::new());
        let shared = Arc::clone(&own);
        let budget = own.get_or_init(|| {
            RetryBudget::from_maker(move || {
                let curious = Curious(Arc::clone(&shared));
                curious.look();
                curious
            })
        });
        budget.deposit(&nth(1));
        assert!(budget.withdraw(&nth(1)));
        wait(21_000).await;
        assert!(budget.withdraw(&nth(2)));
        assert_eq!(budget.origins(), 1);
    }

    /// Runs `work` on eight threads at once, each with its number.
    fn at_once(work: impl Fn(usize) + Sync) {
        let start = Barrier::new(8);
        thread::scope(|scope| {
            for n in 0..8 {
                let (start, work) = (&start, &work);
                scope.spawn(move || {
                    start.wait();
                    work(n);
                });
            }
        });
    }

    #[test]
    fn threads_that_meet_an_origin_at_once_share_one_budget() {
        let counts = Counts::default();
        let budget = counts.budget();
        at_once(|_| {
            for n in 0..1000 {
                budget.deposit(&nth(n % 10));
                budget.withdraw(&nth(n % 10));
            }
        });
        assert_eq!(counts.all(), [10, 8000, 8000, 0]);
    }

    #[test]
    fn no_answer_is_lost_between_threads() {
        let window = Duration::from_secs(60);
        let budget = RetryBudget::new(BudgetTerms {
            window,
            reserve_per_second: 0,
            ratio: 200,
        })
        .unwrap();
        at_once(|_| (0..1003).for_each(|_| budget.deposit(&nth(1))));
        let retries = (0..10_000).take_while(|_| budget.withdraw(&nth(1)));
        // What each thread has left over makes four more.
        assert_eq!(retries.count(), 1604);
    }

    #[test]
    fn threads_with_thousands_of_origins_stay_within_the_bound() {
        let budget = RetryBudget::default();
        let most = AtomicUsize::new(0);
        at_once(|thread| {
            for n in 0..500 {
                budget.deposit(&nth(1000 * thread + n));
                budget.withdraw(&nth(n));
                most.fetch_max(budget.origins(), Ordering::Relaxed);
            }
        });
        let most = most.into_inner();
        assert!(most <= MOST, "{most} origins");
    }
}
