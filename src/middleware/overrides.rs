//! What a request or a task changes, and what is in force once all of it is heard.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, Method};
use tokio::time::Instant;

use super::body_source::BodySource;
use super::clock;
use super::policy::RetryPolicy;
use super::report::{RetryLabel, RetryLog};
use crate::rule::RetryRule;

/// States whether sending the request twice does the same as sending it once, whatever its method.
///
/// `ReplaySafe(true)` lets a POST be retried where an idempotent method may be; `ReplaySafe(false)`
/// takes that from a GET. It replaces what RFC 9110, 9.2.2 says of the method and what an
/// [`idempotency_key`](RetryPolicy::idempotency_key) adds.
///
/// # Examples
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # rustls::crypto::ring::default_provider().install_default().ok();
/// use reqwest_middleware::ClientBuilder;
/// use reqwest_retry_rules::{ReplaySafe, RetryMiddleware, RetryRule, client_builder};
///
/// let client = ClientBuilder::new(client_builder().build()?)
///     .with(RetryMiddleware::new(RetryRule::transient()))
///     .build();
/// // A search that happens to be a POST.
/// let request = client.post("http://127.0.0.1/search").with_extension(ReplaySafe(true));
/// # let _ = request;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReplaySafe(pub bool);

/// Bounds one send, waits and attempts together, from its start:
/// [`RetryPolicy::total_timeout`] for a single request or a task.
///
/// Of all bounds that are set the earliest holds. Zero sends nothing, and one that the clock cannot
/// hold is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TotalTimeout(pub Duration);

/// The moment by which a send must be over, on tokio's clock: one for several sends that share a
/// patience.
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
    /// The moment `duration` from now; one that the clock cannot hold is never reached.
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
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::{Overrides, RetryRule};
///
/// let overrides = Overrides::new()
///     .rule(RetryRule { max_retries: 5, ..RetryRule::transient() })
///     .total_timeout(Duration::from_secs(3))
///     .label("nightly-import");
/// # let _ = overrides;
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "overrides do nothing until `with_overrides` sets them around a future"]
pub struct Overrides {
    policy: Option<RetryPolicy>,
    rule: Option<Arc<RetryRule>>,
    replay_safe: Option<ReplaySafe>,
    total_timeout: Option<TotalTimeout>,
    deadline: Option<Deadline>,
    label: Option<RetryLabel>,
}

tokio::task_local! {
    static SCOPE: Overrides;
}

impl Overrides {
    /// Changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is set around the running task, as [`with_overrides`] merged it; to be carried into a
    /// task that it spawns.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use reqwest_retry_rules::{Overrides, RetryRule, with_overrides, with_retry};
    ///
    /// with_retry(RetryRule::never(), async {
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

    /// Replaces the policy; one that sets no budget keeps that of the middleware.
    pub fn policy(mut self, policy: impl Into<RetryPolicy>) -> Self {
        self.policy = Some(policy.into());
        self
    }

    /// Replaces the rule of whatever policy holds.
    pub fn rule(mut self, rule: RetryRule) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// States idempotence: see [`ReplaySafe`].
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

    /// Names the calls: see [`RetryLabel`].
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
            rule: extensions.get::<RetryRule>().cloned().map(Arc::new),
            replay_safe: extensions.get().copied(),
            total_timeout: extensions.get().copied(),
            deadline: extensions.get().copied(),
            label: extensions.get().cloned(),
        }
    }

    /// What the map of the `task-local-extensions` crate carries.
    #[cfg(feature = "task-local-extensions")]
    fn of_shared_map() -> Self {
        Self {
            policy: shared(),
            rule: shared::<RetryRule>().map(Arc::new),
            replay_safe: shared(),
            total_timeout: shared(),
            deadline: shared(),
            label: shared(),
        }
    }

    #[cfg(not(feature = "task-local-extensions"))]
    fn of_shared_map() -> Self {
        Self::default()
    }
}

/// Reads that crate's map. Its getter is `async` and never waits.
#[cfg(feature = "task-local-extensions")]
fn shared<T: Clone + Send + Sync + 'static>() -> Option<T> {
    use std::task::{Context, Poll, Waker};

    let getter = std::pin::pin!(task_local_extensions::get_local_item::<T>());
    match getter.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(item) => item,
        Poll::Pending => None,
    }
}

