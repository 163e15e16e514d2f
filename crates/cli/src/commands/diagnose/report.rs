//! The findings about a trace, for people and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use trace::Wakers;
use trace::explain::names;

use super::arguments::DiagnoseArguments;
use crate::commands::accounts::{
    Account, AccountJson, GroupJson, TotalJson, Totals, TriedChange, losses, plural, wrapped,
};

/// The object of `--json`.
#[derive(Serialize)]
pub(super) struct DiagnoseReport<'a> {
    format: &'a str,
    clock: &'a str,
    kernel: Option<&'a str>,
    cpus: usize,
    threads: Vec<TotalJson>,
    from_ns: u64,
    to_ns: u64,
    start_ns: u64,
    end_ns: u64,
    #[serde(flatten)]
    account: AccountJson,
    waits_omitted: usize,
    groups: Vec<GroupJson>,
    changes: Vec<TriedChange>,
    losses: BTreeMap<&'static str, u64>,
    limits: Vec<&'static str>,
    annotated: Option<&'a Path>,
    report: Option<&'a Path>,
}

pub(super) fn json<'a>(
    account: &'a Account,
    arguments: &'a DiagnoseArguments,
    totals: &Totals,
) -> DiagnoseReport<'a> {
    let recording = account.timeline.recording();
    let (start, end) = account.timeline.span();
    let losses = account.timeline.losses().iter();
    DiagnoseReport {
        format: &recording.origin.format,
        clock: recording.origin.clock.name(),
        kernel: recording.origin.kernel.as_deref(),
        cpus: cpus(account),
        threads: account.totals_json(totals),
        from_ns: totals.during.0.0,
        to_ns: totals.during.1.0,
        start_ns: start.0,
        end_ns: end.0,
        account: AccountJson::of(account),
        waits_omitted: account.explanation.omitted,
        groups: account.groups_json(),
        changes: account.changes_json(),
        losses: losses.map(|(loss, count)| (loss.word(), count)).collect(),
        limits: account.limits(),
        annotated: arguments.annotate.as_deref(),
        report: arguments.report.as_deref(),
    }
}

/// How many CPUs are known: those the recording describes, and those on which something happened.
fn cpus(account: &Account) -> usize {
    let recording = account.timeline.recording();
    let told = recording.cpus.iter().map(|facts| facts.cpu);
    let seen = recording.kernel.iter().map(|event| event.cpu);
    told.chain(seen).collect::<BTreeSet<_>>().len()
}

/// The lines for people, in `columns` columns.
pub(super) fn text(account: &Account, totals: &Totals, columns: usize) -> String {
    let mut parts = Vec::new();
    match account.worst_text(columns) {
        Some(worst) => parts.push(worst),
        None => parts.push(nothing(account)),
    }
    if account.worst().is_some() {
        parts.push(account.waits_table());
    }
    parts.extend(account.groups_text(columns));
    parts.extend(account.inversions_text(columns));
    parts.extend(account.totals_table(totals));
    let limits = account.limits();
    let limits = (!limits.is_empty()).then(|| format!("Not known: {}.", limits.join("; ")));
    let last = [
        Some(what(account)),
        losses(account.timeline.losses()),
        limits,
    ];
    let last = last
        .iter()
        .flatten()
        .flat_map(|text| wrapped(text, "", columns));
    parts.push(last.collect::<Vec<_>>().join("\n"));
    parts.join("\n\n")
}

/// The file that was read.
pub(super) fn what(account: &Account) -> String {
    let recording = account.timeline.recording();
    let (start, end) = account.timeline.span();
    let of = match recording.origin.format.as_str() {
        "" => "a trace".to_owned(),
        format => format!("a trace of format {format}"),
    };
    let counts = [
        plural(cpus(account), "CPU"),
        plural(recording.threads.len(), "thread"),
        plural(recording.kernel.len(), "scheduler event"),
        plural(recording.marks.len(), "mark"),
    ];
    format!("Read {of}: {}, {}.", end - start, counts.join(", "))
}

/// Why there is nothing to say.
pub(super) fn nothing(account: &Account) -> String {
    let recording = account.timeline.recording();
    let named = || some_names(names(&account.timeline));
    let why = match (recording.kernel.is_empty(), recording.marks.is_empty()) {
        (true, true) => "neither scheduler events nor marks are in this trace".to_owned(),
        (true, false) => format!(
            "no slice in it says that it is a wait or a frame; name slices with --slice{}",
            named()
        ),
        (false, _) if recording.origin.wakers == Wakers::Unknown => {
            "this trace does not name wakers; --thread explains the sleeps of a thread all the same"
                .to_owned()
        }
        (false, true) => {
            "no thread waited for another one; --thread explains all sleeps of a thread".to_owned()
        }
        (false, false) => format!(
            "no thread waited for another one; name a thread with --thread, or slices with --slice{}",
            named()
        ),
    };
    format!("No wait was found: {why}.")
}

/// The first of some names, behind the words that ask for one.
fn some_names(names: BTreeSet<String>) -> String {
    const SHOWN: usize = 8;
    let names: Vec<String> = names
        .iter()
        .filter(|name| !name.is_empty())
        .map(|name| format!("{name:?}"))
        .collect();
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = &names[..names.len().min(SHOWN)];
    if shown.is_empty() {
        return String::new();
    }
    format!("; there are {}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: where a trace has names, some are shown, and how many there are. Method: none, two, and ten.
    #[test]
    fn names_are_listed() {
        let listed =
            |count: usize| some_names((0..count).map(|at| format!("slice {at}")).collect());
        assert_eq!(listed(0), "");
        assert_eq!(listed(2), "; there are \"slice 0\", \"slice 1\"");
        let ten = listed(10);
        assert!(ten.ends_with("\"slice 7\" and 2 more"), "{ten}");
    }
}
