//! `cargo xtask peers`: builds the peers of `paceline-bench --peers` that are not Rust.
//!
//! There is one, oneTBB (`peers/tbb`). It is compiled for the same baseline processor as Rust code:
//! no `-march=native`, which `cargo build` does not use either.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::context::Context;
use crate::process;
use crate::tools;

/// The tools it takes, as in the table of `tools.rs`.
pub(crate) const NEEDS: &[&str] = &["c++", "oneTBB"];

/// The sources.
const FOLDER: &str = "peers/tbb";

/// The program, below cargo's target folder; `paceline-bench` looks for it there
/// (`crates/bench/src/tbb/find.rs`).
const PROGRAM: &str = "peers/paceline-peer-tbb";

const FLAGS: &[&str] = &["-std=c++17", "-O3", "-Wall", "-Wextra", "-pthread"];

/// How long the compiler may be silent: the flow graph is a lot of templates.
const BUILD_SILENCE: Duration = Duration::from_secs(5 * 60);
const RUN_SILENCE: Duration = Duration::from_secs(20);

/// The options of `cargo xtask peers`.
#[derive(Args)]
#[command(after_help = "\
`cargo run --release -p paceline-bench -- --peers` finds what was built. On Debian the C++ compiler is in \
the package g++ and oneTBB in libtbb-dev.")]
pub(crate) struct Options {}

/// Builds all of them; `Err` says in one line what is missing, or holds the compiler's words.
pub(crate) fn run(context: &Context, _options: &Options) -> Result<bool, String> {
    tools::demand(NEEDS).map_err(|what| format!("peers: {what}"))?;
    match stage(context) {
        Ok(note) => println!("peers: {note}"),
        Err(failure) => {
            println!("{}", failure.trim_end());
            return Ok(false);
        }
    }
    Ok(true)
}

/// Builds the runner and asks it for its version.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    let program = context.target.join(PROGRAM);
    let parent = program.parent().unwrap_or(&context.target);
    fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    // Built beside and then moved: a running one stays whole, and a failed build leaves none.
    let new = program.with_extension("new");
    let mut compile = context.command("c++");
    compile.args(FLAGS).args(sources(context)?);
    compile.arg("-ltbb").arg("-o").arg(&new);
    process::done(compile, BUILD_SILENCE, "c++")?;
    fs::rename(&new, &program).map_err(|error| format!("{}: {error}", program.display()))?;
    let mut command = context.command(&program);
    command.arg("--version");
    let version = process::done(command, RUN_SILENCE, "the new runner")?;
    Ok(format!(
        "{} with {}",
        context.shown(&program),
        version.trim()
    ))
}

/// The `.cpp` files in the order of their names.
fn sources(context: &Context) -> Result<Vec<PathBuf>, String> {
    let folder = context.root.join(FOLDER);
    let entries = fs::read_dir(&folder).map_err(|error| format!("{FOLDER}: {error}"))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut sources: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "cpp"))
        .collect();
    sources.sort();
    if sources.is_empty() {
        Err(format!("{FOLDER} has no sources"))
    } else {
        Ok(sources)
    }
}
