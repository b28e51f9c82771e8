//! What the servers saw and did, and what went out at the client's end: the truth that reports are
//! held against.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method};

use super::fault::Fault;
use super::plan::{Claim, Plan};

/// Which send a request belongs to.
pub const SEND: HeaderName = HeaderName::from_static("soak-send");
/// Which attempt of it, counted from 0: set below the retry middleware.
pub const ATTEMPT: HeaderName = HeaderName::from_static("soak-attempt");
/// What the policy calls the same.
pub const RESENT: HeaderName = HeaderName::from_static("soak-resent");
/// The idempotency key.
pub const KEY: HeaderName = HeaderName::from_static("soak-key");

/// What was asked for at a redirect's next hop.
pub const HOP: &str = "/hop";
/// What is asked for first.
pub const ORIGIN: &str = "/";

/// All plans, and what became of each.
pub struct Ledger {
    pub plans: Vec<Plan>,
    tracks: Vec<Track>,
    /// Whether the sends belong to works, which make them anew.
    of_works: bool,
    /// Connections that the server ended under whatever was on them.
    cut: Mutex<HashSet<usize>>,
    /// Those on which it said that it wants no more.
    left: Mutex<HashSet<usize>>,
    /// What cannot be, noted where it was seen.
    odd: Mutex<Vec<String>>,
    opened: AtomicUsize,
    open: AtomicUsize,
}

#[derive(Default)]
struct Track {
    attempts: AtomicU32,
    spans: Mutex<Vec<Span>>,
    deeds: Mutex<Vec<Deed>>,
}

/// When an attempt began below the retry middleware, and when it ended, if it did.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub begun: Instant,
    pub ended: Option<Instant>,
}

/// One request that reached a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    pub attempt: u32,
    /// Whether it came to a redirect's next hop.
    pub hop: bool,
    pub method: Method,
    pub connection: usize,
    pub key: Option<String>,
    /// Whether it arrived to its end, and then whether its body was what it should be.
    pub whole: Option<bool>,
    pub processed: bool,
}

impl Ledger {
    pub fn new(seed: u64, sends: usize) -> Ledger {
        Ledger {
            plans: (0..sends).map(|id| Plan::new(seed, id)).collect(),
            tracks: (0..sends).map(|_| Track::default()).collect(),
            of_works: false,
            cut: Mutex::default(),
            left: Mutex::default(),
            odd: Mutex::default(),
            opened: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        }
    }

    /// The ledger of a soak of works. The attempts of a send are then those of all calls.
    pub fn of_works(seed: u64, sends: usize) -> Ledger {
        Ledger {
            of_works: true,
            ..Ledger::new(seed, sends)
        }
    }

    /// Notes how often an attempt says that it is resent, which is the number of the attempt.
    pub fn note_resent(&self, id: usize, attempt: u32, resent: u32) {
        // A work makes the request anew, so it counts from nothing again.
        let right = resent == attempt || self.of_works && resent < attempt;
        if !right {
            self.note_odd(format!(
                "send {id}: attempt {attempt} says that it is resent {resent} times"
            ));
        }
    }

    /// Counts an attempt of the send in, and says which it is.
    pub fn begins(&self, id: usize) -> u32 {
        lock(&self.tracks[id].spans).push(Span {
            begun: Instant::now(),
            ended: None,
        });
        self.tracks[id].attempts.fetch_add(1, Ordering::SeqCst)
    }

    /// The attempt that began last ends.
    pub fn ends(&self, id: usize) {
        if let Some(span) = lock(&self.tracks[id].spans).last_mut() {
            span.ended = Some(Instant::now());
        }
    }

    pub fn spans(&self, id: usize) -> Vec<Span> {
        lock(&self.tracks[id].spans).clone()
    }

    /// How many attempts the send has made.
    pub fn attempts(&self, id: usize) -> u32 {
        self.tracks[id].attempts.load(Ordering::SeqCst)
    }

    /// What goes wrong with the attempt that the send makes now.
    pub fn current(&self, id: usize) -> Option<&Fault> {
        let attempt = self.attempts(id).checked_sub(1)?;
        self.plans.get(id)?.fault(attempt)
    }

