use std::time::Duration;

use super::millis::whole_ms;

/// The wait before a retry where the server asks for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait before the first retry.
    pub base: Duration,
    /// The longest wait.
    pub max: Duration,
    /// The factor from one wait to the next, per mille.
    pub growth: u32,
    /// What chance does to the wait.
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

/// What chance does to a backoff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Nothing.
    #[default]
    NoJitter,
    /// Anything from nothing to the whole delay.
    Full,
    /// Anything from `lo` to `hi` per mille of the delay.
    Proportional {
        /// The lower end, per mille.
        lo: u32,
        /// The upper end, per mille.
        hi: u32,
    },
}

impl Backoff {
    /// The wait before retry `attempt`.
    pub fn delay(&self, attempt: u32, random: f64) -> Duration {
        let (base, max) = (whole_ms(self.base), whole_ms(self.max));
        let random = unit(random);
        let factor = (f64::from(self.growth) / 1000.0).powf(f64::from(attempt));
        let grown = ((base as f64 * factor) as u64).min(max);
        let delay = match self.jitter {
            Jitter::NoJitter => grown,
            Jitter::Full => (grown as f64 * random) as u64,
            Jitter::Proportional { lo, hi } => {
                let spread = ((f64::from(hi) - f64::from(lo)) * random) as i64;
                let factor = u128::try_from(i64::from(lo).saturating_add(spread)).unwrap_or(0);
                u64::try_from(u128::from(grown).saturating_mul(factor) / 1000).unwrap_or(u64::MAX)
            }
        };
        Duration::from_millis(delay.min(max))
    }
}

pub(super) fn unit(random: f64) -> f64 {
    if random.is_nan() {
        0.0
    } else {
        random.clamp(0.0, 1.0 - f64::EPSILON / 2.0)
    }
}
