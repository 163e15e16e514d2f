//! Speed-up over a serial run, for workers and lengths of pieces.

use std::sync::Arc;

use console::Failure;
use event::Nanos;
use sim::{Machine, Sim, SimConfig};
use workload::baseline::{BaselineKind, BaselineReading};
use workload::busy::Busy;

use super::subject::{
    BATCHES, ENTRIES, INSTRUCTIONS, LINES, MACHINE, POLICY, SystemUnderTest, frames, graph,
    graph_for, jobs, machine, reading, serial,
};
use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{Line, Plot, PlotShape};

const WORKERS: [usize; 12] = [0, 1, 2, 4, 8, 12, 16, 20, 24, 28, 31, 47];
const FEW_WORKERS: [usize; 4] = [8, 20, 31, 47];
const PIECES_NS: [u64; 5] = [500, 1_000, 2_000, 5_000, 10_000];
const FEW_PIECES_NS: [u64; 3] = [500, 1_000, 10_000];
/// As many as there are CPUs, less the main thread's.
pub(super) const ALL_CPUS: usize = 31;
/// More than that.
const TOO_MANY: usize = 47;

pub(super) const OLD: SystemUnderTest = SystemUnderTest::Baseline(BaselineKind::Unity2017_3);
pub(super) const CHAINED: SystemUnderTest = SystemUnderTest::Baseline(BaselineKind::Unity2021_3);
pub(super) const NEW: SystemUnderTest = SystemUnderTest::Baseline(BaselineKind::Unity2022_2);

/// What was only chosen here.
pub(super) const VALUES: &[&ChosenValue] = &[&BATCHES, &ENTRIES, &INSTRUCTIONS, &LINES, &LARGE];
/// Pieces of which the text says that they hide what small ones show.
pub(super) const LARGE: ChosenValue = ChosenValue {
    name: "large-piece",
    about: "a piece of a large job",
    unit: ValueUnit::Micros,
    chosen: 10.0,
    others: &[2.0, 5.0, 20.0],
    why: "ten times the article's larger one",
};

/// One point of the charts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ScalingTrial {
    pub(super) piece: Nanos,
    pub(super) workers: usize,
    pub(super) system: SystemUnderTest,
}

/// Whether a claim needs this point of the charts.
fn is_asked((piece, large): (u64, u64), workers: usize) -> bool {
    match workers {
        20 => piece == 500,
        TOO_MANY => piece == large,
        _ => true,
    }
}

/// All of them, each with its speed-up over a serial run.
pub(super) struct ScalingTrials(pub(super) Vec<(ScalingTrial, f64)>);

impl ScalingTrials {
    pub(super) fn speed_up(&self, piece: u64, workers: usize, system: SystemUnderTest) -> f64 {
        let wanted = ScalingTrial {
            piece: Nanos(piece),
            workers,
            system,
        };
        let found = self.0.iter().find(|(trial, _)| *trial == wanted);
        found.map_or(f64::NAN, |(_, speed_up)| *speed_up)
    }
}

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let mut pieces = effort.of(&FEW_PIECES_NS[..], &PIECES_NS[..]).to_vec();
    let large = effort.time(&LARGE).0;
    pieces.retain(|&piece| piece < large);
    pieces.push(large);
    let pieces = &pieces[..];
    let workers = effort.of(&FEW_WORKERS[..], &WORKERS[..]);
    let mut all = Vec::new();
    for &piece in pieces {
        let asked = |workers: &&usize| !effort.quick || is_asked((piece, large), **workers);
        for &workers in workers.iter().filter(asked) {
            all.extend(SystemUnderTest::ALL.map(|system| ScalingTrial {
                piece: Nanos(piece),
                workers,
                system,
            }));
        }
    }
    let speed_ups = lab::each("graphs", &all, |trial| trial.run(reading(effort), effort))?;
    let trials = ScalingTrials(all.into_iter().zip(speed_ups).collect());
    let jobs = jobs(effort);
    let title = format!("Speed-up over a serial run on {MACHINE}, {jobs} jobs");
    let bounds = workers
        .iter()
        .map(|&workers| most_speed_up(effort, workers));
    let bounds = bounds.collect::<Result<Vec<f64>, Failure>>()?;
    findings
        .tables
        .push(table(title, &trials, pieces, workers, &bounds));
    for (file, piece) in [("small", 500), ("large", large)] {
        let title = format!(
            "{jobs} jobs, {} a piece: speed-up over a serial run",
            Nanos(piece)
        );
        let shown = workers
            .iter()
            .copied()
            .filter(|&workers| workers <= ALL_CPUS);
        findings
            .plots
            .push(plot(file, title, &trials, piece, shown));
    }
    findings.claims.extend(claims(&trials, large));
    findings.claims.push(better_than_none(&trials));
    Ok(())
}

