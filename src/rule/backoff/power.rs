//! `base * (growth / 1000)^attempt` without a loop of `attempt` steps.

/// The whole part of `base * (growth / 1000)^attempt`, `u64::MAX` if it is larger.
///
/// It agrees with the exact product below `2^53`. An `f64` would not do: 1.1 is not an `f64`, and
/// the difference grows with every step.
#[inline(never)] // most rules double
pub(super) fn scaled(base: u64, growth: u32, attempt: u32) -> u64 {
    if attempt == 0 {
        return base;
    }
    if base == 0 || growth == 0 {
        return 0;
    }
    let mut product = Float::new(u128::from(base), 0);
    // The mantissa of `growth` is shifted up before the division, so that little is cut off.
    let growth = Float::new(u128::from(growth), 0);
    let mut power = Float::new(growth.mantissa / 1000, growth.exponent);
    let mut left = attempt;
    loop {
        if left & 1 == 1 {
            product = product.times(power);
        }
        left >>= 1;
        if left == 0 {
            return product.whole_part(attempt);
        }
        power = power.times(power);
    }
}

/// The positive number `mantissa * 2^exponent`; the mantissa's top bit is set.
#[derive(Clone, Copy)]
struct Float {
    mantissa: u128,
    /// At most 2^39 either way: the power is squared 31 times.
    exponent: i64,
}

impl Float {
    /// `mantissa * 2^exponent`, of a mantissa that is not zero.
    fn new(mantissa: u128, exponent: i64) -> Self {
        let shift = mantissa.leading_zeros().min(127);
        Float {
            mantissa: mantissa << shift,
            exponent: exponent - i64::from(shift),
        }
    }

    /// The product, less at most 12 parts in 2^128.
    ///
    /// Only its upper 128 bits are kept. The lowest of the four partial products cannot reach them
    /// but by a carry, so it is left out.
    fn times(self, other: Float) -> Self {
        const LOWER: u128 = u64::MAX as u128;
        let (a1, a0) = (self.mantissa >> 64, self.mantissa & LOWER);
        let (b1, b0) = (other.mantissa >> 64, other.mantissa & LOWER);
        let upper = a1 * b1 + ((a1 * b0) >> 64) + ((a0 * b1) >> 64);
        Float::new(upper, self.exponent + other.exponent + 128)
    }

    /// The whole part of the exact product. This one is a little less.
    ///
    /// It lacks at most `2^12 * attempt` parts in 2^128: 2^11 for the division of `growth`, and 24
    /// for two products a step, since a square lacks twice what its root does. So much is added
    /// before the whole part is taken, or 10 * 1.1 would be 10. It is too little to lift a product
    /// below 2^53 that is no integer over the next one, but by a coincidence of one in 2^40.
    fn whole_part(self, attempt: u32) -> u64 {
        // One bit less makes room for what is added.
        let raised = (self.mantissa >> 1) + (u128::from(attempt) << 11);
        match u32::try_from(-(self.exponent + 1)) {
            Ok(shift) => u64::try_from(raised.checked_shr(shift).unwrap_or(0)).unwrap_or(u64::MAX),
            Err(_) if self.exponent < 0 => 0,
            Err(_) => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_lacks_hardly_anything() {
        // 1.5 * 1.5 = 2.25, of mantissas that have no lower half.
        let one_and_a_half = Float::new(3, -1);
        let product = one_and_a_half.times(one_and_a_half);
        assert_eq!((product.mantissa, product.exponent), (9 << 124, -126));

        let largest = Float::new(u128::MAX, 0);
        let product = largest.times(largest);
        // The exact product is 2^256 - 2^129 + 1.
        assert_eq!(product.exponent, 128);
        assert!(u128::MAX - product.mantissa <= 8);
    }

    #[test]
    fn an_integral_product_is_not_one_short() {
        assert_eq!(scaled(10, 1100, 1), 11);
        assert_eq!(scaled(1000, 1100, 3), 1331);
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
        // The base was chosen so that 0.007^6 times it is 10^-18 short of an integer.
        assert_eq!(scaled(742_020_756_657_515_151, 7, 6), 87_297);
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
