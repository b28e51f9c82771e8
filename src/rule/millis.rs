//! Whole milliseconds: the unit in which the rule counts.

use std::time::Duration;

/// The whole milliseconds in `duration`, `u64::MAX` if there are more than that.
#[inline]
pub(super) fn whole_ms(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1000)
        .saturating_add(u64::from(duration.subsec_millis()))
}

/// `duration` without what is less than a millisecond.
#[inline]
pub(super) fn floored(duration: Duration) -> Duration {
    Duration::from_millis(whole_ms(duration))
}

/// `amount * factor / 1000` in whole milliseconds, `u64::MAX` if there are more than that.
#[inline]
pub(super) fn per_mille(amount: u64, factor: u64) -> u64 {
    match amount.checked_mul(factor) {
        Some(product) => product / 1000,
        // Dividing 128 bits costs more than all the rest of a decision.
        None => {
            let product = u128::from(amount).saturating_mul(u128::from(factor));
            u64::try_from(product / 1000).unwrap_or(u64::MAX)
        }
    }
}

/// `random` made a sample of `[0, 1)`: what is not a number is 0.
#[inline]
pub(super) fn sample(random: f64) -> f64 {
    // The largest number below 1.
    const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;
    // What is not a number is not above 0 either.
    if random > 0.0 {
        random.min(BELOW_ONE)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_millisecond_is_dropped_and_what_is_too_long_saturates() {
        assert_eq!(whole_ms(Duration::from_nanos(1_999_999)), 1);
        assert_eq!(whole_ms(Duration::from_millis(u64::MAX)), u64::MAX);
        assert_eq!(whole_ms(Duration::from_secs(u64::MAX / 1000 + 1)), u64::MAX);
        assert_eq!(floored(Duration::MAX), Duration::from_millis(u64::MAX));
    }

    #[test]
    fn a_part_per_mille_is_dropped_and_what_is_too_much_saturates() {
        assert_eq!(per_mille(999, 1999), 1997);
        assert_eq!(per_mille(u64::MAX, 1000), u64::MAX);
        assert_eq!(per_mille(u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn a_sample_is_not_negative_and_below_one() {
        for zero in [0.0, -0.5, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(sample(zero), 0.0);
        }
        assert_eq!(sample(0.75), 0.75);
        for one in [1.0, 7.5, f64::INFINITY] {
            assert_eq!(sample(one), f64::from_bits(1.0_f64.to_bits() - 1));
        }
    }
}
