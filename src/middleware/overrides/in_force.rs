//! What is in force for one send.

use std::time::Duration;

use http::Method;
use reqwest::Url;

use super::PerRequest;
use crate::middleware::origins::RetryBudget;
use crate::middleware::policy::{RetryPolicy, Settings};
use crate::middleware::report::{RetryLabel, RetryLog};
use crate::middleware::request::BodySource;
use crate::middleware::time::SendTime;
use crate::rule::RetryRule;

/// The policy of the middleware, with what the request and the task change about it.
pub(in crate::middleware) struct InForce<'a> {
    built_with: &'a RetryPolicy,
    policy: &'a RetryPolicy,
    /// That of the request or the task, else of the route that the request takes, else of the policy.
    rule: &'a RetryRule,
    per_request: &'a PerRequest,
}

impl<'a> InForce<'a> {
    #[inline]
    pub(in crate::middleware) fn new(
        built_with: &'a RetryPolicy,
        per_request: &'a PerRequest,
        url: &Url,
    ) -> Self {
        let mut in_force = Self::of_work(built_with, per_request);
        in_force.rule = in_force.rule_for(Some(url));
        in_force
    }

    /// For a work, which goes nowhere by itself.
    #[inline]
    pub(in crate::middleware) fn of_work(
        built_with: &'a RetryPolicy,
        per_request: &'a PerRequest,
    ) -> Self {
        let policy = per_request.policy().unwrap_or(built_with);
        Self {
            built_with,
            policy,
            rule: per_request.rule().unwrap_or_else(|| policy.rule()),
            per_request,
        }
    }

    /// The rule for a request to this URL.
    #[inline]
    pub(in crate::middleware) fn rule_for(&self, url: Option<&Url>) -> &'a RetryRule {
        match (self.per_request.rule(), url) {
            (None, Some(url)) => self.policy.rule_for(url),
            _ => self.rule,
        }
    }

    /// Every rule that a request of a work may have.
    pub(in crate::middleware) fn rules(&self) -> impl Iterator<Item = &RetryRule> + Clone {
        let of_routes = self.settings().routes.rules();
        // A rule of the task stands in for those of the routes too.
        let of_routes = of_routes.filter(|_| self.per_request.rule().is_none());
        std::iter::once(self.rule()).chain(of_routes)
    }

    /// True if a request goes through untouched: no retry of it is possible, and nothing concerns even
    /// a single attempt.
    #[inline]
    pub(in crate::middleware) fn passes_through(&self, method: &Method, idempotent: bool) -> bool {
        !self.could_retry(method, idempotent)
            && self.total_timeout().is_none()
            && self.per_request.deadline().is_none()
            && self.log().is_none()
            && self.body_source().is_none()
            && !self.settings().concerns_one_attempt()
    }

    #[inline]
    pub(in crate::middleware) fn rule(&self) -> &'a RetryRule {
        self.rule
    }

    #[inline]
    pub(in crate::middleware) fn settings(&self) -> &'a Settings {
        self.policy.settings()
    }

    /// The budget that limits the retries; a policy that sets none keeps the middleware's.
    #[inline]
    pub(in crate::middleware) fn budget(&self) -> Option<&RetryBudget> {
        let built_with = self.built_with.settings();
        self.settings().budget_within(built_with)
    }

    #[inline]
    fn total_timeout(&self) -> Option<Duration> {
        self.per_request
            .total_timeout(self.settings().total_timeout)
    }

    /// The time of a send that starts now.
    #[inline]
    pub(in crate::middleware) fn time(&self) -> SendTime {
        SendTime::new(self.total_timeout(), self.per_request.deadline())
    }

    #[inline]
    pub(in crate::middleware) fn label(&self) -> Option<&RetryLabel> {
        self.per_request.label()
    }

    #[inline]
    pub(in crate::middleware) fn log(&self) -> Option<&RetryLog> {
        self.per_request.log()
    }

    #[inline]
    pub(in crate::middleware) fn body_source(&self) -> Option<&BodySource> {
        self.per_request.body_source()
    }

    /// What the caller states of the request, if anything.
    #[inline]
    pub(in crate::middleware) fn replay_safe(&self) -> Option<bool> {
        self.per_request.replay_safe()
    }

    /// True if the rule or a condition could ever allow a retry.
    #[inline]
    pub(in crate::middleware) fn could_retry(&self, method: &Method, idempotent: bool) -> bool {
        let rule = self.rule();
        rule.could_retry(method, idempotent)
            || rule.max_retries > 0 && self.settings().could_retry(method, idempotent)
    }
}
