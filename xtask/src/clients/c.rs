//! Programs and libraries in C: compiled by the machine's compiler, linked with the library of `crates/capi`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::SILENCE;
use super::unpack::folder;
use crate::context::Context;
use crate::process;

/// Builds our library, optimized. Returns the folder that it is in.
pub(super) fn library(context: &Context) -> Result<PathBuf, String> {
    let target = folder(context).join("target-capi");
    let mut command = context.command("cargo");
    command.args(["build", "--release", "-p", "paceline-capi"]);
    command
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("RUSTFLAGS");
    process::done(command, SILENCE, "cargo build")?;
    Ok(target.join("release"))
}

/// Where our headers are.
pub(super) fn headers(context: &Context) -> PathBuf {
    context.root.join("crates/capi/include")
}

/// A library of others' that is compiled as it is.
pub(super) struct Foreign<'f> {
    pub(super) name: &'static str,
    pub(super) standard: &'static str,
    /// The folder of its sources, all of which belong to it.
    pub(super) sources: &'f Path,
    pub(super) includes: &'f [&'f Path],
    pub(super) flags: &'static [&'static str],
}

/// Compiles all files of a library that end in `.c`, unless it was done before, and returns their objects.
pub(super) fn objects(context: &Context, of: &Foreign<'_>) -> Result<Vec<PathBuf>, String> {
    let made = folder(context).join(format!("objects-{}", of.name));
    let done = made.join("done");
    let sources = files(of.sources, "c")?;
    if !done.exists() {
        fs::create_dir_all(&made).map_err(|error| format!("{}: {error}", made.display()))?;
        let mut command = context.command(compiler());
        command.current_dir(&made).arg("-c");
        command.args([of.standard, "-O2", "-DNDEBUG", "-w", "-fPIC"]);
        command.args(of.flags);
        for include in of.includes {
            command.arg("-I").arg(include);
        }
        command.args(&sources);
        process::done(command, SILENCE, of.name)?;
        fs::write(&done, "").map_err(|error| format!("{}: {error}", done.display()))?;
    }
    files(&made, "o")
}

/// Compiles a program of ours without a warning, and links it with all that. `our_library`: where [`library`]
/// has put it.
pub(super) fn program(
    context: &Context,
    source: &Path,
    includes: &[&Path],
    objects: &[PathBuf],
    our_library: &Path,
) -> Result<PathBuf, String> {
    let name = source.file_stem().unwrap_or_default();
    let made = folder(context).join("programs");
    fs::create_dir_all(&made).map_err(|error| format!("{}: {error}", made.display()))?;
    let program = made.join(name);
    let mut command = context.command(compiler());
    command.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"]);
    for include in includes {
        // Others' headers may have warnings of their own.
        command.arg("-isystem").arg(include);
    }
    command.arg("-I").arg(headers(context));
    command.arg("-o").arg(&program).arg(source).args(objects);
    command.arg("-L").arg(our_library);
    command.args(["-lpaceline_c", "-lpthread", "-lm"]);
    command.arg(format!("-Wl,-rpath,{}", our_library.display()));
    process::done(command, SILENCE, "the C compiler")?;
    Ok(program)
}

fn compiler() -> OsString {
    env::var_os("CC").unwrap_or_else(|| "cc".into())
}

/// The files of a folder with this ending, sorted.
fn files(of: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(of).map_err(|error| format!("{}: {error}", of.display()))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == ending))
        .collect();
    found.sort();
    Ok(found)
}
