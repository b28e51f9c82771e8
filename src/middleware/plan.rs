//! What is in force for one send.

use std::borrow::Cow;
use std::time::Duration;

use http::{Extensions, Method};
use tokio::time::Instant;

use super::body_source::BodySource;
use super::clock;
use super::overrides::{Deadline, Overrides, earliest};
use super::policy::RetryPolicy;
use super::report::{RetryLabel, RetryLog};
use super::span::Span;
use crate::rule::is_idempotent;

/// What the request, the task and the middleware come to, once all of them are heard.
pub(crate) struct Plan<'a> {
    pub(crate) policy: Cow<'a, RetryPolicy>,
    /// How long the whole send may take.
    total: Option<Duration>,
    /// When it must be over.
    deadline: Option<Instant>,
    /// In a box, since most sends have nothing to say.
    said: Option<Box<Said>>,
}

/// What is said of one send, beside its policy and its time.
struct Said {
    replay_safe: Option<bool>,
    label: Option<RetryLabel>,
    log: Option<RetryLog>,
    body_source: Option<BodySource>,
}

impl<'a> Plan<'a> {
    /// Hears the request, then the task, then what the middleware was built with.
    pub(crate) fn new(built_with: &'a RetryPolicy, extensions: &Extensions) -> Self {
        let Some(heard) = Overrides::heard(extensions) else {
            return Self {
                policy: Cow::Borrowed(built_with),
                total: built_with.whole_send(),
                deadline: None,
                said: None,
            };
        };
        let mut policy = heard.policy.map_or(Cow::Borrowed(built_with), Cow::Owned);
        if let Some(rule) = heard.rule {
            policy = Cow::Owned(policy.with_rule(rule));
        }
        // One that the clock cannot hold is none.
        let total = heard.total_timeout.map(|total| total.0);
        let total = total.filter(|total| clock::after(*total).is_some());
        let said = Said {
            replay_safe: heard.replay_safe.map(|safe| safe.0),
            label: heard.label,
            log: extensions.get().cloned(),
            body_source: extensions.get().cloned(),
        };
        let says_anything = said.replay_safe.is_some()
            || said.label.is_some()
            || said.log.is_some()
            || said.body_source.is_some();
        Self {
            total: earliest(policy.whole_send(), total),
            policy,
            deadline: heard.deadline.and_then(Deadline::moment),
            said: says_anything.then(|| Box::new(said)),
        }
    }

    /// Whether a request goes through untouched: no retry is wanted, and nothing concerns even a
    /// single attempt.
    pub(crate) fn passes_through(&self) -> bool {
        self.policy.rule().max_retries == 0
            && self.total.is_none()
            && self.deadline.is_none()
            && self.log().is_none()
            && self.body_source().is_none()
            && !self.policy.concerns_one_attempt()
    }

    /// The time of a send that starts now.
    pub(crate) fn span(&self) -> Span {
        Span::new(self.total, self.deadline)
    }

    pub(crate) fn label(&self) -> Option<&RetryLabel> {
        self.said.as_ref()?.label.as_ref()
    }

    pub(crate) fn log(&self) -> Option<&RetryLog> {
        self.said.as_ref()?.log.as_ref()
    }

    pub(crate) fn body_source(&self) -> Option<&BodySource> {
        self.said.as_ref()?.body_source.as_ref()
    }

    /// Whether sending this request twice counts as sending it once.
    pub(crate) fn idempotent(&self, method: &Method, has_key: bool) -> bool {
        let said = self.said.as_ref().and_then(|said| said.replay_safe);
        said.unwrap_or_else(|| has_key || is_idempotent(method))
    }

    /// Whether the rule or a condition could ever allow a retry.
    pub(crate) fn could_retry(&self, method: &Method, idempotent: bool) -> bool {
        let rule = self.policy.rule();
        rule.could_retry(method, idempotent)
            || rule.max_retries > 0 && self.policy.could_retry(method, idempotent)
    }
}
