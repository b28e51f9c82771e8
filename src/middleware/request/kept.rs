//! What is kept of a request while it is on its way, and how it is sent again.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use http_body::Body as HttpBody;
use reqwest::{Body, Request, Url};

use super::body_source::{BodySource, BoxError};
use super::returning::{Returned, Returning};

/// What the next attempt is made from.
///
/// `try_clone` copies all that a request holds, and some of that only it can copy. The headers are
/// kept beside it in a list, since a `HeaderMap` that is held while the request is under way costs a
/// fifth of the throughput of 64 clients under glibc: its thread caches hold seven blocks of a size,
/// and reqwest and hyper need blocks of the same sizes.
pub(in crate::middleware) struct KeptRequest {
    /// The request without headers and body.
    head: Box<Request>,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: KeptBody,
}

/// Where the body of the next attempt comes from.
enum KeptBody {
    /// There is none.
    Absent,
    /// The same bytes in memory.
    Shared(Bytes),
    /// The request's own stream, which comes back by itself if nothing was read of it.
    Returned(Arc<Returned>),
    /// The caller makes another.
    Made(BodySource),
}

impl KeptRequest {
    /// Keeps what a retry of `request` needs; `None` if it cannot be copied.
    #[inline]
    pub(in crate::middleware) fn of(
        request: &mut Request,
        source: Option<BodySource>,
    ) -> Option<Self> {
        let body = request.body_mut().take();
        let headers = std::mem::take(request.headers_mut());
        let head = request.try_clone().map(Box::new);
        let kept = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        *request.headers_mut() = headers;
        // The request's own body, if it has one, goes with the first attempt.
        let (body, kept_body) = match source {
            Some(source) => (body, KeptBody::Made(source)),
            None => KeptBody::of(body),
        };
        *request.body_mut() = body;
        Some(Self {
            head: head?,
            headers: kept,
            body: kept_body,
        })
    }

    #[inline]
    pub(in crate::middleware) fn url(&self) -> &Url {
        self.head.url()
    }

    /// True if the request carries this header with this value.
    pub(in crate::middleware) fn carries(&self, name: &HeaderName, value: &HeaderValue) -> bool {
        self.headers
            .iter()
            .any(|(own, holds)| own == name && holds == value)
    }

    /// True if the request can be sent again. A stream that comes back by itself is back by now or
    /// never, and is kept only after a failure that proves that nothing was processed.
    pub(in crate::middleware) fn is_ready(&self, unsent: bool) -> bool {
        match &self.body {
            KeptBody::Returned(returned) if unsent => returned.is_there(),
            KeptBody::Returned(returned) => {
                drop(returned.take());
                false
            }
            KeptBody::Absent | KeptBody::Shared(_) | KeptBody::Made(_) => true,
        }
    }

    /// The request of the next attempt.
    ///
    /// # Errors
    ///
    /// The error of the caller's body source; `None` if a stream that was to come back did not.
    pub(in crate::middleware) async fn next(&self) -> Result<Request, Option<BoxError>> {
        let mut request = self.head.try_clone().ok_or(None)?;
        for (name, value) in &self.headers {
            let headers = request.headers_mut();
            headers
                .try_append(name.clone(), value.clone())
                .map_err(|_| None)?;
        }
        let body = match &self.body {
            KeptBody::Absent => return Ok(request),
            KeptBody::Shared(bytes) => Body::from(bytes.clone()),
            KeptBody::Returned(returned) => Returning::wrap(returned.take().ok_or(None)?, returned),
            KeptBody::Made(source) => {
                source.make().await?.put_into(&mut request)?;
                return Ok(request);
            }
        };
        *request.body_mut() = Some(body);
        Ok(request)
    }
}

impl KeptBody {
    /// The body that goes with the first attempt, and what is kept of it.
    #[inline]
    fn of(body: Option<Body>) -> (Option<Body>, Self) {
        match body {
            None => (None, Self::Absent),
            Some(body) if body.as_bytes().is_some() => {
                let bytes = bytes_of(body);
                (Some(Body::from(bytes.clone())), Self::Shared(bytes))
            }
            Some(body) => {
                let returned = Arc::new(Returned::default());
                let first = Returning::wrap(body, &returned);
                (Some(first), Self::Returned(returned))
            }
        }
    }
}

/// The bytes of a body in memory, which come out of it whole and at once. They are shared, not
/// copied, which `Body` offers in no other way.
fn bytes_of(mut body: Body) -> Bytes {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(&mut body).poll_frame(&mut context) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        _ => Bytes::new(),
    }
}
