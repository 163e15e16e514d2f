//! What runs on the job system: the same frames on the machine at hand and on simulated ones.
//!
//! - [`graph`]: jobs with dependencies. Generated after source 001, read from a file, or taken from
//!   the [`library`](graph::library) of measured ones; measured (work, span, width) and run.
//! - [`mandelbrot`]: the grid of source 002, one job per tile.
//! - [`busy`]: work of a wanted length that is real computation.
//!
//! Invariant: every workload can tell whether it was run correctly. A graph's checksum and a grid's
//! counts are equal to those of a serial run, whatever the number of workers and the platform.
#![forbid(unsafe_code)]

pub mod busy;
pub mod graph;
pub mod mandelbrot;
mod random;
mod words;

pub use random::Random;
