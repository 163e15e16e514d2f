//! Where the time of the threads goes: into jobs, into looking for them, and into sleep.

use console::Failure;
use event::Nanos;
use sim::{Sim, SimConfig, SimReport};
use workload::busy::Busy;

use super::scaling::{ALL_CPUS, LARGE};
use super::subject::{
    BATCHES, ENTRIES, INSTRUCTIONS, LINES, MACHINE, POLICY, SystemUnderTest, frames, graph_for,
    machine, reading,
};
use crate::commands::experiment::chosen::ChosenValue;
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{PieceFill, Plot, PlotLane, PlotPiece, PlotShape};

/// What was only chosen here.
pub(super) const VALUES: &[&ChosenValue] = &[&BATCHES, &ENTRIES, &INSTRUCTIONS, &LINES, &LARGE];
const SMALL: Nanos = Nanos(500);

/// The time of some threads, in nanoseconds.
#[derive(Clone, Copy, Default)]
struct ThreadTimes {
    /// On a CPU, in the jobs.
    jobs: f64,
    /// On a CPU otherwise: looks for jobs, schedules, signals, waits busily.
    else_on_cpu: f64,
    /// Could run, and has no CPU.
    ready: f64,
    asleep: f64,
}

impl ThreadTimes {
    /// Of the main thread, or of all workers.
    fn of(report: &SimReport, is_main: bool) -> ThreadTimes {
        let mut sum = ThreadTimes::default();
        let (first, count) = if is_main { (0, 1) } else { (1, usize::MAX) };
        for thread in report.threads.iter().skip(first).take(count) {
            let nanos = |time: Nanos| time.0 as f64;
            sum.jobs += nanos(thread.worked);
            sum.else_on_cpu += nanos(thread.spent.run - thread.worked);
            sum.ready += nanos(thread.spent.runnable);
            sum.asleep += nanos(thread.spent.sleep);
        }
        sum
    }

    fn parts(self) -> [f64; 4] {
        [self.jobs, self.else_on_cpu, self.ready, self.asleep]
    }

    /// What a longer run has beside a shorter one, in percent of the whole of it.
    fn shares_beside(self, shorter: ThreadTimes) -> Shares {
        let more = self.parts().into_iter().zip(shorter.parts());
        // The end of a run is not the same in both.
        let more: Vec<f64> = more.map(|(long, short)| (long - short).max(0.0)).collect();
        let all: f64 = more.iter().sum();
        let of = |place: usize| more[place] * 100.0 / all;
        Shares([of(0), of(1), of(2), of(3)])
    }
}

/// Percents: in jobs, otherwise on a CPU, ready, asleep.
#[derive(Clone, Copy)]
struct Shares([f64; 4]);

impl Shares {
    /// Of the time on a CPU, what is not spent in jobs.
    fn looking(self) -> f64 {
        let [jobs, otherwise, ..] = self.0;
        otherwise * 100.0 / (jobs + otherwise)
    }
}

/// One job system with pieces of one length: the main thread's shares, and the workers'.
struct ShareTrial {
    system: SystemUnderTest,
    piece: Nanos,
    main: Shares,
    workers: Shares,
}

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let mut all = Vec::new();
    for piece in [SMALL, effort.time(&LARGE)] {
        all.extend(SystemUnderTest::ALL.map(|system| (system, piece)));
    }
    let trials = lab::each("shares", &all, |&(system, piece)| {
        // Frames alone: without the start of the threads and their end.
        let (few, many) = effort.of((1, 3), (2, 10));
        let [few, many] = [few, many].map(|count| run(system, piece, count, effort));
        let (few, many) = (few?, many?);
        let shares =
            |is_main| ThreadTimes::of(&many, is_main).shares_beside(ThreadTimes::of(&few, is_main));
        Ok(ShareTrial {
            system,
            piece,
            main: shares(true),
            workers: shares(false),
        })
    })?;
    findings.tables.push(table(&trials));
    findings.plots.push(plot(&trials, SMALL));
    findings.claims.extend(claims(&trials));
    Ok(())
}

