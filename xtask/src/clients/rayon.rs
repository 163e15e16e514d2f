//! rayon's tests and those of its core, as they are published, on `clients/rayon-core`.

use std::fs;
use std::path::{Path, PathBuf};

use super::unpack::{copy, folder, fresh, read, unpacked, write};
use super::{SILENCE, Tested};
use crate::context::Context;
use crate::process::{self, Manner};

/// What the tests of rayon-core depend on (it is in its manifest, which is not ours), and what ours do, which
/// are about rayon on it.
const TEST_NEEDS: &str = "rand = \"0.9\"\nrand_xorshift = \"0.4\"\nscoped-tls = \"1.0\"\n\
                          crossbeam-utils = \"0.8\"\nlibc = \"0.2\"\nrayon = \"1.12\"\n\
                          [patch.crates-io]\nrayon-core = { path = \".\" }\n";

/// Optimized a little: some tests join half a million times.
const PROFILE: &str = "\n[profile.dev]\ndebug = 0\nopt-level = 1\n";

/// rayon-core's unit tests stand beside its sources, and know private names. So they are put beside a copy of
/// ours, which has the same modules. Its integration tests, and the examples that must not compile, come
/// along. `all`: the examples of the documentation, too.
pub(super) fn core_tests(context: &Context, all: bool) -> Result<Tested, String> {
    let original = unpacked(context, "rayon-core")?;
    let ours = fresh(
        context,
        &context.root.join("clients/rayon-core"),
        "rayon-core",
    )?;
    let is_test = |path: &Path| path.file_name().is_some_and(|name| name == "test.rs");
    copy(&original.join("src"), &ours.join("src"), &is_test)?;
    copy(
        &original.join("src/compile_fail"),
        &ours.join("src/compile_fail"),
        &|_| true,
    )?;
    copy(&original.join("tests"), &ours.join("tests"), &|_| true)?;
    let entries = fs::read_dir(ours.join("src")).map_err(|error| error.to_string())?;
    for entry in entries.flatten() {
        if entry.path().join("test.rs").exists() {
            append(&entry.path().join("mod.rs"), "\n#[cfg(test)]\nmod test;\n")?;
        }
    }
    append(
        &ours.join("src/lib.rs"),
        "\nmod compile_fail;\n#[cfg(test)]\nmod test;\n",
    )?;
    let manifest = read(&ours.join("Cargo.toml"))?;
    let (package, _) = manifest
        .split_once("[dev-dependencies]")
        .ok_or("no dev-dependencies")?;
    let paceline = context.root.join("crates/paceline");
    let package = package.replace("../../crates/paceline", &paceline.display().to_string());
    let manifest = format!("{package}[dev-dependencies]\n{TEST_NEEDS}{PROFILE}");
    write(&ours.join("Cargo.toml"), &manifest)?;
    let kinds: &[&str] = if all { &[] } else { &["--lib", "--tests"] };
    test(context, &ours, "rayon-core", kinds)
}

/// rayon's tests: its manifest is told that it is in no workspace, and what to put in the place of its core.
pub(super) fn own_tests(context: &Context) -> Result<Tested, String> {
    let ours = on_our_core(context, "rayon")?;
    test(context, &ours, "rayon", &[])
}

/// A copy of a package that depends on rayon, with ours in the place of its core.
pub(super) fn on_our_core(context: &Context, package: &str) -> Result<PathBuf, String> {
    let ours = fresh(context, &unpacked(context, package)?, package)?;
    let patch = context.root.join("clients/rayon-core");
    let more = format!(
        "\n[workspace]\n{PROFILE}\n[patch.crates-io]\nrayon-core = {{ path = {patch:?} }}\n"
    );
    append(&ours.join("Cargo.toml"), &more)?;
    Ok(ours)
}

/// Runs the tests of a package: `which` goes to cargo.
pub(super) fn test(
    context: &Context,
    package: &Path,
    client: &'static str,
    which: &[&str],
) -> Result<Tested, String> {
    let mut command = context.command("cargo");
    command.args(["test", "--no-fail-fast"]).args(which);
    command.current_dir(package).env_remove("RUSTFLAGS");
    command.env("CARGO_TARGET_DIR", folder(context).join("target"));
    let manner = Manner {
        silence: SILENCE,
        stream: false,
        apart: false,
    };
    let outcome = process::run(command, manner);
    if let Some(why) = &outcome.failure {
        println!("{}{client}: {why}", outcome.output);
        if outcome.counts.failed == 0 {
            return Err(format!("{client}: {why}, and no test has failed"));
        }
    }
    let counts = outcome.counts;
    Ok(Tested { client, counts })
}

fn append(path: &Path, text: &str) -> Result<(), String> {
    write(path, &(read(path)? + text))
}
