//! What a request or a task changes.

mod in_force;
mod per_request;
mod shared_map;
mod task;
mod values;

pub(super) use self::in_force::InForce;
pub(super) use self::per_request::PerRequest;
pub use self::task::{with_overrides, with_rule};
pub use self::values::{Deadline, ReplaySafe, TotalTimeout};

use std::sync::Arc;
use std::time::Duration;

use http::Extensions;

use super::policy::RetryPolicy;
use super::report::{RetryLabel, RetryLog};
use crate::rule::RetryRule;

/// What a task changes for the sends made in it, or a request for itself.
///
/// [`with_overrides`] sets them for all that is sent in a future. In a request's extensions they
/// hold for that request; there each of them can also stand by itself (a [`RetryPolicy`], a
/// [`RetryRule`] or an `Arc` of one, a [`ReplaySafe`], a [`TotalTimeout`], a [`Deadline`], a
/// [`RetryLabel`], a [`RetryLog`]), and one that does wins over an `Overrides` in the same map.
///
/// The nearest wins, each kind by itself: the request, then the innermost task scope, then the
/// scopes around it, then the middleware. So a rule that is set for a task still replaces the rule
/// inside a policy that a request carries. Only deadlines add up: the earliest holds.
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
/// let get = || client.get("http://127.0.0.1/");
/// assert_eq!(with_overrides(overrides.clone(), get().send()).await?.attempts(), 6);
/// assert_eq!(get().with_extension(overrides).send().await?.attempts(), 6);
/// assert_eq!(get().send().await?.attempts(), 4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "overrides do nothing until `with_overrides` or a request has them"]
pub struct Overrides {
    policy: Option<RetryPolicy>,
    rule: Option<Arc<RetryRule>>,
    replay_safe: Option<ReplaySafe>,
    total_timeout: Option<TotalTimeout>,
    deadline: Option<Deadline>,
    label: Option<RetryLabel>,
    log: Option<RetryLog>,
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
        task::current(Clone::clone).unwrap_or_default()
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

    /// Bounds each send from its own start, in place of the policy's total timeout: see
    /// [`TotalTimeout`].
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = Some(TotalTimeout(timeout));
        self
    }

    /// Bounds all sends by one moment, besides their total timeouts: see [`Deadline`].
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Names the calls, in events and reports: see [`RetryLabel`].
    pub fn label(mut self, label: impl Into<RetryLabel>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Keeps the reports of the sends: the log holds that of the send that ended last. See
    /// [`RetryLog`].
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use reqwest_retry_rules::{Overrides, RetryLog, RetryRule, with_overrides};
    ///
    /// // An SDK that keeps its client and its responses to itself. Every answer is a 503.
    /// let sdk = client(RetryRule::transient(), |_| status(503));
    /// let sdk_call = async { sdk.get("http://127.0.0.1/").send().await.is_ok() };
    ///
    /// let log = RetryLog::new();
    /// with_overrides(Overrides::new().log(log.clone()), sdk_call).await;
    /// assert_eq!(log.report().ok_or("a report")?.attempts(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn log(mut self, log: RetryLog) -> Self {
        self.log = Some(log);
        self
    }

    /// What applies to a send with these extensions: what the request carries, else what the task
    /// sets, else what is in the shared map. `None` if it is easily seen that nothing is set.
    fn in_force(extensions: &Extensions) -> Option<Self> {
        if extensions.is_empty() && task::current(|_| ()).is_none() {
            return shared_map::overrides();
        }
        let mut found = Self::of_request(extensions);
        task::current(|around| found.fill_from(around));
        if let Some(shared) = shared_map::overrides() {
            found.fill_from(&shared);
        }
        Some(found)
    }

    /// What the request itself carries.
    fn of_request(extensions: &Extensions) -> Self {
        let mut found = Self {
            policy: extensions.get().cloned(),
            rule: extensions
                .get()
                .cloned()
                .or_else(|| extensions.get::<RetryRule>().cloned().map(Arc::new)),
            replay_safe: extensions.get().copied(),
            total_timeout: extensions.get().copied(),
            deadline: extensions.get().copied(),
            label: extensions.get().cloned(),
            log: extensions.get().cloned(),
        };
        if let Some(several) = extensions.get() {
            found.fill_from(several);
        }
        found
    }

    /// Takes from `outer` what is not set here. Of two deadlines the earlier holds.
    fn fill_from(&mut self, outer: &Self) {
        fill(&mut self.policy, &outer.policy);
        fill(&mut self.rule, &outer.rule);
        fill(&mut self.replay_safe, &outer.replay_safe);
        fill(&mut self.total_timeout, &outer.total_timeout);
        fill(&mut self.label, &outer.label);
        fill(&mut self.log, &outer.log);
        self.deadline = match (self.deadline, outer.deadline) {
            (Some(own), Some(outer)) => Some(own.min(outer)),
            (own, outer) => own.or(outer),
        };
    }
}

fn fill<T: Clone>(own: &mut Option<T>, outer: &Option<T>) {
    if own.is_none() {
        own.clone_from(outer);
    }
}
