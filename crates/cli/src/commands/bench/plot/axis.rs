//! From samples to an axis: which unit, which scale, from where to where.

use std::ops::Range;

/// What an axis is to show.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::commands) enum Scale {
    /// From zero.
    Linear(Range<f64>),
    Logarithmic(Range<f64>),
}

/// Samples that differ by more than this factor share no linear axis: the small ones would be one
/// spot.
const LINEAR_MAX: f64 = 20.0;
/// How much of a linear axis lies beyond the largest sample.
const HEADROOM: f64 = 1.05;

/// The scale for these samples.
pub(in crate::commands) fn scale(samples: impl Iterator<Item = f64>) -> Scale {
    let ends = samples.fold((f64::MAX, 0.0f64), |(low, high), sample| {
        (low.min(sample), high.max(sample))
    });
    match ends {
        (_, 0.0) => Scale::Linear(0.0..1.0),
        (low, high) if low > 0.0 && high / low > LINEAR_MAX => {
            // Logarithmic axes end at round numbers: ticks are at 1, 10, 100.
            Scale::Logarithmic(round_down(low)..round_up(high))
        }
        (_, high) => Scale::Linear(0.0..high * HEADROOM),
    }
}

/// The largest 1, 2 or 5 times a power of ten that is not above.
fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let step = [5.0, 2.0, 1.0]
        .into_iter()
        .find(|step| step * power <= value);
    step.unwrap_or(1.0) * power
}

/// The smallest 1, 2 or 5 times a power of ten that is not below.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let step = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|step| step * power >= value);
    step.unwrap_or(10.0) * power
}

/// A unit in which a typical value has few digits: what to multiply with, and what it is called then.
/// Units that are no times stay as they are.
pub(super) fn readable(unit: &str, typical: f64) -> (f64, String) {
    const TIMES: [&str; 4] = ["ns", "µs", "ms", "s"];
    let (first, rest) = unit.split_once(' ').unwrap_or((unit, ""));
    let Some(index) = TIMES.iter().position(|&time| time == first) else {
        return (1.0, unit.to_owned());
    };
    let (mut factor, mut index) = (1.0, index);
    while typical * factor >= 1_000.0 && index + 1 < TIMES.len() {
        factor /= 1_000.0;
        index += 1;
    }
    let unit = format!("{} {rest}", TIMES[index]);
    (factor, unit.trim_end().to_owned())
}

/// For the numbers at an axis.
pub(in crate::commands) fn tick(value: f64) -> String {
    let text = match value.abs() {
        0.0..0.01 => format!("{value:.4}"),
        0.01..1.0 => format!("{value:.2}"),
        1.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Which share of all is at least as large, for a few of the sorted samples: the further up the tail,
/// the denser.
pub(super) fn tail(sorted: &[f64]) -> Vec<(f64, f64)> {
    /// Points for each factor of ten in the share.
    const DENSITY: f64 = 80.0;
    let total = sorted.len() as f64;
    let mut points = Vec::new();
    let mut next = f64::MAX;
    for (index, &sample) in sorted.iter().enumerate() {
        let share = (total - index as f64) / total;
        if share <= next || index + 1 == sorted.len() {
            points.push((sample, share));
            next = share * 10f64.powf(-1.0 / DENSITY);
        }
    }
    points
}

/// At most `most` (at least two) of the sorted samples, evenly spaced by rank; the least and the
/// largest are among them.
pub(super) fn evenly(sorted: &[f64], most: usize) -> Vec<f64> {
    if sorted.len() <= most {
        return sorted.to_vec();
    }
    let (last, gaps) = (sorted.len() - 1, most - 1);
    let rank = |place: usize| (place * last + gaps / 2) / gaps;
    (0..most).map(|place| sorted[rank(place)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: axes are linear from zero unless samples differ a lot, and hold all of them. Method:
    /// samples that differ by a little, by a lot, with a zero, all zero, none.
    #[test]
    fn scales_fit_their_samples() {
        let scale = |samples: &[f64]| super::scale(samples.iter().copied());
        assert_eq!(scale(&[50.0, 100.0]), Scale::Linear(0.0..105.0));
        assert_eq!(scale(&[30.0, 1500.0]), Scale::Logarithmic(20.0..2000.0));
        assert_eq!(scale(&[0.0, 1000.0]), Scale::Linear(0.0..1050.0));
        assert_eq!(scale(&[0.0]), Scale::Linear(0.0..1.0));
        assert_eq!(scale(&[]), Scale::Linear(0.0..1.0));
    }

    /// Goal: ends are round and on the right side. Method: round numbers, and some between.
    #[test]
    fn ends_are_round() {
        assert_eq!([1.0, 4.9, 5.0, 73.0].map(round_down), [1.0, 2.0, 5.0, 50.0]);
        assert_eq!([1.0, 4.9, 5.0, 73.0].map(round_up), [1.0, 5.0, 5.0, 100.0]);
        assert_eq!((round_down(0.3), round_up(0.3)), (0.2, 0.5));
    }

    /// Goal: times get a unit with few digits, others keep theirs. Method: each unit, its limit, the
    /// largest one.
    #[test]
    fn units_are_readable() {
        assert_eq!(readable("ns per job", 65.0), (1.0, "ns per job".into()));
        assert_eq!(readable("ns per loop", 1e3), (1e-3, "µs per loop".into()));
        assert_eq!(
            readable("µs per frame", 7.1e3),
            (1e-3, "ms per frame".into())
        );
        assert_eq!(readable("ns", 5e9).1, "s");
        assert_eq!(readable("ms", 1e9).1, "s");
        assert_eq!(readable("frames", 1e9), (1.0, "frames".into()));
    }

    /// Goal: numbers at an axis are short. Method: one of each size.
    #[test]
    fn ticks_are_short() {
        assert_eq!(
            [0.0, 0.005, 0.25, 1.0, 2.5, 100.0, 2000.0].map(tick),
            ["0", "0.005", "0.25", "1", "2.5", "100", "2000"]
        );
    }

    /// Goal: a few stand for many: both ends are among them, and as many lie between any two. Method: some
    /// numbers that divide and some that do not, fewer than wanted, none.
    #[test]
    fn a_few_stand_for_many() {
        let sorted: Vec<f64> = (0..=1_000).map(f64::from).collect();
        assert_eq!(evenly(&sorted, 5), [0.0, 250.0, 500.0, 750.0, 1_000.0]);
        let few = evenly(&sorted, 80);
        assert_eq!((few.len(), few[0], few[79]), (80, 0.0, 1_000.0));
        let gaps = few.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.clone().all(|gap| (12.0..=13.0).contains(&gap)));
        assert_eq!(evenly(&sorted[..80], 80), sorted[..80]);
        assert!(evenly(&[], 80).is_empty());
    }

    /// Goal: a tail begins with everybody, ends with the largest, falls, and is thin where it is
    /// flat. Method: a thousand samples, a few, none.
    #[test]
    fn tails_are_shares() {
        let sorted: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let points = tail(&sorted);
        assert_eq!(points[0], (1.0, 1.0));
        assert_eq!(points[points.len() - 1], (1_000.0, 0.001));
        assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 > b.1));
        assert!((100..400).contains(&points.len()), "{}", points.len());
        assert!(points.contains(&(991.0, 0.01)), "a hundredth is at p99");
        assert_eq!(tail(&[3.0, 4.0]), [(3.0, 1.0), (4.0, 0.5)]);
        assert_eq!(tail(&[]), []);
    }
}
