//! Speed-up over a serial run on this machine, with up to eight workers.

use console::{Failure, Progress};
use event::Nanos;
use measure::{Machine, Spread};
use platform::{Os, Platform};
use workload::baseline::BaselineReading;
use workload::busy::Busy;
use workload::graph::JobGraph;

use super::frame_times::{CLEARLY, FrameTimes, Lead};
use super::ranking;
use super::scaling::{NEW, OLD, ScalingTrial, ScalingTrials, plot, table};
use super::subject::{SystemUnderTest, frames, graph, jobs};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::Findings;
use crate::commands::experiment::lab::Effort;

const WORKERS: [usize; 7] = [0, 1, 2, 3, 4, 6, 8];
const FEW_WORKERS: [usize; 4] = [0, 1, 2, 8];
const PIECES_NS: [u64; 4] = [500, 1_000, 5_000, 10_000];
const FEW_PIECES_NS: [u64; 2] = [500, 10_000];

pub(super) fn measured(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let workers = effort.of(&FEW_WORKERS[..], &WORKERS[..]);
    let pieces = effort.of(&FEW_PIECES_NS[..], &PIECES_NS[..]);
    // The first frame finds workers asleep and caches cold.
    let (count, serials) = effort.of((4, 3), (12, 5));
    let read = BaselineReading::default();
    let (busy, here) = (Busy::calibrate(&Os), Machine::read());
    let cells = (pieces.len() * workers.len() * SystemUnderTest::ALL.len()) as u64;
    let mut progress = Progress::new("frames here", cells * u64::from(count));
    let mut trials = Vec::new();
    let mut compared = FrameTimes::default();
    for &piece in pieces {
        let graph_of = || graph(Nanos(piece), effort);
        let alone = graph_of().map(|graph| serial(&graph, busy, serials))?;
        for &workers in workers {
            for system in SystemUnderTest::ALL {
                let step = || progress.step();
                let times = frames(&Os, (system, read), workers, graph_of()?, count, busy, step)?;
                let times: Vec<f64> = times.iter().skip(1).map(|time| time.0 as f64).collect();
                let trial = ScalingTrial {
                    piece: Nanos(piece),
                    workers,
                    system,
                };
                trials.push((trial, alone / median(&times)));
                compared.add(trial, &times);
            }
        }
    }
    drop(progress);
    let trials = ScalingTrials(trials);
    let jobs = jobs(effort);
    let title = format!(
        "This machine ({here}): speed-up over a serial run, {jobs} jobs, medians of {} frames",
        count - 1
    );
    let measure = graph(Nanos(pieces[0]), effort)?.measure();
    let bounds = workers.iter().map(|&workers| {
        let threads = (workers + 1).min(here.parallelism);
        measure.speedup_at_most(threads as u32)
    });
    let bounds: Vec<f64> = bounds.collect();
    findings
        .tables
        .push(table(title, &trials, pieces, workers, &bounds));
    let title = format!("This machine: {jobs} jobs, {} a piece", Nanos(pieces[0]));
    findings.plots.push(plot(
        "here",
        title,
        &trials,
        pieces[0],
        workers.iter().copied(),
    ));
    findings.claims.extend(claims(
        &trials,
        &compared,
        pieces,
        workers,
        here.parallelism,
    ));
    findings.notes.push(what_it_is(here.parallelism));
    ranking::compared(&compared, here.parallelism, count, effort, findings)
}

fn median(times: &[f64]) -> f64 {
    Spread::of(times).map_or(f64::NAN, |spread| spread.median)
}

/// With how many numbers of workers 2022.2 is faster than 2017.3, as a part of all.
fn faster(leads: &[Lead], piece: u64) -> f64 {
    let of = leads.iter().filter(|lead| lead.piece == Nanos(piece));
    let faster = of.clone().filter(|lead| lead.errors > CLEARLY).count();
    faster as f64 / of.count() as f64
}

/// "2022.2 is faster with any number of workers": so many of them, by two standard errors, with the shortest
/// pieces, and with the others.
fn newer_is_faster(times: &FrameTimes, pieces: &[u64]) -> Claim {
    /// What counts as any number.
    const ALL: Expect = Expect::AtLeast(0.9);
    let leads = times.leads(NEW, OLD);
    let slower = leads.iter().filter(|lead| lead.errors < -CLEARLY).count();
    let claim = Claim::source(
        "001-x",
        "2022.2 is faster with any number of workers",
        "2022.2 job scheduler, charts; on this machine",
    );
    let claim = claim
        .is(
            ALL,
            faster(&leads, pieces[0]),
            "of the numbers of workers, by two standard errors",
        )
        .or_else(
            "where both have a CPU for each worker and pieces are long, both take the same time",
        );
    let claim = pieces[1..].iter().fold(claim, |claim, &piece| {
        claim.varied(
            "pieces",
            Nanos(piece).to_string(),
            ALL,
            faster(&leads, piece),
        )
    });
    claim.note(format!(
        "pieces of {}; slower, by as much, in {slower} of all {} cases",
        Nanos(pieces[0]),
        leads.len()
    ))
}

