//! The edge: turns what reqwest reports into facts, asks the rule, waits, sends again, reports.
//!
//! What to retry is for `rule` to say, and the arrow to it points one way. What must be known of
//! HTTP beside that is in `classify`, `tracking` and `response`.

#[cfg(feature = "astral")]
mod astral;
mod classify;
mod clock;
mod error;
mod error_chain;
mod execute;
mod observer;
mod origins;
mod overrides;
mod policy;
mod report;
mod request;
mod response;
mod send;
mod time;
mod trace;
mod tracking;
mod wait;
mod work;

pub use classify::classify;
pub use error::{ErrorExt, RetryError};
pub use observer::{RecoveredEvent, RetryEvent, RetryObserver, StopEvent};
pub use origins::{BudgetTerms, InvalidBudget, PauseTerms, RetryBudget};
pub use overrides::{Deadline, Overrides, ReplaySafe, TotalTimeout, with_overrides, with_rule};
#[cfg(feature = "serde")]
pub use policy::RetryConfig;
pub use policy::{InvalidRoute, RetryPolicy, RoutePattern, SharedPolicy};
pub use report::{
    AttemptRecord, AttemptResult, ResendCount, ResponseExt, RetryLabel, RetryLog, RetryReport,
};
pub use request::{BodySource, FreshBody};
pub use response::{Judgement, ResponseHead};
pub use trace::LogLevel;
pub use tracking::{client_builder, client_builder_with_redirects, tracked_redirects};
pub use work::Failure;

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;

use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Middleware, Next, Result};

/// The retry middleware: a loop that does what a [`RetryRule`](crate::RetryRule) says.
///
/// Each send is tried until there is an answer, or the rule, a limit or the budget says stop. What
/// comes back is what came in: the last response or the last error, unchanged. Dropping the future
/// ends everything at once; nothing is spawned. Waits need a tokio runtime whose time driver is
/// enabled, as reqwest's own timeouts do.
///
/// A request that nothing in the rule could retry passes through untouched, unless the policy or
/// the request sets what concerns even a single attempt: a timeout, an observer, a log, a pause, a
/// key, a body source. No event is written about it.
///
/// A second copy further in the same chain notices the first and passes requests through, unless
/// the first has passed them through itself. It knows the first by the request's `Extensions`. If a
/// middleware in between hands on a map of its own (a clone, say, to hedge with), the second copy does
/// not notice the first, and the attempts of both multiply. A send of another client that is given
/// this very map counts as the same chain, and is not retried.
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
    policy: PolicySource,
}

#[derive(Clone, Debug)]
enum PolicySource {
    Own(RetryPolicy),
    Shared(SharedPolicy),
}

impl RetryMiddleware {
    /// Retries by this rule or policy.
    ///
    /// With the feature `tracing` a rule that never retries anything, or retries at once, is worth
    /// an event at `WARN`: one for each such rule of the policy, those of its routes included. None
    /// is written if a closure of the policy may have a better answer, or if the
    /// [level for stops](RetryPolicy::log_levels) is [`LogLevel::Off`]. The rest of a rule's
    /// [`advice`](crate::RetryRule::advice) is for whoever asks for it.
    pub fn new(policy: impl Into<RetryPolicy>) -> Self {
        let policy = policy.into();
        policy.log_advice();
        Self {
            policy: PolicySource::Own(policy),
        }
    }

    /// Retries by whichever policy `policy` holds when a send begins. Advice about the one that it
    /// holds now is logged as with [`new`](Self::new).
    pub fn shared(policy: SharedPolicy) -> Self {
        policy.current().log_advice();
        Self {
            policy: PolicySource::Shared(policy),
        }
    }

    /// The policy of a send that begins now.
    fn policy(&self) -> Cow<'_, RetryPolicy> {
        match &self.policy {
            PolicySource::Own(policy) => Cow::Borrowed(policy),
            PolicySource::Shared(shared) => Cow::Owned(shared.current()),
        }
    }
}

impl Middleware for RetryMiddleware {
    // Written out in place of `#[async_trait]`, which keeps the request in the future twice.
    fn handle<'own, 'map, 'chain, 'send>(
        &'own self,
        request: Request,
        extensions: &'map mut Extensions,
        next: Next<'chain>,
    ) -> Pin<Box<dyn Future<Output = Result<Response>> + Send + 'send>>
    where
        'own: 'send,
        'map: 'send,
        'chain: 'send,
        Self: 'send,
    {
        Box::pin(send::send(|| self.policy(), request, extensions, next))
    }
}
