//! One attempt: the rest of the chain is run, and what came of it is examined.

use reqwest::{Request, Response};
use reqwest_middleware::{Error, Next, Result};
use tokio::time::Instant;

use super::call::Call;
use crate::middleware::classify::classify;
use crate::middleware::error_chain::is_of_another_request;
use crate::middleware::complete;
use crate::middleware::error::RetryError;
use crate::middleware::head::ResponseHead;
use crate::middleware::report::AttemptResult;
use crate::middleware::tracking::{MaybeProcessed, Notes, Running, is_unfollowed};
use crate::middleware::clock;
use crate::rule::{Methods, TransportError};

/// What came of an attempt.
pub(super) enum Examined<'a> {
    Answer,
    Failed(Failed<'a>),
    /// The time of the whole send ran out.
    OutOfTime,
}

/// A failed attempt, as far as the response or the error does not say it.
pub(super) struct Failed<'a> {
    pub(super) result: AttemptResult,
    /// When it had failed.
    pub(super) at: Instant,
    /// The methods of the condition that held.
    pub(super) condition: Option<&'a Methods>,
    /// True if the outcome is that of another request, which went in the place of this.
    pub(super) replaced: bool,
}

impl Failed<'_> {
    fn with(result: AttemptResult) -> Self {
        Self {
            result,
            at: clock::now(),
            condition: None,
            replaced: false,
        }
    }
}

impl<'a> Call<'a> {
    /// Runs the rest of the chain, and says what came of it.
    pub(super) async fn attempt(
        &mut self,
        request: Request,
        chain: &Next<'_>,
    ) -> (Result<Response>, Examined<'a>) {
        let is_first = self.history.retries() == 0 && self.in_force.body_source().is_none();
        let begun = if is_first {
            self.time.started
        } else {
            clock::now()
        };
        self.history.begin_attempt(begun);
        let head_by = self.in_force.settings().head_timeout;
        let head_by = head_by.and_then(|limit| begun.checked_add(limit));
        let end = head_by.into_iter().chain(self.time.ends).min();

        let address = self.extensions.address();
        let rest = chain.clone().run(request, self.extensions.map());
        let mut running = Running::new(address, rest);
        let outcome = match end {
            None => Some((&mut running).await),
            Some(end) => Box::pin(clock::timeout_at(end, &mut running)).await.ok(),
        };
        let notes = running.into_notes();
        let Some(outcome) = outcome else {
            return self.out_of_time_or_head_timeout();
        };
        match (self.examine(&outcome, &notes), outcome) {
            (Examined::Answer, Ok(response)) if self.is_to_be_completed(&response) => {
                Box::pin(self.complete(response)).await
            }
            (examined, outcome) => (outcome, examined),
        }
    }

    /// The time of the send ran out, or that of the attempt up to its response's head.
    fn out_of_time_or_head_timeout(&mut self) -> (Result<Response>, Examined<'a>) {
        let timeout = match self.in_force.settings().head_timeout {
            Some(timeout) if !self.time.is_over(clock::now()) => timeout,
            _ => return self.out_of_time(),
        };
        let error = Error::middleware(RetryError::HeadTimeout { timeout });
        let failed = Failed::with(AttemptResult::Failure(TransportError::Timeout));
        (Err(error), Examined::Failed(failed))
    }

    fn out_of_time(&mut self) -> (Result<Response>, Examined<'a>) {
        let timeout = AttemptResult::Failure(TransportError::Timeout);
        self.history.record_result(timeout, clock::now());
        (Err(self.total_timeout()), Examined::OutOfTime)
    }

    /// Tells an answer from a failure.
    fn examine(&mut self, outcome: &Result<Response>, notes: &Notes) -> Examined<'a> {
        let response = match outcome {
            Ok(response) => response,
            Err(error) => {
                let class = self.class_of(error, notes);
                let result = class.map_or(AttemptResult::Error, AttemptResult::Failure);
                return Examined::Failed(Failed::with(result));
            }
        };
        let is_unfollowed = || {
            let asked = self.asked.url();
            asked.is_some_and(|asked| is_unfollowed(response, asked))
        };
        let replaced =
            MaybeProcessed::marks(response) || self.asked.replaced(notes, is_unfollowed);
        if replaced {
            self.history.note_replaced();
        }
        match self.refusal(response) {
            None => Examined::Answer,
            Some(Refusal { condition }) => Examined::Failed(Failed {
                condition,
                replaced,
                ..Failed::with(AttemptResult::Status(response.status()))
            }),
        }
    }

    fn class_of(&self, error: &Error, notes: &Notes) -> Option<TransportError> {
        let by_caller = self.in_force.settings().classify_with(error);
        let foreign = || {
            let asked = self.asked.url();
            asked.is_some_and(|asked| is_of_another_request(error, asked))
        };
        let (class, may_be_processed) = match by_caller {
            Some(class) => (class, false),
            None => (classify(error)?, foreign()),
        };
        Some(if may_be_processed || self.asked.processed(notes) {
            class.after_redirect()
        } else {
            class
        })
    }

    /// Says whether the response is refused: by a row of the rule that contains its status, by a
    /// condition that holds, or by a header in which the server says what to do.
    fn refusal(&self, response: &Response) -> Option<Refusal<'a>> {
        let (rule, settings) = (self.in_force.rule(), self.in_force.settings());
        let (method, idempotent) = (&self.asked.method, self.asked.idempotent());
        let (status, headers) = (response.status(), response.headers());
        let row = rule.status_methods(status);
        // A row that allows the method needs no condition, and one that says never outranks it.
        let decides = |row: &Methods| *row == Methods::Never || row.allows(method, idempotent);
        let condition = if row.is_some_and(decides) {
            None
        } else {
            let head = ResponseHead::from(response);
            settings.condition(&head, method, idempotent)
        };
        let is_refused = row.is_some()
            || condition.is_some()
            || rule.server_override(status, headers).is_some();
        is_refused.then_some(Refusal { condition })
    }

    fn is_to_be_completed(&self, response: &Response) -> bool {
        complete::wanted(response, self.in_force.settings().complete_body)
    }

    /// Reads the body of an answer, which is a failure if it breaks off.
    async fn complete(&mut self, answer: Response) -> (Result<Response>, Examined<'a>) {
        let reading = complete::complete(answer, self.in_force.settings().complete_body);
        match self.within_time(reading).await {
            Some((response, None)) => (Ok(response), Examined::Answer),
            Some((response, Some(failure))) => {
                let failed = Failed::with(AttemptResult::Failure(failure));
                (Ok(response), Examined::Failed(failed))
            }
            None => self.out_of_time(),
        }
    }
}

/// That a response is not the answer yet.
struct Refusal<'a> {
    condition: Option<&'a Methods>,
}
