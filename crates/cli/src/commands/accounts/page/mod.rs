//! An account of waits, as parts of a page for a browser (`--report`).
//!
//! The same answers as in the terminal, from the same functions, in the order in which they are asked for:
//! two sentences, all frames, the worst of them opened, inversions with their remedies, all waits, what the
//! words mean. The chart and what it opens are data that the page's script draws; all else is there without
//! it.

mod bar;
mod cast;
mod compared;
mod covered;
mod data;
mod decided;
mod frames;
mod happened;
#[cfg(test)]
mod tests;
mod words;

use event::Nanos;
use maud::{Markup, html};
use trace::explain::Wait;

pub(in crate::commands) use compared::compared_page;
pub(in crate::commands) use data::PageData;
pub(in crate::commands) use decided::interfered;
pub(in crate::commands) use frames::Chart;

use self::bar::bar;
use super::people::Group;
use super::{Account, losses, plural, short};

/// How many waits are lines of a table, and how many inversions are told.
const ROWS_MAX: usize = 200;
const INVERSIONS_MAX: usize = 30;

/// Which run a part of a page is about. The names of the elements that the script looks for end in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    /// The run that the page is about.
    Here,
    /// The run that it is compared with.
    There,
}

impl Side {
    /// The name of an element.
    fn id(self, name: &str) -> String {
        match self {
            Side::Here => name.to_owned(),
            Side::There => format!("{name}-there"),
        }
    }
}

/// The first two sentences of a page, its chart, and what the chart opens.
pub(in crate::commands) fn opening(chart: &Chart, account: Option<&Account>) -> Markup {
    html! {
        p.lead { (how_many(chart, account)) }
        @if let Some(why) = why(chart, account) { p.lead { (why) } }
        @if !chart.bars.is_empty() {
            h2 { @if chart.of == "frame" { "Frames" } @else { "Waits" } }
            (without_script())
        }
        (pictures(chart, account, Side::Here))
        @if !chart.bars.is_empty() { (place()) }
    }
}

/// Where the script shows what is opened.
fn place() -> Markup {
    html! {
        section #opened aria-live="polite" {}
    }
}

/// The chart of a run.
fn pictures(chart: &Chart, account: Option<&Account>, side: Side) -> Markup {
    html! {
        @if !chart.bars.is_empty() {
            (canvas(chart, side))
            @if account.is_some_and(|account| !account.decisions().is_empty()) {
                p.note.scripted hidden {
                    "A diamond below a bar: the job system decided something about the machine then."
                }
            }
        }
    }
}

/// What the script needs for that.
pub(in crate::commands) fn data<'a>(chart: &'a Chart, account: Option<&Account>) -> PageData<'a> {
    PageData::new(chart, account, data::ROOM)
}

/// The first sentence: how many frames or waits there are, and the worst.
fn how_many(chart: &Chart, account: Option<&Account>) -> String {
    let all = plural(chart.all, chart.of);
    let Some(worst) = chart.worst() else {
        return "No thread waited for another one, as far as is known.".to_owned();
    };
    let head = match (account, worst.wait) {
        (Some(account), Some(at)) if !chart.is_whole => {
            account.head(&account.explanation.waits[at])
        }
        _ => worst.told(),
    };
    let has_deadline = worst.deadline_ns.is_some();
    match (chart.of, chart.late) {
        ("frame", 0) if has_deadline => format!("None of {all} was late; the longest: {head}."),
        ("frame", late) if late > 0 && chart.is_whole => {
            let were = if late == 1 { "was" } else { "were" };
            let begun = match chart.late_for_begin {
                0 => String::new(),
                1 if late == 1 => ", because of when it began".to_owned(),
                begun if begun == late => ", because of when they began".to_owned(),
                begun => format!(", {begun} of them because of when they began"),
            };
            format!("{late} of {all} {were} late{begun}; the longest: {head}.")
        }
        ("frame", late) if late > 0 => format!("{} late; the worst: {head}.", were(late, chart.of)),
        (of, _) => {
            let which = if chart.is_worst_longest() {
                "longest"
            } else {
                "worst"
            };
            format!("{} found; the {which}: {head}.", were(chart.all, of))
        }
    }
}

/// "1 frame was", "3 frames were".
fn were(count: usize, what: &str) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    format!("{} {verb}", plural(count, what))
}

