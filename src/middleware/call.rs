//! One send on its way: what is known of it, and each step of the loop.

use std::future::Future;
use std::time::Duration;

use http::{Extensions, HeaderValue, Method};
use reqwest::{Request, Response, Url};
use reqwest_middleware::{Error, Next, Result};
use tokio::time::Instant;

use super::body_source::BoxError;
use super::budget::RetryBudget;
use super::classify::classify;
use super::clock;
use super::complete;
use super::drain::Refused;
use super::error::RetryError;
use super::in_flight;
use super::lent::Lent;
use super::observer::{CallFacts, RetryEvent, StopEvent};
use super::overrides::Plan;
use super::policy::RetryPolicy;
use super::replay::Replay;
use super::report::{AttemptRecord, AttemptResult, RetryReport, answered_at};
use super::trace;
use crate::rule::{
    Attempt, AttemptOutcome, Decision, Methods, StopReason, TransportError, WaitSource,
};

/// The reading of a refused response is given this long even where the wait is shorter: a new
/// connection costs as much.
const DRAIN_GRACE: Duration = Duration::from_millis(20);

pub(crate) struct Call<'a> {
    plan: &'a Plan<'a>,
    budget: Option<&'a RetryBudget>,
    method: Method,
    idempotent: bool,
    /// What a retry needs; `None` where none could be allowed.
    replay: Option<Replay>,
    records: Vec<AttemptRecord>,
    retries: u32,
    /// What the attempt before failed with, where a total timeout may have to tell.
    last: Option<BoxError>,
}

/// What an attempt came to.
pub(crate) enum Ended<'a> {
    Answered(Response),
    Failed(Failed<'a>),
    OutOfTime(Error),
}

/// A refused response or an error, as it came in.
pub(crate) struct Failed<'a> {
    pub(crate) in_hand: Result<Response>,
    result: AttemptResult,
    elapsed: Duration,
    /// The methods of the condition that held.
    condition: Option<&'a Methods>,
}

/// That a response is not the answer yet.
struct Refusal<'a> {
    condition: Option<&'a Methods>,
}

