//! `cargo xtask fuzz`: feeds the parsers and readers inputs that no program writes.
//!
//! The programs are in `fuzz/`, a workspace of its own in the layout of cargo-fuzz. Their work on the bytes
//! is in `tests/fuzzing`, where an ordinary test does the same with the committed corpus. Inputs that the
//! fuzzer finds interesting go to cargo's target folder, so that the committed corpus stays small; an input
//! that breaks something is kept in `fuzz/artifacts` and belongs into the corpus once it is mended.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::context::Context;
use crate::process::{self, Manner};
use crate::tools;

/// The tools it takes, as in the table of `tools.rs`.
pub(crate) const NEEDS: &[&str] = &["c++", "nightly", "cargo-fuzz"];

const PROGRAMS: &str = "fuzz/fuzz_targets";

/// How long building one may be silent, from nothing.
const BUILD_SILENCE: Duration = Duration::from_secs(20 * 60);

/// Limits of one input, in libFuzzer's words: seconds and megabytes that no such small input may take.
const LIMITS: &[&str] = &["-timeout=10", "-rss_limit_mb=1024", "-max_len=65536"];

/// The options of `cargo xtask fuzz`.
#[derive(Args)]
#[command(after_help = "\
Without a name, all targets take turns. The first input that breaks something ends its target; it is kept, \
and the last lines say how to run it again. What is missing for fuzzing is installed if possible.")]
pub(crate) struct Options {
    /// These targets and no others
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// How long each target is fed
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    /// Show which targets there are
    #[arg(long)]
    list: bool,
}

/// Feeds each target; whether nothing broke.
pub(crate) fn run(context: &Context, options: &Options) -> Result<bool, String> {
    let known = targets(context)?;
    if options.list {
        println!("{}", known.join("\n"));
        return Ok(true);
    }
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(name)) {
        let known = known.join(", ");
        return Err(format!(
            "fuzz: there is no target {unknown:?}; there are {known}"
        ));
    }
    tools::obtain(context, NEEDS).map_err(|what| format!("fuzz: {what}"))?;
    let chosen = if options.targets.is_empty() {
        &known
    } else {
        &options.targets
    };
    let mut broken = Vec::new();
    for target in chosen {
        println!("fuzz: {target}, {} min", options.minutes);
        if let Err(why) = feed(context, target, options.minutes)? {
            println!("fuzz: {target}: {why}");
            broken.push(target.as_str());
        }
    }
    if broken.is_empty() {
        println!("fuzz: nothing broke in {}", chosen.join(", "))
    } else {
        println!("fuzz: broken: {}", broken.join(", "))
    }
    Ok(broken.is_empty())
}

/// The targets' names, in their order.
fn targets(context: &Context) -> Result<Vec<String>, String> {
    let files = fs::read_dir(context.root.join(PROGRAMS));
    let files = files.map_err(|error| format!("{PROGRAMS}: {error}"))?;
    let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    let mut names: Vec<String> = files
        .flatten()
        .filter_map(|file| stem(file.path()))
        .collect();
    names.sort();
    Ok(names)
}

/// Builds one and lets it run; the inner `Err` says how it ended.
fn feed(context: &Context, target: &str, minutes: u64) -> Result<Result<(), String>, String> {
    let found = context.target.join("fuzz-corpus").join(target);
    fs::create_dir_all(&found).map_err(|error| format!("{}: {error}", found.display()))?;
    let mut fuzz = context.command("cargo");
    // Safe code has nothing that the address sanitizer would find.
    fuzz.args([
        "+nightly",
        "fuzz",
        "run",
        "--sanitizer",
        "none",
        "--target-dir",
    ]);
    fuzz.arg(context.target.join("fuzz")).arg(target);
    fuzz.arg(&found)
        .arg(context.root.join("fuzz/corpus").join(target));
    fuzz.arg("--").args(LIMITS);
    fuzz.arg(format!("-max_total_time={}", minutes * 60))
        .args(["-verbosity=0", "-print_funcs=0"]);
    let manner = Manner {
        silence: BUILD_SILENCE + Duration::from_secs(minutes * 60),
        stream: true,
        apart: false,
    };
    Ok(process::run(fuzz, manner).failure.map_or(Ok(()), Err))
}
