//! Goal: values travel from job to job. The value of an event, a result that is the input of a successor, and
//! the end of a latch arrive once each, or are dropped once, whatever becomes of the two sides.
//!
//! Method: random programs on simulated threads under random orders of steps, where a lost wake-up is a
//! deadlock (`programs`); single cases of failures, scopes, and ends (`events`, `inputs`, `latches`); counts
//! of allocations; and ids that are made of random bytes (`ids`). Values are tokens of a ledger, which wants
//! each to be dropped once.

mod allocations;
mod events;
mod ids;
mod inputs;
mod latches;
mod programs;

use std::sync::Arc;

use paceline::{Builder, JobSystem};

use crate::support::ledger::{Ledger, Token};
use crate::support::watched;

/// A value of any size that is to be dropped once.
struct Value<const BYTES: usize> {
    number: u64,
    _rest: [u8; BYTES],
    _token: Token,
}

/// Fits a slot, and does not.
type Small = Value<8>;
type Large = Value<200>;

impl<const BYTES: usize> Value<BYTES> {
    fn new(ledger: &Arc<Ledger>, number: u64) -> Value<BYTES> {
        Value {
            number,
            _rest: [0; BYTES],
            _token: ledger.token(),
        }
    }
}

/// With no workers to two.
fn each_system(what: &str, check: impl Fn(&JobSystem)) {
    for workers in 0..3 {
        watched(&format!("{what}, {workers} workers"), || {
            let js = Builder::new().workers(workers).max_jobs(1 << 10);
            check(&js.build().expect("threads can be started"));
        });
    }
}

fn until(flag: impl Fn() -> bool) {
    while !flag() {
        std::thread::yield_now();
    }
}
