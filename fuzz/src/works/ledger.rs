//! What was done: every send, every request, and who had it made.

use std::collections::HashMap;

use http::Method;
use reqwest_retry_rules::{Methods, RetryRule};
use tokio::time::Instant;

use super::WorkError;
use super::plan::{ClientPlan, SendPlan, Then, Verdict, WorkPlan};

#[derive(Default)]
pub(super) struct Ledger {
    pub(super) sends: Vec<Sent>,
    /// How many works were begun.
    works: usize,
}

/// One send.
pub(super) struct Sent {
    /// The step that it belongs to: one of these for each call of its work.
    step: usize,
    method: Method,
    path: &'static str,
    /// True without the help of a key.
    idempotent: bool,
    /// True if it is idempotent, or has a key that stays the same for all its attempts.
    idempotent_here: bool,
    /// The rule of its client, and the methods for which that sends a 409 again.
    rule: RetryRule,
    retry_if: Option<Methods>,
    /// The calls that it was begun in, and by when their works must be over.
    around: Around,
    attempts: Vec<Attempt>,
}

struct Attempt {
    then: Then,
    /// False while it is on its way, and for ever if it was dropped.
    over: bool,
}

/// The works around a send or a work, and in which of their calls it was begun.
#[derive(Clone, Default)]
pub(super) struct Around(Vec<InCall>);

#[derive(Clone, Copy)]
struct InCall {
    work: usize,
    call: u32,
    ends: Option<Instant>,
}

impl Around {
    pub(super) fn with(&self, work: usize, call: u32, ends: Option<Instant>) -> Around {
        let mut around = self.0.clone();
        around.push(InCall { work, call, ends });
        Around(around)
    }
}

impl Ledger {
    /// Gives a work its number.
    pub(super) fn begin_work(&mut self) -> usize {
        self.works += 1;
        self.works
    }

    /// Notes a send, and gives it its number.
    pub(super) fn begin_send(
        &mut self,
        plan: &SendPlan,
        client: &ClientPlan,
        around: &Around,
    ) -> usize {
        let by_method = matches!(plan.method, Method::GET | Method::PUT);
        let idempotent = plan.safe.unwrap_or(by_method);
        self.sends.push(Sent {
            step: std::ptr::from_ref(plan) as usize,
            method: plan.method.clone(),
            path: plan.path,
            idempotent,
            idempotent_here: idempotent || client.keys && plan.safe.is_none(),
            rule: match plan.retries {
                true => client.rule.clone(),
                false => RetryRule::never(),
            },
            retry_if: client.retry_if.clone(),
            around: around.clone(),
            attempts: Vec::new(),
        });
        self.sends.len() - 1
    }

    /// A request of this send has come: it must be one that may be sent.
    pub(super) fn begin_attempt(&mut self, send: usize, then: Then, now: Instant) -> usize {
        let sent = &mut self.sends[send];
        for call in &sent.around.0 {
            assert!(call.ends.is_none_or(|ends| now < ends), "sent too late");
        }
        if let Some(last) = sent.attempts.last() {
            assert!(last.over, "sent again while it was on its way");
            assert!(
                sent.may_be_sent_after(last.then),
                "{} {} was sent again after {:?}",
                sent.method,
                sent.path,
                last.then
            );
        }
        sent.attempts.push(Attempt { then, over: false });
        sent.attempts.len() - 1
    }

    pub(super) fn end_attempt(&mut self, send: usize, attempt: usize) {
        self.sends[send].attempts[attempt].over = true;
    }

    fn of_call(&self, work: usize, call: u32) -> impl Iterator<Item = &Sent> {
        let is_in = move |sent: &&Sent| {
            let calls = &sent.around.0;
            calls.iter().any(|one| one.work == work && one.call == call)
        };
        self.sends.iter().filter(is_in)
    }

