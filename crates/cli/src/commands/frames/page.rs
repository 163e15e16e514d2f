//! `--report`: a run of frames as a page for a browser.

use std::path::Path;

use console::Failure;
use event::Nanos;
use maud::{Markup, html};

use super::interference;
use super::report::{counts, times, what};
use super::run::FramesOutcome;
use crate::commands::accounts::{Account, frames_page};
use crate::html;

/// Writes the page about a run that was recorded.
pub(super) fn write(path: &Path, outcome: &FramesOutcome) -> Result<(), Failure> {
    let interference = interference::table(&outcome.interference);
    let (budget, account) = (outcome.period.map(Nanos::from), outcome.account.as_ref());
    let body = html! {
        (html::table(&what(outcome)))
        h2 { "Frames" }
        (frames_page(&outcome.timed, budget, account))
        (html::table(&times(outcome)))
        @if let Some(account) = account { (explained(account)) }
        h2 { "Counted" }
        (html::table(&counts(outcome)))
        @if !interference.is_empty() { (html::table(&interference)) }
        @if let Some(account) = account { (account.limits_page()) }
    };
    html::write(path, &format!("Frames: {}", outcome.title), &body)
}

fn explained(account: &Account) -> Markup {
    html! {
        (account.page())
        @if let Some(threads) = account.threads_table() {
            h2 { "Threads" }
            (html::table(&threads))
        }
    }
}
