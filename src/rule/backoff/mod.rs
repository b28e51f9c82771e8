use std::time::Duration;

use super::millis::whole_ms;

mod jitter;
mod power;

pub use jitter::Jitter;
use power::scaled;

/// How long to wait before a retry when the server asks for nothing: a delay that grows from
/// retry to retry, up to a maximum, and that jitter may change.
///
/// Times count in whole milliseconds; fractions of one are dropped.
///
/// # Defaults
///
/// A zero `base` and a zero `max` (no wait at all), a `growth` of 2000 (doubling), no jitter.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::{Backoff, Jitter};
///
/// let backoff = Backoff {
///     base: Duration::from_millis(500),
///     max: Duration::from_secs(8),
///     jitter: Jitter::Full,
///     ..Backoff::default()
/// };
/// // Half of 500 ms, 1 s, and of the 8 s at which the delay stays.
/// assert_eq!(backoff.delay(0, 0.5), Duration::from_millis(250));
/// assert_eq!(backoff.delay(1, 0.5), Duration::from_millis(500));
/// assert_eq!(backoff.delay(u32::MAX, 0.5), Duration::from_secs(4));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// The delay before the first retry, before jitter. Zero makes every delay zero.
    pub base: Duration,
    /// The longest delay, jitter included. Zero makes every delay zero.
    pub max: Duration,
    /// The factor from one delay to the next, per mille: 2000 doubles, 1500 adds a half, 1000
    /// keeps it as it is.
    pub growth: u32,
    /// How the delay is varied at random.
    pub jitter: Jitter,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            base: Duration::ZERO,
            max: Duration::ZERO,
            growth: 2000,
            jitter: Jitter::NoJitter,
        }
    }
}

impl Backoff {
    /// The wait before the retry that follows `attempt` earlier ones; `random` is a sample of
    /// `[0, 1)`.
    ///
    /// The delay is `base * (growth / 1000)^attempt` up to `max`, then the jitter, then `max`
    /// again. Any `attempt` and any field values give an answer: what is too large becomes `max`, a
    /// `random` that is below 0 or not a number counts as 0, one of 1 or more as just below 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use reqwest_retry_rules::Backoff;
    ///
    /// let backoff = Backoff {
    ///     base: Duration::from_millis(50),
    ///     max: Duration::from_secs(2),
    ///     growth: 1500,
    ///     ..Backoff::default()
    /// };
    /// let delays = [0, 1, 2, 9, 10].map(|attempt| backoff.delay(attempt, 0.0).as_millis());
    /// assert_eq!(delays, [50, 75, 112, 1922, 2000]);
    /// ```
    #[inline]
    pub fn delay(&self, attempt: u32, random: f64) -> Duration {
        let max = whole_ms(self.max);
        let delay = grown(whole_ms(self.base), self.growth, attempt).min(max);
        Duration::from_millis(self.jitter.apply(delay, random).min(max))
    }

    /// The shortest and the longest wait before the retry that follows `attempt` earlier ones, in
    /// milliseconds.
    pub(super) fn bounds(&self, attempt: u32) -> (u64, u64) {
        let max = whole_ms(self.max);
        let delay = grown(whole_ms(self.base), self.growth, attempt).min(max);
        let (shortest, longest) = self.jitter.bounds(delay);
        (shortest.min(max), longest.min(max))
    }
}

/// `base * (growth / 1000)^attempt`, at most `u64::MAX`.
#[inline]
fn grown(base: u64, growth: u32, attempt: u32) -> u64 {
    match growth {
        1000 => base,
        2000 if attempt < 64 => base.saturating_mul(1 << attempt),
        _ => scaled(base, growth, attempt),
    }
}
