//! The stage `windows`: the library's own tests, built for Windows and run by Wine.
//!
//! Wine answers calls of Windows on Linux, with what Linux says of the machine: so these tests show that the
//! calls are made rightly and are understood. How Windows schedules they do not show.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::context::Context;
use crate::process;

/// Names of rows of `tools.rs`.
pub(crate) const WINE: &str = "wine";
pub(crate) const STD: &str = "std for Windows";
pub(crate) const COMPILER: &str = "mingw";
pub(crate) const CPP: &str = "mingw for C++";

/// mingw's C compiler.
pub(crate) const GCC: &str = "x86_64-w64-mingw32-gcc";

pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";

/// What cargo is told: what runs the tests, and where that keeps its Windows. The models are left out.
pub(crate) const ENV: &[(&str, &str)] = &[
    ("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine"),
    ("WINEPREFIX", "{target}/windows/prefix"),
    ("WINEDEBUG", "-all"),
    ("RUSTFLAGS", "-D warnings"),
];

pub(crate) const TESTS: &str = "cargo test --target x86_64-pc-windows-gnu --target-dir {target}/windows \
    -p paceline-event -p paceline-platform -p paceline --lib";

/// Wine makes its Windows in a quarter of a minute.
const SILENCE: Duration = Duration::from_secs(3 * 60);

/// A library that Rust's programs need and that Wine has since version 9: it gives random bytes.
const RANDOM: &str = "bcryptprimitives";
const RANDOM_SOURCE: &str = "\
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) {
    return SystemFunction036(data, (ULONG)length);
}
";

/// A program of Windows, run by Wine.
pub(crate) fn command(context: &Context, program: &Path) -> Command {
    let mut command = context.command("wine");
    command.arg(program).env("WINEDEBUG", "-all");
    command.env("WINEPREFIX", context.target.join("windows/prefix"));
    command
}

/// Has Wine make its Windows, and puts into it what it lacks.
pub(crate) fn prepare(context: &Context) -> Result<String, String> {
    let prefix = context.target.join("windows/prefix");
    let libraries = prefix.join("drive_c/windows/system32");
    if !libraries.join("kernel32.dll").exists() {
        let failed = |error| format!("{}: {error}", prefix.display());
        fs::create_dir_all(&prefix).map_err(failed)?;
        let mut boot = command(context, Path::new("wineboot"));
        boot.arg("--init");
        process::done(boot, SILENCE, "wine")?;
    }
    if !libraries.join(RANDOM).with_extension("dll").exists() {
        compile(context, &prefix, &libraries)?;
    }
    Ok(String::new())
}

fn compile(context: &Context, prefix: &Path, libraries: &Path) -> Result<(), String> {
    let source = prefix.join(RANDOM).with_extension("c");
    let failed = |error| format!("{}: {error}", source.display());
    fs::write(&source, RANDOM_SOURCE).map_err(failed)?;
    let mut command = context.command(GCC);
    command.args(["-shared", "-o"]);
    command.arg(libraries.join(RANDOM).with_extension("dll"));
    command.arg(&source).arg("-ladvapi32");
    process::done(command, SILENCE, "mingw").map(drop)
}
