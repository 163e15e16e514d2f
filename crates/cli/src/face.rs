//! The commands as calls, for faces in other languages: they add no behaviour of their own.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use console::{Failure, OnJobs, output};
use fleet::{Changes, CompareOptions, Labels, Side, TraceOptions, Unit, unit_of_source};

pub use crate::commands::fleets::plan::{Refusal, SweepPlan, fleet_made_with, missing_traces};
use crate::{commands, program};

/// Runs a command line, without the name of the program. What it prints for programs is the result's first
/// part; a failure may come with some of it, as that of an experiment whose claims do not hold.
pub fn command(arguments: &[&str]) -> (String, Result<(), Refusal>) {
    let line = ["paceline"].iter().chain(arguments);
    let line: Vec<OsString> = line.map(Into::into).collect();
    let (text, done) = output::captured(|| commands::dispatch(line));
    (text, done.map_err(Refusal::from))
}

/// Says how the command is started, for those that run parts of themselves as processes: the program of this
/// process is another one. Only the first call counts.
pub fn is_started_by(words: Vec<OsString>) {
    program::is_started_by(words);
}

/// The rows of the trace in a file, as `diagnose` reads it: on all CPUs.
///
/// # Errors
/// If it cannot be read.
pub fn trace_file(path: &Path, labels: &Labels, options: &TraceOptions) -> Result<Unit, Refusal> {
    let name = path.display().to_string();
    let unreadable = |why: std::io::Error| Failure::Usage(format!("{name}: cannot be read: {why}"));
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if about.is_dir() {
        let what = format!("{name}: is a folder; give the file of a trace");
        return Err(Failure::Usage(what).into());
    }
    trace_source(file, &name, labels, about.len(), options)
}

/// The same of a trace in memory; `name` is its name in errors.
///
/// # Errors
/// If it cannot be read.
pub fn trace_bytes(
    bytes: &[u8],
    name: &str,
    labels: &Labels,
    options: &TraceOptions,
) -> Result<Unit, Refusal> {
    trace_source(bytes, name, labels, bytes.len() as u64, options)
}

/// Two fleets compared, as `paceline fleet compare` does; `out` and `report` are the files that it writes.
///
/// # Errors
/// Those of [`fleet::compare`]; if a file cannot be written.
pub fn compare(
    sides: &[Side; 2],
    options: &CompareOptions,
    out: Option<&Path>,
    report: Option<&Path>,
) -> Result<Changes, Refusal> {
    Ok(commands::fleets::compare::written(
        sides,
        options,
        (out, report),
    )?)
}

fn trace_source(
    source: impl Read,
    name: &str,
    labels: &Labels,
    size: u64,
    options: &TraceOptions,
) -> Result<Unit, Refusal> {
    let unit = unit_of_source(source, name, labels, size, options, &OnJobs::default());
    match unit.error {
        Some(why) => Err(Failure::Usage(why).into()),
        None => Ok(unit),
    }
}

#[cfg(test)]
mod tests {
    use fleet::Sweep;

    use super::*;

    /// Goal: a call has what the command prints and nothing goes elsewhere; a mistake is one line, and says
    /// whose it is. Method: a list, and a name that there is not.
    #[test]
    fn a_command_is_a_call() {
        let (text, done) = command(&["experiment", "--list", "--json"]);
        assert!(text.starts_with('{') && done.is_ok(), "{text}");
        let (text, done) = command(&["experiment", "no-such"]);
        let refusal = done.unwrap_err();
        assert!(text.is_empty() && refusal.is_input, "{refusal:?}");
        assert!(!refusal.text.contains('\n'));
    }

    /// Goal: an explained point is the same run. Method: its row both ways; its causes sum to its waits.
    #[test]
    fn explaining_changes_nothing() {
        let sweep = Sweep::parse_json(r#"{"scenario": "galaxy-s22-inversion"}"#).unwrap();
        let plan = SweepPlan::new(&sweep, Path::new("")).unwrap();
        let point = &plan.points()[0];
        let (explained, of_trace) = plan.explained(point, &TraceOptions::default()).unwrap();
        let rows = |unit: Unit| {
            unit.rows
                .into_iter()
                .map(fleet::Rows::finish)
                .collect::<Vec<_>>()
        };
        assert_eq!(rows(explained), rows(plan.run(point)));
        assert!(
            rows(of_trace.unwrap())
                .iter()
                .all(|table| table.num_columns() > 0)
        );
    }
}
