//! The `paceline-bench` command: the job system and its peers on the same work.
//!
//! The rules, which `document` prints with every published result:
//!
//! - The work is the same, on the same number of threads that may execute it, the waiting thread included.
//!   Its result is checked.
//! - Subjects take turns in an order drawn anew for each round. The first round is thrown away.
//! - Each sample has a fresh pool, warmed up before the clock starts. So the placement of threads is part of
//!   the spread, not of the luck of one run.
//! - Medians have their spread beside them, and their ratio to the best peer.
//!
//! It is a program of its own, so that `paceline` is installed without the peers.

mod case;
mod command;
mod document;
mod frame_loop;
mod plain_threads;
mod plot;
mod pools;
mod readme;
mod report;
mod row;
mod rows;
mod session;
mod sleeper;
mod target;
mod tbb;
mod who;

use std::process::ExitCode;

fn main() -> ExitCode {
    match command::dispatch(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("paceline-bench"),
    }
}