/// A wait that was decided.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    duration: Duration,
    source: WaitSource,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        plan: &'a Plan<'a>,
        built_with: &'a RetryPolicy,
        request: &mut Request,
    ) -> Self {
        let policy = &*plan.policy;
        let method = request.method().clone();
        let has_key = !method.is_idempotent() && give_key(policy, request);
        let idempotent = plan.idempotent(&method, has_key);
        if let Some(limit) = policy.each_attempt() {
            let timeout = request.timeout_mut();
            *timeout = Some(timeout.map_or(limit, |own| own.min(limit)));
        }
        let may_retry = plan.could_retry(&method, idempotent);
        let replay = may_retry.then(|| Replay::keep(request, plan.body_source.clone()));
        Self {
            plan,
            budget: policy.budget_within(built_with),
            method,
            idempotent,
            replay,
            records: Vec::new(),
            retries: 0,
            last: None,
        }
    }

    pub(crate) fn may_retry(&self) -> bool {
        self.replay.is_some()
    }

    /// How many retries were begun.
    pub(crate) fn retries(&self) -> u32 {
        self.retries
    }

    /// Gives a request without a body its first, where a source is there.
    pub(crate) async fn first_body(&self, request: &mut Request) -> Result<()> {
        let Some(source) = self
            .plan
            .body_source
            .as_ref()
            .filter(|_| request.body().is_none())
        else {
            return Ok(());
        };
        let making = async { source.make().await?.put_into(request) };
        let error = match self.within(making).await {
            Some(Ok(())) => return Ok(()),
            Some(Err(source)) => RetryError::BodySource { source },
            None => RetryError::TotalTimeout {
                attempts: 0,
                last: None,
            },
        };
        Err(Error::middleware(error))
    }

    /// Runs the rest of the chain once.
    pub(crate) async fn attempt(
        &mut self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Ended<'a> {
        let begun = clock::now();
        if self.plan.ends.is_some_and(|end| end <= begun) {
            return self.ran_out(None);
        }
        let address = in_flight::address(extensions);
        let running = in_flight::run(address, next.run(request, extensions));
        let Some((outcome, redirected)) = self.within(running).await else {
            return self.ran_out(Some(begun));
        };
        let (in_hand, result, condition) = match outcome {
            Err(error) => {
                let class = self.class_of(&error, redirected);
                (
                    Err(error),
                    class.map_or(AttemptResult::Error, AttemptResult::Failure),
                    None,
                )
            }
            Ok(response) => {
                let status = AttemptResult::Status(response.status());
                if let Some(refusal) = self.refusal(&response) {
                    (Ok(response), status, refusal.condition)
                } else {
                    let Some((response, failure)) = self.completed(response).await else {
                        return self.ran_out(Some(begun));
                    };
                    let Some(failure) = failure else {
                        self.note_answer(status, begun);
                        return Ended::Answered(response);
                    };
                    (Ok(response), AttemptResult::Failure(failure), None)
                }
            }
        };
        Ended::Failed(Failed {
            in_hand,
            result,
            elapsed: since(begun),
            condition,
        })
    }

    /// Asks the rule, then the policy's veto, then the budget; and tells who is to be told.
    pub(crate) fn judge(&mut self, failed: &Failed<'a>) -> std::result::Result<Wait, StopReason> {
        let mut record = AttemptRecord {
            result: failed.result,
            elapsed: failed.elapsed,
            asked: None,
            wait: None,
        };
        let judged = self.decide(failed, &mut record);
        record.wait = judged.ok().map(|wait| (wait.duration, wait.source));
        self.records.push(record);
        if let Ok(wait) = judged {
            self.tell_retry(failed, wait);
        }
        judged
    }

    fn decide(
        &mut self,
        failed: &Failed<'a>,
        record: &mut AttemptRecord,
    ) -> std::result::Result<Wait, StopReason> {
        let policy = &*self.plan.policy;
        let rule = policy.rule();
        let (outcome, failure) = match (&failed.in_hand, failed.result) {
            (_, AttemptResult::Failure(failure)) => {
                (AttemptOutcome::Failure(failure), Some(failure))
            }
            (Ok(response), _) => {
                let (status, headers) = (response.status(), response.headers());
                (AttemptOutcome::Response { status, headers }, None)
            }
            (Err(_), _) => return Err(StopReason::NotRetryable),
        };
        let response = failed.in_hand.as_ref().ok().filter(|_| failure.is_none());
        let unsent = failure.is_some_and(|failure| failure.is_unsent());
        let facts = Attempt {
            attempt: self.retries,
            random: policy.random(),
            now: response.map(|response| {
                answered_at(response.headers()).unwrap_or_else(|| policy.time_of_day())
            }),
            elapsed: self.plan.elapsed(),
            remaining: self.plan.remaining(),
            server_delay: response.and_then(|response| policy.delay_of(response)),
            condition: failed.condition,
            idempotent: self.idempotent,
            // Where nothing was kept the rule has a reason of its own to stop.
            replayable: self
                .replay
                .as_mut()
                .is_none_or(|replay| replay.is_ready(unsent)),
            ..Attempt::new(&self.method)
        };
        record.asked = rule.asked(&outcome, &facts);
        match rule.decide(&outcome, &facts) {
            Decision::Stop(reason @ (StopReason::Exhausted | StopReason::NotReplayable)) => {
                Err(reason)
            }
            _ if failure.is_some_and(|failure| policy.refuses(&failure)) => {
                Err(StopReason::NotRetryable)
            }
            Decision::Stop(reason) => Err(reason),
            Decision::Wait(duration) => {
                let Some(replay) = &self.replay else {
                    return Err(StopReason::NotReplayable);
                };
                if self
                    .budget
                    .is_some_and(|budget| !budget.withdraw(replay.url()))
                {
                    return Err(StopReason::Throttled);
                }
                let source = rule
                    .planned_wait(&outcome, &facts)
                    .map_or(WaitSource::Backoff, |(_, source)| source);
                Ok(Wait { duration, source })
            }
        }
    }

    /// Keeps what is in hand until the next attempt starts.
    pub(crate) fn hold(&mut self, failed: Failed<'_>) -> Result<Refused> {
        if self.plan.ends.is_some() {
            let response = failed.in_hand.as_ref().ok();
            let refused = response.and_then(|response| response.error_for_status_ref().err());
            self.last = refused.map(Into::into);
        }
        let is_status = matches!(failed.result, AttemptResult::Status(_));
        let limit = if is_status {
            self.plan.policy.drains()
        } else {
            0
        };
        failed.in_hand.map(|response| Refused::new(response, limit))
    }

    /// Waits, and reads the rest of a refused response while it does.
    pub(crate) async fn wait(&self, in_hand: &mut Result<Refused>, wait: Wait) {
        let begun = clock::now();
        let wake = clock::later(begun, wait.duration);
        if let Ok(refused) = in_hand {
            let grace = clock::later(begun, DRAIN_GRACE);
            let end = match self.overdue(grace, wait) {
                Some(_) => wake,
                None => wake.max(grace),
            };
            refused.drain(self.plan.policy.drains(), end).await;
        }
        clock::sleep_until(wake).await;
    }

    /// The request of the next attempt, unless time has run out after all or its body cannot be
    /// had.
    pub(crate) async fn next_request(
        &mut self,
        wait: Wait,
    ) -> std::result::Result<Request, StopReason> {
        let mut replay = self.replay.take().ok_or(StopReason::NotReplayable)?;
        let made = self.within(replay.next()).await;
        self.replay = Some(replay);
        if let Some(reason) = self.overdue(clock::now(), wait) {
            return Err(reason);
        }
        let Some(Ok(mut request)) = made else {
            return Err(StopReason::NotReplayable);
        };
        self.retries = self.retries.saturating_add(1);
        if let Some(header) = self.plan.policy.count_header() {
            if !request.headers().contains_key(header) {
                // A head that is full goes without.
                let _ = request
                    .headers_mut()
                    .try_insert(header, self.retries.into());
            }
        }
        Ok(request)
    }

    /// Lets go of what was in hand: the next attempt starts. Of an error it is noted that it was,
    /// where a total timeout may have to tell.
    pub(crate) fn let_go(&mut self, in_hand: Result<Refused>) {
        if let (Some(_), Err(error)) = (self.plan.ends, in_hand) {
            self.last = Some(error.into());
        }
    }

    /// The limit that would be met by starting an attempt at `moment`.
    fn overdue(&self, moment: Instant, wait: Wait) -> Option<StopReason> {
        let elapsed = moment.saturating_duration_since(self.plan.started);
        if self.plan.policy.rule().limits.hard_reached(elapsed) {
            Some(StopReason::HardLimit(wait.duration))
        } else if self.plan.ends.is_some_and(|end| end <= moment) {
            Some(StopReason::Budget(wait.duration))
        } else {
            None
        }
    }

    /// Whether the response is refused: a status rule contains its status, or the server says by
    /// the override header what to do, or a condition of the policy holds.
    fn refusal(&self, response: &Response) -> Option<Refusal<'a>> {
        let (policy, status) = (&*self.plan.policy, response.status());
        let rule = policy.rule();
        if rule.status_methods(status).is_some() {
            return Some(Refusal { condition: None });
        }
        let condition = policy.condition(response, &self.method, self.idempotent);
        let said = rule.server_override(status, response.headers());
        (condition.is_some() || said.is_some()).then_some(Refusal { condition })
    }

    /// Reads the body where that is wanted; `None` where the total timeout ran out over it.
    async fn completed(&self, response: Response) -> Option<(Response, Option<TransportError>)> {
        let limit = self.plan.policy.completes();
        if complete::wanted(&response, limit) {
            self.within(complete::complete(response, limit)).await
        } else {
            Some((response, None))
        }
    }

    fn class_of(&self, error: &Error, redirected: bool) -> Option<TransportError> {
        let class = self
            .plan
            .policy
            .class_of(error)
            .or_else(|| classify(error))?;
        Some(if redirected {
            class.after_redirect()
        } else {
            class
        })
    }

    /// Runs `future` within the total timeout; `None` where that ran out.
    async fn within<F: Future>(&self, future: F) -> Option<F::Output> {
        match self.plan.ends {
            Some(end) => clock::timeout_at(end, future).await.ok(),
            None => Some(future.await),
        }
    }

    /// Notes an answer, where anybody will read of it.
    fn note_answer(&mut self, result: AttemptResult, begun: Instant) {
        if !self.records.is_empty() || self.plan.log.is_some() {
            let elapsed = since(begun);
            self.records.push(AttemptRecord {
                result,
                elapsed,
                asked: None,
                wait: None,
            });
        }
    }

    /// The total timeout ran out, in the attempt that was begun then or before the first.
    fn ran_out(&mut self, begun: Option<Instant>) -> Ended<'a> {
        if let Some(begun) = begun {
            let result = AttemptResult::Failure(TransportError::Timeout);
            let elapsed = since(begun);
            self.records.push(AttemptRecord {
                result,
                elapsed,
                asked: None,
                wait: None,
            });
        }
        let attempts = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        let last = self.last.take();
        Ended::OutOfTime(Error::middleware(RetryError::TotalTimeout {
            attempts,
            last,
        }))
    }
}

