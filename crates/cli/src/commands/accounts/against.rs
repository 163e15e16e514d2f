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

impl Account {
    /// What grew and what shrank, in `columns` columns.
    pub(in crate::commands) fn against_text(
        &self,
        comparison: &Comparison,
        columns: usize,
    ) -> String {
        let mut parts = Vec::new();
        let is_change = |change: &Difference| change.verdict != Verdict::Same;
        let changed = comparison.groups.iter();
        let changed: Vec<&Compared> = changed
            .filter(|group| group.changes.iter().any(is_change))
            .collect();
        for group in changed.iter().take(GROUPS_MAX) {
            parts.push(self.group_against(group, columns));
        }
        let mut last = Vec::new();
        if let Some(more) = changed
            .len()
            .checked_sub(GROUPS_MAX)
            .filter(|more| *more > 0)
        {
            last.push(format!(
                "{}: see --json.",
                plural(more, "more changed name")
            ));
        }
        let same = comparison.groups.len() - changed.len();
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
        let last = last.iter().flat_map(|text| wrapped(text, "", columns));
        parts.push(last.collect::<Vec<_>>().join("\n"));
        parts.join("\n\n")
    }

    fn group_against(&self, group: &Compared, columns: usize) -> String {
        let [p50, before] = group.p50.map(short);
        let [count, other] = group.count;
        let text = format!(
            "{count} `{}` of {}: p50 {p50}; in the other trace {other}, p50 {before}.",
            group.name, group.program
        );
        let mut table = output::table();
        table.set_header(["on average", "here", "there", "change", "95 %", ""]);
        let told = group.changes.iter().enumerate();
        let told = told.filter(|(at, change)| *at == 0 || change.verdict != Verdict::Same);
        for (_, change) in told.take(CHANGES_MAX) {
            let label = match &change.factor {
                None => "length".to_owned(),
                Some(factor) => self.factor_label(factor),
            };
            let [here, there] = change.mean.map(short);
            let [low, high] = change.interval.map(signed);
            table.add_row([
                output::cut(&label, LABEL_MAX),
                here,
                there,
                signed(change.change),
                format!("{low} … {high}"),
                change.verdict.word().to_owned(),
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
