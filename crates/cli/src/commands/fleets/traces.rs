//! `paceline fleet`: many traces as tables.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use console::Failure;
use fleet::{DataSet, Kind, LabelPattern, TraceOptions, broken_trace, find, unit_of_file};

use super::compare::{self, CompareArguments};
use super::plan::{fleet_made_with, missing_traces};
use super::summary::DataSetReport;
use super::{SharedBar, failure};

/// Explain many traces, and write what was found as Parquet tables
///
/// Each trace is read and explained as `diagnose` does, as many at a time as there
/// are CPUs. OUT is a folder with a folder of Parquet files for each table: frames,
/// waits, causes, inversions, losses, and traces, with a row for each file. Rows
/// tell their trace, device and build. DuckDB, Polars and pandas read them as they
/// are. A file that is no trace is a row with its error.
///
/// The same command again goes on with what is missing: after an interruption, or
/// when there are new traces. Traces that are in OUT are not read again.
///
/// Examples:
///   paceline fleet traces --out fleet.parquet
///   paceline fleet 'traces/**/*.pftrace*' --out fleet.parquet
///   paceline fleet traces --labels '{device}/{build}/' --out fleet.parquet
///   paceline fleet compare fleet.parquet --builds 1.4 1.5
///   duckdb -c "SELECT * FROM 'fleet.parquet/traces/*.parquet'"
#[derive(Args)]
#[command(after_long_help = AFTER)]
#[command(verbatim_doc_comment, disable_help_subcommand = true)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct FleetArguments {
    #[command(subcommand)]
    command: Option<FleetCommand>,
    /// A folder with traces, or a pattern of files in quotes, where ** stands for folders
    #[arg(value_name = "DIR", required = true)]
    traces: Option<String>,
    /// The folder to write, or to continue
    #[arg(long, value_name = "F.parquet", required = true)]
    out: Option<PathBuf>,
    /// What paths tell of traces: a pattern of their beginnings, such as '{device}/{build}/'; * is any text
    #[arg(long, value_name = "PATTERN", value_parser = labels)]
    labels: Option<LabelPattern>,
    /// Only the slices with this text in their names, as in `diagnose`; may be repeated
    #[arg(long, value_name = "TEXT")]
    slice: Vec<String>,
    /// Take slices with this text in their names for waits, also where the thread runs: it spins
    #[arg(long, value_name = "TEXT")]
    busy: Vec<String>,
    /// The most waits of a trace that are explained, the worst first
    #[arg(long, value_name = "N", default_value_t = TraceOptions::default().waits)]
    waits: usize,
    /// How many traces at a time, instead of one for each CPU; so many are in memory
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Write one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What is done with fleets that are there. A folder of traces of that name is `./compare`.
#[derive(Subcommand)]
enum FleetCommand {
    Compare(CompareArguments),
}

/// What the command line does not say, at the end of the help.
const AFTER: &str = "\
LABELS
  Beside a trace there may be a file TRACE.labels.json, such as
  {\"device\": \"galaxy-s22\", \"build\": \"1.4\"}. It says more than the path.

TABLES
  traces      trace, device, build, format, kernel, cpus, duration_ns, error, …
  frames      trace, wait, name, thread, start_ns, duration_ns, late_ns, …
  waits       the same of all waits, with their kinds
  causes      trace, wait, kind, thread, role, cause_ns, ran_instead, …;
              those of a wait sum to its length
  inversions  trace, wait, kind, waiter, holder, runner, inversion_ns, …
  losses      trace, loss, count
  Each column has its meaning and its unit in its metadata.

JSON (--json), one object:
  out, rows           rows in all tables
  tables{}            rows of each
  before, added       how many traces were there, and came
  failed              how many have an error
  failures[]{key, error, again}
                      the first of them
  unseen[]            what could not be looked at";

fn labels(text: &str) -> Result<LabelPattern, String> {
    text.parse()
        .map_err(|why: fleet::FleetError| why.to_string())
}

pub(in crate::commands) fn run(arguments: FleetArguments) -> Result<(), Failure> {
    if let Some(FleetCommand::Compare(arguments)) = &arguments.command {
        return compare::run(arguments);
    }
    let (Some(traces), Some(out)) = (&arguments.traces, &arguments.out) else {
        return Err(Failure::usage("give a folder of traces, and --out"));
    };
    let options = TraceOptions {
        slices: arguments.slice,
        busy: arguments.busy,
        waits: arguments.waits,
    };
    let found = find(traces, arguments.labels.as_ref()).map_err(failure)?;
    let made_with = fleet_made_with(arguments.labels.as_ref(), &options);
    let set = DataSet::open(out, Kind::Traces, &made_with);
    let mut set = set.map_err(failure)?;
    let new = missing_traces(&found.files, &set)?;
    let worked = fleet::run(
        &new,
        arguments.threads.map(usize::from),
        &mut set,
        |file| unit_of_file(file, &options),
        broken_trace,
        &SharedBar::new("traces", new.len()),
    );
    let worked = worked.map_err(failure)?;
    let report = DataSetReport::of(out, &set, &worked, found.unseen)?;
    report.print(arguments.json, "trace")
}
