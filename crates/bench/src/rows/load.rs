//! `load`: the frames of row `frame` while other threads want the CPUs, too.

use std::time::Duration;

use console::help::probe;
use console::{Failure, output};
use measure::{Hogs, process_cpu, rank};
use platform::SchedParams;

use super::frame_pools::{Common, four_millis, helped_contestants, judged, run};
use crate::case::{Case, Picture};
use crate::frame_loop::FrameLoop;
use crate::row::Row;
use crate::session::{Samples, Setup, interleave};
use crate::target::{Bound, Target};
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "load",
    title: "the frames of row `frame`, with 4 CPU hogs beside",
    means: "As row `frame`, while four threads of ordinary priority compute without end; no subject has \
            a privilege or a priority. 15 runs of 200 frames each, on fresh pools, each after 20 frames \
            to warm up. The mean and p99 are of all 3000 frames of a subject and stand in the column of \
            medians; least and worst are those of a run. *missed* is how many of 1000 frames ended \
            after the next was due. The hogs are threads of \
            this process: the kernel's groups of sessions would otherwise share the CPUs out between \
            groups. (oneTBB's process is of the same session.) What is found is a statement about the \
            kernel and boot flags above. *idempotent* is Paceline with each frame as an idempotent job, of \
            which late pieces are run again by the thread that waits. *CPU time* is that of the subject's \
            threads, without the hogs', a frame. Controls, which are not judged: *steering off*; *kernel's \
            slice*, Paceline without asking for a short time slice. Then the same with the kernel's help, \
            where it is permitted (`--os-help`): the calling thread and all threads of a subject have this \
            nice value or class, and the hogs do not. Paceline asks for it by `Builder::os_help` and \
            `JobSystem::adopt`; for the peers the bench asks for the thread that makes the pool, whose \
            threads inherit it (for oneTBB, for the first thread of its process).",
    measure,
};

/// The number of hogs: two for each of two CPUs.
pub(super) const HOGS: u32 = 4;
/// The time from the start of the hogs to a run. After it they are spread over the CPUs.
pub(super) const SETTLE: Duration = Duration::from_millis(100);

/// The numbers of a sample: the missed frames of 1000, the CPU time of a frame, and the frames from there on.
const MISSED: usize = 0;
const CPU: usize = 1;
const FRAMES: usize = 2;

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let mut all = judged(setup);
    all.extend([
        Who::PacelineIdempotent,
        Who::PacelineUnsteered,
        Who::PacelineUnsliced,
    ]);
    let samples = samples(setup, &all, None)?;
    let times: Vec<(Who, Vec<Vec<f64>>)> = samples.iter().map(frames_by_round).collect();
    let of_runs = |part: usize| -> Vec<(Who, Vec<Vec<f64>>)> {
        let alone = |samples: &Samples| samples.of[part].iter().map(|&one| vec![one]).collect();
        let of_run = |samples: &Samples| (samples.who, alone(samples));
        samples.iter().map(of_run).collect()
    };

    let mean = Case::pooled(ROW.name, "mean", "ms", &times, mean_of)
        .with_picture(Picture::Tails)
        .with_target(|case| case.to_best_peer(setup, 0.8));
    let p99 = Case::pooled(ROW.name, "p99", "ms", &times, p99_of)
        .with_picture(Picture::None)
        .with_target(|case| case.to_best_peer(setup, 1.1))
        .with_target(|case| idempotent_to_ordinary(setup, case, 0.7));
    let missed = Case::pooled(
        ROW.name,
        "missed",
        "of 1000 frames",
        &of_runs(MISSED),
        mean_of,
    )
    .with_picture(Picture::None);
    let cpu = Case::pooled(ROW.name, "CPU time", "ms a frame", &of_runs(CPU), mean_of)
        .with_picture(Picture::None)
        .with_target(|case| idempotent_to_ordinary(setup, case, 1.05));
    let mut cases = vec![mean, p99, missed, cpu];
    for help in setup.helps.clone() {
        let helped = with_help(setup, &help, [&cases[0], &cases[1]])?;
        cases.extend(helped);
    }
    Ok(cases)
}

