//! What happens between two attempts: the wait, the drain, the next request.

use std::time::Duration;

use reqwest::{Request, Response};
use reqwest_middleware::{Error, Result};
use tokio::time::Instant;

use super::call::{Call, Failed};
use super::clock;
use super::judge::Wait;
use super::report::AttemptResult;
use super::response::Refused;
use crate::rule::StopReason;

/// The reading of a refused response is given this long even where the wait is shorter: a new
/// connection costs as much.
const DRAIN_GRACE: Duration = Duration::from_millis(20);

impl Call<'_> {
    /// Keeps what is in hand until the next attempt starts.
    pub(crate) fn hold(
        &mut self,
        outcome: Result<Response>,
        failed: &Failed<'_>,
    ) -> Result<Refused> {
        if let (Some(_), Ok(response)) = (self.span.ends, &outcome) {
            self.last = match failed.result {
                AttemptResult::Failure(failure) => Some(failure.into()),
                _ => response.error_for_status_ref().err().map(Into::into),
            };
        }
        let is_status = matches!(failed.result, AttemptResult::Status(_));
        let limit = if is_status {
            self.plan.policy.drains()
        } else {
            0
        };
        outcome.map(|response| Refused::new(response, limit))
    }

    /// Waits, and reads the rest of a refused response while it does.
    pub(crate) async fn wait(&self, in_hand: &mut Result<Refused>, wait: Wait) {
        let begun = clock::now();
        let wake = clock::later(begun, wait.duration);
        if let Ok(refused) = in_hand {
            let grace = clock::later(begun, DRAIN_GRACE);
            let grace = self.overdue(grace, wait).map_or(grace, |_| wake);
            refused.drain(self.plan.policy.drains(), wake, grace).await;
        }
        clock::sleep_until(wake).await;
    }

    /// The request of the next attempt, unless time has run out after all or its body cannot be
    /// had.
    pub(crate) async fn next_request(
        &mut self,
        wait: Wait,
    ) -> std::result::Result<Request, StopReason> {
        let replay = self.replay.as_ref().ok_or(StopReason::NotReplayable)?;
        let made = self.within(replay.next(self.method.clone())).await;
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
        if let (Some(_), Err(error)) = (self.span.ends, in_hand) {
            self.last = Some(match error {
                Error::Reqwest(error) => error.into(),
                Error::Middleware(error) => error.into(),
            });
        }
    }

    /// The limit that would be met by starting an attempt at `moment`.
    pub(super) fn overdue(&self, moment: Instant, wait: Wait) -> Option<StopReason> {
        let elapsed = moment.saturating_duration_since(self.span.started);
        if self.plan.policy.rule().limits.hard_reached(elapsed) {
            Some(StopReason::HardLimit(wait.duration))
        } else if self.span.is_over(moment) {
            Some(StopReason::Budget(wait.duration))
        } else {
            None
        }
    }
}
