//! Box2D 3.0's own tests and benchmark, which are written for enkiTS, unmodified on the header with its names
//! (`crates/capi/include/enkits`).

use std::path::{Path, PathBuf};

use super::c::{Language, Sources, files, headers, library, objects, program};
use super::unpack::unpacked;
use super::{SILENCE, Tested};
use crate::context::Context;
use crate::counts::Counts;
use crate::process;

/// Box2D asserts what it needs of its task system: that the number of a worker is one of those there are.
const WITH_ASSERTIONS: &[&str] = &["-std=gnu17", "-w"];

/// Compiles and runs both. The benchmark makes few steps, since it has assertions. One count for each of
/// Box2D's tests, and one for each of the benchmark's scenes.
pub(super) fn tests(context: &Context) -> Result<Tested, String> {
    let package = unpacked(context, "box2d_sys")?.join("box2d");
    let (include, sources) = (package.join("include"), package.join("src"));
    let enkits = headers(context).join("enkits");
    let includes: &[&Path] = &[&enkits, &include, &sources];
    let box2d = Sources {
        name: "box2d-3.0",
        language: Language::C,
        flags: WITH_ASSERTIONS,
        files: &files(&sources, "c")?,
        includes,
    };
    let (objects, ours) = (objects(context, &box2d)?, library(context)?);
    let mut counts = Counts::default();
    for (name, sign) in [("test", "test passed: "), ("benchmark", "benchmark: ")] {
        let sources = Sources {
            name,
            language: Language::C,
            flags: WITH_ASSERTIONS,
            files: &files(&package.join(name), "c")?,
            includes,
        };
        let program = program(context, &sources, &objects, &ours)?;
        counts.passed += run(context, &program, sign)?;
    }
    Ok(Tested {
        client: "Box2D 3.0",
        counts,
    })
}

/// Runs one of them, where it may write its results. How many lines begin like that.
fn run(context: &Context, program: &PathBuf, sign: &str) -> Result<u64, String> {
    let mut command = context.command(program);
    command.current_dir(program.parent().unwrap_or(program));
    let output = process::done(command, SILENCE, "Box2D 3.0")?;
    let said = output.lines().filter(|line| line.starts_with(sign)).count();
    match said {
        0 => Err(format!("no line begins with {sign:?}:\n{output}")),
        said => Ok(said as u64),
    }
}
