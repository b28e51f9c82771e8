//! Retries and stops as `tracing` events: the only file that names the feature.

use super::observer::{RetryEvent, StopEvent};

/// What a filter names: the crate, wherever in it this file may be.
#[cfg(feature = "tracing")]
const TARGET: &str = "reqwest_retry_rules";

/// A retry, at level `INFO`.
#[cfg(feature = "tracing")]
pub(crate) fn retry(event: &RetryEvent<'_>) {
    tracing::info!(
        target: TARGET,
        method = %event.method(),
        host = event.host(),
        label = event.label().map(super::report::RetryLabel::as_str),
        attempt = event.retry(),
        outcome = %event.result(),
        wait_ms = millis(event.wait()),
        "retrying"
    );
}

/// A send that is given up, at level `WARN`.
#[cfg(feature = "tracing")]
pub(crate) fn stop(event: &StopEvent<'_>) {
    tracing::warn!(
        target: TARGET,
        method = %event.method(),
        host = event.host(),
        label = event.label().map(super::report::RetryLabel::as_str),
        attempt = event.attempts(),
        outcome = event.result().map(tracing::field::display),
        reason = %event.reason(),
        "not retried"
    );
}

#[cfg(feature = "tracing")]
fn millis(wait: std::time::Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(not(feature = "tracing"))]
pub(crate) fn retry(_: &RetryEvent<'_>) {}

#[cfg(not(feature = "tracing"))]
pub(crate) fn stop(_: &StopEvent<'_>) {}
