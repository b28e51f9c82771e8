//! One value for each origin, as many as there may be and no longer than they are of use.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::origin::Origin;

/// The most origins that are remembered.
const MOST: usize = 1024;

/// How many are forgotten at once if [`MOST`] are in use. Finding those that were not used for the
/// longest looks at all of them, and so it is done once for as many new origins.
const FORGOTTEN_AT_ONCE: usize = MOST / 8;

/// One value for each origin that is in use.
///
/// There are at most [`MOST`], and one that was not used for a while is forgotten. Values are
/// dropped outside the lock, since that may run code of the caller's, which may be slow, panic, or
/// use the table.
pub(super) struct OriginTable<V> {
    entries: RwLock<Entries<V>>,
    idle_after: Duration,
    /// Where [`Millis`] are counted from.
    start: Instant,
    /// When idle entries were last looked for.
    tidied: AtomicU64,
}

type Entries<V> = BTreeMap<Box<str>, Arc<Entry<V>>>;

/// Since the table was made.
type Millis = u64;

/// What is remembered of an origin.
pub(super) struct Entry<V> {
    /// When it was last used, in [`Millis`].
    used: AtomicU64,
    pub(super) value: V,
}

impl<V: Default> OriginTable<V> {
    /// An empty one. An origin that is not used for longer than `idle_after` is forgotten.
    pub(super) fn new(idle_after: Duration, now: Instant) -> Self {
        OriginTable {
            entries: RwLock::default(),
            idle_after,
            start: now,
            tidied: AtomicU64::new(0),
        }
    }

    /// How many origins are remembered.
    pub(super) fn len(&self) -> usize {
        self.read().len()
    }

    /// What `look` finds in the value of this origin, if it is remembered. This is no use of it.
    ///
    /// `look` runs under the lock, so it must not call code of the caller's.
    pub(super) fn peek<R>(&self, origin: &Origin<'_>, look: impl FnOnce(&V) -> R) -> Option<R> {
        let entries = self.read();
        entries.get(origin.as_str()).map(|entry| look(&entry.value))
    }

    /// The value of this origin: the one that is remembered, or a new one if there is none or it
    /// was idle for too long.
    pub(super) fn used(&self, origin: &Origin<'_>, now: Instant) -> Arc<Entry<V>> {
        let now = self.millis(now);
        let known = if self.is_tidy(now) {
            self.awake(&self.read(), origin, now)
        } else {
            None
        };
        known.unwrap_or_else(|| {
            let (entry, forgotten) = self.enter(origin, now);
            drop(forgotten);
            entry
        })
    }

    /// The entry that is remembered and not idle, as one that is used now.
    fn awake(
        &self,
        entries: &Entries<V>,
        origin: &Origin<'_>,
        now: Millis,
    ) -> Option<Arc<Entry<V>>> {
        let entry = entries.get(origin.as_str())?;
        if self.is_idle(entry, now) {
            return None;
        }
        entry.used.store(now, Ordering::Relaxed);
        Some(Arc::clone(entry))
    }

    /// The entry of this origin, and those that were forgotten for it.
    fn enter(&self, origin: &Origin<'_>, now: Millis) -> (Arc<Entry<V>>, Vec<Arc<Entry<V>>>) {
        let mut forgotten = Vec::new();
        let mut entries = self.write();
        if !self.is_tidy(now) {
            self.tidied.store(now, Ordering::Relaxed);
            forget(&mut entries, &mut forgotten, |entry| {
                self.is_idle(entry, now)
            });
        }
        // Another thread may have been here first.
        if let Some(entry) = self.awake(&entries, origin, now) {
            return (entry, forgotten);
        }
        if entries.len() >= MOST && !entries.contains_key(origin.as_str()) {
            make_room(&mut entries, &mut forgotten);
        }
        let entry = Arc::new(Entry {
            used: AtomicU64::new(now),
            value: V::default(),
        });
        forgotten.extend(entries.insert(origin.as_str().into(), Arc::clone(&entry)));
        (entry, forgotten)
    }

