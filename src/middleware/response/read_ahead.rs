//! A response whose body is read, in whole or in part, before the caller has it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Body, Response, ResponseBuilderExt, Url};

use super::head::ResponseHead;

/// A response that is taken apart, with what was read of its body so far.
///
/// Nothing is lost if the reading is given up: [`into_response`](Self::into_response) puts the
/// response together again.
pub(super) struct ReadAhead {
    url: Url,
    head: http::response::Parts,
    body: Pieces,
}

/// How far the reading came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadUntil {
    /// All of the body is there.
    End,
    /// The body is longer than the limit.
    PastLimit,
    /// The body broke off. It will yield this error after what was read.
    Error,
}

impl ReadAhead {
    /// True if there is a body to read that does not say that it is longer than `limit` bytes.
    pub(super) fn is_worth_while(response: &Response, limit: usize) -> bool {
        response
            .content_length()
            .is_none_or(|length| length > 0 && length <= limit as u64)
    }

    /// Takes a response apart. Nothing is read yet.
    pub(super) fn new(response: Response) -> Self {
        let url = response.url().clone();
        let (head, rest) = http::Response::<Body>::from(response).into_parts();
        let body = Pieces {
            rest: Some(rest),
            ..Pieces::default()
        };
        Self { url, head, body }
    }

    /// Reads until the end or until more than `limit` bytes are there, whichever comes first.
    ///
    /// The future can be dropped and made again.
    pub(super) async fn read(&mut self, limit: usize) -> ReadUntil {
        while self.body.held <= limit as u64 {
            let Some(rest) = &mut self.body.rest else {
                return if self.body.error.is_some() {
                    ReadUntil::Error
                } else {
                    ReadUntil::End
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
        ReadUntil::PastLimit
    }

    /// The error that the body broke off with.
    pub(super) fn error(&self) -> Option<&reqwest::Error> {
        self.body.error.as_ref()
    }

    /// The head, and what was read of the body, in one piece.
    pub(super) fn head_and_read(&mut self) -> (ResponseHead<'_>, Bytes) {
        let read = self.body.in_one_piece();
        (ResponseHead::of_parts(&self.head, &self.url), read)
    }

    /// The response as it was. Its body begins with what was read.
    pub(super) fn into_response(self) -> Response {
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

/// Frames shorter than this many bytes are put together, so that a body that comes byte by byte
/// does not cost many times its length.
const SHORT: usize = 1024;

/// A body: what was read of it, then the rest, then the error that it broke off with.
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
        self.end_short();
        self.read.push_back(frame);
    }

    /// Puts the short frames so far behind those that came before them.
    fn end_short(&mut self) {
        if !self.short.is_empty() {
            let short = self.short.split().freeze();
            self.read.push_back(Frame::data(short));
        }
    }

    /// All the bytes that were read. They are held once, here and in the answer.
    fn in_one_piece(&mut self) -> Bytes {
        self.end_short();
        let mut pieces = self.read.iter().filter_map(Frame::data_ref);
        let whole = match (pieces.next(), pieces.next()) {
            (None, _) => return Bytes::new(),
            // The usual case is not copied.
            (Some(only), None) => return only.clone(),
            (Some(first), Some(second)) => {
                let mut whole = BytesMut::with_capacity(self.held.try_into().unwrap_or(0));
                let start = [first, second].into_iter();
                start
                    .chain(pieces)
                    .for_each(|piece| whole.extend_from_slice(piece));
                whole.freeze()
            }
        };
        // What is left are trailers, which come last.
        self.read.retain(|frame| !frame.is_data());
        self.read.push_front(Frame::data(whole.clone()));
        whole
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
            // It is not below the lower end, to which the same was added.
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