/// How a send ends.
impl Call<'_> {
    pub(crate) fn answered(mut self, response: Response, lent: &mut Lent<'_>) -> Result<Response> {
        if let (Some(budget), Some(replay)) = (self.budget, &self.replay) {
            budget.deposit(replay.url());
        }
        self.finish(Ok(response), None, lent)
    }

    pub(crate) fn give_up(
        mut self,
        in_hand: Result<Response>,
        reason: StopReason,
        lent: &mut Lent<'_>,
    ) -> Result<Response> {
        self.tell_stop(&in_hand, reason);
        self.finish(in_hand, Some(reason), lent)
    }

    pub(crate) fn out_of_time(self, error: Error, lent: &mut Lent<'_>) -> Result<Response> {
        self.give_up(Err(error), StopReason::TotalTimeout, lent)
    }

    /// Leaves the report where it is looked for. A first attempt that was answered has none, unless
    /// the caller holds a log.
    fn finish(
        &mut self,
        mut in_hand: Result<Response>,
        stop: Option<StopReason>,
        lent: &mut Lent<'_>,
    ) -> Result<Response> {
        if self.records.is_empty() && stop.is_none() {
            return in_hand;
        }
        let records = std::mem::take(&mut self.records);
        let report = RetryReport::new(records, stop, self.plan.elapsed(), self.plan.label.clone());
        if let Some(log) = &self.plan.log {
            log.set(report.clone());
        }
        if let Ok(response) = &mut in_hand {
            response.extensions_mut().insert(report.clone());
        }
        lent.report(report);
        in_hand
    }

    fn tell_retry(&self, failed: &Failed<'_>, wait: Wait) {
        let event = RetryEvent {
            call: self.facts(&failed.in_hand),
            retry: self.retries.saturating_add(1),
            result: failed.result,
            wait: wait.duration,
            source: wait.source,
        };
        trace::retry(&event);
        self.plan
            .policy
            .observers()
            .iter()
            .for_each(|observer| observer.on_retry(&event));
    }

    fn tell_stop(&self, in_hand: &Result<Response>, reason: StopReason) {
        let event = StopEvent {
            call: self.facts(in_hand),
            attempts: u32::try_from(self.records.len()).unwrap_or(u32::MAX),
            result: self.records.last().map(|record| record.result),
            reason,
        };
        trace::stop(&event);
        self.plan
            .policy
            .observers()
            .iter()
            .for_each(|observer| observer.on_stop(&event));
    }

    fn facts<'s>(&'s self, in_hand: &'s Result<Response>) -> CallFacts<'s> {
        let url = self.replay.as_ref().map(Replay::url).or(match in_hand {
            Ok(response) => Some(response.url()),
            Err(error) => error.url(),
        });
        CallFacts {
            method: &self.method,
            host: url.and_then(Url::host_str),
            label: self.plan.label.as_ref(),
            elapsed: self.plan.elapsed(),
        }
    }
}

/// Gives the request an idempotency key where the policy wants one, and says whether it has one.
fn give_key(policy: &RetryPolicy, request: &mut Request) -> bool {
    let Some(header) = policy.key_header() else {
        return false;
    };
    if request.headers().contains_key(header) {
        return true;
    }
    let key = format!("{:032x}", clock::random_key());
    // A head that is full goes without, and then counts for nothing.
    HeaderValue::try_from(key)
        .is_ok_and(|key| request.headers_mut().try_insert(header, key).is_ok())
}

fn since(begun: Instant) -> Duration {
    clock::now().saturating_duration_since(begun)
}
