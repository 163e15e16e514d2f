//! Two runs against each other, as the parts of a page: what changed, as tables and as pictures of the
//! intervals, and the charts of both on one scale.

use console::Failure;
use maud::{Markup, html};
use trace::explain::{Compared, Comparison, Verdict};

use super::super::Account;
use super::super::against::{ToldChange, besides, changed, how_much, of_group};
use super::data::{PageData, ROOM};
use super::frames::Chart;
use super::{Side, how_many, pictures, place, without_script};
use crate::html;

/// Writes a page about two runs by `write`, which gets its body and its data. `names` are those of the
/// traces; of each pair the first is of the run that the page is about.
///
/// # Errors
/// That of `write`.
pub(in crate::commands) fn compared_page(
    names: [&str; 2],
    [here, there]: [&Account; 2],
    comparison: &Comparison,
    write: impl FnOnce(&Markup, &PageData<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut charts = [here, there].map(Chart::found);
    let [chart, other] = &mut charts;
    chart.align(other);
    let [chart, other] = &charts;
    let body = html! {
        p.lead { (how_much(comparison)) }
        @if let Some(greatest) = here.greatest_change(comparison) { p.lead { (greatest) } }
        (here.changes_page(comparison))
        h2 { "Here: " (names[0]) }
        (without_script())
        (run(chart, here, Side::Here))
        h2 { "There: " (names[1]) }
        (run(other, there, Side::There))
        (place())
    };
    // Each gets half of the room, so that the page is no longer than one about one run.
    let data = PageData::new(chart, Some(here), ROOM / 2);
    let data = data.against(PageData::new(other, Some(there), ROOM / 2));
    write(&body, &data)
}

/// A run's part of the page.
fn run(chart: &Chart, account: &Account, side: Side) -> Markup {
    html! {
        p { (how_many(chart, Some(account))) }
        (pictures(chart, Some(account), side))
    }
}

impl Account {
    /// What changed, group by group.
    fn changes_page(&self, comparison: &Comparison) -> Markup {
        let (groups, more) = changed(comparison);
        html! {
            @if !groups.is_empty() {
                h2 { "What changed" }
                @for group in groups { (self.group_changes(group)) }
            }
            @for sentence in besides(comparison, more) { p.note { (sentence) } }
        }
    }

    fn group_changes(&self, group: &Compared) -> Markup {
        let told = self.told_changes(group);
        let ends = told.iter().flat_map(|change| change.interval_ns);
        let (low, high) = ends.fold((0, 0), |(low, high): (i64, i64), end| {
            (low.min(end), high.max(end))
        });
        html! {
            p { (of_group(group)) }
            div.wide { table.changes {
                thead { tr {
                    th { "on average" } th.number { "here" } th.number { "there" } th.number { "change" }
                    th.number { "95 %" } th { "shorter ◀ ▶ longer" } th { "" }
                } }
                tbody { @for change in &told { (row(change, (low, high))) } }
            } }
        }
    }
}

fn row(change: &ToldChange, ends: (i64, i64)) -> Markup {
    let about = format!("{}: {}", change.change, change.interval);
    let is_change = change.verdict != Verdict::Same;
    html! {
        tr {
            td { (change.label) }
            td.number { (change.here) }
            td.number { (change.there) }
            td.number { (change.change) }
            td.number { (change.interval) }
            td { (html::interval(&about, (change.ns, change.interval_ns), ends, is_change)) }
            td { (change.verdict.word()) }
        }
    }
}
