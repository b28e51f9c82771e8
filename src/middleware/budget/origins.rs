//! The origins that are remembered, and the budget of each.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LockResult, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use reqwest::Url;
use tokio::time::Instant;
use tower::retry::budget::Budget;

use crate::middleware::clock;

/// One retry per answer, in thousandths.
pub(super) const WHOLE: u32 = 1000;

/// The most origins that are remembered.
const MOST: usize = 1024;

/// How many are forgotten at once where [`MOST`] are in use, so that looking for the longest idle
/// is paid for once in as many new origins.
const FORGOTTEN_AT_ONCE: usize = MOST / 8;

/// How many bits of a key's hash choose its bucket.
const BUCKET_BITS: u32 = 6;

type AnyBudget = Box<dyn Budget + Send + Sync>;

/// The origins that are remembered.
///
/// A table of short lists, each behind its own lock. Every request passes here, so finding a known
/// origin takes one read lock, allocates nothing and reads no clock.
///
/// No code of the caller's runs while a lock is held: budgets are made, asked and dropped outside,
/// so one that panics or takes its time does not matter to the others.
pub(super) struct Origins {
    buckets: [RwLock<Vec<Entry>>; 1 << BUCKET_BITS],
    /// Held by whoever adds or removes entries, taken before a bucket's lock, which makes [`MOST`]
    /// exact.
    register: Mutex<()>,
    /// Where [`Second`]s are counted from.
    start: Instant,
    /// When the idle ones were last looked for.
    tidied: AtomicU32,
    idle_after: Second,
    make: Box<dyn Fn() -> AnyBudget + Send + Sync>,
}

/// Whole seconds of 136 years.
///
/// Coarse on purpose: a slot that is asked all the time then seldom has a new moment to note,
/// which keeps its memory from moving between processors.
type Second = u32;

impl Origins {
    /// None yet. An origin that is not asked for two windows counts as idle.
    pub(super) fn new<B>(window: Duration, make: impl Fn() -> B + Send + Sync + 'static) -> Self
    where
        B: Budget + Send + Sync + 'static,
    {
        Origins {
            buckets: std::array::from_fn(|_| RwLock::default()),
            register: Mutex::default(),
            start: clock::now(),
            tidied: AtomicU32::new(0),
            idle_after: whole_seconds(window.saturating_mul(2)),
            make: Box::new(move || Box::new(make())),
        }
    }

    /// What `look` says of the origin, if it is remembered.
    ///
    /// `look` runs under a lock: it must not call anything of the caller's.
    pub(super) fn known<R>(&self, key: &Key<'_>, look: impl FnOnce(&Arc<Slot>) -> R) -> Option<R> {
        let entries = unpoisoned(self.bucket(key).read());
        let entry = entries.iter().find(|entry| entry.is(key))?;
        Some(look(&entry.slot))
    }

    /// The slot to ask: the `known` one, or a new one where there is none or it is idle.
    ///
    /// An idle slot is never asked: tower's budget steps through every tenth of a window that has
    /// passed since it was asked last. By then it holds nothing but its reserve, like a new one.
    pub(super) fn awake(&self, key: &Key<'_>, known: Option<Arc<Slot>>) -> Arc<Slot> {
        let now = whole_seconds(clock::now().saturating_duration_since(self.start));
        match known {
            Some(slot) if !self.is_untidy(now) && slot.touch(now, self.idle_after) => slot,
            _ => {
                let (slot, forgotten) = self.enter(key, now);
                drop(forgotten);
                slot
            }
        }
    }

    /// The budget in `slot`, made where it was not asked before.
    pub(super) fn budget<'a>(&self, slot: &'a Slot) -> &'a (dyn Budget + Send + Sync) {
        &**slot.budget.get_or_init(&self.make)
    }

    /// How many origins are remembered.
    pub(super) fn len(&self) -> usize {
        let buckets = self.buckets.iter();
        buckets.map(|bucket| unpoisoned(bucket.read()).len()).sum()
    }

    /// Finds or makes the slot, with the register in hand. The entries that had to go are the
    /// caller's to drop, as that runs the code of their budgets.
    fn enter(&self, key: &Key<'_>, now: Second) -> (Arc<Slot>, Vec<Entry>) {
        let _register = unpoisoned(self.register.lock());
        let mut forgotten = Vec::new();
        if self.is_untidy(now) {
            self.tidied.store(now, Ordering::Relaxed);
            self.forget(&mut forgotten, |slot| slot.is_idle(now, self.idle_after));
        }
        let known = self.known(key, Arc::clone);
        match known {
            Some(slot) if slot.touch(now, self.idle_after) => return (slot, forgotten),
            Some(_) => self.forget_one(&mut forgotten, key),
            None if self.len() >= MOST => self.forget_longest_idle(&mut forgotten),
            None => {}
        }
        let entry = Entry::new(key, now);
        let slot = Arc::clone(&entry.slot);
        unpoisoned(self.bucket(key).write()).push(entry);
        (slot, forgotten)
    }

    fn is_untidy(&self, now: Second) -> bool {
        now.saturating_sub(self.tidied.load(Ordering::Relaxed)) > self.idle_after
    }

    fn forget_one(&self, forgotten: &mut Vec<Entry>, key: &Key<'_>) {
        let mut entries = unpoisoned(self.bucket(key).write());
        if let Some(at) = entries.iter().position(|entry| entry.is(key)) {
            forgotten.push(entries.swap_remove(at));
        }
    }

    fn forget_longest_idle(&self, forgotten: &mut Vec<Entry>) {
        let mut asked = Vec::with_capacity(MOST);
        for bucket in &self.buckets {
            asked.extend(
                unpoisoned(bucket.read())
                    .iter()
                    .map(|entry| entry.slot.asked()),
            );
        }
        asked.sort_unstable();
        let Some(&latest) = asked.get(FORGOTTEN_AT_ONCE - 1) else {
            return;
        };
        let mut left = FORGOTTEN_AT_ONCE;
        self.forget(forgotten, |slot| {
            let goes = left > 0 && slot.asked() <= latest;
            left -= usize::from(goes);
            goes
        });
    }

    fn forget(&self, forgotten: &mut Vec<Entry>, mut goes: impl FnMut(&Slot) -> bool) {
        for bucket in &self.buckets {
            let mut entries = unpoisoned(bucket.write());
            let mut at = 0;
            while let Some(entry) = entries.get(at) {
                if goes(&entry.slot) {
                    forgotten.push(entries.swap_remove(at));
                } else {
                    at += 1;
                }
            }
        }
    }

    fn bucket(&self, key: &Key<'_>) -> &RwLock<Vec<Entry>> {
        &self.buckets[(key.hash >> (u64::BITS - BUCKET_BITS)) as usize]
    }
}

