//! The edge: turns what reqwest reports into facts, asks the rule, waits, sends again, reports.
//!
//! What to retry is for `rule` to say, and the arrow to it points one way. What must be known of
//! HTTP beside that is in `classify`, `redirect`, `complete` and `drain`.

mod body_source;

mod call;
mod classify;
mod clock;
mod complete;
mod drain;
mod ending;
mod error;
mod head;
mod in_flight;
mod judge;
mod lent;
mod observer;
mod origins;
mod overrides;
mod packed;
mod pause;
mod plan;
mod policy;
mod read_ahead;
mod redirect;
mod replay;
mod report;
mod span;
mod trace;

pub use body_source::{BodySource, FreshBody};
pub use classify::classify;
pub use error::{ErrorExt, RetryError};
pub use head::ResponseHead;
pub use observer::{RetryEvent, RetryObserver, StopEvent};
pub use origins::{BudgetTerms, InvalidBudget, PauseTerms, RetryBudget};
pub use overrides::{Deadline, Overrides, ReplaySafe, TotalTimeout, with_overrides, with_retry};
pub use policy::RetryPolicy;
pub use redirect::{client_builder, tracked_redirects};
pub use report::{
    AttemptRecord, AttemptResult, ResendCount, ResponseExt, RetryLabel, RetryLog, RetryReport,
};

use std::future::Future;
use std::pin::Pin;

use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Middleware, Next, Result};

use self::call::{Call, Verdict};
use self::drain::Refused;
use self::in_flight::Running;
use self::lent::Lent;
use self::plan::Plan;
use crate::rule::StopReason;

/// The retry middleware: a loop that does what a [`RetryRule`](crate::RetryRule) says.
///
/// Each send is tried until there is an answer or the rule, a limit or the budget says stop. What
/// comes back is what came in: the last response or the last error, unchanged. Dropping the future
/// ends everything at once; nothing is spawned. Waits need a tokio runtime whose time driver is
/// enabled, as reqwest's own timeouts do.
///
/// A second copy further in the same chain notices the first and passes requests through. It knows
/// it by the `Extensions` of the request: a middleware in between that hands on a map of its own (a
/// clone, say, to hedge with) hides the first copy, and then the attempts of both multiply. And a
/// send of another client that is given this very map counts as the same chain, and is not retried.
///
/// # Examples
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # rustls::crypto::ring::default_provider().install_default().ok();
/// use reqwest_middleware::ClientBuilder;
/// use reqwest_retry_rules::{RetryMiddleware, RetryRule, client_builder};
///
/// let client = ClientBuilder::new(client_builder().build()?)
///     .with(RetryMiddleware::new(RetryRule::transient()))
///     .build();
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RetryMiddleware {
    policy: RetryPolicy,
}

impl RetryMiddleware {
    /// Retries by this rule or policy.
    pub fn new(policy: impl Into<RetryPolicy>) -> Self {
        Self {
            policy: policy.into(),
        }
    }
}

impl Middleware for RetryMiddleware {
    // Written out in place of `#[async_trait]`, which keeps the request in the future twice: what
    // every send allocates stays below the size for which the allocator has a fast path.
    fn handle<'own, 'map, 'chain, 'send>(
        &'own self,
        mut request: Request,
        extensions: &'map mut Extensions,
        next: Next<'chain>,
    ) -> Pin<Box<dyn Future<Output = Result<Response>> + Send + 'send>>
    where
        'own: 'send,
        'map: 'send,
        'chain: 'send,
        Self: 'send,
    {
        Box::pin(async move {
            if in_flight::carries(extensions) {
                return next.run(request, extensions).await;
            }
            // A report that an earlier send left in a map that is used again.
            extensions.remove::<RetryReport>();
            let plan = Plan::new(&self.policy, extensions);
            if plan.passes_through() {
                return next.run(request, extensions).await;
            }
            let mut call = Call::new(&plan, &self.policy, &mut request);
            let mut lent = Lent::new(extensions, call.may_retry());
            if call.is_late() {
                let error = call.ran_out();
                return call.give_up(Err(error), StopReason::TotalTimeout, &mut lent);
            }
            if call.lacks_body(&request) {
                if let Err((error, reason)) = Box::pin(call.first_body(&mut request)).await {
                    return call.give_up(Err(error), reason, &mut lent);
                }
            }
            let (mut outcome, verdict) = {
                let address = lent.address();
                let mut running = Running::new(address, next.clone().run(request, lent.map()));
                call.attempt(&mut running).await
            };
            if let Verdict::Answered = verdict {
                call.answered(&mut outcome, &mut lent);
                return outcome;
            }
            // What most sends never need is kept out of the future that each of them is.
            Box::pin(insist(call, outcome, verdict, lent, next)).await
        })
    }
}

/// The loop: judge, wait, attempt again.
async fn insist<'a>(
    mut call: Call<'a>,
    mut outcome: Result<Response>,
    mut verdict: Verdict<'a>,
    mut lent: Lent<'_>,
    next: Next<'_>,
) -> Result<Response> {
    loop {
        let failed = match verdict {
            Verdict::Answered => {
                call.answered(&mut outcome, &mut lent);
                return outcome;
            }
            Verdict::Unread => {
                (outcome, verdict) = Box::pin(call.complete(outcome)).await;
                continue;
            }
            Verdict::OutOfTime => {
                return call.give_up(outcome, StopReason::TotalTimeout, &mut lent);
            }
            Verdict::Failed(failed) => failed,
        };
        let wait = match call.judge(&outcome, &failed) {
            Ok(wait) => wait,
            Err(reason) => return call.give_up(outcome, reason, &mut lent),
        };
        let mut in_hand = call.hold(outcome, &failed);
        call.wait(&mut in_hand, wait).await;
        let request = match call.next_request(wait).await {
            Ok(request) => request,
            Err(reason) => {
                let outcome = in_hand.map(Refused::into_response);
                return call.give_up(outcome, reason, &mut lent);
            }
        };
        call.let_go(in_hand);
        lent.restore(call.retries);
        (outcome, verdict) = {
            let address = lent.address();
            let mut running = Running::new(address, next.clone().run(request, lent.map()));
            call.attempt(&mut running).await
        };
    }
}
