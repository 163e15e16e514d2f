//! A kernel for tests of policies: a virtual clock, CPUs, and tasks that are tables.
//!
//! It drives any [`Class`](crate::Class) by the order of calls in [`class`](crate::class), without threads
//! and without costs: a switch takes no time, an interrupt arrives at once. So the outcome is the policy's
//! doing alone, to the nanosecond.
//!
//! - [`script`]: the behaviour of tasks, and changes from outside;
//! - [`machine`]: the kernel, which runs scripts; its knowledge is in [`state`], what comes from outside in
//!   [`changes`];
//! - [`seen`]: the outcome;
//! - [`still`]: CPUs on which nothing happens, to ask a class a single question.

mod changes;
mod machine;
mod script;
mod seen;
mod state;
mod still;
mod tests;

pub(crate) use machine::{Machine, Shape, run};
pub(crate) use script::{Change, SPIN, Script, Step, ms, us};
pub(crate) use seen::{Stint, everybody_got_its_time, letters, shares, switches};
pub(crate) use still::Still;
