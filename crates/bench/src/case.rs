//! The results of one case of a row: a distribution for each subject, and the targets.

use std::borrow::Cow;

use crate::session::Setup;
use crate::target::{Bound, Target};
use crate::who::Who;
use measure::Spread;

/// One measured quantity. Smaller is always better.
pub(crate) struct Case {
    /// The row of this case.
    pub(crate) row: &'static str,
    /// The name of the case, such as a size; empty if the row has only one.
    pub(crate) label: String,
    pub(crate) unit: &'static str,
    pub(crate) scores: Vec<Score>,
    /// The subjects that cannot do this work, each with the reason.
    pub(crate) cannot: Vec<(Who, Cow<'static, str>)>,
    pub(crate) targets: Vec<Target>,
    pub(crate) picture: Picture,
}

/// The kind of picture in which the samples are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Picture {
    /// A strip for each subject, with every sample as a dot.
    Strips,
    /// The share of the samples, which are frames, that took longer than a time.
    Tails,
    /// No picture.
    None,
}

/// The result of one subject.
pub(crate) struct Score {
    pub(crate) who: Who,
    pub(crate) spread: Spread,
    pub(crate) samples: Vec<f64>,
    /// Its median over the best peer's; none if there is no peer.
    pub(crate) ratio: Option<f64>,
}

impl Case {
    /// A case from the samples of each subject. Subjects without a sample are left out.
    pub(crate) fn new(
        row: &'static str,
        label: impl Into<String>,
        unit: &'static str,
        samples: impl IntoIterator<Item = (Who, Vec<f64>)>,
    ) -> Case {
        let score = |(who, samples): (Who, Vec<f64>)| {
            Some(Score {
                who,
                spread: Spread::of(&samples)?,
                samples,
                ratio: None,
            })
        };
        let mut case = Case {
            row,
            label: label.into(),
            unit,
            scores: samples.into_iter().filter_map(score).collect(),
            cannot: Vec::new(),
            targets: Vec::new(),
            picture: Picture::Strips,
        };
        case.compare();
        case
    }

    /// A case from the frames of each subject. `number` of the frames of all rounds together stands in place
    /// of the median, between the least and the largest number of a round. The samples are the frames.
    pub(crate) fn pooled(
        row: &'static str,
        label: impl Into<String>,
        unit: &'static str,
        rounds: &[(Who, Vec<Vec<f64>>)],
        number: impl Fn(&[f64]) -> f64,
    ) -> Case {
        let of_rounds = rounds.iter().map(|(who, rounds)| {
            let of_rounds = rounds.iter().map(|frames| number(frames));
            (*who, of_rounds.collect())
        });
        let mut case = Case::new(row, label, unit, of_rounds);
        for score in &mut case.scores {
            let its = rounds.iter().filter(|(who, _)| *who == score.who);
            score.samples = its.flat_map(|(_, rounds)| rounds.concat()).collect();
            score.spread.median = number(&score.samples);
        }
        case.compare();
        case
    }

    /// Sets the ratios to the best peer.
    fn compare(&mut self) {
        let Some((_, best)) = self.best_peer().filter(|&(_, best)| best > 0.0) else {
            return;
        };
        let judged = |score: &&mut Score| score.who == Who::Paceline || score.who.is_peer();
        for score in self.scores.iter_mut().filter(judged) {
            score.ratio = Some(score.spread.median / best);
        }
    }

    pub(crate) fn with_picture(self, picture: Picture) -> Case {
        Case { picture, ..self }
    }

    pub(crate) fn with_cannot(mut self, who: Who, why: impl Into<Cow<'static, str>>) -> Case {
        self.cannot.push((who, why.into()));
        self
    }

    /// The target that our median over `other`, the median of `than`, is at most `at_most`.
    pub(crate) fn ratio(
        &self,
        setup: &Setup,
        than: &str,
        other: Option<f64>,
        at_most: f64,
    ) -> Target {
        let got = self
            .median(Who::Paceline)
            .zip(other)
            .map(|(ours, other)| ours / other);
        Target::new(
            setup,
            format!("paceline / {than}"),
            Bound::AtMost(at_most),
            got,
        )
    }

    /// As [`ratio`](Case::ratio), to the best peer.
    pub(crate) fn to_best_peer(&self, setup: &Setup, at_most: f64) -> Target {
        let best = self.best_peer().map(|(_, median)| median);
        self.ratio(setup, "best peer", best, at_most)
    }

    /// Whether this subject has a score, or a reason why it cannot do the work.
    pub(crate) fn mentions(&self, who: Who) -> bool {
        self.scores.iter().any(|score| score.who == who)
            || self.cannot.iter().any(|(cannot, _)| *cannot == who)
    }

    pub(crate) fn with_target(mut self, target: impl FnOnce(&Case) -> Target) -> Case {
        let target = target(&self);
        self.targets.push(target);
        self
    }

    pub(crate) fn spread(&self, who: Who) -> Option<Spread> {
        let score = self.scores.iter().find(|score| score.who == who)?;
        Some(score.spread)
    }

    pub(crate) fn median(&self, who: Who) -> Option<f64> {
        Some(self.spread(who)?.median)
    }

    /// The peer with the smallest median.
    pub(crate) fn best_peer(&self) -> Option<(Who, f64)> {
        let peers = self.scores.iter().filter(|score| score.who.is_peer());
        let medians = peers.map(|score| (score.who, score.spread.median));
        medians.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The smallest median of rayon, with its caller inside or outside of the pool.
    pub(crate) fn best_rayon(&self) -> Option<f64> {
        let medians = [Who::Rayon, Who::RayonMember].map(|who| self.median(who));
        medians.into_iter().flatten().min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a number of all frames replaces the median, and the ends are those of rounds. Method: the mean
    /// of two rounds of different length.
    #[test]
    fn pooled_numbers_are_of_all_frames() {
        let mean = |frames: &[f64]| frames.iter().sum::<f64>() / frames.len() as f64;
        let rounds = [
            (Who::Paceline, vec![vec![1.0, 2.0, 6.0], vec![11.0]]),
            (Who::Rayon, vec![vec![10.0], vec![10.0]]),
        ];
        let case = Case::pooled("row", "mean", "ms", &rounds, mean);
        let spread = case.spread(Who::Paceline).unwrap();
        assert_eq!(
            (spread.median, spread.min, spread.max, spread.n),
            (5.0, 3.0, 11.0, 2)
        );
        assert_eq!(case.scores[0].samples, [1.0, 2.0, 6.0, 11.0]);
        assert_eq!(case.scores[0].ratio, Some(0.5));
    }

    /// Goal: ratios are to the best peer, and only pools have them. Method: two peers.
    #[test]
    fn ratios_are_to_the_best_peer() {
        let case = Case::new(
            "row",
            "",
            "ns",
            [
                (Who::Serial, vec![50.0]),
                (Who::Paceline, vec![1.0, 5.0, 9.0]),
                (Who::Rayon, vec![20.0]),
                (Who::RayonMember, vec![10.0]),
                (Who::Chili, Vec::new()),
            ],
        );
        let ratios: Vec<_> = case.scores.iter().map(|score| score.ratio).collect();
        assert_eq!(ratios, [None, Some(0.5), Some(2.0), Some(1.0)]);
        assert_eq!(case.best_peer(), Some((Who::RayonMember, 10.0)));
        assert_eq!(case.best_rayon(), Some(10.0));
        assert_eq!(case.median(Who::Chili), None);
    }
}
