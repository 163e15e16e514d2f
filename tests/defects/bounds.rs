//! Bounds of the job system that a program met without being told, and costs that grew without a bound.
//!
//! Once a wait with more ancestors than a search looked at hung. So did waits of more jobs than there could
//! be spare workers, a wait without any worker for an event that only another job would complete, and deeply
//! nested waits. Searches took quadratic time. Polls and failures left something behind for ever.

use super::*;

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Barrier, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use event::{EventKind, Sink};
use paceline::{Event, ScheduleError, WORKERS_MAX, WaitError};
use platform::Os;
use testkit::Counted;

use crate::process::{child, is_child};
use crate::support::ledger::Ledger;

/// More than a search looks at in one go.
const MANY: usize = 200_000;

/// So many that what takes quadratic time does not end.
const MILLION: usize = 1_000_000;

/// A chain of jobs behind an event; its last job.
fn chain(js: &JobSystem, jobs: usize) -> (Event, JobId) {
    let gate = js.event("gate");
    let mut last = gate.id();
    for _ in 0..jobs {
        last = js.job("link").after(last).schedule(|_| ());
    }
    (gate, last)
}

/// A job system with room for a million jobs, none of whose workers is free until the flag is raised.
fn large_and_busy(workers: usize) -> (JobSystem, Flag) {
    busy(Builder::new().workers(workers))
}

/// A job system none of whose workers is free until the flag is raised.
fn busy(builder: Builder) -> (JobSystem, Flag) {
    let js = builder.build().expect("threads can be started");
    let workers = js.workers();
    let (released, begun) = (Flag::default(), Count::default());
    for _ in 0..workers {
        let (released, begun) = (released.clone(), begun.clone());
        js.job("busy").schedule(move |_| {
            begun.up();
            released.wait();
        });
    }
    js.flush();
    until(|| begun.get() == workers);
    (js, released)
}

/// Goal: a wait may have any number of ancestors in a row. Method: main waits for the last of a chain, and
/// no worker is there, or free, to help.
#[test]
fn a_wait_over_a_long_chain() {
    for (workers, jobs) in [(0, MANY), (1, MANY), (0, MILLION)] {
        watched(&format!("a chain of {jobs}, {workers} workers"), || {
            let (js, released) = large_and_busy(workers);
            let (gate, last) = chain(&js, jobs);
            gate.complete();
            js.try_wait(last).expect("it ends well");
            released.raise();
            ends_well(js);
        });
    }
}

/// Goal: a wait may have any number of ancestors side by side, whether they are ready, over, or become ready
/// all at once. Method: as above, with a job that combines them.
#[test]
fn a_wait_for_many_at_once() {
    for (workers, is_held) in [(0, false), (0, true), (1, false), (1, true)] {
        let what = format!("many at once, {workers} workers, held back: {is_held}");
        watched(&what, || {
            let (js, released) = large_and_busy(workers);
            let gate = js.event("gate");
            let all: Vec<_> = (0..MANY)
                .map(|_| {
                    if is_held {
                        js.job("one").after(gate.id()).schedule(|_| ())
                    } else {
                        js.job("one").schedule(|_| ())
                    }
                })
                .collect();
            let last = js.combine(&all);
            gate.complete();
            js.try_wait(last).expect("it ends well");
            released.raise();
            ends_well(js);
        });
    }
}

/// Goal: a look for a deadlock takes linear time. Method: a job waits for the end of a chain of a million,
/// and looks before it parks; main waits, too, which looks as well once there was a late dependency. Only
/// when both have parked does the chain begin.
#[test]
fn a_look_for_a_deadlock_over_a_long_chain() {
    watched("a deadlock in a long chain", || {
        let js = Builder::new().workers(1).build();
        let js = Arc::new(js.expect("threads can be started"));
        let (first, second) = (js.event("first"), js.event("second"));
        let added = js.add_dependency(first.id(), second.id());
        assert_eq!(added, Ok(()));
        second.complete();
        first.complete();
        let (gate, last) = chain(&js, MILLION);
        let (theirs, begun) = (Arc::clone(&js), Flag::default());
        let begins = begun.clone();
        let waits = js.job("waits").schedule(move |_| {
            begins.raise();
            theirs.try_wait(last).expect("it ends well");
        });
        js.flush();
        begun.wait();
        let parked = js.stats().parks;
        thread::scope(|threads| {
            threads.spawn(|| js.try_wait(last).expect("it ends well"));
            until(|| js.stats().parks > parked);
            gate.complete();
        });
        js.try_wait(waits).expect("it ends well");
    });
}

