//! `paceline-scx`: a scheduling policy of Paceline's in charge of this machine, until it is told to stop.
//!
//! Exit codes: 0 it was told to stop, 1 it could not begin or the kernel threw it out, 2 bad usage.

mod bpf;
mod bpf_intf;
mod bpf_skel;
mod hints;
mod kernel;
mod machine;
mod options;
mod run;

use std::process::ExitCode;

use clap::Parser;

use options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(why) = options.misuse() {
        eprintln!("paceline-scx: {why}");
        return ExitCode::from(2);
    }
    match run::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("paceline-scx: {message}");
            ExitCode::from(1)
        }
    }
}
