//! The `paceline` command: frames on the job system, and the job system against its peers.
//!
//! Data goes to standard output, talk and progress to standard error. Exit code 0: fine; 1: the
//! thing failed or a bound was missed; 2: bad usage or bad input, with one line that says what,
//! where, and what to do. A reader that has gone away (`paceline … | head`) is success.

mod commands;
mod failure;
mod help;
mod html;
mod jobs;
mod kernel;
mod load;
mod output;
mod pace;
mod plot;
mod progress;

use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::dispatch(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
