//! Programs that step the same scenes on a library's own pool and on ours.

use std::collections::BTreeMap;
use std::path::Path;

use super::SILENCE;
use super::beside::{Beside, Surroundings};
use super::table::{Measured, load, print, say_load, take};
use crate::context::Context;
use crate::counts::Counts;
use crate::process;

/// The threads that step a world, the one that waits among them: as many as the smallest machine has.
const THREADS: u32 = 2;

/// Compares hashes: lines of scene, pool, workers, hash.
pub(super) fn compared(output: &str) -> Result<Counts, String> {
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
    [library, version]: [&str; 2],
    (blocks, steps): (u32, u32),
    beside: Option<Beside>,
) -> Result<bool, String> {
    let before = load();
    let around = Surroundings::begin(context, beside)?;
    let mut command = around.command(context, scenes);
    command.arg("time");
    command.args([THREADS, blocks + 1, steps].map(|number| number.to_string()));
    let output = process::done(command, SILENCE, library)?;
    drop(around);
    let mut measured = Measured::new();
    for line in output.lines() {
        let taken = line
            .split_once(' ')
            .and_then(|(pool, rest)| take(rest, pool.parse().ok()?, &mut measured));
        taken.ok_or_else(|| format!("not a result: {line}"))?;
    }
    println!("{library} {version}, {THREADS} threads");
    let same = print(library, &mut measured);
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
