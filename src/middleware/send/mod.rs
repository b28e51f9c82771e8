//! One send on its way: attempts, the judgement of each, the pauses between them, the end.

mod asked;
mod attempt;
mod call;
mod chain;
mod end;
mod extensions;
mod history;
mod in_force;
mod judgement;
mod origin_pause;
mod pause;
mod time;

use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::Result;

use self::attempt::Examined;
use self::call::Call;
use self::chain::Chain;
use self::in_force::InForce;
use super::policy::RetryPolicy;
use super::report::RetryReport;
use super::tracking;
use crate::rule::StopReason;

/// The way of a request: to the loop, unless another copy of this has it already, or nothing is to
/// be done.
pub(super) async fn send(
    policy: &RetryPolicy,
    request: Request,
    extensions: &mut Extensions,
    chain: &impl Chain,
) -> Result<Response> {
    if tracking::carries(extensions) {
        // A copy of this middleware further out has the send.
        return chain.run(request, extensions).await;
    }
    // A report that an earlier send left in a map that is used again.
    extensions.remove::<RetryReport>();
    let in_force = InForce::new(policy, extensions, request.url());
    if in_force.passes_through() {
        return chain.run(request, extensions).await;
    }
    retry_loop(&in_force, request, extensions, chain).await
}

/// Sends the request until there is an answer, or a reason to stop.
async fn retry_loop(
    in_force: &InForce<'_>,
    mut request: Request,
    extensions: &mut Extensions,
    chain: &impl Chain,
) -> Result<Response> {
    let mut call = Call::new(in_force, &mut request, extensions);
    if let Err((error, reason)) = call.make_ready(&mut request).await {
        return call.give_up(Err(error), reason);
    }
    loop {
        let (outcome, examined) = call.attempt(request, chain).await;
        let failed = match examined {
            Examined::Answer => return call.answer(outcome),
            Examined::OutOfTime => return call.give_up(outcome, StopReason::TotalTimeout),
            Examined::Failed(failed) => failed,
        };
        let wait = match call.judge(&outcome, &failed) {
            Ok(wait) => wait,
            Err(reason) => return call.give_up(outcome, reason),
        };
        // In a box, so that the future of the many sends that need no retry stays small.
        request = match Box::pin(call.pause(outcome, &failed, wait)).await {
            Ok(next) => next,
            Err((outcome, reason)) => return call.give_up(outcome, reason),
        };
    }
}
