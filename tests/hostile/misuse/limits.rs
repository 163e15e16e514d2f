//! Limits reached: jobs, threads, workers, items, memory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use paceline::{Builder, Grain, ScheduleError, WORKERS_MAX, WaitError};

use super::{Trial, Verdict, check, fine, refused};
use crate::{memory, watchdog};

/// As many jobs as allowed are accepted, then there is an error, and room again when some are over.
pub(super) fn max_jobs(trial: &Trial) -> Verdict {
    const JOBS: usize = 100;
    let js = trial.build(trial.builder().max_jobs(JOBS as u32));
    let gate = js.event("gate");
    let mut jobs = Vec::new();
    let refusal = loop {
        match js.job("held").after(gate.id()).try_schedule(|_| ()) {
            Ok(id) => jobs.push(id),
            Err(error) => break error,
        }
        // Each thread that has used the job system may keep some free slots at hand.
        let most = JOBS + 62 * (trial.workers() + 2);
        check(
            jobs.len() <= most,
            format!("more than {most} jobs are accepted, where {JOBS} are allowed"),
        )?;
    };
    check(
        jobs.len() + 1 >= JOBS,
        format!("{} jobs were accepted of {JOBS}", jobs.len()),
    )?;
    check(
        matches!(refusal, ScheduleError::Full { .. }),
        format!("one job too many said: {refusal}"),
    )?;
    refused(
        "one job too many",
        Err::<(), _>(refusal),
        &["100 jobs", "max_jobs"],
    )?;
    gate.complete();
    for job in jobs {
        fine("wait", js.try_wait(job))?;
    }
    fine("schedule again", js.job("again").try_schedule(|_| ())).map(|_| ())
}

/// One thread too many gets an error. When another one has ended there is room.
pub(super) fn max_threads(trial: &Trial) -> Verdict {
    const THREADS: usize = 3;
    let js = trial.build(trial.builder().max_threads(THREADS));
    let (entered, leave) = (
        Arc::new(Barrier::new(THREADS + 1)),
        Arc::new(Barrier::new(THREADS + 1)),
    );
    let slots: Vec<_> = (0..THREADS)
        .map(|_| {
            let (js, entered, leave) = (Arc::clone(&js), Arc::clone(&entered), Arc::clone(&leave));
            thread::spawn(move || {
                js.enter(|_| ());
                drop(js);
                entered.wait();
                leave.wait();
            })
        })
        .collect();
    entered.wait();
    let told = js.job("x").try_schedule(|_| ());
    leave.wait();
    for slot in slots {
        check(slot.join().is_ok(), "a thread with a slot panicked")?;
    }
    refused(
        "one thread too many",
        told,
        &["3 outside threads", "max_threads"],
    )?;
    fine(
        "schedule when they are gone",
        js.job("x").try_schedule(|_| ()),
    )
    .map(|_| ())
}

/// An event is completed by a thread that finds all thread slots taken.
pub(super) fn complete_without_slot(trial: &Trial) -> Verdict {
    const THREADS: usize = 2;
    let js = trial.build(trial.builder().max_threads(THREADS));
    let maker = Arc::clone(&js);
    let event = thread::spawn(move || maker.event("loaded")).join();
    let event = event.map_err(|_| "an event cannot be made")?;
    let id = event.id();
    let entered = Arc::new(Barrier::new(THREADS + 1));
    let waiters: Vec<_> = (0..THREADS)
        .map(|_| {
            let (js, entered) = (Arc::clone(&js), Arc::clone(&entered));
            thread::spawn(move || {
                js.enter(|_| ());
                entered.wait();
                js.try_wait(id)
            })
        })
        .collect();
    entered.wait();
    event.complete();
    for waiter in waiters {
        let waited = waiter.join().map_err(|_| "a wait panicked")?;
        fine("wait", waited)?;
    }
    Ok(())
}

/// The job system is dropped by a thread that finds all thread slots taken.
pub(super) fn drop_without_slot(trial: &Trial) -> Verdict {
    let js = trial.builder().max_threads(1).build();
    let js = fine("build", js)?;
    let never = js.event("never");
    let (ran, dropped) = (Arc::new(AtomicBool::new(false)), Arc::new(Flag::default()));
    let token = Raised(Arc::clone(&dropped));
    let held = js.job("held").after(never.id()).run(move |_| drop(token));
    let theirs = Arc::clone(&ran);
    js.schedule(move |_| theirs.store(true, Ordering::SeqCst));
    let dropper = thread::spawn(move || drop(js));
    check(
        dropper.join().is_ok(),
        "the drop of the job system panicked",
    )?;
    check(
        ran.load(Ordering::SeqCst),
        "a job that was ready was not run",
    )?;
    check(
        dropped.0.load(Ordering::SeqCst),
        "a body that can never run was not dropped",
    )?;
    let told = held.try_wait();
    never.complete();
    match told {
        Err(WaitError::ShutDown) => Ok(()),
        Err(error) => Err(format!("the handle said: {error}")),
        Ok(()) => Err("the handle gave a result of a job that never ran".into()),
    }
}

#[derive(Default)]
struct Flag(AtomicBool);

/// Raises the flag when it is dropped.
struct Raised(Arc<Flag>);

impl Drop for Raised {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::SeqCst);
    }
}

