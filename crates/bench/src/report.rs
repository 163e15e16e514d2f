//! The results of a run of benchmarks, for people and as JSON.

use comfy_table::{CellAlignment, Table};
use console::output;
use measure::{Machine, Noise, Spread};
use serde::Serialize;

use crate::case::{Case, Score};
use crate::row::Row;
use crate::target::{Bound, Target, Verdict};
use crate::who::Who;

/// All results of a run.
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) threads: usize,
    pub(crate) peers: bool,
    pub(crate) quick: bool,
    /// The version of oneTBB, if it took part.
    pub(crate) tbb: Option<String>,
    /// The policy for Paceline's waits in the environment, if one is set.
    pub(crate) wait_policy: Option<String>,
    /// Other variables of the environment that are set and change job systems.
    pub(crate) environment: Vec<String>,
    pub(crate) noise: Noise,
    pub(crate) rows: Vec<&'static Row>,
    pub(crate) cases: Vec<Case>,
}

impl Report {
    /// The measured version of a subject.
    pub(crate) fn version(&self, who: Who) -> Option<&str> {
        match who {
            Who::Tbb => self.tbb.as_deref(),
            _ => who.version(),
        }
    }
}

/// The object of `--json`.
#[derive(Serialize)]
pub(crate) struct Json<'a> {
    machine: &'a Machine,
    quiet: bool,
    noise: Noise,
    threads: usize,
    quick: bool,
    wait_policy: Option<&'a str>,
    environment: &'a [String],
    results: Vec<JsonResult<'a>>,
    targets: Vec<JsonTarget<'a>>,
}

#[derive(Serialize)]
struct JsonResult<'a> {
    name: &'static str,
    case: &'a str,
    unit: &'static str,
    subject: &'static str,
    version: Option<&'a str>,
    threads: usize,
    median: Option<f64>,
    worst: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    n: usize,
    ratio_to_best_peer: Option<f64>,
    cannot: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonTarget<'a> {
    name: &'static str,
    case: &'a str,
    what: &'a str,
    got: Option<f64>,
    bound: String,
    note: Option<&'a str>,
    /// None: not judged.
    met: Option<bool>,
}

pub(crate) fn json(report: &Report) -> Json<'_> {
    Json {
        machine: &report.machine,
        quiet: report.noise.is_quiet(),
        noise: report.noise,
        threads: report.threads,
        quick: report.quick,
        wait_policy: report.wait_policy.as_deref(),
        environment: &report.environment,
        results: report
            .cases
            .iter()
            .flat_map(|case| json_results(report, case))
            .collect(),
        targets: report.cases.iter().flat_map(json_targets).collect(),
    }
}

fn json_results<'a>(report: &'a Report, case: &'a Case) -> Vec<JsonResult<'a>> {
    let result = |who: Who, score: Option<&Score>, cannot| {
        let spread = score.map(|score| score.spread);
        JsonResult {
            name: case.row,
            case: &case.label,
            unit: case.unit,
            subject: who.name(),
            version: report.version(who),
            threads: who.threads(report.threads),
            median: spread.map(|spread| spread.median),
            worst: spread.map(|spread| spread.max),
            min: spread.map(|spread| spread.min),
            max: spread.map(|spread| spread.max),
            n: spread.map_or(0, |spread| spread.n),
            ratio_to_best_peer: score.and_then(|score| score.ratio),
            cannot,
        }
    };
    let scores = case
        .scores
        .iter()
        .map(|score| result(score.who, Some(score), None));
    let cannot = case
        .cannot
        .iter()
        .map(|(who, why)| result(*who, None, Some(why.as_ref())));
    scores.chain(cannot).collect()
}

fn json_targets(case: &Case) -> Vec<JsonTarget<'_>> {
    let met = |target: &'_ Target| match target.verdict() {
        Verdict::Met => Some(true),
        Verdict::Missed(..) => Some(false),
        Verdict::NotJudged(_) => None,
    };
    let targets = case.targets.iter().map(|target| JsonTarget {
        name: case.row,
        case: &case.label,
        what: &target.what,
        got: target.got,
        bound: target.limit(),
        note: target.note.as_deref(),
        met: met(target),
    });
    targets.collect()
}

