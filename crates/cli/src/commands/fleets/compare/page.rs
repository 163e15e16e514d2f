//! `--report`: two fleets against each other as a page for a browser.

use std::collections::BTreeMap;
use std::path::Path;

use console::Failure;
use fleet::{Change, ChangeOf, Direction};
use maud::{Markup, html};
use trace::explain::{CauseKind, InversionKind};

use super::Compared;
use super::words::{change, grouped, growth, interval, label, mean};
use crate::html;

/// How many rows of each verdict a page has; the files have all of them.
const ROWS: usize = 200;

/// Writes the page.
pub(super) fn write(path: &Path, compared: &Compared<'_>) -> Result<(), Failure> {
    let with = |direction| compared.changes.with(direction).collect::<Vec<_>>();
    let few = with(Direction::Few);
    let body = html! {
        p { (compared.sides()) "." }
        p.lead { (compared.how_much()) }
        (part("What grew", &with(Direction::Grew)))
        (part("What shrank", &with(Direction::Shrank)))
        (part("What chance alone may have done", &with(Direction::Same)))
        (part("What too few traces tell of", &few))
        h2 { "How changes are told from chance" }
        p.note { (compared.method()) }
        p.note {
            "Each time is that of all such waits of a side through their number. The picture has the change "
            "as a point, which is full if it is beyond chance, and its interval as a line; a dashed line is "
            "no change."
        }
        (kinds(&compared.changes.rows))
    };
    let title = format!(
        "{} against {}",
        compared.sides[1].name(),
        compared.sides[0].name()
    );
    // The page has tables, and nothing for the script to draw.
    html::write(path, &title, &body, &BTreeMap::<&str, &str>::new())
}

/// A table of these rows.
fn part(title: &str, rows: &[&Change]) -> Markup {
    let told = &rows[..rows.len().min(ROWS)];
    let ends = told.iter().flat_map(|row| row.interval_ns).flatten();
    let ends = ends.fold((0, 0), |(low, high): (i64, i64), end| {
        (low.min(whole(end)), high.max(whole(end)))
    });
    html! {
        @if !rows.is_empty() {
            h2 { (title) }
            div.wide { table.changes {
                thead { tr {
                    th { "on average" } th.number { "A" } th.number { "B" }
                    th.number { "change" } th.number { "" }
                    th.number { "95 %" } th { "shorter ◀ ▶ longer" }
                } }
                tbody { @for (name, rows) in grouped(told) {
                    tr { td colspan="7" { (name) } }
                    @for row in rows { (of_row(row, ends)) }
                } }
            } }
            @if rows.len() > told.len() {
                p.note { (rows.len() - told.len()) " more: see --json or --out." }
            }
        }
    }
}

fn of_row(row: &Change, ends: (i64, i64)) -> Markup {
    let about = format!("{}: {}", change(row), interval(row));
    let picture = row
        .change_ns()
        .zip(row.interval_ns)
        .map(|(change, ends_of_row)| {
            let is_full = matches!(row.direction, Direction::Grew | Direction::Shrank);
            html::interval(
                &about,
                (whole(change), ends_of_row.map(whole)),
                ends,
                is_full,
            )
        });
    html! {
        tr {
            td { (label(row)) }
            td.number { (mean(row, 0)) }
            td.number { (mean(row, 1)) }
            td.number { (change(row)) }
            td.number { (growth(row)) }
            td.number { (interval(row)) }
            td { @if let Some(picture) = picture { (picture) } }
        }
    }
}

/// Whole nanoseconds.
fn whole(ns: f64) -> i64 {
    ns.round() as i64
}

/// What the kinds mean that are in the tables.
fn kinds(rows: &[Change]) -> Markup {
    let has = |of: ChangeOf, word: &str| {
        let mut rows = rows.iter();
        rows.any(|row| row.of == of && row.kind.as_deref() == Some(word))
    };
    let causes = CauseKind::ALL.iter();
    let causes: Vec<_> = causes
        .filter(|kind| has(ChangeOf::Cause, kind.word()))
        .collect();
    let inversions = InversionKind::ALL.iter();
    let inversions: Vec<_> = inversions
        .filter(|kind| has(ChangeOf::Inversion, kind.word()))
        .collect();
    html! {
        @if !causes.is_empty() {
            h2 { "Kinds of causes" }
            dl.words { @for kind in causes { dt { (kind.word().replace('_', " ")) } dd { (kind.about()) } } }
        }
        @if !inversions.is_empty() {
            h2 { "Kinds of inversions" }
            dl.words {
                @for kind in inversions { dt { (kind.word().replace('_', " ")) } dd { (kind.about()) } }
            }
        }
    }
}
