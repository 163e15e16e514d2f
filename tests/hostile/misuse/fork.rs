//! The child of a fork uses the job system of its parent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use paceline::{Builder, Event, JobId, JobSystem, Role, ScheduleError, WaitError};

use super::{Trial, Verdict, check, fine};
use crate::watchdog;

/// Everything that the child calls is refused or does nothing, and a job system of its own works; the parent
/// loses nothing.
pub(super) fn fork(trial: &Trial) -> Verdict {
    let js = fine("build", trial.builder().build())?;
    let finished = js.schedule(|_| ());
    fine("wait", js.try_wait(finished))?;
    let event = js.event("of the parent");
    let held = js.job("held").after(event.id()).schedule(|_| ());
    let stop = AtomicBool::new(false);
    let status = thread::scope(|threads| {
        // Locks are taken all the time, also at the moment of the fork.
        threads.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                _ = (js.labels(), js.limits(), js.stats(), js.os_help());
            }
        });
        // SAFETY: the child calls what this case is about, and ends by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let verdict = in_the_child(&js, finished, held);
            // SAFETY: ends this process and runs nothing else.
            unsafe { libc::_exit(verdict) };
        }
        let status = wait_for(child);
        stop.store(true, Ordering::SeqCst);
        status
    });
    check(
        status == Some(0),
        match status {
            Some(number) => format!("check {number} failed in the child"),
            None => "the child was ended by a signal: it hangs".into(),
        },
    )?;
    in_the_parent(js, event, held)
}

fn in_the_parent(js: JobSystem, event: Event, held: JobId) -> Verdict {
    check(
        !js.is_done(held),
        "a job of the parent was run in the child",
    )?;
    event.complete();
    fine("wait in the parent", js.try_wait(held))?;
    let job = js.job("after the fork").run(|_| 42);
    check(
        fine("wait", job.try_wait())? == 42,
        "a result is another one",
    )
}

/// The exit code of the child; nothing if a signal ended it. (It has an alarm.)
fn wait_for(child: libc::pid_t) -> Option<i32> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is writable, `child` is ours.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if ended != 0 {
            return libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        }
        watchdog::progress();
        thread::sleep(Duration::from_millis(1));
    }
}

/// The number of the first check that fails, or 0. Nothing is printed: another thread may have held any lock
/// when this process was made.
fn in_the_child(js: &JobSystem, finished: JobId, held: JobId) -> i32 {
    // SAFETY: the default action ends the process, as it should if it hangs.
    unsafe { libc::alarm(20) };
    let refusals = [
        matches!(js.try_wait(finished), Err(WaitError::Forked)),
        matches!(js.try_wait(held), Err(WaitError::Forked)),
        js.job("x").try_schedule(|_| ()) == Err(ScheduleError::Forked),
        matches!(js.job("x").try_event(), Err(ScheduleError::Forked)),
    ];
    if let Some(at) = refusals.iter().position(|is_refused| !is_refused) {
        return at as i32 + 1;
    }
    // Code that has a lock in the parent.
    _ = (js.labels(), js.limits(), js.os_help());
    _ = js.resize(1);
    drop(js.adopt(Role::Main));
    let own = Builder::new().workers(1).build().map(Arc::new);
    match own {
        Ok(own) if own.job("own").run(|_| 42).wait() == 42 => 0,
        _ => 9,
    }
}
