//! `cargo xtask clients`: programs that were written for something else, on the job system.
//!
//! rayon and rayon-core are fetched by name, as they are published, and unpacked below cargo's target folder.
//! Their own tests run on `clients/rayon-core`, unmodified. Then programs in rayon's words run on rayon's own
//! core and on ours, in turns. Box2D is compiled as a package ships it, and steps worlds on its own scheduler
//! and on ours; its older version's tests, which are for enkiTS, run on the header with enkiTS's names. Jolt
//! is compiled as a package ships it; its own PerformanceTest and scenes run on its thread pool and on ours.
//! Apps of Bevy's without a window run on Bevy's own tasks and on `clients/bevy-tasks`.

mod beside;
mod bevy;
mod box2d;
mod c;
mod demo;
mod enkits;
mod jolt;
mod rayon;
mod scenes;
mod table;
mod unpack;

use std::path::PathBuf;
use std::time::Duration;

use beside::Beside;
use clap::{Args, ValueEnum};

use crate::context::Context;
use crate::counts::Counts;
use crate::process;

/// How long a command may be silent: rayon's tests take minutes to compile.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// The options of `cargo xtask clients`.
#[derive(Args)]
#[command(after_help = "\
Figures count on a quiet machine only; the last line says what the machine was doing before. What is fetched \
stays below the target folder, and is not fetched again.

A quota is given anew every 100 ms, and both pools have the same one, in turns. So take turns that are longer:

  cargo xtask clients --only box2d --beside quota --steps 200")]
pub(crate) struct Options {
    /// Only rayon-core's own tests, and whether worlds end the same: six minutes
    #[arg(long)]
    smoke: bool,
    /// One client alone
    #[arg(long)]
    only: Option<Client>,
    /// Only the times, without tests
    #[arg(long, conflicts_with = "smoke")]
    times: bool,
    /// How many steps of each program are measured in a round, on each core
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// How many rounds: each runs all programs on one core and then on the other
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// What the machine is asked for besides, while programs are measured
    #[arg(long, value_name = "WHAT", conflicts_with = "smoke")]
    beside: Option<Beside>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Client {
    Rayon,
    Box2d,
    Enkits,
    Jolt,
    Bevy,
}

impl Options {
    fn wants(&self, client: Client) -> bool {
        self.only.is_none_or(|only| only == client)
    }
}

/// What came of one client's tests.
struct Tested {
    client: &'static str,
    counts: Counts,
}

/// The programs in C and C++ that are wanted.
struct Programs {
    box2d: Option<PathBuf>,
    jolt: Option<jolt::Built>,
}

/// Runs them; whether all is well.
pub(crate) fn run(context: &Context, options: &Options) -> Result<bool, String> {
    if options.times && options.only == Some(Client::Enkits) {
        return Err(
            "enkiTS itself is not to be had as a package: its programs have tests, no times"
                .to_owned(),
        );
    }
    let wants_jolt = options.wants(Client::Jolt) && !options.smoke;
    let programs = Programs {
        box2d: options
            .wants(Client::Box2d)
            .then(|| box2d::build(context))
            .transpose()?,
        jolt: wants_jolt.then(|| jolt::build(context)).transpose()?,
    };
    let tests_pass = options.times || test(context, options, &programs)?;
    let ends_the_same = options.smoke || measure(context, options, &programs)?;
    Ok(tests_pass && ends_the_same)
}

/// Runs the tests of all that is wanted, and prints a table. Whether all have passed.
fn test(context: &Context, options: &Options, programs: &Programs) -> Result<bool, String> {
    let mut tested = Vec::new();
    if let Some(scenes) = &programs.box2d {
        tested.push(box2d::check(context, scenes)?);
    }
    if options.wants(Client::Enkits) {
        tested.push(enkits::tests(context)?);
    }
    if options.wants(Client::Jolt) {
        tested.push(jolt::rules(context)?);
    }
    if let Some(built) = &programs.jolt {
        tested.push(jolt::check(context, built)?);
        tested.push(jolt::oxijolt_tests(context)?);
    }
    if options.wants(Client::Rayon) {
        tested.push(rayon::core_tests(context, !options.smoke)?);
        if !options.smoke {
            tested.push(rayon::own_tests(context)?);
        }
    }
    if options.wants(Client::Bevy) {
        tested.push(bevy::own_tests(context)?);
        tested.push(demo::BEVY.check(context)?);
    }
    println!("{:<14} tests", "client");
    for Tested { client, counts } in &tested {
        println!("{client:<14} {counts}");
    }
    println!();
    Ok(tested.iter().all(|tested| is_well(tested.counts)))
}

/// Measures all that is wanted on its own pool and on ours. Whether everything has ended the same on both.
fn measure(context: &Context, options: &Options, programs: &Programs) -> Result<bool, String> {
    let Options {
        rounds,
        steps,
        beside,
        ..
    } = *options;
    let mut same = true;
    let jolt = programs.jolt.as_ref().map(|built| &built.scenes);
    for (named, scenes) in [
        (["Box2D", "3.2"], programs.box2d.as_ref()),
        (["Jolt", "5.0"], jolt),
    ] {
        if let Some(scenes) = scenes {
            same &= scenes::measure(context, scenes, named, (rounds, steps), beside)?;
            println!();
        }
    }
    for (client, demo) in [(Client::Rayon, &demo::RAYON), (Client::Bevy, &demo::BEVY)] {
        if options.wants(client) {
            same &= demo.measure(context, steps, rounds, beside)?;
            println!();
        }
    }
    Ok(same)
}

/// The packages in `clients`, each a workspace of its own.
const PACKAGES: [&str; 4] = ["rayon-core", "rayon-demo", "bevy-tasks", "bevy-demo"];

/// Whether they are formatted.
pub(crate) fn formatted(context: &Context) -> Result<String, String> {
    for package in PACKAGES {
        let mut command = context.command("cargo");
        let manifest = context
            .root
            .join("clients")
            .join(package)
            .join("Cargo.toml");
        command
            .args(["fmt", "--check", "--manifest-path"])
            .arg(manifest);
        command.args(["--", "--color=never"]);
        process::done(command, SILENCE, "cargo fmt")?;
    }
    Ok(String::new())
}

/// The stage of each run of `cargo xtask test`: programs in C, which are compiled soon.
pub(crate) fn stage_in_c(context: &Context) -> Result<String, String> {
    let scenes = box2d::build(context)?;
    verdict(&[box2d::check(context, &scenes)?, enkits::tests(context)?])
}

/// The stage of a run of all: the rest of the smoke.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    verdict(&[
        jolt::rules(context)?,
        rayon::core_tests(context, false)?,
        bevy::own_tests(context)?,
        demo::BEVY.check(context)?,
    ])
}

/// What a stage says of its tests.
fn verdict(tested: &[Tested]) -> Result<String, String> {
    let texts = tested
        .iter()
        .map(|Tested { client, counts }| format!("{client}: {counts}"));
    let text = texts.collect::<Vec<_>>().join("; ");
    let is_well = tested.iter().all(|tested| is_well(tested.counts));
    if is_well { Ok(text) } else { Err(text) }
}

/// Whether tests ran, and none has failed.
fn is_well(counts: Counts) -> bool {
    counts.failed == 0 && counts.passed > 0
}
