//! A trace against another one, in words and as JSON: which causes grew.

use comfy_table::CellAlignment;
use console::output;
use event::Nanos;
use serde::Serialize;
use trace::explain::{Compared, Comparison, Difference, Verdict};

use super::groups::FactorJson;
use super::people::wrapped;
use super::{Account, plural, short};

/// How many groups a person is told of, and how many changes of each.
const GROUPS_MAX: usize = 8;
const CHANGES_MAX: usize = 8;
/// How much of a label the table has room for.
const LABEL_MAX: usize = 60;

/// The waits of one name in both traces. Of each pair the first is of this trace, the second of the other.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct ComparedJson {
    name: String,
    process: String,
    kind: &'static str,
    count: [usize; 2],
    p50_ns: [u64; 2],
    /// The first one is that of the length.
    changes: Vec<ChangeJson>,
}

#[derive(Debug, Serialize)]
struct ChangeJson {
    /// Null: the length of the wait.
    factor: Option<FactorJson>,
    mean_ns: [u64; 2],
    change_ns: i64,
    interval_ns: [i64; 2],
    verdict: &'static str,
}

/// All that was compared, as JSON.
pub(in crate::commands) fn compared_json(comparison: &Comparison) -> Vec<ComparedJson> {
    let change = |change: &Difference| ChangeJson {
        factor: change.factor.as_ref().map(FactorJson::of),
        mean_ns: change.mean.map(|mean| mean.0),
        change_ns: change.change,
        interval_ns: change.interval,
        verdict: change.verdict.word(),
    };
    let groups = comparison.groups.iter();
    let json = groups.map(|group| ComparedJson {
        name: group.name.clone(),
        process: group.program.clone(),
        kind: super::json::kind(group.kind),
        count: group.count,
        p50_ns: group.p50.map(|p50| p50.0),
        changes: group.changes.iter().map(change).collect(),
    });
    json.collect()
}

/// How changes were told from chance, in a sentence.
pub(in crate::commands) fn method(comparison: &Comparison) -> String {
    format!(
        "Differences of means over waits; each interval is a bootstrap's over {} draws of the waits of each \
         trace, at a level of 95 % for all {} comparisons together. Waits count as independent.",
        comparison.draws, comparison.compared
    )
}

/// A length or a cause of a group that is told.
pub(super) struct ToldChange {
    pub(super) label: String,
    pub(super) here: String,
    pub(super) there: String,
    pub(super) change: String,
    pub(super) interval: String,
    pub(super) verdict: Verdict,
    /// The change, and its interval, in nanoseconds.
    pub(super) ns: i64,
    pub(super) interval_ns: [i64; 2],
}

/// The first sentence about a comparison: how much grew.
pub(in crate::commands) fn how_much(comparison: &Comparison) -> String {
    let (grew, shrank) = (comparison.grew().count(), comparison.shrank().count());
    match (comparison.compared, grew) {
        (0, _) => {
            "Nothing can be compared: no name has 8 waits or more in both traces; --slice and --thread \
             choose others."
                .to_owned()
        }
        (_, 0) if shrank == 0 => {
            "Nothing grew or shrank beyond the spread within each trace.".to_owned()
        }
        (all, 0) => format!(
            "Nothing grew beyond the spread within each trace, and {shrank} of {all} lengths and causes \
             shrank."
        ),
        (all, _) => format!(
            "{grew} of {all} lengths and causes grew beyond the spread within each trace, and \
             {shrank} shrank."
        ),
    }
}

/// The groups in which something changed, and how many there are besides.
pub(super) fn changed(comparison: &Comparison) -> (Vec<&Compared>, usize) {
    let is_change = |change: &Difference| change.verdict != Verdict::Same;
    let groups = comparison.groups.iter();
    let changed: Vec<&Compared> = groups
        .filter(|group| group.changes.iter().any(is_change))
        .collect();
    let told = changed.len().min(GROUPS_MAX);
    let more = changed.len() - told;
    (changed[..told].to_vec(), more)
}

