//! `--report`: a simulated run as a page for a browser.

use std::path::Path;

use comfy_table::Table;
use console::Failure;
use event::Nanos;
use maud::html;

use super::report::{NOTES, checks, clusters, span_table, threads, what};
use super::run::{Job, SimulationOutcome};
use crate::commands::accounts::frames_page;
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
    let body = html! {
        (html::table(&what(job, outcome)))
        p.note { (NOTES.join("; ")) "." }
        @if !timed.is_empty() {
            h2 { "Frames" }
            (frames_page(&timed, None, account))
        }
        @if let Some(account) = account { (account.page()) }
        @for (title, table) in &tables {
            h2 { (title) }
            div.wide { (html::table(table)) }
        }
        @if let Some(account) = account { (account.limits_page()) }
        p.note { "Again with: " code { (job.replay) } }
    };
    let title = format!(
        "{} on {} under {}",
        job.scenario.name, job.machine.name, job.policy
    );
    html::write(path, &title, &body)
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
