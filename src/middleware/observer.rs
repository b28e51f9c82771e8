//! Who is told about retries while they happen.

use std::time::Duration;

use http::Method;

use super::report::{AttemptResult, RetryLabel};
use crate::rule::{StopReason, WaitSource};

/// Is told about every retry before its wait, and about every failed send that is given up.
///
/// Both methods do nothing by default. They are called inside the send, so a slow one holds up that
/// send (and the worker thread it runs on), and one that panics takes down that send and no other:
/// hand work on instead of doing it here.
///
/// # Events
///
/// With the feature `tracing` both are events as well, under the target `reqwest_retry_rules`: a
/// retry at level `INFO` with the message "retrying", a stop at level `WARN` with the message
/// "giving up: " and the reason. They have these fields, and never a query string, user info or the
/// value of a header.
///
/// | field | value |
/// | --- | --- |
/// | `method` | the request's method |
/// | `host` | the host of its URL, without the port |
/// | `label` | its [`RetryLabel`], if it has one |
/// | `attempt` | how many attempts were made so far; on a retry this is also its number |
/// | `outcome` | what the last attempt came to: the status, the [name](crate::TransportError::name) of the failure, or `error` if it was no failure of the transport; absent if the time was over before the first attempt |
/// | `wait_ms` | on a retry, the wait that begins, in whole milliseconds |
/// | `reason` | on a stop, the [name](StopReason::name) of the reason |
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use reqwest_retry_rules::{RetryEvent, RetryObserver, RetryPolicy, RetryRule, StopEvent};
///
/// #[derive(Default)]
/// struct Counts {
///     retries: AtomicU32,
///     stops: AtomicU32,
/// }
///
/// impl RetryObserver for Counts {
///     fn on_retry(&self, _event: &RetryEvent<'_>) {
///         self.retries.fetch_add(1, Ordering::Relaxed);
///     }
///
///     fn on_stop(&self, event: &StopEvent<'_>) {
///         assert_eq!(event.reason().name(), "exhausted");
///         self.stops.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let counts = Arc::new(Counts::default());
/// let policy = RetryPolicy::from(RetryRule::transient()).observer(counts.clone());
/// // Every answer is a 503, in place of the network.
/// client(policy, |_| status(503)).get("http://127.0.0.1/").send().await?;
/// assert_eq!(counts.retries.load(Ordering::Relaxed), 3);
/// assert_eq!(counts.stops.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
pub trait RetryObserver: Send + Sync + 'static {
    /// A retry was decided and its wait begins.
    fn on_retry(&self, event: &RetryEvent<'_>) {
        let _ = event;
    }

    /// A failed send is given up: its last response or error goes back to the caller.
    fn on_stop(&self, event: &StopEvent<'_>) {
        let _ = event;
    }
}

impl<O: RetryObserver + ?Sized> RetryObserver for std::sync::Arc<O> {
    fn on_retry(&self, event: &RetryEvent<'_>) {
        (**self).on_retry(event);
    }

    fn on_stop(&self, event: &StopEvent<'_>) {
        (**self).on_stop(event);
    }
}

/// A retry that was decided on, before its wait.
#[derive(Clone, Copy, Debug)]
pub struct RetryEvent<'a> {
    pub(crate) call: CallFacts<'a>,
    pub(crate) retry: u32,
    pub(crate) result: AttemptResult,
    pub(crate) wait: Duration,
    pub(crate) source: WaitSource,
}

impl<'a> RetryEvent<'a> {
    /// The number of this retry: 1 for the first.
    pub fn retry(&self) -> u32 {
        self.retry
    }

    /// What the attempt before it came to.
    pub fn result(&self) -> AttemptResult {
        self.result
    }

    /// The wait that begins now, in whole milliseconds.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Where the wait came from.
    pub fn wait_source(&self) -> WaitSource {
        self.source
    }
}

/// A failed send that is given up.
#[derive(Clone, Copy, Debug)]
pub struct StopEvent<'a> {
    pub(crate) call: CallFacts<'a>,
    pub(crate) attempts: u32,
    pub(crate) result: Option<AttemptResult>,
    pub(crate) reason: StopReason,
}

impl<'a> StopEvent<'a> {
    /// How many attempts were made.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// What the last attempt came to; `None` if the time was over before the first.
    pub fn result(&self) -> Option<AttemptResult> {
        self.result
    }

    /// Why no further attempt is made.
    pub fn reason(&self) -> StopReason {
        self.reason
    }
}

/// What both events say of the call. Never a query string, user info or the value of a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallFacts<'a> {
    pub(crate) method: &'a Method,
    pub(crate) host: Option<&'a str>,
    pub(crate) label: Option<&'a RetryLabel>,
    pub(crate) elapsed: Duration,
}

macro_rules! call_facts {
    ($event:ident) => {
        impl<'a> $event<'a> {
            /// The method of the request.
            pub fn method(&self) -> &'a Method {
                self.call.method
            }

            /// The host of the request's URL, even if a redirect led to another; `None` if the URL
            /// has none.
            pub fn host(&self) -> Option<&'a str> {
                self.call.host
            }

            /// The name that the caller gave the call, if any.
            pub fn label(&self) -> Option<&'a RetryLabel> {
                self.call.label
            }

            /// How long the send has taken so far, attempts and waits together.
            pub fn elapsed(&self) -> Duration {
                self.call.elapsed
            }
        }
    };
}

call_facts!(RetryEvent);
call_facts!(StopEvent);
