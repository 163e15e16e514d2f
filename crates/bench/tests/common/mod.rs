//! Running the command, in an environment without settings for job systems.

use std::path::Path;
use std::process::Command;

/// The built program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_paceline-bench");

/// This program, or a copy of it, with these arguments.
pub(crate) fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_remove("PACELINE_WAIT")
        .env_remove("PACELINE_WORKERS")
        .env_remove("PACELINE_CPUS")
        .env_remove("PACELINE_PLACEMENT")
        .env("RUST_BACKTRACE", "0");
    command
}