/// Settings out of range are refused with the range.
pub(super) fn settings(_: &Trial) -> Verdict {
    let told = |builder: Builder| builder.build().map(drop);
    for (builder, words) in [
        (
            Builder::new().workers(WORKERS_MAX + 1),
            "workers must be between 0 and 1024",
        ),
        (Builder::new().max_jobs(0), "max_jobs must be between"),
        (Builder::new().max_threads(0), "max_threads must be between"),
        (Builder::new().queue_capacity(3), "queue_capacity"),
    ] {
        refused("build", told(builder), &[words, "not "])?;
    }
    Ok(())
}

/// Workers can be as many as at the beginning could be asked for, and not more.
pub(super) fn resize(trial: &Trial) -> Verdict {
    let js = trial.system();
    let words = &["workers must be between", "not 1025"];
    refused("resize", js.resize(WORKERS_MAX + 1), words)?;
    let more = trial.workers() + 40;
    fine(&format!("resize({more})"), js.resize(more))?;
    fine("resize(0)", js.resize(0))?;
    let job = js.schedule(|_| ());
    fine("wait", js.try_wait(job))
}

/// A range with more items than can be counted is refused.
pub(super) fn long_range(trial: &Trial) -> Verdict {
    let js = trial.system();
    let range = js
        .job("range")
        .try_schedule_for(0..usize::MAX, Grain::Auto, |_, _| ());
    refused("schedule_for", range, &["too long"])
}

/// Dropping an event is how requests are cancelled: the memory of it has a bound.
pub(super) fn many_failures(trial: &Trial) -> Verdict {
    const EVENTS: usize = 300_000;
    let js = trial.system();
    let cancel = || {
        let event = js.event("request");
        let job = js.job("answer").after(event.id()).schedule(|_| ());
        drop(event);
        watchdog::progress();
        job
    };
    (0..EVENTS / 10).for_each(|_| _ = cancel());
    let early = memory::resident();
    (0..EVENTS).for_each(|_| _ = cancel());
    let late = memory::resident();
    let told = js.try_wait(cancel());
    refused("wait for the last one", told, &["was cancelled"])?;
    let (Some(early), Some(late)) = (early, late) else {
        return Ok(());
    };
    let memory = memory::Memory { early, late };
    check(
        memory.is_flat(),
        format!("the resident set grows with {EVENTS} cancelled requests: {memory}"),
    )
}

/// A scope has far more jobs than its count has room for at once, and most of them end while it is open. It
/// does not end before the last one. (A build with debug assertions has a small count; without, no program
/// of a second fills it.)
pub(super) fn endless_scope(trial: &Trial) -> Verdict {
    const BATCHES: u64 = 20;
    const BATCH: u64 = 1_000;
    let js = trial.system();
    let ended = Arc::new(AtomicU64::new(0));
    js.scope(|scope| {
        for batch in 1..=BATCHES {
            for _ in 0..BATCH {
                let ends = Arc::clone(&ended);
                scope.spawn(move |_| _ = ends.fetch_add(1, Ordering::SeqCst));
            }
            watchdog::progress();
            js.flush();
            while ended.load(Ordering::SeqCst) < batch * BATCH {
                if !js.poll() {
                    thread::yield_now();
                }
            }
        }
        let ends = Arc::clone(&ended);
        scope.spawn(move |_| {
            thread::sleep(Duration::from_millis(5));
            ends.fetch_add(1, Ordering::SeqCst);
        });
    });
    let (ended, spawned) = (ended.load(Ordering::SeqCst), BATCHES * BATCH + 1);
    check(
        ended == spawned,
        format!("a scope of {spawned} jobs was left when {ended} had ended"),
    )
}

/// All workers wait inside jobs, and there are no more spares: the hook is told, once. When the awaited event
/// comes, everything goes on.
pub(super) fn stuck(trial: &Trial) -> Verdict {
    const SPARES: usize = 1;
    if trial.workers() == 0 {
        return Ok(());
    }
    let told: Arc<Mutex<Vec<paceline::Stuck>>> = Arc::default();
    let hears = Arc::clone(&told);
    let heard = || told.lock().map_or(0, |told| told.len());
    let builder = trial.builder().max_spares(SPARES);
    let js = trial.build(builder.on_stuck(move |stuck| {
        _ = hears.lock().map(|mut told| told.push(stuck.clone()));
    }));
    let event = js.event("loaded");
    let id = event.id();
    let all = trial.workers() + SPARES;
    let wait = |_| {
        let theirs = Arc::clone(&js);
        js.job("waits").run(move |_| theirs.try_wait(id))
    };
    let waits: Vec<_> = (0..all + 3).map(wait).collect();
    let ready = js.schedule(|_| ());
    js.flush();
    // Without helping, here and below.
    while heard() == 0 {
        thread::sleep(Duration::from_micros(100));
    }
    check(
        !js.is_done(ready),
        "a job was run, and no thread was free to run it",
    )?;
    event.complete();
    while !waits.iter().all(|wait| wait.is_done()) || !js.is_done(ready) {
        thread::sleep(Duration::from_micros(100));
    }
    for wait in waits {
        fine(
            "the wait in a job",
            fine("wait for the job", wait.try_wait())?,
        )?;
    }
    let told = told.lock().map_err(|_| "the hook panicked")?;
    check(
        told.len() == 1 && told[0].waiting == all,
        format!("the hook for {all} threads that wait was told {told:?}, not once of all of them"),
    )?;
    let stuck = Err::<(), _>(&told[0]);
    refused(
        "a job system that is stuck",
        stuck,
        &["wait inside jobs", "max_spares"],
    )
}
