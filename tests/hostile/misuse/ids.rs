//! Ids in wrong hands: foreign, old, too late, in a circle, polled by all threads.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Barrier, OnceLock};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use paceline::{GraphError, JobId, WaitError};

use super::{Trial, Verdict, check, fine, panics, refused};
use crate::watchdog;

/// An id of another job system is refused everywhere.
pub(super) fn foreign(trial: &Trial) -> Verdict {
    const WORDS: &[&str] = &["belongs to another job system"];
    let (js, other) = (trial.system(), trial.system());
    let (own, id) = (js.schedule(|_| ()), other.schedule(|_| ()));
    refused("wait", js.try_wait(id), WORDS)?;
    let moment = Duration::from_micros(1);
    refused("wait_timeout", js.wait_timeout(id, moment), WORDS)?;
    refused(
        "schedule",
        js.job("x").after(id).try_schedule(|_| ()),
        WORDS,
    )?;
    refused("run", js.job("x").after(id).try_run(|_| ()), WORDS)?;
    refused(
        "combine",
        js.job("x").after_all([own, id]).try_combine(),
        WORDS,
    )?;
    refused("event", js.job("x").after(id).try_event(), WORDS)?;
    refused("add_dependency", js.add_dependency(own, id), WORDS)?;
    refused("add_dependency of it", js.add_dependency(id, own), WORDS)?;
    panics("is_done", || _ = js.is_done(id), WORDS)?;
    fine("its own", js.try_wait(own))?;
    fine("the other's", other.try_wait(id))
}

/// An id stays the name of a job that is over, however many jobs came after it.
pub(super) fn old(trial: &Trial) -> Verdict {
    let js = trial.build(trial.builder().max_jobs(64));
    let first = js.schedule(|_| ());
    fine("wait", js.try_wait(first))?;
    for _ in 0..1_000 {
        let last = js.job("later").after(first).schedule(|_| ());
        fine("wait", js.try_wait(last))?;
    }
    check(
        js.is_done(first),
        "a job that was over is not over any more",
    )?;
    fine("wait for it again", js.try_wait(first))
}

/// A job that has begun can wait for nothing more, and neither can one that is over.
pub(super) fn too_late(trial: &Trial) -> Verdict {
    let js = trial.system();
    let (gate, start) = (js.event("gate"), js.event("start"));
    let over = js.schedule(|_| ());
    fine("wait", js.try_wait(over))?;
    refused(
        "add_dependency",
        js.add_dependency(over, gate.id()),
        &["is already over", "event"],
    )?;
    let (id, never) = (Arc::<OnceLock<JobId>>::default(), gate.id());
    let its = Arc::clone(&id);
    let begun = js.job("begun").after(&start).run(move |cx| {
        let me = *its.get().expect("it is set before the start");
        cx.add_dependency(me, never)
    });
    id.set(begun.id()).expect("it is set once");
    start.complete();
    let said = fine("wait", begun.try_wait())?;
    refused(
        "add_dependency",
        said,
        &["'begun'", "has already started", "event"],
    )?;
    gate.complete();
    Ok(())
}

/// An edge that closes a cycle is refused, with the names along it.
pub(super) fn cycle(trial: &Trial) -> Verdict {
    let js = trial.system();
    let gate = js.event("gate");
    let first = js.job("first").after(gate.id()).schedule(|_| ());
    let last = js.job("last").after(first).schedule(|_| ());
    let closing = js.add_dependency(first, last);
    check(
        matches!(closing, Err(GraphError::Cycle { .. })),
        format!("no cycle was found: {closing:?}"),
    )?;
    refused("add_dependency", closing, &["first", "last", "cycle"])?;
    let itself = js.add_dependency(first, first);
    refused("add_dependency on itself", itself, &["first"])?;
    gate.complete();
    fine("wait", js.try_wait(last))
}

