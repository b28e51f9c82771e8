//! A response of which the body, or a part of it, is read before the caller gets it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Body, Response, ResponseBuilderExt, Url};

/// A response that is taken apart, with what was read of its body so far. Nothing is lost by giving
/// up the reading: [`into_response`](Self::into_response) puts it together again.
pub(crate) struct ReadAhead {
    url: Url,
    head: http::response::Parts,
    body: Pieces,
}

/// How far the reading came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// To the end.
    Whole,
    /// Past the limit.
    Longer,
    /// To an error, which the body will yield after what was read.
    Broken,
}

impl ReadAhead {
    /// Whether the body of this response is worth beginning: it says neither that there is nothing
    /// to read nor that it is longer than `limit`.
    pub(crate) fn is_worth_while(response: &Response, limit: usize) -> bool {
        response
            .content_length()
            .is_none_or(|length| length > 0 && length <= limit as u64)
    }

    pub(crate) fn new(response: Response) -> Self {
        let url = response.url().clone();
        let (head, rest) = http::Response::<Body>::from(response).into_parts();
        let body = Pieces {
            rest: Some(rest),
            ..Pieces::default()
        };
        Self { url, head, body }
    }

    /// Reads until the end or until more than `limit` bytes are there, whichever comes first. The
    /// future can be dropped and made again.
    pub(crate) async fn read(&mut self, limit: usize) -> Progress {
        while self.body.held <= limit as u64 {
            let Some(rest) = &mut self.body.rest else {
                return if self.body.error.is_some() {
                    Progress::Broken
                } else {
                    Progress::Whole
                };
            };
            match poll_fn(|cx| Pin::new(&mut *rest).poll_frame(cx)).await {
                Some(Ok(frame)) => self.body.push(frame),
                Some(Err(error)) => {
                    self.body.error = Some(error);
                    self.body.rest = None;
                }
                None => self.body.rest = None,
            }
        }
        Progress::Longer
    }

    /// The error that the body broke off with.
    pub(crate) fn error(&self) -> Option<&reqwest::Error> {
        self.body.error.as_ref()
    }

    /// The response as it was, its body beginning with what was read.
    pub(crate) fn into_response(self) -> Response {
        let Self {
            url,
            mut head,
            body,
        } = self;
        // reqwest looks for the URL in an extension that only this builder can make.
        let mut url_extension = http::Response::builder().url(url);
        if let Some(extensions) = url_extension.extensions_mut() {
            head.extensions.extend(std::mem::take(extensions));
        }
        Response::from(http::Response::from_parts(head, Body::wrap(body)))
    }
}

/// Frames shorter than this are put together, so that a body which comes byte by byte does not cost
/// many times its length.
const SHORT: usize = 1024;

/// What was read of a body, then the rest, then the error that it broke off with.
#[derive(Default)]
struct Pieces {
    read: VecDeque<Frame<Bytes>>,
    /// Short frames that came after those in `read`.
    short: BytesMut,
    /// How many bytes `read` and `short` hold.
    held: u64,
    rest: Option<Body>,
    error: Option<reqwest::Error>,
}

impl Pieces {
    fn push(&mut self, frame: Frame<Bytes>) {
        let frame = match frame.into_data() {
            Ok(data) => {
                self.held = self.held.saturating_add(data.len() as u64);
                if data.len() < SHORT {
                    self.short.extend_from_slice(&data);
                    return;
                }
                Frame::data(data)
            }
            Err(trailers) => trailers,
        };
        if !self.short.is_empty() {
            self.read
                .push_back(Frame::data(self.short.split().freeze()));
        }
        self.read.push_back(frame);
    }

    fn pop(&mut self) -> Option<Frame<Bytes>> {
        let frame = match self.read.pop_front() {
            Some(frame) => frame,
            None if self.short.is_empty() => return None,
            None => Frame::data(self.short.split().freeze()),
        };
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        self.held = self.held.saturating_sub(length);
        Some(frame)
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        if let Some(frame) = self.pop() {
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Some(rest) = &mut self.rest {
            return Pin::new(rest).poll_frame(cx);
        }
        Poll::Ready(self.error.take().map(Err))
    }

    fn size_hint(&self) -> SizeHint {
        let unread = match (&self.rest, &self.error) {
            (Some(rest), _) => rest.size_hint(),
            (None, Some(_)) => SizeHint::default(),
            (None, None) => SizeHint::with_exact(0),
        };
        let mut whole = SizeHint::new();
        whole.set_lower(unread.lower().saturating_add(self.held));
        if let Some(upper) = unread.upper() {
            // Not below the other end, to which the same was added.
            whole.set_upper(upper.saturating_add(self.held));
        }
        whole
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty()
            && self.short.is_empty()
            && self.error.is_none()
            && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }
}
