//! `cargo xtask check-targets`: the libraries and the commands compile for systems we cannot run here.
//!
//! `cargo check`, and `cargo build` of a library, need the target's standard library and no linker. So one
//! machine can do all. WebAssembly can be run as well, where there is node (`wasm.rs`).

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;

use crate::context::Context;
use crate::process::{self, Manner};
use crate::wasm;

/// The targets that Paceline promises to compile for.
const TARGETS: &[&str] = &[
    "aarch64-linux-android",
    "aarch64-unknown-linux-gnu",
    "x86_64-pc-windows-msvc",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
];

/// The targets that the job system is built for, and not only checked: some mistakes show when constants are
/// computed.
const BUILT: &[&str] = &[
    "i686-unknown-linux-gnu",
    "armv7-unknown-linux-gnueabihf",
    "x86_64-unknown-linux-musl",
    "wasm32-unknown-unknown",
    "wasm32-wasip1",
    "wasm32-wasip1-threads",
];

/// The packages that have to compile there.
const PACKAGES: &[&str] = &[
    "paceline-event",
    "paceline-platform",
    "paceline",
    "paceline-workload",
    "paceline-cli",
    "paceline-bench",
];

/// The packages that are built for [`BUILT`], where the commands have no place.
const LIBRARIES: &[&str] = &["paceline", "paceline-workload"];

/// How long it may be silent to get one standard library, and to check all packages for one target.
const ADD_SILENCE: Duration = Duration::from_secs(5 * 60);
const CHECK_SILENCE: Duration = Duration::from_secs(10 * 60);

/// The options of `cargo xtask check-targets`.
#[derive(Args)]
#[command(after_help = "\
Missing targets are added with `rustup target add`; one that cannot be added is reported as not \
available and does not fail the check.")]
pub(crate) struct Options {
    /// Check these targets instead of the whole list
    #[arg(long, num_args = 1.., value_name = "TRIPLE", default_values_t = all_targets())]
    target: Vec<String>,
    /// These packages instead of the libraries and, where programs run, the commands
    #[arg(long, short, num_args = 1.., value_name = "NAME")]
    package: Vec<String>,
}

fn all_targets() -> Vec<String> {
    owned(&[TARGETS, BUILT].concat())
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Checks each target; whether all that are available compile.
pub(crate) fn run(context: &Context, options: &Options) -> Result<bool, String> {
    let installed = installed();
    let mut passed = true;
    for target in &options.target {
        let begin = Instant::now();
        let (word, note, text) = match add(context, &installed, target) {
            Err(why) => ("not available", "", why),
            Ok(()) => match check(context, target, &options.package) {
                Ok(note) => ("ok", note, String::new()),
                Err(failure) => {
                    passed = false;
                    ("failed", "", failure)
                }
            },
        };
        let seconds = begin.elapsed().as_secs_f64();
        let line = format!("{target:<29} {word:<13} {seconds:>6.1} s  {note}");
        println!("{}", line.trim_end());
        if !text.is_empty() {
            println!("{}", text.trim_end());
        }
    }
    Ok(passed)
}

/// Targets whose standard library is there.
fn installed() -> Vec<String> {
    let output = Command::new("rustup")
        .args(["target", "list", "--installed"])
        .output();
    output.map_or_else(
        |_| Vec::new(),
        |output| {
            String::from_utf8_lossy(&output.stdout)
                .lines()
                .map(str::to_owned)
                .collect()
        },
    )
}

/// Makes the target's standard library available, or says why it is not.
fn add(context: &Context, installed: &[String], target: &str) -> Result<(), String> {
    if installed.iter().any(|have| have == target) {
        return Ok(());
    }
    let mut command = context.command("rustup");
    command.args(["target", "add", target]);
    let outcome = process::run(
        command,
        Manner {
            silence: ADD_SILENCE,
            stream: false,
            apart: false,
        },
    );
    outcome.failure.map_or(Ok(()), |why| {
        Err(format!(
            "$ rustup target add {target}\n{}{why}",
            outcome.output
        ))
    })
}

/// Checks or builds the packages for the target, and runs what can be run; `Ok` may hold a note about that,
/// `Err` is all that was printed. `packages`: instead of the usual ones, and nothing runs.
fn check(context: &Context, target: &str, packages: &[String]) -> Result<&'static str, String> {
    let (verb, usual) = if BUILT.contains(&target) {
        ("build", LIBRARIES)
    } else {
        ("check", PACKAGES)
    };
    if !packages.is_empty() {
        let named = packages.iter().map(String::as_str).collect::<Vec<_>>();
        return cargo(context, verb, target, &options_for(&named)).map(|()| "");
    }
    cargo(context, verb, target, &options_for(usual))?;
    let has_run = wasm::check(context, target)?;
    Ok(match (has_run, target.starts_with("wasm")) {
        (true, _) => "its checks ran in node",
        (false, true) => "its checks were built and not run: node is not available",
        (false, false) => "",
    })
}

/// The packages as options of cargo's.
fn options_for<'a>(packages: &[&'a str]) -> Vec<&'a str> {
    packages
        .iter()
        .flat_map(|package| ["-p", package])
        .collect()
}

/// Where builds for other systems go.
pub(crate) fn folder(context: &Context) -> PathBuf {
    context.target.join("check-targets")
}

/// Runs one of cargo's commands for the target; `Err` is all that it printed.
pub(crate) fn cargo(
    context: &Context,
    verb: &str,
    target: &str,
    arguments: &[&str],
) -> Result<(), String> {
    let mut command = context.command("cargo");
    command.args([verb, "--target", target, "--target-dir"]);
    command.arg(folder(context)).args(arguments);
    // Code for another system that is never built here collects warnings; they count.
    command.env("RUSTFLAGS", "-D warnings");
    let shown = format!("cargo {verb} --target {target} {}", arguments.join(" "));
    let outcome = process::run(
        command,
        Manner {
            silence: CHECK_SILENCE,
            stream: false,
            apart: false,
        },
    );
    outcome.failure.map_or(Ok(()), |why| {
        Err(format!("$ {shown}\n{}{why}", outcome.output))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The facade has one file per kind of system; each kind has to be in the list.
    #[test]
    fn each_kind_of_system_is_checked() {
        for kind in ["linux-gnu", "android", "windows", "apple"] {
            assert!(TARGETS.iter().any(|target| target.contains(kind)), "{kind}");
        }
    }
}