/// What was compared without a change, and what was not, and how: each in a sentence.
pub(super) fn besides(comparison: &Comparison, more: usize) -> Vec<String> {
    let mut last = Vec::new();
    if more > 0 {
        last.push(format!(
            "{}: see --json.",
            plural(more, "more changed name")
        ));
    }
    let is_same = |change: &Difference| change.verdict == Verdict::Same;
    let groups = comparison.groups.iter();
    let same = groups
        .filter(|group| group.changes.iter().all(is_same))
        .count();
    if same > 0 {
        last.push(format!(
            "{} changed in nothing beyond the spread within each.",
            plural(same, "name")
        ));
    }
    let [here, there] = comparison.alone;
    if here + there > 0 {
        last.push(format!(
            "Not compared: {} of this trace and {there} of the other, which has none of that name, or \
             fewer than 8 waits.",
            plural(here, "name")
        ));
    }
    last.push(method(comparison));
    last
}

/// A group's name, and how many waits of which length each trace has.
pub(super) fn of_group(group: &Compared) -> String {
    let [p50, before] = group.p50.map(short);
    let [count, other] = group.count;
    format!(
        "{count} `{}` of {}: p50 {p50}; in the other trace {other}, p50 {before}.",
        group.name, group.program
    )
}

impl Account {
    /// The second sentence about a comparison: the greatest change of a length, and what most of it is.
    pub(super) fn greatest_change(&self, comparison: &Comparison) -> Option<String> {
        let groups = comparison.groups.iter();
        let lengths = groups.filter(|group| {
            let length = group.changes.first();
            length.is_some_and(|length| length.verdict != Verdict::Same)
        });
        let group = lengths.max_by_key(|group| group.changes[0].change.unsigned_abs())?;
        let (length, causes) = group.changes.split_first()?;
        let [here, there] = length.mean.map(short);
        let way = if length.change > 0 {
            "longer"
        } else {
            "shorter"
        };
        let head = format!(
            "`{}` of {} is {} {way} on average: {here} instead of {there}",
            group.name,
            group.program,
            short(Nanos(length.change.unsigned_abs()))
        );
        let with = causes.iter().filter(|cause| {
            cause.verdict == length.verdict && cause.change.signum() == length.change.signum()
        });
        let most = with.max_by_key(|cause| cause.change.unsigned_abs());
        let most = most.and_then(|cause| Some((cause.factor.as_ref()?, cause.change)));
        Some(match most {
            Some((factor, change)) => format!(
                "{head}. Most of that: {} ({}).",
                self.factor_label(factor),
                signed(change)
            ),
            None => format!("{head}. No single cause changed beyond its spread."),
        })
    }

    /// The changes of a group that are told: that of its length, and those beyond the spread.
    pub(super) fn told_changes(&self, group: &Compared) -> Vec<ToldChange> {
        let told = group.changes.iter().enumerate();
        let told = told.filter(|(at, change)| *at == 0 || change.verdict != Verdict::Same);
        let told = told.take(CHANGES_MAX).map(|(_, change)| {
            let label = change.factor.as_ref();
            let [here, there] = change.mean.map(short);
            let [low, high] = change.interval.map(signed);
            ToldChange {
                label: label.map_or("length".to_owned(), |factor| self.factor_label(factor)),
                here,
                there,
                change: signed(change.change),
                interval: format!("{low} … {high}"),
                verdict: change.verdict,
                ns: change.change,
                interval_ns: change.interval,
            }
        });
        told.collect()
    }

    /// What grew and what shrank, in `columns` columns.
    pub(in crate::commands) fn against_text(
        &self,
        comparison: &Comparison,
        columns: usize,
    ) -> String {
        let (groups, more) = changed(comparison);
        let groups = groups.iter();
        let mut parts: Vec<String> = groups
            .map(|group| self.group_against(group, columns))
            .collect();
        let last = besides(comparison, more);
        let last = last.iter().flat_map(|text| wrapped(text, "", columns));
        parts.push(last.collect::<Vec<_>>().join("\n"));
        parts.join("\n\n")
    }

    fn group_against(&self, group: &Compared, columns: usize) -> String {
        let text = of_group(group);
        let mut table = output::table();
        table.set_header(["on average", "here", "there", "change", "95 %", ""]);
        for told in self.told_changes(group) {
            table.add_row([
                output::cut(&told.label, LABEL_MAX),
                told.here,
                told.there,
                told.change,
                told.interval,
                told.verdict.word().to_owned(),
            ]);
        }
        for column in table.column_iter_mut().skip(1).take(4) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        format!("{}\n{table}", wrapped(&text, "", columns).join("\n"))
    }
}

/// A difference with its sign.
fn signed(ns: i64) -> String {
    let length = short(Nanos(ns.unsigned_abs()));
    match ns {
        0 => length,
        ..0 => format!("-{length}"),
        _ => format!("+{length}"),
    }
}
