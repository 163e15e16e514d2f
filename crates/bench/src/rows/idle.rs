//! `idle`: the cost of a pool without work, and between frames.

use std::time::Duration;

use console::Failure;
use event::Nanos;
use measure::{OtherThreads, Used, median_interval};
use workload::pace::Pause;

use super::frame_pools::{Common, contestants, judged, run, with_pool};
use crate::case::Case;
use crate::frame_loop::{FrameLoop, PERIOD};
use crate::row::Row;
use crate::session::{Contestant, Samples, Setup, interleave};
use crate::target::{Bound, Target};
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "idle",
    title: "CPU over 2 s of nothing, and per frame of 2 ms of work",
    means: "*Nothing*: a fresh pool runs some frames, is left alone for 100 ms, and is then looked at \
            over 2 s: CPU time and switches (a wake-up is one) of all threads of the process but the \
            one that looks, as the kernel counts them for each thread. The targets are for the worst \
            run. *Frames*: 60 frames a second of 100 pieces of 20 µs, as in row `frame`; the CPU time of \
            the whole process, from the beginning of the first frame to when the one after the last is \
            due, so what a pool does after a frame counts. A run is 30 frames on a fresh pool after 10 \
            to warm up; a pair is a run of the subject and the serial run of the same round, and a \
            sample is their ratio: CPU time over the work itself. The target is for the median of the \
            pairs; the interval holds the true median with a confidence of at least 95 % whatever the \
            distribution (order statistics of the pairs). *plain threads*, which is not judged, is the \
            least that such a frame costs on this machine, waking a halted CPU included: the caller and \
            one parked thread for each of the others, each woken by one futex call, take pieces one by \
            one from a shared counter; the caller spins for the last piece, and no other thread spins.",
    measure,
};

/// The time without work.
const NOTHING: Duration = Duration::from_secs(2);
/// The time before that in which a pool is left alone, longer than the spinning of any subject.
const SETTLE: Duration = Duration::from_millis(100);
const NOT_COUNTED: &str = "threads are not counted on this system";

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let mut cases = nothing(setup)?;
    cases.push(frames(setup)?);
    Ok(cases)
}

fn nothing(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let (rounds, common) = (setup.size(5, 1), Common::of(setup));
    let nothing = setup.size(NOTHING, Duration::from_millis(20));
    let warm_up = two_millis(0, setup.size(20, 2));
    let mut all = judged(setup);
    all.retain(|&who| who != Who::Serial);
    let counted = OtherThreads::now().is_some();
    let asleep = |who: Who| match who {
        Who::Tbb => {
            let (tbb, paced) = common.remote(&warm_up)?;
            tbb.idle(&paced, SETTLE, nothing)
        }
        _ => with_pool(who, common.threads, |pool| {
            warm_up.run(pool, common.busy)?;
            used_in(nothing)
        }),
    };
    let contestant = |&who: &Who| {
        Contestant::new(who, move || {
            let used = asleep(who)?;
            Ok(vec![used.cpu.0 as f64 / 1e3, used.switches as f64])
        })
    };
    let subjects = if counted {
        all.iter().map(contestant).collect()
    } else {
        Vec::new()
    };
    let samples = interleave(setup, "idle, nothing", rounds, subjects)?;
    let case = |part: usize, label, unit, target_unit| {
        let of = |samples: &Samples| (samples.who, samples.of[part].clone());
        let mut case = Case::new(ROW.name, label, unit, samples.iter().map(of));
        if !counted {
            for &who in &all {
                case = case.with_cannot(who, NOT_COUNTED);
            }
        }
        case.with_target(|case| {
            let worst = case.spread(Who::Paceline).map(|spread| spread.max);
            let target = Target::new(setup, "paceline's worst run", Bound::AtMost(0.0), worst);
            let target = target.in_unit(target_unit);
            if counted {
                target
            } else {
                target.waived(NOT_COUNTED)
            }
        })
    };
    Ok(vec![
        case(0, "nothing, CPU", "µs in 2 s", "µs"),
        case(1, "nothing, switches", "in 2 s", "switches"),
    ])
}

