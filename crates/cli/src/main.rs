//! The `paceline` command: frames on the job system, and where the time went.
//!
//! Data goes to standard output, talk and progress to standard error. Exit code 0: fine; 1: the
//! thing failed or a bound was missed; 2: bad usage or bad input, with one line that says what,
//! where, and what to do. A reader that has gone away (`paceline … | head`) is success.

mod commands;
mod html;
mod kernel;

use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::dispatch(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("paceline"),
    }
}
