//! What a server saw.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{HeaderMap, Method};

/// One request that arrived whole.
#[derive(Clone, Debug)]
pub struct Received {
    /// Which connection brought it, counted from 0.
    pub connection: usize,
    pub method: Method,
    /// The request target as it was sent: path and query, or more from a proxy's client.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The shared record of a server: every clone sees the same.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    connections: usize,
    open: usize,
    begun: usize,
    requests: Vec<Received>,
}

impl Log {
    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.seen().connections
    }

    /// Connections that the server still holds.
    pub fn open(&self) -> usize {
        self.seen().open
    }

    /// Requests whose head arrived, whole or not.
    pub fn begun(&self) -> usize {
        self.seen().begun
    }

    /// How many requests arrived whole.
    pub fn count(&self) -> usize {
        self.seen().requests.len()
    }

    /// The requests that arrived whole, in order.
    pub fn requests(&self) -> Vec<Received> {
        self.seen().requests.clone()
    }

    /// How many requests with this method arrived whole.
    pub fn count_of(&self, method: &Method) -> usize {
        self.seen()
            .requests
            .iter()
            .filter(|request| request.method == *method)
            .count()
    }

    /// Counts a connection in; it is open for as long as the guard lives.
    pub fn accepted(&self) -> Connection {
        let mut seen = self.seen();
        let number = seen.connections;
        seen.connections += 1;
        seen.open += 1;
        Connection {
            log: self.clone(),
            number,
        }
    }

    /// Notes that a head arrived.
    pub fn note_begun(&self) {
        self.seen().begun += 1;
    }

    /// Notes a request that arrived whole.
    pub fn note(&self, request: Received) {
        self.seen().requests.push(request);
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }
}

/// One open connection in a [`Log`].
pub struct Connection {
    log: Log,
    pub number: usize,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.log.seen().open -= 1;
    }
}
