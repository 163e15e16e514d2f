//! `paceline fleet` and `paceline sweep`: many traces, and many simulated runs, as Parquet.
//!
//! [`traces`] and [`points`] are the two commands; [`summary`] is what both say in the end. [`compare`] is
//! what `fleet` does with data sets that are there.

pub(crate) mod compare;
pub(crate) mod plan;
mod points;
mod summary;
mod traces;

use std::sync::{Mutex, PoisonError};

use console::{Failure, Progress};
use fleet::{Done, FleetError, Watch};

pub(crate) use points::SweepArguments;
pub(crate) use traces::FleetArguments;

pub(super) use points::run as run_sweep;
pub(super) use traces::run as run_fleet;

/// The failure of a fleet as the failure of a command.
fn failure(error: FleetError) -> Failure {
    if error.is_input() {
        Failure::usage(error)
    } else {
        Failure::failed(error)
    }
}

/// A bar that all threads move.
struct SharedBar(Mutex<Progress>);

impl SharedBar {
    fn new(what: &'static str, units: usize) -> SharedBar {
        SharedBar(Mutex::new(Progress::new(what, units as u64)))
    }
}

impl Watch for SharedBar {
    fn reached(&self, done: Done) {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        progress.reach(done.units as u64);
    }
}
