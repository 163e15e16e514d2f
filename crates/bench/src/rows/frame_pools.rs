//! The subjects of the rows with frames: a pool for each, and one run of frames on it.

use std::time::Duration;

use console::help::set_caller_params;
use event::Nanos;
use paceline::{JobSystem, Role};
use platform::{CpuSet, Machine, Os, Platform, SchedParams};
use workload::busy::Busy;
use workload::pace::Pause;

use super::loops::{Chunks, Halves, Loops, Serial};
use crate::frame_loop::{FrameLoop, Frames, PERIOD, Piece, Pieces};
use crate::plain_threads::PlainThreads;
use crate::pools;
use crate::session::{Contestant, Sample, Setup};
use crate::tbb::{Paced, PacedWait, Tbb};
use crate::who::Who;

/// Serial, Paceline and, if they are wanted, the peers.
pub(super) fn judged(setup: &Setup) -> Vec<Who> {
    let mut all = vec![Who::Serial, Who::Paceline];
    if setup.peers {
        all.extend([Who::Rayon, Who::RayonMember, Who::Chili, Who::Bevy]);
    }
    all.extend(setup.tbb.is_some().then_some(Who::Tbb));
    all
}

/// The settings of all runs of a row.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) threads: usize,
    pub(super) busy: Busy,
    tbb: Option<Tbb>,
    /// The kernel's treatment of each subject's threads, the calling one included.
    help: Option<SchedParams>,
}

impl Common {
    pub(super) fn of(setup: &Setup) -> Common {
        Common {
            threads: setup.threads,
            busy: setup.busy,
            tbb: setup.tbb.clone(),
            help: None,
        }
    }

    /// For tests: work takes no time.
    #[cfg(test)]
    pub(super) fn plain(threads: usize) -> Common {
        Common {
            threads,
            busy: Busy::NONE,
            tbb: None,
            help: None,
        }
    }

    /// The runner of oneTBB, and its request for frames.
    pub(super) fn remote(&self, frames: &FrameLoop) -> Result<(&Tbb, Paced), String> {
        let tbb = self.tbb.as_ref().ok_or("has no runner")?;
        let wait = match frames.pause {
            Pause::Sleep => PacedWait::Sleep,
            Pause::Spin => PacedWait::Spin,
        };
        let paced = Paced {
            threads: self.threads,
            frames: frames.frames,
            warmup: frames.warm_up,
            period: frames.period,
            pieces: frames.pieces,
            steps: self.busy.steps(frames.piece),
            wait,
        };
        Ok((tbb, paced))
    }
}

/// One run of frames by a subject, on a fresh pool, without help or with it.
///
/// Paceline asks for help by itself. For the others the benchmark does, before the pool is made: threads
/// inherit it from the thread that starts them.
pub(super) fn run(who: Who, common: &Common, frames: &FrameLoop) -> Result<Frames, String> {
    match (&common.help, who) {
        (None, _) => run_with_params(who, common, frames),
        (Some(help), Who::Tbb) => {
            let tbb = common.tbb.as_ref().ok_or("has no runner")?;
            let before = tbb.treat(&help.clone().inherited())?;
            let ran = run_with_params(who, common, frames);
            tbb.treat(&before)?;
            ran
        }
        (Some(help), Who::Paceline) => pools::on_own_thread(|| {
            let js = pools::paceline_helped(common.threads, help)?;
            let pool = Pool(Framed(js));
            let _main = pool.0.0.adopt(Role::Main);
            match pool.0.0.os_help().iter().find(|help| !help.granted) {
                Some(refused) => Err(format!("{}: {}", refused.asked, refused.why)),
                None => frames.run(&pool, common.busy),
            }
        }),
        (Some(help), _) => pools::on_own_thread(|| {
            set_caller_params(&help.clone().inherited())?;
            run_with_params(who, common, frames)
        }),
    }
}

fn run_with_params(who: Who, common: &Common, frames: &FrameLoop) -> Result<Frames, String> {
    if who == Who::Tbb {
        let (tbb, paced) = common.remote(frames)?;
        let ran = tbb.frames(&paced)?;
        let nanos = |nanos: Nanos| nanos.0 as f64;
        let all = ran.frames.iter();
        return Ok(Frames {
            lasted: all.clone().map(|frame| nanos(frame.length)).collect(),
            since_due: all.map(|frame| nanos(frame.late + frame.length)).collect(),
            cpu: Some(nanos(ran.cpu) / frames.frames.max(1) as f64),
        });
    }
    let pause = match who {
        Who::PacelineSpinning | Who::RayonSpinning => Pause::Spin,
        _ => frames.pause,
    };
    let frames = FrameLoop { pause, ..*frames };
    with_pool(who, common.threads, |pool| frames.run(pool, common.busy))
}

/// A contestant for each of these subjects. A sample is one run of frames. The first sample does not count
/// (see `interleave`), so it has one frame only.
pub(super) fn contestants<'a>(
    setup: &Setup,
    subjects: &[Who],
    frames: FrameLoop,
    sample: impl Fn(Who, &Common, &FrameLoop) -> Sample + Copy + 'a,
) -> Vec<Contestant<'a>> {
    helped_contestants(setup, subjects, frames, None, sample)
}

