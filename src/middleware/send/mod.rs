//! One send on its way: attempts, the judgement of each, the pauses between them, the end.

mod attempt;
mod call;
pub(super) mod chain;
mod end;
mod extensions;
mod history;
mod judgement;
mod origin_pause;
mod pass_through;
mod pause;
mod send_request;

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;

use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::Result;

use self::attempt::{Attempted, Examined};
use self::call::Call;
use self::chain::Chain;
use self::extensions::SendExtensions;
use super::clock;
use super::overrides::{InForce, PerRequest};
use super::policy::RetryPolicy;
use super::report::RetryReport;
use super::tracking::{self, Notes};
use crate::rule::StopReason;

/// Sends a request until there is an answer or a reason to stop. If another copy of this middleware
/// has it already, or nothing is to be done about it, it passes through.
///
/// Nothing is read or noted before the first poll: that is when a send begins.
///
/// What few sends need is [`boxed`]. Every send allocates the rest, and up to 1032 bytes glibc's
/// allocator has a fast path.
#[expect(
    clippy::manual_async_fn,
    reason = "it lends its request, and an `async fn` would hold that twice"
)]
pub(super) fn send<'send, C: Chain + 'send>(
    policy: impl FnOnce() -> Cow<'send, RetryPolicy> + Send + 'send,
    mut request: Request,
    extensions: &'send mut Extensions,
    chain: C,
) -> impl Future<Output = Result<Response>> + Send + 'send {
    async move {
        let per_request = PerRequest::in_force(extensions);
        let idempotent = per_request.idempotent(request.method());
        if tracking::carries(extensions) {
            // A copy of this middleware further out has the send.
            return pass_through::pass_through(request, extensions, &chain, idempotent).await;
        }
        // A report that an earlier send left in a map that is used again.
        extensions.remove::<RetryReport>();
        let policy = policy();
        let in_force = InForce::new(&policy, &per_request, request.url());
        let work = tracking::current_work();
        if work.is_none() && in_force.passes_through(request.method(), idempotent) {
            return pass_through::pass_through(request, extensions, &chain, idempotent).await;
        }
        let mut call = Call::new(&in_force, &mut request, idempotent, work);
        let mut extensions = SendExtensions::new(extensions, call.may_retry());
        if call.is_to_be_prepared() {
            if let Err((error, reason)) = boxed(|| call.prepare(&mut request)).await {
                return call.give_up(Err(error), None, reason, &mut extensions);
            }
        }
        let mut running = extensions.run(request, &chain);
        loop {
            let next = {
                let outcome = match call.begin_attempt() {
                    None => Some((&mut running).await),
                    Some(end) => boxed(|| clock::timeout_at(end, &mut running)).await.ok(),
                };
                let notes = running.into_notes();
                let head = call.examine(&outcome, &notes);
                match outcome {
                    Some(Ok(mut answer)) if head.is_answer() => {
                        call.answer(&mut answer, &mut extensions);
                        return Ok(answer);
                    }
                    outcome => boxed(|| call.go_on(outcome, head, notes, &mut extensions)),
                }
            };
            match next.await {
                Ok(next) => running = extensions.run(next, &chain),
                Err(outcome) => return outcome,
            }
        }
    }
}

/// A future that few sends need. It is made and polled by functions of its own: the poll of every
/// send is the shorter for it, and has less on its stack, which is a thirtieth of a GET's time.
#[cold]
#[inline(never)]
fn boxed<'a, F: Future + Send + 'a>(
    make: impl FnOnce() -> F,
) -> Pin<Box<dyn Future<Output = F::Output> + Send + 'a>> {
    Box::pin(make())
}

impl<'a> Call<'a> {
    /// Decides about an attempt that was not answered at once, waits, and makes the next request.
    ///
    /// # Errors
    ///
    /// What comes back, if there is no retry.
    async fn go_on(
        &mut self,
        outcome: Option<Result<Response>>,
        head: Examined<'a>,
        notes: Notes,
        extensions: &mut SendExtensions<'_>,
    ) -> std::result::Result<Request, Result<Response>> {
        let (outcome, failed) = match self.attempted(outcome, head, notes).await {
            Attempted::Answer(mut answer) => {
                self.answer(&mut answer, extensions);
                return Err(Ok(answer));
            }
            Attempted::OutOfTime(error) => {
                let reason = StopReason::TotalTimeout;
                return Err(self.give_up(Err(error), None, reason, extensions));
            }
            Attempted::Failed(outcome, failed) => (outcome, failed),
        };
        let refusal = Some(&failed.refusal);
        let wait = match self.judge(&outcome, &failed) {
            Ok(wait) => wait,
            Err(reason) => return Err(self.give_up(outcome, refusal, reason, extensions)),
        };
        match self.pause(outcome, &failed, wait).await {
            Ok(next) => {
                extensions.restore(self.resends());
                Ok(next)
            }
            Err((outcome, reason)) => Err(self.give_up(outcome, refusal, reason, extensions)),
        }
    }
}

#[cfg(test)]
mod tests {
    use reqwest::{Client, Method};

    use super::*;
    use crate::rule::RetryRule;

    #[test]
    fn the_future_of_a_send_has_a_size_for_which_the_allocator_has_a_fast_path() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::new();
        let policy = RetryPolicy::from(RetryRule::transient());
        let request = Request::new(Method::GET, "http://a.test/".parse().unwrap());
        let mut extensions = Extensions::new();
        let policy = || Cow::Borrowed(&policy);
        let sending = send(policy, request, &mut extensions, &client);
        // A middleware's chain is two words larger than a client.
        let size = size_of_val(&sending) + 2 * size_of::<usize>();
        assert!(size <= 1032, "{size}");
    }
}
