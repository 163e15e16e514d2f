//! `cargo xtask validate`: compares the simulator with the kernel of the machine at hand.
//!
//! The program is `tests/validate`; here it is built, with optimizations, and given all arguments.

use std::process::{self, ExitStatus};

use clap::Args;

use crate::context::Context;

/// The options of `cargo xtask validate`: those of the program.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// `--help` shows what there is
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTIONS"
    )]
    arguments: Vec<String>,
}

/// Builds and runs the program; whether no bound was missed. Where it says that it was called wrongly, so
/// does this process.
pub(crate) fn run(context: &Context, options: &Options) -> Result<bool, String> {
    let mut command = context.command("cargo");
    command.args([
        "run",
        "--quiet",
        "--release",
        "-p",
        "paceline-tests",
        "--bin",
        "validate",
        "--",
    ]);
    command.args(&options.arguments);
    let ended = command
        .status()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    match code(ended)? {
        0 => Ok(true),
        1 => Ok(false),
        other => process::exit(other),
    }
}

fn code(ended: ExitStatus) -> Result<i32, String> {
    ended
        .code()
        .ok_or_else(|| format!("the comparison was ended by a signal: {ended}"))
}
