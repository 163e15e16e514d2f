//! Thread-locals whose destructors use the job system, after its own thread-local has gone.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::Duration;

use paceline::{Event, JobSystem, NewJob};
use platform::Os;

use super::{Trial, Verdict, check, fine};
use crate::watchdog;

thread_local! {
    /// Registered before the thread's first call, so it goes after the job system's own thread-local.
    static LATE: RefCell<Option<(Event, Arc<JobSystem>)>> = const { RefCell::new(None) };
}

/// Threads that end so cost no thread slots: far more of them than allowed at a time can come one after the
/// other.
pub(super) fn late(trial: &Trial) -> Verdict {
    const THREADS: usize = 40;
    let js = trial.build(trial.builder().max_threads(8));
    for number in 0..THREADS {
        let theirs = Arc::clone(&js);
        let uses_it = move || {
            LATE.with(|place| {
                let event = theirs.job("late").try_event()?;
                *place.borrow_mut() = Some((event, Arc::clone(&theirs)));
                Ok(())
            })
        };
        let made: Result<(), paceline::ScheduleError> = thread::spawn(uses_it)
            .join()
            .map_err(|_| "a thread panicked")?;
        fine(
            &format!("thread {number}, when the ones before have ended"),
            made,
        )?;
        watchdog::progress();
    }
    Ok(())
}

/// A job system that lives as long as the process.
static FOR_EVER: OnceLock<JobSystem> = OnceLock::new();
static RAN: AtomicU64 = AtomicU64::new(0);

/// The thread's own thread slot is given back; another thread has it.
static LEFT: Barrier = Barrier::new(2);
static TAKEN: Barrier = Barrier::new(2);

/// Schedules its jobs when the thread ends.
#[derive(Default)]
struct Schedules(Vec<NewJob<'static, 'static, Os>>);

impl Drop for Schedules {
    fn drop(&mut self) {
        LEFT.wait();
        TAKEN.wait();
        for job in self.0.drain(..) {
            job.schedule(|_| _ = RAN.fetch_add(1, Ordering::SeqCst));
        }
    }
}

thread_local! {
    static SCHEDULES: RefCell<Schedules> = RefCell::default();
}

/// The description of a job outlives its thread's thread slot, which another thread has by then.
pub(super) fn new_job(trial: &Trial) -> Verdict {
    const THREADS: u64 = 20;
    const JOBS: u64 = 500;
    let builder = || trial.builder().build();
    let js = FOR_EVER.get_or_init(|| builder().unwrap_or_else(|error| panic!("{error}")));
    let before = RAN.load(Ordering::SeqCst);
    for _ in 0..THREADS {
        let leaves = thread::spawn(|| {
            SCHEDULES.with(|place| {
                js.enter(|_| ());
                let jobs = (0..JOBS).map(|_| js.job("late"));
                place.borrow_mut().0.extend(jobs);
            });
        });
        let takes = thread::spawn(|| {
            LEFT.wait();
            js.enter(|_| ());
            TAKEN.wait();
            for _ in 0..JOBS {
                js.schedule(|_| _ = RAN.fetch_add(1, Ordering::SeqCst));
            }
        });
        check(
            leaves.join().is_ok(),
            "a thread-local's destructor panicked",
        )?;
        check(takes.join().is_ok(), "a thread that schedules panicked")?;
        watchdog::progress();
    }
    while RAN.load(Ordering::SeqCst) < before + 2 * THREADS * JOBS {
        if !js.poll() {
            thread::sleep(Duration::from_micros(100));
        }
    }
    Ok(())
}
