//! Numbers by chance that are the same in each run, and sums of them.

use rayon::prelude::*;

/// splitmix64 (Steele, Lea and Flood, 2014): the number with this place in the sequence.
pub(crate) fn number(place: u64) -> u64 {
    let mut z = place
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Many short loops, one after another, as a frame has them.
pub(crate) fn sums() -> u64 {
    let mut sum = 0_u64;
    for round in 0..200_u64 {
        let squares = (0..4000_u64)
            .into_par_iter()
            .map(|n| number(n + round) >> 20);
        sum = sum.wrapping_add(squares.reduce(|| 0, u64::wrapping_add));
    }
    sum
}
