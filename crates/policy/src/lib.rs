//! Kernel scheduling policies as plain integer code.
//!
//! A policy decides which task runs where and for how long, and nothing else: it is told the time, it draws
//! no random numbers but from a given seed, and it never blocks. So one policy can be tested with a table of
//! calls, run on a simulated machine, and compared with a real kernel.
//!
//! There are two kinds:
//!
//! - a [`Class`] sits inside a kernel, as Linux's fair class or an RTOS's scheduler do;
//! - an `Ops` is a scheduler outside of the kernel that gets messages and answers with dispatches, as
//!   `sched_ext` has them; a class of its own carries them into the kernel.
//!
//! [`named()`] makes each by its name; [`CATALOGUE`] lists them.
//!
//! The models are written from documented behaviour. Each file names its model and the sources of its
//! numbers, and says where the policy is bad.
//!
//! Invariants
//! - No unsafe code, no floating point, no clock, no iteration in hash order: equal calls give equal
//!   answers on every machine.
//! - A task is queued on at most one CPU; the one that runs belongs to its CPU's queue.
#![forbid(unsafe_code)]

mod attr;
pub mod class;
mod cpus;
mod decisions;
mod linux;
mod named;
pub mod ops;
pub mod random;
pub mod rtos;
#[cfg(test)]
mod testing;

pub use attr::{Attr, Discipline};
pub use class::{Class, Dequeue, Enqueue, Idleness};
pub use cpus::{Cpus, Mask, PACKS_AFTER, Placement, place};
pub use decisions::Decisions;
pub use event::{Cpu, Task};
pub use named::{CATALOGUE, Entry, FAMILIES, Family, Setting, about, named};
