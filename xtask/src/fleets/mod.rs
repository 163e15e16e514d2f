//! `cargo xtask fleets`: what fleets and sweeps cost, as ratios, on this machine.
//!
//! Each ratio is of two programs that take turns, the first round thrown away: a median of the rounds, with
//! the least and the greatest beside it. So a machine that is busy makes both slower. Nothing fails because
//! of a number: what must hold is printed beside what was found.

mod measure;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;

use crate::context::Context;
use crate::process;
use measure::{Ratio, peak_of, seconds, turns};

/// How long a build may be silent.
const BUILT: Duration = Duration::from_secs(20 * 60);
/// How long the making of traces may take.
const MADE: Duration = Duration::from_secs(5 * 60);

/// The options of `cargo xtask fleets`.
#[derive(Args)]
#[command(after_help = "\
What Python and Ray add wants the package in a Python: `cargo xtask wheel --check --ray` makes one, which
is target/wheel/venvs/ray-release/bin/python. (The stage of the tests builds without all optimizations.)")]
pub(crate) struct Options {
    /// How many rounds
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// The Python that has the package, instead of that of `cargo xtask wheel --check --ray`
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    /// Only these: sweep, reader, memory, python, ray
    #[arg(value_name = "NAME")]
    #[arg(value_parser = ["sweep", "reader", "memory", "python", "ray"])]
    names: Vec<String>,
}

/// What is measured with.
struct Bench<'a> {
    context: &'a Context,
    /// The command, and the program beside it.
    paceline: PathBuf,
    probe: PathBuf,
    python: PathBuf,
    /// Where traces and results are; emptied in the end.
    work: PathBuf,
    rounds: usize,
    threads: usize,
}

/// Measures, and prints; whether all could be measured.
pub(crate) fn run(context: &Context, options: &Options) -> Result<bool, String> {
    let mut build = context.command("cargo");
    build.args(["build", "--quiet", "--release", "-p", "paceline-cli"]);
    build.args(["--bin", "paceline", "--example", "fleets"]);
    process::done(build, BUILT, "cargo build")?;
    let built = context.target.join("release");
    let work = context.target.join("fleets");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).map_err(|why| format!("{}: {why}", work.display()))?;
    let usual = context.target.join("wheel/venvs/ray-release/bin/python");
    let bench = Bench {
        context,
        paceline: built.join("paceline"),
        probe: built.join("examples/fleets"),
        python: options.python.clone().unwrap_or(usual),
        work: work.clone(),
        rounds: usize::from(options.rounds),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let measured = bench.all(&options.names);
    let _ = fs::remove_dir_all(&work);
    measured
}

