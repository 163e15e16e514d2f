//! The only door between Paceline and the machine.
//!
//! Everything in the job system that touches shared memory, reads a clock, blocks or starts a
//! thread does so through these traits:
//!
//! - [`Memory`] (static, no value needed): atomics, fences, cells, locks and
//!   [`spin_until`](Memory::spin_until). It is all that a lock-free structure may ask for.
//! - [`Platform`] (a cloneable value): threads, parking, clock, one thread-local word. It is all that
//!   running jobs takes.
//! - [`Machine`] (a platform has one): topology, masks, scheduling parameters and usage of threads. It
//!   serves the adaptation of a job system to its machine, and has an answer to everything where nothing is
//!   known ([`Uniform`]).
//!
//! A fourth one, [`Polling`], is for experiments with naive waits; the job system never asks for it.
//!
//! [`Os`] implements all of them for the machine at hand and is zero-sized. The model checker and the
//! simulated machines implement them elsewhere, as ordinary types in the same build: there is no
//! `cfg` that switches worlds.
//!
//! Feature `machine` (on by default) is what is known of the machine beyond the number of its CPUs:
//! detection ([`topology::detect`]), [`Plan`], masks, scheduling parameters, usage of threads, and the
//! kernel's recorder ([`os::tracefs`]). Without it [`Os`] is a machine of equal CPUs that refuses masks, as
//! where std is the only source.
//!
//! Invariant: `platform` is the only crate of the runtime that names std's threads, clocks, atomics
//! or locks. `clippy.toml` at the workspace root enforces it.

/// The README's programs, as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod error;
mod id;
mod lane;
mod late;
mod machine;
mod memory;
mod names;
mod omission;
pub mod os;
mod padded;
mod polling;
mod sched_params;
mod signal;
mod threads;
pub mod topology;

pub use core::sync::atomic::Ordering;
pub use error::{MaskError, RefusalKind, SchedParamsError, SignalError, SpawnError};
pub use id::fresh_pool_id;
pub use lane::Lane;
pub use late::Late;
pub use machine::{Machine, Uniform, Usage};
pub use memory::{Atomic, Lock, Memory, SharedCell};
pub use names::{NAME_BYTES_MAX, NAMES_MAX, kept_name};
pub use omission::Omission;
#[cfg(feature = "hosted")]
pub use os::HostedThread;
pub use os::Os;
pub use padded::Padded;
pub use polling::{Poll, Polling};
pub use sched_params::{Class, SchedParams, Uclamp};
pub use signal::{NoSignal, OnSignal, Signal};
pub use threads::{Parker, Platform, Thread, ThreadSpec};
pub use topology::{CpuPlace, CpuSet, Distance, Limits, Quota, Topology};
#[cfg(feature = "machine")]
pub use topology::{Plan, PlannedWorker};
