//! One send on its way: what is known of it, and each step of the loop.

use std::future::Future;
use std::time::Duration;

use http::{HeaderValue, Method};
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Result};
use tokio::time::Instant;

use super::body_source::BoxError;
use super::classify::classify;
use super::clock;
use super::complete;
use super::ending;
use super::error::RetryError;
use super::in_flight::{self, MaybeProcessed, Notes, Running};
use super::origins::RetryBudget;
use super::plan::Plan;
use super::policy::RetryPolicy;
use super::redirect;
use super::replay::Replay;
use super::report::{AttemptRecord, AttemptResult};
use super::span::Span;
use crate::rule::{Methods, StopReason, TransportError};

pub(crate) struct Call<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) span: Span,
    pub(super) budget: Option<&'a RetryBudget>,
    pub(super) method: Method,
    pub(super) idempotent: bool,
    /// What a retry needs; `None` where none could be allowed.
    pub(super) replay: Option<Replay>,
    /// The host that is asked, where somebody may be told and `replay` does not have it. What comes
    /// back may have another: a redirect's.
    pub(super) host: Option<Box<str>>,
    pub(super) records: Vec<AttemptRecord>,
    /// When the attempt at hand was begun.
    begun: Instant,
    /// How many retries were begun.
    pub(super) retries: u32,
    /// Whether there is an attempt of which no record tells yet.
    open: bool,
    /// Whether the send has ended, and nothing more is to be told of it.
    pub(super) ended: bool,
    /// Whether an attempt was answered by something else than what came back in the end.
    pub(super) replaced: bool,
    /// What the attempt before failed with, where a total timeout may have to tell.
    pub(super) last: Option<BoxError>,
}

/// How what came of an attempt is taken.
pub(crate) enum Verdict<'a> {
    Answered,
    /// Answered, with a body that is to be read first.
    Unread,
    Failed(Failed<'a>),
    /// The total timeout ran out.
    OutOfTime,
}

/// What is known of a failed attempt beside the refused response or the error.
pub(crate) struct Failed<'a> {
    pub(super) result: AttemptResult,
    pub(super) elapsed: Duration,
    /// The methods of the condition that held.
    pub(super) condition: Option<&'a Methods>,
    /// Whether what came back is the answer to another request, which went in the place of this.
    pub(super) replaced: bool,
}

