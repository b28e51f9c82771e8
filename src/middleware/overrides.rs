//! What a request or a task changes.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::Extensions;
use tokio::time::Instant;

use super::clock;
use super::policy::RetryPolicy;
use super::report::RetryLabel;
use crate::rule::RetryRule;

/// States whether sending the request twice does the same as sending it once, whatever its method.
///
/// `ReplaySafe(true)` lets a POST be retried where an idempotent method may be; with
/// `ReplaySafe(false)` a GET is not. It replaces what RFC 9110, 9.2.2 says of the method and what
/// an [`idempotency_key`](RetryPolicy::idempotency_key) adds.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use reqwest_retry_rules::{ReplaySafe, ResponseExt, RetryRule};
///
/// // A client that gets its answers from a function, in place of the network.
/// let client = client(RetryRule::transient(), |_| status(503));
/// // A search that happens to be a POST may be repeated.
/// let search = client.post("http://127.0.0.1/search").with_extension(ReplaySafe(true));
/// assert_eq!(search.send().await?.attempts(), 4);
/// assert_eq!(client.post("http://127.0.0.1/orders").send().await?.attempts(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReplaySafe(pub bool);

/// Bounds one send, waits and attempts together, from its start:
/// [`RetryPolicy::total_timeout`] for a single request or a task.
///
/// Of all bounds that are set the earliest holds. Zero sends nothing; one that is too long for the
/// clock is no bound.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use std::time::Duration;
/// use reqwest_retry_rules::{ResponseExt, RetryReport, RetryRule, StopReason, TotalTimeout};
///
/// // Answers, in place of the network.
/// let busy = |_: &reqwest::Request| {
///     http::Response::builder().status(503).header("retry-after", "10").body("").unwrap()
/// };
/// let client = client(RetryRule::transient(), busy);
/// let timeout = TotalTimeout(Duration::from_secs(2));
/// let response = client.get("http://127.0.0.1/").with_extension(timeout).send().await?;
/// // The wait would outlast it, so the answer comes back at once.
/// let reason = response.retry_report().and_then(RetryReport::stop_reason);
/// assert_eq!(reason, Some(StopReason::Budget(Duration::from_secs(10))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TotalTimeout(pub Duration);

/// The moment by which a send must be over, on tokio's clock: one `Deadline` can bound several
/// sends together.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
/// use reqwest_retry_rules::Deadline;
///
/// assert!(Deadline::after(Duration::from_secs(1)) < Deadline::after(Duration::from_secs(60)));
/// assert!(Deadline::after(Duration::from_secs(60)) < Deadline::after(Duration::MAX));
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// The moment `duration` from now; one that is too far away for the clock is never reached.
    pub fn after(duration: Duration) -> Self {
        Self(clock::after(duration))
    }

    /// This moment of tokio's clock.
    pub(crate) fn moment(self) -> Option<Instant> {
        self.0
    }
}

impl PartialOrd for Deadline {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Deadline {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // A moment comes before never.
        match (self.0, other.0) {
            (Some(own), Some(other)) => own.cmp(&other),
            (own, other) => own.is_none().cmp(&other.is_none()),
        }
    }
}

impl From<std::time::Instant> for Deadline {
    fn from(moment: std::time::Instant) -> Self {
        Self(Some(Instant::from_std(moment)))
    }
}

