//! Recordings of scheduling, and the files they are kept in.
//!
//! A [`Recording`] is what is known of one run: its threads, what a kernel did with them, what the job
//! system did on them, and what was found out about it afterwards. It is the same for a run on the
//! machine and for a simulated one. [`read`] makes it of files that other programs wrote,
//! [`write`](mod@write) turns it into files that other programs read.
//!
//! Invariants
//! - No unsafe code, no clock, no threads: a recording in, bytes out, and equal recordings give equal
//!   bytes. Threads are the caller's, if it has any to give ([`Executor`]), and change no result.
//! - No bytes make a reader panic, hang or take memory without bound. What cannot be read is counted, see
//!   [`Recording::losses`].
//! - No recording makes a writer panic, whatever order or nonsense its events are in. What cannot be
//!   written as it is is counted, see [`write::Written`].
//! - Kernel events own the states of threads. The job system's events say what a thread was busy with,
//!   never whether it ran.
#![forbid(unsafe_code)]

mod executor;
pub mod explain;
#[cfg(test)]
mod oracle;
pub mod read;
mod recording;
#[cfg(test)]
mod script;
mod supplement;
mod throttle;
pub mod timeline;
pub mod write;

pub use executor::{Executor, Part, Serial};
pub use recording::{
    Annotation, Clock, Counter, CpuFacts, Loss, Losses, Mark, MarkKind, Name, Names, Origin,
    Process, Recording, Thread, Wakers, nice, realtime,
};
