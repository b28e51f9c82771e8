//! Names of the test's own.

use std::collections::HashMap;
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

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

/// A resolver that knows no name and says so as it likes.
#[derive(Clone)]
pub struct Failing {
    fail: fn() -> Pin<Box<dyn Future<Output = BoxError> + Send>>,
    lookups: Arc<AtomicUsize>,
}

type BoxError = Box<dyn Error + Send + Sync>;

impl Failing {
    /// It never answers.
    pub fn silent() -> Failing {
        Failing::new(|| Box::pin(std::future::pending()))
    }

    /// The system's resolver gave up waiting.
    pub fn timed_out() -> Failing {
        Failing::new(|| Box::pin(async { io::Error::from(io::ErrorKind::TimedOut).into() }))
    }

    /// The test's own code gave up waiting.
    pub fn elapsed() -> Failing {
        Failing::new(|| {
            Box::pin(async {
                let silent = std::future::pending::<()>();
                let elapsed = tokio::time::timeout(Duration::from_millis(1), silent).await;
                elapsed.unwrap_err().into()
            })
        })
    }

    /// The words of hickory when it gives up waiting.
    pub fn hickory() -> Failing {
        Failing::new(|| Box::pin(async { io::Error::other("request timed out").into() }))
    }

    /// How many lookups were made.
    pub fn lookups(&self) -> usize {
        self.lookups.load(Ordering::Relaxed)
    }

    fn new(fail: fn() -> Pin<Box<dyn Future<Output = BoxError> + Send>>) -> Failing {
        Failing {
            fail,
            lookups: Arc::default(),
        }
    }
}

impl Resolve for Failing {
    fn resolve(&self, _: Name) -> Resolving {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let failing = (self.fail)();
        Box::pin(async { Err(failing.await) })
    }
}
