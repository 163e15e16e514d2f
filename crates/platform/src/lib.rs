//! The only door between Paceline and the machine.
//!
//! Everything in the job system that touches shared memory, reads a clock, blocks or starts a
//! thread does so through two traits:
//!
//! - [`Memory`] (static, no value needed): atomics, fences, cells, locks and
//!   [`spin_until`](Memory::spin_until). It is all that a lock-free structure may ask for.
//! - [`Platform`] (a cloneable value): threads, parking, clock, topology, one thread-local word.
//!
//! [`Os`] implements both for the machine at hand and is zero-sized. The model checker and the
//! simulated machines implement them elsewhere, as ordinary types in the same build: there is no
//! `cfg` that switches worlds.
//!
//! Invariant: `platform` is the only crate of the runtime that names std's threads, clocks, atomics
//! or locks. `clippy.toml` at the workspace root enforces it.

mod id;
mod memory;
mod omission;
pub mod os;
mod padded;
mod threads;
pub mod topology;
mod treatment;

pub use core::sync::atomic::Ordering;
pub use id::fresh_pool_id;
pub use memory::{Atomic, Lock, Memory, SharedCell};
pub use omission::Omission;
pub use os::Os;
pub use padded::Padded;
pub use threads::{MaskError, Parker, Platform, Poll, SpawnError, Thread, ThreadSpec, Usage};
pub use topology::{
    CpuPlace, CpuSet, Distance, Lane, Limits, Plan, PlannedWorker, Quota, Topology,
};
pub use treatment::{Clamp, Class, Treatment, TreatmentError};
