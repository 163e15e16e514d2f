//! Programs for the job system: the same frames on the machine at hand and on simulated ones.
//!
//! - [`graph`]: jobs with dependencies. Generated after source 001, read from a file, or taken from
//!   the [`library`](graph::library) of measured ones; measured (work, span, width) and run.
//! - [`baseline`]: the same graphs on three other job systems, after source 001.
//! - [`naive`]: ways to wait that programs use and should not, after sources 000 and 002.
//! - [`messages`]: threads with priorities that send each other messages, after source 003.
//! - [`gang`]: threads that begin together, such as these.
//! - [`mandelbrot`]: the grid of source 002, one job per tile.
//! - [`raster`]: the work that source 000 was profiled with: software occlusion culling.
//! - [`Scene`]: the interface of these, and how frames of them are watched.
//! - [`pace`]: when frames begin.
//! - [`busy`]: work of a wanted length that is real computation.
//!
//! Invariant: every workload can tell whether it was run correctly. A graph's checksum, a grid's
//! counts and a depth buffer's bits are equal to those of a serial run, whatever the number of workers
//! and the platform.
#![forbid(unsafe_code)]

pub mod baseline;
pub mod busy;
pub mod crowd;
mod flag;
pub mod gang;
pub mod graph;
pub mod mandelbrot;
pub mod messages;
pub mod naive;
pub mod pace;
pub mod raster;
mod scene;
mod words;

pub use event::Random;
pub use scene::{NewJobs, Picture, Scene, Unwatched, Watch, WatchBodies, WrongFrame};