/// The speed-up that no job system can exceed on the simulated machine: its threads do no more work than its
/// cores, which two of them share, and no frame is shorter than the longest way through the graph. Nothing
/// else has a price in it. It is the same for all lengths of pieces.
fn most_speed_up(effort: &Effort, workers: usize) -> Result<f64, Failure> {
    let measure = graph(Nanos(PIECES_NS[0]), effort)?.measure();
    let most = machine(effort).work_of_threads(workers + 1);
    Ok(measure.speedup_at_most(u32::MAX).min(most))
}

impl ScalingTrial {
    /// The speed-up over a serial run.
    pub(super) fn run(&self, reading: BaselineReading, effort: &Effort) -> Result<f64, Failure> {
        let alone = serial(&graph(self.piece, effort)?);
        let machine = (machine(effort), POLICY);
        let took = self.times(machine, reading, effort.of(2, 4), effort)?;
        Ok(alone.0 as f64 / lab::mean(&took))
    }

    /// The times of `count` frames but the first, which finds workers asleep and caches cold, in nanoseconds.
    pub(super) fn times(
        &self,
        (machine, policy): (Arc<Machine>, &str),
        reading: BaselineReading,
        count: u32,
        effort: &Effort,
    ) -> Result<Vec<f64>, Failure> {
        let (system, workers) = (self.system, self.workers);
        let graph = graph_for(system, self.piece, effort)?;
        let mut took = Err(Failure::failed("the simulated program did not run"));
        let config = SimConfig::on(machine, policy, effort.seed);
        let report = Sim::run(config, |sim| {
            took = frames(
                &sim,
                (system, reading),
                workers,
                graph,
                count,
                Busy::NONE,
                || (),
            );
        });
        lab::sound("graphs", &report)?;
        Ok(took?.iter().skip(1).map(|time| time.0 as f64).collect())
    }
}

/// The speed-ups; `bounds` are those that no job system can exceed, for each number of workers.
pub(super) fn table(
    title: String,
    trials: &ScalingTrials,
    pieces: &[u64],
    workers: &[usize],
    bounds: &[f64],
) -> Table {
    let mut columns = vec!["a piece".to_owned(), "workers".to_owned()];
    columns.extend(SystemUnderTest::ALL.map(|system| system.name().to_owned()));
    columns.push("at most".to_owned());
    let mut table = Table::with_columns(title, columns);
    for &piece in pieces {
        for (&workers, &bound) in workers.iter().zip(bounds) {
            let cells =
                SystemUnderTest::ALL.map(|system| trials.speed_up(piece, workers, system).into());
            table.row(
                [Nanos(piece).into(), (workers as u64).into()]
                    .into_iter()
                    .chain(cells)
                    .chain([bound.into()]),
            );
        }
    }
    table
}

/// Speed-up by workers, for pieces of one length.
pub(super) fn plot(
    file: &'static str,
    title: String,
    trials: &ScalingTrials,
    piece: u64,
    workers: impl Iterator<Item = usize> + Clone,
) -> Plot {
    let lines = SystemUnderTest::ALL.map(|system| Line {
        name: system.name().to_owned(),
        points: workers
            .clone()
            .map(|workers| (workers as f64, trials.speed_up(piece, workers, system)))
            .collect(),
    });
    Plot {
        file,
        title,
        picture: PlotShape::Lines {
            x: "workers",
            y: "speed-up",
            lines: lines.into(),
            level: Some((1.0, "serial")),
        },
    }
}

/// The points that a claim about a speed-up counts.
const TIMES: &str = "times as fast as serial";

