//! What is known of a send.

use std::future::Future;
use std::sync::Arc;

use reqwest::{Request, Response};
use reqwest_middleware::Error;

use super::history::History;
use super::send_request::SendRequest;
use crate::middleware::clock;
use crate::middleware::error::RetryError;
use crate::middleware::overrides::InForce;
use crate::middleware::response::ResponseHead;
use crate::middleware::time::SendTime;
use crate::middleware::tracking::{SendInWork, WorkCall};
use crate::rule::StopReason;

/// One send on its way. Each step of the loop is a method in a file of its own.
pub(super) struct Call<'a> {
    pub(super) in_force: &'a InForce<'a>,
    pub(super) request: SendRequest,
    pub(super) time: SendTime,
    pub(super) history: History,
    /// Where the work around this send notes what became of it.
    pub(super) work: Option<SendInWork>,
}

impl<'a> Call<'a> {
    #[inline]
    pub(super) fn new(
        in_force: &'a InForce<'a>,
        request: &mut Request,
        idempotent: bool,
        work: Option<Arc<WorkCall>>,
    ) -> Self {
        let mut time = in_force.time();
        let url = work.is_some().then(|| request.url().clone());
        let own = SendRequest::new(in_force, request, idempotent, work.is_some());
        let work = work.zip(url).map(|(work, url)| {
            time = time.within(work.ends());
            let idempotent = own.idempotent_by_itself();
            SendInWork::new(work, &own.method, idempotent, url)
        });
        let begun_with = work.as_ref().map_or(0, |work| work.begun_with());
        Self {
            in_force,
            request: own,
            time,
            history: History::new(time.started, begun_with),
            work,
        }
    }

    #[inline]
    pub(super) fn may_retry(&self) -> bool {
        self.request.kept().is_some()
    }

    pub(super) fn resends(&self) -> u32 {
        self.history.resends()
    }

    /// True if the first attempt cannot begin at once.
    #[inline]
    pub(super) fn is_to_be_prepared(&self) -> bool {
        self.is_late()
            || self.in_force.settings().pause_origins.is_some()
            || self.in_force.body_source().is_some()
    }

    /// True if the time of the send was over before it began.
    #[inline]
    fn is_late(&self) -> bool {
        self.time.is_over(self.time.started)
    }

    /// Makes ready for the first attempt: there must be time for it, its origin must not ask for
    /// rest, and a request without a body takes its first from the body source.
    ///
    /// # Errors
    ///
    /// The error of the send, and the reason to stop.
    pub(super) async fn prepare(
        &mut self,
        request: &mut Request,
    ) -> Result<(), (Error, StopReason)> {
        if self.is_late() {
            return Err((self.total_timeout(), StopReason::TotalTimeout));
        }
        self.wait_for_origin().await?;
        let Some(source) = self.in_force.body_source() else {
            return Ok(());
        };
        if request.body().is_some() {
            return Ok(());
        }
        let making = async { source.make().await?.put_into(request) };
        match self.within_time(making).await {
            Some(Ok(())) => {}
            Some(Err(source)) => {
                let error = Error::middleware(RetryError::BodySource { source });
                return Err((error, StopReason::NotReplayable));
            }
            None => return Err((self.total_timeout(), StopReason::TotalTimeout)),
        }
        // The source may have taken its time.
        self.wait_for_origin().await
    }

    /// The head of a response, as the closures of the policy see it.
    pub(super) fn head_of<'r>(&'r self, response: &'r Response) -> ResponseHead<'r> {
        self.complete_head(ResponseHead::from(response))
    }

    /// Adds to a head what is known of the request.
    pub(super) fn complete_head<'r>(&'r self, head: ResponseHead<'r>) -> ResponseHead<'r> {
        let head = head
            .with_method(&self.request.method)
            .with_retries(self.history.retries());
        match self.request.url() {
            Some(url) => head.with_request_url(url),
            None => head,
        }
    }

    /// Runs `future` within the time of the send; `None` if that ran out.
    pub(super) async fn within_time<F: Future>(&self, future: F) -> Option<F::Output> {
        match self.time.ends {
            Some(end) => clock::timeout_at(end, future).await.ok(),
            None => Some(future.await),
        }
    }

    /// The error of a send whose time ran out.
    pub(super) fn total_timeout(&mut self) -> Error {
        let (attempts, last) = (self.history.attempts(), self.history.take_last_error());
        Error::middleware(RetryError::TotalTimeout { attempts, last })
    }
}

/// To a send around it, which may go on, a send that is dropped is like one that fails.
impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.history.has_ended() && self.history.is_harmless(false) {
            self.request.set_harmless();
        }
    }
}
