//! A send inside the attempt of another.
//!
//! A middleware further in may hand its request to another client. What that client lost may have
//! been processed, whatever the attempt around it comes to in the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderName, HeaderValue};

use super::in_flight::note_nested;

/// An idempotency key: the header and its value.
pub(in crate::middleware) type Key = (HeaderName, HeaderValue);

/// A send that repeats something if the attempt around it is repeated. The attempt in which it began
/// knows it, whoever polls it later on.
///
/// It counts as processed until it [says otherwise](Self::set_harmless). So nothing need be said of
/// one that is dropped, or that is still on its way when the attempt is over.
pub(in crate::middleware) struct NestedSend(Arc<Shared>);

struct Shared {
    key: Option<Key>,
    is_harmless: AtomicBool,
}

impl NestedSend {
    /// Notes a send that begins; `None` if it is inside no attempt. The key is the one that the
    /// request carries and its service honours.
    pub(in crate::middleware) fn begin(key: Option<&Key>) -> Option<Self> {
        note_nested(|| {
            Self(Arc::new(Shared {
                key: key.cloned(),
                is_harmless: AtomicBool::new(false),
            }))
        })
    }

    /// Notes that every request of this send was either not processed or answered.
    pub(in crate::middleware) fn set_harmless(&self) {
        self.0.is_harmless.store(true, Ordering::Release);
    }
}

/// The sends inside one attempt.
#[derive(Default)]
pub(super) struct NestedSends {
    /// Those that are not known to be harmless.
    open: Vec<Arc<Shared>>,
    /// True if there was one that is over and forgotten, and was not harmless.
    forgotten: bool,
}

/// Sends that are forgotten. To drop them may run code of the caller's, by the values of their keys.
#[must_use = "they are dropped where a send can be made"]
pub(super) struct Forgotten(#[expect(dead_code, reason = "it is dropped")] Vec<Arc<Shared>>);

/// When so many are remembered, those that are over are summed up.
const MANY: usize = 16;

impl NestedSends {
    /// Adds one, and gives what is forgotten for it.
    pub(super) fn add(&mut self, nested: &NestedSend) -> Forgotten {
        let forgotten = if self.open.len() >= MANY {
            self.forget()
        } else {
            Vec::new()
        };
        self.open.push(Arc::clone(&nested.0));
        Forgotten(forgotten)
    }

    /// Forgets those that are over, so that an attempt that sends for days does not fill the memory.
    /// The key of one that was lost goes too, and then that counts as one without a key.
    fn forget(&mut self) -> Vec<Arc<Shared>> {
        let (forgotten, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|shared| {
                let is_over = Arc::strong_count(shared) == 1;
                let is_harmless = shared.is_harmless.load(Ordering::Acquire);
                self.forgotten |= is_over && !is_harmless;
                is_over || is_harmless
            });
        self.open = open;
        forgotten
    }

    /// True if one of them may have been processed and would be another one next time: it has no
    /// key that the request around it `carries`.
    pub(super) fn have_lost(&self, carries: impl Fn(&HeaderName, &HeaderValue) -> bool) -> bool {
        let is_same_next_time = |key: &Key| carries(&key.0, &key.1);
        self.forgotten
            || self.open.iter().any(|shared| {
                !shared.is_harmless.load(Ordering::Acquire)
                    && !shared.key.as_ref().is_some_and(is_same_next_time)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(key: Option<&'static str>) -> NestedSend {
        let key = key.map(|value| {
            (
                HeaderName::from_static("key"),
                HeaderValue::from_static(value),
            )
        });
        NestedSend(Arc::new(Shared {
            key,
            is_harmless: AtomicBool::new(false),
        }))
    }

    /// True if one was lost, as a request that carries the key "mine" sees it.
    fn have_lost(nested: &NestedSends) -> bool {
        nested.have_lost(|_, value| value == "mine")
    }

    #[test]
    fn one_counts_until_it_is_harmless() {
        let mut nested = NestedSends::default();
        assert!(!have_lost(&nested));
        let one = send(None);
        drop(nested.add(&one));
        assert!(have_lost(&nested));
        one.set_harmless();
        assert!(!have_lost(&nested));
        drop(nested.add(&send(Some("mine"))));
        assert!(!have_lost(&nested));
        drop(nested.add(&send(Some("another"))));
        assert!(have_lost(&nested));
    }

    #[test]
    fn outside_an_attempt_nothing_is_noted() {
        assert!(NestedSend::begin(None).is_none());
    }

    #[test]
    fn those_that_are_over_are_forgotten_and_what_they_lost_is_not() {
        let mut harmless = NestedSends::default();
        let mut lost = NestedSends::default();
        for _ in 0..1000 {
            let one = send(None);
            drop(harmless.add(&one));
            one.set_harmless();
            drop(lost.add(&send(Some("another"))));
        }
        assert!(harmless.open.len() <= MANY && lost.open.len() <= MANY);
        assert!(!have_lost(&harmless) && have_lost(&lost));
        // Not one of those that were lost is remembered now.
        for _ in 0..2 * MANY {
            let one = send(None);
            drop(lost.add(&one));
            one.set_harmless();
        }
        assert!(have_lost(&lost));
    }

    #[test]
    fn one_that_is_on_its_way_is_not_forgotten() {
        let mut nested = NestedSends::default();
        let on_their_way: Vec<_> = (0..100).map(|_| send(None)).collect();
        on_their_way.iter().for_each(|one| drop(nested.add(one)));
        assert!(have_lost(&nested));
        on_their_way.iter().for_each(NestedSend::set_harmless);
        assert!(!have_lost(&nested));
    }
}