fn run(
    system: SystemUnderTest,
    piece: Nanos,
    count: u32,
    effort: &Effort,
) -> Result<SimReport, Failure> {
    let mut done = Err(Failure::failed("the simulated program did not run"));
    let graph = graph_for(system, piece, effort)?;
    let read = (system, reading(effort));
    let config = SimConfig::on(machine(effort), POLICY, effort.seed);
    let report = Sim::run(config, |sim| {
        done = frames(&sim, read, ALL_CPUS, graph, count, Busy::NONE, || ()).map(drop);
    });
    lab::sound("shares", &report)?;
    done.map(|()| report)
}

fn table(trials: &[ShareTrial]) -> Table {
    let title = format!(
        "Where the time of the threads goes in a frame, in percent of it, {ALL_CPUS} workers on {MACHINE}"
    );
    let columns = [
        "job system",
        "a piece",
        "main: in jobs",
        "else on a CPU",
        "no CPU",
        "asleep",
        "workers: in jobs",
        "else on a CPU",
        "no CPU",
        "asleep",
    ];
    let mut table = Table::new(title, columns);
    for trial in trials {
        let shares = trial.main.0.into_iter().chain(trial.workers.0);
        let first = [trial.system.name().into(), trial.piece.into()];
        table.row(first.into_iter().chain(shares.map(Into::into)));
    }
    table
}

/// The workers' shares as bars, a part for each.
fn plot(trials: &[ShareTrial], piece: Nanos) -> Plot {
    let names = ["in jobs", "looks", "no CPU", "asleep"];
    let fills = [
        PieceFill::Kind(0),
        PieceFill::Kind(1),
        PieceFill::Kind(3),
        PieceFill::Pale,
    ];
    let lane = |trial: &ShareTrial| {
        let mut begin = 0.0;
        let parts = trial.workers.0.into_iter().zip(names).zip(fills);
        let pieces = parts.map(|((share, name), fill)| {
            let end = begin + share;
            PlotPiece {
                begin: std::mem::replace(&mut begin, end),
                end,
                name: format!("{name}: {share:.0} %"),
                fill,
            }
        });
        PlotLane {
            name: trial.system.name().to_owned(),
            pieces: pieces.filter(|piece| piece.end > piece.begin).collect(),
            result: String::new(),
        }
    };
    Plot {
        file: "shares",
        title: format!("Where the time of {ALL_CPUS} workers goes, pieces of {piece}"),
        picture: PlotShape::Lanes {
            unit: "%",
            lanes: trials
                .iter()
                .filter(|trial| trial.piece == piece)
                .map(lane)
                .collect(),
            marks: Vec::new(),
        },
    }
}

fn claims(trials: &[ShareTrial]) -> [Claim; 2] {
    const UNIT: &str = "% of the workers' time on a CPU";
    let looking = |system: usize, is_small: bool| {
        let name = SystemUnderTest::ALL[system].name();
        let found = trials
            .iter()
            .find(|trial| trial.system.name() == name && (trial.piece == SMALL) == is_small);
        found.map_or(f64::NAN, |trial| trial.workers.looking())
    };
    let large = trials.last().map(|trial| trial.piece).unwrap_or_default();
    [
        Claim::source(
            "001-fa",
            "When jobs are small, workers spend more of their time looking for work",
            "Compare-and-swap overhead, below the example",
        )
        .is(Expect::MoreThan(looking(0, false)), looking(0, true), UNIT)
        .note(format!(
            "2017.3, {ALL_CPUS} workers; pieces of {SMALL} against {large}"
        )),
        Claim::source(
            "001-da",
            "With a queue for each worker less time goes into looking",
            "2022.2 job scheduler, below the loop",
        )
        .is(Expect::LessThan(looking(0, true)), looking(2, true), UNIT)
        .note(format!(
            "2022.2 against 2017.3, {ALL_CPUS} workers, pieces of {SMALL}"
        )),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: shares are of what a longer run has more, and add up to all of it. Method: made-up times.
    #[test]
    fn shares_are_of_the_frames() {
        let times = |jobs, else_on_cpu, ready, asleep| ThreadTimes {
            jobs,
            else_on_cpu,
            ready,
            asleep,
        };
        let shares = times(30.0, 20.0, 10.0, 60.0).shares_beside(times(0.0, 10.0, 10.0, 0.0));
        assert_eq!(shares.0, [30.0, 10.0, 0.0, 60.0]);
        assert_eq!(shares.looking(), 25.0);
    }
}
