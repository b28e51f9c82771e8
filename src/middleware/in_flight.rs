//! What an attempt on its way leaves for the code it runs through: the mark by which a second copy
//! of the middleware knows the first, and the notes of what became of the request.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Extensions;
use reqwest::Response;
use reqwest_middleware::Result;

thread_local! {
    /// The attempt that is being polled on this thread.
    ///
    /// `tokio::task_local!` would do, and would take a tenth of what a whole send costs here.
    static POLLED: Cell<InFlight> = const { Cell::new(InFlight(0)) };
}

/// Where the request's `Extensions` live, 0 where there is no attempt; and in the bits that such an
/// address leaves free, what was noted. It is compared, never followed: a send of another client
/// inside this attempt has an address of its own, unless a middleware lends it this very map.
///
/// One word, since it is swapped at each poll: a struct took a twentieth of what a whole send costs
/// here.
#[derive(Clone, Copy)]
struct InFlight(usize);

/// What was noted in an attempt, a bit each.
#[derive(Clone, Copy)]
pub(crate) struct Notes(usize);

impl Notes {
    const PROCESSED: usize = 1;
    const REPLACED: usize = 2;
    const ALL: usize = Self::PROCESSED | Self::REPLACED;

    /// Something of it may have been processed, whatever it fails with in the end.
    pub(crate) fn processed(self) -> bool {
        self.0 & Self::PROCESSED != 0
    }

    /// It was answered, and what came back in the end is the answer to another request.
    pub(crate) fn replaced(self) -> bool {
        self.0 & Self::REPLACED != 0
    }
}

const _: () = assert!(align_of::<Extensions>() > Notes::ALL);

type Chain<'a> = Pin<Box<dyn Future<Output = Result<Response>> + Send + 'a>>;

/// One attempt; once it is over it says what was noted in it.
pub(crate) struct Attempt<'a> {
    chain: Chain<'a>,
    own: InFlight,
}

impl<'a> Attempt<'a> {
    /// Runs the rest of the chain for the request whose extensions live at this [`address`].
    pub(crate) fn new(map: usize, chain: Chain<'a>) -> Self {
        Self {
            chain,
            own: InFlight(map),
        }
    }

    pub(crate) fn notes(&self) -> Notes {
        Notes(self.own.0 & Notes::ALL)
    }
}

impl Future for Attempt<'_> {
    type Output = Result<Response>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { chain, own } = &mut *self;
        let _entered = Entered::new(own);
        chain.as_mut().poll(cx)
    }
}

/// While it lives the attempt is the polled one; then the one around it is again, also where the
/// poll panics.
struct Entered<'a>(&'a mut InFlight);

impl<'a> Entered<'a> {
    fn new(own: &'a mut InFlight) -> Self {
        *own = exchange(*own);
        Self(own)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        *self.0 = exchange(*self.0);
    }
}

/// Puts `next` in the place of the polled attempt, and returns that.
fn exchange(next: InFlight) -> InFlight {
    // The cell has nothing to drop, so it is there as long as its thread is.
    POLLED
        .try_with(|polled| polled.replace(next))
        .unwrap_or(next)
}

/// The address by which an [`Attempt`] and [`carries`] know a map.
pub(crate) fn address(extensions: &Extensions) -> usize {
    std::ptr::from_ref(extensions) as usize
}

/// Whether these are the extensions of the attempt that is being polled.
pub(crate) fn carries(extensions: &Extensions) -> bool {
    POLLED
        .try_with(|polled| polled.get().0 & !Notes::ALL == address(extensions))
        .unwrap_or(false)
}

/// On a response: what was asked may have been processed before the request that it answers was
/// sent. A send around this one that is given the response as its answer must not take a refusal
/// for all there was.
#[derive(Clone, Copy)]
pub(crate) struct MaybeProcessed;

impl MaybeProcessed {
    pub(crate) fn mark(response: &mut Response) {
        response.extensions_mut().insert(Self);
    }

    pub(crate) fn marks(response: &Response) -> bool {
        response.extensions().get::<Self>().is_some()
    }
}

/// Notes that something of the attempt around this may have been processed: an answer came that
/// sent it on, or another client, on its way to an error, sent what a middleware further in had
/// handed to it.
pub(crate) fn note_processed() {
    note(Notes::PROCESSED);
}

/// Notes that the attempt around this was answered, and that another request went in its place.
pub(crate) fn note_replaced() {
    note(Notes::PROCESSED | Notes::REPLACED);
}

/// Outside an attempt nobody asks for it.
fn note(bits: usize) {
    let _ = POLLED.try_with(|polled| {
        polled.set(InFlight(polled.get().0 | bits));
    });
}