/// What tells one origin from another, borrowed from a URL.
pub(super) struct Key<'a> {
    hash: u64,
    scheme: &'a str,
    host: &'a str,
    port: Option<u16>,
}

impl<'a> Key<'a> {
    pub(super) fn of(url: &'a Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default();
        Key {
            hash: hash(host.as_bytes(), port),
            scheme: url.scheme(),
            host,
            port,
        }
    }
}

/// Spreads hosts and ports over 64 bits.
///
/// Not a keyed hash, which would cost as much as all the rest of a look-up: hosts that are chosen
/// to fall into one bucket make that list [`MOST`] entries long, and no longer.
fn hash(host: &[u8], port: Option<u16>) -> u64 {
    let words = host.chunks_exact(8);
    let rest = words.remainder();
    let start = u64::from(port.unwrap_or_default()) << 32 | host.len() as u64 & 0xffff;
    words
        .map(|word| word.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        .chain([rest.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))])
        .fold(start, |hash, word| {
            let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ mixed >> 32
        })
}

/// One origin and its slot.
struct Entry {
    hash: u64,
    scheme: Box<str>,
    host: Box<str>,
    port: Option<u16>,
    slot: Arc<Slot>,
}

impl Entry {
    fn new(key: &Key<'_>, now: Second) -> Self {
        Entry {
            hash: key.hash,
            scheme: key.scheme.into(),
            host: key.host.into(),
            port: key.port,
            slot: Arc::new(Slot {
                answers: AtomicU32::new(0),
                asked: AtomicU32::new(now),
                budget: OnceLock::new(),
            }),
        }
    }

    fn is(&self, key: &Key<'_>) -> bool {
        self.hash == key.hash
            && self.port == key.port
            && *self.scheme == *key.scheme
            && *self.host == *key.host
    }
}

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
    fn touch(&self, now: Second, idle_after: Second) -> bool {
        let idle = self.is_idle(now, idle_after);
        if !idle && self.asked() != now {
            self.asked.store(now, Ordering::Relaxed);
        }
        !idle
    }

    /// Seconds are cut off, so only more of them than the limit are certain to be as long as it.
    fn is_idle(&self, now: Second, idle_after: Second) -> bool {
        now.saturating_sub(self.asked()) > idle_after
    }

    fn asked(&self) -> Second {
        self.asked.load(Ordering::Relaxed)
    }
}

fn whole_seconds(duration: Duration) -> Second {
    Second::try_from(duration.as_secs()).unwrap_or(Second::MAX)
}

/// A lock as it was left. No panic can happen while one is held, so it was left in order.
fn unpoisoned<T>(lock: LockResult<T>) -> T {
    lock.unwrap_or_else(PoisonError::into_inner)
}
