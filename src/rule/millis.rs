//! Whole milliseconds: the unit in which the rule counts.

use std::time::Duration;

/// The whole milliseconds in `duration`, `u64::MAX` where there are more than that.
pub(super) fn whole_ms(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1000)
        .saturating_add(u64::from(duration.subsec_millis()))
}

/// `duration` without what is less than a millisecond.
pub(super) fn floored(duration: Duration) -> Duration {
    Duration::from_millis(whole_ms(duration))
}

/// `amount * factor / 1000` in whole milliseconds, `u64::MAX` where there are more than that.
pub(super) fn per_mille(amount: u64, factor: u64) -> u64 {
    let product = u128::from(amount).saturating_mul(u128::from(factor));
    u64::try_from(product / 1000).unwrap_or(u64::MAX)
}

/// `random` made a sample of `[0, 1)`: what is not a number is 0.
pub(super) fn sample(random: f64) -> f64 {
    // The largest number below 1; `clamp` alone would hand a NaN through.
    const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;
    if random.is_nan() {
        0.0
    } else {
        random.clamp(0.0, BELOW_ONE)
    }
}