/// A job that waits for its own end is told so.
pub(super) fn waits_for_itself(trial: &Trial) -> Verdict {
    let js = trial.system();
    let gate = js.event("gate");
    let own: Arc<OnceLock<JobId>> = Arc::default();
    let (theirs, id) = (Arc::clone(&js), Arc::clone(&own));
    let job = js.job("selfish").after(gate.id()).run(move |_| {
        let id = *id.get().expect("known before the gate opens");
        theirs.try_wait(id).map_err(|error| error.to_string())
    });
    own.set(job.id()).expect("set once");
    gate.complete();
    let told = fine("wait", job.try_wait())?;
    refused("a wait for itself", told, &["can never end", "selfish"])
}

/// Two jobs that wait for each other: at least one of them is told, and both end.
pub(super) fn wait_for_each_other(trial: &Trial) -> Verdict {
    let js = trial.system();
    let gate = js.event("gate");
    let ids: [Arc<OnceLock<JobId>>; 2] = Default::default();
    let make = |name: &'static str, other: &Arc<OnceLock<JobId>>| {
        let (theirs, other) = (Arc::clone(&js), Arc::clone(other));
        js.job(name).after(gate.id()).run(move |_| {
            let other = *other.get().expect("known before the gate opens");
            theirs.try_wait(other)
        })
    };
    let jobs = [make("left", &ids[1]), make("right", &ids[0])];
    for (id, job) in ids.iter().zip(&jobs) {
        id.set(job.id()).expect("set once");
    }
    gate.complete();
    let mut told = 0;
    for job in jobs {
        match fine("wait", job.try_wait())? {
            Ok(()) => {}
            Err(error @ WaitError::Deadlock { .. }) => {
                told += 1;
                refused(
                    "a wait in a circle",
                    Err::<(), _>(error),
                    &["left", "right"],
                )?;
            }
            Err(error) => return Err(format!("a wait in a circle said: {error}")),
        }
    }
    check(
        told > 0,
        "two jobs waited for each other, and both waits succeeded",
    )
}

/// Two loops poll one event in turn, for hours. Dependencies can still be made.
pub(super) fn polled_by_two(trial: &Trial) -> Verdict {
    /// Each loop's: far more than there is room for listeners.
    const POLLS: usize = 4_000;
    /// Long enough for a wait to ask to be told.
    const MOMENT: Duration = Duration::from_micros(20);
    let js = trial.build(trial.builder().max_jobs(64).max_threads(8));
    let quit = js.event("quit");
    let id = quit.id();
    let turns = [Barrier::new(2), Barrier::new(2)];
    let poll = || _ = js.wait_timeout(id, MOMENT);
    thread::scope(|threads| {
        threads.spawn(|| {
            for _ in 0..POLLS {
                turns[0].wait();
                poll();
                turns[1].wait();
            }
        });
        for _ in 0..POLLS {
            poll();
            watchdog::progress();
            turns[0].wait();
            turns[1].wait();
        }
    });
    // By a thread that has nothing at hand from before.
    let schedule = || js.job("after").after(id).try_schedule(|_| ());
    let after = thread::scope(|threads| threads.spawn(schedule).join());
    let after = after.map_err(|_| "scheduling panicked")?;
    let after = fine("schedule after so many polls", after)?;
    quit.complete();
    fine("wait", js.try_wait(after))
}

/// A future must not be polled again after its value was given: it says so.
pub(super) fn polled_again(trial: &Trial) -> Verdict {
    let js = trial.system();
    let mut job = js.job("polled").run(|_| 7);
    fine("wait", js.try_wait(job.id()))?;
    let mut task = std::task::Context::from_waker(Waker::noop());
    let first = Pin::new(&mut job).poll(&mut task);
    check(
        first == Poll::Ready(7),
        format!("the first poll gave {first:?}"),
    )?;
    let again = || _ = Pin::new(&mut job).poll(&mut task);
    panics("a second poll", again, &["asked for again"])
}
