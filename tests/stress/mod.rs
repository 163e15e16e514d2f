//! Everything at once, on the operating system: programs that schedule, wait, end, panic and shut
//! down from many threads at the same time, with no workers, few, and far more than the machine has.
//!
//! Method: each body leaves a trace that can be counted (sums, start counts, drop counts), and the
//! counts are exact whatever the order was. Nothing is timed. A program that hangs is ended by
//! [`watched`].

mod ends;
mod failures;
mod limits;
mod threads;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use paceline::{
    Builder, Context, Event, Grain, GraphError, Job, JobId, JobSystem, ScheduleError, WaitError,
};
use platform::Os;

use crate::support::ledger::{Ledger, Token};
use crate::support::{Random, fail, watched};

const WORKERS: [usize; 5] = [0, 1, 2, 8, 32];

/// Long enough for anything to have happened that is going to.
const AGES: Duration = Duration::from_secs(60);
/// Short; nothing depends on how short.
const MOMENT: Duration = Duration::from_millis(1);

fn system(workers: usize) -> JobSystem {
    Builder::new()
        .workers(workers)
        .build()
        .expect("threads can be started")
}

/// Runs a program with each number of workers.
fn with_all(what: &str, program: impl Fn(&JobSystem)) {
    for workers in WORKERS {
        watched(&format!("{what}, {workers} workers"), || {
            program(&system(workers))
        });
    }
}

/// A recursive sum, by joins.
fn sum(cx: &Context<'_, Os>, values: &[u64]) -> u64 {
    match values {
        [] => 0,
        [one] => *one,
        _ => {
            let (left, right) = values.split_at(values.len() / 2);
            let (a, b) = cx.join(|cx| sum(cx, left), |cx| sum(cx, right));
            a + b
        }
    }
}

/// The payload of `f`'s panic.
fn panic_of(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("it panics");
    match payload.downcast::<&'static str>() {
        Ok(text) => (*text).to_owned(),
        Err(payload) => *payload
            .downcast::<String>()
            .expect("a panic with a message"),
    }
}

/// Too large for a slot: such bodies and results lie elsewhere.
struct Large {
    _token: Token,
    numbers: [u64; 100],
}

impl Large {
    fn new(ledger: &Arc<Ledger>, number: u64) -> Large {
        Large {
            _token: ledger.token(),
            numbers: [number; 100],
        }
    }
}

/// With no workers a thread has to pump: the thread that awaits the future does.
fn block_on<T>(js: &JobSystem, future: impl Future<Output = T>) -> T {
    testkit::block_on(future, || match js.workers() {
        0 if js.poll() => {}
        // The event that makes a job ready may come later, and no other thread would run it.
        0 => thread::park_timeout(MOMENT),
        _ => thread::park(),
    })
}
