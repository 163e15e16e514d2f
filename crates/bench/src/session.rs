//! Turns: every subject has one per round, in an order drawn anew each time.

use console::{Failure, Progress};
use measure::Watch;
use platform::SchedParams;
use workload::Random;
use workload::busy::Busy;

use crate::tbb::Tbb;
use crate::who::Who;

/// The settings of all rows.
pub(crate) struct Setup {
    /// Threads that may execute work, for every subject.
    pub(crate) threads: usize,
    pub(crate) peers: bool,
    /// oneTBB, if peers are wanted and its runner was built.
    pub(crate) tbb: Option<Tbb>,
    pub(crate) quick: bool,
    /// The environment does not change job systems.
    pub(crate) is_as_usual: bool,
    /// The kinds of help of the kernel; row `load` is run once more with each.
    pub(crate) helps: Vec<SchedParams>,
    pub(crate) busy: Busy,
    pub(crate) random: Random,
    pub(crate) watch: Watch,
}

impl Setup {
    /// The real size, or the tiny one of `--quick`.
    pub(crate) fn size<T>(&self, real: T, quick: T) -> T {
        if self.quick { quick } else { real }
    }
}

/// One sample: a number for each quantity that a row measures at the same time; or the error.
pub(crate) type Sample = Result<Vec<f64>, String>;

/// A subject in a row.
pub(crate) struct Contestant<'a> {
    who: Who,
    sample: Box<dyn FnMut() -> Sample + 'a>,
}

impl<'a> Contestant<'a> {
    pub(crate) fn new(who: Who, sample: impl FnMut() -> Sample + 'a) -> Contestant<'a> {
        Contestant {
            who,
            sample: Box::new(sample),
        }
    }
}

/// The samples of a subject: for each measured quantity one per round.
pub(crate) struct Samples {
    pub(crate) who: Who,
    pub(crate) of: Vec<Vec<f64>>,
}

impl Samples {
    /// The samples of a row that measures one quantity only.
    pub(crate) fn only(self) -> (Who, Vec<f64>) {
        (self.who, self.of.into_iter().next().unwrap_or_default())
    }
}

/// Gives every subject a turn in each of `rounds` rounds, after one that does not count.
pub(crate) fn interleave(
    setup: &mut Setup,
    row: &'static str,
    rounds: usize,
    mut contestants: Vec<Contestant<'_>>,
) -> Result<Vec<Samples>, Failure> {
    let samples = |contestant: &Contestant<'_>| Samples {
        who: contestant.who,
        of: Vec::new(),
    };
    let mut all: Vec<Samples> = contestants.iter().map(samples).collect();
    let mut progress = Progress::new(row, ((rounds + 1) * contestants.len()) as u64);
    for round in 0..=rounds {
        for index in order(contestants.len(), &mut setup.random) {
            let contestant = &mut contestants[index];
            let sample = (contestant.sample)().map_err(|what| {
                Failure::Failed(format!("{row}: {}: {what}", contestant.who.name()))
            })?;
            let of = &mut all[index].of;
            of.resize(sample.len(), Vec::new());
            if round > 0 {
                for (samples, sample) in of.iter_mut().zip(sample) {
                    samples.push(sample);
                }
            }
            progress.step();
        }
    }
    setup.watch.look();
    Ok(all)
}

/// A random order of the first numbers (Fisher and Yates).
fn order(count: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn setup() -> Setup {
        Setup {
            threads: 2,
            peers: false,
            tbb: None,
            quick: true,
            is_as_usual: true,
            helps: Vec::new(),
            busy: Busy::NONE,
            random: Random::new(1),
            watch: Watch::start(Busy::NONE),
        }
    }

    /// Goal: in each round every subject has one turn, orders differ, and the first round does not count.
    /// Method: two subjects that write down their turns, 20 rounds.
    #[test]
    fn every_subject_has_a_turn_in_each_round() {
        let turns = RefCell::new(Vec::new());
        let turn = |who: Who| {
            let turns = &turns;
            Contestant::new(who, move || {
                turns.borrow_mut().push(who);
                Ok(vec![turns.borrow().len() as f64, 0.0])
            })
        };
        let both = vec![turn(Who::Serial), turn(Who::Paceline)];
        let samples = interleave(&mut setup(), "row", 20, both).unwrap();
        let turns = turns.into_inner();
        assert_eq!(turns.len(), 42);
        assert!(turns.chunks(2).all(|round| round[0] != round[1]));
        let first = turns
            .iter()
            .step_by(2)
            .filter(|&&who| who == Who::Serial)
            .count();
        assert!((3..=18).contains(&first), "{first}");
        assert!(
            samples
                .iter()
                .all(|s| s.of.len() == 2 && s.of[0].len() == 20)
        );
        assert!(
            samples
                .iter()
                .all(|s| s.of[0].iter().all(|&turn| turn > 2.0))
        );
    }

    /// Goal: a wrong result ends the run with the subject's name. Method: a subject that cannot count.
    #[test]
    fn a_wrong_result_ends_the_run() {
        let wrong = vec![Contestant::new(Who::Chili, || Err("7 instead of 8".into()))];
        let failure = interleave(&mut setup(), "row", 2, wrong).err().unwrap();
        let Failure::Failed(text) = failure else {
            panic!("{failure:?}");
        };
        assert_eq!(text, "row: chili: 7 instead of 8");
    }
}
