//! One attempt: the rest of the chain is run, and what came of it is examined.

use std::time::Duration;

use reqwest::Response;
use reqwest_middleware::{Error, Result};
use tokio::time::Instant;

use super::call::Call;
use crate::middleware::classify::classify;
use crate::middleware::clock;
use crate::middleware::error::RetryError;
use crate::middleware::error_chain::is_of_another_request;
use crate::middleware::policy::BodyJudge;
use crate::middleware::report::AttemptResult;
use crate::middleware::response::{self, Judged, Judgement};
use crate::middleware::tracking::{MaybeProcessed, Notes, is_unfollowed};
use crate::middleware::work::SentRefusal;
use crate::rule::{Methods, TransportError};

/// What came of an attempt.
pub(super) enum Examined<'a> {
    Answer(Response),
    Failed(Result<Response>, Failed<'a>),
    /// The time of the whole send ran out.
    OutOfTime(Error),
}

/// What came of the rest of the chain.
pub(super) enum Taken<'a> {
    Examined(Examined<'a>),
    /// A response whose body the policy may want to read.
    Unread(Response, OnTheWay),
}

/// A failed attempt, as far as the response or the error does not say it.
pub(super) struct Failed<'a> {
    pub(super) result: AttemptResult,
    /// When it had failed.
    pub(super) at: Instant,
    pub(super) on_the_way: OnTheWay,
    pub(super) refusal: Refusal<'a>,
}

/// What became of a request on the way to its response.
#[derive(Clone, Copy, Default)]
pub(super) struct OnTheWay {
    /// True if the outcome is that of another request, which went in the place of this.
    pub(super) replaced: bool,
    /// True if a redirect was followed, so that another origin may have answered.
    pub(super) redirected: bool,
}

/// What is known of a response that is not the answer yet.
#[derive(Default)]
pub(super) struct Refusal<'a> {
    /// The methods of the condition that held, or of the judge that wants it again.
    pub(super) condition: Option<&'a Methods>,
    /// The wait that its body asks for.
    pub(super) server_delay: Option<Duration>,
    /// True if its body says that the request is not to be sent again.
    pub(super) vetoed: bool,
}

impl Refusal<'_> {
    /// What the work around the send must know of it.
    pub(super) fn for_work(&self) -> SentRefusal {
        SentRefusal {
            condition: self.condition.cloned(),
            server_delay: self.server_delay,
            vetoed: self.vetoed,
        }
    }
}

impl Failed<'_> {
    fn with(result: AttemptResult) -> Self {
        Self {
            result,
            at: clock::now(),
            on_the_way: OnTheWay::default(),
            refusal: Refusal::default(),
        }
    }

    fn with_failure(failure: TransportError) -> Self {
        Self::with(AttemptResult::Failure(failure))
    }
}

impl<'a> Call<'a> {
    /// Notes that an attempt begins, and says by when it must have a response's head.
    #[inline]
    pub(super) fn begin_attempt(&mut self) -> Option<Instant> {
        let is_first = self.history.is_empty() && self.in_force.body_source().is_none();
        let is_first = is_first && self.history.paused().is_zero();
        let begun = if is_first {
            self.time.started
        } else {
            clock::now()
        };
        self.history.begin_attempt(begun);
        let head_by = self.in_force.settings().head_timeout;
        let head_by = head_by.and_then(|limit| begun.checked_add(limit));
        head_by.into_iter().chain(self.time.ends).min()
    }

