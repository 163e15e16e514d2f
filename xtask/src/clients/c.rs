//! Programs and libraries in C and C++: compiled by the machine's compilers, linked with the library of
//! `crates/capi`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

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

#[derive(Clone, Copy)]
pub(super) enum Language {
    C,
    Cpp,
}

impl Language {
    /// The variable that names the compiler, and what it is called without one.
    fn compiler(self) -> (&'static str, &'static str) {
        match self {
            Self::C => ("CC", "cc"),
            Self::Cpp => ("CXX", "c++"),
        }
    }
}

/// Sources in C or C++.
pub(super) struct Sources<'s> {
    pub(super) name: &'static str,
    pub(super) language: Language,
    /// The standard, and what is defined.
    pub(super) flags: &'static [&'static str],
    pub(super) files: &'s [PathBuf],
    pub(super) includes: &'s [&'s Path],
}

/// Compiles a library of others', unless it was done before, and returns its objects. Its warnings are its
/// own.
pub(super) fn objects(context: &Context, of: &Sources<'_>) -> Result<Vec<PathBuf>, String> {
    let made = folder(context).join(format!("objects-{}", of.name));
    let done = made.join("done");
    if !done.exists() {
        fs::create_dir_all(&made).map_err(|error| format!("{}: {error}", made.display()))?;
        compile(context, of, &made)?;
        fs::write(&done, "").map_err(|error| format!("{}: {error}", done.display()))?;
    }
    files(&made, "o")
}

/// Compiles each file into that folder: as many at a time as the machine has CPUs.
fn compile(context: &Context, of: &Sources<'_>, made: &Path) -> Result<(), String> {
    let width = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let parts: Vec<_> = (0..width.min(of.files.len()))
            .map(|part| {
                let files = of.files.iter().skip(part).step_by(width);
                let mut command = compiler(context, of);
                command.current_dir(made).args(["-w", "-fPIC", "-c"]);
                command.args(files);
                scope.spawn(move || process::done(command, SILENCE, of.name))
            })
            .collect();
        for part in parts {
            let compiled = part.join().map_err(|_| format!("{}: a panic", of.name))?;
            compiled?;
        }
        Ok(())
    })
}

/// Compiles a program against our headers, and links it with these objects and our library, which is in that
/// folder.
pub(super) fn program(
    context: &Context,
    of: &Sources<'_>,
    objects: &[PathBuf],
    our_library: &Path,
) -> Result<PathBuf, String> {
    let made = folder(context).join("programs");
    fs::create_dir_all(&made).map_err(|error| format!("{}: {error}", made.display()))?;
    let program = made.join(of.name);
    let mut command = compiler(context, of);
    command.arg("-o").arg(&program).args(of.files).args(objects);
    command.arg("-L").arg(our_library);
    command.args(["-lpaceline_c", "-lpthread", "-lm"]);
    command.arg(format!("-Wl,-rpath,{}", our_library.display()));
    if cfg!(target_os = "linux") {
        // Before the folders of the environment: cargo names one there in which an older library may be.
        command.arg("-Wl,--disable-new-dtags");
    }
    process::done(command, SILENCE, of.name)?;
    Ok(program)
}

fn compiler(context: &Context, of: &Sources<'_>) -> Command {
    let (variable, usual) = of.language.compiler();
    let mut command = context.command(env::var_os(variable).unwrap_or_else(|| usual.into()));
    command.arg("-O2").args(of.flags);
    command.arg("-I").arg(headers(context));
    for include in of.includes {
        // Headers of others' have warnings of their own.
        command.arg("-isystem").arg(include);
    }
    command
}

/// The files of a folder with this ending, sorted.
pub(super) fn files(of: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(of).map_err(|error| format!("{}: {error}", of.display()))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == ending))
        .collect();
    found.sort();
    Ok(found)
}

/// The files of a folder and of those in it with this ending, sorted.
pub(super) fn files_below(of: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = files(of, ending)?;
    let entries = fs::read_dir(of).map_err(|error| format!("{}: {error}", of.display()))?;
    for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
        found.extend(files_below(&entry.path(), ending)?);
    }
    found.sort();
    Ok(found)
}
