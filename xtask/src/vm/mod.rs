//! `cargo xtask vm`: the scheduling policies in charge of a real kernel, in a virtual machine.
//!
//! A Debian kernel with sched_ext and a QEMU that counts instructions are fetched by apt, by package name
//! and version, into cargo's target folder; nothing is installed on the system. A script ([`guest`]) loads
//! `paceline-scx` there and runs `frame-bench` beside hogs, under the kernel's own scheduler and under each
//! policy. What it prints is a table ([`results`]) and, if wanted, the one in the guide.
//!
//! Time in the machine is the number of instructions that were run (`icount`), so what comes out does not
//! depend on what else this machine does, and is the same each time. A spread comes from phases: how the
//! frames lie to the kernel's ticks; and from boots (`--later`): how the CPUs' ticks lie to each other.

mod checks;
mod experiments;
mod fetch;
mod findings;
mod guest;
mod image;
mod results;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;

use crate::context::Context;
use crate::process::{self, Manner};
use crate::tools;
use experiments::Experiments;
use fetch::Machine;
use results::Results;

/// The tools it takes, as in the table of `tools.rs`.
const NEEDS: &[&str] = &["cc", tools::BPF];

/// What the stage needs. The compiler is asked for with the rest: a usual run would install it else.
pub(crate) const STAGE_NEEDS: &[&str] = &[tools::VM];

/// The scheduler, below the target folder.
const SCHEDULER: &str = "scx/release/paceline-scx";

/// The compiler for the part in the kernel.
const CLANG: &str = "clang-19";

/// How long the machine may say nothing. A run of frames takes a minute on a busy machine.
const SILENCE: Duration = Duration::from_secs(10 * 60);

/// The page with the tables. A table is between two lines with its name ([`marks`]).
const PAGE: &str = "docs/guide/kernel.md";

/// The name of the table of frames.
const FRAMES: &str = "vm";

/// The options of `cargo xtask vm`.
#[derive(Args)]
#[command(after_help = "\
The first time takes some minutes: the scheduler's libraries are built (1 GB below cargo's target folder), \
and a kernel and QEMU are fetched (55 MB). Afterwards all runs take a quarter of an hour, and --smoke half a \
minute. Needed: a Debian with apt, and clang-19, which is installed if we may.

Experiments of `paceline`, under Linux's own scheduler and under each policy, in two minutes (without \
--quick a quarter of an hour on two CPUs, and as long again for each further phase):
  cargo xtask vm --experiment virtual-slice --quick --cpus 2 --phases 1")]
pub(crate) struct Options {
    /// Only load a scheduler, run frames for 3 s, and unload it
    #[arg(long, conflicts_with_all = ["doc", "cpus", "phases"])]
    smoke: bool,
    /// Run what these experiments of `paceline` measure on a machine, instead of frames
    #[arg(long, value_name = "NAME", value_delimiter = ',',
          conflicts_with_all = ["smoke", "no_faults"])]
    experiment: Vec<String>,
    /// Run less of the experiments: shapes and counts are right, tails are not
    #[arg(long, requires = "experiment")]
    quick: bool,
    /// How many CPUs the machines have, one after the other
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [4, 2],
          value_parser = clap::value_parser!(u32).range(1..=8))]
    cpus: Vec<u32>,
    /// In how many phases to the ticks the frames run, or how often the experiments
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=20))]
    phases: u32,
    /// How much longer the machine rests before the first run, in milliseconds: another boot, as it were
    #[arg(long, value_name = "MS", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=10_000))]
    later: u32,
    /// Leave out the programs and schedulers that are stopped and killed
    #[arg(long)]
    no_faults: bool,
    /// Write the table into docs/guide/kernel.md
    #[arg(long)]
    doc: bool,
    /// Show what the machine prints as it comes
    #[arg(long)]
    verbose: bool,
}

