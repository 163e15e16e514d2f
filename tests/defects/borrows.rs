//! Scopes, joins and loops are left only when all that borrows from them has ended, whatever happens in
//! between.
//!
//! Once a panic that came up inside such a wait left it: of a payload that was dropped there, of a hook that
//! named a spare worker, of a sink at the beginning of the wait. Jobs went on in memory that was another's.
//!
//! Method: a job of the scope, join or loop is in the middle of its body on a worker when the panic comes
//! up on the thread that waits. It goes on for a moment after that. It must have ended when the wait is
//! left. In truth it borrows nothing that goes away, so that a failure is a failure and no accident.

use super::*;

use std::sync::Mutex;
use std::time::Duration;

use event::{Event, EventKind, Sink};
use paceline::{Context, Grain, WaitPolicy};
use platform::Os;

use crate::support::ledger::Ledger;

/// The job that would borrow.
#[derive(Clone, Default)]
struct Borrower {
    begun: Flag,
    /// The panic has come up.
    go: Flag,
    ended: Flag,
}

impl Borrower {
    fn run(&self) {
        /// So long that a wait that is left at once is left in this time.
        const MOMENT: Duration = Duration::from_millis(30);
        self.begun.raise();
        self.go.wait();
        thread::sleep(MOMENT);
        self.ended.raise();
    }

    /// Calls `wait`, which must not come back before the borrower has ended. Returns its panic.
    #[track_caller]
    fn check(&self, what: &str, wait: impl FnOnce()) -> thread::Result<()> {
        let left = catch_unwind(AssertUnwindSafe(wait));
        assert!(self.begun.is_up(), "the job runs elsewhere");
        let is_late = self.ended.is_up();
        self.go.raise();
        self.ended.wait();
        assert!(is_late, "a {what} was left while a job of it ran");
        left
    }
}

/// Goal: a scope of which several jobs panic is left when all its jobs have ended, with the first panic; the
/// payloads of the others may panic when they are dropped. Method: the only worker is busy with the borrower.
/// Main runs the jobs that panic, inside the scope's wait.
#[test]
fn a_scope_with_several_panics() {
    watched("a scope with several panics", || {
        let js = system(1);
        let (ledger, borrower) = (Arc::new(Ledger::default()), Borrower::default());
        let left = borrower.check("scope", || {
            js.scope(|scope| {
                let runs = borrower.clone();
                scope.spawn(move |_| runs.run());
                borrower.begun.wait();
                for _ in 0..3 {
                    let bomb = Bomb::with_flag(ledger.token(), borrower.go.clone());
                    scope.spawn(|_| bomb.throw());
                }
            });
        });
        assert!(defuse(left.expect_err("it panics")), "the first payload");
        all_workers_work(&js);
        ends_well(js);
        ledger.check_each_dropped_once(3);
    });
}

/// Goal: as above with as many jobs as there are, each of which runs, also without a worker. Method: every
/// third job of a scope panics.
#[test]
fn every_job_of_a_scope_with_panics_runs() {
    for workers in FEW {
        watched(&format!("a scope with panics, {workers} workers"), || {
            let js = system(workers);
            let ledger = Arc::new(Ledger::default());
            for _ in 0..20 {
                let ran = Count::default();
                let left = catch_unwind(AssertUnwindSafe(|| {
                    js.scope(|scope| {
                        for number in 0..30 {
                            let bomb = (number % 3 == 0).then(|| Bomb::new(ledger.token()));
                            let ran = ran.clone();
                            scope.spawn(move |_| {
                                ran.up();
                                if let Some(bomb) = bomb {
                                    bomb.throw();
                                }
                            });
                        }
                    });
                }));
                assert_eq!(ran.get(), 30, "jobs that ran when the scope was left");
                assert!(defuse(left.expect_err("it panics")), "the first payload");
            }
            all_workers_work(&js);
            ends_well(js);
            ledger.check_each_dropped_once(200);
        });
    }
}

