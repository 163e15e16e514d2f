//! `cargo xtask`: the project's automation, in one place and one language.
//!
//! - `cargo xtask test` runs what must pass, in stages (the table is `stages`);
//! - `cargo xtask tidy` checks the house rules (one function each, in `tidy/`);
//! - `cargo xtask peers` builds the peers of `paceline-bench --peers` that are not Rust;
//! - `cargo xtask oracle` fetches Perfetto's trace processor, which judges what crate `trace` says;
//! - `cargo xtask fuzz` feeds parsers and readers inputs that no program writes;
//! - `cargo xtask validate` compares the simulator with the kernel of the machine at hand;
//! - `cargo xtask hostile` runs programs written to break the job system, for minutes or hours;
//! - `cargo xtask package` packages the crates, and builds a stranger's program from the packages;
//! - `cargo xtask dist` makes an archive for programs in C and C++, and builds some from it;
//! - `cargo xtask wheel` builds the Python package, and tests it in a venv of its own;
//! - `cargo xtask fleets` measures what fleets, sweeps, Python and Ray cost, as ratios;
//! - `cargo xtask clients` runs programs written for something else on the job system: rayon's own tests;
//! - `cargo xtask vm` loads the policies into a real kernel, in a virtual machine, and measures them;
//! - `cargo xtask check-targets` compiles the libraries for other machines, and runs WebAssembly.
//!
//! Exit codes: 0 fine, 1 a check failed, 2 bad usage.

mod clients;
mod context;
mod counts;
mod dist;
mod examples;
mod fleets;
mod fuzz;
mod hello;
mod oracle;
mod package;
mod peers;
mod process;
mod program;
mod selection;
mod source;
mod stages;
mod targets;
mod test;
mod tidy;
mod tools;
mod vm;
mod wasm;
mod wheel;
mod wine;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use context::Context;

/// Paceline's automation.
///
/// Exit codes: 0 fine, 1 a check failed, 2 bad usage.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run everything that must pass before a change lands, in stages that fail fast.
    Test(test::Options),
    /// Check the house rules that a compiler does not know.
    Tidy(tidy::Options),
    /// Build the peers of `paceline-bench --peers` that are not Rust: oneTBB.
    Peers(peers::Options),
    /// Fetch Perfetto's own trace processor, with which tests of crate `trace` compare.
    Oracle(oracle::Options),
    /// Feed the parsers and readers inputs that no program writes, for some minutes each.
    Fuzz(fuzz::Options),
    /// Compare the simulator with the kernel of the machine at hand; `validate --help` says how.
    Validate(program::Options),
    /// Run programs written to break the job system; `hostile --help` says how.
    Hostile(program::Options),
    /// Run what was written for rayon on the job system: rayon's own tests, and some programs.
    Clients(clients::Options),
    /// Load the scheduling policies into a real kernel, in a virtual machine, and measure them.
    Vm(vm::Options),
    /// Package the crates, and build a program from the packages alone.
    Package(package::Options),
    /// Make an archive with all that programs in C and C++ need.
    Dist(dist::Options),
    /// Build the Python package, one wheel for every Python, and test it.
    Wheel(wheel::Options),
    /// Measure fleets and sweeps: speed by threads, against the reader, memory, what Python and Ray add.
    Fleets(fleets::Options),
    /// Compile the libraries for other systems and processors, and run checks in WebAssembly.
    CheckTargets(targets::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let passed = Context::load().and_then(|context| match &arguments.task {
        Task::Test(options) => test::run(context, options),
        Task::Tidy(options) => tidy::run(&context, options),
        Task::Peers(options) => peers::run(&context, options),
        Task::Oracle(options) => oracle::run(&context, options),
        Task::Fuzz(options) => fuzz::run(&context, options),
        Task::Validate(options) => program::run(&context, "validate", options),
        Task::Hostile(options) => program::run(&context, "hostile", options),
        Task::Clients(options) => clients::run(&context, options),
        Task::Vm(options) => vm::run(&context, options),
        Task::Package(options) => package::run(&context, options),
        Task::Dist(options) => dist::run(&context, options),
        Task::Wheel(options) => wheel::run(&context, options),
        Task::Fleets(options) => fleets::run(&context, options),
        Task::CheckTargets(options) => targets::run(&context, options),
    });
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The derive attributes fit together (clap checks them only when run).
    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// Arguments after `validate` or `hostile` are for the program, its `--help` included.
    #[test]
    fn programs_are_given_their_arguments() {
        let task = |words: &[&str]| {
            let parsed = Arguments::try_parse_from([&["xtask"], words].concat());
            parsed.map(|arguments| arguments.task)
        };
        let validate = task(&["validate", "--only", "V1,V4", "--help"]);
        let hostile = task(&["hostile", "--jobs", "1e9", "--only", "liveness", "--help"]);
        let (Ok(Task::Validate(_)), Ok(Task::Hostile(_))) = (validate, hostile) else {
            panic!("they were taken for xtask's own");
        };
    }

    /// Bad usage is exit code 2, and so is an unknown stage.
    #[test]
    fn an_unknown_stage_is_bad_usage() {
        let Err(error) = Arguments::try_parse_from(["xtask", "test", "--only", "nonsense"]) else {
            panic!("accepted a stage that does not exist");
        };
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("clippy"), "{error}");
    }
}