/// Builds, boots and measures; whether all went well and the targets are met.
pub(crate) fn run(context: &Context, options: &Options) -> Result<bool, String> {
    let said = |what: String| format!("vm: {what}");
    // A wrong name is told before anything is installed or fetched.
    let experiments = match options.experiment.as_slice() {
        [] => None,
        names => Some(Experiments::named(context, names)?),
    };
    tools::obtain(context, NEEDS).map_err(said)?;
    if let Some(experiments) = experiments {
        return experiments.run(context, options);
    }
    let vm = Vm::new(context, options.verbose)?;
    if options.smoke {
        let (results, seconds) = smoke(&vm)?;
        println!("{}\nvm: {seconds} s", results.table());
        return Ok(results.all_well());
    }
    let mut passed = true;
    let mut pages = Vec::new();
    for &cpus in &options.cpus {
        let script = guest::measure(options.phases, options.later, !options.no_faults);
        let began = Instant::now();
        let text = vm.boot(cpus, &script)?;
        let results = Results::read(&text)?;
        let minutes = began.elapsed().as_secs_f64() / 60.0;
        println!("vm: {cpus} CPUs, {minutes:.1} min\n\n{}", results.table());
        passed &= results.verdict(cpus == 4);
        pages.push(format!("{}\n{}", heading(cpus, options), results.table()));
    }
    if options.doc {
        let date = vm.machine.to_string();
        write_page(context, FRAMES, &format!("{date}.\n\n{}", pages.join("\n")))?;
    }
    Ok(passed)
}

fn heading(cpus: u32, options: &Options) -> String {
    let (hogs, phases) = (2 * cpus, options.phases);
    format!("{cpus} CPUs, {hogs} hogs, {phases} phases of 250 frames:\n")
}

/// The stage `vm`.
///
/// # Errors
/// What failed in the machine, or why there is none.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    let (results, seconds) = smoke(&Vm::new(context, false)?)?;
    if results.all_well() {
        Ok(format!("{seconds} s in the machine"))
    } else {
        Err(results.table())
    }
}

/// Whether a machine was fetched and the scheduler built, as the first `cargo xtask vm` does.
///
/// # Errors
/// If not: what to run.
pub(crate) fn prepared() -> Result<(), String> {
    if let Some(why) = tools::missing(&[tools::BPF]) {
        return Err(why);
    }
    let context = Context::load()?;
    if fetch::is_there(&context) && context.target.join(SCHEDULER).is_file() {
        return Ok(());
    }
    Err("`cargo xtask vm --smoke` fetches and builds it, once".to_owned())
}

/// Loads a scheduler, and unloads it: what happened, and how many seconds it took.
fn smoke(vm: &Vm<'_>) -> Result<(Results, u64), String> {
    let began = Instant::now();
    let text = vm.boot(2, &guest::smoke())?;
    Ok((Results::read(&text)?, began.elapsed().as_secs()))
}

/// Builds what runs in the machine; where the programs are.
fn build(context: &Context) -> Result<Vec<PathBuf>, String> {
    // Its own target folder: its dependencies are built with other features than the rest.
    let target = context.target.join("scx");
    let mut scx = context.command("cargo");
    scx.args([
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--manifest-path",
    ])
    .arg(context.root.join("crates/scx/Cargo.toml"))
    .env("CARGO_TARGET_DIR", &target);
    if std::env::var_os("BPF_CLANG").is_none() {
        scx.env("BPF_CLANG", CLANG);
    }
    let mut bench = context.command("cargo");
    bench.args(["build", "--release", "--quiet", "-p", "paceline-kernel"]);
    for (command, name) in [(scx, "paceline-scx"), (bench, "frame-bench")] {
        println!("vm: building {name}");
        let manner = Manner {
            silence: Duration::from_secs(15 * 60),
            stream: true,
            apart: false,
        };
        if let Some(failure) = process::run(command, manner).failure {
            return Err(format!("vm: {name} does not build: {failure}"));
        }
    }
    Ok(vec![
        context.target.join(SCHEDULER),
        context.target.join("release/frame-bench"),
    ])
}

