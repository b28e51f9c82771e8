//! The setters of a policy, but for those that take a closure about an outcome.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::HeaderName;

use super::RetryPolicy;
use super::settings::{BudgetChoice, LogLevels};
use crate::middleware::observer::RetryObserver;
use crate::middleware::origins::{OriginPauses, PauseTerms, RetryBudget};
use crate::middleware::trace::LogLevel;

impl RetryPolicy {
    /// Bounds the whole send, waits and attempts together, up to the response's head (or to the end
    /// of its body if [`complete_body`](Self::complete_body) reads it).
    ///
    /// No wait that would outlast it is begun
    /// ([`StopReason::Budget`](crate::StopReason::Budget)); an attempt in flight when it runs out
    /// is ended with [`RetryError::TotalTimeout`](crate::RetryError::TotalTimeout). Zero sends
    /// nothing. A [`TotalTimeout`](crate::TotalTimeout) of the request or the task replaces it, longer
    /// or shorter; a [`Deadline`](crate::Deadline) can only make it shorter.
    ///
    /// **It does not bound the reading of a body**, or anything else that comes after the head.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{ResponseExt, RetryPolicy, RetryReport, RetryRule, StopReason};
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient())
    ///     .attempt_timeout(Duration::from_secs(5))
    ///     .total_timeout(Duration::from_secs(12));
    ///
    /// // Answers, in place of the network.
    /// let busy = |_: &reqwest::Request| {
    ///     http::Response::builder().status(503).header("retry-after", "30").body("").unwrap()
    /// };
    /// let response = client(policy, busy).get("http://127.0.0.1/").send().await?;
    /// let reason = response.retry_report().and_then(RetryReport::stop_reason);
    /// assert_eq!(reason, Some(StopReason::Budget(Duration::from_secs(30))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn total_timeout(self, timeout: Duration) -> Self {
        self.with(|s| s.total_timeout = Some(timeout))
    }

    /// Bounds each attempt: reqwest's per-request timeout is set to the smaller of this and the
    /// request's own.
    ///
    /// Like reqwest's it covers the reading of the body too. It replaces the client's own timeout,
    /// which a middleware cannot read, so a longer one lengthens that. It starts again with each
    /// attempt.
    ///
    /// Its clock goes on while the middleware waits. So a refused response that comes back after a
    /// wait, because time ran out meanwhile or no body could be made for the next attempt, may fail
    /// with a timeout as its body is read. [`head_timeout`](Self::head_timeout) ends with the head.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{RetryPolicy, RetryRule};
    ///
    /// let timeout = Duration::from_secs(5);
    /// let policy = RetryPolicy::from(RetryRule::transient()).attempt_timeout(timeout);
    /// // Answers, in place of the network.
    /// let server = move |request: &reqwest::Request| {
    ///     assert_eq!(request.timeout(), Some(&timeout));
    ///     status(200)
    /// };
    /// client(policy, server).get("http://127.0.0.1/").send().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        self.with(|s| s.attempt_timeout = Some(timeout))
    }

    /// Bounds each attempt up to the head of its response, connecting and upload included, and not a
    /// byte further: for downloads, whose bodies may take long.
    ///
    /// An attempt that is too slow is dropped. That is a
    /// [`Timeout`](crate::TransportError::Timeout), which
    /// [`sent_failures`](crate::RetryRule::sent_failures) decides; if it is not retried, the error is
    /// [`RetryError::HeadTimeout`](crate::RetryError::HeadTimeout). It starts again with each attempt.
    /// None by default.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # rustls::crypto::ring::default_provider().install_default().ok();
    /// use std::time::Duration;
    /// use reqwest_middleware::ClientBuilder;
    /// use reqwest_retry_rules::{
    ///     ErrorExt, RetryMiddleware, RetryPolicy, RetryRule, client_builder,
    /// };
    ///
    /// // A server that takes a connection and says nothing.
    /// let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let url = format!("http://{}/", silent.local_addr()?);
    ///
    /// let policy = RetryPolicy::from(RetryRule { max_retries: 1, ..RetryRule::transient() })
    ///     .head_timeout(Duration::from_millis(20));
    /// let client = ClientBuilder::new(client_builder().build()?)
    ///     .with(RetryMiddleware::new(policy))
    ///     .build();
    /// let error = client.get(url).send().await.unwrap_err();
    /// assert!(error.timed_out());
    /// # Ok(())
    /// # }
    /// ```
    pub fn head_timeout(self, timeout: Duration) -> Self {
        self.with(|s| s.head_timeout = Some(timeout))
    }

    /// Limits the retries of each origin with `budget` in place of the default.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use reqwest_retry_rules::{BudgetTerms, ResponseExt, RetryBudget, RetryPolicy, RetryReport};
    /// use reqwest_retry_rules::{RetryRule, StopReason};
    ///
    /// // One retry for ten answers, and none besides.
    /// let terms = BudgetTerms { reserve_per_second: 0, ratio: 100, ..BudgetTerms::default() };
    /// let policy = RetryPolicy::from(RetryRule::transient()).budget(RetryBudget::new(terms)?);
    ///
    /// // Every answer is a 503, in place of the network.
    /// let response = client(policy, |_| status(503)).get("http://127.0.0.1/").send().await?;
    /// let reason = response.retry_report().and_then(RetryReport::stop_reason);
    /// assert_eq!(reason, Some(StopReason::Throttled));
    /// # Ok(())
    /// # }
    /// ```
    pub fn budget(self, budget: RetryBudget) -> Self {
        self.with(|s| s.budget = BudgetChoice::Set(budget))
    }

    /// Retries without a budget: every retry that the rule allows is made, however many fail.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use reqwest_retry_rules::{ResponseExt, RetryPolicy, RetryRule};
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient()).no_budget();
    /// let client = client(policy, |_| status(503)); // in place of the network
    /// // 150 retries at once. The default budget has 100.
    /// for _ in 0..50 {
    ///     assert_eq!(client.get("http://127.0.0.1/").send().await?.attempts(), 4);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn no_budget(self) -> Self {
        self.with(|s| s.budget = BudgetChoice::Off)
    }

    /// Has every send of this policy wait while its origin asks for rest, first attempts included.
    ///
    /// Once a refused response has asked for a wait (by `Retry-After`, a wait header or
    /// [`server_delay`](Self::server_delay)), every send to that origin (scheme, host, port) is held
    /// back until then, instead of finding out for itself. Only an answer to an attempt that was begun
    /// after the pause was set may lengthen it, nothing shortens it, and it is never longer than
    /// [`PauseTerms::max`]. Each send adds a random part of the wait, so that they do not come back
    /// together.
    /// If a redirect was followed, the origin that answered is the one that rests. A send that a
    /// redirect leads there does not wait, since reqwest follows it by itself.
    ///
    /// A retry that is held back stops as ever if its limits cannot hold the wait. A first attempt
    /// looks at its time left only; if that cannot hold the wait, nothing is sent, and the error is
    /// [`RetryError::OriginPaused`](crate::RetryError::OriginPaused). Off by default. Clones of the
    /// policy share the pauses.
    ///
    /// **All who share the policy wait together.** If the service limits each of your tenants by
    /// itself, one tenant's 429 stops the others too.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{PauseTerms, RetryPolicy, RetryRule};
    ///
    /// let terms = PauseTerms { spread: 0, ..PauseTerms::default() };
    /// let policy = RetryPolicy::from(RetryRule::transient()).pause_origins(terms);
    /// // In place of the network: the first request is refused, and asks for two seconds.
    /// let first = std::sync::atomic::AtomicBool::new(true);
    /// let server = move |_: &reqwest::Request| {
    ///     let answer = http::Response::builder();
    ///     match first.swap(false, std::sync::atomic::Ordering::Relaxed) {
    ///         true => answer.status(429).header("retry-after", "2").body("").unwrap(),
    ///         false => answer.body("").unwrap(),
    ///     }
    /// };
    /// let client = client(policy, server);
    /// let start = tokio::time::Instant::now();
    /// // A POST is not retried here, and yet the next request waits.
    /// assert_eq!(client.post("http://127.0.0.1/").send().await?.status(), 429);
    /// assert_eq!(client.get("http://127.0.0.1/").send().await?.status(), 200);
    /// assert_eq!(start.elapsed(), Duration::from_secs(2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn pause_origins(self, terms: PauseTerms) -> Self {
        self.with(|s| s.pause_origins = Some(OriginPauses::new(terms)))
    }

    /// Sends the number of the retry in this header, on retries only, unless the caller set it.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use reqwest_retry_rules::{ResponseExt, RetryPolicy, RetryRule};
    ///
    /// let header = http::HeaderName::from_static("x-retry-count");
    /// let policy = RetryPolicy::from(RetryRule::transient()).attempt_header(header);
    /// // In place of the network, this answers the second retry.
    /// let server = |request: &reqwest::Request| match request.headers().get("x-retry-count") {
    ///     Some(count) if count == "2" => status(200),
    ///     _ => status(503),
    /// };
    /// let response = client(policy, server).get("http://127.0.0.1/").send().await?;
    /// assert_eq!((response.status().as_u16(), response.attempts()), (200, 3));
    /// # Ok(())
    /// # }
    /// ```
    pub fn attempt_header(self, header: HeaderName) -> Self {
        self.with(|s| s.attempt_header = Some(header))
    }

    /// Sends a random key in this header with each request of a method that is not idempotent, and
    /// counts such a request as idempotent.
    ///
    /// The key is 128 random bits in hexadecimal, the same on every attempt of one send; one that
    /// the caller set is kept. **Whoever sets this vouches that the service honors the key**: a
    /// service that ignores it may process a POST twice. [`ReplaySafe`](crate::ReplaySafe) says
    /// otherwise for one request.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use reqwest_retry_rules::{ResponseExt, RetryPolicy, RetryRule};
    ///
    /// let header = http::HeaderName::from_static("idempotency-key");
    /// let policy = RetryPolicy::from(RetryRule::transient()).idempotency_key(header);
    /// let server = |request: &reqwest::Request| {
    ///     assert_eq!(request.headers()["idempotency-key"].len(), 32);
    ///     status(503)
    /// };
    /// let response = client(policy, server).post("http://127.0.0.1/").send().await?;
    /// assert_eq!(response.attempts(), 4); // a POST, and yet it was retried
    /// # Ok(())
    /// # }
    /// ```
    pub fn idempotency_key(self, header: HeaderName) -> Self {
        self.with(|s| s.idempotency_key = Some(header))
    }

    /// Reads at most this many bytes of a refused response while the wait runs, so that its
    /// HTTP/1.1 connection is used again, and so that under HTTP/2 it does not take up the room of
    /// other streams. Zero reads nothing.
    ///
    /// Bytes are counted as they come out of reqwest, after decoding. A body whose stated length is
    /// larger is not read at all. The reading ends with the wait, though over HTTP/1.1 it is given
    /// at least 20 ms if the limits allow: a new connection costs as much. If there is no wait after
    /// a body that was read to its end, other tasks are let run for some 50 µs before the retry, so
    /// that its HTTP/1.1 connection can go back into the pool.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::{RetryPolicy, RetryRule};
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient()).drain_limit(1024 * 1024);
    /// # let _ = policy;
    /// ```
    pub fn drain_limit(self, bytes: usize) -> Self {
        self.with(|s| s.drain_limit = bytes)
    }

    /// Reads the body of a successful response inside the attempt, up to this many bytes, so that a
    /// body that breaks off can be retried. Zero, the default, reads nothing.
    ///
    /// A longer body streams on as usual, with nothing lost. If a body broke off and is not retried,
    /// the response comes back with a body that yields the part that was read and then the error. A
    /// compressed body that ends too early is one that broke off, in every coding that reqwest
    /// decodes. A body that was read whole has a length: `content_length()` of a chunked response
    /// turns from `None` to `Some`.
    ///
    /// A stream that may have no end is left alone: `text/event-stream`, lines of JSON
    /// (`application/x-ndjson`, `application/jsonl` and the like), `application/json-seq`,
    /// `multipart/x-mixed-replace`, gRPC, and the bytes of another protocol after an upgrade.
    ///
    /// A client's `read_timeout` runs from the last read on, whoever made it. So if the
    /// middleware read a part of a body, here or for [`drain_limit`](Self::drain_limit), it times out
    /// if the caller leaves the rest unread for that long.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use reqwest::Body;
    /// use reqwest_retry_rules::{RetryPolicy, RetryRule};
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient()).complete_body(1024 * 1024);
    /// // In place of the network, an answer that does not say how long it is.
    /// let server = |_: &reqwest::Request| {
    ///     let pieces = ["one, ", "two"].map(Ok::<_, std::io::Error>);
    ///     http::Response::new(Body::wrap_stream(futures_util::stream::iter(pieces)))
    /// };
    /// let response = client(policy, server).get("http://127.0.0.1/").send().await?;
    /// assert_eq!(response.content_length(), Some(8)); // all of it is here
    /// assert_eq!(response.text().await?, "one, two");
    /// # Ok(())
    /// # }
    /// ```
    pub fn complete_body(self, bytes: usize) -> Self {
        self.with(|s| s.complete_body = bytes)
    }

    /// Calls `observer` at each retry, recovery and stop, after the observers that were set before.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use reqwest_retry_rules::{RetryObserver, RetryPolicy, RetryRule, StopEvent};
    ///
    /// #[derive(Default)]
    /// struct Stops(AtomicU32);
    ///
    /// impl RetryObserver for Stops {
    ///     fn on_stop(&self, event: &StopEvent<'_>) {
    ///         eprintln!("{} given up: {}", event.method(), event.reason());
    ///         self.0.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// }
    ///
    /// let stops = Arc::new(Stops::default());
    /// let policy = RetryPolicy::from(RetryRule::transient()).observer(stops.clone());
    /// // Every answer is a 503, in place of the network.
    /// client(policy, |_| status(503)).get("http://127.0.0.1/").send().await?;
    /// assert_eq!(stops.0.load(Ordering::Relaxed), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn observer(self, observer: impl RetryObserver) -> Self {
        self.with(|s| s.observers.push(Arc::new(observer)))
    }

    /// Writes events of the feature `tracing` at these levels: of retries and of answers that took
    /// one at `retry`, of failed sends that are given up at `stop`. [`LogLevel::Off`] writes none.
    ///
    /// The defaults are `INFO` and `WARN`. Observers get every event, whatever the levels. Advice
    /// about a rule ([`RetryMiddleware::new`](crate::RetryMiddleware::new)) is written at `WARN`
    /// unless `stop` is `Off`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::{LogLevel, RetryPolicy, RetryRule};
    ///
    /// let policy = RetryPolicy::from(RetryRule::transient())
    ///     .log_levels(LogLevel::Debug, LogLevel::Off);
    /// # let _ = policy;
    /// ```
    pub fn log_levels(self, retry: LogLevel, stop: LogLevel) -> Self {
        self.with(|s| s.log_levels = LogLevels { retry, stop })
    }

    /// Draws jitter from `source` in place of the thread's random generator: a number in [0, 1).
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), reqwest_middleware::Error> {
    /// use std::time::Duration;
    /// use reqwest_retry_rules::{AttemptRecord, ResponseExt, RetryPolicy, RetryRule};
    ///
    /// // A test that wants the same waits each time.
    /// let policy = RetryPolicy::from(RetryRule::transient()).jitter_source(|| 0.5);
    /// let response = client(policy, |_| status(503)).get("http://127.0.0.1/").send().await?;
    /// let records = response.retry_report().map_or(&[][..], |report| report.records());
    /// let waits: Vec<_> = records.iter().filter_map(AttemptRecord::wait).collect();
    /// assert_eq!(waits, [50, 100, 200].map(Duration::from_millis));
    /// # Ok(())
    /// # }
    /// ```
    pub fn jitter_source(self, source: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.with(|s| s.jitter_source = Some(Arc::new(source)))
    }

    /// Takes the time of day from `clock` in place of the system's, for HTTP dates in responses
    /// that have no `Date` header of their own.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::{Duration, SystemTime};
    /// use reqwest_retry_rules::{ResponseExt, RetryPolicy, RetryRule};
    ///
    /// // A test in which no time passes.
    /// let policy =
    ///     RetryPolicy::from(RetryRule::transient()).wall_clock(|| SystemTime::UNIX_EPOCH);
    /// let busy = |_: &reqwest::Request| {
    ///     let busy = http::Response::builder().status(503);
    ///     busy.header("retry-after", "Thu, 01 Jan 1970 00:02:00 GMT").body("").unwrap()
    /// };
    /// let response = client(policy, busy).get("http://127.0.0.1/").send().await?;
    /// let report = response.retry_report().ok_or("a report")?;
    /// assert_eq!(report.retry_after(), Some(Duration::from_secs(120)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn wall_clock(self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.with(|s| s.wall_clock = Some(Arc::new(clock)))
    }
}
