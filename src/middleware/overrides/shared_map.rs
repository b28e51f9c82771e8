//! The task-local map of the crate `task-local-extensions`: the only file that names the feature.
//!
//! The feature is off by default, since a panic inside that crate's scope leaves the map behind on
//! the thread, where another task finds it.

use super::Overrides;

/// What that map carries, if anything.
#[cfg(feature = "task-local-extensions")]
pub(super) fn overrides() -> Option<Overrides> {
    use std::sync::Arc;

    let (policy, rule) = (get(), get().or_else(|| get().map(Arc::new)));
    let (replay_safe, total_timeout, deadline) = (get(), get(), get());
    let (label, log, several) = (get(), get(), get::<Overrides>());
    let is_empty = policy.is_none()
        && rule.is_none()
        && replay_safe.is_none()
        && total_timeout.is_none()
        && deadline.is_none()
        && label.is_none()
        && log.is_none()
        && several.is_none();
    if is_empty {
        // Before the struct is built: most sends would move one about in which nothing is set.
        return None;
    }
    let mut found = Overrides {
        policy,
        rule,
        replay_safe,
        total_timeout,
        deadline,
        label,
        log,
    };
    if let Some(several) = several {
        found.fill_from(&several);
    }
    Some(found)
}

#[cfg(not(feature = "task-local-extensions"))]
pub(super) fn overrides() -> Option<Overrides> {
    None
}

/// One value of that map. Its getter is `async` and never waits.
#[cfg(feature = "task-local-extensions")]
fn get<T: Clone + Send + Sync + 'static>() -> Option<T> {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    let getter = std::pin::pin!(task_local_extensions::get_local_item::<T>());
    match getter.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(item) => item,
        Poll::Pending => None,
    }
}
