//! From counts to colours.
//!
//! Deep blue outside, over white and amber near the edge of the set, which itself is black. Points
//! close to the set have large counts that lie far apart, so the colour goes with the count's
//! logarithm, taken with integers: the picture is the same on every platform.

/// Where the gradient passes, in equal distances. The first is the colour far outside.
const STOPS: [[u8; 3]; 6] = [
    [0, 7, 60],
    [12, 44, 138],
    [57, 125, 209],
    [211, 236, 248],
    [248, 201, 95],
    [153, 87, 0],
];

/// Red, green and blue of a point that was iterated `count` times of at most `max`.
pub(super) fn color(count: u32, max: u32) -> [u8; 3] {
    if count >= max {
        return [0, 0, 0];
    }
    // `count < max`, so the position is below the last stop.
    let position = log2(count + 1) * (STOPS.len() as u64 - 1) * 256 / log2(max + 1).max(1);
    let (stop, part) = ((position / 256) as usize, (position % 256) as u32);
    let (from, to) = (
        STOPS[stop.min(STOPS.len() - 1)],
        STOPS[(stop + 1).min(STOPS.len() - 1)],
    );
    let between = |a: u8, b: u8| ((u32::from(a) * (256 - part) + u32::from(b) * part) / 256) as u8;
    std::array::from_fn(|channel| between(from[channel], to[channel]))
}

/// The logarithm to base 2 as a fixed-point number with 16 fractional bits, linear between powers
/// of two.
fn log2(n: u32) -> u64 {
    debug_assert!(n > 0, "zero has no logarithm");
    let whole = n.ilog2();
    let mantissa = (u64::from(n) << 16 >> whole) - (1 << 16);
    (u64::from(whole) << 16) + mantissa
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the ends of the gradient are where they should be, for small and large limits. Method:
    /// a point that leaves at once, one that stays, and all in between for a jump of at most one
    /// stop's distance.
    #[test]
    fn the_gradient_has_its_ends_and_no_jumps() {
        for max in [1, 2, 64, 1 << 20] {
            assert_eq!(color(0, max), STOPS[0]);
            assert_eq!(color(max, max), [0, 0, 0]);
        }
        let luma = |c: [u8; 3]| c.iter().map(|&v| i32::from(v)).sum::<i32>();
        for count in 32..1_023 {
            let (a, b) = (luma(color(count, 1_024)), luma(color(count + 1, 1_024)));
            assert!((a - b).abs() < 30, "{count}: {a} {b}");
        }
    }
}
