//! What is to be done about a failed call of a work: the facts are put together, and the rule decides.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use reqwest::Url;
use tokio::time::Instant;

use super::cause::{Cause, CauseKind, OwnError};
use super::failure::Failure;
use super::progress::Progress;
use crate::middleware::clock;
use crate::middleware::report::{AttemptRecord, AttemptResult};
use crate::middleware::response::{ResponseHead, answered_at};
use crate::middleware::tracking::{Sends, Sent, SentRefusal, UNSEEN, WorkCall};
use crate::middleware::wait::Wait;
use crate::rule::{Attempt, AttemptOutcome, Methods, RetryRule, StopReason, TransportError};

/// A call of a work that failed: which of its sends did, and how.
pub(super) struct FailedCall {
    pub(super) result: AttemptResult,
    /// The send that failed, if it was seen.
    pub(super) sent: Option<Arc<Sent>>,
    pub(super) url: Option<Url>,
    /// How long the server asked to wait.
    pub(super) asked: Option<Duration>,
}

impl FailedCall {
    pub(super) fn method(&self) -> &Method {
        self.sent.as_ref().map_or(&UNSEEN, |sent| &sent.method)
    }
}

/// A send of the call, beside the one that failed, which keeps the work from being done again.
struct Obstacle<'a> {
    method: &'a Method,
    idempotent: bool,
    /// What its rule says of it: not that it may be sent again.
    sent_failures: &'a Methods,
}

type Decided = Result<Wait, StopReason>;

