//! The policies of crate `policy` as schedulers of a real kernel, by `sched_ext` and `scx_rustland_core`.
//!
//! - [`Core`] is what is used of `scx_rustland_core`, and of our BPF part around it;
//! - [`Adapter`] makes a `policy::ops::Kernel` of it: the same code decides here and in the simulator;
//! - [`Threads`] gives the kernel's thread numbers to tasks, and takes those of dead threads back.
//!
//! The program `paceline-scx` is in `main.rs` (feature `load`); the rest needs neither a kernel nor clang.
#![forbid(unsafe_op_in_unsafe_fn)]

mod adapter;
mod core;
mod threads;

pub use adapter::{Adapter, Counts};
pub use core::{Answer, Core, Message, PREEMPT, WAKEUP};
pub use threads::Threads;
