//! Retries, recoveries and stops as `tracing` events: the only file that names the feature.

/// The level of an event, or none: see [`RetryObserver`](crate::RetryObserver#events).
///
/// It is an enum of this crate's own, so that a policy reads the same with and without the feature
/// `tracing`. Without it nothing is written at any level.
///
/// # Examples
///
/// ```
/// use reqwest_retry_rules::LogLevel;
///
/// assert!(LogLevel::Off < LogLevel::Error && LogLevel::Error < LogLevel::Trace);
/// assert_eq!(LogLevel::Warn.name(), "warn");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// No event at all.
    Off,
    /// As `tracing::Level::ERROR`.
    Error,
    /// As `tracing::Level::WARN`.
    Warn,
    /// As `tracing::Level::INFO`.
    Info,
    /// As `tracing::Level::DEBUG`.
    Debug,
    /// As `tracing::Level::TRACE`.
    Trace,
}

impl LogLevel {
    /// Its name in lower case.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(reqwest_retry_rules::LogLevel::Off.name(), "off");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

#[cfg(feature = "tracing")]
pub(super) use self::on::{advice, is_written, paused, recovered, retry, stop};

#[cfg(not(feature = "tracing"))]
pub(super) use self::off::{advice, is_written, paused, recovered, retry, stop};

#[cfg(feature = "tracing")]
mod on {
    use std::fmt;
    use std::time::Duration;

    use super::LogLevel;
    use crate::middleware::observer::{CallFacts, RecoveredEvent, RetryEvent, StopEvent};
    use crate::middleware::report::{AttemptResult, RetryLabel};
    use crate::rule::Advice;

    /// Calls a macro of `tracing`, each of which wants a level that is known when it is compiled.
    macro_rules! at {
        ($level:expr, $off:expr, $macro:ident!($($fields:tt)*)) => {
            match $level {
                LogLevel::Off => $off,
                LogLevel::Error => at!(ERROR, $macro!($($fields)*)),
                LogLevel::Warn => at!(WARN, $macro!($($fields)*)),
                LogLevel::Info => at!(INFO, $macro!($($fields)*)),
                LogLevel::Debug => at!(DEBUG, $macro!($($fields)*)),
                LogLevel::Trace => at!(TRACE, $macro!($($fields)*)),
            }
        };
        ($level:ident, $macro:ident!($($fields:tt)*)) => {
            tracing::$macro!(target: "reqwest_retry_rules", tracing::Level::$level, $($fields)*)
        };
    }

    /// Writes an event about a call, unless the level is off.
    macro_rules! about {
        ($call:expr, $level:expr, $($fields:tt)*) => {
            at!($level, (), event!(
                method = %$call.method,
                host = $call.host,
                label = $call.label.map(RetryLabel::as_str),
                $($fields)*
            ))
        };
    }

    /// A retry whose wait begins.
    pub(in crate::middleware) fn retry(event: &RetryEvent<'_>, level: LogLevel) {
        about!(
            event.call,
            level,
            attempt = event.retry(),
            outcome = %Outcome(event.result()),
            wait_ms = millis(event.wait()),
            "retrying"
        );
    }

    /// An attempt that is held back, since the origin asked for rest.
    pub(in crate::middleware) fn paused(call: &CallFacts<'_>, wait: Duration, level: LogLevel) {
        about!(
            call,
            level,
            wait_ms = millis(wait),
            "waiting for the origin"
        );
    }

    /// A send that was answered after a retry.
    pub(in crate::middleware) fn recovered(event: &RecoveredEvent<'_>, level: LogLevel) {
        about!(
            event.call,
            level,
            attempt = event.attempts(),
            outcome = %Outcome(AttemptResult::Status(event.status())),
            "recovered"
        );
    }

    /// A send that is given up.
    pub(in crate::middleware) fn stop(event: &StopEvent<'_>, level: LogLevel) {
        about!(
            event.call,
            level,
            attempt = event.attempts(),
            outcome = event
                .result()
                .map(|result| tracing::field::display(Outcome(result))),
            reason = event.reason().name(),
            "giving up: {}",
            event.reason()
        );
    }

    /// Advice about a rule: that of the route with this index, or the one without a route.
    pub(in crate::middleware) fn advice(advice: &Advice, route: Option<usize>) {
        at!(
            WARN,
            event!(
                advice = advice.name(),
                route = route,
                "look at the rule: {advice}"
            )
        );
    }

    /// True if an event of this level is written anywhere. (`tracing` can also write to `log`,
    /// which cannot be asked: then this says `false`, and the event is written all the same.)
    pub(in crate::middleware) fn is_written(level: LogLevel) -> bool {
        at!(level, false, event_enabled!())
    }

    /// The status or the name of the failure: what one searches a log for.
    struct Outcome(AttemptResult);

    impl fmt::Display for Outcome {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self.0 {
                AttemptResult::Status(status) => f.write_str(status.as_str()),
                AttemptResult::Failure(_) | AttemptResult::Error => f.write_str(self.0.name()),
            }
        }
    }

    fn millis(wait: Duration) -> u64 {
        u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use std::time::Duration;

    use super::LogLevel;
    use crate::middleware::observer::{CallFacts, RecoveredEvent, RetryEvent, StopEvent};
    use crate::rule::Advice;

    pub(in crate::middleware) fn advice(_: &Advice, _: Option<usize>) {}

    pub(in crate::middleware) fn retry(_: &RetryEvent<'_>, _: LogLevel) {}

    pub(in crate::middleware) fn paused(_: &CallFacts<'_>, _: Duration, _: LogLevel) {}

    pub(in crate::middleware) fn recovered(_: &RecoveredEvent<'_>, _: LogLevel) {}

    pub(in crate::middleware) fn stop(_: &StopEvent<'_>, _: LogLevel) {}

    pub(in crate::middleware) fn is_written(_: LogLevel) -> bool {
        false
    }
}
