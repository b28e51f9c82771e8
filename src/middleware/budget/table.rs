//! Origins, to be found fast.

use std::array;
use std::sync::Arc;

use super::key::Key;
use super::slot::{Second, Slot};

/// How many bits of a key's hash choose its bucket.
const BUCKET_BITS: u32 = 6;

/// Short lists of entries, by their hashes.
pub(super) struct Table {
    buckets: [Vec<Arc<Entry>>; 1 << BUCKET_BITS],
}

impl Default for Table {
    fn default() -> Self {
        Table {
            buckets: array::from_fn(|_| Vec::new()),
        }
    }
}

impl Table {
    pub(super) fn find(&self, key: &Key<'_>) -> Option<&Arc<Entry>> {
        let entries = &self.buckets[bucket(key.hash)];
        entries.iter().find(|entry| entry.is(key))
    }

    pub(super) fn insert(&mut self, entry: &Arc<Entry>) {
        self.buckets[bucket(entry.hash)].push(Arc::clone(entry));
    }

    pub(super) fn remove(&mut self, entry: &Arc<Entry>) {
        self.buckets[bucket(entry.hash)].retain(|other| !Arc::ptr_eq(entry, other));
    }

    pub(super) fn len(&self) -> usize {
        self.buckets.iter().map(Vec::len).sum()
    }

    pub(super) fn all(&self) -> Vec<Arc<Entry>> {
        self.buckets.iter().flatten().cloned().collect()
    }
}

fn bucket(hash: u64) -> usize {
    (hash >> (u64::BITS - BUCKET_BITS)) as usize
}

/// One origin and its slot.
pub(super) struct Entry {
    hash: u64,
    scheme: Box<[u8]>,
    authority: Box<[u8]>,
    pub(super) slot: Slot,
}

impl Entry {
    pub(super) fn new(key: &Key<'_>, now: Second) -> Self {
        Entry {
            hash: key.hash,
            scheme: key.origin.scheme.into(),
            authority: key.origin.authority.into(),
            slot: Slot::new(now),
        }
    }

    fn is(&self, key: &Key<'_>) -> bool {
        self.hash == key.hash
            && *self.authority == *key.origin.authority
            && *self.scheme == *key.origin.scheme
    }
}
