//! A maker of request bodies, for those that cannot be copied.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Body, Request};

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

type Making = Pin<Box<dyn Future<Output = Result<FreshBody, BoxError>> + Send>>;

/// Makes a fresh body for every attempt: a file that is reopened, a generator that starts again.
///
/// Put it into the extensions of a request. One without a body takes its first from it too, and a
/// maker that fails then is the error of the send
/// ([`RetryError::BodySource`](crate::RetryError::BodySource)); a maker that fails later ends the
/// send with the outcome that is in hand and
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
/// // The file is opened anew for each attempt (`Body: From<tokio::fs::File>` comes with reqwest's
/// // feature `stream`).
/// let source = BodySource::from_async(|| tokio::fs::File::open("backup.tar"));
/// let request = client.put("http://127.0.0.1/backup").with_extension(source);
/// # let _ = request;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct BodySource(Arc<dyn Fn() -> Making + Send + Sync>);

impl BodySource {
    /// A source whose maker answers at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::BodySource;
    ///
    /// let source = BodySource::new(|| Ok::<_, std::io::Error>("line\n".repeat(1000)));
    /// # let _ = source;
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

    pub(crate) async fn make(&self) -> Result<FreshBody, BoxError> {
        (self.0)().await
    }
}

impl fmt::Debug for BodySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodySource")
    }
}

/// What a [`BodySource`] makes: a body, and what of the request's head goes with it.
///
/// Whatever converts into a [`reqwest::Body`] converts into this.
///
/// # Examples
///
/// A multipart form has a boundary of its own each time it is made, so its content type goes with
/// the body:
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use http::header::{CONTENT_TYPE, HeaderValue};
/// use reqwest::{Body, multipart::Form};
/// use reqwest_retry_rules::{BodySource, FreshBody};
///
/// let source = BodySource::new(|| {
///     let form = Form::new().text("title", "Report").text("year", "2026");
///     let kind = format!("multipart/form-data; boundary={}", form.boundary());
///     let kind = HeaderValue::try_from(kind)?;
///     let body = Body::wrap_stream(form.into_stream());
///     Ok::<_, http::Error>(FreshBody::from(body).header(CONTENT_TYPE, kind))
/// });
/// # let _ = source;
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
    /// chunks. A body that turns out shorter, or whose chunks cross it, fails the attempt.
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
            body: Body::wrap(KnownLength {
                inner: self.body,
                left: bytes,
            }),
            ..self
        }
    }

    /// Sets a header of the request that this body goes with, in place of the value it had.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn put_into(self, request: &mut Request) -> Result<(), BoxError> {
        for (name, value) in self.headers {
            request.headers_mut().try_insert(name, value)?;
        }
        *request.body_mut() = Some(self.body);
        Ok(())
    }
}

/// A body whose length its maker knows, and which is held to it.
struct KnownLength {
    inner: Body,
    left: u64,
}

impl HttpBody for KnownLength {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None if self.left == 0 => return Poll::Ready(None),
            None => {
                return Poll::Ready(Some(Err("the body is shorter than its source said".into())));
            }
        };
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match self.left.checked_sub(length) {
            Some(left) => self.left = left,
            None => {
                return Poll::Ready(Some(Err("the body is longer than its source said".into())));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0 && self.inner.is_end_stream()
    }
}