/// The tables for people.
pub(crate) fn tables(report: &Report) -> String {
    let mut head = output::table();
    head.add_row(["machine", &report.machine.to_string()]);
    head.add_row(["during the run", &report.noise.to_string()]);
    head.add_row(["threads", &format!("{} for every subject", report.threads)]);
    if let Some(policy) = &report.wait_policy {
        head.add_row(["PACELINE_WAIT", policy]);
    }
    for set in &report.environment {
        head.add_row(["not comparable", &format!("{set} is set")]);
    }
    let mut rows = result_rows(report);
    let mut above = String::new();
    for [work, ..] in &mut rows {
        // Only the first line of a case has its name.
        if *work == above {
            work.clear();
        } else {
            above.clone_from(work);
        }
    }
    let mut results = filled(&RESULT_COLUMNS, rows);
    let mut targets = filled(&TARGET_COLUMNS, target_rows(report));
    align_right(&mut results, 2..RESULT_COLUMNS.len());
    align_right(&mut targets, 2..4);
    format!("{head}\n{results}\n{targets}")
}

fn align_right(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn filled<const N: usize>(header: &[&str; N], rows: Vec<[String; N]>) -> Table {
    let mut table = output::table();
    table.set_header(header.iter());
    for row in rows {
        table.add_row(row);
    }
    table
}

/// The columns of the table of results.
pub(crate) const RESULT_COLUMNS: [&str; 7] = [
    "work",
    "subject",
    "median",
    "min",
    "worst",
    "n",
    "to best peer",
];

/// The table of results, for people and for the document.
pub(crate) fn result_rows(report: &Report) -> Vec<[String; 7]> {
    let mut rows = Vec::new();
    for case in &report.cases {
        let work = format!("{}, {}", title(case), case.unit);
        let scores = case.scores.iter().map(|score| {
            let Spread {
                median,
                min,
                max,
                n,
            } = score.spread;
            let ratio = score.ratio.map(|ratio| format!("{ratio:.2}"));
            [
                work.clone(),
                score.who.name().to_owned(),
                shown(median),
                shown(min),
                shown(max),
                n.to_string(),
                ratio.unwrap_or_default(),
            ]
        });
        rows.extend(scores);
        let cannot = case.cannot.iter().map(|(who, why)| {
            let mut row = [const { String::new() }; 7];
            row[0].clone_from(&work);
            row[1] = format!("{} cannot: {why}", who.name());
            row
        });
        rows.extend(cannot);
    }
    rows
}

/// The columns of the table of targets.
pub(crate) const TARGET_COLUMNS: [&str; 5] = ["row", "target", "bound", "got", "verdict"];

/// The table of targets, for people and for the document.
pub(crate) fn target_rows(report: &Report) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    for case in &report.cases {
        for target in &case.targets {
            rows.push([
                title(case),
                target.what.clone(),
                target.limit(),
                target
                    .got
                    .map_or("–".to_owned(), |got| shown_by(got, target.bound)),
                verdict(target),
            ]);
        }
    }
    rows
}

fn verdict(target: &Target) -> String {
    match &target.note {
        Some(note) => format!("{} ({note})", target.verdict()),
        None => target.verdict().to_string(),
    }
}

pub(crate) fn title(case: &Case) -> String {
    format!("{} {}", case.row, case.label).trim_end().to_owned()
}

/// A number with about three significant digits.
pub(crate) fn shown(number: f64) -> String {
    match number.abs() {
        0.0..10.0 => format!("{number:.2}"),
        10.0..100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// A number beside its bound: one digit more for ratios.
fn shown_by(number: f64, bound: Bound) -> String {
    match bound {
        Bound::AtMost(limit) if limit >= 100.0 => shown(number),
        _ => format!("{number:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: numbers are short and keep their significant digits. Method: one of each size.
    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [1.234, 12.34, 123.4, -50.0].map(shown),
            ["1.23", "12.3", "123", "-50.0"]
        );
        assert_eq!(shown_by(0.4999, Bound::AtMost(0.5)), "0.500");
        assert_eq!(shown_by(1234.5, Bound::AtMost(200.0)), "1234");
    }
}
