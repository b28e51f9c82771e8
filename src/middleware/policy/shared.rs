//! A policy that can be exchanged.

use std::sync::{Arc, PoisonError, RwLock};

use super::RetryPolicy;

/// A policy that can be exchanged while sends are under way, such as one from a file that is read
/// again when it changes.
///
/// Clones share the policy. [`RetryMiddleware::shared`](crate::RetryMiddleware::shared) makes a
/// middleware of one. Each send keeps the policy that it began with.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/answers.rs"));
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reqwest_middleware::Error> {
/// use reqwest_middleware::ClientBuilder;
/// use reqwest_retry_rules::{ResponseExt, RetryMiddleware, RetryRule, SharedPolicy};
///
/// # rustls::crypto::ring::default_provider().install_default().ok();
/// let shared = SharedPolicy::new(RetryRule::transient());
/// let client = ClientBuilder::new(reqwest::Client::new())
///     .with(RetryMiddleware::shared(shared.clone()))
/// #   .with(Answers(|_: &reqwest::Request| status(503)))
///     .build();
/// // Every answer is a 503, in place of the network.
/// assert_eq!(client.get("http://127.0.0.1/").send().await?.attempts(), 4);
///
/// shared.replace(RetryRule { max_retries: 1, ..RetryRule::transient() });
/// assert_eq!(client.get("http://127.0.0.1/").send().await?.attempts(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SharedPolicy(Arc<RwLock<RetryPolicy>>);

impl SharedPolicy {
    /// A shared policy that begins with this one.
    pub fn new(policy: impl Into<RetryPolicy>) -> Self {
        Self(Arc::new(RwLock::new(policy.into())))
    }

    /// The policy that the next send would have.
    pub fn current(&self) -> RetryPolicy {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Exchanges the policy, for every send that begins after this.
    ///
    /// What is remembered of origins is kept if the new policy wants the same: the budgets, if
    /// neither policy sets one or both were made on equal terms, and the pauses, if both have equal
    /// terms. So a file that is read again, and in which something else changed, gives no origin a
    /// fresh budget.
    pub fn replace(&self, policy: impl Into<RetryPolicy>) {
        let policy = policy.into();
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let policy = policy.keep_origins_of(&current);
        let before = std::mem::replace(&mut *current, policy);
        drop(current);
        // Not before the lock is free: the caller's closures may do anything when they go.
        drop(before);
    }
}
