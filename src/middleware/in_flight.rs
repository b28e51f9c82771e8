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

/// What was noted in an attempt. Of two notes the one that says more stays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Notes(usize);

impl Notes {
    /// Something of it may have been processed, whatever it fails with in the end.
    const PROCESSED: Self = Self(1);
    /// It was answered with a redirect, and unless that answer is what comes back, another request
    /// goes in its place.
    const SENT_ON: Self = Self(2);
    /// What it comes to is not all that became of it: see [`note_replaced`].
    const REPLACED: Self = Self(3);
    const ALL: usize = 3;

    pub(crate) fn processed(self) -> bool {
        self >= Self::PROCESSED
    }

    /// Whether what comes back is the answer to another request. `is_unfollowed` says whether it is
    /// a redirect that was not followed.
    pub(crate) fn replaced(self, is_unfollowed: impl FnOnce() -> bool) -> bool {
        self == Self::REPLACED || self == Self::SENT_ON && !is_unfollowed()
    }
}

const _: () = assert!(align_of::<Extensions>() > Notes::ALL);

type Chain<'a> = Pin<Box<dyn Future<Output = Result<Response>> + Send + 'a>>;

/// An attempt on its way; once it is over it says what was noted in it.
pub(crate) struct Running<'a> {
    /// `None` once it is over.
    chain: Option<Chain<'a>>,
    own: InFlight,
}

impl<'a> Running<'a> {
    /// Runs the rest of the chain for the request whose extensions live at this [`address`].
    pub(crate) fn new(map: usize, chain: Chain<'a>) -> Self {
        Self {
            chain: Some(chain),
            own: InFlight(map),
        }
    }

    pub(crate) fn notes(&self) -> Notes {
        Notes(self.own.0 & Notes::ALL)
    }
}

impl Future for Running<'_> {
    type Output = Result<Response>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { chain, own } = &mut *self;
        let _entered = Entered::new(own);
        let Some(running) = chain else {
            return Poll::Pending;
        };
        let outcome = running.as_mut().poll(cx);
        if outcome.is_ready() {
            // Here, so that what is noted when it goes is noted of this attempt.
            *chain = None;
        }
        outcome
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

/// The address by which a [`Running`] attempt and [`carries`] know a map.
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

/// Notes that the attempt around this was answered with a redirect, which if it is followed has
/// another request sent (`replaces`) or the same one elsewhere.
pub(crate) fn note_redirect(replaces: bool) {
    note(|notes| {
        if notes >= Notes::SENT_ON {
            // That there is another redirect shows that the one before was followed.
            Notes::REPLACED
        } else if replaces {
            Notes::SENT_ON
        } else {
            Notes::PROCESSED
        }
    });
}

/// Notes that what the attempt around this comes to is not all that became of the request: it was
/// answered, and another request went in its place, or another client, to which a middleware further
/// in had handed it, sent it to no good end.
pub(crate) fn note_replaced() {
    note(|_| Notes::REPLACED);
}

/// Outside an attempt nobody asks for it.
fn note(change: impl FnOnce(Notes) -> Notes) {
    let _ = POLLED.try_with(|polled| {
        let InFlight(word) = polled.get();
        let notes = change(Notes(word & Notes::ALL));
        polled.set(InFlight(word & !Notes::ALL | notes.0));
    });
}