    /// Takes what came of the rest of the chain; `None` means that it was not done in time.
    #[inline]
    pub(super) fn take(&mut self, outcome: Option<Result<Response>>, notes: &Notes) -> Taken<'a> {
        match outcome {
            None => Taken::Examined(self.too_slow()),
            Some(Err(error)) => {
                let class = self.class_of(&error, notes);
                let result = class.map_or(AttemptResult::Error, AttemptResult::Failure);
                Taken::Examined(Examined::Failed(Err(error), Failed::with(result)))
            }
            Some(Ok(response)) => {
                let on_the_way = OnTheWay {
                    replaced: self.is_replaced(&response, notes),
                    redirected: self.asked.processed(notes),
                };
                if self.reads_body_of(&response) {
                    Taken::Unread(response, on_the_way)
                } else {
                    Taken::Examined(self.examine(response, on_the_way, Judgement::ByRule))
                }
            }
        }
    }

    /// The time of the send ran out, or that of the attempt up to its response's head.
    fn too_slow(&mut self) -> Examined<'a> {
        let timeout = match self.in_force.settings().head_timeout {
            Some(timeout) if !self.time.is_over(clock::now()) => timeout,
            _ => return self.out_of_time(),
        };
        let error = Error::middleware(RetryError::HeadTimeout { timeout });
        let failed = Failed::with_failure(TransportError::Timeout);
        Examined::Failed(Err(error), failed)
    }

    fn out_of_time(&mut self) -> Examined<'a> {
        let timeout = AttemptResult::Failure(TransportError::Timeout);
        self.history.record_result(timeout, clock::now());
        Examined::OutOfTime(self.total_timeout())
    }

    fn class_of(&self, error: &Error, notes: &Notes) -> Option<TransportError> {
        let by_caller = self.in_force.settings().classify_with(error);
        let (class, is_foreign) = match (by_caller, self.asked.url()) {
            (Some(class), _) => (class, false),
            (None, Some(asked)) => (classify(error)?, is_of_another_request(error, asked)),
            (None, None) => (classify(error)?, false),
        };
        Some(if is_foreign || self.asked.processed(notes) {
            class.after_redirect()
        } else {
            class
        })
    }

    /// True if the response answers another request, which went in the place of this one.
    #[inline]
    fn is_replaced(&mut self, response: &Response, notes: &Notes) -> bool {
        let is_unfollowed = || {
            let asked = self.asked.url();
            asked.is_some_and(|asked| is_unfollowed(response, asked))
        };
        let replaced = MaybeProcessed::marks(response) || self.asked.replaced(notes, is_unfollowed);
        if replaced {
            self.history.note_replaced();
        }
        replaced
    }

    /// Tells an answer from a response that is refused.
    #[inline]
    fn examine(
        &self,
        response: Response,
        on_the_way: OnTheWay,
        judgement: Judgement,
    ) -> Examined<'a> {
        match self.refusal(&response, judgement) {
            Some(refusal) => {
                let failed = Failed {
                    on_the_way,
                    refusal,
                    ..Failed::with(AttemptResult::Status(response.status()))
                };
                Examined::Failed(Ok(response), failed)
            }
            None => Examined::Answer(response),
        }
    }

    /// True if the policy may want to read the body before the response is examined.
    #[inline]
    fn reads_body_of(&self, response: &Response) -> bool {
        let settings = self.in_force.settings();
        let judges = |judge: &BodyJudge| response::may_be_judged(response, judge.limit);
        settings.judge_body.as_ref().is_some_and(judges)
            || response::is_to_be_completed(response, settings.complete_body)
    }

    /// Tells an answer from a response that is refused, by its head and by its body.
    pub(super) async fn examine_with_body(
        &mut self,
        mut response: Response,
        on_the_way: OnTheWay,
    ) -> Examined<'a> {
        let settings = self.in_force.settings();
        let mut judgement = Judgement::ByRule;
        if let Some(judge) = &settings.judge_body {
            if response::may_be_judged(&response, judge.limit) {
                let Some((read, judged)) = self.judge_body(response, judge).await else {
                    return self.out_of_time();
                };
                response = read;
                match judged {
                    Judged::Said(said) => judgement = said,
                    Judged::NotAsked => {}
                    Judged::Failed(failure) => {
                        let failed = Failed::with_failure(failure);
                        return Examined::Failed(Ok(response), failed);
                    }
                }
            }
        }
        match self.examine(response, on_the_way, judgement) {
            Examined::Answer(answer)
                if response::is_to_be_completed(&answer, settings.complete_body) =>
            {
                self.complete(answer).await
            }
            examined => examined,
        }
    }

    /// Has the policy's judge look into the body; `None` if the time of the send ran out.
    async fn judge_body(
        &self,
        response: Response,
        judge: &BodyJudge,
    ) -> Option<(Response, Judged)> {
        let judging = response::judge_body(response, judge.limit, |head, body| {
            (judge.judge)(&self.complete_head(head), body)
        });
        self.within_time(judging).await
    }

    /// Says why the response is refused, if it is: by a row of the rule that contains its status, by
    /// a condition that holds, by a header in which the server says what to do, or by its body.
    #[inline]
    fn refusal(&self, response: &Response, judgement: Judgement) -> Option<Refusal<'a>> {
        let (rule, settings) = (self.in_force.rule(), self.in_force.settings());
        let (method, idempotent) = (&self.asked.method, self.asked.idempotent());
        let row = rule.status_methods(response.status());
        let by_body = match judgement {
            Judgement::Retry | Judgement::RetryAfter(_) => settings.judge_body.as_ref(),
            Judgement::ByRule | Judgement::Stop => None,
        };
        let by_body = by_body.map(|judge| &judge.methods);
        // A row that allows the method needs no condition, and one that says never outranks it.
        let decides = |methods: &Methods| methods.allows(method, idempotent);
        let is_decided = row.is_some_and(|row| *row == Methods::Never || decides(row));
        let condition = match by_body {
            Some(methods) if decides(methods) => Some(methods),
            _ if is_decided => by_body,
            _ => {
                let head = self.head_of(response);
                let held = settings.condition(&head, method, idempotent);
                held.filter(|held| decides(held)).or(by_body).or(held)
            }
        };
        let is_refused = row.is_some()
            || condition.is_some()
            || rule
                .server_override(response.status(), response.headers())
                .is_some();
        is_refused.then_some(Refusal {
            condition,
            server_delay: match judgement {
                Judgement::RetryAfter(wait) => Some(wait),
                _ => None,
            },
            vetoed: judgement == Judgement::Stop,
        })
    }

    /// Reads the body of an answer, which is a failure if it breaks off.
    async fn complete(&mut self, answer: Response) -> Examined<'a> {
        let reading = response::complete(answer, self.in_force.settings().complete_body);
        match self.within_time(reading).await {
            Some((response, None)) => Examined::Answer(response),
            Some((response, Some(failure))) => {
                Examined::Failed(Ok(response), Failed::with_failure(failure))
            }
            None => self.out_of_time(),
        }
    }
}
