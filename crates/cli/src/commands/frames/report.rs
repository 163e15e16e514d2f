//! The results of a run of frames, for people and as JSON.

use std::collections::BTreeMap;
use std::fmt::Display;

use comfy_table::{CellAlignment, Table};
use console::help::Answer;
use console::output;
use event::Nanos;
use measure::{Machine, Noise, Times};
use serde::Serialize;

use super::interference::{self, InterferenceJson};
use super::recorder::TracedFrames;
use super::run::FramesOutcome;
use super::waits::TimedWait;
use crate::commands::accounts::{
    Account, AccountJson, InversionJson, ThreadJson, WaitJson, WhoJson,
};

/// The object of `--json`.
#[derive(Serialize)]
pub(super) struct FramesReport<'a> {
    scene: &'a str,
    graph: Option<&'a str>,
    workers: usize,
    frames: u64,
    frame_ns: Times,
    missed: u64,
    cpu_ns_per_frame: Option<u64>,
    jobs_per_frame: u64,
    serial_ns: u64,
    speedup: f64,
    stats: BTreeMap<&'static str, u64>,
    waits: ReportedWaits<'a>,
    /// These as in `diagnose`. Null: the run was not recorded.
    version: Option<u32>,
    who: Option<Vec<WhoJson>>,
    least_share: Option<f64>,
    inversions: Option<Vec<InversionJson>>,
    inversions_omitted: Option<usize>,
    /// Null: the kernel's half is missing.
    threads: Option<Vec<ThreadJson>>,
    checksum: String,
    trace: Option<TracedFrames>,
    os_help: &'a [Answer],
    interference: InterferenceJson,
    quiet: bool,
    noise: Noise,
    machine: &'a Machine,
}

/// The waits of a run that was recorded, or those of the main thread by a stopwatch.
#[derive(Serialize)]
#[serde(untagged)]
enum ReportedWaits<'a> {
    Explained(Vec<WaitJson>),
    Timed(&'a [TimedWait]),
}

pub(super) fn json(outcome: &FramesOutcome) -> FramesReport<'_> {
    let account = outcome.account.as_ref();
    let told = account.map(AccountJson::of).unwrap_or_default();
    FramesReport {
        scene: outcome.scene,
        graph: outcome.graph.as_deref(),
        workers: outcome.workers,
        frames: outcome.frames,
        frame_ns: outcome.times,
        missed: outcome.missed,
        cpu_ns_per_frame: outcome.cpu.map(|cpu| cpu.0),
        jobs_per_frame: outcome.jobs,
        serial_ns: outcome.serial.0,
        speedup: speedup(outcome),
        stats: outcome.stats.named().into_iter().collect(),
        waits: match told.waits {
            Some(waits) => ReportedWaits::Explained(waits),
            None => ReportedWaits::Timed(&outcome.waits),
        },
        version: told.version,
        who: told.who,
        least_share: told.least_share,
        inversions: told.inversions,
        inversions_omitted: told.inversions_omitted,
        threads: account.and_then(Account::threads_json),
        checksum: format!("{:016x}", outcome.checksum),
        trace: outcome.traced,
        os_help: &outcome.help,
        interference: interference::json(&outcome.interference),
        quiet: outcome.noise.is_quiet(),
        noise: outcome.noise,
        machine: &outcome.machine,
    }
}

/// How many times shorter the median frame is than a serial one.
fn speedup(outcome: &FramesOutcome) -> f64 {
    outcome.serial.0 as f64 / outcome.times.p50.max(1) as f64
}

/// The tables for people.
pub(super) fn table(outcome: &FramesOutcome) -> String {
    let mut tables = vec![what(outcome), times(outcome), counts(outcome)];
    tables.push(interference::table(&outcome.interference));
    if outcome.account.is_none() {
        tables.push(waits(outcome));
    }
    let tables = tables.iter().filter(|table| !table.is_empty());
    let mut parts: Vec<String> = tables.map(Table::to_string).collect();
    if let Some(account) = &outcome.account {
        let columns = output::columns();
        let told = [
            account.worst_text(columns),
            account.inversions_text(columns),
        ];
        parts.extend(told.into_iter().flatten().map(|text| format!("\n{text}")));
        parts.push(format!("\n{}", account.waits_table()));
        parts.extend(account.threads_table().map(|table| table.to_string()));
    }
    parts.join("\n")
}

