//! Recordings as programs: run again on a simulated machine, as they were and with a change.
//!
//! [`Program::of`] turns a recording's threads into segments: work (the time that they ran, times the speed
//! of the CPU), waits for the threads that woke them at the points of their work where they did, and sleeps
//! that a timer ended. [`play()`] runs it on a simulated machine. First as it was: the differences to the
//! recording ([`Difference`]) say how far the answer to a change can be trusted. Then with a [`Change`].
//!
//! Invariants
//! - What a recording does not hold is in [`Program::assumed`], in words.
//! - The replay of a simulator's recording on the same machine, under the same policy, has the same switches.
//!   (Where CPUs differ in speed, work is rounded to a nanosecond, and they may differ.)
//! - A replay is a function of the program and the seed.

mod build;
mod change;
mod compare;
mod pieces;
mod play;
mod program;
mod text;
mod turns;

pub use build::{BuildOptions, Unplayable};
pub use change::{BadChange, Change, check_policy, length};
pub use compare::{Difference, TRUSTED};
pub use play::{Played, play};
pub use program::{Program, ProgramThread, PutAside, Stretch, WaitPlace};
