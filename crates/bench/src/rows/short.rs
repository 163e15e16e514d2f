//! `short`: short frames without a pause between them, alone and while other threads want the CPUs, too.

use std::time::Duration;

use console::Failure;
use event::Nanos;
use measure::Hogs;
use workload::pace::Pause;

use super::frame_pools::{Common, contestants, judged, run};
use super::load::{HOGS, SETTLE, mean_of, p99_of};
use crate::case::{Case, Picture};
use crate::frame_loop::FrameLoop;
use crate::row::Row;
use crate::session::{Samples, Setup, interleave};
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "short",
    title: "frames of 130 µs back to back, alone and beside 4 CPU hogs",
    means: "As row `frame`, with 26 pieces of 5 µs a frame and no time between frames: what a simulation \
            does that runs as fast as it can. 10 runs of 2000 frames each, on fresh pools, each after 200 \
            frames to warm up. The mean and p99 are of all 20 000 frames of a subject and stand in the \
            column of medians; least and worst are those of a run. Beside hogs: four threads of this \
            process compute without end, as in row `load`. *steering off* is a control.",
    measure,
};

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for (label, hogs) in [("alone", 0), ("beside 4 hogs", HOGS)] {
        let times = times(setup, hogs)?;
        let case = |number: &str, of: fn(&[f64]) -> f64| {
            let label = format!("{label}, {number}");
            let case = Case::pooled(ROW.name, label, "µs", &times, of);
            case.with_target(|case| case.ratio(setup, "rayon", case.best_rayon(), 1.0))
        };
        cases.push(case("mean", mean_of).with_picture(Picture::Tails));
        cases.push(case("p99", p99_of).with_picture(Picture::None));
    }
    Ok(cases)
}

/// A subject's frames in microseconds, by run.
type Times = (Who, Vec<Vec<f64>>);

fn times(setup: &mut Setup, hogs: u32) -> Result<Vec<Times>, Failure> {
    let frames = FrameLoop {
        frames: setup.size(2_000, 10),
        warm_up: setup.size(200, 1),
        // A frame is due as soon as the one before it has ended.
        period: Nanos(1),
        pieces: 26,
        piece: Nanos::from_micros(5),
        pause: Pause::Sleep,
    };
    let settle = if hogs > 0 { SETTLE } else { Duration::ZERO };
    let sample = move |who: Who, common: &Common, frames: &FrameLoop| {
        let hogs = Hogs::start(hogs)?;
        std::thread::sleep(settle);
        let measured = run(who, common, frames)?;
        hogs.stop();
        Ok(measured.lasted.iter().map(|nanos| nanos / 1e3).collect())
    };
    let mut all = judged(setup);
    all.push(Who::PacelineUnsteered);
    let subjects = contestants(setup, &all, frames, sample);
    let samples = interleave(setup, ROW.name, setup.size(10, 1), subjects)?;
    Ok(samples.iter().map(by_run).collect())
}

/// The frames of each run.
fn by_run(samples: &Samples) -> Times {
    let runs = samples.of.first().map_or(0, Vec::len);
    let frames = |run: usize| samples.of.iter().map(move |frame| frame[run]).collect();
    (samples.who, (0..runs).map(frames).collect())
}
