//! Box2D 3.2 as its package ships it, by its task callbacks: `clients/box2d/scenes.c` on `paceline_box2d.h`.

use std::path::{Path, PathBuf};

use super::c::{Language, Sources, files, library, objects, program};
use super::scenes::compared;
use super::unpack::unpacked;
use super::{SILENCE, Tested};
use crate::context::Context;
use crate::process;

/// Compiles Box2D and the scenes.
pub(super) fn build(context: &Context) -> Result<PathBuf, String> {
    let package = unpacked(context, "boxdd-sys")?.join("third-party/box2d");
    let (include, sources) = (package.join("include"), package.join("src"));
    let box2d = Sources {
        name: "box2d",
        language: Language::C,
        flags: &["-std=gnu17", "-DNDEBUG"],
        files: &files(&sources, "c")?,
        includes: &[&include, &sources],
    };
    let scenes = Sources {
        name: "scenes",
        language: Language::C,
        flags: &["-std=c11", "-Wall", "-Wextra", "-Werror"],
        files: &[context.root.join("clients/box2d/scenes.c")],
        includes: &[&include],
    };
    program(
        context,
        &scenes,
        &objects(context, &box2d)?,
        &library(context)?,
    )
}

/// Whether each scene ends the same with 1 to 8 workers on Box2D's own scheduler, and on ours with none to 8.
/// One count for each run.
pub(super) fn check(context: &Context, scenes: &Path) -> Result<Tested, String> {
    let mut command = context.command(scenes);
    command.arg("check");
    let output = process::done(command, SILENCE, "Box2D's scenes")?;
    let counts = compared(&output)?;
    Ok(Tested {
        client: "Box2D 3.2",
        counts,
    })
}
