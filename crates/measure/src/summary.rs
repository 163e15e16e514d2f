//! Many measurements in a few numbers.

use serde::Serialize;

/// A distribution of times in nanoseconds, as in `frame_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// The sum over their number.
    pub mean: u64,
    /// Half of them are not longer.
    pub p50: u64,
    /// 99 of 100 are not longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl Times {
    /// All zero if nothing was measured.
    pub fn of(samples: &[u64]) -> Times {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let sum: u128 = sorted.iter().map(|&ns| u128::from(ns)).sum();
        let mean = sum.checked_div(sorted.len() as u128).unwrap_or(0);
        Times {
            mean: u64::try_from(mean).unwrap_or(u64::MAX),
            p50: rank(&sorted, 0.50).copied().unwrap_or(0),
            p99: rank(&sorted, 0.99).copied().unwrap_or(0),
            max: sorted.last().copied().unwrap_or(0),
        }
    }
}

/// A few numbers about a few samples, whatever their unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// How many there are.
    pub n: usize,
}

impl Spread {
    /// `None` if there is no sample.
    pub fn of(samples: &[f64]) -> Option<Spread> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            _ if sorted.is_empty() => return None,
            0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
            _ => sorted[middle],
        };
        Some(Spread {
            median,
            min: sorted[0],
            max: sorted[sorted.len() - 1],
            n: sorted.len(),
        })
    }
}

/// An interval that holds the median of the samples' distribution with a probability of at least 95 %,
/// whatever that distribution; none if there are fewer than six samples.
///
/// Its ends are the k-th smallest and the k-th largest sample. The median lies below the former if
/// fewer than k samples do, and each does with probability 1/2: k is the largest for which that
/// happens with at most 2.5 % (W. R. Thompson, "On confidence ranges for the median", 1936).
pub fn median_interval(samples: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    // The probability that exactly `below` samples lie below the median.
    let mut exactly = 0.5f64.powi(i32::try_from(n).ok()?);
    let mut fewer = 0.0;
    let mut k = 0;
    for below in 0..n {
        fewer += exactly;
        if fewer > 0.025 {
            break;
        }
        k = below + 1;
        exactly *= (n - below) as f64 / (below + 1) as f64;
    }
    (k > 0).then(|| (sorted[k - 1], sorted[n - k]))
}

/// The smallest sample that is not less than this fraction of all (nearest rank).
pub fn rank<T>(sorted: &[T], fraction: f64) -> Option<&T> {
    let rank = (fraction * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the numbers are the usual ones. Method: 1 to 100 in a mixed order, one sample, none.
    #[test]
    fn times_are_mean_nearest_ranks_and_maximum() {
        let samples: Vec<u64> = (1..=100).map(|n| n * 37 % 101).collect();
        let expected = Times {
            mean: 50,
            p50: 50,
            p99: 99,
            max: 100,
        };
        assert_eq!(Times::of(&samples), expected);
        assert_eq!(Times::of(&[7]).p99, 7);
        assert_eq!(Times::of(&[]), Times::default());
    }

    /// Goal: the interval is the one of the tables for the sign test. Method: some numbers of samples
    /// and their published ranks; too few samples.
    #[test]
    fn a_medians_interval_is_that_of_the_sign_test() {
        let ranks = |n: u32| median_interval(&(1..=n).rev().map(f64::from).collect::<Vec<_>>());
        assert_eq!(ranks(5), None);
        assert_eq!(ranks(6), Some((1.0, 6.0)));
        assert_eq!(ranks(10), Some((2.0, 9.0)));
        assert_eq!(ranks(20), Some((6.0, 15.0)));
        assert_eq!(ranks(36), Some((12.0, 25.0)));
        assert_eq!(ranks(100), Some((40.0, 61.0)));
        assert_eq!(median_interval(&[]), None);
    }

    /// Goal: medians of odd and even numbers of samples. Method: three, four, none.
    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]).unwrap().median, 2.0);
        let even = Spread::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!(
            (even.median, even.min, even.max, even.n),
            (2.5, 1.0, 4.0, 4)
        );
        assert_eq!(Spread::of(&[]), None);
    }
}
