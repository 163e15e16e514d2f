//! The last owner of a job system goes where the runtime drops values of the program: on a worker, inside
//! and outside of a job, in a hook, and at the end of a thread.
//!
//! Once a worker joined itself there, or waited for its own range for ever. Where the thread had no thread
//! slot, nothing was run and nothing was dropped, and handles waited for ever.

use super::*;

use std::cell::RefCell;
use std::sync::Mutex;

use paceline::{Grain, Job, WaitError};

use crate::support::ledger::Ledger;

const READY: usize = 20;

/// The jobs left in a job system that goes: jobs that can run, and one that never will.
struct Left {
    ledger: Arc<Ledger>,
    ran: Count,
    held: Job<Token>,
    never: paceline::Event,
}

impl Left {
    fn new(js: &JobSystem) -> Left {
        let (ledger, ran) = (Arc::new(Ledger::default()), Count::default());
        let never = js.event("never");
        let token = ledger.token();
        let held = js.job("held").after(never.id()).run(|_| token);
        for _ in 0..READY {
            let (token, ran) = (ledger.token(), ran.clone());
            js.job("ready").schedule(move |_| {
                drop(token);
                ran.up();
            });
        }
        Left {
            ledger,
            ran,
            held,
            never,
        }
    }

    /// Jobs that can run have run, the rest is dropped, and the handle says so.
    fn check(self) {
        let verdict = self.held.try_wait().map(drop);
        assert!(matches!(verdict, Err(WaitError::ShutDown)), "{verdict:?}");
        until(|| self.ledger.kept() == 0);
        self.ledger.check_each_dropped_once(READY + 1);
        assert_eq!(self.ran.get(), READY, "jobs that ran");
        drop(self.never);
    }
}

/// The owner that goes last: after the flag is up there is no other.
struct Owner {
    _js: Arc<JobSystem>,
    is_last: Flag,
}

/// `place` puts the owner where it will be dropped on a worker. All workers leave, and the job system ends
/// as it would otherwise.
fn goes_on_a_worker(what: &str, place: impl Fn(&JobSystem, Owner)) {
    for workers in [1, 2] {
        watched(
            &format!("the last owner in {what}, {workers} workers"),
            || {
                for _ in 0..10 {
                    let (gone, is_last) = (Count::default(), Flag::default());
                    let goes = gone.clone();
                    let js = small(workers).on_thread_stop(move |_| _ = goes.up());
                    let js = Arc::new(js.build().expect("threads can be started"));
                    let owner = Owner {
                        _js: Arc::clone(&js),
                        is_last: is_last.clone(),
                    };
                    place(&js, owner);
                    let left = Left::new(&js);
                    js.flush();
                    drop(js);
                    is_last.raise();
                    left.check();
                    until(|| gone.get() >= workers);
                }
            },
        );
    }
}

/// Goal: a body may drop the last owner. Method: it waits until it has it.
#[test]
fn the_last_owner_goes_in_a_body() {
    goes_on_a_worker("a body", |js, owner| {
        js.job("body").schedule(move |_| {
            owner.is_last.wait();
            drop(owner);
        });
    });
}

/// Goal: a result that nothing takes may be the last owner. Method: it is made when it is the last.
#[test]
fn the_last_owner_goes_in_a_result() {
    goes_on_a_worker("a result", |js, owner| {
        drop(js.job("result").run(move |_| {
            owner.is_last.wait();
            owner
        }));
    });
}

/// Goal: the body of a cancelled job may own the job system. Method: its predecessor panics when there is no
/// other owner.
#[test]
fn the_last_owner_goes_in_a_cancelled_body() {
    goes_on_a_worker("a cancelled body", |js, owner| {
        let is_last = owner.is_last.clone();
        let failed = js.job("failed").schedule(move |_| {
            is_last.wait();
            fail("on purpose");
        });
        js.job("cancelled")
            .after(failed)
            .schedule(move |_| drop(owner));
    });
}

/// Goal: the closure of a range may own the job system. The last thread to leave the range drops it, when
/// the range is nearly over and yet not. Method: each part waits until there is no other owner.
#[test]
fn the_last_owner_goes_in_the_closure_of_a_range() {
    for items in [1, 8] {
        goes_on_a_worker("a range", move |js, owner| {
            let range = js.job("range");
            range.schedule_for(0..items, Grain::Items(1), move |_, _| {
                // All of it: a closure owns no more than it names.
                let owner = &owner;
                owner.is_last.wait();
            });
        });
    }
}

