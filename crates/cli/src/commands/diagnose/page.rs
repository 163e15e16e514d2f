//! `--report`: the findings about a trace, as a page for a browser.

use std::path::Path;

use console::Failure;
use maud::html;
use trace::explain::Comparison;

use super::report::{nothing, what};
use crate::commands::accounts::{Account, Chart, compared_page, opening, page_data};
use crate::html;

/// Writes the page about a trace.
pub(super) fn write(path: &Path, trace: &Path, account: &Account) -> Result<(), Failure> {
    let name = trace.file_name().unwrap_or(trace.as_os_str());
    let title = format!("Where the time went: {}", name.to_string_lossy());
    let chart = Chart::found(account);
    let body = html! {
        @if account.worst().is_some() {
            (opening(&chart, Some(account)))
            (account.page())
            (account.decisions_page())
        } @else {
            p.lead { (nothing(account)) }
        }
        h2 { "What was read" }
        p { (what(account)) }
        (account.limits_page())
        @if account.worst().is_some() { (account.words_page()) }
    };
    html::write(path, &title, &body, &page_data(&chart, Some(account)))
}

/// Writes the page about a trace and another one that it is compared with.
pub(super) fn write_compared(
    path: &Path,
    traces: [&Path; 2],
    accounts: [&Account; 2],
    told: &Comparison,
) -> Result<(), Failure> {
    let name = |trace: &Path| {
        let name = trace.file_name().unwrap_or(trace.as_os_str());
        name.to_string_lossy().into_owned()
    };
    let [here, there] = traces.map(name);
    let title = format!("What changed: {here} against {there}");
    let names = [here.as_str(), there.as_str()];
    compared_page(names, accounts, told, |body, data| {
        html::write(path, &title, body, data)
    })
}
