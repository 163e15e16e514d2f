//! The cost of recording in a job system: the same frames, recorded and not.

use console::Failure;
use event::{EventKind, Nanos};
use paceline::{Builder, JobSystem, Rings};
use platform::Os;
use workload::graph::{Generator, GraphScene, Labels};

use super::ROW;
use crate::case::{Case, Picture};
use crate::row::{nanos, short};
use crate::session::{Contestant, Sample, Setup, interleave};
use crate::target::{Bound, Target};
use crate::who::Who;

const PIECE: Nanos = Nanos(1_000);
/// The number of events in each thread's ring: those of many frames.
const RING: usize = 1 << 16;

/// The time of a recorded frame of source 001 over that of one that is not recorded.
pub(super) fn measure(setup: &mut Setup) -> Result<Case, Failure> {
    let (threads, pairs) = (setup.threads, setup.size(20, 2));
    let generator = Generator {
        piece: PIECE,
        jobs: setup.size(500, 40),
        ..Generator::default()
    };
    let graph = generator.generate().map_err(Failure::failed)?;
    let mut scene = GraphScene::new(graph, setup.busy, Labels::OfKinds);
    let subject = Contestant::new(Who::Paceline, move || run(&mut scene, threads, pairs));
    let samples = interleave(setup, ROW.name, setup.size(10, 1), vec![subject])?;
    let samples = samples.into_iter().map(|samples| samples.only());
    let label = format!("recording, frames with pieces of {}", short(PIECE));
    let case = Case::new(ROW.name, label, "× not recorded", samples).with_picture(Picture::None);
    Ok(case.with_target(|case| {
        let median = case.median(Who::Paceline);
        Target::new(setup, "recorded / not", Bound::AtMost(1.03), median)
    }))
}

/// Runs frames in turn with and without recording on a fresh job system, after two that do not count. The
/// result is the median of the one kind over that of the other. Rings are emptied between frames, as in every
/// program that records frames.
fn run(scene: &mut GraphScene, threads: usize, pairs: usize) -> Sample {
    let (rings, mut reader) = Rings::new(RING);
    let builder = Builder::new().workers(threads - 1).sink(rings);
    let js = builder.build().map_err(|error| error.to_string())?;
    let (mut plain, mut recorded) = (Vec::new(), Vec::new());
    let mut events = 0u64;
    for pair in 0..=pairs {
        for on in [pair % 2 == 0, pair % 2 != 0] {
            js.set_recording(on);
            let time = frame(scene, &js)?;
            let (mut found, mut begun) = (0, 0);
            reader.drain(|event| {
                found += 1;
                begun += usize::from(event.kind == EventKind::Created);
            });
            events += found;
            // Events of workers that park may come without recording, too.
            if (begun > 0) != on {
                return Err(format!("{begun} jobs were recorded; recording is on: {on}"));
            }
            if pair > 0 {
                if on { &mut recorded } else { &mut plain }.push(time);
            }
        }
    }
    match reader.lost() {
        0 => Ok(vec![median(&mut recorded) / median(&mut plain)]),
        lost => Err(format!("{lost} of {events} events were lost")),
    }
}

fn frame(scene: &mut GraphScene, js: &JobSystem<Os>) -> Result<f64, String> {
    let time = nanos(|| scene.run(js));
    scene.verify().map_err(|wrong| wrong.to_string())?;
    Ok(time)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

#[cfg(test)]
mod tests {
    use workload::busy::Busy;

    use super::*;

    /// Goal: the row compares recorded frames with others. Method: one sample with one worker, which fails by
    /// itself if a frame was of the wrong kind.
    #[test]
    fn recorded_frames_are_compared_with_others() {
        let generator = Generator {
            jobs: 40,
            ..Generator::default()
        };
        let mut scene = GraphScene::new(generator.generate().unwrap(), Busy::NONE, Labels::OfKinds);
        let sample = run(&mut scene, 2, 3).unwrap();
        assert!(sample.len() == 1 && sample[0] > 0.0, "{sample:?}");
    }
}