/// Goal: a late dependency is checked in linear time. Method: a chain of a million jobs, whose last one some
/// other job is to wait for from then on.
#[test]
fn a_late_dependency_on_a_long_chain() {
    watched("a late dependency", || {
        let js = Builder::new().workers(0).build();
        let js = js.expect("it needs no threads");
        let (gate, last) = chain(&js, MILLION);
        let other = js.event("other");
        let late = js.job("late").after(other.id()).schedule(|_| ());
        assert_eq!(js.add_dependency(late, last), Ok(()));
        gate.complete();
        other.complete();
        js.try_wait(late).expect("it ends well");
        ends_well(js);
    });
}

/// Goal: far more jobs may wait than there are workers; ready jobs are run by spare workers. Method: that
/// many jobs wait for an event that a job scheduled after them completes. Nothing helps from outside.
#[test]
fn more_waits_than_workers() {
    for waits in [80, 240] {
        watched(&format!("{waits} waits"), || {
            let js = Arc::new(system(2));
            let event = js.event("event");
            let id = event.id();
            let waiting: Vec<_> = (0..waits)
                .map(|_| {
                    let theirs = Arc::clone(&js);
                    js.schedule(move |_| theirs.try_wait(id).expect("it is completed"))
                })
                .collect();
            let completes = js.schedule(move |_| event.complete());
            let_run(&js, &[completes]);
            let_run(&js, &waiting);
            until(|| Arc::strong_count(&js) == 1);
            all_workers_work(&js);
        });
    }
}

/// Goal: a spare worker that is not needed any more is used again for the next wait. Method: many waits, one
/// after the other, each of which needs a spare; count the threads that were one.
#[test]
fn spares_are_used_again() {
    const WAITS: usize = 300;
    /// Now and then a second spare is needed before the first one rests.
    const THREADS_MAX: usize = 40;
    watched("spares", || {
        let js = Arc::new(system(1));
        let threads = Arc::new(Mutex::new(HashSet::<ThreadId>::new()));
        for _ in 0..WAITS {
            let (event, begun) = (js.event("event"), Flag::default());
            let (id, begins) = (event.id(), begun.clone());
            let (theirs, seen) = (Arc::clone(&js), threads.clone());
            let waits = js.schedule(move |_| {
                begins.raise();
                theirs.try_wait(id).expect("it is completed");
            });
            js.flush();
            begun.wait();
            let completes = js.schedule(move |_| {
                seen.lock().unwrap().insert(thread::current().id());
                event.complete();
            });
            let_run(&js, &[waits, completes]);
        }
        let threads = threads.lock().unwrap().len();
        assert!(threads <= THREADS_MAX, "{threads} threads were a spare");
    });
}

/// An event that a ready job completes, and only a waiter is there to run it.
fn waits_without_workers(js: &Arc<JobSystem>) {
    let event = js.event("event");
    let id = event.id();
    js.schedule(move |_| event.complete());
    js.try_wait(id).expect("it is completed");
    // And so from inside a job, of a scope or not.
    let event = js.event("event");
    let (id, theirs) = (event.id(), Arc::clone(js));
    let waits = js.schedule(move |_| theirs.try_wait(id).expect("it is completed"));
    js.schedule(move |_| event.complete());
    js.try_wait(waits).expect("it ends well");
    let event = js.event("event");
    let id = event.id();
    js.schedule(move |_| event.complete());
    js.scope(|scope| scope.spawn(|_| js.try_wait(id).expect("it is completed")));
}