    pub fn deeds(&self, id: usize) -> Vec<Deed> {
        lock(&self.tracks[id].deeds).clone()
    }

    /// Notes a request whose head arrived. `None`, and odd, is one that no send has sent.
    pub fn saw(
        self: &Arc<Self>,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        connection: usize,
    ) -> Option<Seen> {
        let number = |name| headers.get(name)?.to_str().ok()?.parse().ok();
        let (id, attempt): (Option<usize>, Option<usize>) = (number(SEND), number(ATTEMPT));
        let track = id.and_then(|id| self.tracks.get(id));
        let (Some(id), Some(attempt), Some(track)) = (id, attempt, track) else {
            self.note_odd(format!(
                "a request of nobody's: {method} {path} {headers:?}"
            ));
            return None;
        };
        let attempt = attempt as u32;
        self.note_resent(id, attempt, number(RESENT).unwrap_or(0) as u32);
        let key = headers.get(KEY).and_then(|key| key.to_str().ok());
        let mut deeds = lock(&track.deeds);
        deeds.push(Deed {
            attempt,
            hop: path == HOP,
            method: method.clone(),
            connection,
            key: key.map(str::to_owned),
            whole: None,
            processed: false,
        });
        Some(Seen {
            ledger: Arc::clone(self),
            id,
            attempt,
            at: deeds.len() - 1,
        })
    }

    /// The server ends a connection under whatever is on it.
    pub fn cuts(&self, connection: usize) {
        lock(&self.cut).insert(connection);
    }

    /// The server says that it wants no more on a connection, and ends it after what is on it.
    pub fn leaves(&self, connection: usize) {
        lock(&self.left).insert(connection);
    }

    pub fn has_cut(&self, connection: usize) -> bool {
        lock(&self.cut).contains(&connection)
    }

    pub fn has_left(&self, connection: usize) -> bool {
        lock(&self.left).contains(&connection)
    }

    pub fn note_odd(&self, what: String) {
        lock(&self.odd).push(what);
    }

    pub fn odd(&self) -> Vec<String> {
        lock(&self.odd).clone()
    }

    /// Counts a connection in; it is open for as long as the guard lives.
    pub fn accepted(self: &Arc<Self>) -> Connection {
        self.open.fetch_add(1, Ordering::SeqCst);
        Connection {
            ledger: Arc::clone(self),
            number: self.opened.fetch_add(1, Ordering::SeqCst),
        }
    }

    /// Connections that servers hold.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Connections that servers accepted so far.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }
}

/// One open connection.
pub struct Connection {
    pub ledger: Arc<Ledger>,
    pub number: usize,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.ledger.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A request that a server has before it.
pub struct Seen {
    ledger: Arc<Ledger>,
    id: usize,
    pub attempt: u32,
    at: usize,
}

impl Seen {
    pub fn plan(&self) -> &Plan {
        &self.ledger.plans[self.id]
    }

    /// What goes wrong with it.
    pub fn fault(&self) -> Option<Fault> {
        self.plan().fault(self.attempt).copied()
    }

    /// Its end has arrived, and all before it.
    pub fn whole(&self, body: &[u8]) {
        let mut deeds = lock(&self.ledger.tracks[self.id].deeds);
        let deed = &mut deeds[self.at];
        let expected = match self.fault() {
            // A redirect that makes a GET of it leaves the body behind.
            Some(Fault::Redirect(code, _)) if deed.hop && !self.plan().keeps_method(code) => {
                Bytes::new()
            }
            _ => self.plan().content.bytes.bytes(),
        };
        deed.whole = Some(body == expected);
    }

    /// The server acts on it. Of two with the same key it acts on one.
    pub fn processed(&self) {
        let mut deeds = lock(&self.ledger.tracks[self.id].deeds);
        let again = self.plan().claim == Claim::Keyed && {
            let key = &deeds[self.at].key;
            deeds
                .iter()
                .any(|deed| deed.processed && deed.key == *key && key.is_some())
        };
        deeds[self.at].processed = !again;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no other holder has panicked")
}
