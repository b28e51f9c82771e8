//! The request's `Extensions` while a send has them.

use http::Extensions;

use super::in_flight;
use super::report::{ResendCount, RetryReport};

/// The caller's map, lent for one send: each attempt finds in it what the first one found, and what
/// the last attempt left is what the caller sees. The [`ResendCount`] is taken out again however
/// the send ends, also where its future is dropped.
pub(crate) struct Lent<'a> {
    map: &'a mut Extensions,
    /// The map as it was, where a retry may need it.
    before: Extensions,
    resent: bool,
}

impl<'a> Lent<'a> {
    pub(crate) fn new(map: &'a mut Extensions, retry_possible: bool) -> Self {
        let before = if retry_possible {
            map.clone()
        } else {
            Extensions::new()
        };
        Self {
            map,
            before,
            resent: false,
        }
    }

    /// By which the attempt that has the map is known.
    pub(crate) fn address(&self) -> usize {
        in_flight::address(self.map)
    }

    pub(crate) fn map(&mut self) -> &mut Extensions {
        self.map
    }

    /// Makes the map ready for the retry of this number.
    pub(crate) fn restore(&mut self, retry: u32) {
        self.map.clone_from(&self.before);
        self.map.insert(ResendCount(retry));
        self.resent = true;
    }

    pub(crate) fn report(&mut self, report: RetryReport) {
        self.map.insert(report);
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if self.resent {
            match self.before.remove::<ResendCount>() {
                Some(callers) => self.map.insert(callers),
                None => self.map.remove::<ResendCount>(),
            };
        }
    }
}
