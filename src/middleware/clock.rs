//! The only file that reads a clock, sets a timer or draws a random number.
//!
//! Everything else takes time and chance as values; `clippy.toml` bans the rest.

use std::future::Future;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, Timeout};

/// The moment, on tokio's monotonic clock (which a test can pause).
pub(crate) fn now() -> Instant {
    #[allow(clippy::disallowed_methods)] // the one place
    Instant::now()
}

/// The time of day, for HTTP dates.
pub(crate) fn wall_clock() -> SystemTime {
    #[allow(clippy::disallowed_methods)] // the one place
    SystemTime::now()
}

/// The moment `duration` from now; `None` if it is too far away for the clock, and so never
/// reached.
pub(crate) fn after(duration: Duration) -> Option<Instant> {
    now().checked_add(duration)
}

/// No timer is set further than thirty years ahead: tokio adds to the moment that it is given, and
/// near the end of the clock that would be too much.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The moment `wait` after `moment`; one that the clock cannot hold is put thirty years off.
pub(crate) fn later(moment: Instant, wait: Duration) -> Instant {
    moment
        .checked_add(wait)
        .or_else(|| moment.checked_add(FAR))
        .unwrap_or(moment)
}

/// Sleeps until `wake`; one that has passed costs no timer.
pub(crate) async fn sleep_until(wake: Instant) {
    let now = now();
    if now < wake {
        #[allow(clippy::disallowed_methods)] // the one place
        tokio::time::sleep_until(wake.min(later(now, FAR))).await;
    }
}

/// Runs `future` until `end` at the longest; it is polled first, so what is ready costs no wait.
pub(crate) fn timeout_at<F: Future>(end: Instant, future: F) -> Timeout<F> {
    #[allow(clippy::disallowed_methods)] // the one place
    tokio::time::timeout_at(end.min(later(now(), FAR)), future)
}

/// A jitter sample in [0, 1).
pub(crate) fn random() -> f64 {
    #[allow(clippy::disallowed_methods)] // the one place
    rand::random()
}

/// 128 random bits, for an idempotency key.
pub(crate) fn random_key() -> u128 {
    #[allow(clippy::disallowed_methods)] // the one place
    rand::random()
}