impl Bench<'_> {
    fn all(&self, names: &[String]) -> Result<bool, String> {
        println!(
            "fleets: {} threads, {} rounds; median (least … greatest)",
            self.threads, self.rounds
        );
        let is_asked = |name: &str| names.is_empty() || names.iter().any(|it| it == name);
        if is_asked("sweep") {
            self.sweep()?;
        }
        if is_asked("reader") {
            self.reader()?;
        }
        if is_asked("memory") {
            self.memory()?;
        }
        let (python, ray) = (is_asked("python"), is_asked("ray"));
        if (python || ray) && !self.python.exists() {
            println!(
                "python, ray: not measured, since {} is not there; see cargo xtask fleets --help",
                self.python.display()
            );
            return Ok(names.is_empty());
        }
        if python {
            self.overhead_of_python()?;
        }
        if ray {
            self.overhead_of_ray()?;
        }
        Ok(true)
    }

    /// Speed on all threads, for each of them, against one thread.
    fn sweep(&self) -> Result<(), String> {
        let file = self.work.join("sweep.toml");
        let text = "scenario = \"oversubscribed\"\nseed = \"1-200\"\n";
        fs::write(&file, text).map_err(|why| format!("{}: {why}", file.display()))?;
        let on = |threads: usize| {
            let mut command = self.fresh(self.work.join("sweep.parquet"));
            command.arg("sweep").arg(&file);
            self.out(&mut command, "sweep.parquet", threads);
            command
        };
        let times = turns(self.rounds, || on(1), || on(self.threads))?;
        let ratio = Ratio::of(&times, |one, all| one / all / self.threads as f64);
        println!(
            "sweep: {ratio} of {} times one thread; at least 0.90",
            self.threads
        );
        Ok(())
    }

    /// A fleet against reading alone, and against reading and explaining, all on all threads. It is as large
    /// as fleets are: with some hundred of such traces the last part, which one thread writes, counts.
    fn reader(&self) -> Result<(), String> {
        let traces = self.traces(3000)?;
        let fleet = || self.fleet(&traces);
        for (mode, bound) in [("read", "; at least 0.80"), ("explain", "")] {
            let alone = || {
                let mut command = self.context.command(&self.probe);
                command.arg(mode).arg(&traces).arg(self.threads.to_string());
                command
            };
            let times = turns(self.rounds, alone, fleet)?;
            let ratio = Ratio::of(&times, |alone, fleet| alone / fleet);
            println!("reader: a fleet has {ratio} of the speed of `{mode}` alone{bound}");
        }
        Ok(())
    }

    /// The most memory for ten times as many traces, and again.
    fn memory(&self) -> Result<(), String> {
        for count in [30, 300, 3000, 30_000] {
            let traces = self.traces(count)?;
            let peak = peak_of(self.fleet(&traces))?;
            let peak = peak.map_or("not known here".to_owned(), |kib| {
                format!("{} MB", kib / 1000)
            });
            println!("memory: {count} traces, at most {peak}; flat");
        }
        Ok(())
    }

    /// `paceline.diagnose` with its tables in pyarrow, against the same in Rust.
    fn overhead_of_python(&self) -> Result<(), String> {
        let trace = self.large()?;
        let size = fs::metadata(&trace).map_or(0, |about| about.len());
        let rust = || {
            let mut command = self.context.command(&self.probe);
            command.arg("diagnose").arg(&trace).arg("2");
            command
        };
        let python = || self.python(&["diagnose".as_ref(), trace.as_os_str(), "2".as_ref()]);
        let times = self.told(rust, python)?;
        let ratio = Ratio::of(&times, |rust, python| 100.0 * (python / rust - 1.0));
        println!(
            "python: adds {ratio} % to a trace of {} MB; at most 5",
            size / 1_000_000
        );
        Ok(())
    }

    /// A sweep by one worker of Ray's, against one thread of a process.
    fn overhead_of_ray(&self) -> Result<(), String> {
        const POINTS: &str = "24";
        let on = |what: &str| self.python(&[what.as_ref(), POINTS.as_ref(), "2".as_ref()]);
        let times = self.told(|| on("sweep"), || on("ray"))?;
        let points: f64 = POINTS.parse().unwrap_or(1.0);
        let point = Ratio::of(&times, |local, _| local / points * 1e3);
        let added = Ratio::of(&times, |local, ray| (ray - local) / points * 1e3);
        let share = Ratio::of(&times, |local, ray| 100.0 * (ray - local) / points / 0.5);
        println!("ray: a point takes {point} ms, and a worker adds {added} ms");
        println!("ray: of a point of 0.5 s that is {share} %; at most 5");
        Ok(())
    }

    /// The seconds that two programs say of themselves: the last line, after they have warmed up.
    fn told(
        &self,
        one: impl Fn() -> Command,
        other: impl Fn() -> Command,
    ) -> Result<Vec<[f64; 2]>, String> {
        let mut found = Vec::new();
        for round in 0..self.rounds {
            let first = if round % 2 == 0 { seconds(one())? } else { 0.0 };
            let second = seconds(other())?;
            let first = if round % 2 == 0 {
                first
            } else {
                seconds(one())?
            };
            found.push([first, second]);
        }
        Ok(found)
    }

    fn python(&self, words: &[&std::ffi::OsStr]) -> Command {
        let mut command = self.context.command(&self.python);
        command.current_dir(&self.work).arg("-P");
        command.arg(self.context.root.join("python/tests/ratios.py"));
        command.args(words);
        command
    }

    fn fleet(&self, traces: &Path) -> Command {
        let mut command = self.fresh(self.work.join("fleet.parquet"));
        command.arg("fleet").arg(traces);
        self.out(&mut command, "fleet.parquet", self.threads);
        command
    }

    /// The command, which finds nothing at `out`.
    fn fresh(&self, out: PathBuf) -> Command {
        let _ = fs::remove_dir_all(out);
        self.context.command(&self.paceline)
    }

    fn out(&self, command: &mut Command, name: &str, threads: usize) {
        command.arg("--out").arg(self.work.join(name));
        command.args(["--threads", &threads.to_string()]);
    }

    /// A folder with so many traces: 30 parts of a recording, each of them under several names.
    fn traces(&self, count: usize) -> Result<PathBuf, String> {
        const PARTS: usize = 30;
        const LINES: usize = 2500;
        let folder = self.work.join(format!("traces-{count}"));
        if folder.exists() {
            return Ok(folder);
        }
        let failed = |why: std::io::Error| format!("{}: {why}", folder.display());
        fs::create_dir_all(&folder).map_err(failed)?;
        let text = self.recording()?;
        let (head, body): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with('#'));
        for at in 0..count {
            let path = folder.join(format!("{at:04}.txt"));
            if at < PARTS {
                let begin = at * 37 % body.len().saturating_sub(LINES).max(1);
                let part = body.iter().skip(begin).take(LINES);
                let lines: Vec<&str> = head.iter().chain(part).copied().collect();
                fs::write(&path, lines.join("\n") + "\n").map_err(failed)?;
            } else {
                let part = folder.join(format!("{:04}.txt", at % PARTS));
                fs::hard_link(part, &path).map_err(failed)?;
            }
        }
        Ok(folder)
    }

    /// A trace of 100 MB: a recording again and again, each time later.
    fn large(&self) -> Result<PathBuf, String> {
        const BYTES: usize = 100_000_000;
        let text = self.recording()?;
        let path = self.work.join("large.txt");
        let (head, body): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with('#'));
        let mut made = head.join("\n") + "\n";
        let mut later = 0;
        while made.len() < BYTES {
            for line in &body {
                made.push_str(&measure::shifted(line, later));
                made.push('\n');
            }
            later += 100;
        }
        fs::write(&path, made).map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(path)
    }

    /// A recording as text.
    fn recording(&self) -> Result<String, String> {
        let mut unpack = self.context.command("gzip");
        unpack.args(["-dc", "testdata/traces/local-futex.ftrace.txt.gz"]);
        process::done(unpack, MADE, "gzip")
    }
}