fn earliest<T: Ord>(own: Option<T>, outer: Option<T>) -> Option<T> {
    match (own, outer) {
        (Some(own), Some(outer)) => Some(own.min(outer)),
        (own, outer) => own.or(outer),
    }
}

/// Runs `future` with `overrides` for every send made in it: for calls through an SDK whose
/// requests one cannot touch.
///
/// Scopes nest: what an inner one leaves unset comes from the one around it, and of two bounds the
/// earlier holds. What a request itself carries in its extensions is nearer still. A scope belongs
/// to the future and goes with it over threads, awaits and panics; nothing of it is seen by other
/// tasks, and a task that is spawned inside starts without it (carry [`Overrides::current`] over).
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

/// Runs `future` with `rule` in place of the rule of whatever policy holds:
/// [`with_overrides`] for the common case.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use reqwest_retry_rules::{RetryRule, with_retry};
///
/// # async fn sdk_call() -> u32 { 7 }
/// // No retries for this one call.
/// assert_eq!(with_retry(RetryRule::never(), sdk_call()).await, 7);
/// # }
/// ```
pub async fn with_retry<F: Future>(rule: RetryRule, future: F) -> F::Output {
    with_overrides(Overrides::new().rule(rule), future).await
}

/// What is in force for one send.
pub(crate) struct Plan<'a> {
    pub(crate) policy: Cow<'a, RetryPolicy>,
    pub(crate) replay_safe: Option<bool>,
    pub(crate) started: Instant,
    /// When the whole send must be over.
    pub(crate) ends: Option<Instant>,
    pub(crate) label: Option<RetryLabel>,
    pub(crate) log: Option<RetryLog>,
    pub(crate) body_source: Option<BodySource>,
}

impl<'a> Plan<'a> {
    /// Hears the request, then the task, then what the middleware was built with.
    pub(crate) fn new(built_with: &'a RetryPolicy, extensions: &Extensions) -> Self {
        let started = clock::now();
        let mut heard = Overrides::of_shared_map();
        if let Ok(scope) = SCOPE.try_with(Clone::clone) {
            heard = scope.within(&heard);
        }
        let (mut log, mut body_source) = (None, None);
        if !extensions.is_empty() {
            heard = Overrides::of_request(extensions).within(&heard);
            log = extensions.get().cloned();
            body_source = extensions.get().cloned();
        }
        let mut policy = heard.policy.map_or(Cow::Borrowed(built_with), Cow::Owned);
        if let Some(rule) = heard.rule {
            policy = Cow::Owned(policy.with_rule(rule));
        }
        let bounds = [
            policy.whole_send(),
            heard.total_timeout.map(|total| total.0),
        ];
        let ends = bounds
            .into_iter()
            .flatten()
            .filter_map(|bound| started.checked_add(bound))
            .chain(heard.deadline.and_then(Deadline::moment))
            .min();
        Self {
            policy,
            replay_safe: heard.replay_safe.map(|safe| safe.0),
            started,
            ends,
            label: heard.label,
            log,
            body_source,
        }
    }

    /// Whether a request goes through untouched: no retry is wanted, and nothing concerns even a
    /// single attempt.
    pub(crate) fn passes_through(&self) -> bool {
        self.policy.rule().max_retries == 0
            && self.ends.is_none()
            && self.log.is_none()
            && self.body_source.is_none()
            && !self.policy.concerns_one_attempt()
    }

    /// Whether sending this request twice counts as sending it once.
    pub(crate) fn idempotent(&self, method: &Method, has_key: bool) -> bool {
        self.replay_safe
            .unwrap_or_else(|| has_key || method.is_idempotent())
    }

    /// Whether the rule or a condition could ever allow a retry.
    pub(crate) fn could_retry(&self, method: &Method, idempotent: bool) -> bool {
        let rule = self.policy.rule();
        rule.could_retry(method, idempotent)
            || rule.max_retries > 0 && self.policy.could_retry(method, idempotent)
    }

    /// Whether the time for the whole send is over at `moment`.
    pub(crate) fn is_over(&self, moment: Instant) -> bool {
        self.ends.is_some_and(|end| end <= moment)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        clock::now().saturating_duration_since(self.started)
    }

    /// The time that is left for the whole send.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        Some(self.ends?.saturating_duration_since(clock::now()))
    }
}
