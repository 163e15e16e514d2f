//! `paceline diagnose`: where the time of waits went, in anybody's trace.
//!
//! This file declares the options and goes from a file to an account; [`report`] says it.

mod annotate;
mod capacity;
mod page;
mod report;
mod select;

use std::path::PathBuf;

use clap::Args;
use event::Nanos;
use trace::explain::explain;
use trace::timeline::{self, Timeline};

use super::accounts::Account;
use super::trace_file;
use crate::failure::Failure;
use crate::output;

/// Explain waits and frames in a recorded trace: who ran instead, and who inverted whom.
///
/// Reads text of ftrace, atrace and systrace (HTML too), `trace-cmd report`, `perf sched script`, Perfetto's
/// protobuf and Chrome's JSON, each packed with gzip or not. What is explained: the waits and frames of
/// Paceline's job system, and slices whose names say that they are frames or waits; without any, the sleeps
/// that another thread ended. --thread and --slice choose.
///
/// JSON (one object): format, clock, kernel (the release, or null), cpus and threads (how many), start_ns,
/// end_ns, waits[]{thread, tid, name, kind (job, frame, slice, sleep), start_ns, duration_ns,
/// preemptions (how often the thread lost its CPU in it; null without scheduler events), causes[]{kind,
/// thread, tid, job, ns, by[]{who, thread, tid, ns}, confidence}, sum_ns} (worst first, at most 1000),
/// waits_omitted, inversions[]{kind, waiter, waiter_tid, holder, holder_tid, runner, runner_tid, by[], wait
/// (its position in waits), start_ns, ns, priorities{waiter, holder, runner}, confidence, remedies[]},
/// losses{}, limits[] (what the trace cannot know), annotated and report (the files, or null). Times are the
/// trace's. who in by[]: thread, idle, offline or unknown.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The file
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Only the waits of threads with this name or number
    #[arg(long, value_name = "NAME|TID")]
    thread: Option<String>,
    /// The slices with this text in their names, whatever they are; may be repeated
    ///
    /// Frames and awaited jobs of Paceline's job system have names, too: --slice 'frame 73'.
    #[arg(long, value_name = "TEXT")]
    slice: Vec<String>,
    /// Slices with this text in their names are waits, also where the thread runs: it spins
    #[arg(long, value_name = "TEXT")]
    busy: Vec<String>,
    /// What CPUs can do, the fastest 1024: for traces that do not say it
    #[arg(long, value_name = "0-3=446,4-7=1024", value_parser = capacity::read)]
    capacity: Option<capacity::Capacities>,
    /// Write the trace again with what was found on top, for ui.perfetto.dev
    ///
    /// A Perfetto trace stays as it is, byte for byte, with the findings behind it; other formats become one.
    #[arg(long, value_name = "F.pftrace")]
    annotate: Option<PathBuf>,
    /// Write a page for a browser: the waits as pictures of who ran where, over time, and by their causes
    ///
    /// One file that holds all it shows, so that it can be kept, sent and opened offline.
    #[arg(long, value_name = "F.html")]
    report: Option<PathBuf>,
    /// Write one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    output::check_files(
        &[("the trace itself", &arguments.trace)],
        &[
            ("--annotate", arguments.annotate.as_deref()),
            ("--report", arguments.report.as_deref()),
        ],
    )?;
    let recording = trace_file::load(&arguments.trace)?;
    let options = timeline::Options {
        capacities: arguments.capacity.clone().unwrap_or_default(),
        ..timeline::Options::default()
    };
    let timeline = Timeline::new(recording, &options);
    let selection = select::selection(&arguments, &timeline)?;
    let explanation = explain(&timeline, &selection);
    let account = Account::new(timeline, explanation, Nanos::ZERO);
    let text = match arguments.json {
        true => output::json(&report::json(&account, &arguments))?,
        false => report::text(&account, output::columns()),
    };
    // The files first: whoever reads the text may stop before its end, which ends this process (`| head`).
    if let Some(out) = &arguments.report {
        page::write(out, &arguments.trace, &account)?;
    }
    if let Some(out) = &arguments.annotate {
        annotate::annotate(&arguments.trace, account, out)?;
    }
    output::print(text)
}
