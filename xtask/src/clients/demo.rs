//! Programs in rayon's words (`clients/rayon-demo`), on rayon's own core and on ours, in turns.

use std::path::{Path, PathBuf};

use super::SILENCE;
use super::table::{Measured, load, print, say_load, take};
use super::unpack::{folder, fresh};
use crate::context::Context;
use crate::process;

/// Builds both, runs them in turns, and prints a table. Whether they computed the same.
pub(super) fn run(context: &Context, steps: u32, rounds: u32) -> Result<bool, String> {
    let ours = context.root.join("clients/rayon-core");
    let programs = [
        build(context, "demo-rayon", None)?,
        build(context, "demo-paceline", Some(&ours))?,
    ];
    let before = load();
    let mut measured = Measured::new();
    for _ in 0..rounds {
        for (core, program) in programs.iter().enumerate() {
            let mut command = context.command(program);
            command.arg(steps.to_string());
            let output = process::done(command, SILENCE, "rayon-demo")?;
            for line in output.lines() {
                take(line, core, &mut measured).ok_or_else(|| format!("not a result: {line}"))?;
            }
        }
    }
    let same = print("rayon", &mut measured);
    say_load(before);
    Ok(same)
}

/// Builds a copy of the programs, since each core wants a lock file of its own.
fn build(context: &Context, name: &str, core: Option<&Path>) -> Result<PathBuf, String> {
    let package = fresh(context, &context.root.join("clients/rayon-demo"), name)?;
    let target = folder(context).join(format!("target-{name}"));
    let mut command = context.command("cargo");
    command.args(["build", "--release"]).current_dir(&package);
    command
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("RUSTFLAGS");
    if let Some(core) = core {
        let patch = format!("patch.crates-io.rayon-core.path={core:?}");
        command.args(["--config", &patch]);
    }
    process::done(command, SILENCE, "cargo build")?;
    let program = target.join("release/rayon-demo");
    Ok(program.with_extension(std::env::consts::EXE_EXTENSION))
}
