//! Goal: a quiet job wakes no thread when it is scheduled, and is not forgotten: a flush, another job of the
//! same thread, or the end of the thread announces it, and so do a flush or a timed wait of another thread. A
//! worker that spins takes it at once.
//!
//! Method: on simulated threads under random orders of steps, where a job that is forgotten is a deadlock: a
//! thread outside of the job system waits for what the job does, and calls nothing.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use event::Nanos;
use paceline::{Builder, JobId, JobSystem, WaitPolicy};
use platform::{Parker, Platform, Thread, ThreadSpec};
use sim::{Sim, SimConfig};

use crate::support::each_seed;

/// What the thread does after the quiet job.
#[derive(Clone, Copy, Debug)]
enum Then {
    Flushes,
    SchedulesAnother,
    Waits,
    Ends,
}

#[test]
fn a_quiet_job_is_not_forgotten() {
    each_seed("quiet::a_quiet_job_is_not_forgotten", 400, |seed| {
        let ways = [
            Then::Flushes,
            Then::SchedulesAnother,
            Then::Waits,
            Then::Ends,
        ];
        let then = ways[seed as usize % ways.len()];
        let report = Sim::run(SimConfig::new(seed), move |sim| {
            let workers = 1 + seed as usize / 4 % 2;
            let builder = Builder::with_platform(sim.clone()).workers(workers);
            let js = Arc::new(builder.build().unwrap());
            let bell = Arc::new(sim.parker());
            let (theirs, rope) = (js.clone(), bell.clone());
            let body = Box::new(move || {
                let job = theirs.job("quiet").quiet();
                let job = job.schedule(move |_| _ = rope.unpark());
                match then {
                    Then::Flushes => theirs.flush(),
                    Then::SchedulesAnother => _ = theirs.schedule(|_| ()),
                    Then::Waits => theirs.wait(job),
                    Then::Ends => {}
                }
            });
            let thread = sim.spawn(ThreadSpec::default(), body);
            bell.park(Nanos::MAX);
            thread
                .expect("there is room")
                .join()
                .expect("it does not panic");
        });
        report.expect_finished();
    });
}

/// What another thread does about the quiet job.
#[derive(Clone, Copy, Debug)]
enum Other {
    Flushes,
    WaitsForAWhile,
    /// Nothing: the worker spins.
    Nothing,
}

/// A quiet job of one thread, whose other thread does this meanwhile. Whether it ran while the first thread
/// was still there.
fn meanwhile(sim: &Sim, js: &Arc<JobSystem<Sim>>, other: Other) -> bool {
    let has_run = Arc::new(AtomicBool::new(false));
    let (scheduled, done) = (Arc::new(sim.parker()), Arc::new(sim.parker()));
    let (theirs, rope, end) = (js.clone(), scheduled.clone(), done.clone());
    let (id, ran) = (Arc::<OnceLock<JobId>>::default(), has_run.clone());
    let told = id.clone();
    let body = Box::new(move || {
        let job = theirs.job("quiet").quiet();
        let job = job.schedule(move |_| ran.store(true, Relaxed));
        told.set(job).expect("it is set once");
        rope.unpark();
        end.park(Nanos::MAX);
    });
    let thread = sim
        .spawn(ThreadSpec::default(), body)
        .expect("there is room");
    scheduled.park(Nanos::MAX);
    match other {
        Other::Flushes => js.flush(),
        Other::WaitsForAWhile => {
            let job = *id.get().expect("it is scheduled");
            assert!(js.wait_timeout(job, Duration::from_secs(1)).unwrap());
        }
        Other::Nothing => {}
    }
    sim.sleep_until(sim.time() + Nanos::from_secs(2));
    let has_run = has_run.load(Relaxed);
    done.unpark();
    thread.join().expect("it does not panic");
    has_run
}

/// Goal: see above. Method: the thread with the quiet job stays, and says nothing; a worker that sleeps, and
/// one that spins. As a control, where the worker sleeps and no thread does anything the job does not run.
#[test]
fn other_threads_make_a_quiet_job_run() {
    each_seed("quiet::other_threads_make_a_quiet_job_run", 100, |seed| {
        let ways = [
            (WaitPolicy::Passive, Other::Flushes, true),
            (WaitPolicy::Passive, Other::WaitsForAWhile, true),
            (WaitPolicy::Active, Other::Nothing, true),
            (WaitPolicy::Passive, Other::Nothing, false),
        ];
        let (policy, other, is_to_run) = ways[seed as usize % ways.len()];
        let report = Sim::run(SimConfig::new(seed), move |sim| {
            let builder = Builder::with_platform(sim.clone()).workers(1);
            let js = Arc::new(builder.wait_policy(policy).build().unwrap());
            sim.sleep_until(Nanos::from_millis(100));
            let has_run = meanwhile(&sim, &js, other);
            assert_eq!(has_run, is_to_run, "{policy:?}, {other:?}");
        });
        report.expect_finished();
    });
}