/// What was run, where and how.
pub(super) fn what(outcome: &FramesOutcome) -> Table {
    let mut table = output::table();
    let mut row = |key: &str, value: &dyn Display| {
        table.add_row([key.to_owned(), value.to_string()]);
    };
    row("scene", &outcome.title);
    row("work", &outcome.work);
    row("machine", &outcome.machine);
    row("during the run", &outcome.noise);
    let pace = match outcome.period {
        Some(period) => format!("one every {}", Nanos::from(period)),
        None => "as fast as possible".to_owned(),
    };
    row("frames", &format!("{}, {pace}", outcome.frames));
    let workers = match outcome.workers {
        1 => "1 worker".to_owned(),
        count => format!("{count} workers"),
    };
    row("threads", &format!("{workers} and the main thread"));
    for answer in &outcome.help {
        row(
            "help of the kernel",
            &format!("{}: {}", answer.asked, answer.words()),
        );
    }
    row(
        "checksum",
        &format!("{:016x}, as in a serial run", outcome.checksum),
    );
    if let Some(traced) = outcome.traced {
        row("trace", &trace_row(&traced));
    }
    table
}

fn trace_row(traced: &TracedFrames) -> String {
    let jobs = format!(
        "{} events of jobs kept, {} lost",
        traced.events, traced.lost
    );
    match traced.kernel {
        None => jobs,
        Some(kernel) => format!(
            "{jobs}; {} of the kernel, {} lost",
            kernel.events, kernel.lost
        ),
    }
}

/// How long frames took.
pub(super) fn times(outcome: &FramesOutcome) -> Table {
    let mut table = output::table();
    let Times {
        mean,
        p50,
        p99,
        max,
    } = outcome.times;
    table.set_header([
        "frame: mean",
        "p50",
        "p99",
        "max",
        "serial",
        "speed-up",
        "missed",
        "CPU",
        "jobs",
    ]);
    let cpu = outcome
        .cpu
        .map_or("unknown".to_owned(), |cpu| cpu.to_string());
    table.add_row([
        Nanos(mean).to_string(),
        Nanos(p50).to_string(),
        Nanos(p99).to_string(),
        Nanos(max).to_string(),
        outcome.serial.to_string(),
        format!("{:.2}", speedup(outcome)),
        outcome.missed.to_string(),
        cpu,
        outcome.jobs.to_string(),
    ]);
    align_right(&mut table);
    table
}

/// The job system's counters, for the whole run and per frame.
pub(super) fn counts(outcome: &FramesOutcome) -> Table {
    let mut table = output::table();
    table.set_header(["counted by the job system", "in all", "per frame"]);
    let about_frames = ["frames", "frames_missed"];
    for (name, count) in outcome.stats.named() {
        let per_frame = count as f64 / outcome.frames as f64;
        if !about_frames.contains(&name) {
            table.add_row([
                name.replace('_', " "),
                count.to_string(),
                format!("{per_frame:.2}"),
            ]);
        }
    }
    align_right(&mut table);
    table
}

fn waits(outcome: &FramesOutcome) -> Table {
    let mut table = output::table();
    table.set_header([
        "longest waits of the main thread",
        "frame",
        "since start",
        "length",
    ]);
    for wait in &outcome.waits {
        table.add_row([
            wait.name.to_owned(),
            wait.frame.to_string(),
            Nanos(wait.start_ns).to_string(),
            Nanos(wait.duration_ns).to_string(),
        ]);
    }
    align_right(&mut table);
    table
}

/// All columns but the first are numbers.
fn align_right(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}