    fn is_tidy(&self, now: Millis) -> bool {
        !self.is_long_ago(&self.tidied, now)
    }

    fn is_idle(&self, entry: &Entry<V>, now: Millis) -> bool {
        self.is_long_ago(&entry.used, now)
    }

    fn is_long_ago(&self, moment: &AtomicU64, now: Millis) -> bool {
        let passed = now.saturating_sub(moment.load(Ordering::Relaxed));
        Duration::from_millis(passed) > self.idle_after
    }

    fn millis(&self, moment: Instant) -> Millis {
        let passed = moment.saturating_duration_since(self.start);
        Millis::try_from(passed.as_millis()).unwrap_or(Millis::MAX)
    }

    /// No code that may panic runs under the lock, so that it is never left half done.
    fn read(&self) -> RwLockReadGuard<'_, Entries<V>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries<V>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Moves the entries that `goes` names out of the table, to be dropped outside the lock.
fn forget<V>(
    entries: &mut Entries<V>,
    forgotten: &mut Vec<Arc<Entry<V>>>,
    goes: impl Fn(&Entry<V>) -> bool,
) {
    entries.retain(|_, entry| {
        let stays = !goes(entry);
        if !stays {
            forgotten.push(Arc::clone(entry));
        }
        stays
    });
}

/// Forgets those that were not used for the longest.
fn make_room<V>(entries: &mut Entries<V>, forgotten: &mut Vec<Arc<Entry<V>>>) {
    let mut by_use: Vec<_> = entries
        .iter()
        .map(|(origin, entry)| (entry.used.load(Ordering::Relaxed), origin.clone()))
        .collect();
    by_use.sort_unstable();
    let oldest = by_use.into_iter().take(FORGOTTEN_AT_ONCE);
    forgotten.extend(oldest.filter_map(|(_, origin)| entries.remove(&origin)));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Barrier, Mutex};
    use std::thread;

    use super::*;
    use crate::middleware::clock;

    type Table = OriginTable<AtomicUsize>;

    const LONG: Duration = Duration::from_secs(20);

    /// A table whose clock stands still unless a test moves it.
    fn table() -> (Table, Instant) {
        let start = clock::now();
        (OriginTable::new(LONG, start), start)
    }

