//! `paceline-scx`: a scheduling policy of Paceline's in charge of this machine, until it is told to stop.
//!
//! Exit codes: 0 it was told to stop, 1 it could not begin or the kernel threw it out, 2 bad usage.

mod bpf;
mod bpf_intf;
mod bpf_skel;
mod hints;
mod kernel;
mod options;
mod run;

use std::process::ExitCode;

use clap::Parser;

use options::Options;

fn main() -> ExitCode {
    match run::run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("paceline-scx: {message}");
            ExitCode::from(1)
        }
    }
}
