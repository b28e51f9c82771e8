//! The attempt that is being polled, and what was noted while it was.

use std::cell::RefCell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Extensions, HeaderName, HeaderValue};

use super::nested::{NestedSend, NestedSends};
use super::work_call::WorkCall;

thread_local! {
    /// The attempt that is being polled on this thread.
    ///
    /// It is never dropped, so that it can be used until the thread is gone: by a send that another
    /// thread-local makes as it is dropped, for instance. Nothing leaks, since no attempt is polled
    /// when a thread ends.
    static CURRENT: RefCell<ManuallyDrop<InFlight>> =
        const { RefCell::new(ManuallyDrop::new(InFlight::NONE)) };
}

/// An attempt on its way.
struct InFlight {
    /// Where the request's `Extensions` live; 0 for no attempt. It is compared, never followed: a
    /// send of another client inside this attempt has a map of its own, unless a middleware hands
    /// it this very one.
    map: usize,
    notes: Notes,
    /// The call of a work that is being polled inside this attempt, or outside any.
    work: Option<Arc<WorkCall>>,
}

impl InFlight {
    const NONE: Self = Self {
        map: 0,
        notes: Notes {
            fate: Fate::Unknown,
            nested: None,
        },
        work: None,
    };
}

/// What was noted during an attempt.
pub(in crate::middleware) struct Notes {
    fate: Fate,
    /// What other clients sent inside the attempt, if they did. Few do, and what is in flight is
    /// moved at each poll.
    nested: Option<Box<NestedSends>>,
}

/// What became of the request on its way. Of two findings the later one here counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// Nothing is known but the outcome.
    Unknown,
    /// It was answered by a redirect that sends the same request elsewhere.
    SentElsewhere,
    /// It was answered by a redirect that, if it is followed, has another request sent in its place.
    MayBeReplaced,
    /// It was processed, or may have been, and the outcome is not that of the request itself.
    Replaced,
}

impl Notes {
    /// True if something of the request may have been processed, whatever the attempt fails with.
    /// `carries` says whether the request itself carries this header with this value.
    #[inline]
    pub(in crate::middleware) fn processed(
        &self,
        carries: impl Fn(&HeaderName, &HeaderValue) -> bool,
    ) -> bool {
        self.fate > Fate::Unknown || self.have_lost(carries)
    }

    /// True if the response answers another request. `is_unfollowed` says whether it is a redirect
    /// that was not followed.
    #[inline]
    pub(in crate::middleware) fn replaced(
        &self,
        is_unfollowed: impl FnOnce() -> bool,
        carries: impl Fn(&HeaderName, &HeaderValue) -> bool,
    ) -> bool {
        self.fate == Fate::Replaced
            || self.fate == Fate::MayBeReplaced && !is_unfollowed()
            || self.have_lost(carries)
    }

    #[inline]
    fn have_lost(&self, carries: impl Fn(&HeaderName, &HeaderValue) -> bool) -> bool {
        let nested = self.nested.as_ref();
        nested.is_some_and(|nested| nested.have_lost(carries))
    }
}

/// An attempt on its way: the rest of the chain, run with the mark of its own.
pub(in crate::middleware) struct Running<F> {
    chain: F,
    own: InFlight,
}

impl<F> Running<F> {
    /// Runs the rest of the chain, which `run` calls, for the request whose extensions live at this
    /// [`address`]. The mark is set for the call too: a middleware may do something before it gives
    /// its future.
    #[inline]
    pub(in crate::middleware) fn new(map: usize, run: impl FnOnce() -> F) -> Self {
        let mut own = InFlight {
            map,
            ..InFlight::NONE
        };
        let entered = Entered::new(&mut own);
        let chain = run();
        drop(entered);
        Self { chain, own }
    }

    /// Ends the attempt, and gives what was noted, also while the chain goes.
    #[inline]
    pub(in crate::middleware) fn into_notes(self) -> Notes {
        let Self { chain, mut own } = self;
        let entered = Entered::new(&mut own);
        drop(chain);
        drop(entered);
        own.notes
    }
}

