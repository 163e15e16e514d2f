//! `--against B`: which causes grew from another trace to this one, beyond the spread within each.

use std::collections::BTreeSet;
use std::path::Path;

use console::{Failure, output};
use event::Nanos;
use serde::Serialize;
use trace::explain::{Comparison, compare, explain};
use trace::timeline::{Options, Timeline};

use super::arguments::DiagnoseArguments;
use super::moment::Moment;
use super::{page, select};
use crate::commands::accounts::{Account, ComparedJson, compared_json, how_much, method};
use crate::commands::trace_file;

/// The object of `--json`.
#[derive(Serialize)]
struct AgainstReport<'a> {
    trace: &'a Path,
    against: &'a Path,
    report: Option<&'a Path>,
    method: String,
    /// How many lengths and causes were compared, and how many of these grew.
    compared: usize,
    grew: usize,
    shrank: usize,
    not_compared: [usize; 2],
    groups: Vec<ComparedJson>,
}

/// Compares a trace that was explained with another one, for which the same options hold.
///
/// # Errors
/// If a cause grew (exit code 1); if the other trace cannot be read, or has nothing of what was chosen.
pub(super) fn run(
    arguments: &DiagnoseArguments,
    other: &Path,
    account: &Account,
    options: &Options,
) -> Result<(), Failure> {
    let times = [arguments.from, arguments.to];
    if times
        .iter()
        .flatten()
        .any(|time| matches!(time, Moment::At(_)))
    {
        return Err(Failure::usage(
            "--against: two traces have two clocks; count --from and --to from their beginnings: +0.5",
        ));
    }
    let timeline = Timeline::new(trace_file::load(other)?, options);
    let selection = select::selection(arguments, &timeline)
        .map_err(|error| Failure::Usage(format!("{}: {}", other.display(), error.text())))?;
    let explanation = explain(&timeline, &selection);
    let there = Account::new(timeline, explanation, Nanos::ZERO);
    let [ours, theirs] = [account, &there].map(|account| &account.explanation.groups);
    let told = compare(ours, theirs);
    if let Some(out) = &arguments.report {
        let traces = [arguments.trace.as_path(), other];
        page::write_compared(out, traces, [account, &there], &told)?;
    }
    let grew = told.grew().count();
    output::print(if arguments.json {
        output::json(&json(arguments, other, &told))?
    } else {
        text(account, &told)
    })?;
    if grew == 0 {
        return Ok(());
    }
    let names = told.grew().map(|(group, _)| format!("`{}`", group.name));
    let names: BTreeSet<String> = names.collect();
    let names: Vec<String> = names.into_iter().collect();
    Err(Failure::Failed(format!(
        "--against: waits grew beyond the spread within each trace: {}",
        names.join(", ")
    )))
}

fn json<'a>(
    arguments: &'a DiagnoseArguments,
    other: &'a Path,
    told: &Comparison,
) -> AgainstReport<'a> {
    AgainstReport {
        trace: &arguments.trace,
        against: other,
        report: arguments.report.as_deref(),
        method: method(told),
        compared: told.compared,
        grew: told.grew().count(),
        shrank: told.shrank().count(),
        not_compared: told.alone,
        groups: compared_json(told),
    }
}

fn text(account: &Account, told: &Comparison) -> String {
    let columns = output::columns();
    format!(
        "{}\n\n{}",
        how_much(told),
        account.against_text(told, columns)
    )
}
