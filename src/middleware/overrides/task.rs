//! What is set around a task, in a task-local of our own.

use std::future::Future;
use std::sync::Arc;

use super::Overrides;
use crate::rule::RetryRule;

tokio::task_local! {
    static SCOPE: Overrides;
}

/// What is set around the running task, if anything. A scope belongs to a future and is taken off
/// the thread whenever that future is not polled, so it outlives no panic.
pub(super) fn current<T>(read: impl FnOnce(&Overrides) -> T) -> Option<T> {
    SCOPE.try_with(read).ok()
}

/// Runs `future` with `overrides` for every send made in it: for calls through an SDK whose
/// requests are out of reach.
///
/// Every send includes one that a middleware makes on the way through another client with this
/// middleware, to fetch a token for instance: [`replay_safe(true)`](Overrides::replay_safe) vouches
/// for all of them.
///
/// Scopes nest: what an inner one leaves unset comes from the one around it. What a request itself
/// carries in its extensions is nearer still. A scope belongs to the future and goes with it across
/// threads, awaits and panics. Other tasks see nothing of it; a task that is spawned inside starts
/// without it (carry [`Overrides::current`] over).
///
/// # The feature `task-local-extensions`
///
/// With this feature, which is off by default, the same types are also found in the task-local map
/// of the crate `task-local-extensions`, for applications whose context is in that map already.
/// Its values come after those of `with_overrides`. Two faults of that crate come with it:
///
/// - **If a future panics inside its `with_extensions`, its map stays behind on the thread.** The
///   next task on that thread then finds it: a `ReplaySafe(true)` of one task lets the POST of
///   another be sent four times. `set_local_item` outside a scope does the same. Only put a
///   [`ReplaySafe`](crate::ReplaySafe) or a rule with [`Methods::Any`](crate::Methods::Any) into
///   that map if a panic ends the process.
/// - An inner `with_extensions` hides the outer map whole, whatever is in it.
///
/// The scopes of `with_overrides` do neither.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
/// use reqwest_retry_rules::{Overrides, with_overrides};
///
/// # async fn sdk_call() -> u32 { 7 }
/// let patience = Overrides::new().total_timeout(Duration::from_secs(2));
/// assert_eq!(with_overrides(patience, sdk_call()).await, 7);
/// # }
/// ```
pub async fn with_overrides<F: Future>(mut overrides: Overrides, future: F) -> F::Output {
    current(|outer| overrides.fill_from(outer));
    SCOPE.scope(overrides, future).await
}

/// Runs `future` with `rule` in place of the rule of whichever policy applies, even of a policy
/// that a request carries: [`with_overrides`] for the common case.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use reqwest_retry_rules::{RetryRule, with_rule};
///
/// # async fn sdk_call() -> u32 { 7 }
/// // No retries for this one call.
/// assert_eq!(with_rule(RetryRule::never(), sdk_call()).await, 7);
/// # }
/// ```
pub async fn with_rule<F: Future>(rule: impl Into<Arc<RetryRule>>, future: F) -> F::Output {
    with_overrides(Overrides::new().rule(rule), future).await
}