/// The use of CPUs by the other threads while the calling one sleeps.
fn used_in(nothing: Duration) -> Result<Used, String> {
    std::thread::sleep(SETTLE);
    let before = OtherThreads::now();
    std::thread::sleep(nothing);
    let both = before.zip(OtherThreads::now());
    let used = both.map(|(before, after)| after.since(&before));
    used.ok_or_else(|| NOT_COUNTED.to_owned())
}

fn frames(setup: &mut Setup) -> Result<Case, Failure> {
    let frames = setup.size(two_millis(30, 10), two_millis(3, 1));
    let pairs = setup.size(36, 2);
    let mut all = judged(setup);
    all.push(Who::PlainThreads);
    let subjects = contestants(setup, &all, frames, |who, common, frames| {
        let frames = run(who, common, frames)?;
        Ok(vec![frames.cpu.unwrap_or(f64::NAN)])
    });
    let samples = interleave(setup, "idle, frames", pairs, subjects)?;
    let ratios = ratios(samples);
    let label = "frame of 2 ms, CPU";
    let Some(ratios) = ratios else {
        let none: [(Who, Vec<f64>); 0] = [];
        let case = Case::new(ROW.name, label, "of the work", none);
        let cannot = |case: Case, &who: &Who| case.with_cannot(who, NO_CLOCK);
        return Ok(all.iter().fold(case, cannot));
    };
    let case = Case::new(ROW.name, label, "of the work", ratios);
    Ok(case.with_target(|case| {
        let score = case.scores.iter().find(|score| score.who == Who::Paceline);
        let interval = score.and_then(|score| median_interval(&score.samples));
        let pairs = score.map_or(0, |score| score.spread.n);
        let plain = case.median(Who::PlainThreads);
        let note = interval.zip(plain).map(|((low, high), plain)| {
            format!(
                "{pairs} pairs, 95 % interval {low:.3} to {high:.3}; plain threads alone: {plain:.3}"
            )
        });
        Target::new(
            setup,
            "paceline's CPU / the work",
            Bound::AtMost(1.02),
            case.median(Who::Paceline),
        )
        .with_note(note)
    }))
}

const NO_CLOCK: &str = "this system has no clock for the CPU time of a process";

/// The CPU time of each pool over the serial one of the same round; none if there is no clock for it.
fn ratios(samples: Vec<Samples>) -> Option<Vec<(Who, Vec<f64>)>> {
    let all: Vec<(Who, Vec<f64>)> = samples.into_iter().map(Samples::only).collect();
    let (_, serial) = all.iter().find(|(who, _)| *who == Who::Serial)?;
    let pools = all.iter().filter(|(who, _)| *who != Who::Serial);
    let ratios = pools.map(|(who, used)| {
        let pairs = used.iter().zip(serial);
        (*who, pairs.map(|(used, work)| used / work).collect())
    });
    let ratios: Vec<(Who, Vec<f64>)> = ratios.collect();
    let finite = |(_, ratios): &(Who, Vec<f64>)| ratios.iter().all(|ratio| ratio.is_finite());
    ratios.iter().all(finite).then_some(ratios)
}

fn two_millis(frames: usize, warm_up: usize) -> FrameLoop {
    FrameLoop {
        frames,
        warm_up,
        period: PERIOD,
        pieces: 100,
        piece: Nanos::from_micros(20),
        pause: Pause::Sleep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(who: Who, of: &[f64]) -> Samples {
        Samples {
            who,
            of: vec![of.to_vec()],
        }
    }

    /// Goal: a pair is of the same round, and without a clock there is no pair. Method: three rounds; a
    /// sample that is not a number.
    #[test]
    fn pairs_are_of_the_same_round() {
        let all = || {
            vec![
                samples(Who::Paceline, &[2.0, 6.0, 5.0]),
                samples(Who::Serial, &[2.0, 4.0, 10.0]),
            ]
        };
        let expected = vec![(Who::Paceline, vec![1.0, 1.5, 0.5])];
        assert_eq!(ratios(all()), Some(expected));
        let mut none = all();
        none[1].of[0][2] = f64::NAN;
        assert_eq!(ratios(none), None);
    }
}
