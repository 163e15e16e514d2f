//! `submit`: one job to a pool that sleeps, by a thread that computes on.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use console::Failure;
use event::Nanos;
use platform::{Os, Platform};
use workload::busy::Busy;

use crate::case::Case;
use crate::pools;
use crate::row::Row;
use crate::session::{Contestant, Sample, Samples, Setup, interleave};
use crate::sleeper::Sleeper;
use crate::target::{Bound, Target};
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "submit",
    title: "one job to sleeping workers, by a thread that computes on",
    means: "A thread sleeps for 2 ms (and so do all workers), submits one job, and computes for 1 ms. \
            Two things are measured: how long submitting kept the caller, and how long after its \
            beginning the job started. The floor, in the same rounds: one futex call that wakes a \
            parked plain thread. *quiet* wakes no worker: the job starts when one looks next, or at the \
            next flush; here the flush is after the computation. All pools live side by side, asleep. \
            oneTBB's is `task_arena::enqueue`; there the thread that submits is one of its own process, in \
            the same rounds.",
    measure,
};

/// The caller's sleep before each submission, longer than the spinning of any subject.
const SLEEP: Duration = Duration::from_millis(2);
/// The caller's computation afterwards.
const COMPUTE: Nanos = Nanos::from_millis(1);
/// A job that has not started after this time is lost.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// The bounds: times the floor for the caller and for the start, and nanoseconds for a quiet caller.
const CALLER_MOST: f64 = 1.3;
const START_MOST: f64 = 1.2;
const QUIET_MOST: f64 = 100.0;

/// The time at which the submitted job started; 0: not yet.
type Stamp = Arc<AtomicU64>;

fn set(stamp: &AtomicU64) {
    // Release, partner: the Acquire load in `sample_with`.
    stamp.store(Os.now().0, Ordering::Release);
}

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    // The thread becomes a member of a rayon pool, for the rest of its life.
    let samples = pools::on_own_thread(|| measure_here(setup))?;
    let part = |part: usize| {
        // When a quiet job starts is the program's choice.
        let is_shown = move |samples: &&Samples| part == 0 || samples.who != Who::PacelineQuiet;
        let samples = samples.iter().filter(is_shown);
        samples.map(move |samples: &Samples| (samples.who, samples.of[part].clone()))
    };
    let caller = Case::new(ROW.name, "caller", "ns", part(0));
    let start = Case::new(ROW.name, "start", "ns", part(1));
    let [caller, start] = [caller, start].map(|case| {
        if setup.peers {
            case.with_cannot(Who::Chili, "joins only")
        } else {
            case
        }
    });
    let to_floor = |case: &Case, at_most| {
        let floor = case.median(Who::Floor);
        case.ratio(setup, "one futex call", floor, at_most)
    };
    let caller = caller.with_target(|case| to_floor(case, CALLER_MOST));
    let caller = caller.with_target(|case| {
        let quiet = case.median(Who::PacelineQuiet);
        Target::new(setup, "quiet", Bound::AtMost(QUIET_MOST), quiet).in_unit("ns")
    });
    let start = start.with_target(|case| to_floor(case, START_MOST));
    let start = start.with_target(|case| case.to_best_peer(setup, 1.0));
    Ok(vec![caller, start])
}

fn measure_here(setup: &mut Setup) -> Result<Vec<Samples>, Failure> {
    let (threads, busy, rounds) = (setup.threads, setup.busy, setup.size(300, 3));
    let stamp: Stamp = Arc::default();
    let woken = Arc::clone(&stamp);
    let floor = Sleeper::start(move || set(&woken)).map_err(Failure::Failed)?;
    let js = pools::paceline(threads).map_err(Failure::Failed)?;
    let pools = if setup.peers {
        vec![
            (Who::Rayon, pools::rayon(threads).map_err(Failure::Failed)?),
            (
                Who::RayonMember,
                pools::rayon_member(threads).map_err(Failure::Failed)?,
            ),
        ]
    } else {
        Vec::new()
    };
    let bevy = setup.peers.then(|| pools::bevy(threads));
    let paceline = || {
        let job = Arc::clone(&stamp);
        sample(&stamp, busy, || {
            js.schedule(move |_| set(&job));
            js.flush();
        })
    };
    let quiet = || {
        let job = Arc::clone(&stamp);
        let submit = || _ = js.job("quiet").quiet().schedule(move |_| set(&job));
        sample_with(&stamp, busy, submit, || js.flush())
    };
    let mut subjects = vec![
        Contestant::new(Who::Floor, || sample(&stamp, busy, || floor.wake())),
        Contestant::new(Who::Paceline, paceline),
        Contestant::new(Who::PacelineQuiet, quiet),
    ];
    for (who, pool) in &pools {
        let stamp = &stamp;
        subjects.push(Contestant::new(*who, move || {
            let job = Arc::clone(stamp);
            sample(stamp, busy, || pool.spawn(move || set(&job)))
        }));
    }
    if let Some(pool) = &bevy {
        let stamp = &stamp;
        subjects.push(Contestant::new(Who::Bevy, move || {
            let job = Arc::clone(stamp);
            let submit = || pool.spawn(async move { set(&job) }).detach();
            sample(stamp, busy, submit)
        }));
    }
    if let Some(tbb) = &setup.tbb {
        let (pool, steps) = (
            tbb.open(threads).map_err(Failure::Failed)?,
            busy.steps(COMPUTE),
        );
        subjects.push(Contestant::new(Who::Tbb, move || {
            let [caller, start] = pool.submit(SLEEP, steps, PATIENCE)?;
            Ok(vec![caller.0 as f64, start.0 as f64])
        }));
    }
    interleave(setup, ROW.name, rounds, subjects)
}

fn sample(stamp: &AtomicU64, busy: Busy, submit: impl FnOnce()) -> Sample {
    sample_with(stamp, busy, submit, || ())
}

/// The same with a call after the computation.
fn sample_with(
    stamp: &AtomicU64,
    busy: Busy,
    submit: impl FnOnce(),
    after: impl FnOnce(),
) -> Sample {
    stamp.store(0, Ordering::Relaxed);
    thread::sleep(SLEEP);
    let begin = Os.now();
    submit();
    let caller = Os.now() - begin;
    busy.spin_for(COMPUTE, black_box(1));
    after();
    loop {
        // Acquire, partner: the Release store in `set`, the job's last write to its stamp before the next
        // round.
        let started = Nanos(stamp.load(Ordering::Acquire));
        if started > Nanos::ZERO {
            return Ok(vec![caller.0 as f64, (started - begin).0 as f64]);
        }
        if Os.now() - begin > PATIENCE {
            return Err(format!("the job did not start within {PATIENCE}"));
        }
        thread::sleep(Duration::from_micros(50));
    }
}
