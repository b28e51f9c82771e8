//! What must hold of a send, once all is over.

use std::fmt;
use std::time::Duration;

use reqwest_retry_rules::{
    AttemptRecord, AttemptResult, RetryReport, StopReason, TransportError, WaitSource,
};

use super::body::Made;
use super::fault::{Asked, Fault, Handshake, Proxy, Refusal, failure};
use super::ledger::{Deed, Ledger};
use super::plan::{CONNECT_TIMEOUT, Claim, Patience, Plan, RETRIES, Road, SHORT};
use super::rule::{Next, is_unsent};
use super::send::{Got, Ours, Outcome, Sent};
use super::verdict::{Verdict, Whole};

/// Holds a send against its plan and against what the servers saw.
pub fn judge(ledger: &Ledger, plan: &Plan, sent: &Sent) -> Verdict {
    let deeds = ledger.deeds(plan.id);
    let mut judge = Judge {
        ledger,
        plan,
        sent,
        deeds: &deeds,
        verdict: Verdict::default(),
    };
    judge.servers();
    match &sent.report {
        Some(report) => judge.report(report),
        None if matches!(sent.outcome, Outcome::Left) => {}
        None => judge.wrong("it has no report"),
    }
    let mut verdict = judge.verdict;
    verdict.attempts = sent.attempts as usize;
    verdict.processed = deeds.iter().filter(|deed| deed.processed).count();
    if !verdict.wrong.is_empty() {
        let whole = Whole { plan, sent, deeds };
        let what = verdict.wrong.join("\n  ");
        verdict.wrong = vec![format!("send {}:\n  {what}\n{whole}", plan.id)];
    }
    verdict
}

/// The rule counts in whole milliseconds.
const MILLISECOND: Duration = Duration::from_millis(1);

struct Judge<'a> {
    ledger: &'a Ledger,
    plan: &'a Plan,
    sent: &'a Sent,
    deeds: &'a [Deed],
    verdict: Verdict,
}

/// Why an attempt came to what it came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The plan.
    Planned,
    /// It took too long, whatever the plan.
    Overload,
    /// The total timeout of the send.
    Total,
    /// Another send on the same connection, or the end of the connection before.
    Struck,
}

