//! [`FrameTimes`]: how long frames took, with the error of that, so that two job systems can be told apart.

use event::Nanos;

use super::scaling::ScalingTrial;
use super::subject::SystemUnderTest;
use crate::commands::experiment::lab;

/// From how many standard errors on a difference counts.
pub(super) const CLEARLY: f64 = 2.0;

/// The mean time of a frame, and the standard error of that, in nanoseconds.
#[derive(Default)]
pub(super) struct FrameTimes(Vec<(ScalingTrial, f64, f64)>);

/// A job system against another one, with pieces of one length and a number of workers.
#[derive(Clone, Copy)]
pub(super) struct Lead {
    pub(super) piece: Nanos,
    pub(super) workers: usize,
    /// By how many standard errors of the difference it is faster.
    pub(super) errors: f64,
}

/// Numbers of workers and lengths of pieces, as a row names them; nothing if there are none.
pub(super) fn cells_in_words(cells: impl Iterator<Item = (Nanos, usize)>) -> Option<String> {
    let cells: Vec<String> = cells
        .map(|(piece, workers)| format!("{workers} and {piece}"))
        .collect();
    let named = format!("with these workers and pieces: {}", cells.join(", "));
    (!cells.is_empty()).then_some(named)
}

impl FrameTimes {
    pub(super) fn add(&mut self, trial: ScalingTrial, times: &[f64]) {
        self.0
            .push((trial, lab::mean(times), lab::standard_error(times)));
    }

    fn of(&self, wanted: ScalingTrial) -> Option<(f64, f64)> {
        let found = self.0.iter().find(|(trial, ..)| *trial == wanted);
        found.map(|(_, mean, error)| (*mean, *error))
    }

    /// The lead of `it` over `other` in this cell of the charts.
    pub(super) fn lead(
        &self,
        (piece, workers): (Nanos, usize),
        it: SystemUnderTest,
        other: SystemUnderTest,
    ) -> Option<Lead> {
        let of = |system| {
            self.of(ScalingTrial {
                piece,
                workers,
                system,
            })
        };
        let ((its, its_error), (others, others_error)) = of(it).zip(of(other))?;
        // Frames that all take the same have no error, and every difference counts.
        let error = its_error.hypot(others_error).max(f64::MIN_POSITIVE);
        Some(Lead {
            piece,
            workers,
            errors: (others - its) / error,
        })
    }

    /// The leads of `it` over `other`: for each length of a piece, and each number of workers but none.
    pub(super) fn leads(&self, it: SystemUnderTest, other: SystemUnderTest) -> Vec<Lead> {
        let cells = self.0.iter().filter(|(trial, ..)| trial.system == it);
        let cells = cells.filter(|(trial, ..)| trial.workers > 0);
        cells
            .filter_map(|(trial, ..)| self.lead((trial.piece, trial.workers), it, other))
            .collect()
    }

    /// All cells: lengths of pieces, and numbers of workers.
    pub(super) fn cells(&self) -> Vec<(Nanos, usize)> {
        let mut cells = Vec::new();
        for (trial, ..) in &self.0 {
            if !cells.contains(&(trial.piece, trial.workers)) {
                cells.push((trial.piece, trial.workers));
            }
        }
        cells
    }

    /// The job systems of a cell, the fastest first.
    pub(super) fn ranked(&self, (piece, workers): (Nanos, usize)) -> Vec<SystemUnderTest> {
        let time = |system: &SystemUnderTest| {
            let trial = ScalingTrial {
                piece,
                workers,
                system: *system,
            };
            self.of(trial).map_or(f64::INFINITY, |(mean, _)| mean)
        };
        let mut systems = SystemUnderTest::ALL.to_vec();
        systems.sort_by(|a, b| time(a).total_cmp(&time(b)));
        systems
    }
}
