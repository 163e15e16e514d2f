//! From samples to points in a picture: their unit, and a choice among many.

/// A unit in which a typical value has few digits: the factor for values, and the unit's name. Units that are
/// no times stay.
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

/// A few of the sorted samples, each with the share of all samples that are at least as large. Their density
/// grows towards the end of the tail.
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

/// At most `most` (at least two) of the sorted samples, evenly spaced by rank, with the least and the
/// largest.
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

    /// Goal: times get a unit with few digits, other values keep their unit. Method: each unit, its limit,
    /// the largest one.
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

    /// Goal: a few samples stand for many: they include both ends, and the gaps between them are equal.
    /// Method: some numbers that divide and some that do not, fewer than wanted, none.
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

    /// Goal: a tail begins with the share 1, ends with the largest sample, falls, and has few points where it
    /// is flat. Method: a thousand samples, a few, none.
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
