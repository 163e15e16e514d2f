//! `cargo xtask package`: the crates can be packaged, and a stranger's program builds from the packages.
//!
//! What works in the workspace may lack something in a package: a file, a version, a name that only the
//! workspace knows. So the packages are unpacked outside of it, and beside them lies a package of a stranger,
//! who depends on `paceline` alone (`stranger.rs`). It consists of all that the crate shows its users: the
//! examples in its documentation and its README (`snippets.rs`), the programs in `examples/`, and a first
//! program of the stranger's own (`xtask/stranger`), which names what signatures mention.

mod snippets;
mod stranger;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cargo_metadata::{DependencyKind, Package};
use clap::Args;

use crate::context::{Context, is_published};
use crate::counts::Counts;
use crate::process::{self, Manner};

/// The package that users depend on.
const PACELINE: &str = "paceline";

/// Where `cargo package` puts packages, below the target folder.
const PACKAGES: &str = "packages";

/// How long a command may be silent.
const SILENCE: Duration = Duration::from_secs(5 * 60);

/// The commands in the folder of the stranger, and what each of them shows.
const COMMANDS: &[(&str, &str)] = &[
    (
        "cargo run --quiet --package stranger",
        "a first program with paceline as its only dependency",
    ),
    (
        "cargo build --package stranger --examples",
        "the shipped examples",
    ),
    (
        "cargo test --doc --features stranger/all --package stranger --package paceline-event \
         --package paceline-platform",
        "the examples in the documentation and the READMEs",
    ),
    (
        "cargo check --tests --package paceline --package paceline-event --package paceline-platform",
        "the unit tests that are part of the packages",
    ),
    (
        "cargo check --package paceline --no-default-features",
        "the job system without default features",
    ),
];

/// The options of `cargo xtask package`.
#[derive(Args, Default)]
#[command(after_help = "\
Packages are made of the files as they are, committed or not. Nothing is sent anywhere.")]
pub(crate) struct Options {
    /// Compile each package, those of the commands too (some minutes)
    #[arg(long)]
    verify: bool,
    /// Leave the stranger's folder where it is and say its name
    #[arg(long)]
    keep: bool,
}

/// Packages the crates and builds from the packages; whether all of that works.
pub(crate) fn run(context: &Context, options: &Options) -> Result<bool, String> {
    match check(context, options) {
        Ok(note) => println!("package: {note}"),
        Err(failure) => {
            println!("{}", failure.trim_end());
            return Ok(false);
        }
    }
    Ok(true)
}

/// The stage `package`.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    check(context, &Options::default())
}

fn check(context: &Context, options: &Options) -> Result<String, String> {
    let published: Vec<&Package> = context
        .metadata
        .packages
        .iter()
        .filter(|package| is_published(package))
        .collect();
    pack(context, &published, options.verify)?;
    let scratch = Scratch::new(options.keep)?;
    let used = used_by(&published, PACELINE);
    for package in &used {
        unpack(context, package, &scratch.folder)?;
    }
    stranger::write(&context.root, &scratch.folder, &used)?;
    let mut counts = Counts::default();
    for (line, shows) in COMMANDS {
        counts += build(context, &scratch.folder, line)
            .map_err(|failure| format!("a stranger's build fails ({shows}):\n{failure}"))?;
    }
    Ok(format!(
        "{} packages; a stranger's program builds from {} of them, and {} of their examples run",
        published.len(),
        used.len(),
        counts.passed
    ))
}

/// The package of this name and those of the workspace that it depends on.
fn used_by<'a>(published: &[&'a Package], name: &str) -> Vec<&'a Package> {
    let mut found: Vec<&Package> = Vec::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        let Some(package) = published.iter().find(|package| *package.name == name) else {
            continue;
        };
        if found.iter().any(|known| known.name == package.name) {
            continue;
        }
        found.push(package);
        let built = |kind| kind != DependencyKind::Development;
        let needed = package.dependencies.iter().filter(|line| built(line.kind));
        open.extend(needed.map(|line| line.name.clone()));
    }
    found
}

/// Runs `cargo package`. `verify`: each package is compiled, too.
fn pack(context: &Context, packages: &[&Package], verify: bool) -> Result<(), String> {
    let mut command = context.command("cargo");
    // What is checked are the files as they are; publishing is another matter.
    command.args(["package", "--allow-dirty", "--target-dir"]);
    command.arg(context.target.join(PACKAGES));
    if !verify {
        command.arg("--no-verify");
    }
    for package in packages {
        command.args(["--package", &package.name]);
    }
    process::done(command, SILENCE, "cargo package").map(drop)
}

/// Unpacks a package into a folder of its own, `NAME-VERSION`.
fn unpack(context: &Context, package: &Package, into: &Path) -> Result<(), String> {
    let name = format!("{}.crate", unpacked_name(package));
    let mut packed = context.target.join(PACKAGES);
    packed.extend(["package", &name]);
    let mut command = context.command("tar");
    command.arg("-xzf").arg(packed).arg("-C").arg(into);
    process::done(command, SILENCE, "tar").map(drop)
}

/// The folder in a package.
fn unpacked_name(package: &Package) -> String {
    format!("{}-{}", package.name, package.version)
}

/// Runs a command in the stranger's folder.
fn build(context: &Context, folder: &Path, line: &str) -> Result<Counts, String> {
    let mut words = line.split_whitespace();
    let mut command = context.command(words.next().unwrap_or_default());
    command.args(words).current_dir(folder);
    command.env("CARGO_TARGET_DIR", folder.join("target"));
    let manner = Manner {
        silence: SILENCE,
        stream: false,
        apart: false,
    };
    let outcome = process::run(command, manner);
    match outcome.failure {
        None => Ok(outcome.counts),
        Some(why) => Err(format!("$ {line}\n{}{why}", outcome.output)),
    }
}

/// A folder outside of the workspace, which goes away.
struct Scratch {
    folder: PathBuf,
    keep: bool,
}

impl Scratch {
    fn new(keep: bool) -> Result<Scratch, String> {
        let mut name = OsString::from("paceline-stranger-");
        name.push(std::process::id().to_string());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Scratch { folder, keep })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.keep {
            println!(
                "package: the stranger's folder is {}",
                self.folder.display()
            );
        } else {
            // What is left behind is in the system's folder for such things.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what users of `paceline` compile is what is unpacked, and what must not be published is not.
    /// Method: this workspace.
    #[test]
    fn the_packages_of_a_user_are_known() {
        let context = Context::load().expect("xtask is in a workspace");
        let packages = context.metadata.packages.iter();
        let (published, kept): (Vec<&Package>, Vec<_>) =
            packages.partition(|package| is_published(package));
        let names = |packages: &[&Package]| {
            let mut names: Vec<String> = packages
                .iter()
                .map(|package| package.name.to_string())
                .collect();
            names.sort();
            names
        };
        let used = used_by(&published, PACELINE);
        assert_eq!(
            names(&used),
            [
                "paceline",
                "paceline-event",
                "paceline-hint",
                "paceline-platform",
                "paceline-trace"
            ]
        );
        let kept = names(&kept);
        for name in ["paceline-testkit", "paceline-tests", "xtask"] {
            assert!(kept.iter().any(|kept| kept == name), "{name}");
        }
    }
}
