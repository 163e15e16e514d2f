//! `--report`: a run of frames as a page for a browser.

use std::path::Path;

use console::Failure;
use event::Nanos;
use maud::html;

use super::interference;
use super::report::{counts, times, what};
use super::run::FramesOutcome;
use crate::commands::accounts::{Account, Chart, opening, page_data};
use crate::html;

/// Writes the page about a run that was recorded.
pub(super) fn write(path: &Path, outcome: &FramesOutcome) -> Result<(), Failure> {
    let interference = interference::table(&outcome.interference);
    let (period, account) = (outcome.period.map(Nanos::from), outcome.account.as_ref());
    let chart = Chart::timed(&outcome.timed, period, account);
    let threads = account.and_then(Account::threads_table);
    let body = html! {
        (opening(&chart, account))
        div.wide { (html::table(&times(outcome))) }
        @if let Some(account) = account {
            (account.page())
            (account.decisions_page())
        }
        @if let Some(threads) = threads {
            h2 { "Threads" }
            div.wide { (html::table(&threads)) }
        }
        h2 { "Counted" }
        (html::table(&counts(outcome)))
        @if !interference.is_empty() { div.wide { (html::table(&interference)) } }
        h2 { "What was run" }
        (html::table(&what(outcome)))
        @if let Some(account) = account {
            (account.limits_page())
            (account.words_page())
        }
    };
    let title = format!("Frames: {}", outcome.title);
    html::write(path, &title, &body, &page_data(&chart, account))
}
