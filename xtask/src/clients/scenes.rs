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

/// Both pools, in one process.
const BOTH: &str = "2";

/// One of them: the library's own, and ours, in an order that changes.
const APART: [[&str; 2]; 2] = [["0", "1"], ["1", "0"]];

/// A step of a world is a short program: so many blocks of them for each round of the others.
const BLOCKS_A_ROUND: u32 = 20;

/// Steps the scenes on both pools, in turns, and prints a table. Whether they ended the same.
///
/// The pools are in one process, and each steps a block of `steps` at a time. Beside something else each has
/// processes of its own, for a round at a time: in one process the thread that steps would pay in one pool's
/// steps for what it has computed in the other's, since the kernel owes it less of a CPU then.
pub(super) fn measure(
    context: &Context,
    scenes: &Path,
    [library, version]: [&str; 2],
    (rounds, steps): (u32, u32),
    beside: Option<Beside>,
) -> Result<bool, String> {
    let before = load();
    let around = Surroundings::begin(context, beside)?;
    let mut measured = Measured::new();
    let mut run = |blocks: u32, pool: &str| {
        let mut command = around.command(context, scenes);
        command.arg("time");
        // One block warms up.
        command.args([THREADS, blocks + 1, steps].map(|number| number.to_string()));
        command.arg(pool);
        let output = process::done(command, SILENCE, library)?;
        take_all(&output, &mut measured)
    };
    if beside.is_none() {
        run(rounds * BLOCKS_A_ROUND, BOTH)?;
    } else {
        for round in 0..rounds as usize {
            for pool in APART[round % 2] {
                run(BLOCKS_A_ROUND, pool)?;
            }
        }
    }
    drop(around);
    let processes = if beside.is_none() {
        "in one process"
    } else {
        "in a process each"
    };
    println!("{library} {version}, {THREADS} threads, {processes}");
    let same = print(library, &mut measured);
    say_load(before);
    Ok(same)
}

/// Notes what a program printed: a line for each pool and scene.
fn take_all(output: &str, measured: &mut Measured) -> Result<(), String> {
    for line in output.lines() {
        let taken = line
            .split_once(' ')
            .and_then(|(pool, rest)| take(rest, pool.parse().ok()?, measured));
        taken.ok_or_else(|| format!("not a result: {line}"))?;
    }
    Ok(())
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
