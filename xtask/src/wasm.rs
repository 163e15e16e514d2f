//! The checks of `tests/anywhere` in WebAssembly: built for each of its targets, and run in node.

use std::time::Duration;

use crate::context::Context;
use crate::process::{self, Manner};
use crate::targets;
use crate::tools;

/// What the checks need beyond their target's standard library.
pub(crate) const RUNNER: &str = "node";

/// What the stage needs.
pub(crate) const NEEDS: &[&str] = &[RUNNER, tools::WASM];

/// The targets of the stage: those without threads.
pub(crate) const STAGE: &[&str] = &["wasm32-unknown-unknown", "wasm32-wasip1"];

/// The package, and what calls its files.
const PACKAGE: &str = "paceline-anywhere";
const SCRIPT: &str = "tests/anywhere/run.mjs";

/// Checks take a part of a second. One that hangs says nothing.
const RUN_SILENCE: Duration = Duration::from_secs(60);

/// How the checks are built for a target.
struct Build {
    target: &'static str,
    /// cargo's command, and what it builds of the package.
    command: &'static str,
    what: &'static [&'static str],
    file: &'static str,
}

const PROGRAM: &[&str] = &["--bin", "anywhere"];

const BUILDS: &[Build] = &[
    // A library in the form that a host loads. On other systems it is none.
    Build {
        target: "wasm32-unknown-unknown",
        command: "rustc",
        what: &["--lib", "--crate-type", "cdylib"],
        file: "paceline_anywhere.wasm",
    },
    Build {
        target: "wasm32-wasip1",
        command: "build",
        what: PROGRAM,
        file: "anywhere.wasm",
    },
    Build {
        target: "wasm32-wasip1-threads",
        command: "build",
        what: PROGRAM,
        file: "anywhere.wasm",
    },
];

/// Builds and runs the checks for this target, if there is a way to; `Ok(false)`: there is none.
pub(crate) fn check(context: &Context, target: &str) -> Result<bool, String> {
    let Some(build) = BUILDS.iter().find(|build| build.target == target) else {
        return Ok(false);
    };
    let arguments = [&["-p", PACKAGE], build.what].concat();
    targets::cargo(context, build.command, target, &arguments)?;
    if tools::missing(&[RUNNER]).is_some() {
        return Ok(false);
    }
    let folder = targets::folder(context).join(target).join("debug");
    let mut command = context.command(RUNNER);
    command.args(["--no-warnings", SCRIPT]);
    command.arg(folder.join(build.file));
    let manner = Manner {
        silence: RUN_SILENCE,
        stream: false,
        apart: false,
    };
    let outcome = process::run(command, manner);
    outcome.failure.map_or(Ok(true), |why| {
        let output = outcome.output;
        Err(format!("$ {RUNNER} {SCRIPT} {}\n{output}{why}", build.file))
    })
}

/// The stage `wasm`: the checks without threads.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    for target in STAGE {
        let has_run = check(context, target).map_err(|failure| format!("{target}: {failure}"))?;
        if !has_run {
            return Err(format!("{target}: there is no way to run it"));
        }
    }
    Ok(format!("{} ran", STAGE.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what the stage runs can be run, and its standard library is installed. Method: the tables.
    #[test]
    fn what_the_stage_runs_is_built() {
        for target in STAGE {
            assert!(BUILDS.iter().any(|build| build.target == *target));
            assert!(tools::WASM_TARGETS.contains(target), "{target}");
        }
    }
}
