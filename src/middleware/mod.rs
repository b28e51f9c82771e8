//! The edge: turns what reqwest reports into facts, asks the rule, waits, sends again, reports.
//!
//! It holds no opinion about HTTP; the arrow to `rule` points one way.

mod body_source;
mod budget;
mod call;
mod classify;
mod clock;
mod complete;
mod drain;
mod error;
mod head;
mod in_flight;
mod lent;
mod observer;
mod overrides;
mod policy;
mod read_ahead;
mod redirect;
mod replay;
mod report;
mod trace;

pub use body_source::{BodySource, FreshBody};
pub use budget::{InvalidBudget, RetryBudget};
pub use classify::classify;
pub use error::{ErrorExt, RetryError};
pub use head::ResponseHead;
pub use observer::{RetryEvent, RetryObserver, StopEvent};
pub use overrides::{Deadline, Overrides, ReplaySafe, TotalTimeout, with_overrides, with_retry};
pub use policy::RetryPolicy;
pub use redirect::{client_builder, tracked_redirects};
pub use report::{
    AttemptRecord, AttemptResult, ResendCount, ResponseExt, RetryLabel, RetryLog, RetryReport,
};

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Middleware, Next, Result};

use self::call::{Call, Ended};
use self::drain::Refused;
use self::lent::Lent;
use self::overrides::Plan;

/// The retry middleware: a loop that does what a [`RetryRule`](crate::RetryRule) says.
///
/// Each send is tried until there is an answer or the rule, a limit or the budget says stop. What
/// comes back is what came in: the last response or the last error, unchanged. A second copy
/// further in the same chain notices the first and passes requests through. Dropping the future
/// ends everything at once; nothing is spawned. Waits need a tokio runtime whose time driver is
/// enabled, as reqwest's own timeouts do.
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

#[async_trait]
impl Middleware for RetryMiddleware {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        if in_flight::carries(extensions) {
            return next.run(request, extensions).await;
        }
        // A report that an earlier send left in a map that is used again.
        extensions.remove::<RetryReport>();
        let plan = Plan::new(&self.policy, extensions);
        if plan.passes_through() {
            return next.run(request, extensions).await;
        }
        send(&plan, &self.policy, request, extensions, next).await
    }
}

/// The loop: attempt, judge, wait, again.
async fn send(
    plan: &Plan<'_>,
    built_with: &RetryPolicy,
    mut request: Request,
    extensions: &mut Extensions,
    next: Next<'_>,
) -> Result<Response> {
    let mut call = Call::new(plan, built_with, &mut request);
    call.first_body(&mut request).await?;
    let mut lent = Lent::new(extensions, call.may_retry());
    loop {
        let failed = match call.attempt(request, lent.map(), next.clone()).await {
            Ended::Answered(response) => return call.answered(response, &mut lent),
            Ended::OutOfTime(error) => return call.out_of_time(error, &mut lent),
            Ended::Failed(failed) => failed,
        };
        let wait = match call.judge(&failed) {
            Ok(wait) => wait,
            Err(reason) => return call.give_up(failed.in_hand, reason, &mut lent),
        };
        let mut in_hand = call.hold(failed);
        call.wait(&mut in_hand, wait).await;
        request = match call.next_request(wait).await {
            Ok(request) => request,
            Err(reason) => {
                let in_hand = in_hand.map(Refused::into_response);
                return call.give_up(in_hand, reason, &mut lent);
            }
        };
        call.let_go(in_hand);
        lent.restore(call.retries());
    }
}