/// The rounds of `all`, with this help.
fn samples(
    setup: &mut Setup,
    all: &[Who],
    help: Option<&SchedParams>,
) -> Result<Vec<Samples>, Failure> {
    let frames = setup.size(four_millis(200, 20), four_millis(4, 1));
    let rounds = setup.size(15, 1);
    let sample = |who: Who, common: &Common, frames: &FrameLoop| {
        let before = process_cpu();
        let hogs = Hogs::start(HOGS)?;
        std::thread::sleep(SETTLE);
        let measured = run(who, common, frames)?;
        let burnt = hogs.stop();
        let missed = measured.missed(frames.period) as f64;
        let missed = missed * 1e3 / measured.lasted.len().max(1) as f64;
        let cpu = match who {
            Who::Tbb => measured.cpu.unwrap_or(f64::NAN),
            _ => {
                let used = before.zip(process_cpu());
                let used = used.map_or(f64::NAN, |(before, after)| {
                    (after - before - burnt).0 as f64
                });
                used / (frames.frames + frames.warm_up).max(1) as f64
            }
        };
        // MISSED, CPU, and the frames.
        let millis = measured.lasted.iter().map(|nanos| nanos / 1e6);
        Ok([missed, cpu / 1e6].into_iter().chain(millis).collect())
    };
    let subjects = helped_contestants(setup, all, frames, help.cloned(), sample);
    let row = match help {
        Some(_) => "load, with help",
        None => ROW.name,
    };
    interleave(setup, row, rounds, subjects)
}

/// Mean and p99 with this help, which every subject gets for the same threads. Without the privilege there is
/// a line that says so. `unhelped`: mean and p99 without help.
fn with_help(
    setup: &mut Setup,
    help: &SchedParams,
    unhelped: [&Case; 2],
) -> Result<[Case; 2], Failure> {
    let answer = probe(help);
    let labels = ["mean", "p99"].map(|number| format!("{help}, {number}"));
    if !answer.granted {
        output::note(format_args!("load: not with {help}: {}", answer.why));
        let none = |label| Case::new(ROW.name, label, "ms", []).with_picture(Picture::None);
        return Ok(labels.map(|label| none(label).with_cannot(Who::Paceline, answer.why.clone())));
    }
    let mut all = judged(setup);
    all.retain(|&who| who != Who::Serial);
    let samples = samples(setup, &all, Some(help))?;
    let times: Vec<(Who, Vec<Vec<f64>>)> = samples.iter().map(frames_by_round).collect();
    let [mean, p99] = labels;
    let case = |label: String, number: fn(&[f64]) -> f64, unhelped: &Case| {
        let case = Case::pooled(ROW.name, label, "ms", &times, number).with_picture(Picture::None);
        let gain = unhelped
            .median(Who::Paceline)
            .zip(case.median(Who::Paceline));
        let gain =
            gain.map(|(without, with)| format!("{:.2} times as fast as without", without / with));
        case.with_target(|case| case.to_best_peer(setup, 1.05).with_note(gain))
    };
    Ok([
        case(mean, mean_of, unhelped[0]),
        case(p99, p99_of, unhelped[1]),
    ])
}

/// The target for jobs whose late pieces are run again: their number is so much of that of ordinary ones.
fn idempotent_to_ordinary(setup: &Setup, case: &Case, at_most: f64) -> Target {
    let both = [Who::PacelineIdempotent, Who::Paceline].map(|who| case.median(who));
    let got = both[0].zip(both[1]).map(|(again, once)| again / once);
    let bound = Bound::AtMost(at_most);
    Target::new(setup, "idempotent / paceline", bound, got)
}

/// The frames of each round, which are the numbers of a sample after the first one.
pub(super) fn by_round(samples: &Samples) -> (Who, Vec<Vec<f64>>) {
    numbers_by_round(samples, 1)
}

/// The same for the samples of this row.
fn frames_by_round(samples: &Samples) -> (Who, Vec<Vec<f64>>) {
    numbers_by_round(samples, FRAMES)
}

fn numbers_by_round(samples: &Samples, first: usize) -> (Who, Vec<Vec<f64>>) {
    let rounds = samples.of[0].len();
    let frames = |round: usize| samples.of[first..].iter().map(move |frame| frame[round]);
    let rounds = (0..rounds).map(|round| frames(round).collect());
    (samples.who, rounds.collect())
}

pub(super) fn mean_of(frames: &[f64]) -> f64 {
    frames.iter().sum::<f64>() / frames.len().max(1) as f64
}

pub(super) fn p99_of(frames: &[f64]) -> f64 {
    let mut sorted = frames.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    rank(&sorted, 0.99).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: samples become the frames and the missed frames of each run. Method: two runs of three frames.
    #[test]
    fn rounds_are_found_again() {
        let samples = Samples {
            who: Who::Chili,
            of: vec![
                vec![0.0, 1.0],
                vec![1.0, 4.0],
                vec![2.0, 5.0],
                vec![3.0, 6.0],
            ],
        };
        let rounds = vec![vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0]];
        assert_eq!(by_round(&samples), (Who::Chili, rounds));
        let rounds = vec![vec![2.0, 3.0], vec![5.0, 6.0]];
        assert_eq!(frames_by_round(&samples), (Who::Chili, rounds));
    }

    /// Goal: mean and p99 are right. Method: the numbers 1 to 200.
    #[test]
    fn means_and_ranks() {
        let frames: Vec<f64> = (1..=200).map(f64::from).rev().collect();
        assert_eq!((mean_of(&frames), p99_of(&frames)), (100.5, 198.0));
    }
}