/// What is needed to start a machine.
struct Vm<'a> {
    context: &'a Context,
    machine: Machine,
    programs: Vec<PathBuf>,
    verbose: bool,
}

impl Vm<'_> {
    /// Fetches and builds what is not there.
    fn new(context: &Context, verbose: bool) -> Result<Vm<'_>, String> {
        let machine = fetch::obtain(context).map_err(|what| format!("vm: {what}"))?;
        println!("vm: {machine}");
        Ok(Vm {
            context,
            machine,
            programs: build(context)?,
            verbose,
        })
    }

    /// Starts a machine that runs the script and ends; what it printed.
    fn boot(&self, cpus: u32, script: &str) -> Result<String, String> {
        let image = self.context.target.join(format!("vm/image-{cpus}.cpio"));
        image::write(&image, &self.machine.busybox, &self.programs, script)?;
        let mut qemu = self.machine.qemu(self.context);
        // The seed is given so that it is the same; another one changes nothing that was measured.
        qemu.args(["-smp", &cpus.to_string(), "-seed", "42"])
            .arg("-initrd")
            .arg(&image);
        let manner = Manner {
            silence: SILENCE,
            stream: self.verbose,
            apart: false,
        };
        let outcome = process::run(qemu, manner);
        let log = self.context.target.join(format!("vm/last-{cpus}.log"));
        save(&log, &outcome.output)?;
        match outcome.failure {
            None if outcome.output.contains(guest::END) => Ok(outcome.output),
            None => Err(format!(
                "vm: the machine stopped in the middle; see {}",
                self.context.shown(&log)
            )),
            Some(failure) => Err(format!(
                "vm: QEMU: {failure}; see {}",
                self.context.shown(&log)
            )),
        }
    }
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes the table of this name.
fn write_page(context: &Context, name: &str, text: &str) -> Result<(), String> {
    let path = context.root.join(PAGE);
    let old = fs::read_to_string(&path).map_err(|error| format!("{PAGE}: {error}"))?;
    save(&path, &with_table(&old, name, text)?)?;
    println!("vm: {PAGE} has the table");
    Ok(())
}

/// The lines around the table of this name.
fn marks(name: &str) -> [String; 2] {
    ["begin", "end"].map(|end| format!("<!-- {name}:{end} -->\n"))
}

/// The page with this text in the place of a table.
fn with_table(page: &str, name: &str, text: &str) -> Result<String, String> {
    let [begin, end] = marks(name);
    let parts = page
        .split_once(&begin)
        .and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let Some((before, after)) = parts else {
        return Err(format!("{PAGE} has no {} … {}", begin.trim(), end.trim()));
    };
    Ok(format!("{before}{begin}{text}{end}{after}"))
}

/// A command whose output is wanted, and why it failed if it did.
fn output(mut command: Command, name: &str) -> Result<String, String> {
    let done = command.output();
    let done = done.map_err(|error| format!("{name} does not start: {error}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&done.stderr);
    let last = errors.trim_end().lines().last().unwrap_or_default();
    Err(format!("{name}: {} {last}", done.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a table takes the place of the one of its name, and of no other; a page without that place is
    /// an error. Method: a page of two tables; a name that it has not.
    #[test]
    fn a_table_takes_its_place() {
        let page =
            "a\n<!-- vm:begin -->\nold\n<!-- vm:end -->\n<!-- x:begin -->\n<!-- x:end -->\nz\n";
        let new = with_table(page, "x", "new\n").unwrap();
        assert_eq!(new, page.replace("x:begin -->\n", "x:begin -->\nnew\n"));
        let why = with_table(page, "y", "new\n").unwrap_err();
        assert!(
            why.contains("has no <!-- y:begin --> … <!-- y:end -->"),
            "{why}"
        );
    }
}