/// The time of the pieces one after the other, the median of some runs.
fn serial(graph: &JobGraph, busy: Busy, runs: u32) -> f64 {
    let run = |_| {
        let begin = Os.now();
        for (job, node) in (0u64..).zip(graph.jobs()) {
            for _ in 0..node.pieces() {
                busy.spin_for(node.cost, job);
            }
        }
        (Os.now() - begin).0 as f64
    };
    median(&(0..runs).map(run).collect::<Vec<_>>())
}

/// What the few CPUs can show, for the reader.
fn what_it_is(cpus: usize) -> String {
    let most = WORKERS[WORKERS.len() - 1];
    match cpus {
        32.. => {
            format!("This machine has {cpus} CPUs; its rows say what {most} workers of them do.")
        }
        _ => format!(
            "This machine has {cpus} CPUs where the article's has 32: its rows do not measure the effect \
             that the article saw, that of many cores on one queue. Up to {} of its workers have a CPU \
             each; beyond, they show the cost of a job system whose workers share CPUs.",
            cpus.saturating_sub(1)
        ),
    }
}

fn claims(
    trials: &ScalingTrials,
    times: &FrameTimes,
    pieces: &[u64],
    workers: &[usize],
    cpus: usize,
) -> [Claim; 3] {
    let (least, most) = (pieces[0], pieces[pieces.len() - 1]);
    // The main thread has a CPU, too.
    let fits = workers
        .iter()
        .copied()
        .filter(|&workers| workers < cpus.max(2));
    let (fits, crowd) = (fits.max().unwrap_or(0), workers[workers.len() - 1]);
    let small = |workers| trials.speed_up(least, workers, OLD);
    [
        newer_is_faster(times, pieces),
        Claim::source(
            "001-y",
            "More workers than cores make it worse",
            "Job scheduler, last paragraph; on this machine",
        )
        .is(
            Expect::LessThan(small(fits)),
            small(crowd),
            "times as fast as serial",
        )
        .or_else("workers that share a CPU do not disturb each other at the queue")
        .note(format!(
            "2017.3, pieces of {}: {crowd} workers against {fits}",
            Nanos(least)
        )),
        Claim::source(
            "001-z",
            "Larger jobs hide the overhead",
            "Compare-and-swap overhead, last paragraph; on this machine",
        )
        .is(
            Expect::MoreThan(small(fits)),
            trials.speed_up(most, fits, OLD),
            "times as fast as serial",
        )
        .note(format!(
            "2017.3, workers: {fits}, pieces of {} against {}",
            Nanos(most),
            Nanos(least)
        )),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::experiment::claim::ClaimVerdict;

    fn trials(speed_up: impl Fn(ScalingTrial) -> f64) -> ScalingTrials {
        let mut all = Vec::new();
        for piece in [500, 10_000].map(Nanos) {
            for workers in [1, 8] {
                for system in SystemUnderTest::ALL {
                    let trial = ScalingTrial {
                        piece,
                        workers,
                        system,
                    };
                    all.push((trial, speed_up(trial)));
                }
            }
        }
        ScalingTrials(all)
    }

    /// Frames that take the longer the less the speed-up is, each about as long as the others.
    fn times(trials: &ScalingTrials) -> FrameTimes {
        let mut times = FrameTimes::default();
        for (trial, speed_up) in &trials.0 {
            let frame = 1e6 / speed_up;
            times.add(*trial, &[frame * 0.99, frame, frame * 1.01]);
        }
        times
    }

    /// Goal: claims follow from the speed-ups of this machine. Method: speed-ups that bear all of them out,
    /// and some that contradict all of them.
    #[test]
    fn claims_follow_from_speed_ups() {
        let verdicts = |trials: &ScalingTrials| {
            let claims = claims(trials, &times(trials), &[500, 10_000], &[1, 8], 2);
            claims.map(|claim| claim.json()["ok"] == true)
        };
        let as_said = trials(|trial| {
            let newer = if trial.system == NEW { 0.2 } else { 0.0 };
            let longer = if trial.piece.0 > 500 { 0.5 } else { 0.0 };
            1.5 - trial.workers as f64 / 10.0 + newer + longer
        });
        assert_eq!(verdicts(&as_said), [true; 3]);
        let otherwise = trials(|trial| trial.workers as f64);
        assert_eq!(verdicts(&otherwise), [false; 3]);
    }

    /// Goal: noise is no difference. Method: both alike but for one part in 200, which is less than the times
    /// of the frames differ; a lead with the shorter pieces alone; one that is behind there.
    #[test]
    fn a_difference_counts_from_two_standard_errors() {
        let verdict = |newer: fn(ScalingTrial) -> f64| {
            let all = trials(|trial| match trial.system {
                NEW => newer(trial),
                _ => 1.0,
            });
            newer_is_faster(&times(&all), &[500, 10_000]).verdict()
        };
        assert_eq!(verdict(|_| 1.005), ClaimVerdict::Contradicted);
        assert_eq!(verdict(|_| 1.2), ClaimVerdict::Reproduced);
        let with_short = |trial: ScalingTrial| if trial.piece.0 == 500 { 1.2 } else { 0.995 };
        assert_eq!(verdict(with_short), ClaimVerdict::Depends);
        assert_eq!(verdict(|_| 0.8), ClaimVerdict::Contradicted);
    }
}
