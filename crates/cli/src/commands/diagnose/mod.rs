//! `paceline diagnose`: where the time of waits went, in a trace of any program.
//!
//! This file declares the options and goes from a file to an account; [`report`] prints it.

mod annotate;
mod capacity;
mod moment;
mod page;
mod report;
mod select;

use std::path::PathBuf;

use clap::Args;
use console::{Failure, output};
use event::Nanos;
use trace::explain::explain;
use trace::timeline::{self, Timeline};

use super::accounts::Account;
use super::trace_file;

/// Explain the waits and frames in a recorded trace: what held each of them up
///
/// Reads text of ftrace, atrace and systrace (HTML too), `trace-cmd report`,
/// `perf sched script`, Perfetto's protobuf and Chrome's JSON, each packed with
/// gzip or not.
///
/// Explains the waits and frames of Paceline's job system, late frames of Android's
/// frame timeline, and slices whose names say that they are frames or waits. If there
/// are none, it explains the sleeps that another thread ended. --thread, --process,
/// --slice, --from and --to choose.
///
/// Examples:
///   paceline diagnose trace.txt.gz
///   paceline diagnose trace.pftrace --thread main --report waits.html
///   paceline diagnose trace.pftrace --process '*launcher*' --from +1.5 --to +2
#[derive(Args)]
#[command(after_long_help = JSON)]
#[command(verbatim_doc_comment)]
pub(crate) struct DiagnoseArguments {
    /// The trace to read
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Only the waits of threads with this name or number; a pattern, such as 'Binder:*'; may be repeated
    ///
    /// In a pattern * stands for any text, ? for a character, [ab] for one of these. Quote it, since shells
    /// have patterns, too.
    #[arg(long, value_name = "NAME|TID")]
    thread: Vec<String>,
    /// Only the threads of processes with this name, pattern or number; may be repeated
    #[arg(long, value_name = "NAME|PID")]
    process: Vec<String>,
    /// Only what lasts beyond this time: seconds on the trace's clock, as the output has them, or since its
    /// beginning: +0.5
    #[arg(long, value_name = "SECONDS", value_parser = moment::read, allow_hyphen_values = true)]
    from: Option<moment::Moment>,
    /// Only what begins before this time; totals of threads are those between --from and --to
    #[arg(long, value_name = "SECONDS", value_parser = moment::read, allow_hyphen_values = true)]
    to: Option<moment::Moment>,
    /// Only the slices with this text in their names; may be repeated
    ///
    /// Frames and awaited jobs of Paceline's job system have names, too: --slice 'frame 73'.
    #[arg(long, value_name = "TEXT")]
    slice: Vec<String>,
    /// Take slices with this text in their names for waits, also where the thread runs: it spins
    #[arg(long, value_name = "TEXT")]
    busy: Vec<String>,
    /// How fast CPUs are, the fastest 1024: for traces without their capacities
    #[arg(long, value_name = "0-3=446,4-7=1024", value_parser = capacity::read)]
    capacity: Option<capacity::Capacities>,
    /// The most waits that are explained; else 1000, or 200 if all of them are sleeps
    #[arg(long, value_name = "N")]
    waits: Option<usize>,
    /// Write the trace again with the findings on top, for ui.perfetto.dev
    ///
    /// A Perfetto trace stays as it is, byte for byte, with the findings behind it; other formats become one.
    #[arg(long, value_name = "F.pftrace")]
    annotate: Option<PathBuf>,
    /// Write a page for a browser: the waits as pictures, over time, and by their causes
    ///
    /// One file that holds all it shows, so that it can be kept, sent and opened offline.
    #[arg(long, value_name = "F.html")]
    report: Option<PathBuf>,
    /// Write one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The keys of `--json`, at the end of the help.
const JSON: &str = "\
JSON (--json), one object; times are the trace's:
  format, clock, start_ns, end_ns
  kernel              its release, or null
  cpus                how many
  threads[]{name, tid, process, running_ns, runnable_ns, preempted_ns, sleeping_ns,
            blocked_ns, other_ns}
                      the threads that were chosen, with their times between from_ns
                      and to_ns, which sum to that; preempted is a part of runnable,
                      other: not known, or there was no such thread yet, or any more.
                      Without scheduler events there are no times
  from_ns, to_ns      what --from and --to chose; else all
  version             2; 1 had names where 2 has positions in who
  who[]{who, thread, tid, process}
                      threads, each once; and what else can have a CPU: idle,
                      offline, unknown, others (several, summed up). Elsewhere
                      who, waiter, holder and runner are positions in it
  waits[]{thread, tid, process, name, kind, start_ns, duration_ns, late_ns,
          preemptions,
          causes[]{kind, who, within, job, ns, by[]{who, ns}, beside_idle_ns,
                   cpu, idle_state, function, confidence, count},
          sum_ns}
                      worst first, at most 1000, of sleeps 200 (--waits); kind: job,
                      frame, slice or sleep; preemptions: how often the thread lost
                      its CPU in it, null without scheduler events
  waits_omitted
  inversions[]{kind, waiter, holder, runner, by[]{who, ns}, beside_idle_ns, wait,
               start_ns, ns, priorities{waiter, holder, runner}, confidence,
               remedies[]}
                      wait: its position in waits
  inversions_omitted
  least_share         mostly 0. So that 10 000 waits fit in 5 MB: what is a smaller
                      part of its wait is summed up, causes as one of kind rest
                      (count: of how many), shares as others; inversions are left out
  late_ns             of a late frame: by how much; or null
  by[]                what had the CPU in whose queue the thread was
  losses{}
  limits[]            what the trace cannot know
  annotated, report   the files, or null
Of causes and inversions these are left out if there is nothing to tell:
  who                 the thread is not known
  within              the slices in which most of it passed
  beside_idle_ns      for how long another CPU was idle that it may use
  cpu, idle_state     of idle_exit: the CPU, and the state that it left
  function            of the kernel, in which the thread slept
  confidence          known, if it is left out";

pub(crate) fn run(arguments: DiagnoseArguments) -> Result<(), Failure> {
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
    let during = selection.within.unwrap_or(timeline.span());
    let explanation = explain(&timeline, &selection);
    let account = Account::new(timeline, explanation, Nanos::ZERO);
    let totals = account.totals(&selection, during);
    let text = if arguments.json {
        output::json(&report::json(&account, &arguments, &totals))?
    } else {
        report::text(&account, &totals, output::columns())
    };
    // The files first: a reader of the text may stop before its end, which ends this process (`| head`).
    if let Some(out) = &arguments.report {
        page::write(out, &arguments.trace, &account)?;
    }
    if let Some(out) = &arguments.annotate {
        annotate::annotate(&arguments.trace, account, out)?;
    }
    output::print(text)
}
