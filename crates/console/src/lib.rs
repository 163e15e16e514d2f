//! Shared parts of the commands `paceline` and `paceline-bench`: reading a command line, and writing to a
//! terminal.
//!
//! - [`usage`]: a command line; bad usage is one line;
//! - [`Failure`]: the end of a command that did not succeed, with its exit code;
//! - [`output`]: data on standard output, messages on standard error, and whole files;
//! - [`Progress`]: a bar for long work;
//! - [`plot`]: the fonts, colours and axes of all pictures;
//! - [`help`]: the kernel's help by the names that options use;
//! - [`OnJobs`]: reading traces on the job system.
//!
//! Data goes to standard output, messages and progress to standard error. Exit code 0: success; 1: the run
//! failed or a bound was missed; 2: bad usage or bad input, with one line that says what, where, and what to
//! do. A reader that has gone away (`paceline … | head`) is success.
#![forbid(unsafe_code)]

mod failure;
pub mod help;
mod jobs;
pub mod output;
pub mod plot;
mod progress;
pub mod usage;

pub use failure::Failure;
pub use jobs::OnJobs;
pub use progress::Progress;
