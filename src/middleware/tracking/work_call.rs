//! One call of a work: what the sends made in it leave for the loop around it.

use std::iter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::sends::Sends;
use super::sent::Sent;
use crate::middleware::time::SendTime;

/// One call of a work. What its sends did is kept here and nowhere else, so that a late send of an
/// earlier call is none of the next.
pub(in crate::middleware) struct WorkCall {
    /// The call of another work in which this one is made.
    around: Option<Arc<WorkCall>>,
    /// How many retries the work had come to when this call began.
    begun_with: u32,
    /// When the outermost work began, and by when all of them must be over.
    time: SendTime,
    state: Mutex<State>,
}

struct State {
    /// How many retries the work has come to.
    count: u32,
    sends: Sends,
}

impl WorkCall {
    pub(in crate::middleware) fn new(
        around: Option<Arc<WorkCall>>,
        begun_with: u32,
        time: SendTime,
    ) -> Self {
        Self {
            around,
            begun_with,
            time,
            state: Mutex::new(State {
                count: begun_with,
                sends: Sends::default(),
            }),
        }
    }

    /// A panic in between leaves the state whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This call, and those around it.
    fn and_around(&self) -> impl Iterator<Item = &WorkCall> {
        iter::successors(Some(self), |call| call.around.as_deref())
    }

    pub(in crate::middleware) fn begun_with(&self) -> u32 {
        self.begun_with
    }

    pub(in crate::middleware) fn time(&self) -> SendTime {
        self.time
    }

    /// The moment by which the work must be over.
    pub(in crate::middleware) fn ends(&self) -> Option<Instant> {
        self.time.ends
    }

    /// Adds a send to this work and to those around it.
    pub(super) fn add(&self, sent: &Arc<Sent>) {
        for call in self.and_around() {
            call.state().sends.add(sent);
        }
    }

    /// A retry of this number was decided: the work has come to it, and so have those around it.
    pub(in crate::middleware) fn count(&self, retry: u32) {
        for call in self.and_around() {
            let mut state = call.state();
            state.count = state.count.max(retry);
        }
    }

    /// How many retries the work has come to.
    pub(in crate::middleware) fn retries(&self) -> u32 {
        self.state().count
    }

    /// The sends that were begun in this call so far.
    pub(in crate::middleware) fn sends(&self) -> Sends {
        self.state().sends.clone()
    }

    /// The send that was begun last.
    pub(in crate::middleware) fn last_send(&self) -> Option<Arc<Sent>> {
        self.state().sends.last().cloned()
    }
}
