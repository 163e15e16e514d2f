//! The subjects of the rows in which frames are run: each one's pool, and one run of frames on it.

use std::time::Duration;

use event::Nanos;
use paceline::JobSystem;
use platform::{CpuSet, Os, Platform};
use workload::busy::Busy;

use super::loops::{Halves, Loops, Serial};
use crate::commands::bench::frame_loop::{FrameLoop, Frames, PERIOD, Pieces};
use crate::commands::bench::pools;
use crate::commands::bench::session::{Contestant, Sample, Setup};
use crate::commands::bench::who::Who;
use crate::pace::Pause;

/// Serial, Paceline and, if they are wanted, the peers.
pub(super) fn judged(setup: &Setup) -> Vec<Who> {
    let mut all = vec![Who::Serial, Who::Paceline];
    if setup.peers {
        all.extend([Who::Rayon, Who::RayonMember, Who::Chili]);
    }
    all
}

/// One run of frames by a subject, on a fresh pool.
pub(super) fn run(
    who: Who,
    threads: usize,
    busy: Busy,
    frames: &FrameLoop,
) -> Result<Frames, String> {
    let pause = match who {
        Who::PacelineSpinning | Who::RayonSpinning => Pause::Spin,
        _ => frames.pause,
    };
    let frames = FrameLoop { pause, ..*frames };
    with_pool(who, threads, |pool| frames.run(pool, busy))
}

/// A contestant for each of these, whose sample is made out of one run.
pub(super) fn contestants<'a>(
    setup: &Setup,
    everybody: &[Who],
    frames: FrameLoop,
    sample: impl Fn(Who, Frames) -> Sample + Copy + 'a,
) -> Vec<Contestant<'a>> {
    let (threads, busy) = (setup.threads, setup.busy);
    let contestant =
        |&who: &Who| Contestant::new(who, move || sample(who, run(who, threads, busy, &frames)?));
    everybody.iter().map(contestant).collect()
}

/// Runs `f` with a fresh pool of this subject.
pub(super) fn with_pool<R: Send>(
    who: Who,
    threads: usize,
    f: impl FnOnce(&dyn Pieces) -> Result<R, String> + Send,
) -> Result<R, String> {
    match who {
        Who::Serial => f(&Pool(Serial)),
        Who::Paceline | Who::PacelineSpinning => f(&Pool(Framed(pools::paceline(threads)?))),
        Who::PacelineUnsteered => f(&Pool(Framed(pools::paceline_unsteered(threads)?))),
        Who::Rayon | Who::RayonSpinning => f(&Pool(pools::rayon(threads)?)),
        Who::RayonPinned => f(&Pool(pools::rayon_pinned(threads)?)),
        Who::RayonMember => pools::on_own_thread(|| f(&Pool(pools::rayon_member(threads)?))),
        Who::Chili => f(&Pool(Halves {
            pool: pools::chili(threads),
            cut_off: 1,
        })),
        Who::Floor => Err("runs no frames".into()),
    }
}

/// Why threads cannot be pinned here, if they cannot.
pub(super) fn cannot_pin() -> Option<&'static str> {
    let mask: CpuSet = Os.topology().allowed().clone();
    let refused = pools::on_own_thread(move || Os.set_mask(&mask).is_err());
    refused.then_some("this system pins no threads")
}

/// A pool whose frames are loops.
struct Pool<L>(L);

impl<L: Loops> Pieces for Pool<L> {
    fn sum(&self, pieces: u64, body: &(dyn Fn(u64) -> u64 + Sync)) -> u64 {
        self.0.sum(pieces, &|piece| body(piece))
    }
}

/// A job system whose loops are frames, as its documentation has it.
struct Framed(JobSystem<Os>);

impl Loops for Framed {
    fn sum(&self, items: u64, body: &(impl Fn(u64) -> u64 + Sync)) -> u64 {
        let _frame = self.0.frame("frame", Duration::from(PERIOD));
        self.0.sum(items, body)
    }
}

/// The frame of the rows `frame` and `load`: 4 ms of work in pieces of 20 µs, 60 times a second.
pub(super) fn four_millis(frames: usize, warm_up: usize) -> FrameLoop {
    FrameLoop {
        frames,
        warm_up,
        period: PERIOD,
        pieces: 200,
        piece: Nanos::from_micros(20),
        pause: Pause::Sleep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every subject gives right sums. Method: a few frames of pieces that take no time, on
    /// two and three threads.
    #[test]
    fn every_subject_runs_frames() {
        let frames = FrameLoop {
            piece: Nanos::ZERO,
            period: Nanos::from_micros(100),
            ..four_millis(3, 1)
        };
        for who in [
            Who::Serial,
            Who::Paceline,
            Who::PacelineUnsteered,
            Who::PacelineSpinning,
            Who::Rayon,
            Who::RayonMember,
            Who::RayonSpinning,
            Who::Chili,
        ] {
            for threads in [2, 3] {
                let frames = run(who, threads, Busy::NONE, &frames).unwrap();
                assert_eq!(frames.lasted.len(), 3, "{who:?}");
            }
        }
        assert!(run(Who::Floor, 2, Busy::NONE, &frames).is_err());
    }
}