/// What a task changes for the sends made in it: see [`with_overrides`].
///
/// What a request itself carries in its extensions is nearer: there each of these is put as itself
/// (a [`RetryPolicy`], a [`RetryRule`] or an `Arc` of one, a [`ReplaySafe`], ...); an `Overrides`
/// in them has no effect. The nearest wins, each kind by itself: a rule that is set for a task
/// still replaces the rule inside a policy that a request carries. Of two bounds the earlier holds.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use std::time::Duration;
/// use reqwest_retry_rules::{Overrides, ResponseExt, RetryRule, with_overrides};
///
/// let overrides = Overrides::new()
///     .rule(RetryRule { max_retries: 5, ..RetryRule::transient() })
///     .total_timeout(Duration::from_secs(30))
///     .label("nightly-import");
/// // A client that gets its answers from a function, in place of the network.
/// let client = client(RetryRule::transient(), |_| status(503));
/// let response = with_overrides(overrides, client.get("http://127.0.0.1/").send()).await?;
/// assert_eq!(response.attempts(), 6);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "overrides do nothing until `with_overrides` sets them around a future"]
pub struct Overrides {
    pub(super) policy: Option<RetryPolicy>,
    pub(super) rule: Option<Arc<RetryRule>>,
    pub(super) replay_safe: Option<ReplaySafe>,
    pub(super) total_timeout: Option<TotalTimeout>,
    pub(super) deadline: Option<Deadline>,
    pub(super) label: Option<RetryLabel>,
}

tokio::task_local! {
    static SCOPE: Overrides;
}

impl Overrides {
    /// Overrides that change nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is set around the running task, as [`with_overrides`] merged it: to carry it into a
    /// task that is spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use reqwest_retry_rules::{Overrides, RetryRule, with_overrides, with_rule};
    ///
    /// with_rule(RetryRule::never(), async {
    ///     let carried = Overrides::current();
    ///     let task = tokio::spawn(with_overrides(carried, async { /* sends without retries */ }));
    ///     task.await.ok();
    /// })
    /// .await;
    /// # }
    /// ```
    pub fn current() -> Self {
        SCOPE.try_with(Clone::clone).unwrap_or_default()
    }

    /// Replaces the policy; one that sets no budget keeps that of the middleware. A rule that is
    /// set further out, or in [`rule`](Self::rule), takes the place of the rule in it.
    pub fn policy(mut self, policy: impl Into<RetryPolicy>) -> Self {
        self.policy = Some(policy.into());
        self
    }

    /// Replaces the rule of whichever policy applies.
    pub fn rule(mut self, rule: impl Into<Arc<RetryRule>>) -> Self {
        self.rule = Some(rule.into());
        self
    }

    /// States whether requests may be repeated: see [`ReplaySafe`].
    ///
    /// `true` vouches for **every** send made in the task, also one that a middleware makes on the
    /// way through another client with this middleware, such as a POST that fetches a token.
    pub fn replay_safe(mut self, safe: bool) -> Self {
        self.replay_safe = Some(ReplaySafe(safe));
        self
    }

    /// Bounds each send from its own start: see [`TotalTimeout`].
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = Some(TotalTimeout(timeout));
        self
    }

    /// Bounds all sends by one moment: see [`Deadline`].
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Names the calls, in events and reports: see [`RetryLabel`].
    pub fn label(mut self, label: impl Into<RetryLabel>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// What is set here or, where nothing is, in `outer`. Of two bounds the earlier holds.
    fn within(self, outer: &Self) -> Self {
        Self {
            policy: self.policy.or_else(|| outer.policy.clone()),
            rule: self.rule.or_else(|| outer.rule.clone()),
            replay_safe: self.replay_safe.or(outer.replay_safe),
            total_timeout: earliest(self.total_timeout, outer.total_timeout),
            deadline: earliest(self.deadline, outer.deadline),
            label: self.label.or_else(|| outer.label.clone()),
        }
    }

    /// What the request itself carries.
    fn of_request(extensions: &Extensions) -> Self {
        Self {
            policy: extensions.get().cloned(),
            rule: extensions
                .get()
                .cloned()
                .or_else(|| extensions.get::<RetryRule>().cloned().map(Arc::new)),
            replay_safe: extensions.get().copied(),
            total_timeout: extensions.get().copied(),
            deadline: extensions.get().copied(),
            label: extensions.get().cloned(),
        }
    }

    /// What the request says, what it leaves to the task's scope, and that to the shared map;
    /// `None` where it is easily seen that nobody says anything.
    pub(super) fn heard(extensions: &Extensions) -> Option<Self> {
        if extensions.is_empty() && SCOPE.try_with(|_| ()).is_err() {
            return Self::of_shared_map();
        }
        let shared = Self::of_shared_map().unwrap_or_default();
        let scope = Self::current().within(&shared);
        Some(Self::of_request(extensions).within(&scope))
    }

    /// What the map of the `task-local-extensions` crate carries, if anything.
    #[cfg(feature = "task-local-extensions")]
    fn of_shared_map() -> Option<Self> {
        let (policy, rule) = (shared(Some), shared(|rule| Some(Arc::new(rule))));
        let (replay_safe, total_timeout) = (shared(Some), shared(Some));
        let (deadline, label) = (shared(Some), shared(Some));
        let says_anything = policy.is_some()
            || rule.is_some()
            || replay_safe.is_some()
            || total_timeout.is_some()
            || deadline.is_some()
            || label.is_some();
        // Put together only here: a struct of nothing would be what most sends move about.
        says_anything.then(|| Self {
            policy,
            rule,
            replay_safe,
            total_timeout,
            deadline,
            label,
        })
    }

    #[cfg(not(feature = "task-local-extensions"))]
    fn of_shared_map() -> Option<Self> {
        None
    }
}