    /// A work is done again after this call: what it sent must be what may be sent again.
    pub(super) fn check_repetition(
        &self,
        plan: &WorkPlan,
        work: usize,
        call: u32,
        error: &WorkError,
    ) {
        let verdict = plan.verdict(call);
        assert!(!matches!(verdict, Verdict::Stop), "the judge said no");
        let is_forbidden = |sent: &&Sent| {
            let by_rule = &plan.rule_for(Some(sent.path)).sent_failures;
            let allowed = verdict.methods().unwrap_or(by_rule);
            sent.may_be_processed()
                && !allowed.allows(&sent.method, sent.idempotent)
                && !(verdict.methods().is_none() && sent.idempotent)
        };
        let (excused, forbidden): (Vec<_>, Vec<_>) = self
            .of_call(work, call)
            .filter(is_forbidden)
            // The one that failed is judged by its status.
            .partition(|sent| verdict.methods().is_none() && sent.is_excused(plan, error));
        if let [sent, ..] = &*forbidden {
            let (method, path) = (&sent.method, sent.path);
            panic!("work {work} is done again after call {call}, which sent {method} {path}");
        }
        assert!(
            excused.len() <= 1,
            "work {work} is done again after call {call}, of which one send failed"
        );
    }

    /// True if there is a reason to do the work again, whatever else was sent in this call: nothing
    /// but the count and the time can be against it.
    pub(super) fn must_be_repeated(
        &self,
        plan: &WorkPlan,
        work: usize,
        call: u32,
        error: &WorkError,
    ) -> bool {
        let verdict = plan.verdict(call);
        if let Some(methods) = verdict.methods() {
            return *methods == Methods::Any;
        }
        let is_quiet = |sent: &Sent| {
            let (last, earlier) = match sent.attempts.split_last() {
                Some((last, [])) if last.over => (last.then, true),
                _ => return false,
            };
            let is_answered = last.status() == Some(200);
            let is_it = error.status().is_some() && last.status() == error.status();
            sent.idempotent && earlier && (is_answered || is_it)
        };
        let rule = plan.rule_for(error.path());
        let row = error.status().and_then(|status| row(rule, status));
        matches!(verdict, Verdict::ByRule)
            && matches!(row, Some(Methods::Idempotent | Methods::Any))
            && self.of_call(work, call).all(is_quiet)
    }

    /// No request went more often than by the rule with the most retries.
    pub(super) fn check_counts(&self, most_retries: u32) {
        let mut counts = HashMap::new();
        for sent in &self.sends {
            *counts.entry(sent.step).or_insert(0) += sent.attempts.len();
        }
        for count in counts.into_values() {
            assert!(count <= most_retries as usize + 1, "sent {count} times");
        }
    }
}

impl Sent {
    fn may_be_processed(&self) -> bool {
        let counts = |attempt: &Attempt| !attempt.over || attempt.then.processed();
        self.attempts.iter().any(counts)
    }

    /// True if its own client may send it again after an attempt that came to this.
    fn may_be_sent_after(&self, then: Then) -> bool {
        let allows = |methods: &Methods| methods.allows(&self.method, self.idempotent_here);
        let by_status = then.status().is_some_and(|status| {
            row(&self.rule, status).is_some_and(allows)
                || status == 409 && self.retry_if.as_ref().is_some_and(allows)
        });
        let by_failure = then.status().is_none() && allows(&self.rule.sent_failures);
        !then.processed() || self.idempotent_here || by_status || by_failure
    }

    /// True if it may be the one that failed, and its status says that it may be sent again. It is
    /// all that became of it: no answer was lost before.
    fn is_excused(&self, plan: &WorkPlan, error: &WorkError) -> bool {
        let Some((last, earlier)) = self.attempts.split_last() else {
            return false;
        };
        let allows = |methods: &Methods| methods.allows(&self.method, self.idempotent);
        let is_known = |attempt: &Attempt| {
            attempt.over && (attempt.then.status().is_some() || !attempt.then.processed())
        };
        let is_it = last.over
            && last.then.status().is_some()
            && last.then.status() == error.status()
            && error.path() == Some(self.path);
        let of_409 = [&plan.retry_if, &self.retry_if];
        let by_status = last.then.status().is_some_and(|status| {
            row(plan.rule_for(Some(self.path)), status).is_some_and(allows)
                || status == 409 && of_409.into_iter().flatten().any(allows)
        });
        is_it && by_status && earlier.iter().all(is_known)
    }
}

/// The methods of the first row for a status.
fn row(rule: &RetryRule, status: u16) -> Option<&Methods> {
    let status = http::StatusCode::from_u16(status).unwrap();
    let row = rule.statuses.iter().find(|row| row.contains(status))?;
    Some(&row.methods)
}
