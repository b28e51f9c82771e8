//! What is in force for one send.

use std::borrow::Cow;
use std::time::Duration;

use http::{Extensions, Method};
use tokio::time::Instant;

use super::time::SendTime;
use crate::middleware::budget::RetryBudget;
use crate::middleware::overrides::{Deadline, Overrides, earliest};
use crate::middleware::policy::{RetryPolicy, Settings};
use crate::middleware::report::{RetryLabel, RetryLog};
use crate::middleware::request::BodySource;
use crate::rule::RetryRule;

/// The policy of the middleware, with what the request and the task change about it.
pub(in crate::middleware) struct InForce<'a> {
    built_with: &'a RetryPolicy,
    policy: Cow<'a, RetryPolicy>,
    /// How long the whole send may take.
    total: Option<Duration>,
    /// When it must be over.
    deadline: Option<Instant>,
    /// In a box, since most sends have nothing of it.
    per_request: Option<Box<PerRequest>>,
}

/// What belongs to one request, beside its policy and its time.
struct PerRequest {
    replay_safe: Option<bool>,
    label: Option<RetryLabel>,
    log: Option<RetryLog>,
    body_source: Option<BodySource>,
}

impl<'a> InForce<'a> {
    /// Reads the request's extensions, then the task's overrides, then what the middleware was built
    /// with.
    pub(in crate::middleware) fn new(
        built_with: &'a RetryPolicy,
        extensions: &Extensions,
    ) -> Self {
        let Some(overrides) = Overrides::heard(extensions) else {
            return Self {
                built_with,
                policy: Cow::Borrowed(built_with),
                total: built_with.settings().total_timeout,
                deadline: None,
                per_request: None,
            };
        };
        let mut policy = overrides.policy.map_or(Cow::Borrowed(built_with), Cow::Owned);
        if let Some(rule) = overrides.rule {
            policy = Cow::Owned(policy.with_rule(rule));
        }
        let total = overrides.total_timeout.map(|total| total.0);
        let per_request = PerRequest {
            replay_safe: overrides.replay_safe.map(|safe| safe.0),
            label: overrides.label,
            log: extensions.get().cloned(),
            body_source: extensions.get().cloned(),
        };
        Self {
            built_with,
            total: earliest(policy.settings().total_timeout, total),
            policy,
            deadline: overrides.deadline.and_then(Deadline::moment),
            per_request: per_request.is_set().then(|| Box::new(per_request)),
        }
    }

    /// True if a request goes through untouched: no retry is wanted, and nothing concerns even a
    /// single attempt.
    pub(in crate::middleware) fn passes_through(&self) -> bool {
        self.rule().max_retries == 0
            && self.total.is_none()
            && self.deadline.is_none()
            && self.log().is_none()
            && self.body_source().is_none()
            && !self.settings().concerns_one_attempt()
    }

    pub(super) fn rule(&self) -> &RetryRule {
        self.policy.rule()
    }

    pub(super) fn settings(&self) -> &Settings {
        self.policy.settings()
    }

    /// The budget that limits the retries; a policy that sets none keeps the middleware's.
    pub(super) fn budget(&self) -> Option<&RetryBudget> {
        let built_with = self.built_with.settings();
        self.settings().budget_within(built_with)
    }

    /// The time of a send that starts now.
    pub(super) fn time(&self) -> SendTime {
        SendTime::new(self.total, self.deadline)
    }

    pub(super) fn label(&self) -> Option<&RetryLabel> {
        self.per_request.as_ref()?.label.as_ref()
    }

    pub(super) fn log(&self) -> Option<&RetryLog> {
        self.per_request.as_ref()?.log.as_ref()
    }

    pub(super) fn body_source(&self) -> Option<&BodySource> {
        self.per_request.as_ref()?.body_source.as_ref()
    }

    /// What the caller states of the request, if anything.
    pub(super) fn replay_safe(&self) -> Option<bool> {
        self.per_request.as_ref()?.replay_safe
    }

    /// True if the rule or a condition could ever allow a retry.
    pub(super) fn could_retry(&self, method: &Method, idempotent: bool) -> bool {
        let rule = self.rule();
        rule.could_retry(method, idempotent)
            || rule.max_retries > 0 && self.settings().could_retry(method, idempotent)
    }
}

impl PerRequest {
    fn is_set(&self) -> bool {
        self.replay_safe.is_some()
            || self.label.is_some()
            || self.log.is_some()
            || self.body_source.is_some()
    }
}
