//! `cargo xtask wheel`: the Python package, and its tests in a venv of their own.
//!
//! maturin, which builds the wheel, and what the tests need come from PyPI by name, into folders below
//! cargo's target folder. Nothing else of the project needs Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;

use crate::context::Context;
use crate::counts::Counts;
use crate::process::{self, Manner};
use crate::tools;

/// The tools it takes, as in the table of `tools.rs`.
pub(crate) const NEEDS: &[&str] = &[tools::PYTHON];

/// The package's folder.
const PACKAGE: &str = "python";

/// What builds wheels.
const BUILDER: &[&str] = &["maturin>=1.9,<2"];

/// What the tests use; Ray is for the stage that has a cluster.
const TEST_NEEDS: &[&str] = &["pytest", "mypy", "pyarrow", "polars", "duckdb", "fsspec"];
const RAY: &[&str] = &["ray>=2.40"];
/// Of these there are wheels for Pythons without the interpreter's lock.
const WITHOUT_LOCK: &[&str] = &["pytest", "mypy", "pyarrow", "fsspec"];
/// And what runs the notebooks of the documents, and draws their pictures.
const NOTEBOOKS: &[&str] = &["nbclient", "ipykernel", "matplotlib"];

/// How long pip may be silent: Ray is 70 MB.
const FETCHED: Duration = Duration::from_secs(8 * 60);
/// And a build: all of the command, optimized.
const BUILT: Duration = Duration::from_secs(15 * 60);
const TESTED: Duration = Duration::from_secs(10 * 60);

/// The options of `cargo xtask wheel`.
#[derive(Args)]
#[command(after_help = "\
The wheel is below target/wheel/release/wheels, for this system and every Python from 3.10 on.
Free-threaded Pythons have no stable interface and so want a wheel of their own: --python python3.14t.
With --check the tests that want DuckDB, Polars or notebooks are skipped there.")]
pub(crate) struct Options {
    /// Install the wheel into a venv below the target folder, and run the package's tests
    #[arg(long)]
    check: bool,
    /// With --check, also the tests on a Ray cluster of two nodes on this machine
    #[arg(long, requires = "check")]
    ray: bool,
    /// The Python to build for and test with
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    python: String,
}

/// Builds the wheel; whether its tests passed.
pub(crate) fn run(context: &Context, options: &Options) -> Result<bool, String> {
    let work = Wheels {
        context,
        python: &options.python,
        profile: "release",
    };
    let wheel = work.build().map_err(|text| format!("wheel: {text}"))?;
    println!("wheel: {}", context.shown(&wheel));
    if !options.check {
        return Ok(true);
    }
    let mut files = vec![LOCAL];
    files.extend(options.ray.then_some(ON_RAY));
    for tests in files {
        let (counts, failure) = work.check(&wheel, tests, true)?;
        println!("wheel: {counts}");
        if failure.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The stage of `cargo xtask test`: all tests, on a wheel that is built quickly.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    let mut format = context.command("cargo");
    format.args(["fmt", "--check", "--manifest-path"]);
    format.arg(context.root.join(PACKAGE).join("Cargo.toml"));
    process::done(format, TESTED, "cargo fmt")?;
    let work = Wheels {
        context,
        python: "python3",
        profile: "checked",
    };
    let wheel = work.build()?;
    let mut all = Counts::default();
    for tests in [LOCAL, ON_RAY] {
        match work.check(&wheel, tests, false)? {
            (counts, None) if counts.passed > 0 => all += counts,
            (_, None) => return Err(format!("no test of {} ran", tests.venv)),
            (_, Some(text)) => return Err(text),
        }
    }
    Ok(all.to_string())
}

/// Which of the tests.
#[derive(Clone, Copy)]
struct TestFiles {
    /// The name of their venv.
    venv: &'static str,
    names: &'static [&'static str],
    needs: &'static [&'static str],
    has_types: bool,
}

const LOCAL: TestFiles = TestFiles {
    venv: "local",
    names: &["test_calls.py", "test_fleets.py", "test_notebooks.py"],
    needs: NOTEBOOKS,
    has_types: true,
};

const ON_RAY: TestFiles = TestFiles {
    venv: "ray",
    names: &["test_ray.py"],
    needs: RAY,
    has_types: false,
};

/// Building and testing with one Python.
struct Wheels<'a> {
    context: &'a Context,
    python: &'a str,
    /// Cargo's.
    profile: &'static str,
}

