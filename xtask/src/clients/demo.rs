//! Programs in the words of another library, on its own threads and on ours, in turns.

use std::path::PathBuf;
use std::process::Command;

use super::beside::{Beside, Surroundings};
use super::table::{Measured, load, print, say_load, take};
use super::unpack::{folder, fresh};
use super::{SILENCE, Tested};
use crate::context::Context;
use crate::counts::Counts;
use crate::process;

/// A package of programs, and what takes the place of one that it depends on.
pub(super) struct Demo {
    /// The library's name.
    pub(super) library: &'static str,
    /// The package, and its program: a folder in `clients`.
    programs: &'static str,
    /// The package whose place ours takes, as cargo calls it, and ours: a folder in `clients`.
    patched: (&'static str, &'static str),
}

pub(super) const RAYON: Demo = Demo {
    library: "rayon",
    programs: "rayon-demo",
    patched: ("rayon-core", "rayon-core"),
};

pub(super) const BEVY: Demo = Demo {
    library: "bevy",
    programs: "bevy-demo",
    patched: ("bevy_tasks", "bevy-tasks"),
};

/// On whose threads programs run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Threads {
    Own,
    Ours,
}

impl Demo {
    /// Builds both, runs them in turns, and prints a table. Whether they computed the same.
    pub(super) fn measure(
        &self,
        context: &Context,
        steps: u32,
        rounds: u32,
        beside: Option<Beside>,
    ) -> Result<bool, String> {
        let both = [Threads::Own, Threads::Ours];
        let programs = [
            self.build(context, both[0], "release")?,
            self.build(context, both[1], "release")?,
        ];
        let before = load();
        let around = Surroundings::begin(context, beside)?;
        let mut measured = Measured::new();
        for _ in 0..rounds {
            for (pool, program) in programs.iter().enumerate() {
                for line in self.lines(around.command(context, program), steps)? {
                    take(&line, pool, &mut measured)
                        .ok_or_else(|| format!("not a result: {line}"))?;
                }
            }
        }
        drop(around);
        let same = print(self.library, &mut measured);
        say_load(before);
        Ok(same)
    }

    /// Runs the programs on our threads alone, a few steps of each: they say themselves if they go wrong.
    pub(super) fn check(&self, context: &Context) -> Result<Tested, String> {
        let program = self.build(context, Threads::Ours, "dev")?;
        let passed = self.lines(context.command(&program), 3)?.len();
        let counts = Counts {
            passed: passed as u64,
            ..Counts::default()
        };
        Ok(Tested {
            client: self.programs,
            counts,
        })
    }

    /// What the programs print: a line each.
    fn lines(&self, mut command: Command, steps: u32) -> Result<Vec<String>, String> {
        command.arg(steps.to_string());
        let output = process::done(command, SILENCE, self.programs)?;
        Ok(output.lines().map(str::to_owned).collect())
    }

    /// Builds a copy of the programs, since each of the two wants a lock file of its own.
    fn build(&self, context: &Context, threads: Threads, profile: &str) -> Result<PathBuf, String> {
        let whose = if threads == Threads::Own {
            self.library
        } else {
            "paceline"
        };
        let name = format!("demo-{}-{whose}", self.library);
        let clients = context.root.join("clients");
        let package = fresh(context, &clients.join(self.programs), &name)?;
        let target = folder(context).join(format!("target-{name}"));
        let mut command = context.command("cargo");
        command
            .args(["build", "--profile", profile])
            .current_dir(&package);
        command
            .env("CARGO_TARGET_DIR", &target)
            .env_remove("RUSTFLAGS");
        if threads == Threads::Ours {
            let (patched, ours) = self.patched;
            let patch = format!("patch.crates-io.{patched}.path={:?}", clients.join(ours));
            command.args(["--config", &patch]);
        }
        process::done(command, SILENCE, "cargo build")?;
        let folder = if profile == "dev" { "debug" } else { profile };
        let program = target.join(folder).join(self.programs);
        Ok(program.with_extension(std::env::consts::EXE_EXTENSION))
    }
}
