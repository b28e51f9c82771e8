//! Retries and stops as `tracing` events: the only file that names the feature.

#[cfg(feature = "tracing")]
pub(crate) use self::on::{stop_is_enabled, retry, stop};

#[cfg(not(feature = "tracing"))]
pub(crate) use self::off::{stop_is_enabled, retry, stop};

#[cfg(feature = "tracing")]
mod on {
    use std::fmt;
    use std::time::Duration;

    use crate::middleware::observer::{RetryEvent, StopEvent};
    use crate::middleware::report::{AttemptResult, RetryLabel};

    /// A retry, at level `INFO`.
    pub(crate) fn retry(event: &RetryEvent<'_>) {
        tracing::info!(
            target: "reqwest_retry_rules",
            method = %event.method(),
            host = event.host(),
            label = event.label().map(RetryLabel::as_str),
            attempt = event.retry(),
            outcome = %Outcome(event.result()),
            wait_ms = millis(event.wait()),
            "retrying"
        );
    }

    /// Whether a send that is given up is written anywhere.
    pub(crate) fn stop_is_enabled() -> bool {
        tracing::event_enabled!(target: "reqwest_retry_rules", tracing::Level::WARN)
    }

    /// A send that is given up, at level `WARN`.
    pub(crate) fn stop(event: &StopEvent<'_>) {
        tracing::warn!(
            target: "reqwest_retry_rules",
            method = %event.method(),
            host = event.host(),
            label = event.label().map(RetryLabel::as_str),
            attempt = event.attempts(),
            outcome = event.result().map(|result| tracing::field::display(Outcome(result))),
            reason = event.reason().name(),
            "giving up: {}",
            event.reason()
        );
    }

    /// The status or the name of the failure: what one searches a log for.
    struct Outcome(AttemptResult);

    impl fmt::Display for Outcome {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self.0 {
                AttemptResult::Status(status) => f.write_str(status.as_str()),
                AttemptResult::Failure(failure) => f.write_str(failure.name()),
                AttemptResult::Error => f.write_str("error"),
            }
        }
    }

    fn millis(wait: Duration) -> u64 {
        u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use crate::middleware::observer::{RetryEvent, StopEvent};

    pub(crate) fn retry(_: &RetryEvent<'_>) {}

    pub(crate) fn stop_is_enabled() -> bool {
        false
    }

    pub(crate) fn stop(_: &StopEvent<'_>) {}
}