impl Wheels<'_> {
    fn folder(&self) -> PathBuf {
        self.context.target.join("wheel").join(self.profile)
    }

    /// The program of this name in a venv with these packages; fetched once.
    fn venv(&self, name: &str, needs: &[&str]) -> Result<PathBuf, String> {
        let venv = self.context.target.join("wheel").join("venvs").join(name);
        let told = venv.join("needs.txt");
        let wanted = format!("{}\n{}\n", self.python, needs.join("\n"));
        if fs::read_to_string(&told).is_ok_and(|text| text == wanted) {
            return Ok(venv);
        }
        let mut make = self.context.command(self.python);
        make.args(["-m", "venv", "--clear"]).arg(&venv);
        process::done(make, FETCHED, "python3 -m venv")?;
        let mut pip = self.pip(&venv);
        pip.args(needs);
        process::done(pip, FETCHED, "pip install")?;
        fs::write(&told, wanted).map_err(|why| format!("{}: {why}", told.display()))?;
        Ok(venv)
    }

    /// What these tests use. Those of what is missing say so, and are skipped.
    fn needs(&self, tests: TestFiles) -> Result<Vec<&'static str>, String> {
        const ASK: &str =
            "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED') or 0)";
        let mut ask = self.context.command(self.python);
        ask.args(["-c", ASK]);
        let said = process::done(ask, TESTED, "python3 -c")?;
        Ok(if said.trim() == "1" {
            WITHOUT_LOCK.to_vec()
        } else {
            TEST_NEEDS.iter().chain(tests.needs).copied().collect()
        })
    }

    fn pip(&self, venv: &Path) -> Command {
        let mut pip = self.context.command(program(venv, "python"));
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        pip
    }

    /// Builds the wheel; its path.
    fn build(&self) -> Result<PathBuf, String> {
        let venv = self.venv("build", BUILDER)?;
        let out = self.folder().join("wheels");
        // An older version is of no use.
        let _ = fs::remove_dir_all(&out);
        let mut maturin = self.context.command(program(&venv, "maturin"));
        maturin
            .args(["build", "--quiet", "--locked", "--profile", self.profile])
            .args(["--interpreter", self.python])
            .arg("--manifest-path")
            .arg(self.context.root.join(PACKAGE).join("Cargo.toml"))
            .arg("--out")
            .arg(&out)
            .env("CARGO_TARGET_DIR", self.context.target.join("wheel/cargo"));
        process::done(maturin, BUILT, "maturin build")?;
        let files = fs::read_dir(&out).map_err(|why| format!("{}: {why}", out.display()))?;
        let mut paths = files.flatten().map(|file| file.path());
        let is_wheel = |path: &PathBuf| path.extension().is_some_and(|end| end == "whl");
        let wheel = paths.find(is_wheel);
        wheel.ok_or_else(|| "maturin says that it has built a wheel, and there is none".to_owned())
    }

    /// Runs tests with the wheel in a venv that has nothing else of the project; what failed, if anything.
    fn check(
        &self,
        wheel: &Path,
        tests: TestFiles,
        stream: bool,
    ) -> Result<(Counts, Option<String>), String> {
        let needs = self.needs(tests)?;
        // Those that measure want what `cargo xtask wheel` builds, and not the stage's quick build.
        let name = format!("{}-{}", tests.venv, self.profile);
        let venv = self.venv(&name, &needs)?;
        let mut pip = self.pip(&venv);
        pip.args(["--force-reinstall", "--no-deps"]).arg(wheel);
        process::done(pip, FETCHED, "pip install")?;
        let folder = self.context.root.join(PACKAGE);
        if tests.has_types {
            let mut types = self.context.command(program(&venv, "python"));
            types.current_dir(self.context.target.join("wheel")).args([
                "-m",
                "mypy",
                "--strict",
                "--no-error-summary",
                "--package",
                "paceline",
            ]);
            process::done(types, TESTED, "mypy")?;
        }
        let mut pytest = self.context.command(program(&venv, "python"));
        pytest
            .current_dir(self.context.target.join("wheel"))
            .args(["-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"])
            .args(
                tests
                    .names
                    .iter()
                    .map(|name| folder.join("tests").join(name)),
            );
        pytest.env("PYTHONDONTWRITEBYTECODE", "1");
        let outcome = process::run(
            pytest,
            Manner {
                silence: TESTED,
                stream,
                apart: false,
            },
        );
        let counts = pytest_counts(&outcome.output);
        let failure = outcome
            .failure
            .map(|why| format!("{}pytest: {why}", outcome.output));
        Ok((counts, failure))
    }
}

fn program(venv: &Path, name: &str) -> PathBuf {
    venv.join("bin").join(name)
}

/// What pytest's last line says: `3 failed, 20 passed, 1 skipped in 4.56s`.
fn pytest_counts(output: &str) -> Counts {
    let mut counts = Counts::default();
    let line = output.lines().rev().find(|line| line.contains(" in "));
    let words: Vec<&str> = line.unwrap_or_default().split([' ', ',']).collect();
    for pair in words.windows(2) {
        let Ok(number) = pair[0].parse() else {
            continue;
        };
        match pair[1] {
            "passed" => counts.passed = number,
            "failed" | "error" | "errors" => counts.failed += number,
            "skipped" => counts.skipped = number,
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: pytest's counts are read. Method: its last lines.
    #[test]
    fn counts_are_those_of_the_last_line() {
        let told = |text| {
            let counts = pytest_counts(text);
            (counts.passed, counts.failed)
        };
        assert_eq!(told("..\n20 passed in 4.56s\n"), (20, 0));
        assert_eq!(told("3 failed, 20 passed, 1 skipped in 1.00s\n"), (20, 3));
        assert_eq!(told("no tests ran in 0.01s\n"), (0, 0));
    }
}
