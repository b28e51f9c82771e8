//! A stream that comes back if nothing was read of it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::Body;

/// Where a stream goes that was dropped before anything was read of it.
#[derive(Default)]
pub(super) struct Returned(Mutex<Option<Body>>);

impl Returned {
    pub(super) fn take(&self) -> Option<Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn is_there(&self) -> bool {
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
pub(super) struct Returning {
    unread: bool,
    inner: Body,
    returned: Arc<Returned>,
}

impl Returning {
    pub(super) fn wrap(inner: Body, returned: &Arc<Returned>) -> Body {
        Body::wrap(Self {
            unread: true,
            inner,
            returned: Arc::clone(returned),
        })
    }
}

impl Drop for Returning {
    fn drop(&mut self) {
        if self.unread {
            self.returned.put(std::mem::take(&mut self.inner));
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
