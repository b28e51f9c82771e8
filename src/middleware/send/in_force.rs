//! What is in force for one send.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, Method};
use reqwest::{Request, Url};

use super::time::SendTime;
use crate::middleware::origins::RetryBudget;
use crate::middleware::overrides::PerRequest;
use crate::middleware::policy::{RetryPolicy, Settings};
use crate::middleware::report::{RetryLabel, RetryLog};
use crate::middleware::request::BodySource;
use crate::rule::RetryRule;

/// The policy of the middleware, with what the request and the task change about it.
pub(in crate::middleware) struct InForce<'a> {
    built_with: &'a RetryPolicy,
    policy: Cow<'a, RetryPolicy>,
    /// The rule of the route that the request takes, unless the request or the task has one.
    route: Option<Arc<RetryRule>>,
    per_request: PerRequest,
}

impl<'a> InForce<'a> {
    #[inline]
    pub(in crate::middleware) fn new(
        built_with: &'a RetryPolicy,
        extensions: &Extensions,
        request: &Request,
    ) -> Self {
        let (policy, per_request) = PerRequest::in_force(built_with, extensions);
        let route = match per_request.rule() {
            Some(_) => None,
            None => policy.settings().routes.rule_for(request.url()).cloned(),
        };
        Self {
            built_with,
            policy,
            route,
            per_request,
        }
    }

    /// For a work, which goes nowhere by itself.
    pub(in crate::middleware) fn of_work(built_with: &'a RetryPolicy) -> Self {
        let (policy, per_request) = PerRequest::in_force(built_with, &Extensions::new());
        Self {
            built_with,
            policy,
            route: None,
            per_request,
        }
    }

    /// The rule of a work for a request to this URL.
    pub(in crate::middleware) fn rule_for(&self, url: Option<&Url>) -> &RetryRule {
        match (self.per_request.rule(), url) {
            (None, Some(url)) => self.policy.rule_for(url),
            _ => self.rule(),
        }
    }

    /// True if a request goes through untouched: no retry is wanted, and nothing concerns even a
    /// single attempt.
    #[inline]
    pub(in crate::middleware) fn passes_through(&self) -> bool {
        self.rule().max_retries == 0
            && self.total_timeout().is_none()
            && self.per_request.deadline().is_none()
            && self.log().is_none()
            && self.body_source().is_none()
            && !self.settings().concerns_one_attempt()
    }

    #[inline]
    pub(in crate::middleware) fn rule(&self) -> &RetryRule {
        let nearer = self.per_request.rule().or(self.route.as_deref());
        nearer.unwrap_or_else(|| self.policy.rule())
    }

    #[inline]
    pub(in crate::middleware) fn settings(&self) -> &Settings {
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
    pub(super) fn body_source(&self) -> Option<&BodySource> {
        self.per_request.body_source()
    }

    /// What the caller states of the request, if anything.
    #[inline]
    pub(super) fn replay_safe(&self) -> Option<bool> {
        self.per_request.replay_safe()
    }

    /// True if the rule or a condition could ever allow a retry.
    #[inline]
    pub(super) fn could_retry(&self, method: &Method, idempotent: bool) -> bool {
        let rule = self.rule();
        rule.could_retry(method, idempotent)
            || rule.max_retries > 0 && self.settings().could_retry(method, idempotent)
    }
}
