//! One send on its way: attempts, the judgement of each, the pauses between them, the end.

mod asked;
mod attempt;
mod call;
pub(super) mod chain;
mod end;
mod extensions;
mod history;
mod in_force;
mod judgement;
mod origin_pause;
mod pass_through;
mod pause;
mod time;
mod wait;

use std::borrow::Cow;

use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::Result;

use self::attempt::Examined;
use self::call::Call;
use self::chain::Chain;
use self::extensions::SendExtensions;
use super::policy::RetryPolicy;
use super::report::RetryReport;
use super::tracking;
use crate::rule::StopReason;

pub(super) use self::in_force::InForce;
pub(super) use self::time::SendTime;
pub(super) use self::wait::Wait;

/// The way of a request. Unless another copy of this has it already, or nothing is to be done, it is
/// sent until there is an answer or a reason to stop.
///
/// What few sends need is in boxes. Every send allocates the rest, and up to 1032 bytes glibc's
/// allocator has a fast path. So the request is passed on and comes back: what is lent is kept in
/// the future twice.
pub(super) async fn send<C: Chain>(
    policy: Cow<'_, RetryPolicy>,
    request: Request,
    extensions: &mut Extensions,
    chain: C,
) -> Result<Response> {
    if tracking::carries(extensions) {
        // A copy of this middleware further out has the send.
        return pass_through::pass_through(request, extensions, &chain).await;
    }
    // A report that an earlier send left in a map that is used again.
    extensions.remove::<RetryReport>();
    let (in_force, request) = InForce::new(&policy, extensions, request);
    let work = tracking::current_work();
    if work.is_none() && in_force.passes_through() {
        return pass_through::pass_through(request, extensions, &chain).await;
    }
    let (mut call, mut request) = Call::new(&in_force, request, work);
    let mut extensions = SendExtensions::new(extensions, call.may_retry());
    if call.is_to_be_prepared() {
        let preparing = Box::pin(call.prepare(request));
        request = match preparing.await {
            Ok(request) => request,
            Err((error, reason)) => return call.give_up(Err(error), reason, &mut extensions),
        };
    }
    let mut running = extensions.run(request, &chain);
    loop {
        let (outcome, examined) = call.attempt(running).await;
        let failed = match examined {
            Examined::Answer => return call.answer(outcome, &mut extensions),
            Examined::OutOfTime => {
                return call.give_up(outcome, StopReason::TotalTimeout, &mut extensions);
            }
            Examined::Failed(failed) => failed,
        };
        let wait = match call.judge(&outcome, &failed) {
            Ok(wait) => wait,
            Err(reason) => return call.give_up(outcome, reason, &mut extensions),
        };
        let pause = Box::pin(call.pause(outcome, failed, wait));
        let next = match pause.await {
            Ok(next) => next,
            Err((outcome, reason)) => return call.give_up(outcome, reason, &mut extensions),
        };
        extensions.restore(call.resends());
        running = extensions.run(next, &chain);
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
        let sending = send(Cow::Borrowed(&policy), request, &mut extensions, &client);
        assert!(size_of_val(&sending) <= 960, "{}", size_of_val(&sending));
    }
}
