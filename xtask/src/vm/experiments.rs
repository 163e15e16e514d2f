//! `cargo xtask vm --experiment`: the real part of an experiment of `paceline`, in the machine, under Linux's
//! own scheduler and under each policy; beside it what the same experiment finds in the simulator.
//!
//! The simulated parts run on this machine, since they find the same everywhere. Which experiments there are,
//! and which of them have a real part, the program says itself.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::findings::{Found, Simulated};
use super::{Options, Vm, guest, write_page};
use crate::context::Context;
use crate::process::{self, Manner};

/// The program, below the target folder.
const PROGRAM: &str = "release/paceline";

/// How long the program may say nothing. All simulated parts of one experiment take some minutes.
const SILENCE: Duration = Duration::from_secs(30 * 60);

/// An experiment that was asked for, with what the simulator says.
struct Asked {
    name: String,
    simulated: Simulated,
}

/// Experiments with a real part, and the program that has them.
pub(super) struct Experiments<'a> {
    program: PathBuf,
    names: &'a [String],
}

impl Experiments<'_> {
    /// Those of these names, in a program that is built for it.
    ///
    /// # Errors
    /// In one line: a name that is none, or a program that does not build.
    pub(super) fn named<'a>(
        context: &Context,
        names: &'a [String],
    ) -> Result<Experiments<'a>, String> {
        let program = build(context)?;
        let list = said(context, &program, &["experiment", "--list", "--json"])?;
        check(names, &list)?;
        Ok(Experiments { program, names })
    }

    /// Runs what is simulated, boots, and prints the tables; whether all went well.
    ///
    /// # Errors
    /// In one line: a program that fails, a machine that cannot be had.
    pub(super) fn run(&self, context: &Context, options: &Options) -> Result<bool, String> {
        let mut vm = Vm::new(context, options.verbose)?;
        vm.programs.push(self.program.clone());
        let asked = self.simulated(context, options.quick)?;
        let (phases, later) = (options.phases, options.later);
        let script = guest::experiments(self.names, phases, later, options.quick);
        let mut passed = true;
        let mut pages = vec![String::new(); asked.len()];
        for &cpus in &options.cpus {
            let began = Instant::now();
            let found = Found::read(&vm.boot(cpus, &script)?)?;
            let minutes = began.elapsed().as_secs_f64() / 60.0;
            println!("vm: {cpus} CPUs, {minutes:.1} min\n\n{}\n", found.checks());
            passed &= found.all_well();
            for (asked, page) in asked.iter().zip(&mut pages) {
                let text = found.tables(&asked.name, &asked.simulated);
                println!("{}, {cpus} CPUs\n\n{text}", asked.name);
                *page += &format!("{}\n{text}\n", heading(cpus, options));
            }
        }
        if options.doc && passed {
            for (asked, page) in asked.iter().zip(&pages) {
                write_page(context, &asked.name, &format!("{}.\n\n{page}", vm.machine))?;
            }
        }
        Ok(passed)
    }

    /// What the simulator says of each.
    fn simulated(&self, context: &Context, quick: bool) -> Result<Vec<Asked>, String> {
        let mut asked = Vec::new();
        for name in self.names {
            println!("vm: simulating {name} on this machine");
            let mut words = vec!["experiment", name, "--sim", "--json"];
            words.extend(quick.then_some("--quick"));
            let text = said(context, &self.program, &words)?;
            asked.push(Asked {
                name: name.clone(),
                simulated: Simulated::read(&text).map_err(|why| format!("vm: {name}: {why}"))?,
            });
        }
        Ok(asked)
    }
}

fn heading(cpus: u32, options: &Options) -> String {
    let quick = if options.quick { " quick" } else { "" };
    format!(
        "{cpus} CPUs, {}{quick} runs under each scheduler:\n",
        options.phases
    )
}

/// Builds the program; where it is.
fn build(context: &Context) -> Result<PathBuf, String> {
    println!("vm: building paceline");
    let mut cargo = context.command("cargo");
    cargo.args(["build", "--release", "--quiet", "-p", "paceline-cli"]);
    let manner = Manner {
        silence: SILENCE,
        stream: true,
        apart: false,
    };
    match process::run(cargo, manner).failure {
        None => Ok(context.target.join(PROGRAM)),
        Some(failure) => Err(format!("vm: paceline does not build: {failure}")),
    }
}

/// What the program prints.
fn said(context: &Context, program: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = context.command(program);
    command.args(words);
    let manner = Manner {
        silence: SILENCE,
        stream: false,
        apart: true,
    };
    let outcome = process::run(command, manner);
    match outcome.failure {
        None => Ok(outcome.stdout),
        Some(failure) => {
            let last = outcome.output.trim_end().lines().last().unwrap_or_default();
            Err(format!(
                "vm: paceline {}: {failure}: {last}",
                words.join(" ")
            ))
        }
    }
}

/// Whether each name is that of an experiment with a real part, by the program's own list.
fn check(names: &[String], list: &str) -> Result<(), String> {
    let list: Value = serde_json::from_str(list)
        .map_err(|error| format!("vm: the list of experiments cannot be read: {error}"))?;
    let all = list["experiments"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let runs = |it: &&Value| it["nothing_here"].is_null();
    for (place, name) in names.iter().enumerate() {
        if names[..place].contains(name) {
            return Err(format!("vm: --experiment {name} is there twice"));
        }
        let known = all.iter().find(|it| it["name"] == name.as_str());
        let why = match known {
            Some(it) if runs(&it) => continue,
            Some(it) => it["nothing_here"].as_str().unwrap_or_default(),
            None => "there is no such experiment",
        };
        let with: Vec<&str> = all
            .iter()
            .filter(runs)
            .filter_map(|it| it["name"].as_str())
            .collect();
        return Err(format!(
            "vm: --experiment {name}: {why}; these run on a machine: {}",
            with.join(", ")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `paceline experiment --list --json` has it.
    const LIST: &str = r#"{"experiments": [
        {"name": "yield", "nothing_here": null, "question": "?", "source": "source 002"},
        {"name": "wait-for", "nothing_here": "the policy is a kernel's", "question": "?", "source": "ours"}
    ]}"#;

    fn checked(names: &[&str]) -> Result<(), String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        check(&names, LIST)
    }

    /// Goal: a name is refused in one line that says why and what there is. Method: a name that is fine, one
    /// that is unknown, one without a real part, one that is there twice, and a list that is none.
    #[test]
    fn names_are_checked() {
        assert_eq!(checked(&["yield"]), Ok(()));
        for (names, part) in [
            (
                &["yeld"][..],
                "--experiment yeld: there is no such experiment",
            ),
            (&["yield", "wait-for"], "wait-for: the policy is a kernel's"),
            (&["yield", "yield"], "yield is there twice"),
            (
                &[""],
                "there is no such experiment; these run on a machine: yield",
            ),
        ] {
            let why = checked(names).unwrap_err();
            assert!(
                why.contains(part) && !why.contains('\n'),
                "{names:?}: {why}"
            );
        }
        let none = check(&["yield".to_owned()], "experiments").unwrap_err();
        assert!(none.contains("cannot be read"), "{none}");
    }
}
