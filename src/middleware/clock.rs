//! The only file that reads a clock, sets a timer or draws a random number.
//!
//! Everything else takes time and chance as values; `clippy.toml` bans the rest.

use std::future::Future;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, Timeout};

/// The moment, on tokio's monotonic clock (which a test can pause).
pub(super) fn now() -> Instant {
    #[allow(clippy::disallowed_methods)] // the one place
    Instant::now()
}

/// The time of day, for HTTP dates.
pub(super) fn wall_clock() -> SystemTime {
    #[allow(clippy::disallowed_methods)] // the one place
    SystemTime::now()
}

/// The moment `duration` from now; `None` if it is too far away for the clock, and so never
/// reached.
pub(super) fn after(duration: Duration) -> Option<Instant> {
    now().checked_add(duration)
}

/// No timer is set further than thirty years ahead: tokio adds to the moment that it is given, and
/// near the end of the clock that would be too much.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The moment `wait` after `moment`; one that the clock cannot hold is put thirty years off.
pub(super) fn later(moment: Instant, wait: Duration) -> Instant {
    moment
        .checked_add(wait)
        .or_else(|| moment.checked_add(FAR))
        .unwrap_or(moment)
}

/// Sleeps until `wake`. If that has passed, other tasks get one turn and no timer is set: it would
/// cost a millisecond.
///
/// Without that turn a loop around something that is always ready would keep every other task of
/// its thread from running, and so the timer that is to end it.
pub(super) async fn sleep_until(wake: Instant) {
    let now = now();
    if now < wake {
        #[allow(clippy::disallowed_methods)] // the one place
        tokio::time::sleep_until(wake.min(later(now, FAR))).await;
    } else {
        tokio::task::yield_now().await;
    }
}

/// Lets other tasks of the runtime run, on other threads too, for `at_least` and a few turns.
///
/// No timer is set: the shortest takes more than a millisecond. It is for microseconds, since the
/// thread is busy meanwhile.
///
/// Yielding to the runtime is not enough. What is waited for may be in the hands of another worker,
/// and that thread may wait for the processor that this one holds. The turns are for a busy
/// machine: there the first may take all the time. The time is for a machine with many processors:
/// there giving one up takes no time.
pub(super) async fn let_others_run(at_least: Duration) {
    const TURNS: u32 = 8;
    // tokio's clock stands still in a test that pauses it.
    #[allow(clippy::disallowed_methods)] // the one place
    let begun = std::time::Instant::now();
    let mut turns = 0;
    while turns < TURNS || begun.elapsed() < at_least {
        tokio::task::yield_now().await;
        std::thread::yield_now();
        turns = TURNS.min(turns.saturating_add(1));
    }
}

/// Runs `future` until `end` at the longest; it is polled first, so what is ready costs no wait.
pub(super) fn timeout_at<F: Future>(end: Instant, future: F) -> Timeout<F> {
    #[allow(clippy::disallowed_methods)] // the one place
    tokio::time::timeout_at(end.min(later(now(), FAR)), future)
}

/// A jitter sample in [0, 1).
pub(super) fn random() -> f64 {
    #[allow(clippy::disallowed_methods)] // the one place
    rand::random()
}

/// 128 random bits, for an idempotency key.
pub(super) fn random_key() -> u128 {
    #[allow(clippy::disallowed_methods)] // the one place
    rand::random()
}
