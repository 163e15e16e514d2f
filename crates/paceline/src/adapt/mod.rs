//! The adaptation of a job system to its machine, behind one door: [`Adapt`].
//!
//! The core runs jobs as if all CPUs were alike, always there and its own. It tells [`Adapt`] what happens
//! and asks what follows, by the methods of [`Adapt`] and of [`Vigil`], and names nothing else of it. What is
//! behind the door reaches the core through two traits, [`Workers`] and [`Caller`]. It keeps data of its own:
//! [`AdaptLocal`] for each thread, [`WorkerWords`] for each worker.
//!
//! Behind the door is one of two modules: with feature `adapt` it is `full`, which looks at the machine while
//! the job system runs. Without, it is `plain`, which asks once for the number of CPUs. They are chosen here
//! and nowhere else. The types of the door, and what a program says and hears ([`answers`], [`placement`]),
//! are those of both. The environment's settings are in [`environment`].
//!
//! Invariants
//! - Correctness does not depend on this part. A job system whose `Adapt` does nothing runs the same jobs.
//! - Nothing here happens per job, but for the jobs of groups that workers run (`full/gangs.rs`).

mod answers;
pub(crate) mod environment;
mod placement;
mod words;
mod workers;

#[cfg(feature = "adapt")]
mod full;
#[cfg(not(feature = "adapt"))]
mod plain;

use event::Nanos;
use platform::{CpuSet, SchedParams};

pub use answers::{Decision, Help, Interference, Role};
pub use placement::Placement;

#[cfg(feature = "adapt")]
pub use full::explain;
#[cfg(feature = "adapt")]
pub(crate) use full::{Adapt, AdaptLocal, HAS_SLOW_WORKERS, Vigil, caches};
#[cfg(all(test, paceline_models, feature = "adapt", not(miri)))]
pub(crate) use full::{LiveMachine, MachineView, WorkersRequest};
#[cfg(not(feature = "adapt"))]
pub use plain::explain;
#[cfg(not(feature = "adapt"))]
pub(crate) use plain::{
    HAS_SLOW_WORKERS, PlainAdapt as Adapt, PlainLocal as AdaptLocal, PlainVigil as Vigil, caches,
};
pub(crate) use words::{PlacedThread, WakeReport, WorkerWords};
pub(crate) use workers::{Caller, RefusedWorker, Workers};

/// The settings of [`Adapt`], as the builder was told.
pub(crate) struct Settings {
    /// The number of workers. `None`: as many as fit the machine, less `reserve`.
    pub(crate) workers: Option<usize>,
    pub(crate) reserve: usize,
    /// The CPUs that workers are to stay on.
    pub(crate) cpus: Option<CpuSet>,
    pub(crate) placement: Placement,
    /// Whether the machine is to be looked at again.
    pub(crate) follows_machine: bool,
    pub(crate) help: Vec<SchedParams>,
    /// The slice that workers ask for.
    pub(crate) slice: Option<Nanos>,
    pub(crate) steering: bool,
    /// Whether the environment may say how much of the machine to use.
    pub(crate) asks_environment: bool,
}

/// A point in the core that threads pass from time to time.
#[derive(Clone, Copy)]
pub(crate) enum Checkpoint {
    /// Between two blocks of a loop. The thread knows the time.
    Block(Nanos),
    /// A worker looks for work that has waited for long.
    Fairness,
    /// The thread leaves its jobs to a worker that searches, which may be waiting for a CPU.
    Publishing,
    /// A call from outside.
    Outside,
}

/// The part of a worker's place that the core needs.
pub(crate) struct Placed {
    /// Whether it is a slow worker; `None` where there are no places.
    pub(crate) is_slow: Option<bool>,
    /// The mask for a thread that is started for the worker.
    pub(crate) mask: Option<CpuSet>,
}