/// Goal: without workers a waiter that finds nothing it needs runs any ready job. Method: it waits for an
/// event, which some other job completes. There are no workers from the beginning, from a change of their
/// number on, or because the environment says so.
#[test]
fn a_wait_for_an_event_without_workers() {
    watched("events without workers", || {
        waits_without_workers(&Arc::new(system(0)));
        let js = Arc::new(system(2));
        all_workers_work(&js);
        js.resize(0).expect("fewer is always possible");
        waits_without_workers(&js);
    });
    let none = [("PACELINE_WORKERS", "0".as_ref())];
    let said = child("defects::bounds::without_workers_by_the_environment", &none);
    assert!(said.is_success(), "{said}");
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn without_workers_by_the_environment() {
    if is_child() {
        watched("no workers by the environment", || {
            let js = Arc::new(JobSystem::new());
            assert_eq!(js.workers(), 0);
            waits_without_workers(&js);
        });
    }
}

/// Counts the jobs that threads have parked for.
#[derive(Default)]
struct Parks {
    last: AtomicU64,
    jobs: Count,
}

impl Sink for Parks {
    fn record(&self, event: &event::Event) {
        // Workers without work park for none, and a waiter may park for one job several times.
        let is_wait = event.kind == EventKind::Park && event.job != 0;
        if is_wait && self.last.swap(event.job, SeqCst) != event.job {
            self.jobs.up();
        }
    }
}

/// Goal: waits nest as deep as the stack allows, and each level is told. Method: one thread waits for a job
/// that waits for the next one, 5 000 times. Each job has an event of its own that is completed when the
/// thread has parked for that very job: a level that is not told hangs. (Without workers it would not: there
/// a thread that waits inside a job looks again after a while. So it is done beside a busy worker, too, which
/// no spare may relieve.)
#[test]
fn waits_nest_deeply() {
    for workers in [0, 1] {
        watched(&format!("nested waits, {workers} workers"), || {
            each_level_is_told(workers);
        });
    }
}

fn each_level_is_told(workers: usize) {
    const LEVELS: usize = 5_000;
    const STACK: usize = 1 << 30;
    let parks = Arc::new(Parks::default());
    let settings = Builder::new().workers(workers).max_spares(0);
    let (js, released) = busy(settings.sink(parks.clone()));
    let js = Arc::new(js);
    let (deepest, ids) = (Count::default(), Arc::new(Mutex::new(Vec::new())));
    let gates: Vec<_> = (0..LEVELS)
        .map(|level| {
            let gate = js.event("gate");
            let (theirs, deeper, next) = (Arc::clone(&js), deepest.clone(), ids.clone());
            let job = js.job("level").after(gate.id()).schedule(move |_| {
                deeper.up();
                let next = next.lock().unwrap().get(level + 1).copied();
                if let Some(next) = next {
                    theirs.try_wait(next).expect("it ends well");
                }
            });
            ids.lock().unwrap().push(job);
            gate
        })
        .collect();
    let first = ids.lock().unwrap()[0];
    let waiter = thread::Builder::new().stack_size(STACK);
    let theirs = Arc::clone(&js);
    let waiter = waiter.spawn(move || theirs.try_wait(first).expect("it ends well"));
    for (level, gate) in gates.into_iter().enumerate() {
        until(|| parks.jobs.get() > level);
        gate.complete();
        until(|| deepest.get() == level + 1);
    }
    let waiter = waiter.expect("a thread with a large stack");
    waiter.join().expect("it does not panic");
    released.raise();
}

/// Goal: polls for one id leave nothing behind, however many threads poll. Method: two threads in turn, far
/// more often than there is room for dependencies; a job with a dependency can be scheduled all the same.
#[test]
fn polls_by_two_threads_leave_nothing_behind() {
    const ROUNDS: usize = 10_000;
    watched("two threads poll", || {
        let js = small(1).max_jobs(64).max_threads(8).build();
        let js = js.expect("threads can be started");
        let quit = js.event("quit");
        let (id, turns) = (quit.id(), [Barrier::new(2), Barrier::new(2)]);
        let poll = || {
            let over = js.wait_timeout(id, Duration::from_micros(1));
            assert!(matches!(over, Ok(false)), "{over:?}");
        };
        thread::scope(|threads| {
            threads.spawn(|| {
                for _ in 0..ROUNDS {
                    turns[0].wait();
                    poll();
                    turns[1].wait();
                }
            });
            let mut refused = None;
            for round in 0..ROUNDS {
                turns[0].wait();
                turns[1].wait();
                poll();
                let other = js.event("other");
                let tried = js.job("next").after(other.id()).try_schedule(|_| ());
                other.complete();
                match tried {
                    // Else there are soon as many as may be.
                    Ok(next) => js.wait(next),
                    Err(error) => refused = refused.or(Some((round, error))),
                }
            }
            assert_eq!(refused, None, "the round, and why");
        });
        quit.complete();
        ends_well(js);
    });
}

/// Goal: of failures long ago only the fact is remembered, and payloads are forgotten, too; a handle knows
/// all of its own job. Method: far more failures than are remembered, each with a payload that is counted.
#[test]
fn failures_are_forgotten_at_last() {
    const REMEMBERED: usize = 4_096;
    const FAILURES: usize = 3 * REMEMBERED;
    /// Threads may be about to drop some.
    const IN_BETWEEN: usize = 64;
    for workers in FEW {
        watched(&format!("failures, {workers} workers"), || {
            let (js, ledger) = (system(workers), Arc::new(Ledger::default()));
            let first = js.job("first").run(|_| fail("the first"));
            let_run(&js, &[first.id()]);
            let mut last = first.id();
            for _ in 0..FAILURES {
                let token = ledger.token();
                last = js.job("fails").schedule(|_| resume_unwind(Box::new(token)));
                let_run(&js, &[last]);
            }
            let kept = ledger.kept();
            assert!(kept <= REMEMBERED + IN_BETWEEN, "{kept} payloads are kept");
            let verdict = js.try_wait(last);
            let is_panic = matches!(verdict, Err(WaitError::Panicked { .. }));
            assert!(is_panic, "the last one: {verdict:?}");
            let verdict = first.try_wait();
            let is_panic = matches!(verdict, Err(WaitError::Panicked { .. }));
            assert!(is_panic, "the handle: {verdict:?}");
            drop((verdict, js));
        });
    }
}

/// Goal: a predecessor that is over and has not failed costs no lock, although others have failed. Method:
/// count locks on a counted platform, after a failure.
#[test]
fn predecessors_that_did_not_fail_cost_no_lock() {
    const JOBS: u64 = 1_000;
    let builder = Builder::with_platform(Counted(Os)).workers(0);
    let js = builder.build().expect("it needs no threads");
    drop(js.event("abandoned"));
    let over: Vec<_> = (0..8).map(|_| js.schedule(|_| ())).collect();
    js.flush();
    let run = || {
        for _ in 0..JOBS {
            js.job("after them").after_all(&over).schedule(|_| ());
            assert!(js.poll());
        }
    };
    run();
    let ((), counts) = Counted::during(run);
    assert!(counts.locks <= 8, "{counts:?} for {JOBS} jobs");
}

/// Goal: the limit of live jobs is nearly the one that was asked for. Method: one thread fills the table, and
/// may keep some places at hand beyond that.
#[test]
fn a_table_is_full_when_it_should_be() {
    const MOST: usize = 100;
    const AT_HAND: usize = 62;
    watched("a full table", || {
        let js = small(0).max_jobs(MOST as u32).build();
        let js = js.expect("it needs no threads");
        let never = js.event("never");
        let mut accepted = 1;
        let error = loop {
            match js.job("held").after(never.id()).try_schedule(|_| ()) {
                Ok(_) => accepted += 1,
                Err(error) => break error,
            }
        };
        let max_jobs = MOST as u32;
        assert_eq!(error, ScheduleError::Full { max_jobs });
        assert!(accepted >= MOST, "{accepted} jobs were accepted");
        assert!(accepted <= MOST + AT_HAND, "{accepted} jobs were accepted");
        ends_well(js);
    });
}

/// Goal: the number of workers can be changed to any number that can be asked for at the beginning. Method:
/// more workers than four for each CPU, all of which work; and one more than there can be.
#[test]
fn any_number_of_workers_that_can_be_built() {
    watched("many workers", || {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let many = (4 * cpus + 3).min(WORKERS_MAX);
        let js = system(1);
        js.resize(many).expect("as many could be built");
        assert_eq!(js.workers(), many);
        all_workers_work(&js);
        assert!(
            js.resize(WORKERS_MAX + 1).is_err(),
            "more than there can be"
        );
        assert_eq!(js.workers(), many);
        ends_well(js);
    });
}
