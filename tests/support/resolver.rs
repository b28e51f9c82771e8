//! Names of the test's own.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A resolver that knows the names it was told; every other name does not resolve. Clones share
/// what they know.
#[derive(Clone, Default)]
pub struct Names(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    names: HashMap<String, SocketAddr>,
    lookups: usize,
    failures: usize,
}

impl Names {
    pub fn new() -> Names {
        Names::default()
    }

    /// From here on the name leads to this address. A URL's own port wins over the address's.
    pub fn set(&self, name: &str, addr: SocketAddr) {
        self.known().names.insert(name.to_owned(), addr);
    }

    /// The next so many lookups fail, known or not.
    pub fn fail_next(&self, lookups: usize) {
        self.known().failures = lookups;
    }

    /// How many lookups were made.
    pub fn lookups(&self) -> usize {
        self.known().lookups
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap()
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let mut known = self.known();
        known.lookups += 1;
        let found = if known.failures > 0 {
            known.failures -= 1;
            None
        } else {
            known.names.get(name.as_str()).copied()
        };
        drop(known);
        Box::pin(async move {
            match found {
                Some(addr) => Ok(Box::new(std::iter::once(addr)) as Addrs),
                None => Err(io::Error::other(format!("no such name: {}", name.as_str())).into()),
            }
        })
    }
}
