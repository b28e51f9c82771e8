//! What is kept of a request while it is on its way, and how it is sent again.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use reqwest::{Request, Url};

use super::body_source::{BodySource, BoxError};
use super::returning::{Returned, Returning};

/// What the next attempt is made from.
///
/// `try_clone` copies all that a request holds, and some of that only it can copy. The headers are
/// kept beside it in a list, since a `HeaderMap` that is held while the request is under way costs a
/// fifth of the throughput of 64 clients under glibc: its thread caches hold seven blocks of a size,
/// and reqwest and hyper need blocks of the same sizes.
pub(in crate::middleware) struct KeptRequest {
    /// The request without headers. Bytes in memory it has in common with the original.
    head: Request,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: KeptBody,
}

/// Where the body of the next attempt comes from.
enum KeptBody {
    /// The head has it, if there is one.
    InHead,
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
        let headers = std::mem::take(request.headers_mut());
        let is_stream = request.body().is_some_and(|body| body.as_bytes().is_none());
        // Goes with the first attempt alone.
        let own = if is_stream || source.is_some() {
            request.body_mut().take()
        } else {
            None
        };
        let head = request.try_clone();
        let body = match (own, source) {
            (None, None) => KeptBody::InHead,
            (Some(own), None) => {
                let returned = Arc::new(Returned::default());
                *request.body_mut() = Some(Returning::wrap(own, &returned));
                KeptBody::Returned(returned)
            }
            (own, Some(source)) => {
                *request.body_mut() = own;
                KeptBody::Made(source)
            }
        };
        let kept = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        *request.headers_mut() = headers;
        Some(Self {
            head: head?,
            headers: kept,
            body,
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
            KeptBody::InHead | KeptBody::Made(_) => true,
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
            KeptBody::InHead => return Ok(request),
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
