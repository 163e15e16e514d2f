//! `frame`: frames at 60 Hz, on a machine without other work.

use super::frame_pools::{cannot_pin, contestants, four_millis, judged, run};
use crate::case::Case;
use crate::row::Row;
use crate::session::{Samples, Setup, interleave};
use crate::target::{Bound, Target};
use crate::who::Who;
use console::Failure;
use measure::rank;

pub(super) const ROW: Row = Row {
    name: "frame",
    title: "60 frames a second, each 4 ms of work in pieces of 20 µs",
    means: "The calling thread sleeps until a frame is due (every 16.67 ms; a late one does not move \
            those after it), then runs one parallel loop over 200 pieces of 20 µs and sleeps again. A \
            run is a fresh pool, 20 frames to warm up, then 100 that count, each from when the thread \
            is awake and begins it to the end of its loop; two numbers of each run, p50 and p99. The \
            target is for the p50 of the worst run. Every frame's sum is checked. Loops are those of \
            row `for`; chili's halving goes down to one piece, bevy_tasks spawns a task for each, and \
            oneTBB runs a `parallel_for` in its own process, on the same schedule. What this row finds \
            is mostly where the kernel puts a worker that is woken by a thread which has slept: it is a \
            statement about the kernel and boot flags above, and about no others. The controls show it: \
            *steering off* is Paceline with its workers left where the kernel puts them; *waker spinning*: \
            the calling thread spins until a frame is due, for Paceline with steering off; *kernel's slice*: \
            Paceline's workers do not ask for a short time slice; *pinned*: each thread of the pool may use \
            one CPU of its own only. *plain threads* is the least that such a frame needs: the caller and \
            one parked thread for each of the others, each woken by one futex call, take pieces one by one \
            from a shared counter; the caller spins for the last piece. Neither it nor the controls are \
            judged.",
    measure,
};

const CONTROLS: [Who; 3] = [
    Who::PacelineUnsteered,
    Who::PacelineSpinning,
    Who::PacelineUnsliced,
];
const PEER_CONTROLS: [Who; 2] = [Who::RayonSpinning, Who::RayonPinned];

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let frames = setup.size(four_millis(100, 20), four_millis(4, 1));
    let rounds = setup.size(10, 1);
    let no_pins = cannot_pin();
    let mut all = judged(setup);
    all.push(Who::PlainThreads);
    all.extend(CONTROLS);
    if setup.peers {
        all.extend(PEER_CONTROLS);
    }
    all.retain(|&who| who != Who::RayonPinned || no_pins.is_none());
    let subjects = contestants(setup, &all, frames, |who, common, frames| {
        let mut frames = run(who, common, frames)?;
        frames.lasted.sort_unstable_by(f64::total_cmp);
        let ranks = [0.50, 0.99].map(|fraction| rank(&frames.lasted, fraction));
        let numbers = ranks.into_iter().flatten();
        Ok(numbers.map(|nanos| nanos / 1e6).collect())
    });
    let samples = interleave(setup, ROW.name, rounds, subjects)?;
    let case = |part: usize, label: &str| {
        let of = |samples: &Samples| (samples.who, samples.of[part].clone());
        let case = Case::new(ROW.name, label, "ms", samples.iter().map(of));
        match no_pins {
            Some(why) if setup.peers => case.with_cannot(Who::RayonPinned, why),
            _ => case,
        }
    };
    let p50 = case(0, "p50").with_target(|case| {
        let both = case.spread(Who::Paceline).zip(case.median(Who::Serial));
        let worst = both.map(|(ours, serial)| ours.max / serial);
        Target::new(
            setup,
            "paceline's worst run / serial",
            Bound::AtMost(0.52),
            worst,
        )
    });
    Ok(vec![p50, case(1, "p99")])
}
