//! Recording: the kernel's own text of each run, packed.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use event::Nanos;
use flate2::{Compression, GzBuilder};
use platform::Os;
use platform::os::Refused;
use platform::os::tracefs::{Instance, Tracefs};
use trace::timeline::{Options as TimelineOptions, Timeline};
use workload::busy::Busy;

use crate::play::play;
use crate::scenes::{Scene, pairs};

/// As `paceline record` has them, but for what says nothing of scheduling, and with calls of futexes.
const EVENTS: [&str; 8] = [
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_wakeup_new",
    "sched/sched_migrate_task",
    "sched/sched_pi_setprio",
    "sched/sched_process_exit",
    "power/cpu_idle",
];
/// The part of the CPU time that other programs may have.
const OTHERS_MAX: f64 = 0.02;
/// The control groups of version 1.
const GROUPS: &str = "/sys/fs/cgroup/cpu";

/// Record small programs as they are and with a remedy. Recordings that are there stay.
#[derive(Parser)]
#[command(name = "pairs", max_term_width = 100)]
struct Options {
    /// Where the recordings go
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Only the pairs with this in their names
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// How many recordings of each
    #[arg(long, value_name = "N", default_value_t = 3)]
    times: usize,
    /// How often a recording is taken again because of other programs
    #[arg(long, value_name = "N", default_value_t = 10)]
    again: usize,
    /// For how many seconds in all to wait until other programs leave the CPUs
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    patience: u64,
}

pub(crate) fn main() -> ExitCode {
    match record(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn record(options: &Options) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", options.folder.display());
    fs::create_dir_all(&options.folder).map_err(said)?;
    let busy = Busy::calibrate(&Os);
    let mut patience = Duration::from_secs(options.patience);
    for number in 1..=options.times {
        for pair in pairs() {
            if !pair.name.contains(&options.only) {
                continue;
            }
            for (scene, which) in [(&pair.before, "before"), (&pair.after, "after")] {
                let name = format!("{}.{which}-{number}.ftrace.txt.gz", pair.name);
                let path = options.folder.join(&name);
                if path.exists() {
                    continue;
                }
                let (text, others) = calm((scene, busy), options.again, &mut patience)?;
                let packed = pack(&text).map_err(said)?;
                fs::write(&path, &packed).map_err(said)?;
                println!(
                    "{name}: {} bytes, others {:.1} %",
                    packed.len(),
                    others * 100.0
                );
            }
        }
    }
    Ok(())
}

/// The text of a run in which other programs had little of the CPUs, or the least of several.
fn calm(
    (scene, busy): (&Scene, Busy),
    again: usize,
    patience: &mut Duration,
) -> Result<(Vec<u8>, f64), String> {
    let mut best: Option<(Vec<u8>, f64)> = None;
    for _ in 0..=again {
        wait_for_calm(patience);
        let text = once(scene, busy)?;
        let others = others(&text, scene)?;
        if best.as_ref().is_none_or(|(_, least)| others < *least) {
            best = Some((text, others));
        }
        if others <= OTHERS_MAX {
            break;
        }
    }
    best.ok_or_else(|| "nothing was recorded".to_owned())
}

/// Waits until the CPUs have been idle for a while, if there is patience left.
fn wait_for_calm(patience: &mut Duration) {
    const LOOK: Duration = Duration::from_millis(200);
    let idle = || {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = stat.lines().next().unwrap_or_default().to_owned();
        let mut ticks = first.split_whitespace().skip(1).map(str::parse::<u64>);
        ticks.nth(3).and_then(Result::ok).unwrap_or(0)
    };
    // In hundredths of a second, of two CPUs.
    let enough = 2 * LOOK.as_millis() as u64 / 10 * 95 / 100;
    while *patience > LOOK {
        let before = idle();
        std::thread::sleep(LOOK);
        *patience -= LOOK;
        if idle() - before >= enough {
            return;
        }
    }
}

fn said(refused: Refused) -> String {
    refused.to_string()
}

/// Runs a program and returns the kernel's text.
fn once(scene: &Scene, busy: Busy) -> Result<Vec<u8>, String> {
    let instance: Instance = Tracefs::find().and_then(Tracefs::instance).map_err(said)?;
    instance.set("trace_clock", "mono").map_err(said)?;
    instance.set("buffer_size_kb", "8192").map_err(said)?;
    instance.set("options/record-tgid", "1").map_err(said)?;
    for event in EVENTS {
        instance.enable(event, None).map_err(said)?;
    }
    let markers = File::options()
        .write(true)
        .open(instance.path().join("trace_marker"))
        .map_err(|error| format!("trace_marker: {error}"))?;
    let group = scene.quota.map(Group::new).transpose()?;
    let path = group.as_ref().map(|group| group.0.as_path());
    play(scene, (busy, &markers), path, &instance)?;
    if instance.kept().map_err(said)?.lost > 0 {
        return Err("the kernel's buffer was too small".to_owned());
    }
    let mut text = Vec::new();
    let mut source = instance.text().map_err(said)?;
    let read = source.read_to_end(&mut text);
    read.map_err(|error| format!("trace: {error}"))?;
    Ok(text)
}

/// The part of the CPU time of both CPUs that other programs had.
fn others(text: &[u8], scene: &Scene) -> Result<f64, String> {
    let recording = trace::read::read(&mut &text[..], "the kernel's trace");
    let recording = recording.map_err(|error| error.to_string())?;
    let timeline = Timeline::new(recording, &TimelineOptions::default());
    let (begin, end) = timeline.span();
    let is_ours = |name: &str| {
        let mut plans = scene.threads.iter();
        name == "pairs" || plans.any(|plan| plan.name == name)
    };
    let tasks = timeline.threads();
    let others = tasks.filter(|task| !is_ours(&timeline.name(*task)));
    let ran: u64 = others.map(|task| timeline.spent(task).running.0).sum();
    Ok(ran as f64 / (2 * (end - begin).0).max(1) as f64)
}

fn pack(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
    packed.write_all(text)?;
    packed.finish()
}

/// A control group with a quota of CPU time, as long as this lives.
struct Group(PathBuf);

impl Group {
    fn new(quota: Nanos) -> Result<Group, String> {
        let path = Path::new(GROUPS).join(format!("paceline-pairs-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let group = Group(path);
        for (file, time) in [
            ("cpu.cfs_period_us", Nanos::from_millis(100)),
            ("cpu.cfs_quota_us", quota),
        ] {
            let path = group.0.join(file);
            fs::write(&path, (time.0 / 1000).to_string())
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