/// Goal: the payload of a panic may own the job system; nothing waits for the job, so the runtime keeps the
/// payload. Then the job system owns itself, which only a wait for the job can undo. Method: that wait.
#[test]
fn the_last_owner_goes_in_a_payload() {
    for workers in FEW {
        watched(&format!("owner in a payload, {workers} workers"), || {
            let js = Arc::new(system(workers));
            let owner = Arc::clone(&js);
            let job = js.job("fails").run(move |_| {
                std::panic::resume_unwind(Box::new(owner));
            });
            let left = Left::new(&js);
            js.flush();
            drop(js);
            let Err(WaitError::Panicked { payload, .. }) = job.try_wait() else {
                panic!("it panics");
            };
            drop(payload.expect("nothing else has asked for it"));
            left.check();
        });
    }
}

/// Goal: a hook may drop the last owner. Method: the hook for panics that nothing waits for is called on a
/// worker and takes the owner from where main left it.
#[test]
fn the_last_owner_goes_in_a_hook() {
    for workers in [1, 2] {
        watched(
            &format!("the last owner in a hook, {workers} workers"),
            || {
                let gone = Count::default();
                let goes = gone.clone();
                let kept = Arc::new(Mutex::new(None::<Owner>));
                let theirs = Arc::clone(&kept);
                let js = small(workers)
                    .on_thread_stop(move |_| _ = goes.up())
                    .on_unwaited_panic(move |_| {
                        let owner = theirs.lock().unwrap().take();
                        let owner = owner.expect("main left it here");
                        owner.is_last.wait();
                        drop(owner);
                    });
                let js = Arc::new(js.build().expect("threads can be started"));
                let is_last = Flag::default();
                *kept.lock().unwrap() = Some(Owner {
                    _js: Arc::clone(&js),
                    is_last: is_last.clone(),
                });
                js.job("fails").schedule(|_| fail("on purpose"));
                let left = Left::new(&js);
                js.flush();
                drop(js);
                is_last.raise();
                left.check();
                until(|| gone.get() >= workers);
            },
        );
    }
}

thread_local! {
    static KEPT: RefCell<Option<Arc<JobSystem>>> = const { RefCell::new(None) };
}

/// Goal: a thread-local of a worker may be the last owner. It is dropped when the thread ends, on the thread
/// itself, after all that the runtime does there. Method: a job keeps the owner there; the workers are sent
/// home, and their last hook waits until there is no other owner. (A panic at the end of a thread-local ends
/// the process.)
#[test]
fn the_last_owner_goes_with_a_worker() {
    for workers in [1, 2] {
        watched(
            &format!("an owner with a worker, {workers} workers"),
            || {
                let is_last = Flag::default();
                let waits = is_last.clone();
                let js = small(workers).on_thread_stop(move |_| waits.wait());
                let js = Arc::new(js.build().expect("threads can be started"));
                let owner = Arc::clone(&js);
                let keeps = js.schedule(move |_| KEPT.set(Some(owner)));
                let_run(&js, &[keeps]);
                js.resize(0).expect("fewer is always possible");
                let left = Left::new(&js);
                drop(js);
                is_last.raise();
                left.check();
            },
        );
    }
}

/// Goal: a thread-local of any other thread may be the last owner, also if it is dropped after the runtime's
/// own, and the thread has no thread slot any more. Method: the thread-local comes into being before the
/// thread's first call, or after it.
#[test]
fn the_last_owner_goes_with_an_outside_thread() {
    for (workers, is_early) in FEW.into_iter().flat_map(|few| [(few, true), (few, false)]) {
        watched(
            &format!("an owner with a thread, {workers} workers"),
            || {
                let js = Arc::new(system(workers));
                let left = Left::new(&js);
                let owner = Arc::clone(&js);
                let (is_kept, is_last) = (Flag::default(), Flag::default());
                let (kept, last) = (is_kept.clone(), is_last.clone());
                let thread = thread::spawn(move || {
                    if is_early {
                        KEPT.set(None);
                    }
                    owner.enter(|_| ());
                    KEPT.set(Some(owner));
                    kept.raise();
                    last.wait();
                });
                is_kept.wait();
                drop(js);
                is_last.raise();
                thread.join().expect("it does not panic");
                left.check();
            },
        );
    }
}

/// Goal: a job system may be dropped by a thread for which there is no thread slot. Method: the one thread
/// slot for outside threads is main's; another thread drops the job system.
#[test]
fn the_last_owner_goes_on_a_thread_without_a_slot() {
    for workers in FEW {
        watched(&format!("no slot to end on, {workers} workers"), || {
            let js = small(workers).max_threads(1);
            let js = js.build().expect("threads can be started");
            let left = Left::new(&js);
            let ends = thread::spawn(move || ends_well(js));
            ends.join().expect("it ends well");
            assert_eq!(left.ran.get(), READY, "jobs that ran");
            left.check();
        });
    }
}
