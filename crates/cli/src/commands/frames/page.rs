//! `--report`: a run of frames as a page for a browser.

use std::path::Path;

use event::Nanos;
use maud::{Markup, html};

use super::interference;
use super::report::{counts, times, what};
use super::run::Outcome;
use crate::commands::accounts::Account;
use crate::failure::Failure;
use crate::html;
use crate::html::dots::{Dot, Dots};

/// Writes the page about a run that was recorded.
pub(super) fn write(path: &Path, outcome: &Outcome) -> Result<(), Failure> {
    let interference = interference::table(&outcome.interference);
    let body = html! {
        (html::table(&what(outcome)))
        h2 { "Frames" }
        (frames(outcome).draw())
        p.note {
            "Each dot is a frame: its length, over the time at which it began. Warm ones were not over when "
            "the next one should have begun; the longest lead to where their time went."
        }
        (html::table(&times(outcome)))
        @if let Some(account) = &outcome.account { (explained(account)) }
        h2 { "Counted" }
        (html::table(&counts(outcome)))
        @if !interference.is_empty() { (html::table(&interference)) }
        @if let Some(account) = &outcome.account {
            h2 { "What the recording cannot know" }
            (account.limits_page())
        }
    };
    html::write(path, &format!("Frames: {}", outcome.title), &body)
}

fn explained(account: &Account) -> Markup {
    html! {
        @match account.worst() {
            Some(_) => (account.page()),
            None => p.lead { "No wait was found in the recording." },
        }
        @if let Some(threads) = account.threads_table() {
            h2 { "Threads" }
            (html::table(&threads))
        }
    }
}

/// All frames where they began.
fn frames(outcome: &Outcome) -> Dots {
    let budget = outcome.period.map(Nanos::from);
    let links = outcome.account.as_ref().map(Account::links);
    let links = links.unwrap_or_default();
    let dot = |(number, &(at, length)): (usize, &(Nanos, Nanos))| {
        let is_late = budget.is_some_and(|budget| length > budget);
        let name = format!("frame {number}");
        Dot {
            at,
            length,
            class: if is_late { "runnable" } else { "t0" },
            link: links.get(name.as_str()).cloned(),
            title: format!("{name}: {length}"),
        }
    };
    let timed = &outcome.timed;
    let end = timed
        .last()
        .map_or(Nanos::ZERO, |&(at, length)| at + length);
    Dots {
        dots: timed.iter().enumerate().map(dot).collect(),
        end,
        level: budget.map(|budget| (budget, "from one frame to the next")),
        about: "the lengths of all frames over the time at which they began".to_owned(),
    }
}
