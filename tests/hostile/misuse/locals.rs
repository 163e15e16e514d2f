//! Thread-locals whose destructors use the job system, after its own thread-local has gone.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use paceline::{Event, JobSystem, NewJob};
use platform::Os;

use super::{Trial, Verdict, check, fine};
use crate::watchdog;

thread_local! {
    /// Registered before the thread's first call, so it goes after what the job system keeps there.
    static LATE: RefCell<Option<(Event, Arc<JobSystem>)>> = const { RefCell::new(None) };
}

/// Threads that end so cost no seats: far more of them than allowed at a time can come one after the other.
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

/// Schedules its job when the thread ends.
struct Schedules(Option<NewJob<'static, Os>>);

impl Drop for Schedules {
    fn drop(&mut self) {
        if let Some(job) = self.0.take() {
            job.schedule(|_| _ = RAN.fetch_add(1, Ordering::SeqCst));
        }
    }
}

thread_local! {
    static SCHEDULES: RefCell<Option<Schedules>> = const { RefCell::new(None) };
}

/// The description of a job outlives its thread's seat, while other threads take seats.
pub(super) fn new_job(trial: &Trial) -> Verdict {
    const THREADS: u64 = 20;
    let js = FOR_EVER.get_or_init(|| {
        trial
            .builder()
            .build()
            .unwrap_or_else(|error| panic!("{error}"))
    });
    let before = RAN.load(Ordering::SeqCst);
    let busy = |_| {
        thread::spawn(|| {
            for _ in 0..2_000 {
                js.schedule(|_| ());
                js.poll();
                watchdog::progress();
            }
        })
    };
    let busy: Vec<_> = (0..2).map(busy).collect();
    for _ in 0..THREADS {
        let thread = thread::spawn(|| {
            SCHEDULES.with(|place| {
                js.enter(|_| ());
                *place.borrow_mut() = Some(Schedules(Some(js.job("late"))));
            });
        });
        check(
            thread.join().is_ok(),
            "a thread-local's destructor panicked",
        )?;
    }
    for thread in busy {
        check(thread.join().is_ok(), "a thread that schedules panicked")?;
    }
    while RAN.load(Ordering::SeqCst) < before + THREADS {
        if !js.poll() {
            thread::sleep(std::time::Duration::from_micros(100));
        }
    }
    Ok(())
}
