//! Eight numbers side by side.
//!
//! Each operation is a loop over an array of known length and nothing else, a form that compilers turn into
//! vector instructions wherever there are some: two of SSE2 or NEON, one of AVX2. There is no branch and no
//! selection by a bool, which they do not turn so reliably; values to be left out become 0 by a mask of bits.

use std::ops::{Add, BitOr};

/// How many.
pub(super) const LANES: usize = 8;

/// Whole numbers.
#[derive(Clone, Copy)]
pub(super) struct Ints(pub(super) [i32; LANES]);

/// Floats, none of them NaN.
#[derive(Clone, Copy)]
pub(super) struct Floats(pub(super) [f32; LANES]);

impl Ints {
    #[inline(always)]
    pub(super) fn splat(value: i32) -> Ints {
        Ints([value; LANES])
    }

    /// 0, `step`, 2 `step` …
    #[inline(always)]
    pub(super) fn steps(step: i32) -> Ints {
        Ints(std::array::from_fn(|lane| step * lane as i32))
    }
}

impl Add for Ints {
    type Output = Ints;

    #[inline(always)]
    fn add(self, other: Ints) -> Ints {
        Ints(std::array::from_fn(|lane| {
            self.0[lane].wrapping_add(other.0[lane])
        }))
    }
}

impl BitOr for Ints {
    type Output = Ints;

    #[inline(always)]
    fn bitor(self, other: Ints) -> Ints {
        Ints(std::array::from_fn(|lane| self.0[lane] | other.0[lane]))
    }
}

impl Floats {
    #[inline(always)]
    pub(super) fn splat(value: f32) -> Floats {
        Floats([value; LANES])
    }

    /// 0, `step`, 2 `step` …
    #[inline(always)]
    pub(super) fn steps(step: f32) -> Floats {
        Floats(std::array::from_fn(|lane| step * lane as f32))
    }

    #[inline(always)]
    pub(super) fn min(self, other: Floats) -> Floats {
        Floats(std::array::from_fn(|lane| {
            let (a, b) = (self.0[lane], other.0[lane]);
            if a < b { a } else { b }
        }))
    }

    #[inline(always)]
    pub(super) fn max(self, other: Floats) -> Floats {
        Floats(std::array::from_fn(|lane| {
            let (a, b) = (self.0[lane], other.0[lane]);
            if a > b { a } else { b }
        }))
    }

    /// The same, but 0 where `mask` is negative.
    #[inline(always)]
    pub(super) fn zero_where_negative(self, mask: Ints) -> Floats {
        Floats(std::array::from_fn(|lane| {
            let keep = !(mask.0[lane] >> 31);
            f32::from_bits(self.0[lane].to_bits() & keep as u32)
        }))
    }
}

impl Add for Floats {
    type Output = Floats;

    #[inline(always)]
    fn add(self, other: Floats) -> Floats {
        Floats(std::array::from_fn(|lane| self.0[lane] + other.0[lane]))
    }
}
