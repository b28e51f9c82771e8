//! What the request and the task around it set for one send.

use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, Method};
use tokio::time::Instant;

use super::{Deadline, Overrides};
use crate::middleware::clock;
use crate::middleware::policy::RetryPolicy;
use crate::middleware::report::{RetryLabel, RetryLog};
use crate::middleware::request::BodySource;
use crate::rule::{RetryRule, is_idempotent};

/// What is set for one send, in a box: for most sends nothing is.
#[derive(Default)]
pub(in crate::middleware) struct PerRequest(Option<Box<Values>>);

struct Values {
    policy: Option<RetryPolicy>,
    rule: Option<Arc<RetryRule>>,
    replay_safe: Option<bool>,
    total_timeout: Option<Duration>,
    deadline: Option<Instant>,
    label: Option<RetryLabel>,
    log: Option<RetryLog>,
    body_source: Option<BodySource>,
}

impl PerRequest {
    /// What the request's own extensions set, then the task around it, then the shared map.
    ///
    /// A work (which is no request) is asked about with an empty map.
    #[inline]
    pub(in crate::middleware) fn in_force(extensions: &Extensions) -> Self {
        let Some(overrides) = Overrides::in_force(extensions) else {
            return Self::default();
        };
        let values = Values {
            policy: overrides.policy,
            rule: overrides.rule,
            replay_safe: overrides.replay_safe.map(|safe| safe.0),
            total_timeout: overrides.total_timeout.map(|timeout| timeout.0),
            deadline: overrides.deadline.and_then(Deadline::moment),
            label: overrides.label,
            log: overrides.log,
            body_source: extensions.get().cloned(),
        };
        Self((!values.is_empty()).then(|| Box::new(values)))
    }

    /// The policy in place of the middleware's.
    #[inline]
    pub(super) fn policy(&self) -> Option<&RetryPolicy> {
        self.0.as_ref()?.policy.as_ref()
    }

    /// The rule that replaces that of the policy, and those of its routes.
    #[inline]
    pub(super) fn rule(&self) -> Option<&RetryRule> {
        self.0.as_ref()?.rule.as_deref()
    }

    /// What is stated of the request: whether it may be repeated whatever its method.
    #[inline]
    pub(super) fn replay_safe(&self) -> Option<bool> {
        self.0.as_ref()?.replay_safe
    }

    /// True if the request may be repeated, by what is stated of it or else by its method.
    #[inline]
    pub(in crate::middleware) fn idempotent(&self, method: &Method) -> bool {
        self.replay_safe().unwrap_or_else(|| is_idempotent(method))
    }

    /// How long the whole send may take, if the policy says `of_policy`: the nearer one counts, and
    /// one that is too long for the clock is no bound.
    #[inline]
    pub(super) fn total_timeout(&self, of_policy: Option<Duration>) -> Option<Duration> {
        match self.0.as_ref().and_then(|values| values.total_timeout) {
            Some(own) => Some(own).filter(|own| clock::after(*own).is_some()),
            None => of_policy,
        }
    }

    /// The moment by which it must be over, whatever its total timeout.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.as_ref()?.deadline
    }

    #[inline]
    pub(super) fn label(&self) -> Option<&RetryLabel> {
        self.0.as_ref()?.label.as_ref()
    }

    #[inline]
    pub(super) fn log(&self) -> Option<&RetryLog> {
        self.0.as_ref()?.log.as_ref()
    }

    #[inline]
    pub(super) fn body_source(&self) -> Option<&BodySource> {
        self.0.as_ref()?.body_source.as_ref()
    }
}

impl Values {
    fn is_empty(&self) -> bool {
        self.policy.is_none()
            && self.rule.is_none()
            && self.replay_safe.is_none()
            && self.total_timeout.is_none()
            && self.deadline.is_none()
            && self.label.is_none()
            && self.log.is_none()
            && self.body_source.is_none()
    }
}
