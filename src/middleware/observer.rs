//! What observers are called with while a send goes on.

use std::time::Duration;

use http::{Method, StatusCode};

use super::report::{AttemptResult, RetryLabel};
use crate::rule::{StopReason, WaitSource};

/// Watches sends: every retry before its wait, and how each send that did not go well at once ends,
/// in a recovery or a stop.
///
/// All methods do nothing by default, and none is called for a send that nothing was wrong with.
/// They are called inside the send, so a slow one holds up that send (and the worker thread it runs
/// on), and one that panics takes down that send and no other: hand work on instead of doing it
/// here.
///
/// For metrics there is a `name()` on all that makes a good label: [`StopReason::name`],
/// [`AttemptResult::name`], [`TransportError::name`](crate::TransportError::name).
///
/// # Events
///
/// With the feature `tracing` each is an event as well, under the target `reqwest_retry_rules`, at
/// the level that [`RetryPolicy::log_levels`](crate::RetryPolicy::log_levels) sets.
///
/// | what | level unless set | message |
/// | --- | --- | --- |
/// | a retry | `INFO` | "retrying" |
/// | a recovery | that of a retry | "recovered" |
/// | a stop | `WARN` | "giving up: " and the reason |
///
/// None is written of a request that nothing in the rule could retry, unless it has a
/// [`RetryLog`](crate::RetryLog) or the policy something for a single attempt, such as an observer.
///
/// They have these fields, and never a query string, user info or the value of a header.
///
/// | field | value |
/// | --- | --- |
/// | `method` | the request's method |
/// | `host` | the host of its URL, without the port |
/// | `label` | its [`RetryLabel`], if it has one |
/// | `attempt` | how many attempts were made so far |
/// | `outcome` | what the last attempt came to |
/// | `wait_ms` | on a retry, the wait that begins, in whole milliseconds |
/// | `reason` | on a stop, the [name](StopReason::name) of the reason |
///
/// On a retry `attempt` is also its number: 1 for the first. The `outcome` is the status of a
/// response, the [name](crate::TransportError::name) of a failure, or `error` if it was no failure
/// of the transport; it is absent if the time was over before the first attempt.
///
/// [`RetryMiddleware::new`](crate::RetryMiddleware::new) says which rules it warns of under the same
/// target. The fields are then `advice`, the [name](crate::Advice::name) of the advice, and `route`,
/// the index of the route whose rule it is, if it is that of a route.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use reqwest_retry_rules::{
///     RecoveredEvent, RetryEvent, RetryObserver, RetryPolicy, RetryRule, StopEvent,
/// };
///
/// #[derive(Default)]
/// struct Counts {
///     retries: AtomicU32,
///     recoveries: AtomicU32,
///     stops: AtomicU32,
/// }
///
/// impl RetryObserver for Counts {
///     fn on_retry(&self, _event: &RetryEvent<'_>) {
///         self.retries.fetch_add(1, Ordering::Relaxed);
///     }
///
///     fn on_recovered(&self, _event: &RecoveredEvent<'_>) {
///         self.recoveries.fetch_add(1, Ordering::Relaxed);
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
/// assert_eq!(counts.recoveries.load(Ordering::Relaxed), 0);
/// assert_eq!(counts.stops.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
pub trait RetryObserver: Send + Sync + 'static {
    /// A retry was decided and its wait begins.
    fn on_retry(&self, event: &RetryEvent<'_>) {
        let _ = event;
    }

    /// A send was answered after at least one retry.
    fn on_recovered(&self, event: &RecoveredEvent<'_>) {
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

    fn on_recovered(&self, event: &RecoveredEvent<'_>) {
        (**self).on_recovered(event);
    }

    fn on_stop(&self, event: &StopEvent<'_>) {
        (**self).on_stop(event);
    }
}

/// A retry that was decided on, before its wait.
#[derive(Clone, Copy, Debug)]
pub struct RetryEvent<'a> {
    pub(super) call: CallFacts<'a>,
    pub(super) retry: u32,
    pub(super) result: AttemptResult,
    pub(super) wait: Duration,
    pub(super) source: WaitSource,
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

/// A send that was answered after at least one retry.
///
/// The answer is whatever the rule does not retry and no condition refuses: a 404 is one too.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use std::sync::Mutex;
/// use std::sync::atomic::{AtomicU16, Ordering};
/// use reqwest_retry_rules::{RecoveredEvent, RetryObserver, RetryPolicy, RetryRule};
///
/// /// Counts recoveries by the number of attempts that they took.
/// #[derive(Default)]
/// struct ByAttempts(Mutex<std::collections::BTreeMap<u32, u32>>);
///
/// impl RetryObserver for ByAttempts {
///     fn on_recovered(&self, event: &RecoveredEvent<'_>) {
///         if let Ok(mut counts) = self.0.lock() {
///             *counts.entry(event.attempts()).or_default() += 1;
///         }
///     }
/// }
///
/// let counts = std::sync::Arc::new(ByAttempts::default());
/// let policy = RetryPolicy::from(RetryRule::transient()).observer(counts.clone());
/// // 503 first and then 200, in place of the network.
/// let next = AtomicU16::new(503);
/// let client = client(policy, move |_| status(next.swap(200, Ordering::Relaxed)));
/// client.get("http://127.0.0.1/").send().await?; // recovers with the second attempt
/// client.get("http://127.0.0.1/").send().await?; // is answered at once
/// assert_eq!(*counts.0.lock().unwrap(), [(2, 1)].into());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RecoveredEvent<'a> {
    pub(super) call: CallFacts<'a>,
    pub(super) attempts: u32,
    pub(super) status: StatusCode,
}

impl<'a> RecoveredEvent<'a> {
    /// How many attempts were made, the one that was answered included: 2 or more.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }
}

/// A failed send that is given up.
#[derive(Clone, Copy, Debug)]
pub struct StopEvent<'a> {
    pub(super) call: CallFacts<'a>,
    pub(super) attempts: u32,
    pub(super) result: Option<AttemptResult>,
    pub(super) reason: StopReason,
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

/// What all events say of the call. Never a query string, user info or the value of a header.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallFacts<'a> {
    pub(super) method: &'a Method,
    pub(super) host: Option<&'a str>,
    pub(super) label: Option<&'a RetryLabel>,
    pub(super) elapsed: Duration,
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
call_facts!(RecoveredEvent);
call_facts!(StopEvent);
