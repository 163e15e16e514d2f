//! Programs in rayon's words (`clients/rayon-demo`), on rayon's own core and on ours, in turns.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::SILENCE;
use super::unpack::{folder, fresh};
use crate::context::Context;
use crate::process;

/// More than so many threads that want to run, and the machine is not quiet.
const QUIET: f64 = 0.5;

/// What a program did on one core.
#[derive(Default)]
struct Ran {
    digests: Vec<String>,
    /// The time of each step, in nanoseconds.
    times: Vec<f64>,
}

/// By the programs' names: what they did on rayon's core, and on ours.
type Measured = BTreeMap<String, [Ran; 2]>;

/// Builds both, runs them in turns, and prints a table. Whether they computed the same.
pub(super) fn run(context: &Context, steps: u32, rounds: u32) -> Result<bool, String> {
    let ours = context.root.join("clients/rayon-core");
    let programs = [
        build(context, "demo-rayon", None)?,
        build(context, "demo-paceline", Some(&ours))?,
    ];
    let before = load();
    let mut measured = Measured::new();
    for _ in 0..rounds {
        for (core, program) in programs.iter().enumerate() {
            let mut command = context.command(program);
            command.arg(steps.to_string());
            let output = process::done(command, SILENCE, "rayon-demo")?;
            for line in output.lines() {
                take(line, core, &mut measured).ok_or_else(|| format!("not a result: {line}"))?;
            }
        }
    }
    let same = print(&mut measured);
    let after = load();
    match before.zip(after) {
        Some((before, _)) if before <= QUIET => println!("the machine was quiet (load {before})"),
        Some((before, after)) => println!(
            "the machine was not quiet (load {before} before, {after} after): the times do not count"
        ),
        None => println!("it is not known whether the machine was quiet"),
    }
    Ok(same)
}

/// Builds a copy of the programs, since each core wants a lock file of its own.
fn build(context: &Context, name: &str, core: Option<&Path>) -> Result<PathBuf, String> {
    let package = fresh(context, &context.root.join("clients/rayon-demo"), name)?;
    let target = folder(context).join(format!("target-{name}"));
    let mut command = context.command("cargo");
    command.args(["build", "--release"]).current_dir(&package);
    command
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("RUSTFLAGS");
    if let Some(core) = core {
        let patch = format!("patch.crates-io.rayon-core.path={core:?}");
        command.args(["--config", &patch]);
    }
    process::done(command, SILENCE, "cargo build")?;
    let program = target.join("release/rayon-demo");
    Ok(program.with_extension(std::env::consts::EXE_EXTENSION))
}

/// Notes a line of the program's: its name, a digest, times.
fn take(line: &str, core: usize, measured: &mut Measured) -> Option<()> {
    let mut words = line.split(' ');
    let (name, digest) = (words.next()?, words.next()?);
    let times: Result<Vec<f64>, _> = words.map(str::parse::<f64>).collect();
    let ran = &mut measured.entry(name.to_owned()).or_default()[core];
    ran.digests.push(digest.to_owned());
    ran.times
        .extend(times.ok().filter(|times| !times.is_empty())?);
    Some(())
}

/// Prints the table, and returns whether all digests of each program are equal.
fn print(measured: &mut Measured) -> bool {
    println!("program      same   rayon ms (quarters)       Paceline ms (quarters)    ratio");
    let (mut all_same, mut logarithms) = (true, 0.0);
    for (name, [own, ours]) in measured.iter_mut() {
        let mut digests = own.digests.iter().chain(&ours.digests);
        let first = digests.next().cloned();
        let same = digests.all(|digest| Some(digest) == first.as_ref());
        all_same &= same;
        let [own, ours] = [own, ours].map(|ran| quarters(&mut ran.times));
        let ratio = ours[1] / own[1];
        logarithms += ratio.ln();
        let shown = [own, ours].map(|[low, middle, high]| {
            let text = format!("{:.3} ({:.3}–{:.3})", middle / 1e6, low / 1e6, high / 1e6);
            format!("{text:<25}")
        });
        let word = if same { "yes" } else { "NO" };
        println!("{name:<12} {word:<6} {} {} {ratio:.2}", shown[0], shown[1]);
    }
    let mean = (logarithms / measured.len().max(1) as f64).exp();
    println!("geometric mean of the ratios of medians: {mean:.3}");
    all_same
}

/// The quarters' borders.
fn quarters(times: &mut [f64]) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| times[(times.len() - 1) * quarter / 4])
}

/// How many threads want to run, on average over the last minute.
fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: results of both cores come together, and a different digest is found. Method: lines as the
    /// program prints them.
    #[test]
    fn results_come_together() {
        let mut measured = Measured::new();
        for (line, core) in [("life ab 4 1 3", 0), ("life ab 2 2", 1), ("join cd 1", 0)] {
            assert_eq!(take(line, core, &mut measured), Some(()));
        }
        assert_eq!(
            quarters(&mut measured.get_mut("life").unwrap()[0].times),
            [1.0, 3.0, 3.0]
        );
        take("join ce 1", 1, &mut measured).unwrap();
        assert!(!print(&mut measured));
        assert_eq!(take("nothing", 0, &mut measured), None);
        assert_eq!(take("life ab x", 0, &mut measured), None);
    }
}
