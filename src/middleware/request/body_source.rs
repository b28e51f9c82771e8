//! A maker of request bodies, for those that cannot be copied.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Body, Request};

pub(in crate::middleware) type BoxError = Box<dyn StdError + Send + Sync>;

type Making = Pin<Box<dyn Future<Output = Result<FreshBody, BoxError>> + Send>>;

/// Makes a fresh body for every attempt: a file that is reopened, a generator that starts again.
///
/// Put it into the extensions of a request. A request that has a body sends that one first, and the
/// source makes those of the later attempts; they must be the same. A request without a body takes
/// its first from the source too.
///
/// A file, like any stream, is sent in chunks, unless [`FreshBody::content_length`] says how long
/// it is.
///
/// # Errors
///
/// If the maker fails before the first attempt, that is the error of the send
/// ([`RetryError::BodySource`](crate::RetryError::BodySource)). If it fails later, the send ends
/// with the last response or error and
/// [`StopReason::NotReplayable`](crate::StopReason::NotReplayable).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # rustls::crypto::ring::default_provider().install_default().ok();
/// use reqwest_middleware::ClientBuilder;
/// use reqwest_retry_rules::{BodySource, RetryMiddleware, RetryRule, client_builder};
///
/// let client = ClientBuilder::new(client_builder().build()?)
///     .with(RetryMiddleware::new(RetryRule::transient()))
///     .build();
/// // The file is opened anew for each attempt. (`Body: From<tokio::fs::File>` comes with the
/// // feature `stream` of reqwest.)
/// let source = BodySource::from_async(|| tokio::fs::File::open("backup.tar"));
/// let request = client.put("http://127.0.0.1/backup").with_extension(source);
/// # let _ = request;
///
/// // The same with a `Content-Length`.
/// use reqwest_retry_rules::FreshBody;
///
/// let source = BodySource::from_async(|| async {
///     let file = tokio::fs::File::open("backup.tar").await?;
///     let bytes = file.metadata().await?.len();
///     Ok::<_, std::io::Error>(FreshBody::from(file).content_length(bytes))
/// });
/// # let _ = source;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct BodySource(Arc<dyn Fn() -> Making + Send + Sync>);

impl BodySource {
    /// A source whose maker is not `async`.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use reqwest_retry_rules::{BodySource, ResponseExt, RetryRule};
    ///
    /// let source = BodySource::new(|| Ok::<_, std::io::Error>("line\n".repeat(1000)));
    /// // Answers, in place of the network.
    /// let server = |request: &reqwest::Request| {
    ///     let bytes = request.body().and_then(reqwest::Body::as_bytes);
    ///     assert_eq!(bytes.map(<[u8]>::len), Some(5000));
    ///     status(503)
    /// };
    /// let request = client(RetryRule::transient(), server).put("http://127.0.0.1/");
    /// assert_eq!(request.with_extension(source).send().await?.attempts(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new<F, B, E>(make: F) -> Self
    where
        F: Fn() -> Result<B, E> + Send + Sync + 'static,
        B: Into<FreshBody>,
        E: Into<BoxError>,
    {
        Self(Arc::new(move || {
            let made = make().map(Into::into).map_err(Into::into);
            Box::pin(std::future::ready(made))
        }))
    }

    /// A source whose maker is `async`. It runs inside the send, bounded by its total timeout.
    pub fn from_async<F, M, B, E>(make: F) -> Self
    where
        F: Fn() -> M + Send + Sync + 'static,
        M: Future<Output = Result<B, E>> + Send + 'static,
        B: Into<FreshBody>,
        E: Into<BoxError>,
    {
        Self(Arc::new(move || {
            let making = make();
            Box::pin(async move { making.await.map(Into::into).map_err(Into::into) })
        }))
    }

    pub(in crate::middleware) async fn make(&self) -> Result<FreshBody, BoxError> {
        (self.0)().await
    }
}

impl fmt::Debug for BodySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodySource")
    }
}

