//! What a change is worth for some waits together, over several draws of a replay.

use event::Nanos;

/// A part of a length that is too little to count: a hundredth.
const TRIFLE: u64 = 100;

/// The lengths of some waits in a replay as it was and with a change, each summed up.
#[derive(Debug, Default)]
pub(super) struct Worth {
    /// How many waits these are.
    pub(super) count: usize,
    /// The sums of the medians.
    pub(super) was: Nanos,
    pub(super) with: Nanos,
    /// The least and the most that the waits take with the change in one draw.
    pub(super) least: Nanos,
    pub(super) most: Nanos,
    /// How much shorter they are, by draw; negative: longer.
    gains: Vec<i64>,
}

/// What a change does to the length of waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// They are shorter.
    Gain,
    /// They are as long.
    NoGain,
    /// They are longer.
    Worse,
    /// They are shorter in some draws and longer in others.
    Unclear,
    /// They are shorter by more than what the change is to remove: it does something else, too.
    Beyond,
}

impl Verdict {
    /// The word for it in JSON.
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Gain => "gain",
            Verdict::NoGain => "no_gain",
            Verdict::Worse => "worse",
            Verdict::Unclear => "unclear",
            Verdict::Beyond => "beyond",
        }
    }
}

/// Whether a difference of a length is more than a trifle of it.
pub(in crate::commands) fn is_felt(difference: Nanos, length: Nanos) -> bool {
    difference.0.saturating_mul(TRIFLE) > length.0
}

impl Worth {
    /// Of waits with their draws, in each of which a wait was so long and is so long with the change.
    pub(super) fn of<'a>(waits: impl Iterator<Item = &'a Vec<[Nanos; 2]>>) -> Worth {
        let mut worth = Worth::default();
        let mut with_by_draw: Vec<Nanos> = Vec::new();
        for draws in waits {
            worth.count += 1;
            let [was, with] = medians(draws);
            worth.was += was;
            worth.with += with;
            let count = draws.len().max(worth.gains.len());
            worth.gains.resize(count, 0);
            with_by_draw.resize(count, Nanos::ZERO);
            for (at, [was, with]) in draws.iter().enumerate() {
                worth.gains[at] += was.0 as i64 - with.0 as i64;
                with_by_draw[at] += *with;
            }
        }
        let (least, most) = (with_by_draw.iter().min(), with_by_draw.iter().max());
        worth.least = least.copied().unwrap_or_default().min(worth.with);
        worth.most = most.copied().unwrap_or_default().max(worth.with);
        worth
    }

    /// How much shorter the waits are; negative: longer.
    pub(super) fn gain(&self) -> i64 {
        self.was.0 as i64 - self.with.0 as i64
    }

    /// What it does to the waits.
    pub(super) fn verdict(&self) -> Verdict {
        let sign = |gain: i64| {
            if is_felt(Nanos(gain.unsigned_abs()), self.was) {
                gain.signum()
            } else {
                0
            }
        };
        let all = sign(self.gain());
        let draws = self.gains.iter().map(|gain| sign(*gain));
        let signs: Vec<i64> = draws.chain([all]).collect();
        match (signs.contains(&1), signs.contains(&-1), all) {
            (true, true, _) => Verdict::Unclear,
            (_, _, 1) => Verdict::Gain,
            (_, _, -1) => Verdict::Worse,
            _ => Verdict::NoGain,
        }
    }

    /// The same of a change that is to remove this time, and a tenth more at most: so far off may a replay
    /// be.
    pub(super) fn verdict_for(&self, cost: Nanos) -> Verdict {
        let most = cost.0 as f64 * (1.0 + replay::TRUSTED);
        match self.verdict() {
            Verdict::Gain if self.gain() as f64 > most => Verdict::Beyond,
            verdict => verdict,
        }
    }
}

/// The medians of a wait, as it was and with a change.
pub(super) fn medians(draws: &[[Nanos; 2]]) -> [Nanos; 2] {
    [0, 1].map(|which| {
        let mut lengths: Vec<Nanos> = draws.iter().map(|draw| draw[which]).collect();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(draws: [[u64; 2]; 3]) -> Worth {
        let draws = draws.map(|draw| draw.map(Nanos)).to_vec();
        Worth::of([&draws].into_iter())
    }

    /// Goal: a change has a figure where the draws agree, and else none; a trifle is no gain. Method: three
    /// draws of one wait, of each sort.
    #[test]
    fn draws_that_disagree_have_no_verdict() {
        for (draws, expected) in [
            ([[1000, 500], [1100, 700], [900, 400]], Verdict::Gain),
            ([[1000, 1500], [1000, 1600], [1000, 1200]], Verdict::Worse),
            ([[1000, 500], [1000, 1200], [1000, 600]], Verdict::Unclear),
            ([[1000, 999], [1000, 1000], [1000, 1005]], Verdict::NoGain),
            ([[1000, 500], [1000, 600], [1000, 1000]], Verdict::Gain),
        ] {
            assert_eq!(of(draws).verdict(), expected, "{draws:?}");
        }
        let worth = of([[1000, 500], [1100, 700], [900, 400]]);
        assert_eq!((worth.was, worth.with), (Nanos(1000), Nanos(500)));
        assert_eq!((worth.least, worth.most), (Nanos(400), Nanos(700)));
    }

    /// Goal: what a change does beyond an inversion is not that inversion's gain. Method: a gain of 500 for
    /// inversions that cost as much, nearly as much, and much less.
    #[test]
    fn more_than_the_cost_is_no_gain_of_it() {
        let worth = of([[1000, 500]; 3]);
        for (cost, expected) in [
            (500, Verdict::Gain),
            (460, Verdict::Gain),
            (50, Verdict::Beyond),
        ] {
            assert_eq!(worth.verdict_for(Nanos(cost)), expected, "{cost}");
        }
        let worse = of([[500, 1000]; 3]);
        assert_eq!(worse.verdict_for(Nanos(1)), Verdict::Worse);
    }
}
