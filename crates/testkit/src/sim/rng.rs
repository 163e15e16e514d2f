//! The source of all randomness of a simulated run: SplitMix64 (Steele, Lea, Flood; OOPSLA 2014).
//!
//! Invariant: integers only, so a seed means the same run on every machine.

/// A stream of numbers that is a function of its seed.
#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`. The bias of the multiplication is below 2^-32 for the small bounds
    /// used here.
    #[inline]
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0 && bound <= 1 << 32, "{bound}");
        ((self.next() >> 32) * bound) >> 32
    }

    /// True once in `n` times.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