    fn nth(n: usize) -> Origin<'static> {
        Origin(format!("https://tenant-{n}.example.com").into())
    }

    fn after(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    /// Gives the value of the `n`th origin a number, unless it has one, and says which it has.
    fn number(table: &Table, n: usize, now: Instant, number: usize) -> usize {
        let entry = table.used(&nth(n), now);
        let found = entry
            .value
            .compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        found.map_or_else(|found| found, |_| number)
    }

    #[test]
    fn an_origin_keeps_its_value_and_has_it_to_itself() {
        let (table, start) = table();
        assert_eq!(number(&table, 1, start, 7), 7);
        assert_eq!(number(&table, 2, start, 8), 8);
        assert_eq!(number(&table, 1, start, 9), 7);
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn looking_finds_what_is_there_and_adds_nothing() {
        let (table, start) = table();
        let look = |n| table.peek(&nth(n), |value| value.load(Ordering::Relaxed));
        assert_eq!(look(1), None);
        assert_eq!(table.len(), 0);
        number(&table, 1, start, 7);
        assert_eq!(look(1), Some(7));
        assert_eq!(look(2), None);
    }

    #[test]
    fn one_that_was_idle_for_longer_than_the_limit_starts_over() {
        let (table, start) = table();
        number(&table, 1, start, 7);
        assert_eq!(number(&table, 1, after(start, 20_000), 8), 7);
        assert_eq!(number(&table, 1, after(start, 40_001), 9), 9);
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn looking_keeps_nothing_awake() {
        let (table, start) = table();
        number(&table, 1, start, 7);
        assert_eq!(table.peek(&nth(1), |_| ()), Some(()));
        assert_eq!(number(&table, 1, after(start, 20_001), 8), 8);
    }

    #[test]
    fn idle_ones_go_when_any_is_used() {
        let (table, start) = table();
        (0..100).for_each(|n| assert_eq!(number(&table, n, start, 1), 1));
        number(&table, 0, after(start, 15_000), 1);
        assert_eq!(table.len(), 100);
        number(&table, 0, after(start, 20_001), 1);
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn a_clock_that_goes_back_makes_nothing_idle() {
        let (table, start) = table();
        number(&table, 1, after(start, 60_000), 7);
        assert_eq!(number(&table, 1, start, 8), 7);
    }

    #[test]
    fn an_endless_limit_makes_nothing_idle() {
        let start = clock::now();
        let table = Table::new(Duration::MAX, start);
        number(&table, 1, start, 7);
        let late = start + Duration::from_secs(1 << 32);
        assert_eq!(number(&table, 1, late, 8), 7);
    }

    #[test]
    fn if_too_many_are_in_use_those_go_that_were_not_used_for_the_longest() {
        let (table, start) = table();
        (0..256).for_each(|n| drop(table.used(&nth(n), start)));
        let later = after(start, 1_000);
        (256..1024).for_each(|n| drop(table.used(&nth(n), later)));
        (0..128).for_each(|n| drop(table.used(&nth(n), later)));
        assert_eq!(table.len(), 1024);
        drop(table.used(&nth(1024), later));
        assert_eq!(table.len(), 1024 - 128 + 1);
        let is_known = |n: usize| table.peek(&nth(n), |_| ()).is_some();
        let known: Vec<_> = (0..1025).filter(|n| is_known(*n)).collect();
        assert_eq!(known, (0..128).chain(256..1025).collect::<Vec<_>>());
    }

    #[test]
    fn one_that_starts_over_takes_nobodys_place() {
        let (table, start) = table();
        (0..1024).for_each(|n| drop(table.used(&nth(n), after(start, 10_000))));
        // All but the first were used again, and idle ones are looked for only later.
        let later = after(start, 25_000);
        (1..1024).for_each(|n| drop(table.used(&nth(n), later)));
        drop(table.used(&nth(0), after(start, 30_001)));
        assert_eq!(table.len(), 1024);
    }

    /// Looks into its table when it is dropped, as a budget of the caller's may.
    #[derive(Default)]
    struct Curious(Mutex<Option<Arc<OriginTable<Curious>>>>);

    impl Drop for Curious {
        fn drop(&mut self) {
            if let Some(table) = self.0.lock().unwrap().take() {
                table.len();
                table.used(&nth(3), table.start);
            }
        }
    }

    #[test]
    fn a_value_may_use_the_table_while_it_is_dropped() {
        let start = clock::now();
        let table = Arc::new(OriginTable::<Curious>::new(LONG, start));
        let entry = table.used(&nth(1), start);
        *entry.value.0.lock().unwrap() = Some(Arc::clone(&table));
        drop(entry);
        drop(table.used(&nth(2), after(start, 30_000)));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn threads_share_a_value_and_stay_within_the_bound() {
        let (table, start) = table();
        let (line, most) = (Barrier::new(8), AtomicUsize::new(0));
        thread::scope(|scope| {
            for thread in 0..8 {
                let (table, line, most) = (&table, &line, &most);
                scope.spawn(move || {
                    line.wait();
                    for n in 0..500 {
                        let shared = table.used(&nth(0), after(start, 1));
                        shared.value.fetch_add(1, Ordering::Relaxed);
                        drop(table.used(&nth(1000 * thread + n + 1), start));
                        most.fetch_max(table.len(), Ordering::Relaxed);
                    }
                });
            }
        });
        let used = table.peek(&nth(0), |value| value.load(Ordering::Relaxed));
        assert_eq!(used, Some(4000));
        assert_eq!(most.into_inner(), 1024);
    }
}