impl<F: Future + Unpin> Future for Running<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { chain, own } = &mut *self;
        let _entered = Entered::new(own);
        Pin::new(chain).poll(cx)
    }
}

/// While it lives the attempt is the current one; then the one around it is again, also after a
/// panic.
struct Entered<'a>(&'a mut InFlight);

impl<'a> Entered<'a> {
    #[inline]
    fn new(own: &'a mut InFlight) -> Self {
        swap(own);
        Self(own)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        swap(self.0);
    }
}

/// Puts an attempt in the place of the current one, and the other way round.
#[inline]
fn swap(own: &mut InFlight) {
    with_current(|current| std::mem::swap(current, own));
}

/// Runs `change` on the current attempt. It must run no code of the caller's, not even by dropping
/// something: what that code sends would not be noted.
#[inline]
fn with_current<T>(change: impl FnOnce(&mut InFlight) -> T) -> Option<T> {
    CURRENT
        .try_with(|current| Some(change(&mut **current.try_borrow_mut().ok()?)))
        .ok()
        .flatten()
}

/// While it lives a call of a work is the current one, for the sends that are made in it; then the
/// one around it is again, also after a panic.
///
/// An attempt inside has none: what is sent in it is the affair of its send.
pub(in crate::middleware) struct EnteredWork<'a>(&'a mut Option<Arc<WorkCall>>);

impl<'a> EnteredWork<'a> {
    #[inline]
    pub(in crate::middleware) fn new(own: &'a mut Option<Arc<WorkCall>>) -> Self {
        swap_work(own);
        Self(own)
    }
}

impl Drop for EnteredWork<'_> {
    fn drop(&mut self) {
        swap_work(self.0);
    }
}

fn swap_work(own: &mut Option<Arc<WorkCall>>) {
    with_current(|current| std::mem::swap(&mut current.work, own));
}

/// The call of a work that is being polled, if a send that begins now is one of its own.
#[inline]
pub(in crate::middleware) fn current_work() -> Option<Arc<WorkCall>> {
    with_current(|current| current.work.clone()).flatten()
}

/// The address by which a [`Running`] attempt and [`carries`] know a map.
#[inline]
pub(in crate::middleware) fn address(extensions: &Extensions) -> usize {
    std::ptr::from_ref(extensions) as usize
}

/// True if these are the extensions of the attempt that is being polled.
#[inline]
pub(in crate::middleware) fn carries(extensions: &Extensions) -> bool {
    with_current(|current| current.map == address(extensions)).unwrap_or(false)
}

/// Notes that the attempt around this was answered with a redirect. If it is followed, another
/// request is sent (`replaces`), or the same one elsewhere.
pub(super) fn note_redirect(replaces: bool) {
    note(|notes| {
        notes.fate = if notes.fate >= Fate::MayBeReplaced {
            // That there is another redirect shows that the one before was followed.
            Fate::Replaced
        } else if replaces {
            Fate::MayBeReplaced
        } else {
            Fate::SentElsewhere
        };
    });
}

/// Notes that the attempt around this was answered, and that another request went in its place.
pub(super) fn note_replaced() {
    note(|notes| notes.fate = Fate::Replaced);
}

/// Notes a send that begins inside the attempt around this, if there is one. `make` says what is
/// known of it.
pub(super) fn note_nested(make: impl FnOnce() -> NestedSend) -> Option<NestedSend> {
    let (nested, forgotten) = with_current(|current| {
        (current.map != 0).then(|| {
            let nested = make();
            let nested_sends = &mut current.notes.nested;
            let forgotten = nested_sends.get_or_insert_default().add(&nested);
            (nested, forgotten)
        })
    })
    .flatten()?;
    // Only now: a key may be of a type of the caller's.
    drop(forgotten);
    Some(nested)
}

/// Outside an attempt nobody asks for what is noted.
fn note(change: impl FnOnce(&mut Notes)) {
    with_current(|current| {
        if current.map != 0 {
            change(&mut current.notes);
        }
    });
}
