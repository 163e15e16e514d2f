//! Recordings of scheduling, and the files they are kept in.
//!
//! A [`Recording`] has the known facts of one run: its threads, the events of the kernel and of the job
//! system on them, and findings that were added afterwards. It is the same for a run on the machine and for a
//! simulated one. [`read`] makes one of the files of other programs, [`write`](mod@write) turns it into files
//! that other programs read. Reading and explaining need the feature `read`, which is on by default. Without
//! it the crate only holds and writes recordings.
//!
//! Invariants
//! - No unsafe code, no clock, no threads: a recording in, bytes out, and equal recordings give equal bytes.
//!   Threads are the caller's, if it provides any ([`Executor`]), and change no result.
//! - No bytes make a reader panic, hang or take memory without bound. Unreadable parts are counted, see
//!   [`Recording::losses`].
//! - No recording makes a writer panic, whatever order or nonsense its events are in. Parts that cannot be
//!   written as they are, are counted, see [`write::Written`].
//! - Kernel events own the states of threads. The job system's events say what a thread was busy with, never
//!   whether it ran.
#![forbid(unsafe_code)]
// Readers use parts of what is written, and of the recording, that nothing else does.
#![cfg_attr(not(feature = "read"), allow(dead_code))]

#[cfg(feature = "read")]
mod executor;
#[cfg(feature = "read")]
pub mod explain;
mod layout;
#[cfg(all(test, feature = "read"))]
mod oracle;
#[cfg(feature = "read")]
pub mod read;
mod recording;
#[cfg(all(test, feature = "read"))]
mod script;
mod supplement;
mod throttle;
#[cfg(feature = "read")]
pub mod timeline;
pub mod write;

#[cfg(feature = "read")]
pub use executor::{Executor, Part, Serial};
pub use recording::{
    Annotation, Clock, Counter, CpuFacts, Loss, Losses, Mark, MarkKind, Name, Names, Origin,
    Process, Recording, Thread, Wakers, nice, realtime,
};
