//! Handles that are forgotten, dropped, or outlive their job system.

use std::mem::forget;
use std::time::Duration;

use paceline::{Role, WaitError};

use super::{Trial, Verdict, check, fine, refused};

/// Handles that are forgotten cost their slot, and nothing hangs because of them.
pub(super) fn forgotten(trial: &Trial) -> Verdict {
    let js = trial.system();
    forget(js.job("forgotten").run(|_| vec![1, 2, 3]));
    forget(js.job("never scheduled"));
    forget(js.frame("frame", Duration::from_millis(1)));
    forget(js.adopt(Role::Render));
    let never = js.event("never");
    let held = js.job("held").after(never.id()).run(|_| ());
    let id = held.id();
    forget(never);
    forget(held);
    check(!js.is_done(id), "a job that nothing released is over")?;
    let short = js.wait_timeout(id, Duration::from_micros(10));
    check(
        matches!(short, Ok(false)),
        format!("a wait for it said {short:?}"),
    )?;
    let job = js.job("another").run(|_| 42);
    check(
        fine("wait", job.try_wait())? == 42,
        "another job has another result",
    )
}

/// Dropping an event is an error for waits for it, with its name, and cancels the jobs after it.
pub(super) fn abandoned(trial: &Trial) -> Verdict {
    let js = trial.system();
    let event = js.event("promise");
    let id = event.id();
    let first = js.job("first").after(id).run(|_| ());
    let second = js.job("second").after(first.id()).schedule(|_| ());
    drop(event);
    let words = &["promise", "dropped without being completed"];
    refused("wait for the event", js.try_wait(id), words)?;
    let words = &["first", "was cancelled", "promise"];
    refused("wait for the job", first.try_wait(), words)?;
    refused(
        "wait for the last",
        js.try_wait(second),
        &["second", "promise"],
    )
}

/// Handles and events of a job system that is gone say so, or do nothing.
pub(super) fn outlived(trial: &Trial) -> Verdict {
    let js = fine("build", trial.builder().build())?;
    let never = js.event("never");
    let late = js.event("late");
    let held = js.job("held").after(never.id()).run(|_| ());
    let detached = js.job("detached").after(late.id()).run(|_| ());
    let done = js.job("done").run(|_| 7);
    drop(js);
    check(
        fine("wait", done.try_wait())? == 7,
        "a result is another one at the end",
    )?;
    check(
        held.is_done(),
        "a job that can never run is not over at the end",
    )?;
    match held.try_wait() {
        Err(error @ WaitError::ShutDown) => {
            refused("wait", Err::<(), _>(error), &["was shut down"])?;
        }
        other => return Err(format!("the handle said {other:?}")),
    }
    never.complete();
    drop(late);
    drop(detached);
    Ok(())
}
