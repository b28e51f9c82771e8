use crate::rule::millis::{per_mille, sample};

/// How the delay of a [`Backoff`](crate::Backoff) is varied at random, so that clients that failed
/// together do not come back together.
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

impl Jitter {
    /// `delay`, varied by a sample of `[0, 1)`.
    #[inline]
    pub(super) fn apply(self, delay: u64, random: f64) -> u64 {
        match self {
            Jitter::NoJitter => delay,
            Jitter::Full => (delay as f64 * sample(random)) as u64,
            Jitter::Proportional { lo, hi } => per_mille(delay, between(lo, hi, sample(random))),
        }
    }

    /// The shortest and the longest that [`apply`](Self::apply) makes of `delay`; just below the longest
    /// if chance decides.
    pub(super) fn bounds(self, delay: u64) -> (u64, u64) {
        let (one, other) = match self {
            Jitter::NoJitter => (delay, delay),
            Jitter::Full => (0, delay),
            Jitter::Proportional { lo, hi } => {
                (per_mille(delay, lo.into()), per_mille(delay, hi.into()))
            }
        };
        (one.min(other), one.max(other))
    }
}

/// `lo + trunc(random * (hi - lo))`: from `lo` towards `hi`, which may be the smaller.
fn between(lo: u32, hi: u32, random: f64) -> u64 {
    let way = (random * (f64::from(hi) - f64::from(lo))) as i64;
    u64::from(lo).saturating_add_signed(way)
}
