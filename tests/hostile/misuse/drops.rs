//! Drops that panic where no body runs: the job ends as it would have, the jobs after it run, and the workers
//! live on.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use paceline::{Grain, JobId};

use super::{Bomb, System, Trial, Verdict, check, fail, fine, refused, until};

/// Ends the case: a job after it runs, workers run what nothing waits for, and the drop returns.
fn lives_on(js: System, next: JobId) -> Verdict {
    fine("wait for the next job", js.try_wait(next))?;
    let later = js.schedule(|_| ());
    js.flush();
    while !js.is_done(later) {
        // By a worker, if there is one.
        thread::sleep(Duration::from_micros(100));
    }
    let dropped = catch_unwind(AssertUnwindSafe(move || drop(js)));
    check(dropped.is_ok(), "the drop of the job system panicked")
}

/// A result that no handle takes.
pub(super) fn result(trial: &Trial) -> Verdict {
    let js = trial.system();
    let gate = js.event("gate");
    let unwanted = js.job("unwanted").after(gate.id()).run(|_| Bomb);
    let id = unwanted.id();
    let next = js.job("next").after(id).schedule(|_| ());
    drop(unwanted);
    gate.complete();
    fine("wait for the job", js.try_wait(id))?;
    lives_on(js, next)
}

/// The captures of a cancelled job.
pub(super) fn capture(trial: &Trial) -> Verdict {
    let js = trial.system();
    let gate = js.event("gate");
    let bad = js.job("bad").after(gate.id()).schedule(|_| fail());
    let bomb = Bomb;
    let cancelled = js.job("cancelled").after(bad).schedule(move |_| drop(bomb));
    let also = js.job("also").after(cancelled).schedule(|_| ());
    gate.complete();
    refused(
        "wait for the last",
        js.try_wait(also),
        &["was cancelled", "bad"],
    )?;
    refused(
        "wait for the one before",
        js.try_wait(cancelled),
        &["was cancelled"],
    )?;
    let next = js.schedule(|_| ());
    lives_on(js, next)
}

/// The closure of a range.
pub(super) fn range(trial: &Trial) -> Verdict {
    let js = trial.system();
    let bomb = Bomb;
    let range = js
        .job("range")
        .schedule_for(0..16, Grain::Items(1), move |_, _| {
            let _held = &bomb;
        });
    let next = js.job("next").after(range).schedule(|_| ());
    fine("wait for the range", js.try_wait(range))?;
    js.scope(|scope| scope.spawn(|_| ()));
    lives_on(js, next)
}

/// The payload of a scope's second panic. The scope is left only when all borrowers have ended.
pub(super) fn payload(trial: &Trial) -> Verdict {
    let js = trial.system();
    let (started, go, end) = (
        AtomicBool::new(false),
        AtomicBool::new(false),
        AtomicBool::new(false),
    );
    // Another thread opens the gate: the scope has to wait for it.
    thread::scope(|threads| {
        let raised = catch_unwind(AssertUnwindSafe(|| {
            js.scope(|scope| {
                if trial.workers() > 0 {
                    scope.spawn(|_| {
                        started.store(true, Ordering::SeqCst);
                        until(&go);
                        end.store(true, Ordering::SeqCst);
                    });
                    js.flush();
                    until(&started);
                    threads.spawn(|| {
                        thread::sleep(Duration::from_millis(5));
                        go.store(true, Ordering::SeqCst);
                    });
                }
                for _ in 0..2 {
                    scope.spawn(|_| resume_unwind(Box::new(Bomb)));
                }
            });
        }));
        let was_early = trial.workers() > 0 && !end.load(Ordering::SeqCst);
        // The panic's payload is a bomb, too.
        let has_raised = raised.is_err();
        std::mem::forget(raised);
        if was_early {
            until(&end);
        }
        check(
            !was_early,
            "a scope was left while one of its jobs borrowed from it",
        )?;
        check(has_raised, "a scope did not raise the panic of its jobs")
    })?;
    let next = js.schedule(|_| ());
    lives_on(js, next)
}

/// Bodies that are dropped with the job system.
pub(super) fn at_the_end(trial: &Trial) -> Verdict {
    let js = fine("build", trial.builder().build())?;
    let never = js.event("never");
    let (bomb, other) = (Bomb, Bomb);
    let held = js.job("held").after(never.id()).run(move |_| drop(bomb));
    js.job("held too")
        .after(held.id())
        .schedule(move |_| drop(other));
    let result = js.job("result").run(|_| Bomb);
    fine("wait", js.try_wait(result.id()))?;
    let detached = catch_unwind(AssertUnwindSafe(|| drop(result)));
    let dropped = catch_unwind(AssertUnwindSafe(move || drop(js)));
    check(dropped.is_ok(), "the drop of the job system panicked")?;
    check(
        held.is_done(),
        "a body that panicked when it was dropped is not over",
    )?;
    // A handle dropped by this thread drops its result here: its panic may come out.
    drop(detached);
    never.complete();
    Ok(())
}
