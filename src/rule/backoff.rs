use std::time::Duration;

use super::millis::{per_mille, sample, whole_ms};
use super::power::scaled;

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

/// How a [`Backoff`]'s delay is varied at random, so that clients that failed together do not come
/// back together.
///
/// The default is [`Jitter::NoJitter`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use reqwest_retry_rules::{Backoff, Jitter};
///
/// let second = Duration::from_secs(1);
/// let with = |jitter| Backoff { base: second, max: second, jitter, ..Backoff::default() };
/// assert_eq!(with(Jitter::NoJitter).delay(0, 0.25), second);
/// assert_eq!(with(Jitter::Full).delay(0, 0.25), Duration::from_millis(250));
/// let around = with(Jitter::Proportional { lo: 800, hi: 1200 });
/// assert_eq!(around.delay(0, 0.25), Duration::from_millis(900));
/// assert_eq!(around.delay(0, 0.99), second); // 1195 ms are above the maximum
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// The delay stays as it is.
    #[default]
    NoJitter,
    /// Anything in `[0, delay)`: spreads a crowd best, and may be hardly any wait at all.
    Full,
    /// Anything in `[lo, hi)` per mille of the delay, never above the backoff's maximum.
    Proportional {
        /// The lower end, per mille: 800 is four fifths of the delay.
        lo: u32,
        /// The upper end, per mille: 1200 is six fifths of the delay.
        hi: u32,
    },
}

impl Backoff {
    /// The wait before the retry that follows `attempt` earlier ones, where `random` is a sample
    /// of `[0, 1)`.
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
        let jittered = match self.jitter {
            Jitter::NoJitter => delay,
            Jitter::Full => (delay as f64 * sample(random)) as u64,
            Jitter::Proportional { lo, hi } => per_mille(delay, between(lo, hi, sample(random))),
        };
        Duration::from_millis(jittered.min(max))
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

/// `lo + trunc(random * (hi - lo))`: from `lo` towards `hi`, which may be the smaller.
fn between(lo: u32, hi: u32, random: f64) -> u64 {
    let way = (random * (f64::from(hi) - f64::from(lo))) as i64;
    u64::from(lo).saturating_add_signed(way)
}
