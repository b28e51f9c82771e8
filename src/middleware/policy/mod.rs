//! A rule, and what is not data: closures, budgets, observers, limits of this process.

mod advice;
mod closures;
#[cfg(feature = "serde")]
mod config;
mod events;
mod routes;
mod setters;
mod settings;
mod shared;

use std::fmt;
use std::sync::Arc;

use crate::rule::RetryRule;

pub(super) use self::closures::BodyJudge;
#[cfg(feature = "serde")]
pub use self::config::RetryConfig;
pub use self::routes::{InvalidRoute, RoutePattern};
pub(super) use self::settings::Settings;
pub use self::shared::SharedPolicy;

/// A [`RetryRule`] and what is not data: conditions in code, a budget, timeouts, observers.
///
/// `RetryPolicy::from(rule)` changes nothing about the rule; each setter is named for what it sets.
/// A clone is cheap and shares the rule, the closures and the budget.
///
/// # Defaults
///
/// | setter | default |
/// | --- | --- |
/// | [`retry_if`](Self::retry_if), [`server_delay`](Self::server_delay), [`classify_with`](Self::classify_with), [`veto`](Self::veto), [`judge_body`](Self::judge_body) | nothing is asked |
/// | [`total_timeout`](Self::total_timeout), [`attempt_timeout`](Self::attempt_timeout), [`head_timeout`](Self::head_timeout) | none |
/// | [`budget`](Self::budget) | [`RetryBudget::default`](crate::RetryBudget::default): 20 % and 10 retries a second for each origin |
/// | [`pause_origins`](Self::pause_origins) | off |
/// | [`attempt_header`](Self::attempt_header), [`idempotency_key`](Self::idempotency_key) | none |
/// | [`drain_limit`](Self::drain_limit) | 64 KiB |
/// | [`complete_body`](Self::complete_body) | 0 bytes: off |
/// | [`route`](Self::route) | none: one rule for every request |
/// | [`observer`](Self::observer) | none |
/// | [`log_levels`](Self::log_levels) | `INFO` for retries, `WARN` for stops |
/// | [`jitter_source`](Self::jitter_source), [`wall_clock`](Self::wall_clock) | the thread's random generator, the system's clock |
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::{Methods, RetryMiddleware, RetryPolicy, RetryRule};
///
/// let policy = RetryPolicy::from(RetryRule::transient())
///     .retry_if(Methods::Idempotent, |head| {
///         head.status() == 403
///             && head.headers().get("x-ratelimit-remaining").is_some_and(|left| left == "0")
///     })
///     .total_timeout(Duration::from_secs(20));
/// assert_eq!(policy.rule(), &RetryRule::transient());
/// let middleware = RetryMiddleware::new(policy);
/// # let _ = middleware;
/// ```
#[derive(Clone)]
#[must_use = "a policy does nothing until a middleware, a request or a task has it"]
pub struct RetryPolicy {
    rule: Arc<RetryRule>,
    settings: Arc<Settings>,
}

impl From<RetryRule> for RetryPolicy {
    fn from(rule: RetryRule) -> Self {
        Self::from(Arc::new(rule))
    }
}

impl From<Arc<RetryRule>> for RetryPolicy {
    fn from(rule: Arc<RetryRule>) -> Self {
        Self {
            rule,
            settings: Arc::default(),
        }
    }
}

impl RetryPolicy {
    /// The rule.
    ///
    /// # Examples
    ///
    /// ```
    /// use reqwest_retry_rules::{RetryPolicy, RetryRule};
    ///
    /// assert_eq!(RetryPolicy::from(RetryRule::transient()).rule().max_retries, 3);
    /// ```
    pub fn rule(&self) -> &RetryRule {
        &self.rule
    }

    /// This policy with what `old` remembers of origins, as far as both want the same.
    fn keep_origins_of(self, old: &RetryPolicy) -> Self {
        self.with(|s| s.keep_origins_of(&old.settings))
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    fn with(mut self, set: impl FnOnce(&mut Settings)) -> Self {
        set(Arc::make_mut(&mut self.settings));
        self
    }
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = &*self.settings;
        f.debug_struct("RetryPolicy")
            .field("rule", &self.rule)
            .field("retry_if", &s.retry_if.len())
            .field("veto", &s.veto.len())
            .field(
                "judge_body",
                &s.judge_body.as_ref().map(|judge| judge.limit),
            )
            .field("total_timeout", &s.total_timeout)
            .field("attempt_timeout", &s.attempt_timeout)
            .field("head_timeout", &s.head_timeout)
            .field("budget", &s.budget)
            .field("pause_origins", &s.pause_origins)
            .field("attempt_header", &s.attempt_header)
            .field("idempotency_key", &s.idempotency_key)
            .field("drain_limit", &s.drain_limit)
            .field("complete_body", &s.complete_body)
            .field("routes", &s.routes)
            .field("observers", &s.observers.len())
            .finish_non_exhaustive()
    }
}
