//! `--report`: a simulated run as a page for a browser.

use std::path::Path;

use comfy_table::Table;
use console::Failure;
use event::Nanos;
use maud::html;

use super::report::{NOTES, checks, clusters, span_table, threads, what};
use super::run::{Job, SimulationOutcome};
use crate::commands::accounts::{Chart, opening, page_data};
use crate::commands::frames::interference;
use crate::html;

/// Writes the page about a run whose events were kept.
pub(super) fn write(path: &Path, job: &Job, outcome: &SimulationOutcome) -> Result<(), Failure> {
    let account = outcome.account.as_ref();
    let interference = outcome.told.interference.as_ref().map(interference::table);
    let tables = [
        ("Threads", Some(threads(outcome))),
        ("Measured", Some(span_table(job, outcome))),
        ("Clusters of CPUs", Some(clusters(job, outcome))),
        ("Other threads", interference),
        ("What must hold", Some(checks(outcome))),
    ];
    let tables = tables
        .into_iter()
        .filter_map(|(title, table)| Some((title, table?)));
    let tables: Vec<(&str, Table)> = tables.filter(|(_, table)| !table.is_empty()).collect();
    let timed = timed(outcome);
    let chart = match account {
        Some(account) if timed.is_empty() => Chart::found(account),
        _ => Chart::timed(&timed, None, account),
    };
    let body = html! {
        @if account.is_some() || !timed.is_empty() { (opening(&chart, account)) }
        @if let Some(account) = account {
            (account.page())
            (account.decisions_page())
        }
        @for (title, table) in &tables {
            h2 { (title) }
            div.wide { (html::table(table)) }
        }
        h2 { "What was run" }
        (html::table(&what(job, outcome)))
        p.note { (NOTES.join("; ")) "." }
        p.note { "Again with: " code { (job.replay) } }
        @if let Some(account) = account {
            (account.limits_page())
            (account.words_page())
        }
    };
    let title = format!(
        "{} on {} under {}",
        job.scenario.name, job.machine.name, job.policy
    );
    html::write(path, &title, &body, &page_data(&chart, account))
}

/// The frames of its job system, since the first one.
fn timed(outcome: &SimulationOutcome) -> Vec<(Nanos, Nanos)> {
    let frames = &outcome.told.frames;
    let first = frames.first().map_or(Nanos::ZERO, |(begin, _)| *begin);
    let frames = frames.iter();
    frames
        .map(|&(begin, end)| (begin - first, end - begin))
        .collect()
}
