//! One send on its way: what is known of it, and each step of the loop.

use std::future::Future;
use std::time::Duration;

use http::{HeaderValue, Method};
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Next, Result};
use tokio::time::Instant;

use super::body_source::BoxError;
use super::budget::RetryBudget;
use super::classify::classify;
use super::clock;
use super::complete;
use super::error::RetryError;
use super::in_flight::{self, Notes};
use super::lent::Lent;
use super::overrides::Plan;
use super::policy::RetryPolicy;
use super::replay::Replay;
use super::report::{AttemptRecord, AttemptResult};
use crate::rule::{Methods, StopReason, TransportError};

pub(crate) struct Call<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) budget: Option<&'a RetryBudget>,
    pub(super) method: Method,
    pub(super) idempotent: bool,
    /// What a retry needs; `None` where none could be allowed.
    pub(super) replay: Option<Replay>,
    /// The host that is asked, where neither `replay` nor what comes back may have it.
    pub(super) host: Option<Box<str>>,
    pub(super) records: Vec<AttemptRecord>,
    /// How many retries were begun.
    pub(super) retries: u32,
    /// What the attempt before failed with, where a total timeout may have to tell.
    pub(super) last: Option<BoxError>,
}

/// What an attempt came to.
pub(crate) enum Ended<'a> {
    Answered(Response),
    Failed(Failed<'a>),
    OutOfTime(Error),
}

/// What an attempt came to so far.
enum Examined<'a> {
    Ended(Ended<'a>),
    /// An answer whose body is to be read first.
    Unread(Response),
}

/// A refused response or an error, as it came in.
pub(crate) struct Failed<'a> {
    pub(crate) in_hand: Result<Response>,
    pub(super) result: AttemptResult,
    pub(super) elapsed: Duration,
    /// The methods of the condition that held.
    pub(super) condition: Option<&'a Methods>,
    /// Whether what is in hand is the answer to another request, which went in the place of this.
    pub(super) replaced: bool,
}

