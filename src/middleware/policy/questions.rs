//! What the loop asks of a policy.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderName, Method};
use reqwest::Response;
use reqwest_middleware::Error;

use super::{BudgetChoice, RetryPolicy};
use crate::middleware::clock;
use crate::middleware::head::ResponseHead;
use crate::middleware::observer::RetryObserver;
use crate::middleware::origins::RetryBudget;
use crate::rule::{Methods, RetryRule, TransportError};

impl RetryPolicy {
    /// This policy with another rule.
    pub(crate) fn with_rule(&self, rule: Arc<RetryRule>) -> Self {
        Self {
            rule,
            settings: Arc::clone(&self.settings),
        }
    }

    /// The budget of this policy, which is in force in place of `outer`.
    pub(crate) fn budget_within<'a>(&'a self, outer: &'a Self) -> Option<&'a RetryBudget> {
        match &self.settings.budget {
            BudgetChoice::Set(budget) => Some(budget),
            BudgetChoice::Off => None,
            BudgetChoice::Unset(_) => match &outer.settings.budget {
                BudgetChoice::Set(budget) => Some(budget),
                BudgetChoice::Unset(budget) => Some(budget.get_or_init(RetryBudget::default)),
                BudgetChoice::Off => None,
            },
        }
    }

    /// Whether anything here concerns a single attempt, so that a request is not passed through
    /// even where no retry is possible.
    pub(crate) fn concerns_one_attempt(&self) -> bool {
        let s = &*self.settings;
        s.total_timeout.is_some()
            || s.attempt_timeout.is_some()
            || s.idempotency_key.is_some()
            || s.complete_body > 0
    }

    /// Whether a condition could allow this method.
    pub(crate) fn could_retry(&self, method: &Method, idempotent: bool) -> bool {
        self.settings
            .conditions
            .iter()
            .any(|c| c.methods.allows(method, idempotent))
    }

    /// The methods of the conditions that hold: of the first that allows the method, else of the
    /// first.
    #[inline]
    pub(crate) fn condition(
        &self,
        response: &Response,
        method: &Method,
        idempotent: bool,
    ) -> Option<&Methods> {
        let head = ResponseHead::from(response);
        let mut held = None;
        for condition in self.settings.conditions.iter().filter(|c| (c.holds)(&head)) {
            if condition.methods.allows(method, idempotent) {
                return Some(&condition.methods);
            }
            held = held.or(Some(&condition.methods));
        }
        held
    }

    pub(crate) fn delay_of(&self, response: &Response) -> Option<Duration> {
        self.settings.server_delay.as_ref()?(&ResponseHead::from(response))
    }

    pub(crate) fn class_of(&self, error: &Error) -> Option<TransportError> {
        self.settings.classify_with.as_ref()?(error)
    }

    pub(crate) fn refuses(&self, failure: &TransportError) -> bool {
        self.settings
            .retry_failures_if
            .as_ref()
            .is_some_and(|test| !test(failure))
    }

    pub(crate) fn whole_send(&self) -> Option<Duration> {
        self.settings.total_timeout
    }

    pub(crate) fn each_attempt(&self) -> Option<Duration> {
        self.settings.attempt_timeout
    }

    pub(crate) fn count_header(&self) -> Option<&HeaderName> {
        self.settings.attempt_header.as_ref()
    }

    pub(crate) fn key_header(&self) -> Option<&HeaderName> {
        self.settings.idempotency_key.as_ref()
    }

    pub(crate) fn drains(&self) -> usize {
        self.settings.drain_limit
    }

    pub(crate) fn completes(&self) -> usize {
        self.settings.complete_body
    }

    pub(crate) fn observers(&self) -> &[Arc<dyn RetryObserver>] {
        &self.settings.observers
    }

    pub(crate) fn random(&self) -> f64 {
        self.settings
            .jitter_source
            .as_ref()
            .map_or_else(clock::random, |source| source())
    }

    pub(crate) fn time_of_day(&self) -> SystemTime {
        self.settings
            .wall_clock
            .as_ref()
            .map_or_else(clock::wall_clock, |clock| clock())
    }
}