/// That a response is not the answer yet.
struct Refusal<'a> {
    condition: Option<&'a Methods>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        plan: &'a Plan<'a>,
        built_with: &'a RetryPolicy,
        request: &mut Request,
    ) -> Self {
        let (policy, span) = (&*plan.policy, plan.span());
        let method = request.method().clone();
        let has_key = !method.is_idempotent() && give_key(policy, request);
        let idempotent = plan.idempotent(&method, has_key);
        if let Some(limit) = policy.each_attempt() {
            let timeout = request.timeout_mut();
            *timeout = Some(timeout.map_or(limit, |own| own.min(limit)));
        }
        let may_retry = plan.could_retry(&method, idempotent);
        let host = if !may_retry && ending::is_told(policy) {
            request.url().host_str().map(Box::from)
        } else {
            None
        };
        Self {
            plan,
            span,
            budget: policy.budget_within(built_with),
            method,
            idempotent,
            replay: may_retry.then(|| Replay::keep(request, plan.body_source().cloned())),
            host,
            records: Vec::new(),
            begun: span.started,
            retries: 0,
            open: false,
            ended: false,
            replaced: false,
            last: None,
        }
    }

    /// Whether there was no time for it from the start.
    pub(crate) fn is_late(&self) -> bool {
        self.span.is_over(self.span.started)
    }

    pub(crate) fn may_retry(&self) -> bool {
        self.replay.is_some()
    }

    /// Whether the request has no body yet and a source is there to make it.
    pub(crate) fn lacks_body(&self, request: &Request) -> bool {
        self.plan.body_source().is_some() && request.body().is_none()
    }

    /// Gives a request without a body its first.
    ///
    /// # Errors
    ///
    /// That of the source, or that the total timeout was over, each with the reason to stop.
    pub(crate) async fn first_body(
        &mut self,
        request: &mut Request,
    ) -> std::result::Result<(), (Error, StopReason)> {
        let Some(source) = self.plan.body_source() else {
            return Ok(());
        };
        let making = async { source.make().await?.put_into(request) };
        match self.within(making).await {
            Some(Ok(())) => Ok(()),
            Some(Err(source)) => {
                let error = Error::middleware(RetryError::BodySource { source });
                Err((error, StopReason::NotReplayable))
            }
            None => Err((self.ran_out(), StopReason::TotalTimeout)),
        }
    }

    /// Waits for the attempt that is running, and says how what came of it is taken.
    pub(crate) async fn attempt(
        &mut self,
        running: &mut Running<'_>,
    ) -> (Result<Response>, Verdict<'a>) {
        if self.retries > 0 || self.plan.body_source().is_some() {
            self.begun = clock::now();
        }
        self.open = true;
        let outcome = match self.span.ends {
            None => (&mut *running).await,
            Some(end) => match Box::pin(clock::timeout_at(end, &mut *running)).await {
                Ok(outcome) => outcome,
                Err(_) => return (Err(self.timed_out()), Verdict::OutOfTime),
            },
        };
        let verdict = self.examine(&outcome, running.notes());
        (outcome, verdict)
    }

    /// Tells an answer from a failure.
    fn examine(&mut self, outcome: &Result<Response>, notes: Notes) -> Verdict<'a> {
        let response = match outcome {
            Ok(response) => response,
            Err(error) => {
                let class = self.class_of(error, notes.processed());
                return self.failed(class.map_or(AttemptResult::Error, AttemptResult::Failure));
            }
        };
        let is_unfollowed = || {
            let asked = self.replay.as_ref().and_then(Replay::url);
            asked.is_some_and(|asked| redirect::is_unfollowed(response, &asked))
        };
        let replaced = MaybeProcessed::marks(response) || notes.replaced(is_unfollowed);
        self.replaced |= replaced;
        let Some(Refusal { condition }) = self.refusal(response) else {
            let unread = complete::wanted(response, self.plan.policy.completes());
            return if unread {
                Verdict::Unread
            } else {
                Verdict::Answered
            };
        };
        Verdict::Failed(Failed {
            result: AttemptResult::Status(response.status()),
            elapsed: since(self.begun),
            condition,
            replaced,
        })
    }

    fn failed(&self, result: AttemptResult) -> Verdict<'a> {
        Verdict::Failed(Failed {
            result,
            elapsed: since(self.begun),
            condition: None,
            replaced: false,
        })
    }

    /// Reads the body of an answer, which is a failure where it breaks off.
    pub(crate) async fn complete(
        &mut self,
        answer: Result<Response>,
    ) -> (Result<Response>, Verdict<'a>) {
        let Ok(response) = answer else {
            return (answer, Verdict::Answered);
        };
        let reading = complete::complete(response, self.plan.policy.completes());
        match self.within(reading).await {
            Some((response, None)) => (Ok(response), Verdict::Answered),
            Some((response, Some(failure))) => {
                let verdict = self.failed(AttemptResult::Failure(failure));
                (Ok(response), verdict)
            }
            None => (Err(self.timed_out()), Verdict::OutOfTime),
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

    fn class_of(&self, error: &Error, processed: bool) -> Option<TransportError> {
        let class = self
            .plan
            .policy
            .class_of(error)
            .or_else(|| classify(error))?;
        Some(if processed {
            class.after_redirect()
        } else {
            class
        })
    }

    /// Runs `future` within the total timeout; `None` where that ran out.
    pub(super) async fn within<F: Future>(&self, future: F) -> Option<F::Output> {
        match self.span.ends {
            Some(end) => clock::timeout_at(end, future).await.ok(),
            None => Some(future.await),
        }
    }

    /// Notes what the attempt came to.
    pub(super) fn note(&mut self, result: AttemptResult) {
        self.record(AttemptRecord::new(result, since(self.begun)));
    }

    pub(super) fn record(&mut self, record: AttemptRecord) {
        self.records.push(record);
        self.open = false;
    }

    /// Whether an attempt may have been processed, of a request of which that matters: one that is on
    /// its way, or one that came to something which leaves it open.
    pub(super) fn may_be_processed(&self) -> bool {
        !self.idempotent && (self.open || !self.records.iter().all(AttemptRecord::is_unsent))
    }

    /// How many attempts were made, as the records have it.
    pub(super) fn attempts(&self) -> u32 {
        u32::try_from(self.records.len()).unwrap_or(u32::MAX)
    }

    /// The total timeout ran out in the attempt.
    fn timed_out(&mut self) -> Error {
        self.note(AttemptResult::Failure(TransportError::Timeout));
        self.ran_out()
    }

    /// The total timeout ran out.
    pub(crate) fn ran_out(&mut self) -> Error {
        let (attempts, last) = (self.attempts(), self.last.take());
        Error::middleware(RetryError::TotalTimeout { attempts, last })
    }
}

/// A send that is dropped on its way tells a send around this one, which may go on, what one that
/// fails tells.
impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.ended && self.may_be_processed() {
            in_flight::note_replaced();
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
