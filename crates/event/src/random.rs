//! The generator behind everything that is drawn from a seed, the same on every platform for ever.
//!
//! splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
//! 2014): one addition and a mixing function. Chosen because it is short enough to be obviously
//! portable, takes any seed, and passes the usual batteries; nothing here needs secrecy. Not taken
//! from a library, whose streams may change between versions: a published seed must keep meaning
//! the same graph.

/// A seeded stream of numbers.
///
/// ```
/// let mut random = paceline_event::Random::new(0);
/// assert_eq!(random.next_u64(), 0xe220_a839_7b1d_cdaf);
/// assert!(random.below(10) < 10);
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of this seed. Neighbouring seeds give unrelated streams.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    ///
    /// By multiplication and without rejection, so that one number is drawn per call whatever it
    /// is. The bias is at most `bound` in 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// A number in `low..=high`.
    ///
    /// # Panics
    /// If the range is empty or has more than `u64::MAX` numbers.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "no number is in {low}..={high}");
        assert!(
            high - low < u64::MAX,
            "the range {low}..={high} is too wide"
        );
        low + self.below(high - low + 1)
    }
}

/// Stirs 64 bits: a bijection in which each bit of the input changes about half of the output. The
/// output function of splitmix64 (constants by Stafford, "Mix13").
pub fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the stream is splitmix64's and stays so. Method: the published outputs for seed
    /// 1234567 of the reference implementation.
    #[test]
    fn the_stream_is_that_of_the_reference_implementation() {
        let mut random = Random::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| random.next_u64()), expected);
    }

    /// Goal: ranges are hit in full and never left. Method: 10 000 draws from 3..=7 must give
    /// exactly the five numbers, each in a fifth of the cases (four sigma); a range of one gives
    /// it.
    #[test]
    fn numbers_within_a_range_are_even() {
        let mut random = Random::new(5);
        let mut seen = [0u32; 5];
        for _ in 0..10_000 {
            seen[(random.within(3, 7) - 3) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (1_840..=2_160).contains(n)), "{seen:?}");
        assert_eq!(random.within(9, 9), 9);
        assert_eq!(random.below(0), 0);
    }
}