impl Judge<'_> {
    fn wrong(&mut self, what: impl fmt::Display) {
        self.verdict.wrong.push(what.to_string());
    }

    /// What the servers saw and did.
    fn servers(&mut self) {
        let (plan, deeds) = (self.plan, self.deeds);
        let processed = deeds.iter().filter(|deed| deed.processed).count();
        if processed > 1 && (!plan.is_repeatable() || plan.claim == Claim::Keyed) {
            self.wrong(format!("it was processed {processed} times"));
        }
        if deeds.iter().any(|deed| deed.whole == Some(false)) {
            self.wrong("a request arrived whole, and with another body than it was sent with");
        }
        for (nth, deed) in deeds.iter().enumerate() {
            if deed.attempt >= self.sent.attempts {
                self.wrong(format!("attempt {} came after its end", deed.attempt));
            }
            let same = |other: &&Deed| other.attempt == deed.attempt && other.hop == deed.hop;
            let refused = matches!(plan.fault(deed.attempt), Some(Fault::StreamRefused { .. }));
            // reqwest sends a refused stream again by itself, up to twice.
            let allowed = if refused && !deed.processed { 2 } else { 0 };
            if deeds[..nth].iter().filter(same).count() > allowed {
                self.wrong(format!("attempt {} was sent twice", deed.attempt));
            }
            if deed.hop != (deed.hop && deeds[..nth].iter().any(|d| d.attempt == deed.attempt)) {
                self.wrong("a redirect was followed that was none");
            }
            if deed.key.is_some() != (plan.claim == Claim::Keyed) || deed.key != deeds[0].key {
                self.wrong("its attempts do not have one idempotency key, or do");
            }
        }
        let made = self.ledger.attempts(plan.id);
        if made != self.sent.attempts {
            self.wrong(format!(
                "it ended after {} attempts and then made {made}",
                self.sent.attempts
            ));
        }
        if matches!(self.sent.outcome, Outcome::Hung) {
            self.wrong("it did not come to an end");
        }
    }

    /// What the report says, attempt by attempt.
    fn report(&mut self, report: &RetryReport) {
        let records = report.records();
        if records.len() != self.sent.attempts as usize {
            self.wrong(format!(
                "it reports {} attempts and made {}",
                records.len(),
                self.sent.attempts
            ));
            return;
        }
        if records.is_empty() {
            return self.nothing_sent(report);
        }
        self.times(records);
        for (attempt, record) in records.iter().enumerate() {
            let last = attempt + 1 == records.len();
            if !self.attempt(report, attempt as u32, record, last) {
                return;
            }
        }
        self.outcome(report);
    }

    /// Whether each attempt took as long as is reported, and the next waited as long. A machine
    /// that is busy makes both longer.
    fn times(&mut self, records: &[AttemptRecord]) {
        let spans = self.ledger.spans(self.plan.id);
        for (attempt, (record, span)) in records.iter().zip(&spans).enumerate() {
            let took = span
                .ended
                .map_or(Duration::ZERO, |ended| ended - span.begun);
            if record.elapsed() < took {
                self.wrong(format!(
                    "attempt {attempt} took {took:?}, and is said to have taken {:?}",
                    record.elapsed()
                ));
            }
            let next = spans.get(attempt + 1).map(|next| next.begun);
            if let (Some(wait), Some(ended), Some(next)) = (record.wait(), span.ended, next) {
                if next - ended < wait {
                    self.wrong(format!(
                        "after attempt {attempt} it waited {:?} in place of {wait:?}",
                        next - ended
                    ));
                }
            }
        }
    }

    /// One attempt; false where what comes after it makes no sense.
    fn attempt(
        &mut self,
        report: &RetryReport,
        attempt: u32,
        record: &AttemptRecord,
        last: bool,
    ) -> bool {
        let Some(cause) = self.cause(report, attempt, record, last) else {
            self.wrong(format!(
                "attempt {attempt} came to {:?}, by the plan to {:?}",
                record.result(),
                self.plan.results(attempt)
            ));
            return false;
        };
        let fault = self.plan.fault(attempt);
        match cause {
            Cause::Planned => {
                let kind = fault.map_or("none", Fault::kind);
                *self.verdict.met.entry(kind).or_default() += 1;
                self.unseen(attempt);
            }
            Cause::Overload => self.verdict.overloaded += 1,
            Cause::Struck => self.verdict.struck += 1,
            Cause::Total => {}
        }
        let processed = |deed: &Deed| deed.attempt == attempt && deed.processed;
        if is_unsent(record.result()) && self.deeds.iter().any(processed) {
            self.wrong(format!(
                "attempt {attempt} is said to be unsent and was processed"
            ));
        }
        let refusal = match fault {
            Some(Fault::Refusal(refusal)) if cause == Cause::Planned => Some(refusal),
            _ => None,
        };
        let asked = refusal.and_then(|refusal| refusal.asked.wait());
        if record.retry_after() != asked {
            self.wrong(format!(
                "attempt {attempt} asked for {asked:?}, and is said to have for {:?}",
                record.retry_after()
            ));
        }
        self.wait(attempt, record, asked);
        self.goes_on(report, attempt, record, refusal, last)
    }

    /// Why the attempt came to what is reported; `None` is for no reason.
    fn cause(
        &self,
        report: &RetryReport,
        attempt: u32,
        record: &AttemptRecord,
        last: bool,
    ) -> Option<Cause> {
        use TransportError::{Body, Closed, ConnectTimeout, NotProcessed, Timeout};

        let (result, elapsed) = (record.result(), record.elapsed());
        if last && report.stop_reason() == Some(StopReason::TotalTimeout) {
            let over = self.total().is_some_and(|total| report.elapsed() >= total);
            return (over && result == failure(Timeout)).then_some(Cause::Total);
        }
        let mut deeds = self.deeds.iter().filter(|deed| deed.attempt == attempt);
        let seen = deeds.clone().next().is_some();
        let planned = self.plan.results(attempt).contains(&result);
        let on_the_road = self.plan.fault(attempt).is_some_and(Fault::is_on_the_road);
        if planned && (seen || on_the_road || result == failure(Timeout)) {
            return Some(Cause::Planned);
        }
        let is_short = self.plan.attempt_timeout().is_some();
        let timed_out = match result {
            AttemptResult::Failure(Timeout) => {
                (is_short && elapsed >= SHORT) || elapsed >= CONNECT_TIMEOUT
            }
            AttemptResult::Failure(ConnectTimeout) => elapsed >= CONNECT_TIMEOUT,
            _ => false,
        };
        if timed_out {
            return Some(Cause::Overload);
        }
        let before_head = result == failure(Closed) || result == failure(NotProcessed);
        let in_body = self.plan.completes > 0 && result == failure(Body);
        let struck = match self.plan.road {
            Road::Stale1 | Road::Shared2 if !seen => before_head,
            Road::Shared2
                if deeds
                    .clone()
                    .any(|deed| self.ledger.has_cut(deed.connection)) =>
            {
                before_head || in_body
            }
            // What hyper is told of the connection while it opens a stream it says of the stream.
            road if road.is_http2() && seen => {
                before_head && deeds.any(|deed| self.ledger.has_left(deed.connection))
            }
            // HTTP/2 has no clear end: the next request may still go to the old connection.
            road if road.is_http2() => {
                let earlier = |attempt| self.plan.fault(attempt);
                let ended = (0..attempt).filter_map(earlier).any(Fault::ends_connection);
                before_head && (ended || self.verdict.overloaded > 0)
            }
            _ => false,
        };
        struck.then_some(Cause::Struck)
    }

    /// What fails on the road is seen by no server.
    fn unseen(&mut self, attempt: u32) {
        let seen = self.deeds.iter().any(|deed| deed.attempt == attempt);
        if seen && self.plan.fault(attempt).is_some_and(Fault::is_on_the_road) {
            self.wrong(format!(
                "attempt {attempt} came through, and nothing was to"
            ));
        }
    }

    /// The wait after an attempt, where there was one.
    fn wait(&mut self, attempt: u32, record: &AttemptRecord, asked: Option<Duration>) {
        let Some(wait) = record.wait() else {
            return;
        };
        let right = match asked {
            Some(asked) => wait == asked && record.wait_source() == Some(WaitSource::Server),
            // The backoff of the rule, under full jitter.
            None => {
                wait < Duration::from_millis((2 << attempt.min(8)).min(20))
                    && record.wait_source() == Some(WaitSource::Backoff)
            }
        };
        if !right {
            self.wrong(format!(
                "the wait after attempt {attempt} was {wait:?} from {:?}",
                record.wait_source()
            ));
        }
    }

    /// Whether the send went on where it had to, and ended where it had to.
    fn goes_on(
        &mut self,
        report: &RetryReport,
        attempt: u32,
        record: &AttemptRecord,
        refusal: Option<&Refusal>,
        last: bool,
    ) -> bool {
        let stop = report.stop_reason().filter(|_| last);
        if stop == Some(StopReason::TotalTimeout) {
            return true;
        }
        let next = self.plan.next(attempt, record.result(), refusal);
        let is_dry = match self.plan.content.made {
            Made::FailingSource(bodies) => bodies <= attempt + 1,
            _ => false,
        };
        let right = match next {
            Next::Answer => last && stop.is_none(),
            Next::Stop(reason) => last && stop == Some(reason) && record.wait().is_none(),
            Next::AgainOr(reason) if last && stop == Some(reason) => record.wait().is_none(),
            Next::Again | Next::AgainOr(_) => match stop {
                Some(StopReason::Budget(wait)) => self
                    .total()
                    .is_some_and(|total| report.elapsed() + wait + MILLISECOND > total),
                Some(StopReason::NotReplayable) => is_dry && record.wait().is_some(),
                Some(_) => false,
                None => !last && !is_dry && record.wait().is_some(),
            },
        };
        if !right {
            self.wrong(format!(
                "after attempt {attempt}, which came to {:?}, it should have: {next}; \
                 it waited {:?} and {}",
                record.result(),
                record.wait(),
                match (last, stop) {
                    (false, _) => "went on".to_owned(),
                    (true, None) => "was answered".to_owned(),
                    (true, Some(reason)) => format!("stopped: {reason:?}"),
                }
            ));
        }
        right
    }

    /// A report without an attempt.
    fn nothing_sent(&mut self, report: &RetryReport) {
        let ours = match &self.sent.outcome {
            Outcome::Error { ours, .. } => ours.as_ref(),
            _ => None,
        };
        let total_is_over = self.total().is_some_and(|total| report.elapsed() >= total);
        let right = match report.stop_reason() {
            Some(StopReason::NotReplayable) => {
                self.plan.content.made == Made::FailingSource(0) && ours == Some(&Ours::BodySource)
            }
            Some(StopReason::TotalTimeout) => {
                total_is_over && ours == Some(&Ours::TotalTimeout { attempts: 0 })
            }
            _ => false,
        };
        if !right {
            self.wrong(format!("nothing was sent: {:?}", report.stop_reason()));
        }
    }

    /// What the caller got, held against the last attempt.
    fn outcome(&mut self, report: &RetryReport) {
        let (Some(record), attempt) = (report.records().last(), report.attempts() - 1) else {
            return;
        };
        let result = record.result();
        let right = match &self.sent.outcome {
            Outcome::Response(got) => self.got(attempt, result, got),
            Outcome::Error {
                class,
                timed_out,
                ours,
                ..
            } => match (result, ours) {
                (_, Some(ours)) => {
                    let attempts = report.attempts();
                    report.stop_reason() == Some(StopReason::TotalTimeout)
                        && *ours == Ours::TotalTimeout { attempts }
                        && *timed_out
                }
                (AttemptResult::Failure(TransportError::AfterRedirect), None) => {
                    class.is_some_and(|class| class.is_unsent())
                }
                (AttemptResult::Failure(failed), None) => {
                    *class == Some(failed) && *timed_out == failed.is_timeout()
                }
                _ => false,
            },
            Outcome::Left | Outcome::Hung => false,
        };
        if !right {
            self.wrong("what came back is not what the last attempt came to");
        }
        let succeeded =
            matches!(result, AttemptResult::Status(_)) && report.stop_reason().is_none();
        self.verdict.answered += usize::from(succeeded);
        let patient = !matches!(self.plan.patience, Patience::Total(_));
        let disturbed = self.verdict.overloaded + self.verdict.struck > 0;
        if !succeeded && patient && !disturbed && self.must_succeed() {
            self.wrong("it could have succeeded, and did not");
        }
    }

    /// Whether the response is the one that the server made.
    fn got(&self, attempt: u32, result: AttemptResult, got: &Got) -> bool {
        use TransportError::{Body, Timeout};

        let status = match result {
            AttemptResult::Status(status) => status,
            AttemptResult::Failure(Body | Timeout) if self.plan.completes > 0 => got.status,
            _ => return false,
        };
        let seen = self.deeds.iter().find(|deed| deed.attempt == attempt);
        let ended = seen.is_some_and(|deed| {
            self.plan.road == Road::Shared2 && self.ledger.has_cut(deed.connection)
        });
        let broken = match self.plan.fault(attempt) {
            Some(Fault::BrokenBody { .. }) => self.plan.method != http::Method::HEAD,
            _ => matches!(result, AttemptResult::Failure(_)),
        };
        // The timeout of an attempt goes on over the body.
        let early = matches!(self.plan.fault(attempt), Some(Fault::Early));
        let may_break = broken || ended || early || self.plan.attempt_timeout().is_some();
        got.status == status
            && got.answers == Some((self.plan.id, attempt))
            && got.right
            && if got.broke_off { may_break } else { !broken }
    }

    /// Whether no fault of the plan's keeps a retry from being made, and there are few enough.
    fn must_succeed(&self) -> bool {
        let passes = |fault: &Fault| match fault {
            Fault::Refusal(refusal) => {
                refusal.said != Some(false) && refusal.asked != Asked::TooLong
            }
            Fault::Handshake(Handshake::Garbage | Handshake::Stranger)
            | Fault::Garbage
            | Fault::Proxy(Proxy::Refuses(407)) => false,
            _ => true,
        };
        let replayable = !self.plan.content.made.is_stream()
            && !matches!(self.plan.content.made, Made::FailingSource(_));
        self.plan.is_repeatable()
            && replayable
            && self.plan.faults.len() <= RETRIES as usize
            && self.plan.faults.iter().all(passes)
    }

    fn total(&self) -> Option<Duration> {
        match self.plan.patience {
            Patience::Total(total) => Some(total),
            _ => None,
        }
    }
}
