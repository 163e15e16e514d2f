//! Exponential decay in integers: the common part of PELT and the thermal model.
//!
//! The factor 2^(−t/h) is the product of 2^(−1), 2^(−1/2), 2^(−1/4) … over the binary digits of t/h. The
//! roots are computed once, each as the square root of the one before; so there is no copied table of numbers
//! and no floating point.

use event::Nanos;

/// Binary digits of t/h behind the point that count: 2^(−2^−25) is within 3·10⁻⁸ of one.
const DIGITS: usize = 24;

/// One, in the fixed point of the roots.
const ONE_BITS: u32 = 63;

/// Entry i is 2^(−2^−(i+1)).
const ROOTS: [u64; DIGITS] = {
    let mut roots = [0; DIGITS];
    let mut root = 1u128 << (ONE_BITS - 1);
    let mut digit = 0;
    while digit < DIGITS {
        root = (root << ONE_BITS).isqrt();
        roots[digit] = root as u64;
        digit += 1;
    }
    roots
};

/// The part of `value` that is left after this time, rounded down. `half_life` is above zero.
pub(super) fn decayed(value: u64, passed: Nanos, half_life: Nanos) -> u64 {
    let halvings = passed.0 / half_life.0;
    if halvings >= u64::from(u64::BITS) {
        return 0;
    }
    let rest = u128::from(passed.0 % half_life.0) << DIGITS;
    let digits = (rest / u128::from(half_life.0)) as u64;
    let mut factor = 1u64 << ONE_BITS;
    for (digit, root) in ROOTS.iter().enumerate() {
        if digits & (1 << (DIGITS - 1 - digit)) != 0 {
            factor = ((u128::from(factor) * u128::from(*root)) >> ONE_BITS) as u64;
        }
    }
    ((u128::from(value) * u128::from(factor)) >> ONE_BITS) as u64 >> halvings
}

/// The half-life of a process with this time constant: the constant times ln 2.
pub(super) fn half_life_of(time_constant: Nanos) -> Nanos {
    const LN_2: u128 = 693_147_180_559_945_309;
    const ONE: u128 = 1_000_000_000_000_000_000;
    Nanos(((u128::from(time_constant.0) * LN_2 / ONE) as u64).max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goal: the powers are right. Method: values known in closed form (halves, the square root of one
    /// half, one 32nd of a half-life, as PELT's y), to seven digits.
    #[test]
    fn powers_of_one_half_are_right() {
        const BIG: u64 = 1_000_000_000;
        let half_life = Nanos(32_768_000);
        let after = |periods: u64| decayed(BIG, Nanos(periods * 1_024_000), half_life);
        assert_eq!(after(0), BIG);
        assert_eq!(after(32), BIG / 2);
        assert_eq!(after(96), BIG / 8);
        for (periods, expected) in [(16, 707_106_781u64), (8, 840_896_415), (1, 978_572_062)] {
            assert!(
                after(periods).abs_diff(expected) <= 100,
                "{periods}: {}",
                after(periods)
            );
        }
        assert_eq!(decayed(u64::MAX, Nanos::MAX, Nanos(1)), 0);
        assert_eq!(half_life_of(Nanos(1_000_000_000)), Nanos(693_147_180));
    }

    proptest! {
        /// Goal: it is a decay at every point. Method: any value, times and half-life: never more than
        /// before, less after a longer time, and two steps are as one, to within the error of rounding the
        /// times to 2^-24 half-lives.
        #[test]
        fn two_steps_are_as_one(
            value in 0u64..1 << 40,
            a in 0u64..1 << 40,
            b in 0u64..1 << 40,
            half_life in 1u64..1 << 40,
        ) {
            let left = |value, passed| decayed(value, Nanos(passed), Nanos(half_life));
            let (one, two) = (left(value, a + b), left(left(value, a), b));
            prop_assert!(one <= left(value, a) && left(value, a) <= value);
            prop_assert!(one.abs_diff(two) <= 2 + (value >> 22), "{one} {two}");
        }
    }
}
