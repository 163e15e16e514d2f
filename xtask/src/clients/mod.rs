//! `cargo xtask clients`: programs that were written for something else, on the job system.
//!
//! rayon and rayon-core are fetched by name, as they are published, and unpacked below cargo's target folder.
//! Their own tests run on `clients/rayon-core`, unmodified. Then programs in rayon's words run on rayon's own
//! core and on ours, in turns.

mod demo;
mod rayon;
mod unpack;

use std::time::Duration;

use clap::Args;

use crate::context::Context;
use crate::counts::Counts;

/// How long a command may be silent: rayon's tests take minutes to compile.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// The options of `cargo xtask clients`.
#[derive(Args)]
#[command(after_help = "\
Figures count on a quiet machine only; the last line says what the machine was doing. What is fetched stays \
below the target folder, and is not fetched again.")]
pub(crate) struct Options {
    /// Only rayon-core's own tests: three minutes
    #[arg(long)]
    smoke: bool,
    /// How many steps of each program are measured in a round, on each core
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// How many rounds: each runs all programs on one core and then on the other
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

/// What came of one client's tests.
struct Tested {
    client: &'static str,
    counts: Counts,
}

/// Runs them; whether all is well.
pub(crate) fn run(context: &Context, options: &Options) -> Result<bool, String> {
    let mut tested = vec![rayon::core_tests(context, !options.smoke)?];
    if !options.smoke {
        tested.push(rayon::own_tests(context)?);
    }
    println!("{:<14} tests", "client");
    for Tested { client, counts } in &tested {
        println!("{client:<14} {counts}");
    }
    let passed = tested.iter().all(|tested| is_well(tested.counts));
    if options.smoke {
        return Ok(passed);
    }
    println!();
    Ok(demo::run(context, options.steps, options.rounds)? && passed)
}

/// The stage of `cargo xtask test`.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    let Tested { client, counts } = rayon::core_tests(context, false)?;
    let text = format!("{client}: {counts}");
    if is_well(counts) { Ok(text) } else { Err(text) }
}

/// Whether tests ran, and none has failed.
fn is_well(counts: Counts) -> bool {
    counts.failed == 0 && counts.passed > 0
}
