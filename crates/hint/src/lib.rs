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

mod layout;
#[cfg(all(test, paceline_models, not(miri)))] // See Cargo.toml.
mod models;
mod page;
mod reader;
mod slot;

pub use layout::{LINE_WORDS, MAGIC, Run, VERSION, WAITS_MAX};
pub use page::Page;
pub use reader::{Entry, Skipped, read_page};
pub use slot::Slot;
