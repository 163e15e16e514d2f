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

/// Runs them; whether all is well.
pub(crate) fn run(context: &Context, options: &Options) -> Result<bool, String> {
    let mut tested = Vec::new();
    let mut on_box2d = None;
    if options.wants(Client::Box2d) {
        let program = on_box2d.insert(box2d::build(context)?);
        tested.push(box2d::check(context, program)?);
    }
    if options.wants(Client::Enkits) {
        tested.push(enkits::tests(context)?);
    }
    let mut on_jolt = None;
    if options.wants(Client::Jolt) {
        tested.push(jolt::rules(context)?);
    }
    if options.wants(Client::Jolt) && !options.smoke {
        let built = on_jolt.insert(jolt::build(context)?);
        tested.push(jolt::check(context, built)?);
        tested.push(jolt::oxijolt_tests(context)?);
    }
    let wants_rayon = options.wants(Client::Rayon);
    if wants_rayon {
        tested.push(rayon::core_tests(context, !options.smoke)?);
    }
    if wants_rayon && !options.smoke {
        tested.push(rayon::own_tests(context)?);
    }
    if options.wants(Client::Bevy) {
        tested.push(bevy::own_tests(context)?);
        tested.push(demo::BEVY.check(context)?);
    }
    println!("{:<14} tests", "client");
    for Tested { client, counts } in &tested {
        println!("{client:<14} {counts}");
    }
    let mut is_well = tested.iter().all(|tested| is_well(tested.counts));
    if options.smoke {
        return Ok(is_well);
    }
    if let Some(program) = on_box2d {
        println!();
        let named = ["Box2D", "3.2"];
        is_well &= scenes::measure(
            context,
            &program,
            named,
            (options.rounds, options.steps),
            options.beside,
        )?;
    }
    if let Some(built) = on_jolt {
        println!();
        let named = ["Jolt", "5.0"];
        is_well &= scenes::measure(
            context,
            &built.scenes,
            named,
            (options.rounds, options.steps),
            options.beside,
        )?;
    }
    for (client, demo) in [(Client::Rayon, &demo::RAYON), (Client::Bevy, &demo::BEVY)] {
        if options.wants(client) {
            println!();
            is_well &= demo.measure(context, options.steps, options.rounds, options.beside)?;
        }
    }
    Ok(is_well)
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

/// The stage of `cargo xtask test`.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    let scenes = box2d::build(context)?;
    let tested = [
        box2d::check(context, &scenes)?,
        enkits::tests(context)?,
        jolt::rules(context)?,
        rayon::core_tests(context, false)?,
        bevy::own_tests(context)?,
        demo::BEVY.check(context)?,
    ];
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
