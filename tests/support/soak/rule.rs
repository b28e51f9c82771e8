//! The rule of the soak, said once more: what has to follow an attempt.

use std::fmt;

use reqwest_retry_rules::{AttemptResult, StopReason, TransportError};

use super::fault::{Asked, Refusal, TOO_LONG, failure};
use super::plan::{Plan, RETRIES};

/// What the rule says of an attempt.
pub enum Next {
    Answer,
    Stop(StopReason),
    Again,
    /// It depends on whether the stream of the body was begun.
    AgainOr(StopReason),
}

impl Plan {
    /// What follows the attempt of this number, counted from 0, that came to this.
    pub fn next(&self, attempt: u32, result: AttemptResult, refusal: Option<&Refusal>) -> Next {
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
        if self.content.made.is_stream() {
            if !unsent {
                return Next::Stop(StopReason::NotReplayable);
            }
            // A stream that is refused may have been begun by then.
            may_have_begun = result == failure(TransportError::NotProcessed);
        }
        let idempotent = self.is_repeatable();
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
            return Next::Stop(StopReason::RetryAfterTooLong(TOO_LONG));
        }
        if may_have_begun {
            Next::AgainOr(StopReason::NotReplayable)
        } else {
            Next::Again
        }
    }
}

/// Whether it proves that nothing was processed.
pub fn is_unsent(result: AttemptResult) -> bool {
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
