//! Hints for a scheduler in user space: which thread waits for which, and what each of them runs.
//!
//! A scheduler of `sched_ext` sees threads that become ready, and not why others sleep. A program knows. Here
//! it writes it down, in memory that the scheduler reads without a system call on either side:
//!
//! - A [`Page`] is one process's memory. A thread has a [`Slot`] of it, in which it publishes what it runs
//!   and, when it blocks, the threads that run what it waits for.
//! - [`read_page`] is the scheduler's look at a page. It trusts nothing that it reads.
//! - A `Segment` (Linux) is the memory of all pages, mapped by the scheduler before it starts. A broker
//!   hands them to processes, through a socket, and takes them back when these end. [`connect`] is a
//!   program's way to its page.
//!
//! Hints are statements, not facts: nothing that a scheduler promises to others may rest on their truth. The
//! format, the socket's protocol and which side may write what are in the README of this crate, precisely
//! enough for another job system to take part.
//!
//! Invariants
//! - A slot is written by one thread, which neither waits, nor allocates, nor calls the system for it.
//! - A reader passes over each slot once, whatever is written meanwhile. It never waits for a writer.
//! - Which process has a page a reader learns from memory that the process cannot write.

/// The README's programs, as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
mod elsewhere;
mod error;
mod layout;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod linux;
#[cfg(all(test, paceline_models, not(miri)))] // See Cargo.toml.
mod models;
mod page;
mod reader;
mod slot;

use std::env;
use std::path::PathBuf;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
pub use elsewhere::connect;
pub use error::{ConnectError, ConnectErrorKind};
pub use layout::{LINE_WORDS, MAGIC, Run, VERSION, WAITS_MAX};
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
pub use linux::{Broker, BrokerProcess, Segment, Shape, connect, is_thread_of};
pub use page::Page;
pub use reader::{Entry, Skipped, read_page};
pub use slot::Slot;

/// Where a broker listens, unless the environment variable [`PATH_VARIABLE`] says otherwise.
pub const DEFAULT_PATH: &str = "/run/paceline/hints.sock";

/// The environment variable with the path of the broker's socket.
pub const PATH_VARIABLE: &str = "PACELINE_HINTS";

/// Where a broker is to be found: what the environment says, or the [default](DEFAULT_PATH).
pub fn path() -> PathBuf {
    let asked = env::var_os(PATH_VARIABLE).filter(|path| !path.is_empty());
    asked.map_or_else(|| DEFAULT_PATH.into(), PathBuf::from)
}
