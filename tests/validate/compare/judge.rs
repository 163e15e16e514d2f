//! Rows of numbers and their verdicts: the arithmetic of the comparison.

use std::fmt;

use measure::{Spread, rank};

/// A quantity that was measured and predicted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) what: String,
    /// The measured samples; n and spread are of these.
    pub(crate) real: Vec<f64>,
    /// The simulator's value.
    pub(crate) simulated: Option<f64>,
    /// How far apart they may be; `None`: reported only.
    pub(crate) bound: Option<Bound>,
}

/// How a measured median has to lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    /// At most this far from the prediction, as a share of it.
    Within(f64),
    /// At most this far from the prediction, in the row's unit.
    By(f64),
    /// At least this much, whatever was predicted.
    AtLeast(f64),
    /// At most this much, whatever was predicted.
    AtMost(f64),
}

/// The verdict on a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The bound was kept.
    Kept,
    /// It was not.
    Missed,
    /// There is none.
    Reported,
    /// It cannot be said, and why.
    Skipped(String),
}

impl Row {
    /// A row that is reported only.
    pub(crate) fn new(what: impl Into<String>, real: Vec<f64>, simulated: Option<f64>) -> Row {
        Row {
            what: what.into(),
            real,
            simulated,
            bound: None,
        }
    }

    /// A row of medians.
    pub(crate) fn medians(what: impl Into<String>, real: Vec<f64>, simulated: &[f64]) -> Row {
        Row::new(what, real, median(simulated))
    }

    /// The same with a bound.
    pub(crate) fn bounded(self, bound: Bound) -> Row {
        Row {
            bound: Some(bound),
            ..self
        }
    }

    /// Its verdict; `doubt`: why the machine at hand cannot be judged.
    pub(crate) fn verdict(&self, doubt: Option<&str>) -> Verdict {
        let Some(bound) = self.bound else {
            return Verdict::Reported;
        };
        if let Some(doubt) = doubt {
            return Verdict::Skipped(doubt.to_owned());
        }
        let Some(real) = median(&self.real) else {
            return Verdict::Skipped("nothing was measured".into());
        };
        match bound.is_kept(real, self.simulated) {
            Some(true) => Verdict::Kept,
            Some(false) => Verdict::Missed,
            None => Verdict::Skipped("nothing was predicted".into()),
        }
    }
}

impl Bound {
    fn is_kept(self, real: f64, simulated: Option<f64>) -> Option<bool> {
        // Decimal bounds are not exact in binary: a difference of just the bound is within it.
        const SLACK: f64 = 1e-9;
        Some(match self {
            Bound::Within(share) => {
                let simulated = simulated?;
                (real - simulated).abs() <= share * simulated.abs() + SLACK
            }
            Bound::By(most) => (real - simulated?).abs() <= most + SLACK,
            Bound::AtLeast(least) => real + SLACK >= least,
            Bound::AtMost(most) => real <= most + SLACK,
        })
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Within(share) => write!(f, "±{} %", number(share * 100.0)),
            Bound::By(0.0) => f.write_str("exact"),
            Bound::By(most) => write!(f, "±{}", number(*most)),
            Bound::AtLeast(least) => write!(f, "≥ {}", number(*least)),
            Bound::AtMost(most) => write!(f, "≤ {}", number(*most)),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Kept => f.write_str("kept"),
            Verdict::Missed => f.write_str("missed"),
            Verdict::Reported => f.write_str("reported"),
            Verdict::Skipped(why) => write!(f, "skipped: {why}"),
        }
    }
}

/// A number with four digits that count, in plain notation.
pub(crate) fn number(value: f64) -> String {
    let magnitude = match value.abs() {
        0.0 => 0,
        size => size.log10().floor() as i32,
    };
    let decimals = (3 - magnitude).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The median; none of nothing.
pub(crate) fn median(samples: &[f64]) -> Option<f64> {
    Spread::of(samples).map(|spread| spread.median)
}

/// The sample of this rank.
pub(crate) fn quantile(samples: &[f64], fraction: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    rank(&sorted, fraction).copied()
}

/// How probable a difference between two distributions as large as this one is, if they are the same one: the
/// two-sample test of Kolmogorov and Smirnov, with its limit for many samples (Press et al., "Numerical
/// Recipes", 14.3). Where values repeat the true probability is larger.
pub(crate) fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let share_up_to = |samples: &[f64], value: f64| {
        let below = samples.iter().filter(|&&sample| sample <= value).count();
        below as f64 / samples.len() as f64
    };
    let distance_at = |&value: &f64| (share_up_to(a, value) - share_up_to(b, value)).abs();
    let mut values = [a, b].concat();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    let distance = values.iter().map(distance_at).fold(0.0, f64::max);
    let size = (a.len() * b.len()) as f64 / (a.len() + b.len()) as f64;
    let lambda = (size.sqrt() + 0.12 + 0.11 / size.sqrt()) * distance;
    if lambda < 0.2 {
        // The series does not converge there, and its sum is 1 to more digits than are shown.
        return Some(1.0);
    }
    let term = |j: i32| {
        let j = f64::from(j);
        let sign = if j as i64 % 2 == 1 { 1.0 } else { -1.0 };
        2.0 * sign * (-2.0 * j * j * lambda * lambda).exp()
    };
    Some((1..=100).map(term).sum::<f64>().clamp(0.0, 1.0))
}

