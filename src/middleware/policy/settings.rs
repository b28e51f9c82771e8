//! What a policy holds beside its rule.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use http::{HeaderName, Method};
use reqwest_middleware::Error;

use super::closures::{BodyJudge, Classify, Condition, ServerDelay, Veto};
use super::routes::Routes;
use crate::middleware::clock;
use crate::middleware::observer::RetryObserver;
use crate::middleware::origins::{OriginPauses, RetryBudget};
use crate::middleware::response::ResponseHead;
use crate::middleware::trace::LogLevel;
use crate::rule::{AttemptOutcome, Methods, TransportError};

/// How much of a refused response is read by default while the wait runs: 64 KiB.
const DRAIN_LIMIT: usize = 64 * 1024;

/// One field for each setter, under the setter's name.
#[derive(Clone)]
pub(in crate::middleware) struct Settings {
    pub(super) retry_if: Vec<Condition>,
    pub(in crate::middleware) judge_body: Option<BodyJudge>,
    pub(super) server_delay: Option<Arc<ServerDelay>>,
    pub(super) classify_with: Option<Arc<Classify>>,
    pub(super) veto: Vec<Arc<Veto>>,
    pub(in crate::middleware) total_timeout: Option<Duration>,
    pub(in crate::middleware) attempt_timeout: Option<Duration>,
    pub(in crate::middleware) head_timeout: Option<Duration>,
    pub(super) budget: BudgetChoice,
    pub(in crate::middleware) pause_origins: Option<OriginPauses>,
    pub(in crate::middleware) attempt_header: Option<HeaderName>,
    pub(in crate::middleware) idempotency_key: Option<HeaderName>,
    pub(in crate::middleware) drain_limit: usize,
    pub(in crate::middleware) complete_body: usize,
    pub(in crate::middleware) routes: Routes,
    pub(in crate::middleware) observers: Vec<Arc<dyn RetryObserver>>,
    pub(in crate::middleware) log_levels: LogLevels,
    pub(super) jitter_source: Option<Arc<dyn Fn() -> f64 + Send + Sync>>,
    pub(super) wall_clock: Option<Arc<dyn Fn() -> SystemTime + Send + Sync>>,
}

/// The levels at which events are written.
#[derive(Clone, Copy)]
pub(in crate::middleware) struct LogLevels {
    /// For a retry, and for an answer that took one.
    pub(in crate::middleware) retry: LogLevel,
    /// For a failed send that is given up.
    pub(in crate::middleware) stop: LogLevel,
}

/// A budget that was set replaces the one further out. The one that every policy starts with does
/// not, and is made when it is first needed: most policies of single requests never need it.
#[derive(Clone, Debug)]
pub(super) enum BudgetChoice {
    Unset(Arc<OnceLock<RetryBudget>>),
    Set(RetryBudget),
    Off,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retry_if: Vec::new(),
            judge_body: None,
            server_delay: None,
            classify_with: None,
            veto: Vec::new(),
            total_timeout: None,
            attempt_timeout: None,
            head_timeout: None,
            budget: BudgetChoice::Unset(Arc::default()),
            pause_origins: None,
            attempt_header: None,
            idempotency_key: None,
            drain_limit: DRAIN_LIMIT,
            complete_body: 0,
            routes: Routes::default(),
            observers: Vec::new(),
            log_levels: LogLevels {
                retry: LogLevel::Info,
                stop: LogLevel::Warn,
            },
            jitter_source: None,
            wall_clock: None,
        }
    }
}

impl Settings {
    /// The budget in force if these settings replace those of `outer`.
    #[inline]
    pub(in crate::middleware) fn budget_within<'a>(
        &'a self,
        outer: &'a Self,
    ) -> Option<&'a RetryBudget> {
        match &self.budget {
            BudgetChoice::Set(budget) => Some(budget),
            BudgetChoice::Off => None,
            BudgetChoice::Unset(_) => match &outer.budget {
                BudgetChoice::Set(budget) => Some(budget),
                BudgetChoice::Unset(budget) => Some(budget.get_or_init(RetryBudget::default)),
                BudgetChoice::Off => None,
            },
        }
    }

    /// Takes over what `old` remembers of origins, as far as both want the same.
    pub(super) fn keep_origins_of(&mut self, old: &Self) {
        match (&mut self.budget, &old.budget) {
            (BudgetChoice::Unset(new), BudgetChoice::Unset(old)) => *new = Arc::clone(old),
            (BudgetChoice::Set(new), BudgetChoice::Set(old)) if new.has_terms_of(old) => {
                *new = old.clone();
            }
            _ => {}
        }
        if let (Some(new), Some(old)) = (&mut self.pause_origins, &old.pause_origins) {
            if new.terms() == old.terms() {
                *new = old.clone();
            }
        }
    }

    /// True if something here concerns even a single attempt, so that a request is not passed
    /// through although no retry is possible.
    #[inline]
    pub(in crate::middleware) fn concerns_one_attempt(&self) -> bool {
        self.total_timeout.is_some()
            || self.attempt_timeout.is_some()
            || self.head_timeout.is_some()
            || self.idempotency_key.is_some()
            || self.complete_body > 0
            || self.pause_origins.is_some()
            || !self.observers.is_empty()
    }

    /// True if one of the closures is given a response's head.
    #[inline]
    pub(in crate::middleware) fn looks_at_heads(&self) -> bool {
        !self.retry_if.is_empty() || self.server_delay.is_some() || self.judge_body.is_some()
    }

    /// True if a condition or the judge of bodies could allow this method.
    #[inline]
    pub(in crate::middleware) fn could_retry(&self, method: &Method, idempotent: bool) -> bool {
        let of_conditions = self.retry_if.iter().map(|condition| &condition.methods);
        let of_judge = self.judge_body.iter().map(|judge| &judge.methods);
        of_conditions
            .chain(of_judge)
            .any(|methods| methods.allows(method, idempotent))
    }

    /// The methods of the conditions that hold: of the first that allows the method, else of the
    /// first.
    #[inline]
    pub(in crate::middleware) fn retry_if(
        &self,
        head: &ResponseHead<'_>,
        method: &Method,
        idempotent: bool,
    ) -> Option<&Methods> {
        let mut first = None;
        for condition in self.retry_if.iter().filter(|each| (each.holds)(head)) {
            if condition.methods.allows(method, idempotent) {
                return Some(&condition.methods);
            }
            first = first.or(Some(&condition.methods));
        }
        first
    }

    pub(in crate::middleware) fn server_delay(&self, head: &ResponseHead<'_>) -> Option<Duration> {
        self.server_delay.as_ref()?(head)
    }

    pub(in crate::middleware) fn classify_with(&self, error: &Error) -> Option<TransportError> {
        self.classify_with.as_ref()?(error)
    }

    pub(in crate::middleware) fn veto(&self, outcome: &AttemptOutcome<'_>) -> bool {
        self.veto.iter().any(|veto| veto(outcome))
    }

    pub(in crate::middleware) fn jitter_source(&self) -> f64 {
        self.jitter_source
            .as_ref()
            .map_or_else(clock::random, |source| source())
    }

    pub(in crate::middleware) fn wall_clock(&self) -> SystemTime {
        self.wall_clock
            .as_ref()
            .map_or_else(clock::wall_clock, |clock| clock())
    }
}
