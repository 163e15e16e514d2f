//! Waits that ask for a lot: for a million jobs, in all workers at once, without workers, nested without end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use paceline::{Context, JobId, WaitError, WaitPolicy};
use platform::Os;

use super::{Trial, Verdict, check, fine, until};
use crate::session::said;
use crate::watchdog;

/// More ancestors than one search visits: behind each other, and beside each other.
pub(super) fn many_ancestors(trial: &Trial) -> Verdict {
    const JOBS: usize = 100_000;
    let js = trial.system();
    let gate = js.event("gate");
    let mut last = gate.id();
    for _ in 0..JOBS {
        last = js
            .job("link")
            .after(last)
            .schedule(|_| watchdog::progress());
    }
    gate.complete();
    fine("wait for a long chain", js.try_wait(last))?;
    let job = |_| js.schedule(|_| watchdog::progress());
    let jobs: Vec<_> = (0..JOBS).map(job).collect();
    fine("wait for a combination", js.try_wait(js.combine(&jobs)))
}

/// More jobs wait for an event than there are workers, and the job that completes it comes after them.
pub(super) fn many_waits(trial: &Trial) -> Verdict {
    if trial.workers() == 0 {
        return Ok(());
    }
    let js = trial.system();
    let event = js.event("loaded");
    let id = event.id();
    let wait = |_| {
        let theirs = Arc::clone(&js);
        js.schedule(move |_| _ = theirs.try_wait(id))
    };
    let jobs: Vec<_> = (0..trial.workers() + 80).map(wait).collect();
    js.schedule(move |_| event.complete());
    js.flush();
    // Without helping.
    while !jobs.iter().all(|&job| js.is_done(job)) {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Without workers a wait for an event runs the job that completes it.
pub(super) fn event_without_workers(trial: &Trial) -> Verdict {
    let js = trial.build(trial.builder().workers(0));
    let event = js.event("loaded");
    let id = event.id();
    js.schedule(move |_| event.complete());
    fine("wait", js.try_wait(id))
}

/// A wait with a deadline starts no body: it could not end it in time.
pub(super) fn deadline_runs_nothing(trial: &Trial) -> Verdict {
    if trial.workers() == 0 {
        return Ok(());
    }
    let js = trial.system();
    let (go, busy) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let holds: Vec<_> = (0..trial.workers())
        .map(|_| {
            let (go, busy) = (Arc::clone(&go), Arc::clone(&busy));
            js.schedule(move |_| {
                busy.fetch_add(1, Ordering::SeqCst);
                until(&go);
            })
        })
        .collect();
    js.flush();
    while busy.load(Ordering::SeqCst) < trial.workers() as u64 {
        thread::sleep(Duration::from_micros(100));
    }
    let waiter = thread::current().id();
    let job = js
        .job("long")
        .run(move |_| thread::current().id() == waiter);
    let moment = Duration::from_millis(1);
    let in_time = js.wait_timeout(job.id(), moment);
    go.store(true, Ordering::SeqCst);
    for hold in holds {
        fine("wait", js.try_wait(hold))?;
    }
    if fine("a wait of a millisecond", in_time)? {
        Err("a wait of a millisecond ran a body, which may take for ever".into())
    } else {
        Ok(())
    }
}

/// All workers poll, each in a loop of short waits, for a job that another thread has to run.
pub(super) fn polling_workers(trial: &Trial) -> Verdict {
    if trial.workers() == 0 {
        return Ok(());
    }
    let js = trial.system();
    let poll = |_| {
        let theirs = Arc::clone(&js);
        js.schedule(move |cx| {
            let target = cx.schedule(|_| ());
            let moment = Duration::from_micros(20);
            while let Ok(false) = theirs.wait_timeout(target, moment) {}
        })
    };
    let jobs: Vec<_> = (0..trial.workers()).map(poll).collect();
    js.flush();
    // Without helping.
    while !jobs.iter().all(|&job| js.is_done(job)) {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Waits nested without end are refused in words before the stack ends.
pub(super) fn deep(trial: &Trial) -> Verdict {
    const LEVELS: u64 = 20_000;
    let js = trial.system();
    let reached = Arc::new(AtomicU64::new(0));
    let theirs = Arc::clone(&reached);
    let job = js.job("deep").run(move |cx| nest(cx, LEVELS, &theirs));
    match job.try_wait() {
        Ok(()) => {
            let reached = reached.load(Ordering::Relaxed);
            check(reached == LEVELS, format!("only {reached} levels were run"))
        }
        Err(WaitError::Panicked {
            message, payload, ..
        }) => {
            let message = payload.map_or(message.to_string(), |payload| said(&*payload));
            check(
                message.contains("stack") && message.lines().count() == 1,
                format!("a wait that is nested too deep said: {message}"),
            )
        }
        Err(error) => Err(format!("a wait that is nested too deep said: {error}")),
    }
}

fn nest(cx: &Context<'_, Os>, levels: u64, reached: &AtomicU64) {
    watchdog::progress();
    if levels > 0 {
        reached.fetch_add(1, Ordering::Relaxed);
        cx.scope(|scope| scope.spawn(move |cx| nest(cx, levels - 1, reached)));
    }
}

/// More jobs than this before one that is ready are starvation.
const MANY: u64 = 3_000_000;

/// Jobs that make jobs keep all workers busy. A job of a scope that an outside thread opened still has its
/// turn.
pub(super) fn starved_scope(trial: &Trial) -> Verdict {
    if trial.workers() == 0 {
        return Ok(());
    }
    let js = trial.system();
    let (stop, made) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    for _ in 0..2 * trial.workers() {
        let (stop, made) = (Arc::clone(&stop), Arc::clone(&made));
        js.schedule(move |cx| endless(cx, stop, made));
    }
    js.flush();
    while made.load(Ordering::Relaxed) < 1_000 {
        thread::sleep(Duration::from_micros(100));
    }
    let has_run = AtomicBool::new(false);
    let before = made.load(Ordering::Relaxed);
    let waited = js.scope(|scope| {
        scope.spawn(|_| has_run.store(true, Ordering::SeqCst));
        js.flush();
        // The scope itself would help.
        loop {
            let others = made.load(Ordering::Relaxed) - before;
            if has_run.load(Ordering::SeqCst) || others > MANY {
                return others;
            }
            thread::sleep(Duration::from_micros(100));
        }
    });
    stop.store(true, Ordering::SeqCst);
    check(
        waited <= MANY,
        format!("a job of an outside thread's scope was not run while {MANY} others were"),
    )
}

fn endless(cx: &Context<'_, Os>, stop: Arc<AtomicBool>, made: Arc<AtomicU64>) {
    watchdog::progress();
    made.fetch_add(1, Ordering::Relaxed);
    if !stop.load(Ordering::Relaxed) {
        cx.schedule(move |cx| endless(cx, stop, made));
    }
}

/// A job that schedules the job it waits for, and then itself until that was run.
pub(super) fn starved_job(trial: &Trial) -> Verdict {
    if trial.workers() == 0 {
        return Ok(());
    }
    let js = trial.system();
    let (flag, turns) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let (theirs, count) = (Arc::clone(&flag), Arc::clone(&turns));
    js.schedule(move |cx| {
        let sets = Arc::clone(&theirs);
        cx.schedule(move |_| sets.store(true, Ordering::SeqCst));
        again(cx, theirs, count);
    });
    js.flush();
    while !flag.load(Ordering::SeqCst) && turns.load(Ordering::Relaxed) < MANY {
        thread::sleep(Duration::from_micros(100));
    }
    let turns = turns.load(Ordering::Relaxed);
    check(
        turns < MANY,
        format!("a job that is ready was not run while another one was run {MANY} times"),
    )
}

fn again(cx: &Context<'_, Os>, flag: Arc<AtomicBool>, turns: Arc<AtomicU64>) {
    watchdog::progress();
    let turn = turns.fetch_add(1, Ordering::Relaxed);
    if turn < MANY && !flag.load(Ordering::SeqCst) {
        cx.schedule(move |cx| again(cx, flag, turns));
    }
}

/// More waits inside each other, in one thread, than there can be threads. An event holds what each waits
/// for, and opens when the thread rests: it is told, however deep it is. The only worker is busy all the
/// time; without workers the thread would look again by itself after a while.
pub(super) fn nested(trial: &Trial) -> Verdict {
    const LEVELS: usize = 4_200;
    // A thread that spins would not say when it rests.
    let builder = trial.builder().wait_policy(WaitPolicy::Passive);
    let js = trial.build(builder.workers(1).max_spares(0));
    let [is_busy, is_over] = [false; 2].map(|flag| Arc::new(AtomicBool::new(flag)));
    let (begins, ends) = (Arc::clone(&is_busy), Arc::clone(&is_over));
    let busy = js.job("busy").schedule(move |_| {
        begins.store(true, Ordering::SeqCst);
        while !ends.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    });
    js.flush();
    until(&is_busy);
    let (begun, jobs) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(OnceLock::<Vec<JobId>>::new()),
    );
    let level = |level: usize| {
        let gate = js.event("gate");
        let (theirs, begins, next) = (Arc::clone(&js), Arc::clone(&begun), Arc::clone(&jobs));
        let job = js.job("level").after(gate.id()).schedule(move |_| {
            begins.fetch_add(1, Ordering::SeqCst);
            let next = next.get().and_then(|jobs| jobs.get(level + 1));
            next.map_or(Ok(()), |&job| theirs.try_wait(job))
                .unwrap_or_else(|error| panic!("{error}"));
        });
        (gate, job)
    };
    let (gates, ids): (Vec<_>, Vec<_>) = (0..LEVELS).map(level).unzip();
    let first = ids[0];
    _ = jobs.set(ids);
    let theirs = Arc::clone(&js);
    let mut parked = js.stats().parks;
    // Enough for all of them.
    let waiter = thread::Builder::new().stack_size(1 << 30);
    let waiter = waiter.spawn(move || theirs.try_wait(first));
    let waiter = fine("a thread with a large stack", waiter)?;
    for (level, gate) in gates.into_iter().enumerate() {
        while js.stats().parks <= parked && !waiter.is_finished() {
            thread::yield_now();
        }
        parked = js.stats().parks;
        gate.complete();
        while begun.load(Ordering::SeqCst) <= level as u64 && !waiter.is_finished() {
            thread::yield_now();
        }
        watchdog::progress();
    }
    is_over.store(true, Ordering::SeqCst);
    let waited = waiter.join().map_err(|_| "a wait panicked")?;
    fine("the outermost wait", waited)?;
    fine("the busy job", js.try_wait(busy))
}