impl Failed<'_> {
    fn new(in_hand: Result<Response>, result: AttemptResult, begun: Instant) -> Self {
        Self {
            in_hand,
            result,
            elapsed: since(begun),
            condition: None,
            replaced: false,
        }
    }
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
        let policy = &*plan.policy;
        let method = request.method().clone();
        let has_key = !method.is_idempotent() && give_key(policy, request);
        let idempotent = plan.idempotent(&method, has_key);
        if let Some(limit) = policy.each_attempt() {
            let timeout = request.timeout_mut();
            *timeout = Some(timeout.map_or(limit, |own| own.min(limit)));
        }
        let may_retry = plan.could_retry(&method, idempotent);
        let host = match request.url().host_str() {
            Some(host) if !may_retry && plan.ends.is_some() => Some(host.into()),
            _ => None,
        };
        let replay = may_retry.then(|| Replay::keep(request, plan.body_source.clone()));
        Self {
            plan,
            budget: policy.budget_within(built_with),
            method,
            idempotent,
            replay,
            host,
            records: Vec::new(),
            retries: 0,
            last: None,
        }
    }

    pub(crate) fn may_retry(&self) -> bool {
        self.replay.is_some()
    }

    /// Whether the request has no body yet and a source is there to make it.
    pub(crate) fn lacks_body(&self, request: &Request) -> bool {
        self.plan.body_source.is_some() && request.body().is_none()
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
        let Some(source) = &self.plan.body_source else {
            return Ok(());
        };
        let making = async { source.make().await?.put_into(request) };
        match self.within(making).await {
            Some(Ok(())) => Ok(()),
            Some(Err(source)) => {
                let error = Error::middleware(RetryError::BodySource { source });
                Err((error, StopReason::NotReplayable))
            }
            None => Err((self.ran_out(None), StopReason::TotalTimeout)),
        }
    }

    /// Runs the rest of the chain once.
    ///
    /// The request goes straight into it: what is awaited here stays small, since each send is
    /// boxed with it.
    pub(crate) fn attempt<'s>(
        &'s mut self,
        request: Request,
        lent: &'s mut Lent<'_>,
        next: Next<'s>,
    ) -> impl Future<Output = Ended<'a>> + Send + 's
    where
        'a: 's,
    {
        let begun = if self.retries == 0 && self.plan.body_source.is_none() {
            self.plan.started
        } else {
            clock::now()
        };
        let map = lent.map();
        let address = in_flight::address(map);
        let running = in_flight::Attempt::new(address, next.run(request, map));
        async move {
            let ended = match self.plan.ends {
                None => running.await,
                Some(end) => match Box::pin(clock::timeout_at(end, running)).await {
                    Ok(ended) => ended,
                    Err(_) => return Ended::OutOfTime(self.ran_out(Some(begun))),
                },
            };
            let unread = match self.examine(ended, begun) {
                Examined::Ended(ended) => return ended,
                Examined::Unread(response) => response,
            };
            Box::pin(self.complete(unread, begun)).await
        }
    }

    /// Tells an answer from a failure.
    fn examine(
        &mut self,
        (outcome, notes): (Result<Response>, Notes),
        begun: Instant,
    ) -> Examined<'a> {
        let response = match outcome {
            Ok(response) => response,
            Err(error) => {
                let class = self.class_of(&error, notes.processed);
                let result = class.map_or(AttemptResult::Error, AttemptResult::Failure);
                return Examined::Ended(Ended::Failed(Failed::new(Err(error), result, begun)));
            }
        };
        let status = AttemptResult::Status(response.status());
        if let Some(Refusal { condition }) = self.refusal(&response) {
            // A redirect that was not followed is the answer itself.
            let replaced = notes.replaced && !response.status().is_redirection();
            let failed = Failed::new(Ok(response), status, begun);
            return Examined::Ended(Ended::Failed(Failed {
                condition,
                replaced,
                ..failed
            }));
        }
        if complete::wanted(&response, self.plan.policy.completes()) {
            return Examined::Unread(response);
        }
        self.note_answer(status, begun);
        Examined::Ended(Ended::Answered(response))
    }

    /// Reads the body of an answer, which is a failure where it breaks off.
    async fn complete(&mut self, response: Response, begun: Instant) -> Ended<'a> {
        let status = AttemptResult::Status(response.status());
        let reading = complete::complete(response, self.plan.policy.completes());
        match self.within(reading).await {
            Some((response, None)) => {
                self.note_answer(status, begun);
                Ended::Answered(response)
            }
            Some((response, Some(failure))) => {
                let result = AttemptResult::Failure(failure);
                Ended::Failed(Failed::new(Ok(response), result, begun))
            }
            None => Ended::OutOfTime(self.ran_out(Some(begun))),
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
        match self.plan.ends {
            Some(end) => clock::timeout_at(end, future).await.ok(),
            None => Some(future.await),
        }
    }

    /// Notes an answer, where anybody will read of it.
    fn note_answer(&mut self, result: AttemptResult, begun: Instant) {
        if !self.records.is_empty() || self.plan.log.is_some() {
            self.note(result, begun);
        }
    }

    fn note(&mut self, result: AttemptResult, begun: Instant) {
        self.records.push(AttemptRecord::new(result, since(begun)));
    }

    /// How many attempts were made, as the records have it.
    pub(super) fn attempts(&self) -> u32 {
        u32::try_from(self.records.len()).unwrap_or(u32::MAX)
    }

    /// The total timeout ran out, in the attempt that was begun then or before the first.
    pub(crate) fn ran_out(&mut self, begun: Option<Instant>) -> Error {
        if let Some(begun) = begun {
            self.note(AttemptResult::Failure(TransportError::Timeout), begun);
        }
        let (attempts, last) = (self.attempts(), self.last.take());
        Error::middleware(RetryError::TotalTimeout { attempts, last })
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
