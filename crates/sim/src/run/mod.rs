//! Programs on the simulated kernel: stacks, steps, and the operations of programs.

pub(crate) mod ambient;
mod ending;
pub(crate) mod engine;
mod fiber;
mod life;
pub(crate) mod memory;
pub(crate) mod parker;
mod tag;
pub(crate) mod thread;
mod waits;
