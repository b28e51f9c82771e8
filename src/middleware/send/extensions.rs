//! The request's `Extensions` while a send has them.

use http::Extensions;
use reqwest::Request;

use super::chain::{Chain, Rest};

use crate::middleware::report::{ResendCount, RetryReport};
use crate::middleware::tracking::{self, Running};

/// The caller's map for the time of one send. Each attempt finds in it what the first one found, and
/// what the last attempt left is what the caller sees. The [`ResendCount`] is taken out again however
/// the send ends, also if its future is dropped.
pub(super) struct SendExtensions<'a> {
    map: &'a mut Extensions,
    /// The map as it was, if a retry may need it.
    before: Extensions,
    resent: bool,
}

impl<'a> SendExtensions<'a> {
    #[inline]
    pub(super) fn new(map: &'a mut Extensions, retry_possible: bool) -> Self {
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

    /// Begins to run the rest of the chain with the map.
    #[inline]
    pub(super) fn run<'run>(
        &'run mut self,
        request: Request,
        chain: &'run impl Chain,
    ) -> Running<Rest<'run>> {
        let address = tracking::address(self.map);
        Running::new(address, || chain.run(request, self.map))
    }

    /// Makes the map ready for the retry of this number.
    pub(super) fn restore(&mut self, retry: u32) {
        self.map.clone_from(&self.before);
        self.map.insert(ResendCount(retry));
        self.resent = true;
    }

    pub(super) fn leave_report(&mut self, report: RetryReport) {
        self.map.insert(report);
    }
}

impl Drop for SendExtensions<'_> {
    fn drop(&mut self) {
        if self.resent {
            match self.before.remove::<ResendCount>() {
                Some(callers) => self.map.insert(callers),
                None => self.map.remove::<ResendCount>(),
            };
        }
    }
}
