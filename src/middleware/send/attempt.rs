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
use crate::middleware::tracking::{MaybeProcessed, Notes, SentRefusal, is_unfollowed};
use crate::rule::{Methods, TransportError};

/// What came of an attempt.
pub(super) enum Attempted<'a> {
    Answer(Response),
    Failed(Result<Response>, Failed<'a>),
    /// The time of the whole send ran out.
    OutOfTime(Error),
}

/// What the head of a response says. Of an attempt without a response it is empty.
#[derive(Default)]
pub(super) struct Examined<'a> {
    on_the_way: OnTheWay,
    /// True if the policy may want to read the body first. Then nothing is known of a refusal.
    wants_body: bool,
    refusal: Option<Refusal<'a>>,
}

impl Examined<'_> {
    /// True if the response is the answer.
    #[inline]
    pub(super) fn is_answer(&self) -> bool {
        !self.wants_body && self.refusal.is_none()
    }
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

    /// Examines the head of a response, if there is one.
    #[inline]
    pub(super) fn examine(
        &mut self,
        outcome: &Option<Result<Response>>,
        notes: &Notes,
    ) -> Examined<'a> {
        let Some(Ok(response)) = outcome else {
            return Examined::default();
        };
        let on_the_way = OnTheWay {
            replaced: self.is_replaced(response, notes),
            redirected: self.request.processed(notes),
        };
        let wants_body = self.wants_body_of(response);
        let refusal = if wants_body {
            None
        } else {
            self.refusal(response, Judgement::ByRule)
        };
        Examined {
            on_the_way,
            wants_body,
            refusal,
        }
    }

    /// Says what came of an attempt: from its outcome, which is `None` if it was not done in time,
    /// and from the head of its response.
    pub(super) async fn attempted(
        &mut self,
        outcome: Option<Result<Response>>,
        head: Examined<'a>,
        notes: Notes,
    ) -> Attempted<'a> {
        match outcome {
            None => self.too_slow(),
            Some(Err(error)) => {
                let class = self.class_of(&error, &notes);
                let result = class.map_or(AttemptResult::Error, AttemptResult::Failure);
                Attempted::Failed(Err(error), Failed::with(result))
            }
            Some(Ok(response)) if head.wants_body => {
                self.examine_body(response, head.on_the_way).await
            }
            Some(Ok(response)) => answered(response, head.on_the_way, head.refusal),
        }
    }

    /// The time of the send ran out, or that of the attempt up to its response's head.
    fn too_slow(&mut self) -> Attempted<'a> {
        let timeout = match self.in_force.settings().head_timeout {
            Some(timeout) if !self.time.is_over(clock::now()) => timeout,
            _ => return self.out_of_time(),
        };
        let error = Error::middleware(RetryError::HeadTimeout { timeout });
        let failed = Failed::with_failure(TransportError::Timeout);
        Attempted::Failed(Err(error), failed)
    }

    fn out_of_time(&mut self) -> Attempted<'a> {
        let timeout = AttemptResult::Failure(TransportError::Timeout);
        self.history.record_result(timeout, clock::now());
        Attempted::OutOfTime(self.total_timeout())
    }

    fn class_of(&self, error: &Error, notes: &Notes) -> Option<TransportError> {
        let by_caller = self.in_force.settings().classify_with(error);
        let (class, is_foreign) = match (by_caller, self.request.url()) {
            (Some(class), _) => (class, false),
            (None, Some(url)) => (classify(error)?, is_of_another_request(error, url)),
            (None, None) => (classify(error)?, false),
        };
        Some(if is_foreign || self.request.processed(notes) {
            class.after_redirect()
        } else {
            class
        })
    }

    /// True if the response answers another request, which went in the place of this one.
    #[inline]
    fn is_replaced(&mut self, response: &Response, notes: &Notes) -> bool {
        let is_unfollowed = || {
            let url = self.request.url();
            url.is_some_and(|url| is_unfollowed(response, url))
        };
        let replaced =
            MaybeProcessed::marks(response) || self.request.replaced(notes, is_unfollowed);
        if replaced {
            self.history.note_replaced();
        }
        replaced
    }

    /// True if the policy may want to read the body before the response is examined.
    #[inline]
    fn wants_body_of(&self, response: &Response) -> bool {
        let settings = self.in_force.settings();
        let judges = |judge: &BodyJudge| response::may_be_judged(response, judge.limit);
        settings.judge_body.as_ref().is_some_and(judges)
            || response::is_to_be_completed(response, settings.complete_body)
    }

    /// Tells an answer from a response that is refused, by its head and by its body.
    async fn examine_body(
        &mut self,
        mut response: Response,
        on_the_way: OnTheWay,
    ) -> Attempted<'a> {
        let settings = self.in_force.settings();
        let mut judgement = Judgement::ByRule;
        if let Some(judge) = &settings.judge_body {
            if response::may_be_judged(&response, judge.limit) {
                let Some((read, judged)) = self.judge_body(response, judge).await else {
                    return self.out_of_time();
                };
                response = read;
                match judged {
                    Judged::Asked(judged) => judgement = judged,
                    Judged::NotAsked => {}
                    Judged::Failed(failure) => {
                        let failed = Failed::with_failure(failure);
                        return Attempted::Failed(Ok(response), failed);
                    }
                }
            }
        }
        let refusal = self.refusal(&response, judgement);
        match answered(response, on_the_way, refusal) {
            Attempted::Answer(answer)
                if response::is_to_be_completed(&answer, settings.complete_body) =>
            {
                self.complete(answer).await
            }
            refused => refused,
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
        let (method, idempotent) = (&self.request.method, self.request.idempotent());
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
                let held = settings.retry_if(&head, method, idempotent);
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
    async fn complete(&mut self, answer: Response) -> Attempted<'a> {
        let reading = response::complete(answer, self.in_force.settings().complete_body);
        match self.within_time(reading).await {
            Some((response, None)) => Attempted::Answer(response),
            Some((response, Some(failure))) => {
                Attempted::Failed(Ok(response), Failed::with_failure(failure))
            }
            None => self.out_of_time(),
        }
    }
}

/// What came of an attempt that has a response.
fn answered<'a>(
    response: Response,
    on_the_way: OnTheWay,
    refusal: Option<Refusal<'a>>,
) -> Attempted<'a> {
    match refusal {
        None => Attempted::Answer(response),
        Some(refusal) => {
            let failed = Failed {
                on_the_way,
                refusal,
                ..Failed::with(AttemptResult::Status(response.status()))
            };
            Attempted::Failed(Ok(response), failed)
        }
    }
}