impl Progress<'_> {
    /// Asks the rule, then the budget. The call is recorded, and a repetition is announced.
    pub(super) fn judge(
        &mut self,
        call: &WorkCall,
        failure: Failure<'_>,
    ) -> Result<Wait, StopReason> {
        let at = clock::now();
        let (failed, decided) = match failure {
            Failure::ByRule(error) => self.by_rule(call, error, at),
            Failure::Retry(methods) => self.by_judge(call, &methods, None, at),
            Failure::RetryAfter(methods, wait) => self.by_judge(call, &methods, Some(wait), at),
            Failure::Stop => self.other(call),
        };
        let decided = decided.and_then(|wait| self.withdraw(&failed, wait));
        if decided.is_ok() {
            // Here, so that no other decision of these works comes in between.
            call.count(call.retries().saturating_add(1));
        }
        let mut record = AttemptRecord::new(failed.result, self.call_elapsed(at));
        record.asked = failed.asked;
        self.record(record, failed);
        let wait = decided?;
        self.announce_retry(call, wait);
        self.record_wait(wait);
        Ok(wait)
    }

    /// The error is no failure of the transport, or the judge says no.
    fn other(&self, call: &WorkCall) -> (FailedCall, Decided) {
        let sent = call.last_send();
        let failed = FailedCall {
            result: AttemptResult::Error,
            url: sent.as_ref().map(|sent| sent.url.clone()),
            sent,
            asked: None,
        };
        (failed, Err(StopReason::NotRetryable))
    }

    fn by_rule(
        &self,
        call: &WorkCall,
        error: &(dyn StdError + 'static),
        at: Instant,
    ) -> (FailedCall, Decided) {
        let cause = Cause::of(error, self.in_force.settings());
        let sends = call.sends();
        let sent = self.failed_send(&sends, &cause);
        let failure = |class: TransportError| {
            // Unsent is what was unsent in every try.
            let processed = sent.is_some_and(|sent| sent.may_be_processed());
            let class = if processed {
                class.after_redirect()
            } else {
                class
            };
            let result = AttemptResult::Failure(class);
            (result, AttemptOutcome::Failure(class))
        };
        let no_headers = HeaderMap::new();
        let headers = sent.and_then(|sent| sent.headers()).unwrap_or(&no_headers);
        let (result, outcome) = match cause.kind {
            CauseKind::Other => return self.other(call),
            CauseKind::Status(status) => {
                let outcome = AttemptOutcome::Response { status, headers };
                (AttemptResult::Status(status), outcome)
            }
            CauseKind::Body(class) => failure(class),
            CauseKind::Own(own) => failure(own.class()),
            CauseKind::NoHead(class) => {
                failure(sent.and_then(|sent| sent.class()).unwrap_or(class))
            }
        };
        let mut failed = FailedCall {
            result,
            url: sent.map(|sent| &sent.url).or(cause.url).cloned(),
            sent: sent.cloned(),
            asked: None,
        };
        let obstacle = self.obstacle(&sends, sent);
        let rule = self.rule(failed.url.as_ref(), obstacle.as_ref());
        let refused = sent.filter(|_| matches!(cause.kind, CauseKind::Status(_)));
        let (method, idempotent, replaced) = match (&obstacle, sent) {
            (Some(other), _) => (other.method, other.idempotent, true),
            (None, Some(sent)) => (&sent.method, sent.idempotent, sent.lost_answers()),
            (None, None) => (&*UNSEEN, false, false),
        };
        let mut facts = Attempt {
            idempotent,
            replaced,
            ..self.facts(call, method, at)
        };
        facts.paused = match cause.kind {
            CauseKind::Own(OwnError::Paused(wait)) => Some(wait),
            _ => self.origin_pause(failed.url.as_ref(), at),
        };
        let head = refused.and_then(|sent| sent.head(call.retries()));
        let by_client = refused.and_then(|sent| sent.refusal());
        self.add_findings(&mut facts, by_client, head.as_ref(), &outcome);
        failed.asked = rule.asked(&outcome, &facts);
        if let CauseKind::Own(OwnError::TotalTimeout) = cause.kind {
            if call.time().is_over(at) {
                return (failed, Err(StopReason::TotalTimeout));
            }
        }
        let decided = rule.wait_or_reason(&outcome, &facts);
        (failed, decided.map(|wait| Wait::after(wait, at)))
    }

    /// What is known of every call that failed: the count, the time and chance. It is judged as a
    /// request of this method.
    fn facts<'f>(&self, call: &WorkCall, method: &'f Method, at: Instant) -> Attempt<'f> {
        Attempt {
            attempt: call.retries(),
            random: self.in_force.settings().jitter_source(),
            elapsed: call.time().elapsed(at),
            remaining: call.time().remaining(at),
            ..Attempt::new(method)
        }
    }

    /// Adds what closures and judges found in the response that was refused: those of the client's
    /// policy by then, and those of the work's own now.
    fn add_findings<'f>(
        &'f self,
        facts: &mut Attempt<'f>,
        by_client: Option<&'f SentRefusal>,
        head: Option<&ResponseHead<'_>>,
        outcome: &AttemptOutcome<'_>,
    ) {
        let settings = self.in_force.settings();
        let condition = head.and_then(|head| {
            let held = settings.retry_if(head, facts.method, facts.idempotent);
            let decides = |held: &&Methods| held.allows(facts.method, facts.idempotent);
            let by_client = by_client.and_then(|found| found.condition.as_ref());
            held.filter(decides).or(by_client).or(held)
        });
        let time_of_day = |headers| answered_at(headers).unwrap_or_else(|| settings.wall_clock());
        facts.condition = condition;
        facts.now = head.map(|head| time_of_day(head.headers()));
        facts.server_delay = by_client
            .and_then(|found| found.server_delay)
            .or_else(|| settings.server_delay(head?));
        facts.vetoed = by_client.is_some_and(|found| found.vetoed) || settings.veto(outcome);
    }

    /// The rule for what failed at this URL. If another send keeps the work from being done again, by
    /// a rule of its own route, the rule here must not say otherwise.
    fn rule(&self, url: Option<&Url>, obstacle: Option<&Obstacle<'_>>) -> Cow<'_, RetryRule> {
        let rule = self.in_force.rule_for(url);
        match obstacle.map(|other| other.sent_failures) {
            Some(sent_failures) if *sent_failures != rule.sent_failures => Cow::Owned(RetryRule {
                sent_failures: sent_failures.clone(),
                ..rule.clone()
            }),
            _ => Cow::Borrowed(rule),
        }
    }

    /// A send that may have been processed and may not be sent again, other than the one that failed.
    fn obstacle<'s>(
        &'s self,
        sends: &'s Sends,
        failed: Option<&Arc<Sent>>,
    ) -> Option<Obstacle<'s>> {
        let is_failed = |other: &Arc<Sent>| failed.is_some_and(|sent| Arc::ptr_eq(sent, other));
        let kept = sends
            .kept()
            .find(|other| !is_failed(other) && other.may_be_processed() && !self.may_repeat(other));
        if let Some(other) = kept {
            let rule = self.in_force.rule_for(Some(&other.url));
            return Some(Obstacle {
                method: &other.method,
                idempotent: other.idempotent,
                sent_failures: &rule.sent_failures,
            });
        }
        // Where these went is not known any more, so each rule has to allow them.
        let unsafe_ones = sends.forgotten().iter().filter(|kind| !kind.idempotent);
        unsafe_ones
            .flat_map(|kind| self.in_force.rules().map(move |rule| (kind, rule)))
            .find(|(kind, rule)| !rule.sent_failures.allows(&kind.method, false))
            .map(|(kind, rule)| Obstacle {
                method: &kind.method,
                idempotent: false,
                sent_failures: &rule.sent_failures,
            })
    }

    /// True if a send may be sent again although it was processed.
    fn may_repeat(&self, sent: &Sent) -> bool {
        let rule = self.in_force.rule_for(Some(&sent.url));
        sent.idempotent || sent.is_among(&rule.sent_failures)
    }

    /// The send that the error is about: of several that fit, the one that is least to be repeated,
    /// and of those the last. `None` if it was not seen.
    fn failed_send<'s>(&self, sends: &'s Sends, cause: &Cause<'_>) -> Option<&'s Arc<Sent>> {
        let fits = |sent: &&Arc<Sent>| match cause.kind {
            CauseKind::Status(status) => {
                sent.status() == Some(status) && sent.answered_from(cause.url)
            }
            CauseKind::Body(_) => sent.answered_from(cause.url),
            CauseKind::NoHead(_) | CauseKind::Own(_) => sent.failed_at(cause.url),
            CauseKind::Other => false,
        };
        let fitting = sends.kept().rev().filter(fits);
        fitting.min_by_key(|sent| self.may_repeat(sent))
    }

    /// The judge wants the work again, and names the methods for which that is safe.
    fn by_judge(
        &self,
        call: &WorkCall,
        methods: &Methods,
        asked: Option<Duration>,
        at: Instant,
    ) -> (FailedCall, Decided) {
        let (failed, _) = self.other(call);
        let sends = call.sends();
        let kept = sends.kept().filter(|sent| sent.may_be_processed());
        let kept = kept.map(|sent| (&sent.method, sent.idempotent));
        let forgotten = sends.forgotten().iter();
        let forgotten = forgotten.map(|kind| (&kind.method, kind.idempotent));
        let mut processed = forgotten.chain(kept);
        let forbidden = processed
            .clone()
            .find(|sent| !methods.allows(sent.0, sent.1));
        let judged = forbidden.or_else(|| processed.next_back());
        // If nothing was processed, there is nothing that the methods must allow.
        let allowed = match judged {
            None if *methods != Methods::Never => &Methods::Any,
            _ => methods,
        };
        let (method, idempotent) = judged.unwrap_or((&UNSEEN, false));
        let mut facts = Attempt {
            server_delay: asked,
            condition: Some(allowed),
            idempotent,
            ..self.facts(call, method, at)
        };
        facts.paused = self.origin_pause(failed.url.as_ref(), at);
        // The rows are for responses, and it is the judge who refuses here.
        let rule = RetryRule {
            statuses: Vec::new(),
            ..self.in_force.rule_for(failed.url.as_ref()).clone()
        };
        let outcome = AttemptOutcome::Response {
            status: StatusCode::OK,
            headers: &HeaderMap::new(),
        };
        let decided = rule.wait_or_reason(&outcome, &facts);
        let failed = FailedCall { asked, ..failed };
        (failed, decided.map(|wait| Wait::after(wait, at)))
    }

    /// How long the origin of the failed send still asks for rest.
    fn origin_pause(&self, url: Option<&Url>, at: Instant) -> Option<Duration> {
        let settings = self.in_force.settings();
        let pauses = settings.pause_origins.as_ref()?;
        pauses.left(&url?.into(), || settings.jitter_source(), at)
    }

    /// Takes the repetition out of the budget of the failed send's origin.
    fn withdraw(&self, failed: &FailedCall, wait: Wait) -> Decided {
        match (self.in_force.budget(), &failed.url) {
            (Some(budget), Some(url)) if !budget.withdraw(url) => Err(StopReason::Throttled),
            _ => Ok(wait),
        }
    }
}