/// Configurations in the simulator's order and in reality's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranking {
    /// How many pairs differ clearly in reality.
    pub(crate) pairs: usize,
    /// Those of them that the simulator puts in the other order.
    pub(crate) otherwise: Vec<(usize, usize)>,
}

/// Looks at all pairs that differ in reality by more than `clear`, as a share of the smaller.
pub(crate) fn ranking(real: &[f64], simulated: &[f64], clear: f64) -> Ranking {
    let mut ranking = Ranking::default();
    for a in 0..real.len() {
        for b in a + 1..real.len() {
            let (low, high) = (real[a].min(real[b]), real[a].max(real[b]));
            if high <= low * (1.0 + clear) {
                continue;
            }
            ranking.pairs += 1;
            if (real[a] < real[b]) != (simulated[a] < simulated[b]) {
                ranking.otherwise.push((a, b));
            }
        }
    }
    ranking
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(real: &[f64], simulated: f64, bound: Bound) -> Row {
        Row::new("x", real.to_vec(), Some(simulated)).bounded(bound)
    }

    /// Goal: a bound judges the median of the measured samples, is kept at its very edge, and missed beyond.
    /// Method: each kind of bound, inside, at the edge and outside.
    #[test]
    fn bounds_judge_medians() {
        let cases = [
            (vec![4.02, 3.9, 4.1], 4.0, Bound::Within(0.005), true),
            (vec![4.03, 3.9, 4.1], 4.0, Bound::Within(0.005), false),
            (vec![101.0], 100.0, Bound::By(1.0), true),
            (vec![98.9], 100.0, Bound::By(1.0), false),
            (vec![18.0], 18.0, Bound::By(0.0), true),
            (vec![18.01], 18.0, Bound::By(0.0), false),
            (vec![0.05], 0.0, Bound::AtLeast(0.05), true),
            (vec![0.04], 0.0, Bound::AtLeast(0.05), false),
            (vec![1.02], 0.0, Bound::AtMost(1.02), true),
            (vec![1.03], 0.0, Bound::AtMost(1.02), false),
        ];
        for (real, simulated, bound, kept) in cases {
            let expected = if kept { Verdict::Kept } else { Verdict::Missed };
            assert_eq!(
                row(&real, simulated, bound).verdict(None),
                expected,
                "{real:?} {bound}"
            );
        }
    }

    /// Goal: a row that cannot be judged is skipped with a word, neither kept nor missed, and one without a
    /// bound is only reported. Method: a doubt, nothing measured, nothing predicted, no bound.
    #[test]
    fn what_cannot_be_judged_is_skipped() {
        let bound = Bound::Within(0.1);
        let noisy = row(&[9.0], 1.0, bound).verdict(Some("noise"));
        assert_eq!(noisy, Verdict::Skipped("noise".into()));
        let nothing = row(&[], 1.0, bound).verdict(None);
        assert!(matches!(nothing, Verdict::Skipped(_)));
        let blind = Row::new("x", vec![1.0], None).bounded(bound).verdict(None);
        assert!(matches!(blind, Verdict::Skipped(_)));
        let free = Row::new("x", vec![9.0], Some(1.0));
        assert_eq!(free.verdict(None), Verdict::Reported);
        assert_eq!(free.verdict(Some("noise")), Verdict::Reported);
    }

    /// Goal: numbers are short and keep what counts. Method: a table.
    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (4.0, "4"),
            (3.9987, "3.999"),
            (714.286, "714.3"),
            (123_456.7, "123457"),
            (0.000_25, "0.00025"),
            (-1.5, "-1.5"),
            (100.0, "100"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(Bound::Within(0.005).to_string(), "±0.5 %");
        assert_eq!(Bound::By(0.0).to_string(), "exact");
    }

    /// Goal: the test of two distributions says what the literature says. Method: equal samples; shifted
    /// ones, whose largest distance is 0.5 of 100 and 100: λ = 3.61, p = 1e-11; a distance of 0.19 of the
    /// same sizes, just at p = 0.05.
    #[test]
    fn distributions_are_compared() {
        let upwards: Vec<f64> = (0..100).map(f64::from).collect();
        let shifted = |by: f64| upwards.iter().map(|value| value + by).collect::<Vec<_>>();
        assert_eq!(kolmogorov_smirnov(&upwards, &upwards), Some(1.0));
        assert!(kolmogorov_smirnov(&upwards, &shifted(50.0)).unwrap() < 1e-9);
        let edge = kolmogorov_smirnov(&upwards, &shifted(19.0)).unwrap();
        assert!((0.04..0.06).contains(&edge), "{edge}");
        assert_eq!(kolmogorov_smirnov(&[], &upwards), None);
    }

    /// Goal: only clear differences count, and each pair whose order is the other one is found. Method: four
    /// configurations of which two are alike in reality.
    #[test]
    fn rankings_are_compared_where_it_is_clear() {
        let real = [10.0, 11.0, 20.0, 40.0];
        let otherwise = |simulated: &[f64]| {
            let ranking = ranking(&real, simulated, 0.15);
            assert_eq!(ranking.pairs, 5);
            ranking.otherwise
        };
        assert_eq!(otherwise(&[2.0, 1.0, 3.0, 4.0]), []);
        assert_eq!(otherwise(&[1.0, 2.0, 4.0, 3.0]), [(2, 3)]);
        assert_eq!(otherwise(&[1.0, 2.0, 3.0, 3.0]), [(2, 3)]);
        assert_eq!(ranking(&[], &[], 0.15), Ranking::default());
    }
}
