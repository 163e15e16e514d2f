//! Box2D 3.2 as its package ships it, by its task callbacks: `clients/box2d/scenes.c` on `paceline_box2d.h`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::c::{Sources, files, library, objects, program};
use super::table::{Measured, load, print, say_load, take};
use super::unpack::unpacked;
use super::{SILENCE, Tested};
use crate::context::Context;
use crate::counts::Counts;
use crate::process;

/// The threads that step a world, the one that waits among them: as many as the smallest machine has.
const THREADS: u32 = 2;

/// Compiles Box2D and the scenes.
pub(super) fn build(context: &Context) -> Result<PathBuf, String> {
    let package = unpacked(context, "boxdd-sys")?.join("third-party/box2d");
    let (include, sources) = (package.join("include"), package.join("src"));
    let box2d = Sources {
        name: "box2d",
        flags: &["-std=gnu17", "-DNDEBUG"],
        files: &files(&sources, "c")?,
        includes: &[&include, &sources],
    };
    let scenes = Sources {
        name: "scenes",
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

/// Compares hashes: lines of scene, pool, workers, hash.
fn compared(output: &str) -> Result<Counts, String> {
    let mut first = BTreeMap::new();
    let mut counts = Counts::default();
    for line in output.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [scene, _pool, _workers, hash] = words[..] else {
            return Err(format!("not a result: {line}"));
        };
        let expected = *first.entry(scene).or_insert(hash);
        if hash == expected {
            counts.passed += 1;
        } else {
            counts.failed += 1;
            println!("{line}: the first run of this scene has ended in {expected}");
        }
    }
    Ok(counts)
}

/// Steps the scenes on both pools, in blocks, in turns, and prints a table. Whether they ended the same.
pub(super) fn measure(
    context: &Context,
    scenes: &Path,
    (blocks, steps): (u32, u32),
) -> Result<bool, String> {
    let before = load();
    let mut command = context.command(scenes);
    command.arg("time");
    command.args([THREADS, blocks + 1, steps].map(|number| number.to_string()));
    let output = process::done(command, SILENCE, "Box2D's scenes")?;
    let mut measured = Measured::new();
    for line in output.lines() {
        let taken = line
            .split_once(' ')
            .and_then(|(pool, rest)| take(rest, pool.parse().ok()?, &mut measured));
        taken.ok_or_else(|| format!("not a result: {line}"))?;
    }
    println!("Box2D 3.2, {THREADS} threads");
    let same = print("Box2D", &mut measured);
    say_load(before);
    Ok(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a hash that differs is found. Method: lines as the program prints them.
    #[test]
    fn hashes_are_compared() {
        let same = "rain 0 1 ab\nrain 1 0 ab\ncloth 0 1 cd\n";
        assert_eq!(compared(same).unwrap().passed, 3);
        let differs = compared("rain 0 1 ab\nrain 1 0 ac\n").unwrap();
        assert_eq!((differs.passed, differs.failed), (1, 1));
        assert!(compared("rain").is_err());
    }
}
