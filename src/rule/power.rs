//! `base * (growth / 1000)^attempt` without a loop of `attempt` steps.

/// The whole part of `base * (growth / 1000)^attempt`, `u64::MAX` where it is larger.
///
/// It agrees with the exact product at least below `2^53`. An `f64` would not do: 1.1 is not an
/// `f64`, and what it lacks grows with every step.
#[inline(never)] // most rules double
pub(super) fn scaled(base: u64, growth: u32, attempt: u32) -> u64 {
    if attempt == 0 {
        return base;
    }
    if base == 0 || growth == 0 {
        return 0;
    }
    let mut product = Wide::new(base);
    let mut power = Wide::new(u64::from(growth)).times(Wide::THOUSANDTH);
    let mut left = attempt;
    while left > 0 {
        if left & 1 == 1 {
            product = product.times(power);
        }
        power = power.times(power);
        left >>= 1;
    }
    product.whole_part(u128::from(attempt))
}

/// The positive number `mantissa * 2^exponent`; the mantissa's top bit is set.
#[derive(Clone, Copy)]
struct Wide {
    mantissa: u128,
    /// At most 2^39 either way: the power is squared 32 times.
    exponent: i64,
}

impl Wide {
    /// 1/1000 is 2^137/1000 times 2^-137, and 2^137/1000 is 2^134/125; divided in two steps
    /// because 2^134 is no `u128`.
    const THOUSANDTH: Wide = {
        let (whole, rest) = ((1 << 127) / 125, (1 << 127) % 125);
        Wide {
            mantissa: (whole << 7) + (rest << 7) / 125,
            exponent: -137,
        }
    };

    /// `value`, which is not zero.
    fn new(value: u64) -> Self {
        let value = u128::from(value);
        let shift = value.leading_zeros().min(127);
        Wide {
            mantissa: value << shift,
            exponent: -i64::from(shift),
        }
    }

    /// The product, less at most one unit of its last place: what does not fit is cut off.
    fn times(self, other: Wide) -> Self {
        let (high, low) = full_product(self.mantissa, other.mantissa);
        let exponent = self.exponent + other.exponent;
        // Of two mantissas in [2^127, 2^128) the product's top bit is its last or its last but one.
        if high >> 127 == 1 {
            Wide {
                mantissa: high,
                exponent: exponent + 128,
            }
        } else {
            Wide {
                mantissa: (high << 1) | (low >> 127),
                exponent: exponent + 127,
            }
        }
    }

    /// The whole part of the number of which this is `base * (growth / 1000)^attempt`, cut off.
    ///
    /// It lacks at most `3 * attempt` parts in 2^127: one for 1/1000, one for each product, and a
    /// square lacks twice what its root does. That much is added before the whole part is taken,
    /// or 50 * 1.5 would be 74. What is added is too little to lift a product below 2^53 that is
    /// no integer over the next one, short of a coincidence of one in 2^60.
    fn whole_part(self, attempt: u128) -> u64 {
        // One bit less leaves room for what is added, and costs one part more.
        let nudged = (self.mantissa >> 1) + 3 * attempt + 2;
        match u32::try_from(-(self.exponent + 1)) {
            Ok(shift) => u64::try_from(nudged.checked_shr(shift).unwrap_or(0)).unwrap_or(u64::MAX),
            Err(_) if self.exponent < 0 => 0,
            Err(_) => u64::MAX,
        }
    }
}

/// The 256 bits of `a * b`, the upper half first.
fn full_product(a: u128, b: u128) -> (u128, u128) {
    const LOWER: u128 = u64::MAX as u128;
    let (a1, a0) = (a >> 64, a & LOWER);
    let (b1, b0) = (b >> 64, b & LOWER);
    let (outer, inner) = (a1 * b0, a0 * b1);
    let lowest = a0 * b0;
    let middle = (outer & LOWER) + (inner & LOWER) + (lowest >> 64);
    let high = a1 * b1 + (outer >> 64) + (inner >> 64) + (middle >> 64);
    (high, (middle << 64) | (lowest & LOWER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_product_has_all_its_bits() {
        assert_eq!(full_product(u128::MAX, u128::MAX), (u128::MAX - 1, 1));
        assert_eq!(full_product(1 << 127, 2), (1, 0));
        assert_eq!(
            full_product(u128::from(u64::MAX), 3),
            (0, u128::from(u64::MAX) * 3)
        );
    }

    #[test]
    fn a_thousandth_is_cut_off_in_its_last_place() {
        let Wide { mantissa, exponent } = Wide::THOUSANDTH;
        assert_eq!((mantissa.leading_zeros(), exponent), (0, -137));
        // 1000 * mantissa is less than 1000 short of 2^137: 2^9 in the upper half, or just below.
        let (high, low) = full_product(mantissa, 1000);
        assert_eq!((high, low > u128::MAX - 1000), ((1 << 9) - 1, true));
    }

    #[test]
    fn an_integral_product_is_not_one_short() {
        assert_eq!(scaled(50, 1500, 1), 75);
        assert_eq!(scaled(1000, 1500, 3), 3375);
        assert_eq!(scaled(100, 10_000, 3), 100_000);
        assert_eq!(scaled(1, 4000, 31), 1 << 62);
        assert_eq!(scaled(1 << 40, 500, 40), 1);
    }

    #[test]
    fn a_product_just_below_an_integer_is_not_one_more() {
        // 999 * 1.001 = 999.999, and 1.5^60 = 36 768 468 716.93...
        assert_eq!(scaled(999, 1001, 1), 999);
        assert_eq!(scaled(1, 1500, 60), 36_768_468_716);
        // 0.999 999
        assert_eq!(scaled(999_999, 1, 2), 0);
    }

    #[test]
    fn what_is_too_large_saturates_and_what_is_too_small_is_zero() {
        assert_eq!(scaled(1, 1001, u32::MAX), u64::MAX);
        assert_eq!(scaled(u64::MAX, u32::MAX, u32::MAX), u64::MAX);
        assert_eq!(scaled(u64::MAX, 999, u32::MAX), 0);
        assert_eq!(scaled(u64::MAX, 1, u32::MAX), 0);
        assert_eq!(scaled(7, 0, 0), 7);
        assert_eq!(scaled(7, 0, 1), 0);
        assert_eq!(scaled(0, u32::MAX, u32::MAX), 0);
    }
}
