//! How a request is sent again: what of it is kept, and how the next attempt gets its body.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Method;
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Body, Request, Url};

use super::body_source::{BodySource, BoxError};
use super::origins::Origin;
use super::packed::Packed;

/// A body up to this many bytes is copied; of a longer one the bytes are shared.
const SMALL: usize = 1024;

/// What is kept of a request while it is on its way, as long as a retry is possible.
pub(crate) struct Replay {
    head: Packed,
    body: KeptBody,
}

/// Where the body of the next attempt comes from.
enum KeptBody {
    /// There is none.
    Absent,
    /// It was packed with the head.
    Packed,
    /// From the same bytes in memory.
    Shared(Bytes),
    /// The request's own comes back by itself where nothing was read of it.
    Returned(Arc<Slot>),
    /// The caller makes another.
    Made(BodySource),
}

impl KeptBody {
    /// What is kept of a body that is not packed.
    fn of(body: &mut Option<Body>) -> Self {
        match body.take() {
            None => Self::Absent,
            Some(mut own) if own.as_bytes().is_some() => {
                let bytes = bytes_of(&mut own);
                *body = Some(Body::from(bytes.clone()));
                Self::Shared(bytes)
            }
            Some(own) => {
                let slot = Arc::new(Slot::default());
                *body = Some(Returning::wrap(own, &slot));
                Self::Returned(slot)
            }
        }
    }
}

impl Replay {
    /// Keeps what a retry of `request` needs.
    #[inline]
    pub(crate) fn keep(request: &mut Request, source: Option<BodySource>) -> Self {
        let small = request
            .body()
            .and_then(Body::as_bytes)
            .filter(|bytes| source.is_none() && bytes.len() <= SMALL);
        let head = Packed::new(request, small.unwrap_or_default());
        let body = match (source, small.is_some()) {
            // The request's own body, if it has one, goes with the first attempt.
            (Some(source), _) => KeptBody::Made(source),
            (None, true) => KeptBody::Packed,
            (None, false) => KeptBody::of(request.body_mut()),
        };
        Self { head, body }
    }

    pub(crate) fn origin(&self) -> Origin<'_> {
        self.head.origin()
    }

    pub(crate) fn host(&self) -> Option<&str> {
        self.head.host()
    }

    /// The URL; `None` where it cannot be had again, and so cannot the request.
    pub(crate) fn url(&self) -> Option<Url> {
        self.head.url()
    }

    /// Whether the request can be sent again. A body that comes back by itself is back by now or
    /// never, and is kept only after a failure that proves that nothing was processed.
    pub(crate) fn is_ready(&self, unsent: bool) -> bool {
        let body_is_there = match &self.body {
            KeptBody::Returned(slot) if unsent => slot.is_filled(),
            KeptBody::Returned(slot) => {
                drop(slot.take());
                false
            }
            _ => true,
        };
        body_is_there && self.url().is_some()
    }

    /// The request of the next attempt, whose method is that of the first.
    ///
    /// # Errors
    ///
    /// That of the caller's body source, or none where a body that was to come back did not.
    pub(crate) async fn next(&self, method: Method) -> Result<Request, Option<BoxError>> {
        let mut request = self.head.unpack(method).ok_or(None)?;
        let body = match &self.body {
            KeptBody::Absent => return Ok(request),
            KeptBody::Packed => Body::from(self.head.body().to_vec()),
            KeptBody::Shared(bytes) => Body::from(bytes.clone()),
            KeptBody::Returned(slot) => Returning::wrap(slot.take().ok_or(None)?, slot),
            KeptBody::Made(source) => {
                source.make().await?.put_into(&mut request)?;
                return Ok(request);
            }
        };
        *request.body_mut() = Some(body);
        Ok(request)
    }
}

/// The bytes of a body in memory, which come out of it whole and at once.
fn bytes_of(body: &mut Body) -> Bytes {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(body).poll_frame(&mut context) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        _ => Bytes::new(),
    }
}

/// Where a stream goes that was dropped before anything was read of it.
#[derive(Default)]
struct Slot(Mutex<Option<Body>>);

impl Slot {
    fn take(&self) -> Option<Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_filled(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    fn put(&self, body: Body) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
    }
}

/// A stream that gives itself back when it is dropped unread. Its length, and so the framing on the
/// wire, is that of the stream inside.
struct Returning {
    unread: bool,
    inner: Body,
    slot: Arc<Slot>,
}

impl Returning {
    fn wrap(inner: Body, slot: &Arc<Slot>) -> Body {
        Body::wrap(Self {
            unread: true,
            inner,
            slot: Arc::clone(slot),
        })
    }
}

impl Drop for Returning {
    fn drop(&mut self) {
        if self.unread {
            self.slot.put(std::mem::take(&mut self.inner));
        }
    }
}

impl HttpBody for Returning {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        self.unread = false;
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }
}
