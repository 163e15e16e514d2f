//! All frames of a run over time, measured from outside, with links to where the time of the longest went.

use event::Nanos;
use maud::{Markup, html};

use super::super::Account;
use crate::html::dots::{Dot, Dots};

/// The picture. `timed`: when each frame began, since the first one, and its length; `budget`: from one
/// frame to the next.
pub(in crate::commands) fn frames(
    timed: &[(Nanos, Nanos)],
    budget: Option<Nanos>,
    account: Option<&Account>,
) -> Markup {
    let links = account.map(Account::links).unwrap_or_default();
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
    let end = timed
        .last()
        .map_or(Nanos::ZERO, |&(at, length)| at + length);
    let dots = Dots {
        dots: timed.iter().enumerate().map(dot).collect(),
        end,
        level: budget.map(|budget| (budget, "from one frame to the next")),
        about: "the lengths of all frames over the time at which they began".to_owned(),
    };
    html! {
        (dots.draw())
        p.note {
            "Each dot is a frame: its length, over the time at which it began."
            @if budget.is_some() { " Warm ones were not over when the next one should have begun." }
            @if !links.is_empty() { " The longest lead to where their time went." }
        }
    }
}
