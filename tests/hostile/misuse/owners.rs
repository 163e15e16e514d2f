//! The last owner of the job system goes on one of its own threads: with a body, a result, a cancelled
//! body, the closure of a range, a hook, a thread-local of a worker.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use paceline::{Grain, JobSystem, WaitError};

use super::{Trial, Verdict, check, fail, fine};

const PAUSE: Duration = Duration::from_micros(100);

/// The means by which a job becomes the last owner.
struct Handover {
    js: Arc<JobSystem>,
    /// Opens when the main thread has given up its own part.
    gate: Arc<AtomicBool>,
}

impl Handover {
    fn wait(&self) {
        while !self.gate.load(Ordering::SeqCst) {
            thread::sleep(PAUSE);
        }
    }
}

/// `give` makes jobs of which one is the last owner. Then all threads end, and a handle that is left says
/// why.
fn last_owner(trial: &Trial, give: impl FnOnce(&JobSystem, Handover)) -> Verdict {
    if trial.workers() == 0 {
        // A job is run by this thread, which is an owner.
        return Ok(());
    }
    let (started, stopped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (starts, stops) = (Arc::clone(&started), Arc::clone(&stopped));
    let builder = trial
        .builder()
        .on_thread_start(move |_| _ = starts.fetch_add(1, Ordering::SeqCst))
        .on_thread_stop(move |_| _ = stops.fetch_add(1, Ordering::SeqCst));
    let js = Arc::new(fine("build", builder.build())?);
    let never = js.event("never");
    let held = js.job("held").after(never.id()).run(|_| ());
    let gate = Arc::new(AtomicBool::new(false));
    let theirs = Handover {
        js: Arc::clone(&js),
        gate: Arc::clone(&gate),
    };
    give(&js, theirs);
    js.flush();
    while started.load(Ordering::SeqCst) == 0 {
        thread::sleep(PAUSE);
    }
    drop(js);
    gate.store(true, Ordering::SeqCst);
    let told = held.try_wait();
    never.complete();
    match told {
        Err(WaitError::ShutDown) => {}
        Err(error) => return Err(format!("a handle that is left said: {error}")),
        Ok(()) => return Err("a job that an event held back was run".into()),
    }
    while stopped.load(Ordering::SeqCst) < started.load(Ordering::SeqCst) {
        thread::sleep(PAUSE);
    }
    Ok(())
}

pub(super) fn body(trial: &Trial) -> Verdict {
    last_owner(trial, |js, owner| {
        js.schedule(move |_| {
            owner.wait();
            drop(owner);
        });
    })
}

pub(super) fn result(trial: &Trial) -> Verdict {
    last_owner(trial, |js, owner| {
        drop(js.job("result").run(move |_| {
            owner.wait();
            owner
        }));
    })
}

pub(super) fn cancelled(trial: &Trial) -> Verdict {
    last_owner(trial, |js, owner| {
        let gate = Handover {
            js: Arc::clone(&owner.js),
            gate: Arc::clone(&owner.gate),
        };
        let bad = js.schedule(move |_| {
            gate.wait();
            drop(gate);
            fail();
        });
        js.job("cancelled")
            .after(bad)
            .schedule(move |_| drop(owner));
    })
}

pub(super) fn range(trial: &Trial) -> Verdict {
    last_owner(trial, |js, owner| {
        js.job("range")
            .schedule_for(0..64, Grain::Items(1), move |_, _| owner.wait());
    })
}

/// The hook for panics that nothing waits for.
pub(super) fn hook(trial: &Trial) -> Verdict {
    if trial.workers() == 0 {
        return Ok(());
    }
    let place: Arc<Mutex<Option<Arc<JobSystem>>>> = Arc::default();
    let theirs = Arc::clone(&place);
    let js = trial.builder().on_unwaited_panic(move |_| {
        let owner = theirs.lock().ok().and_then(|mut place| place.take());
        drop(owner);
    });
    let js = Arc::new(fine("build", js.build())?);
    let never = js.event("never");
    let held = js.job("held").after(never.id()).run(|_| ());
    if let Ok(mut place) = place.lock() {
        *place = Some(Arc::clone(&js));
    }
    let gate = Arc::new(AtomicBool::new(false));
    let opens = Arc::clone(&gate);
    js.schedule(move |_| {
        while !opens.load(Ordering::SeqCst) {
            thread::sleep(PAUSE);
        }
        fail();
    });
    js.flush();
    drop(js);
    gate.store(true, Ordering::SeqCst);
    let told = held.try_wait();
    never.complete();
    check(
        matches!(told, Err(WaitError::ShutDown)),
        format!("a handle that is left said {told:?}"),
    )
}

thread_local! {
    static KEPT: RefCell<Option<Arc<JobSystem>>> = const { RefCell::new(None) };
}

/// A thread-local of a worker, which goes when the worker's thread ends.
pub(super) fn local(trial: &Trial) -> Verdict {
    if trial.workers() == 0 {
        return Ok(());
    }
    let js = Arc::new(fine("build", trial.builder().build())?);
    let never = js.event("never");
    let held = js.job("held").after(never.id()).run(|_| ());
    let kept = Arc::clone(&js);
    let id = js.schedule(move |_| KEPT.with(|place| *place.borrow_mut() = Some(kept)));
    js.flush();
    while !js.is_done(id) {
        thread::sleep(PAUSE);
    }
    fine("resize(0)", js.resize(0))?;
    drop(js);
    let told = held.try_wait();
    never.complete();
    check(
        matches!(told, Err(WaitError::ShutDown)),
        format!("a handle that is left said {told:?}"),
    )
}
