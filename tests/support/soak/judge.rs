//! What must hold of a send, once all is over.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use reqwest_retry_rules::{
    AttemptRecord, AttemptResult, RetryReport, StopReason, TransportError, WaitSource,
};

use super::body::Made;
use super::fault::{Asked, Fault, Refusal, failure};
use super::ledger::{Deed, Ledger};
use super::plan::{CONNECT_TIMEOUT, Claim, Patience, Plan, RETRIES, Road, SHORT};
use super::send::{Got, Ours, Outcome, Sent};

/// What is found out about one send, or about all.
#[derive(Default)]
pub struct Verdict {
    /// What must not be.
    pub wrong: Vec<String>,
    /// How often each kind of fault was met.
    pub met: BTreeMap<&'static str, usize>,
    pub attempts: usize,
    /// How many attempts were answered, or failed, for good.
    pub answered: usize,
    pub processed: usize,
    /// How many attempts took longer than they may, for no fault of the plan's.
    pub overloaded: usize,
    /// How many attempts were struck by what another send met.
    pub struck: usize,
}

impl Verdict {
    pub fn add(&mut self, other: Verdict) {
        self.wrong.extend(other.wrong);
        for (kind, times) in other.met {
            *self.met.entry(kind).or_default() += times;
        }
        self.attempts += other.attempts;
        self.answered += other.answered;
        self.processed += other.processed;
        self.overloaded += other.overloaded;
        self.struck += other.struck;
    }
}

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

/// What the rule says of an attempt.
enum Next {
    Answer,
    Stop(StopReason),
    Again,
    /// It depends on whether the stream of the body was begun.
    AgainOr(StopReason),
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
            if deeds[..nth].iter().any(|other| same(&other)) {
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
        for (attempt, record) in records.iter().enumerate() {
            let last = attempt + 1 == records.len();
            if !self.attempt(report, attempt as u32, record, last) {
                return;
            }
        }
        self.outcome(report);
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
        let seen = self.deeds.iter().find(|deed| deed.attempt == attempt);
        let planned = self.plan.results(attempt).contains(&result);
        let on_the_road = self.plan.fault(attempt).is_some_and(Fault::is_on_the_road);
        if planned && (seen.is_some() || on_the_road || result == failure(Timeout)) {
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
        let cut_short = self.plan.completes && seen.is_some() && result == failure(Body);
        if result != failure(Closed) && result != failure(NotProcessed) && !cut_short {
            return None;
        }
        let struck = match (self.plan.road, seen) {
            (Road::Stale1 | Road::Shared2, None) => true,
            (Road::Shared2, Some(deed)) if self.ledger.has_ended(deed.connection) => true,
            // What hyper is told of the connection while it opens a stream it says of the stream.
            (road, Some(deed)) if road.is_http2() => self.ledger.has_left(deed.connection),
            // HTTP/2 has no clear end: the next request may still go to the old connection.
            (road, None) if road.is_http2() => {
                let earlier = |attempt| self.plan.fault(attempt);
                let ended = (0..attempt).filter_map(earlier).any(Fault::ends_connection);
                ended || self.verdict.overloaded > 0
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
        let next = self.next(attempt, record.result(), refusal);
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

    /// The rule of the soak, said once more.
    fn next(&self, attempt: u32, result: AttemptResult, refusal: Option<&Refusal>) -> Next {
        let plan = self.plan;
        let said = refusal.and_then(|refusal| refusal.said);
        let status = match result {
            AttemptResult::Status(status) => status.as_u16(),
            _ => 0,
        };
        if let AttemptResult::Status(_) = result {
            if status != 429 && status < 500 && said.is_none() {
                return Next::Answer;
            }
        }
        if attempt == RETRIES {
            return Next::Stop(StopReason::Exhausted);
        }
        let unsent = is_unsent(result);
        let mut may_have_begun = false;
        if plan.content.made.is_stream() {
            if !unsent {
                return Next::Stop(StopReason::NotReplayable);
            }
            // A stream that is refused may have been begun by then.
            may_have_begun = result == failure(TransportError::NotProcessed);
        }
        let idempotent = plan.is_repeatable();
        let allowed = match result {
            AttemptResult::Failure(
                TransportError::Protocol
                | TransportError::Certificate
                | TransportError::Proxy { status: Some(_) },
            )
            | AttemptResult::Error => return Next::Stop(StopReason::NotRetryable),
            _ if said == Some(false) => return Next::Stop(StopReason::ServerSaidNo),
            _ if said == Some(true) || unsent || status == 429 => true,
            _ => idempotent,
        };
        if !allowed {
            return Next::Stop(StopReason::MethodNotAllowed);
        }
        if let Some(Refusal {
            asked: Asked::TooLong,
            ..
        }) = refusal
        {
            return Next::Stop(StopReason::RetryAfterTooLong(super::fault::TOO_LONG));
        }
        if may_have_begun {
            Next::AgainOr(StopReason::NotReplayable)
        } else {
            Next::Again
        }
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
            AttemptResult::Failure(Body | Timeout) if self.plan.completes => got.status,
            _ => return false,
        };
        let seen = self.deeds.iter().find(|deed| deed.attempt == attempt);
        let ended = seen.is_some_and(|deed| {
            self.plan.road == Road::Shared2 && self.ledger.has_ended(deed.connection)
        });
        let broken = match self.plan.fault(attempt) {
            Some(Fault::BrokenBody { .. }) => self.plan.method != http::Method::HEAD,
            _ => matches!(result, AttemptResult::Failure(_)),
        };
        // The timeout of an attempt goes on over the body.
        let may_break =
            broken || ended || self.plan.attempt_timeout().is_some() || self.early(attempt);
        got.status == status
            && got.answers == Some((self.plan.id, attempt))
            && got.right
            && if got.broke_off { may_break } else { !broken }
    }

    fn early(&self, attempt: u32) -> bool {
        matches!(self.plan.fault(attempt), Some(Fault::Early))
    }

    /// Whether no fault of the plan's keeps a retry from being made, and there are few enough.
    fn must_succeed(&self) -> bool {
        let passes = |fault: &Fault| match fault {
            Fault::Refusal(refusal) => {
                refusal.said != Some(false) && refusal.asked != Asked::TooLong
            }
            Fault::Handshake(super::fault::Handshake::Ends(_)) => true,
            Fault::Handshake(_)
            | Fault::Garbage
            | Fault::Proxy(super::fault::Proxy::Refuses(407)) => false,
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

fn is_unsent(result: AttemptResult) -> bool {
    matches!(result, AttemptResult::Failure(failed) if failed.is_unsent())
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Next::Answer => f.write_str("returned the answer"),
            Next::Stop(reason) => write!(f, "stopped: {reason:?}"),
            Next::Again => f.write_str("gone on"),
            Next::AgainOr(reason) => write!(f, "gone on, or stopped: {reason:?}"),
        }
    }
}

/// All that is known of a send, for the message.
struct Whole<'a> {
    plan: &'a Plan,
    sent: &'a Sent,
    deeds: Vec<Deed>,
}

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  plan: {:?}", self.plan)?;
        for deed in &self.deeds {
            writeln!(f, "  server: {deed:?}")?;
        }
        if let Some(report) = &self.sent.report {
            for record in report.records() {
                writeln!(f, "  report: {record:?}")?;
            }
            writeln!(
                f,
                "  report: stop {:?} after {:?}",
                report.stop_reason(),
                report.elapsed()
            )?;
        }
        write!(f, "  outcome: {:?}", self.sent.outcome)
    }
}
