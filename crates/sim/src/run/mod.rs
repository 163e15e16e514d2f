//! Programs on the simulated kernel: stacks, steps, and what a program can do.

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
