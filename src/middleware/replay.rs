//! How a request is sent again: what of it is kept, and how the next attempt gets its body.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Body, Request, Url};

use super::body_source::{BodySource, BoxError};

/// What is kept of a request while it is on its way, as long as a retry is possible.
pub(crate) struct Replay {
    /// The request as it was, without its body where `body` brings it.
    copy: Request,
    body: KeptBody,
}

/// Where the body of the next attempt comes from.
enum KeptBody {
    /// The copy has it, or there is none.
    InCopy,
    /// The request's own comes back by itself where nothing was read of it.
    Returned(Arc<Slot>),
    /// The caller makes another.
    Made(BodySource),
}

impl Replay {
    /// Keeps what a retry of `request` needs.
    pub(crate) fn keep(request: &mut Request, source: Option<BodySource>) -> Self {
        let mut copy = head_of(request);
        let body = match source {
            // The request's own body, if it has one, goes with the first attempt.
            Some(source) => KeptBody::Made(source),
            None => match share(request.body_mut()) {
                Shared::Copied(body) => {
                    *copy.body_mut() = body;
                    KeptBody::InCopy
                }
                Shared::Stream(body) => {
                    let slot = Arc::new(Slot::default());
                    *request.body_mut() = Some(Returning::wrap(body, &slot));
                    KeptBody::Returned(slot)
                }
            },
        };
        Self { copy, body }
    }

    pub(crate) fn url(&self) -> &Url {
        self.copy.url()
    }

    /// Whether the request can be sent again. A body that comes back by itself is taken now or
    /// never, and only after a failure that proves that nothing was processed.
    pub(crate) fn is_ready(&mut self, unsent: bool) -> bool {
        match &self.body {
            KeptBody::InCopy | KeptBody::Made(_) => true,
            KeptBody::Returned(slot) => {
                *self.copy.body_mut() = slot.take().filter(|_| unsent);
                self.copy.body().is_some()
            }
        }
    }

    /// The request of the next attempt.
    ///
    /// # Errors
    ///
    /// That of the caller's body source, or none where a body that was to come back did not.
    pub(crate) async fn next(&mut self) -> Result<Request, Option<BoxError>> {
        let mut request = head_of(&self.copy);
        match &self.body {
            KeptBody::InCopy => {
                if let Shared::Copied(body) = share(self.copy.body_mut()) {
                    *request.body_mut() = body;
                }
            }
            KeptBody::Returned(slot) => {
                let body = self.copy.body_mut().take().ok_or(None)?;
                *request.body_mut() = Some(Returning::wrap(body, slot));
            }
            KeptBody::Made(source) => source.make().await?.put_into(&mut request)?,
        }
        Ok(request)
    }
}

/// A request like this one, without its body.
///
/// This is what `Request::try_clone` copies, except that no timeout is written where none is set,
/// which costs three allocations.
fn head_of(request: &Request) -> Request {
    let mut copy = Request::new(request.method().clone(), request.url().clone());
    *copy.headers_mut() = request.headers().clone();
    *copy.version_mut() = request.version();
    if let Some(timeout) = request.timeout() {
        *copy.timeout_mut() = Some(*timeout);
    }
    copy
}

enum Shared {
    /// Another of the same bytes, where there was a body.
    Copied(Option<Body>),
    /// The body itself: a stream, of which there is only one.
    Stream(Body),
}

/// Makes two bodies of one that is bytes in memory, without copying them.
fn share(body: &mut Option<Body>) -> Shared {
    let Some(mut own) = body.take() else {
        return Shared::Copied(None);
    };
    if own.as_bytes().is_none() {
        return Shared::Stream(own);
    }
    // Bytes in memory come out of a body whole and at once.
    let mut context = Context::from_waker(Waker::noop());
    let bytes = match Pin::new(&mut own).poll_frame(&mut context) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        _ => Bytes::new(),
    };
    *body = Some(Body::from(bytes.clone()));
    Shared::Copied(Some(Body::from(bytes)))
}

/// Where a stream goes that was dropped before anything was read of it.
#[derive(Default)]
struct Slot(Mutex<Option<Body>>);

impl Slot {
    fn take(&self) -> Option<Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
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