/// The same, with the kernel's help.
pub(super) fn helped_contestants<'a>(
    setup: &Setup,
    subjects: &[Who],
    frames: FrameLoop,
    help: Option<SchedParams>,
    sample: impl Fn(Who, &Common, &FrameLoop) -> Sample + Copy + 'a,
) -> Vec<Contestant<'a>> {
    let common = Common {
        help,
        ..Common::of(setup)
    };
    let contestant = |&who: &Who| {
        let common = common.clone();
        let mut next = FrameLoop {
            frames: 1,
            ..frames
        };
        Contestant::new(who, move || {
            let now = std::mem::replace(&mut next, frames);
            sample(who, &common, &now)
        })
    };
    subjects.iter().map(contestant).collect()
}

/// Runs `f` with a fresh pool of this subject.
pub(super) fn with_pool<R: Send>(
    who: Who,
    threads: usize,
    f: impl FnOnce(&dyn Pieces) -> Result<R, String> + Send,
) -> Result<R, String> {
    match who {
        Who::Serial => f(&Pool(Serial)),
        Who::PlainThreads => f(&PlainThreads::start(threads)?),
        Who::Paceline => f(&Pool(Framed(pools::paceline(threads)?))),
        Who::PacelineIdempotent => f(&Idempotent(pools::paceline(threads)?)),
        Who::PacelineUnsteered | Who::PacelineSpinning => {
            f(&Pool(Framed(pools::paceline_unsteered(threads)?)))
        }
        Who::PacelineUnsliced => f(&Pool(Framed(pools::paceline_unsliced(threads)?))),
        Who::Rayon | Who::RayonSpinning => f(&Pool(pools::rayon(threads)?)),
        Who::RayonPinned => f(&Pool(pools::rayon_pinned(threads)?)),
        Who::RayonMember => pools::on_own_thread(|| f(&Pool(pools::rayon_member(threads)?))),
        Who::Chili => f(&Pool(Halves {
            pool: pools::chili(threads),
            cut_off: 1,
        })),
        Who::Bevy => f(&Pool(Chunks {
            pool: pools::bevy(threads),
            items: 1,
        })),
        Who::Tbb => Err("has no pool in this process".into()),
        Who::PacelineQuiet => Err("only submits".into()),
        Who::PacelineBuilt | Who::PacelineCritical | Who::PacelineQueue => {
            Err("only runs graphs".into())
        }
        Who::PacelineChecked => Err("only schedules".into()),
        Who::SerialBeside
        | Who::PacelineAlone
        | Who::PacelineHalf
        | Who::PacelineUnasked
        | Who::RayonTwoPools => Err("only runs beside long jobs".into()),
        Who::Floor => Err("runs no frames".into()),
    }
}

/// The reason why threads cannot be pinned here, if they cannot.
pub(super) fn cannot_pin() -> Option<&'static str> {
    let mask: CpuSet = Os.topology().allowed().clone();
    let refused = pools::on_own_thread(move || Os.set_mask(Os.thread_id(), &mask).is_err());
    refused.then_some("this system pins no threads")
}

/// A pool whose frames are loops.
pub(super) struct Pool<L>(pub(super) L);

impl<L: Loops> Pieces for Pool<L> {
    fn sum(&self, pieces: u64, piece: Piece) -> u64 {
        self.0.sum(pieces, &|number| piece.run(number))
    }
}

/// A job system in which each loop is a frame, as in its documentation.
pub(super) struct Framed(pub(super) JobSystem<Os>);

impl Loops for Framed {
    fn sum(&self, items: u64, body: &(impl Fn(u64) -> u64 + Sync)) -> u64 {
        let _frame = self.0.frame("frame", Duration::from(PERIOD));
        self.0.sum(items, body)
    }
}

/// A job system in which each frame is an idempotent job.
struct Idempotent(JobSystem<Os>);

impl Pieces for Idempotent {
    fn sum(&self, pieces: u64, piece: Piece) -> u64 {
        let frame = self.0.frame("frame", Duration::from(PERIOD));
        let job = frame.job("pieces").idempotent();
        let numbers = job.map(0..pieces as usize, move |number| piece.run(number as u64));
        numbers.wait().into_iter().sum()
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

    /// Goal: every subject gives right sums. Method: a few frames of pieces that take no time, on two and
    /// three threads.
    #[test]
    fn every_subject_runs_frames() {
        let frames = FrameLoop {
            piece: Nanos::ZERO,
            period: Nanos::from_micros(100),
            ..four_millis(3, 1)
        };
        for who in [
            Who::Serial,
            Who::PlainThreads,
            Who::Paceline,
            Who::PacelineIdempotent,
            Who::PacelineUnsteered,
            Who::PacelineSpinning,
            Who::PacelineUnsliced,
            Who::Rayon,
            Who::RayonMember,
            Who::RayonSpinning,
            Who::Chili,
            Who::Bevy,
        ] {
            for threads in [2, 3] {
                let frames = run(who, &Common::plain(threads), &frames).unwrap();
                assert_eq!(frames.lasted.len(), 3, "{who:?}");
            }
        }
        for who in [Who::Floor, Who::Tbb] {
            assert!(run(who, &Common::plain(2), &frames).is_err());
        }
    }
}
