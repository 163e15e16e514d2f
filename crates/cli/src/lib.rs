//! The `paceline` command: frames on the job system, and where the time went.
//!
//! Data goes to standard output, talk and progress to standard error. Exit code 0: fine; 1: the
//! thing failed or a bound was missed; 2: bad usage or bad input, with one line that says what,
//! where, and what to do. A reader that has gone away (`paceline … | head`) is success.
//!
//! This library is the command, for its own program and for faces in other languages ([`face`]). It is no
//! interface for programs in Rust, and changes with every version: they use the crates that it is made of.

mod commands;
pub mod face;
mod family;
mod html;
mod kernel;
mod program;

use std::ffi::OsString;
use std::process::ExitCode;

use console::Failure;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    match commands::dispatch(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("paceline"),
    }
}

/// Runs a command line, with the name of the program, and returns the exit code.
pub fn run_line(line: Vec<OsString>) -> u8 {
    let Err(failure) = commands::dispatch(line) else {
        return 0;
    };
    let code = match failure {
        Failure::ReaderGone => 0,
        Failure::Failed(_) => 1,
        Failure::Usage(_) => 2,
    };
    failure.report("paceline");
    code
}
