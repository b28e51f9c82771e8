//! What an attempt on its way leaves for the code it runs through: the mark by which a second copy
//! of the middleware knows the first, and the note that something of it may have been processed.
//!
//! One task-local serves both, since both live exactly as long as the attempt.

use std::cell::Cell;
use std::future::Future;

use http::Extensions;

tokio::task_local! {
    static IN_FLIGHT: InFlight;
}

struct InFlight {
    /// Where the request's `Extensions` live. It is compared, never followed: a send of another
    /// client inside this attempt has a map of its own, and so an address of its own.
    map: usize,
    processed: Cell<bool>,
}

/// Runs one attempt, and says whether [`note_processed`] was called in it.
pub(crate) async fn run<F: Future>(map: usize, attempt: F) -> (F::Output, bool) {
    let in_flight = InFlight {
        map,
        processed: Cell::new(false),
    };
    IN_FLIGHT
        .scope(in_flight, async move {
            let output = attempt.await;
            (output, IN_FLIGHT.with(|own| own.processed.get()))
        })
        .await
}

/// The address by which [`run`] and [`carries`] know a map.
pub(crate) fn address(extensions: &Extensions) -> usize {
    std::ptr::from_ref(extensions) as usize
}

/// Whether these are the extensions of the attempt that is running in this task.
pub(crate) fn carries(extensions: &Extensions) -> bool {
    IN_FLIGHT
        .try_with(|outer| outer.map == address(extensions))
        .unwrap_or(false)
}

/// Notes that something of the attempt around this may have been processed, whatever it fails with
/// in the end: an answer came that sent it on, or another client, on its way to such an error, sent
/// what a middleware further in had handed to it. Outside an attempt it does nothing.
pub(crate) fn note_processed() {
    // The only error is that no attempt runs in this task, and then nobody asks.
    let _ = IN_FLIGHT.try_with(|own| own.processed.set(true));
}
