//! What a middleware further in reads of the sends before.

/// How many times the request has been sent before: 1 on the first retry.
///
/// It is in the request's `Extensions` while a retry is on its way, and absent on the first
/// attempt, as OpenTelemetry's `http.request.resend_count` is; a middleware further in reads it to
/// label its spans.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use std::sync::{Arc, Mutex};
/// use http::Extensions;
/// use reqwest::{Request, Response};
/// use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
/// use reqwest_retry_rules::{ResendCount, RetryMiddleware, RetryRule};
///
/// #[derive(Default)]
/// struct Spans(Mutex<Vec<Option<u32>>>);
///
/// #[async_trait::async_trait]
/// impl Middleware for Spans {
///     async fn handle(
///         &self,
///         request: Request,
///         extensions: &mut Extensions,
///         next: Next<'_>,
///     ) -> Result<Response> {
///         let count = extensions.get::<ResendCount>().map(|count| count.0);
///         self.0.lock().unwrap().push(count); // or name a span after it
///         next.run(request, extensions).await
///     }
/// }
///
/// # rustls::crypto::ring::default_provider().install_default().ok();
/// let spans = Arc::new(Spans::default());
/// let client = ClientBuilder::new(reqwest::Client::new())
///     .with(RetryMiddleware::new(RetryRule::transient()))
///     .with_arc(spans.clone())
/// #   .with(Answers(|_: &Request| status(503)))
///     .build();
/// client.get("http://127.0.0.1/").send().await?; // answered with 503 each time
/// assert_eq!(*spans.0.lock().unwrap(), [None, Some(1), Some(2), Some(3)]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResendCount(pub u32);