/// `large`: the piece of a large job, in nanoseconds.
fn claims(trials: &ScalingTrials, large: u64) -> Vec<Claim> {
    let mut claims = claims_of_the_first_chart(trials);
    claims.extend(claims_of_other_versions_and_sizes(trials, large));
    claims.push(
        Claim::source(
            "001-k",
            "Copies and safety checks of the C# layer cost time, less since 2021.2",
            "C# Job API overhead",
        )
        .beyond(
            "another layer, above the scheduler and not part of its description; what Paceline's own checks \
             cost `paceline-bench safety` measures",
        ),
    );
    claims
}

/// Small pieces under the old version.
fn claims_of_the_first_chart(trials: &ScalingTrials) -> Vec<Claim> {
    let old = |piece, workers| trials.speed_up(piece, workers, OLD);
    let little = Expect::Between(0.8, 1.3);
    let third = Claim::source(
        "001-c",
        "Pieces of 1 µs, 31 workers: almost no improvement",
        "Compare-and-swap overhead, below the first chart",
    );
    let third = third.is(little, old(1_000, ALL_CPUS), TIMES);
    vec![
        Claim::source(
            "001-a",
            "Pieces of 0.5 µs, 20 workers: as fast as without a job system",
            "Compare-and-swap overhead, below the first chart",
        )
        .is(Expect::Between(0.8, 1.25), old(500, 20), TIMES)
        .fitted("2017.3; the machine's values are fitted to this and the next"),
        Claim::source(
            "001-b",
            "… with all cores: nearly twice as slow",
            "Compare-and-swap overhead, below the first chart",
        )
        .is(Expect::Between(0.4, 0.65), old(500, ALL_CPUS), TIMES)
        .fitted("31 workers; as the first"),
        third.note("not fitted"),
    ]
}

/// Newer versions, larger pieces, more workers than CPUs.
fn claims_of_other_versions_and_sizes(trials: &ScalingTrials, large: u64) -> Vec<Claim> {
    let chained = trials.speed_up(large, ALL_CPUS, CHAINED) / trials.speed_up(large, ALL_CPUS, OLD);
    let old = |piece, workers| trials.speed_up(piece, workers, OLD);
    let peak = trials
        .0
        .iter()
        .filter(|(trial, _)| trial.system == OLD && trial.piece == Nanos(500));
    let peak = peak.map(|(_, speed_up)| *speed_up).fold(0.0, f64::max);
    vec![
        Claim::source(
            "001-e",
            "The more cores, the greater the overhead",
            "Compare-and-swap overhead, above the first chart",
        )
        .is(Expect::LessThan(peak), old(500, ALL_CPUS), TIMES)
        .note("pieces of 0.5 µs: all cores against the best number of workers"),
        Claim::source(
            "001-f",
            "Larger jobs hide this overhead",
            "Compare-and-swap overhead, last paragraph",
        )
        .is(Expect::AtLeast(5.0), old(large, ALL_CPUS), TIMES)
        .note(format!("{}, 31 workers", Nanos(large))),
        Claim::source(
            "001-g",
            "More workers than cores make it worse",
            "Job scheduler, last paragraph",
        )
        .is(
            Expect::LessThan(old(large, ALL_CPUS)),
            old(large, TOO_MANY),
            TIMES,
        )
        .note(format!(
            "2017.3, pieces of {}: 47 workers against 31 on 32 CPUs",
            Nanos(large)
        )),
        Claim::source(
            "001-ha",
            "… and a frame is shorter for it",
            "2022.2 job scheduler, last paragraph",
        )
        .is(Expect::MoreThan(1.0), chained, "times 2017.3")
        .or_else("batches of 2017.3 have the same effect")
        .note(format!(
            "31 workers, pieces of {}; 001-h is about the main thread",
            Nanos(large)
        )),
    ]
}

/// Paceline in the same charts.
fn better_than_none(trials: &ScalingTrials) -> Claim {
    let few_or_more = trials
        .0
        .iter()
        .filter(|(trial, _)| trial.system == SystemUnderTest::Paceline);
    let few_or_more =
        few_or_more.filter(|(trial, _)| trial.workers > 0 && trial.workers <= ALL_CPUS);
    Claim::ours(
        "001-j",
        "With workers Paceline is faster than without any, even with pieces of 0.5 µs",
    )
    .is(
        Expect::MoreThan(1.0),
        few_or_more
            .map(|(_, speed_up)| *speed_up)
            .fold(f64::MAX, f64::min),
        "times as fast as serial, the least of all",
    )
}