/// Goal: a loop of which several parts panic is left when all its parts have ended. Method: of two workers
/// one is busy with the borrower. The other one panics while main is in the middle of a part, too; then main
/// panics.
#[test]
fn a_loop_with_several_panics() {
    watched("a loop with several panics", || {
        let js = system(2);
        let (ledger, borrower) = (Arc::new(Ledger::default()), Borrower::default());
        let main = thread::current().id();
        let (on_workers, on_main, bombs) = (Count::default(), Flag::default(), Count::default());
        let body = |_: std::ops::Range<usize>, _: &Context<'_, Os>| {
            let throw = || {
                let bomb = Bomb::with_flag(ledger.token(), borrower.go.clone());
                bombs.up();
                bomb.throw();
            };
            if thread::current().id() != main {
                match on_workers.up() {
                    0 => borrower.run(),
                    _ => {
                        on_main.wait();
                        throw();
                    }
                }
            } else if on_workers.get() == 2 {
                on_main.raise();
                until(|| js.stats().panicked > 0);
                throw();
            } else {
                thread::sleep(Duration::from_micros(50));
            }
        };
        let left = borrower.check("loop", || {
            js.parallel_for(0..1_000_000, Grain::Items(1), body);
        });
        assert!(defuse(left.expect_err("it panics")), "the first payload");
        assert_eq!(bombs.get(), 2);
        all_workers_work(&js);
        ends_well(js);
        ledger.check_each_dropped_once(2);
    });
}

/// Goal: a join of which both halves panic is left with the panic of the first half, when the second one has
/// ended. Method: each half throws a bomb, on its own thread.
#[test]
fn a_join_with_two_panics() {
    watched("a join with two panics", || {
        let js = system(1);
        until(|| js.stats().parks > 0);
        let (ledger, borrower) = (Arc::new(Ledger::default()), Borrower::default());
        let bombs = [(); 2].map(|()| Bomb::with_flag(ledger.token(), Flag::default()));
        let [first, second] = bombs;
        let left = borrower.check("join", || {
            js.join(
                |_| {
                    borrower.begun.wait();
                    borrower.go.raise();
                    first.throw();
                },
                |_| {
                    borrower.run();
                    second.throw();
                },
            );
        });
        assert!(defuse(left.expect_err("it panics")), "the first payload");
        all_workers_work(&js);
        ends_well(js);
        ledger.check_each_dropped_once(2);
    });
}

/// Goal: a hook that names threads may panic. It is called while a worker waits in a scope and a spare worker
/// is started for a job that only a spare may run. Method: the only worker opens a scope whose job main runs,
/// because main waits for the worker's job. Something else that is ready makes the worker start a spare.
#[test]
fn a_scope_and_a_hook_that_names_a_spare() {
    watched("a scope and the name of a spare", || {
        let borrower = Borrower::default();
        let (go, named) = (borrower.go.clone(), Count::default());
        let names = named.clone();
        let js = small(1).thread_name(move |_| match names.up() {
            0 => "the worker".to_owned(),
            _ => {
                go.raise();
                fail("no name");
            }
        });
        let js = js.build().expect("threads can be started");
        let (queued, opened) = (Flag::default(), Flag::default());
        let (inside, is_queued, opening) = (borrower.clone(), queued.clone(), opened.clone());
        let opens = js.job("opens a scope").schedule(move |cx| {
            opening.raise();
            let left = inside.check("scope", || {
                cx.scope(|scope| {
                    let runs = inside.clone();
                    scope.spawn(move |_| runs.run());
                    is_queued.wait();
                });
            });
            assert!(left.is_ok(), "the hook's panic came out of the scope");
        });
        let spared = Flag::default();
        thread::scope(|threads| {
            threads.spawn(|| {
                borrower.begun.wait();
                let runs = spared.clone();
                js.job("for a spare").schedule(move |_| runs.raise());
                queued.raise();
            });
            // The worker has it: this thread runs the scope's jobs.
            opened.wait();
            assert!(js.try_wait(opens).is_ok());
        });
        spared.wait();
        all_workers_work(&js);
        ends_well(js);
    });
}

/// Panics at the first wait that begins on this thread once it is armed.
struct Trap {
    thread: thread::ThreadId,
    is_armed: Flag,
    go: Flag,
    sprung: Mutex<usize>,
}

