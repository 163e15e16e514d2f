//! Defects that the runtime once had, each as a program that must end well.
//!
//! Goal: code of the program may panic, wait, schedule and drop anything wherever the runtime calls it.
//! Nothing hangs, nothing is left early, and all workers live on.
//!
//! Method: a program sets up the situation with flags that its own jobs raise, so that it does not depend on
//! luck. It then counts the bodies that ran and those that were dropped. A program that hangs is ended by
//! [`watched`](crate::support::watched). A loop that waits for a count has no bound of its own.

mod borrows;
mod bounds;
mod drops;
mod ends;
mod forgotten;
#[cfg(unix)]
mod forks;
mod hooks;
mod matrix;
mod order;
mod owners;
mod results;
mod slots;
mod stack;
mod told;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use paceline::{Builder, JobId, JobSystem};

use crate::support::ledger::Token;
use crate::support::{self, fail};

/// With nothing but the thread that waits, with one worker, and with two.
const FEW: [usize; 3] = [0, 1, 2];

/// A job system with room for little.
fn small(workers: usize) -> Builder {
    Builder::new().workers(workers).max_jobs(1 << 10)
}

fn system(workers: usize) -> JobSystem {
    small(workers).build().expect("threads can be started")
}

fn until(flag: impl Fn() -> bool) {
    while !flag() {
        thread::yield_now();
    }
}

/// A flag that several threads know.
#[derive(Clone, Default)]
struct Flag(Arc<AtomicBool>);

impl Flag {
    fn raise(&self) {
        self.0.store(true, SeqCst);
    }

    fn is_up(&self) -> bool {
        self.0.load(SeqCst)
    }

    fn wait(&self) {
        until(|| self.is_up());
    }
}

/// A number that several threads count up.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    /// Returns the number from before.
    fn up(&self) -> usize {
        self.0.fetch_add(1, SeqCst)
    }

    fn down(&self) {
        self.0.fetch_sub(1, SeqCst);
    }

    fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// A value whose end panics, except during another panic. The values it owns are dropped all the same.
struct Bomb {
    _token: Token,
    /// Raised when it goes off.
    off: Flag,
    is_dud: bool,
}

impl Bomb {
    fn new(token: Token) -> Bomb {
        Bomb::with_flag(token, Flag::default())
    }

    fn with_flag(token: Token, off: Flag) -> Bomb {
        Bomb {
            _token: token,
            off,
            is_dud: false,
        }
    }

    /// Panics with it.
    fn throw(self) -> ! {
        resume_unwind(Box::new(self))
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if !self.is_dud && !thread::panicking() {
            self.off.raise();
            fail("a bomb");
        }
    }
}

/// The payload of a panic may be a bomb. True if it was one; it is dropped and does not go off.
fn defuse(payload: Box<dyn Any + Send>) -> bool {
    let bomb = payload.downcast::<Bomb>();
    bomb.is_ok_and(|mut bomb| {
        bomb.is_dud = true;
        true
    })
}

/// Calls `f` under the watchdog. A panic that comes out of the runtime is passed on as a text, since nothing
/// outside expects a bomb.
fn watched(what: &str, f: impl FnOnce()) {
    let result = support::watched(what, || catch_unwind(AssertUnwindSafe(f)));
    if let Err(payload) = result {
        match payload.downcast_ref::<&'static str>() {
            Some(text) => panic!("{what}: a panic came up: {text}"),
            None if payload.is::<Bomb>() => {
                defuse(payload);
                panic!("{what}: a bomb came up");
            }
            None => resume_unwind(payload),
        }
    }
}

/// Waits for jobs from outside the job system: the workers run them without help. Without workers they are
/// run here.
fn let_run(js: &JobSystem, ids: &[JobId]) {
    js.flush();
    until(|| ids.iter().all(|&id| js.is_done(id)));
}

/// Ends well if every worker still works: one job per worker must run, all at the same time, and no other
/// thread helps. Without workers: if a job still runs here.
fn all_workers_work(js: &JobSystem) {
    let (workers, met) = (js.workers(), Count::default());
    for _ in 0..workers.max(1) {
        let met = met.clone();
        js.job("meets the others").schedule(move |_| {
            met.up();
            until(|| met.get() >= workers);
        });
    }
    js.flush();
    until(|| met.get() >= workers.max(1));
}

/// Drops the job system, which must not panic.
fn ends_well(js: JobSystem) {
    let ended = catch_unwind(AssertUnwindSafe(|| drop(js)));
    assert!(ended.is_ok(), "the end of the job system panicked");
}
