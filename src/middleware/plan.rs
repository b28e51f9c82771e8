//! What is in force for one send.

use std::borrow::Cow;
use std::time::Duration;

use http::{Extensions, Method};

use super::body_source::BodySource;
use super::overrides::PerRequest;
use super::policy::RetryPolicy;
use super::report::{RetryLabel, RetryLog};
use super::span::Span;

/// What the request, the task and the middleware come to, once all of them are heard.
pub(crate) struct Plan<'a> {
    pub(crate) policy: Cow<'a, RetryPolicy>,
    /// How long the whole send may take.
    total: Option<Duration>,
    per_request: PerRequest,
}

impl<'a> Plan<'a> {
    /// Hears the request, then the task, then what the middleware was built with.
    pub(crate) fn new(built_with: &'a RetryPolicy, extensions: &Extensions) -> Self {
        let (policy, per_request) = PerRequest::in_force(built_with, extensions);
        Self {
            total: per_request.total_timeout(policy.whole_send()),
            policy,
            per_request,
        }
    }

    /// Whether a request goes through untouched: no retry is wanted, and nothing concerns even a
    /// single attempt.
    pub(crate) fn passes_through(&self) -> bool {
        self.policy.rule().max_retries == 0
            && self.total.is_none()
            && self.per_request.deadline().is_none()
            && self.log().is_none()
            && self.body_source().is_none()
            && !self.policy.concerns_one_attempt()
    }

    /// The time of a send that starts now.
    pub(crate) fn span(&self) -> Span {
        Span::new(self.total, self.per_request.deadline())
    }

    pub(crate) fn label(&self) -> Option<&RetryLabel> {
        self.per_request.label()
    }

    pub(crate) fn log(&self) -> Option<&RetryLog> {
        self.per_request.log()
    }

    pub(crate) fn body_source(&self) -> Option<&BodySource> {
        self.per_request.body_source()
    }

    /// Whether sending this request twice counts as sending it once.
    pub(crate) fn idempotent(&self, method: &Method, has_key: bool) -> bool {
        let stated = self.per_request.replay_safe();
        stated.unwrap_or_else(|| has_key || method.is_idempotent())
    }

    /// Whether the rule or a condition could ever allow a retry.
    pub(crate) fn could_retry(&self, method: &Method, idempotent: bool) -> bool {
        let rule = self.policy.rule();
        rule.could_retry(method, idempotent)
            || rule.max_retries > 0 && self.policy.could_retry(method, idempotent)
    }
}