impl Sink for Trap {
    fn record(&self, event: &Event) {
        let here = thread::current().id() == self.thread;
        if here && event.kind == EventKind::WaitBegin && self.is_armed.is_up() {
            let mut sprung = self.sprung.lock().unwrap_or_else(|lock| lock.into_inner());
            *sprung += 1;
            if *sprung == 1 {
                drop(sprung);
                self.go.raise();
                fail("no more room");
            }
        }
    }
}

/// `wait` has the borrower run on the only worker, then raises the first flag and waits.
fn with_a_trap(what: &str, wait: impl Fn(&JobSystem, &Borrower, &Flag)) {
    watched(&format!("a {what} and a sink"), || {
        let (borrower, is_armed) = (Borrower::default(), Flag::default());
        let trap = Arc::new(Trap {
            thread: thread::current().id(),
            is_armed: is_armed.clone(),
            go: borrower.go.clone(),
            sprung: Mutex::new(0),
        });
        let js = small(1).wait_policy(WaitPolicy::Passive).sink(trap.clone());
        let js = js.build().expect("threads can be started");
        until(|| js.stats().parks > 0);
        let left = borrower.check(what, || wait(&js, &borrower, &is_armed));
        assert!(left.is_ok(), "the sink's panic came out of the {what}");
        assert_eq!(*trap.sprung.lock().unwrap(), 1);
        all_workers_work(&js);
        ends_well(js);
    });
}

/// Goal: a sink may panic when the wait at the end of a scope begins.
#[test]
fn a_scope_and_a_sink_that_panics() {
    with_a_trap("scope", |js, borrower, is_armed| {
        js.scope(|scope| {
            let runs = borrower.clone();
            scope.spawn(move |_| runs.run());
            js.flush();
            borrower.begun.wait();
            is_armed.raise();
        });
    });
}

/// Goal: as above for a join.
#[test]
fn a_join_and_a_sink_that_panics() {
    with_a_trap("join", |js, borrower, is_armed| {
        js.join(
            |_| {
                borrower.begun.wait();
                is_armed.raise();
            },
            |_| borrower.run(),
        );
    });
}

/// Goal: as above for a loop.
#[test]
fn a_loop_and_a_sink_that_panics() {
    let main = thread::current().id();
    with_a_trap("loop", |js, borrower, is_armed| {
        let body = |_: std::ops::Range<usize>, _: &Context<'_, Os>| {
            if thread::current().id() == main {
                if borrower.begun.is_up() {
                    is_armed.raise()
                } else {
                    thread::sleep(Duration::from_micros(50))
                }
            } else if !borrower.begun.is_up() {
                borrower.run();
            }
        };
        js.parallel_for(0..20_000, Grain::Items(1), body);
    });
}

/// Goal: a thread that is new to the job system may wait for what another one makes ready at that moment: the
/// mark that it leaves, and the thread slot that the mark names, are read properly. Method: an outside thread
/// calls for the first time and waits; another one completes what it waits for, or gives it one more
/// dependency. Nothing orders the two but the job system. (On most machines this cannot go wrong; Miri and
/// ThreadSanitizer see it where it does.)
#[test]
fn marks_of_new_threads() {
    watched("marks of new threads", || {
        for round in 0..30 {
            let js = system(0);
            let (gate, late) = (js.event("gate"), js.event("late"));
            let first = js.job("first").after(gate.id()).schedule(|_| ());
            let second = js.job("second").after(first).schedule(|_| ());
            let last = js.job("last").after(late.id()).schedule(|_| ());
            let begun = std::sync::atomic::AtomicBool::new(false);
            let relaxed = std::sync::atomic::Ordering::Relaxed;
            thread::scope(|threads| {
                threads.spawn(|| {
                    begun.store(true, relaxed);
                    js.try_wait(second).expect("it ends well");
                });
                threads.spawn(|| {
                    while !js
                        .wait_timeout(last, Duration::from_micros(10))
                        .expect("no failure")
                    {}
                });
                until(|| begun.load(relaxed));
                (0..round).for_each(|_| thread::yield_now());
                let range = js.job("range").after(first);
                let range = range.schedule_for(0..4, Grain::Items(1), |_, _| ());
                js.add_dependency(last, range).expect("it has not begun");
                gate.complete();
                late.complete();
                js.try_wait(range).expect("it ends well");
            });
            ends_well(js);
        }
    });
}
