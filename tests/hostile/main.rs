//! `cargo xtask hostile`: programs written to break the job system.
//!
//! - `programs/`: random programs over the whole public API, each compared with a serial evaluation;
//! - `liveness/`: random graphs whose jobs must all be run by idle workers, because no other thread helps;
//! - `misuse/`: the mistakes that programs make, each with the error that it must get.
//!
//! The process that is started is the supervisor. It starts one more process for each kind (for each case of
//! misuse), so that a hang or a crash ends one of them, is reported, and the rest of the campaign goes on.
//!
//! Exit code 0: nothing is wrong; 1: something is; 2: bad usage.

mod combination;
mod fault;
mod line;
mod liveness;
mod memory;
mod misuse;
mod options;
mod pace;
mod programs;
mod progress;
mod session;
mod standstill;
mod summary;
mod supervisor;
mod threads;
mod watchdog;

use std::process::ExitCode;

use options::Options;

fn main() -> ExitCode {
    let options = Options::read();
    if options.inside {
        session::run(&options)
    } else {
        supervisor::run(&options)
    }
}
