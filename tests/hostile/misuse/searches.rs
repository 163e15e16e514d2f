//! Searches through the dependencies of a job take linear time: for a deadlock, and for a cycle that a late
//! dependency would close.
//!
//! The sizes are such that a search of quadratic time takes minutes. One of
//! linear time takes far less than [`SEARCH`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use paceline::{Event, JobId, JobSystem};

use super::{Trial, Verdict, check, fine};
use crate::watchdog;

/// Jobs behind each other. The slower build needs fewer for the same time.
const LONG: usize = if cfg!(debug_assertions) {
    150_000
} else {
    600_000
};

/// CPU time in which a search is done.
const SEARCH: Duration = Duration::from_secs(3);

/// A chain behind an event; its last job.
fn chain(js: &JobSystem) -> (Event, JobId) {
    let gate = js.event("gate");
    let link = |last, _| {
        watchdog::progress();
        let job = js.job("link").after(last);
        job.schedule(|_| watchdog::progress())
    };
    let last = (0..LONG).fold(gate.id(), link);
    (gate, last)
}

/// A job waits for the end of a long chain that an event holds, and looks for a deadlock before it parks. So
/// does the thread outside that waits for the job.
pub(super) fn deadlock_in_a_chain(trial: &Trial) -> Verdict {
    // Time to see the gate closed, for those that do not park. With less the case is easier, not wrong.
    const LOOK: u32 = 4_000;
    const PAUSE: Duration = Duration::from_micros(100);
    watchdog::allow(SEARCH);
    let js = trial.system();
    // From now on threads outside look, too.
    let (first, second) = (js.event("first"), js.event("second"));
    let added = js.add_dependency(first.id(), second.id());
    fine("add_dependency", added)?;
    second.complete();
    first.complete();
    let (gate, last) = chain(&js);
    let begun = Arc::new(AtomicBool::new(false));
    let (theirs, begins) = (Arc::clone(&js), Arc::clone(&begun));
    let waits = js.job("waits").run(move |_| {
        begins.store(true, Ordering::SeqCst);
        theirs.try_wait(last)
    });
    let told = thread::scope(|threads| {
        let waiter = threads.spawn(|| waits.try_wait());
        while !begun.load(Ordering::SeqCst) {
            thread::sleep(PAUSE);
        }
        let parked = js.stats().parks;
        let looks = (0..LOOK).take_while(|_| js.stats().parks <= parked);
        looks.for_each(|_| thread::sleep(PAUSE));
        gate.complete();
        waiter.join().map_err(|_| "a wait panicked")
    });
    fine("the wait in the job", fine("wait for the job", told?)?)
}

/// A job is made to wait for the end of a long chain, and for the last of many layers, each of which waits
/// for all of the layer before: there are more ways through those than can be counted.
pub(super) fn late_dependency(trial: &Trial) -> Verdict {
    const LAYERS: usize = 1_000;
    const WIDTH: usize = 12;
    watchdog::allow(SEARCH);
    let js = trial.system();
    let (gate, last) = chain(&js);
    let other = js.event("other");
    let late = js.job("late").after(other.id()).run(|_| ());
    fine(
        "add_dependency on a chain",
        js.add_dependency(late.id(), last),
    )?;
    let mut layer = vec![gate.id()];
    for _ in 0..LAYERS {
        watchdog::progress();
        let job = |_| {
            let job = js.job("layered").after_all(&layer);
            job.schedule(|_| watchdog::progress())
        };
        layer = (0..WIDTH).map(job).collect();
    }
    let added = js.add_dependency(late.id(), layer[0]);
    fine("add_dependency on layers", added)?;
    let back = js.add_dependency(gate.id(), late.id());
    check(
        back.is_err(),
        "a dependency that closes a cycle through a long chain was accepted",
    )?;
    gate.complete();
    other.complete();
    fine("wait", late.try_wait())
}
