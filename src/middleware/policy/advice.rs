//! What of a rule is worth a warning when a middleware is made.

use super::{RetryPolicy, Settings};
use crate::middleware::trace::{self, LogLevel};
use crate::rule::{Advice, RetryRule};

impl RetryPolicy {
    /// Writes an event for each rule that retries nothing, or retries at once. Equal rules have one
    /// together, for the first of them.
    pub(in crate::middleware) fn log_advice(&self) {
        if self.settings.log_levels.stop == LogLevel::Off {
            return;
        }
        let mut logged: Vec<&RetryRule> = Vec::new();
        let routes = self.settings.routes.rules().enumerate();
        let routes = routes.map(|(index, rule)| (Some(index), rule));
        for (route, rule) in std::iter::once((None, self.rule())).chain(routes) {
            if logged.contains(&rule) {
                continue;
            }
            for advice in rule.advice() {
                if self.settings.has_no_answer_to(&advice) {
                    trace::advice(&advice, route);
                    logged.push(rule);
                }
            }
        }
    }
}

impl Settings {
    /// True for advice that is worth a warning, and about which no closure may know better.
    fn has_no_answer_to(&self, advice: &Advice) -> bool {
        match advice {
            Advice::NothingRetried => self.retry_if.is_empty() && self.judge_body.is_none(),
            Advice::AgainAtOnce { .. } => self.server_delay.is_none() && self.judge_body.is_none(),
            _ => false,
        }
    }
}
