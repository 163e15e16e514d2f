//! Jolt Physics as a package ships it, on `paceline_jolt.hpp`: `clients/jolt`, and Jolt's own
//! PerformanceTest.

use std::path::{Path, PathBuf};

use super::c::{Language, Sources, files, files_below, library, objects, program};
use super::rayon::{on_our_core, test};
use super::scenes::compared;
use super::unpack::unpacked;
use super::{SILENCE, Tested};
use crate::context::Context;
use crate::counts::Counts;
use crate::process;

/// The most threads that PerformanceTest runs on.
const MOST_THREADS: u32 = 9;

/// How many steps PerformanceTest makes of each scene.
const TESTED_STEPS: u32 = 40;

/// Those of PerformanceTest's scenes that need no files.
const TESTED_SCENES: [&str; 2] = ["Pyramid", "ConvexVsMesh"];

/// As Jolt's own build: without exceptions and types at run time.
const FLAGS: &[&str] = &["-std=c++17", "-DNDEBUG", "-fno-exceptions", "-fno-rtti"];

/// The same, and no warning.
const STRICT: &[&str] = &[
    "-std=c++17",
    "-DNDEBUG",
    "-fno-exceptions",
    "-fno-rtti",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
];

/// With Jolt's assertions, the checkers of addresses and undefined behaviour, and no warning.
const CHECKED: &[&str] = &[
    "-std=c++17",
    "-g",
    "-D_DEBUG",
    "-DJPH_ENABLE_ASSERTS",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
];

/// The programs on Jolt.
pub(super) struct Built {
    pub(super) scenes: PathBuf,
    /// PerformanceTest on Jolt's thread pool, and on ours.
    performance: [PathBuf; 2],
}

fn cpp<'s>(
    name: &'static str,
    flags: &'static [&'static str],
    files: &'s [PathBuf],
    includes: &'s [&'s Path],
) -> Sources<'s> {
    Sources {
        name,
        language: Language::Cpp,
        flags,
        files,
        includes,
    }
}

fn jolt(context: &Context) -> Result<PathBuf, String> {
    Ok(unpacked(context, "joltc-sys")?.join("JoltC/JoltPhysics"))
}

/// Compiles Jolt, which takes minutes, the scenes, and PerformanceTest.
pub(super) fn build(context: &Context) -> Result<Built, String> {
    let jolt = jolt(context)?;
    let tests = jolt.join("PerformanceTest");
    let includes: &[&Path] = &[&jolt, &tests];
    let all = files_below(&jolt.join("Jolt"), "cpp")?;
    let objects = objects(context, &cpp("jolt", FLAGS, &all, includes))?;
    let ours = library(context)?;
    let made = |name, flags, file: PathBuf| {
        let files = [file];
        program(
            context,
            &cpp(name, flags, &files, includes),
            &objects,
            &ours,
        )
    };
    let own = tests.join("PerformanceTest.cpp");
    let client = context.root.join("clients/jolt");
    Ok(Built {
        scenes: made("jolt-scenes", STRICT, client.join("scenes.cpp"))?,
        performance: [
            made("jolt-performance", FLAGS, own)?,
            made(
                "jolt-performance-ours",
                STRICT,
                client.join("performance.cpp"),
            )?,
        ],
    })
}

/// What steps rely on, and what can go wrong. It takes some of Jolt's sources alone, and seconds. One count
/// for each rule that holds.
pub(super) fn rules(context: &Context) -> Result<Tested, String> {
    let jolt = jolt(context)?;
    let core = files(&jolt.join("Jolt/Core"), "cpp")?;
    let wanted = ["Color", "IssueReporting", "Memory", "Profiler"];
    let is_wanted = |path: &PathBuf| {
        path.file_stem()
            .is_some_and(|name| wanted.iter().any(|it| name == *it))
    };
    let core: Vec<PathBuf> = core.into_iter().filter(is_wanted).collect();
    let includes: &[&Path] = &[&jolt];
    let objects = objects(context, &cpp("jolt-core", CHECKED, &core, includes))?;
    let rules = [context.root.join("clients/jolt/rules.cpp")];
    let rules = cpp("jolt-rules", CHECKED, &rules, includes);
    let program = program(context, &rules, &objects, &library(context)?)?;
    let output = process::done(context.command(program), SILENCE, "Jolt's rules")?;
    let passed = output.lines().count() as u64;
    Ok(Tested {
        client: "Jolt's rules",
        counts: Counts {
            passed,
            ..Counts::default()
        },
    })
}

/// Whether each scene ends the same on one thread, with none to 8 workers of Jolt's own pool, and with none
/// to 8 of ours; those of PerformanceTest, too. One count for each run.
pub(super) fn check(context: &Context, built: &Built) -> Result<Tested, String> {
    let mut command = context.command(&built.scenes);
    command.arg("check");
    let mut output = process::done(command, SILENCE, "Jolt's scenes")?;
    for scene in TESTED_SCENES {
        for threads in 1..=MOST_THREADS {
            for (pool, program) in built.performance.iter().enumerate() {
                let mut command = context.command(program);
                command.arg(format!("-s={scene}"));
                command.arg(format!("-t={threads}"));
                command.arg(format!("-i={TESTED_STEPS}"));
                let said = process::done(command, SILENCE, "PerformanceTest")?;
                for (quality, hash) in hashes(&said)? {
                    output += &format!("{scene}-{quality} {pool} {} {hash}\n", threads - 1);
                }
            }
        }
    }
    Ok(Tested {
        client: "Jolt 5.0",
        counts: compared(&output)?,
    })
}

/// Those of oxijolt's own tests that run Jolt 5.6 on rayon, on our workers: `clients/rayon-core` is in the
/// place of rayon's core. They compare states bit for bit. Compiling them takes minutes.
pub(super) fn oxijolt_tests(context: &Context) -> Result<Tested, String> {
    let package = on_our_core(context, "oxijolt")?;
    let tests = [
        "--no-default-features", // It would fetch a library that is compiled already.
        "--test",
        "job_system",
        "--test",
        "determinism",
        "--test",
        "event_determinism",
    ];
    test(context, &package, "oxijolt", &tests)
}

/// What PerformanceTest says of each quality of motion: it, and the hash.
fn hashes(said: &str) -> Result<Vec<(&str, &str)>, String> {
    let found: Vec<_> = said
        .lines()
        .filter_map(|line| {
            let mut words = line.split(", ");
            let quality = words.next()?;
            let hash = words.nth(2)?;
            hash.starts_with("0x").then_some((quality, hash))
        })
        .collect();
    if found.is_empty() {
        return Err(format!("PerformanceTest says no hash:\n{said}"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each hash of PerformanceTest is found, and none is noticed. Method: lines as it prints them.
    #[test]
    fn hashes_are_found() {
        let said = "Running scene: Pyramid\nMotion Quality, Thread Count, Steps / Second, Hash\n\
                    Discrete, 3, 79.751069, 0xf88971862d73617\nLinearCast, 3, 77.466065, 0xab\n";
        let expected = [("Discrete", "0xf88971862d73617"), ("LinearCast", "0xab")];
        assert_eq!(hashes(said).unwrap(), expected);
        assert!(hashes("Unable to load ragdoll\n").is_err());
    }
}