/// Reads that crate's map. Its getter is `async` and never waits.
#[cfg(feature = "task-local-extensions")]
fn shared<T: Clone + Send + Sync + 'static, U>(keep: impl Fn(T) -> Option<U>) -> Option<U> {
    use std::task::{Context, Poll, Waker};

    let getter = std::pin::pin!(task_local_extensions::get_local_item::<T>());
    match getter.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(item)) => keep(item),
        Poll::Ready(None) | Poll::Pending => None,
    }
}

pub(super) fn earliest<T: Ord>(own: Option<T>, outer: Option<T>) -> Option<T> {
    match (own, outer) {
        (Some(own), Some(outer)) => Some(own.min(outer)),
        (own, outer) => own.or(outer),
    }
}

/// Runs `future` with `overrides` for every send made in it: for calls through an SDK whose
/// requests are out of reach.
///
/// Every send means also one that a middleware makes on the way through another client with this
/// middleware, to fetch a token for instance: [`replay_safe(true)`](Overrides::replay_safe) vouches
/// for all of them.
///
/// Scopes nest: what an inner one leaves unset comes from the one around it, and of two bounds the
/// earlier holds. What a request itself carries in its extensions is nearer still. A scope belongs
/// to the future and goes with it across threads, awaits and panics. Other tasks see nothing of it;
/// a task that is spawned inside starts without it (carry [`Overrides::current`] over).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
/// use reqwest_retry_rules::{Overrides, with_overrides};
///
/// # async fn sdk_call() -> u32 { 7 }
/// let patience = Overrides::new().total_timeout(Duration::from_secs(2));
/// assert_eq!(with_overrides(patience, sdk_call()).await, 7);
/// # }
/// ```
pub async fn with_overrides<F: Future>(overrides: Overrides, future: F) -> F::Output {
    let merged = SCOPE
        .try_with(|outer| overrides.clone().within(outer))
        .unwrap_or(overrides);
    SCOPE.scope(merged, future).await
}

/// Runs `future` with `rule` in place of the rule of whichever policy applies, even of a policy
/// that a request carries: [`with_overrides`] for the common case.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use reqwest_retry_rules::{RetryRule, with_rule};
///
/// # async fn sdk_call() -> u32 { 7 }
/// // No retries for this one call.
/// assert_eq!(with_rule(RetryRule::never(), sdk_call()).await, 7);
/// # }
/// ```
pub async fn with_rule<F: Future>(rule: impl Into<Arc<RetryRule>>, future: F) -> F::Output {
    with_overrides(Overrides::new().rule(rule), future).await
}