/// What a [`BodySource`] makes: a body, and the headers of the request that go with it.
///
/// Anything that converts into a [`reqwest::Body`] converts into this.
///
/// # Examples
///
/// A multipart form has a boundary of its own each time it is made, so its content type goes with
/// the body:
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use http::header::{CONTENT_TYPE, HeaderValue};
/// use reqwest::{Body, multipart::Form};
/// use reqwest_retry_rules::{BodySource, FreshBody, ResponseExt, RetryRule};
///
/// let source = BodySource::new(|| {
///     let form = Form::new().text("title", "Report").text("year", "2026");
///     let kind = format!("multipart/form-data; boundary={}", form.boundary());
///     let kind = HeaderValue::try_from(kind)?;
///     let body = Body::wrap_stream(form.into_stream());
///     Ok::<_, http::Error>(FreshBody::from(body).header(CONTENT_TYPE, kind))
/// });
/// // Answers, in place of the network.
/// let server = |request: &reqwest::Request| {
///     assert!(request.body().is_some() && request.headers().contains_key(CONTENT_TYPE));
///     status(503)
/// };
/// let request = client(RetryRule::transient(), server).put("http://127.0.0.1/");
/// assert_eq!(request.with_extension(source).send().await?.attempts(), 4);
/// # Ok(())
/// # }
/// ```
pub struct FreshBody {
    body: Body,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Shows of the headers only which they are: there may be secrets in them.
impl fmt::Debug for FreshBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("FreshBody")
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

impl<B: Into<Body>> From<B> for FreshBody {
    fn from(body: B) -> Self {
        Self {
            body: body.into(),
            headers: Vec::new(),
        }
    }
}

impl FreshBody {
    /// States the body's length in bytes, so that it is sent with `Content-Length` in place of
    /// chunks.
    ///
    /// A body that turns out to be shorter or longer fails the send before its last piece is
    /// written, so that no server takes a part of it for the whole. (A body whose length is stated
    /// as 0 is not read at all.)
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_util::stream;
    /// use reqwest::Body;
    /// use reqwest_retry_rules::FreshBody;
    ///
    /// let lines = stream::iter(["one\n", "two\n"].map(Ok::<_, std::io::Error>));
    /// let body = FreshBody::from(Body::wrap_stream(lines)).content_length(8);
    /// # let _ = body;
    /// ```
    #[must_use]
    pub fn content_length(self, bytes: u64) -> Self {
        Self {
            body: KnownLength::wrap(self.body, bytes),
            ..self
        }
    }

    /// Sets a header of the request that this body goes with, replacing its value.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Puts the body into the request. A length that the head states was meant for another body,
    /// and is held to this one.
    pub(in crate::middleware) fn put_into(self, request: &mut Request) -> Result<(), BoxError> {
        let head = request.headers_mut();
        for (name, value) in self.headers {
            head.try_insert(name, value)?;
        }
        let mut body = self.body;
        if let Some(stated) = stated_length(head) {
            match body.size_hint().exact() {
                Some(known) => {
                    head.try_insert(CONTENT_LENGTH, known.into())?;
                }
                None => body = KnownLength::wrap(body, stated),
            }
        }
        *request.body_mut() = Some(body);
        Ok(())
    }
}

fn stated_length(head: &HeaderMap) -> Option<u64> {
    head.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A body whose length its maker knows, and which is held to it.
struct KnownLength {
    inner: Body,
    /// How many bytes are still to come out of `inner`.
    left: u64,
    /// The last piece, held back until it is certain that nothing comes after it.
    last: Option<Bytes>,
    /// Trailers, and with them the end.
    trailers: Option<Frame<Bytes>>,
    ended: bool,
}

impl KnownLength {
    fn wrap(inner: Body, bytes: u64) -> Body {
        Body::wrap(Self {
            inner,
            left: bytes,
            last: None,
            trailers: None,
            ended: false,
        })
    }

    /// Takes what `inner` gave; there is a frame to pass on, or it must be asked again.
    fn take(&mut self, frame: Option<Frame<Bytes>>) -> Result<Option<Frame<Bytes>>, BoxError> {
        let Some(frame) = frame else {
            return self.end(None);
        };
        let piece = match frame.into_data() {
            Ok(piece) => piece,
            Err(trailers) => return self.end(Some(trailers)),
        };
        self.left = self
            .left
            .checked_sub(piece.len() as u64)
            .ok_or("the body is longer than its source said")?;
        if self.left > 0 {
            return Ok(Some(Frame::data(piece)));
        }
        if !piece.is_empty() {
            self.last = Some(piece);
        }
        if self.inner.is_end_stream() {
            return self.end(None);
        }
        Ok(None)
    }

    fn end(&mut self, trailers: Option<Frame<Bytes>>) -> Result<Option<Frame<Bytes>>, BoxError> {
        if self.left > 0 {
            return Err("the body is shorter than its source said".into());
        }
        self.ended = true;
        self.trailers = trailers;
        Ok(self.last.take().map(Frame::data))
    }
}

impl HttpBody for KnownLength {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        while !self.ended {
            let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx)).transpose();
            match frame.map_err(Into::into).and_then(|frame| self.take(frame)) {
                Ok(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
                Ok(None) => {}
                Err(error) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        Poll::Ready(self.trailers.take().map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        let held = self.last.as_ref().map_or(0, |last| last.len() as u64);
        SizeHint::with_exact(self.left + held)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
            && self.last.is_none()
            && self.trailers.is_none()
            && (self.ended || self.inner.is_end_stream())
    }
}
