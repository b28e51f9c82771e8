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

/// What the request, the task and the middleware come to, once all of them are heard.
pub(crate) struct Plan<'a> {
    pub(crate) policy: Cow<'a, RetryPolicy>,
    pub(crate) started: Instant,
    /// When the whole send must be over.
    pub(crate) ends: Option<Instant>,
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
    /// Hears the request, then the task, then what the middleware was built with. `None` is for a
    /// request that goes through untouched: no retry is wanted, and nothing concerns even a single
    /// attempt.
    pub(crate) fn new(built_with: &'a RetryPolicy, extensions: &Extensions) -> Option<Self> {
        let Some(heard) = Overrides::heard(extensions) else {
            let policy = Cow::Borrowed(built_with);
            return Self::of(policy, built_with.whole_send(), None, None);
        };
        let mut policy = heard.policy.map_or(Cow::Borrowed(built_with), Cow::Owned);
        if let Some(rule) = heard.rule {
            policy = Cow::Owned(policy.with_rule(rule));
        }
        let said = Said {
            replay_safe: heard.replay_safe.map(|safe| safe.0),
            label: heard.label,
            log: extensions.get().cloned(),
            body_source: extensions.get().cloned(),
        };
        let total = heard.total_timeout.map(|total| total.0);
        let total = earliest(policy.whole_send(), total);
        let deadline = heard.deadline.and_then(Deadline::moment);
        Self::of(policy, total, deadline, Some(Box::new(said)))
    }

    fn of(
        policy: Cow<'a, RetryPolicy>,
        total: Option<Duration>,
        deadline: Option<Instant>,
        said: Option<Box<Said>>,
    ) -> Option<Self> {
        let is_wanted = policy.rule().max_retries > 0
            || total.is_some()
            || deadline.is_some()
            || policy.concerns_one_attempt()
            || said
                .as_ref()
                .is_some_and(|said| said.log.is_some() || said.body_source.is_some());
        if !is_wanted {
            return None;
        }
        // Not read earlier: passing through costs hardly more than the clock.
        let started = clock::now();
        let total = total.and_then(|total| started.checked_add(total));
        Some(Self {
            policy,
            started,
            ends: earliest(total, deadline),
            said,
        })
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
        said.unwrap_or_else(|| has_key || method.is_idempotent())
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
