//! An account of waits, as parts of a page for a browser (`--report`).
//!
//! The same answers as in the terminal, from the same functions, and parts that need more room: every wait
//! over time, the longest ones as pictures with the threads that ran where, and an explanation of the words.

mod bar;
mod cast;
mod frames;
mod picture;
#[cfg(test)]
mod tests;
mod wait;
mod words;

use std::collections::BTreeMap;

use maud::{Markup, html};
use trace::explain::Wait;

pub(in crate::commands) use frames::frames;

use self::bar::bar;
use super::people::Group;
use super::{Account, losses, plural, short};
use crate::html::dots::{Dot, Dots};

/// How many waits are shown as pictures, how many as lines of a table, and how many inversions are told.
const PICTURES_MAX: usize = 10;
const ROWS_MAX: usize = 200;
const INVERSIONS_MAX: usize = 30;

impl Account {
    /// All there is to say about the waits.
    pub(in crate::commands) fn page(&self) -> Markup {
        let told = self.told();
        let Some((worst, more)) = told.split_first() else {
            return html! { p.lead { "No thread waited for another one, as far as is known." } };
        };
        let pictures = more.len().min(PICTURES_MAX - 1);
        html! {
            h2 { "The longest wait" }
            (self.wait_page(*worst))
            p.note {
                "In the picture: a thread has its colour where it runs, in its own lane and on the CPUs. "
                "Hatched, it could have run and did not; a thin line, it slept. What is pale below a thread "
                "is what it says it did. The dashed lines are the beginning and the end of the wait. Rest on "
                "anything to be told more."
            }
            @if !more.is_empty() {
                (self.inversions_page())
                h2 { "All waits" }
                (self.over_time(&told))
            }
            (self.rows(&told))
            @if pictures > 0 {
                h2 { "The next longest" }
                @for at in &more[..pictures] {
                    details {
                        summary { (self.sentence(&self.explanation.waits[*at])) }
                        // Inside, and a link to it opens the part around it.
                        div id=(id(*at)) { (self.details(*at)) }
                    }
                }
            }
            h2 { "What the words mean" }
            (words::words(&self.explanation))
        }
    }

    /// The waits of which the page tells more: by name, where.
    pub(in crate::commands) fn links(&self) -> BTreeMap<&str, String> {
        let shown = self.told().into_iter().take(PICTURES_MAX).rev();
        let link = |at: usize| (self.explanation.waits[at].name.as_str(), id(at));
        shown.map(link).collect()
    }

    /// Gaps in the recording, and what it cannot know.
    pub(in crate::commands) fn limits_page(&self) -> Markup {
        let limits = self.limits();
        html! {
            @let losses = losses(self.timeline.losses());
            @if losses.is_some() || !limits.is_empty() { h2 { "What is not known" } }
            @if let Some(losses) = losses { p.note { (losses) } }
            @if !limits.is_empty() { p.note { "Not known: " (limits.join("; ")) "." } }
        }
    }

    /// The positions of the waits that a page tells, the longest first.
    fn told(&self) -> Vec<usize> {
        self.outermost().into_iter().collect()
    }

    fn wait_page(&self, at: usize) -> Markup {
        html! {
            div id=(id(at)) {
                p.lead { (self.sentence(&self.explanation.waits[at])) }
                (self.details(at))
            }
        }
    }

    fn inversions_page(&self) -> Markup {
        let groups = self.groups();
        let omitted = groups.len().saturating_sub(INVERSIONS_MAX);
        html! {
            @if !groups.is_empty() {
                h2 { "Inversions" }
                p.note {
                    "A thread could have run, another one waited for it, and something else had the CPU. "
                    "Over all waits, those that cost most first."
                }
                ul.findings { @for group in groups.iter().take(INVERSIONS_MAX) { (self.group(group)) } }
                @if omitted > 0 { p.note { (omitted) " more, between other threads: see --json." } }
            }
        }
    }

    fn group(&self, group: &Group<'_>) -> Markup {
        html! {
            li {
                (self.inverted(group))
                br;
                span.remedy { "Remedy: " (self.remedies(group)) "." }
            }
        }
    }

    /// Every wait where it began.
    fn over_time(&self, told: &[usize]) -> Markup {
        let waits = &self.explanation.waits;
        let begin = told.iter().map(|&at| waits[at].begin).min();
        let begin = begin.unwrap_or_default();
        let end = told.iter().map(|&at| waits[at].end).max();
        let dot = |(rank, &at): (usize, &usize)| {
            let wait = &waits[at];
            Dot {
                at: wait.begin - begin,
                length: wait.length(),
                class: bar::main_class(wait),
                title: format!("{}: {}", self.title(wait), self.mostly(wait)),
                link: (rank < PICTURES_MAX).then(|| id(at)),
            }
        };
        let dots = Dots {
            dots: told.iter().enumerate().map(dot).collect(),
            end: end.unwrap_or_default() - begin,
            level: None,
            about: "the lengths of waits over the time at which they began".to_owned(),
        };
        html! {
            (dots.draw())
            p.note {
                "Each dot is a wait: its length, over the time at which it began, from " (self.at(begin))
                ". The colour is what most of it was."
            }
        }
    }

    fn rows(&self, told: &[usize]) -> Markup {
        let waits = &self.explanation.waits;
        let all = waits.len() + self.explanation.omitted;
        let shown = told.len().min(ROWS_MAX);
        html! {
            div.wide { table {
                thead { tr {
                    th { "thread" } th { "waited in" } th.number { "at" } th.number { "length" }
                    th { "causes" } th { "mostly" }
                } }
                tbody {
                    @for (rank, &at) in told.iter().take(shown).enumerate() {
                        @let wait = &waits[at];
                        tr {
                            td { (self.thread(wait.thread)) }
                            td {
                                @if rank < PICTURES_MAX {
                                    a href=(format!("#{}", id(at))) { (wait.name) }
                                } @else { (wait.name) }
                            }
                            td.number { (self.at(wait.begin)) }
                            td.number { (short(wait.length())) }
                            td { (bar(self, wait, "bar")) }
                            td { (self.mostly(wait)) }
                        }
                    }
                }
            } }
            @if all > shown {
                p.note {
                    (plural(all - shown, "more wait")) ", shorter or inside of one of these: see --json."
                }
            }
        }
    }

    /// The name of a wait in a line.
    fn title(&self, wait: &Wait) -> String {
        let (thread, length) = (self.thread(wait.thread), short(wait.length()));
        format!("{thread}, {}, {length}", wait.name)
    }
}

/// The name of the part of the page about a wait.
fn id(at: usize) -> String {
    format!("wait-{at}")
}
