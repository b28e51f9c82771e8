//! What happens between two attempts of a send: the wait, the drain, the next request.
//!
//! [`RetryPolicy::run`](crate::RetryPolicy::run) has a wait of its own between two calls of a work,
//! in `work/`.

use std::time::Duration;

use reqwest::{Request, Response};
use reqwest_middleware::{Error, Result};
use tokio::time::Instant;

use super::attempt::Failed;
use super::call::Call;
use crate::middleware::clock;
use crate::middleware::report::AttemptResult;
use crate::middleware::response::Refused;
use crate::middleware::wait::Wait;
use crate::rule::StopReason;

/// The reading of a refused response is given this long even if the wait is shorter: a new
/// connection costs as much.
const DRAIN_GRACE: Duration = Duration::from_millis(20);

impl Call<'_> {
    /// Waits, and makes the request of the next attempt. What is in hand is kept until that one
    /// starts.
    ///
    /// # Errors
    ///
    /// What is in hand, and the reason to stop: time has run out after all, or there is no body.
    pub(super) async fn pause(
        &mut self,
        outcome: Result<Response>,
        failed: &Failed<'_>,
        wait: Wait,
    ) -> std::result::Result<Request, (Result<Response>, StopReason)> {
        let mut in_hand = self.hold(outcome, failed);
        self.wait(&mut in_hand, wait).await;
        let next = match self.wait_for_origin_again().await {
            Ok(()) => self.next_request(wait).await,
            Err(reason) => Err(reason),
        };
        match next {
            Ok(request) => {
                self.let_go(in_hand);
                Ok(request)
            }
            Err(reason) => Err((in_hand.map(Refused::into_response), reason)),
        }
    }

    /// Keeps what is in hand. Only a response that was refused is drained.
    fn hold(&mut self, outcome: Result<Response>, failed: &Failed<'_>) -> Result<Refused> {
        let is_status = matches!(failed.result, AttemptResult::Status(_));
        if let (Some(_), Ok(response)) = (self.time.ends, &outcome) {
            self.history.set_last_error(match failed.result {
                AttemptResult::Failure(failure) => Some(failure.into()),
                _ => response.error_for_status_ref().err().map(Into::into),
            });
        }
        let limit = if is_status { self.drain_limit() } else { 0 };
        outcome.map(|response| Refused::new(response, limit))
    }

    /// Waits, and reads the rest of a refused response meanwhile.
    async fn wait(&self, in_hand: &mut Result<Refused>, wait: Wait) {
        if let Ok(refused) = in_hand {
            let grace = clock::later(clock::now(), DRAIN_GRACE);
            let is_allowed = self.overdue(grace, wait.duration).is_none();
            let grace = if is_allowed { grace } else { wait.until };
            refused.drain(self.drain_limit(), wait.until, grace).await;
        }
        clock::sleep_until(wait.until).await;
    }

    fn drain_limit(&self) -> usize {
        self.in_force.settings().drain_limit
    }

    /// The request of the next attempt, unless time has run out after all or its body cannot be
    /// had.
    async fn next_request(&mut self, wait: Wait) -> std::result::Result<Request, StopReason> {
        let kept = self.request.kept().ok_or(StopReason::NotReplayable)?;
        let made = self.within_time(kept.next()).await;
        if made.is_some() {
            // A source of bodies may have taken its time.
            self.wait_for_origin_again().await?;
        }
        if let Some(reason) = self.overdue(clock::now(), wait.duration) {
            return Err(reason);
        }
        let Some(Ok(mut request)) = made else {
            return Err(StopReason::NotReplayable);
        };
        let retry = self.history.count_retry();
        if let Some(header) = &self.in_force.settings().attempt_header {
            if !request.headers().contains_key(header) {
                // A head that is full goes without.
                let _ = request.headers_mut().try_insert(header, retry.into());
            }
        }
        Ok(request)
    }

    /// Lets go of what was in hand, since the next attempt starts. An error is kept if a total
    /// timeout may have to name it.
    fn let_go(&mut self, in_hand: Result<Refused>) {
        if let (Some(_), Err(error)) = (self.time.ends, in_hand) {
            self.history.set_last_error(Some(match error {
                Error::Reqwest(error) => error.into(),
                Error::Middleware(error) => error.into(),
            }));
        }
    }

    /// The limit that would be reached by starting an attempt at `moment`.
    pub(super) fn overdue(&self, moment: Instant, wait: Duration) -> Option<StopReason> {
        let limits = &self.in_force.rule().limits;
        self.time.overdue(limits, moment, wait)
    }
}