/// The second sentence: where most of the time of the worst went.
fn why(chart: &Chart, account: Option<&Account>) -> Option<String> {
    let account = account?;
    let wait = &account.explanation.waits[chart.worst()?.wait?];
    let parts = account.parts(wait);
    let phrase = account.phrase(wait, parts.first()?);
    Some(format!("What took most of that time: {phrase}."))
}

/// What a reader sees whose browser runs no scripts.
fn without_script() -> Markup {
    html! {
        noscript {
            p.note {
                "The pictures are drawn by this page's script, which is switched off. "
                "The sentences and tables are all here."
            }
        }
    }
}

/// The places where the script draws; hidden until it does.
fn canvas(chart: &Chart, side: Side) -> Markup {
    let about = format!(
        "the lengths of {} in the order of time",
        plural(chart.all, chart.of)
    );
    html! {
        div.scripted hidden {
            canvas.chart id=(side.id("chart")) tabindex="0" role="img" aria-label=(about)
                aria-describedby=(side.id("chart-said")) {}
            p.said id=(side.id("chart-said")) aria-live="polite" {}
            p.buttons {
                button type="button" id=(side.id("chart-before")) { "◀ before" }
                button type="button" id=(side.id("chart-next")) { "next ▶" }
                button type="button" id=(side.id("chart-worst")) { "the worst" }
                span.note {
                    "A click on a bar opens it; so does Enter, where ← and → go from one to the next, and "
                    "W to the worst."
                }
            }
            @if chart.bars.len() < chart.all {
                p.note { "Of " (chart.all) ", the worst of each moment: " (chart.bars.len()) "." }
            }
        }
    }
}

impl Account {
    /// What there is to say about the waits, behind the opening.
    pub(in crate::commands) fn page(&self) -> Markup {
        let told: Vec<usize> = self.outermost().into_iter().collect();
        if told.is_empty() {
            return html! {};
        }
        html! {
            (self.inversions_page())
            h2 { "All waits" }
            (self.rows(&told))
        }
    }

    /// What the words of a page mean.
    pub(in crate::commands) fn words_page(&self) -> Markup {
        html! {
            h2 { "What the words mean" }
            (words::words(&self.explanation))
        }
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

    /// A line for each wait, which the script makes a door to the wait.
    fn rows(&self, told: &[usize]) -> Markup {
        let waits = &self.explanation.waits;
        let all = waits.len() + self.explanation.omitted;
        let shown = told.len().min(ROWS_MAX);
        html! {
            div.wide { table.waits {
                thead { tr {
                    th { "thread" } th { "waited in" } th.number { "at" } th.number { "length" }
                    th { "causes" } th { "mostly" }
                } }
                tbody {
                    @for &at in &told[..shown] { (self.row(at, &waits[at])) }
                }
            } }
            @if all > shown {
                p.note {
                    (plural(all - shown, "more wait")) ", shorter or inside of one of these: see --json."
                }
            }
        }
    }

    fn row(&self, at: usize, wait: &Wait) -> Markup {
        html! {
            tr id=(id(at)) {
                td { (self.thread(wait.thread)) }
                td { a href=(format!("#{}", id(at))) { (wait.name) } }
                td.number { (self.at(wait.begin)) }
                td.number { (short(wait.length())) }
                td { (bar(self, wait)) }
                td { (self.mostly(wait)) }
            }
        }
    }
}

impl frames::Bar {
    /// Its name, its length, and how it was with its deadline.
    fn told(&self) -> String {
        let (name, length) = (&self.name, Nanos(self.duration_ns));
        let deadline = self.deadline_ns.map(Nanos);
        let ended = match deadline {
            Some(deadline) if deadline <= length => {
                format!(" and ended {} after its deadline", short(length - deadline))
            }
            Some(deadline) => format!(
                " and ended {} before its deadline",
                short(deadline - length)
            ),
            None => String::new(),
        };
        let began = match self.late_for_its_begin() {
            Some(late) => format!(", as it began {} late", short(late)),
            None => String::new(),
        };
        format!("{name} took {}{ended}{began}", short(length))
    }
}

/// The name of the line of the page about a wait.
fn id(at: usize) -> String {
    format!("wait-{at}")
}
