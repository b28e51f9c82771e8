//! What must hold of a work, once all is over.
//!
//! - What may not be repeated was processed once, unless the work said that it may be repeated.
//! - No request was sent more often than without a work around it.
//! - A work succeeded if the faults that it met are no more than the retries of its rule.
//! - The reports say what the servers saw.

use reqwest_retry_rules::{RetryReport, StopReason};

use super::super::body::Made;
use super::super::fault::{Asked, Fault, Handshake, Proxy};
use super::super::ledger::Ledger;
use super::super::plan::{Claim, Patience, Plan, RETRIES, Road};
use super::TallyOfWorks;
use super::doing::{Went, WorkError};
use super::plan::{Judge, WorkPlan};

impl TallyOfWorks {
    pub(super) fn judge(&mut self, ledger: &Ledger, work: &WorkPlan, went: &Went) {
        let plans: Vec<_> = work.sends.clone().map(|id| &ledger.plans[id]).collect();
        let mut wrong = went.wrong.clone();
        for plan in &plans {
            self.sends += ledger.attempts(plan.id) as usize;
            wrong.extend(of_send(ledger, work, plan, went));
        }
        self.calls += went.calls as usize;
        self.done += usize::from(went.outcome.is_ok());
        match &went.report {
            Some(report) => {
                wrong.extend(of_report(work, &plans, went, report));
                let reason = report.stop_reason().map_or("done", |reason| reason.name());
                *self.stops.entry(reason).or_default() += 1;
            }
            None if went.hung => wrong.push("it did not come to an end".to_owned()),
            None => wrong.push("it has no report".to_owned()),
        }
        if must_succeed(ledger, work, &plans, went) {
            self.must += 1;
            if let Err(error) = &went.outcome {
                wrong.push(format!("it could have succeeded, and did not: {error:?}"));
            }
        }
        if wrong.is_empty() {
            return;
        }
        let mut whole = format!("work {}:\n  {}\n  {work:?}", work.id, wrong.join("\n  "));
        for plan in plans {
            whole += &format!("\n  plan: {plan:?}");
            for deed in ledger.deeds(plan.id) {
                whole += &format!("\n    server: {deed:?}");
            }
            for (_, report) in went.sends.iter().filter(|(id, _)| *id == plan.id) {
                whole += &format!("\n    send: {report:?}");
            }
        }
        whole += &format!(
            "\n  report: {:?}\n  outcome: {:?}",
            went.report, went.outcome
        );
        self.wrong.push(whole);
    }
}

/// Whether it may be processed in more than one call of a work. A key is another one in each.
fn is_repeatable(plan: &Plan) -> bool {
    plan.is_repeatable() && plan.claim != Claim::Keyed
}

fn of_send(ledger: &Ledger, work: &WorkPlan, plan: &Plan, went: &Went) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut say = |what: String| wrong.push(format!("send {}: {what}", plan.id));
    let deeds = ledger.deeds(plan.id);
    let processed = deeds.iter().filter(|deed| deed.processed).count();
    if processed > 1 && !is_repeatable(plan) && !work.allows_all() {
        say(format!("it was processed {processed} times"));
    }
    if deeds.iter().any(|deed| deed.whole == Some(false)) {
        say("it arrived whole, and with another body than it was sent with".to_owned());
    }
    let attempts = ledger.attempts(plan.id);
    if attempts > RETRIES + 1 {
        say(format!(
            "{attempts} attempts are more than there are without a work"
        ));
    }
    let reported = attempts_of(went, plan).len() as u32;
    if reported > attempts || !may_be_dropped(work, plan) && reported != attempts {
        say(format!("{reported} attempts are reported of {attempts}"));
    }
    wrong
}

/// What its attempts came to, call after call.
fn attempts_of(went: &Went, plan: &Plan) -> Vec<reqwest_retry_rules::AttemptResult> {
    let reports = went.sends.iter().filter(|(id, _)| *id == plan.id);
    let records = reports.flat_map(|(_, report)| report.records());
    records.map(|record| record.result()).collect()
}

/// Whether it may leave no report, since it was dropped.
fn may_be_dropped(work: &WorkPlan, plan: &Plan) -> bool {
    work.joined || matches!(plan.patience, Patience::Leaves(_))
}

fn of_report(work: &WorkPlan, plans: &[&Plan], went: &Went, report: &RetryReport) -> Vec<String> {
    let mut wrong = Vec::new();
    let records = report.records();
    if report.attempts() != went.calls || records.len() != went.calls as usize {
        let (attempts, calls) = (report.attempts(), went.calls);
        wrong.push(format!("{attempts} calls are reported of {calls}"));
    }
    if went.calls > RETRIES + 1 {
        wrong.push(format!(
            "{} calls are more than the rule has retries for",
            went.calls
        ));
    }
    let waits = records
        .iter()
        .filter(|record| record.wait().is_some())
        .count();
    if waits + 1 != records.len() {
        wrong.push(format!("{waits} waits between {} calls", records.len()));
    }
    let is_safe = plans.iter().all(|plan| is_repeatable(plan));
    match (report.stop_reason(), &went.outcome) {
        (None, Ok(())) | (Some(_), Err(_)) => {}
        (stop, outcome) => wrong.push(format!("{stop:?} is reported of {outcome:?}")),
    }
    match report.stop_reason() {
        Some(StopReason::MethodNotAllowed) if is_safe => {
            wrong.push("all that it sent may be repeated".to_owned());
        }
        Some(StopReason::NotReplayable | StopReason::Throttled) => {
            wrong.push("that is no reason for a work to stop".to_owned());
        }
        Some(StopReason::NotRetryable) => {}
        _ if matches!(went.outcome, Err(WorkError::Decoder)) && work.judge == Judge::None => {
            wrong.push("a decoder that fails is no failure of the transport".to_owned());
        }
        _ => {}
    }
    wrong
}

/// Whether the faults of the plan are all that it met, and few enough. Each costs one retry at the
/// most.
fn must_succeed(ledger: &Ledger, work: &WorkPlan, plans: &[&Plan], went: &Went) -> bool {
    let passes = |fault: &Fault| match fault {
        Fault::Refusal(refusal) => refusal.said != Some(false) && refusal.asked != Asked::TooLong,
        Fault::Handshake(Handshake::Garbage | Handshake::Stranger)
        | Fault::Garbage
        | Fault::Proxy(Proxy::Refuses(407)) => false,
        _ => true,
    };
    let is_quiet = |plan: &&Plan| {
        is_repeatable(plan)
            && !matches!(plan.content.made, Made::FailingSource(_))
            && plan.faults.iter().all(passes)
            && plan.patience == Patience::Endless
            // Others strike what is on these.
            && !matches!(plan.road, Road::Shared2 | Road::Stale1)
    };
    let is_disturbed = |plan: &&Plan| {
        let results = attempts_of(went, plan);
        let planned = (0..)
            .zip(&results)
            .all(|(attempt, result)| plan.results(attempt).contains(result));
        // A send that was dropped left none, so the rest are out of step.
        !planned || results.len() != ledger.attempts(plan.id) as usize && plan.road.is_http2()
    };
    let faults: usize = plans.iter().map(|plan| plan.faults.len()).sum();
    let undecoded = match work.judge {
        Judge::None if work.undecoded > 0 => return false,
        _ => work.undecoded as usize,
    };
    plans.iter().all(is_quiet)
        && faults.saturating_add(undecoded) <= RETRIES as usize
        && !plans.iter().any(is_disturbed)
}
