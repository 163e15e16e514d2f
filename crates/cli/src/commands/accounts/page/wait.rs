//! One wait in detail: its picture, its causes with the threads that ran instead, and its inversions.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use event::Nanos;
use maud::{Markup, html};
use trace::explain::{CauseKind, Inversion, Share, Wait, Who};

use super::super::people::Group;
use super::super::sentence::{Part, merged};
use super::super::{Account, percent, short};
use super::bar::{bar, class};

/// The number of causes told, and of threads that ran instead in each. Causes shorter than a 200th of the
/// wait are summed up, but for the first few.
const CAUSES_MAX: usize = 24;
const SHARES_MAX: usize = 8;
const FEW: usize = 4;
/// The number of inversions told, the most expensive ones.
const INVERSIONS_MAX: usize = 8;
const PART_MIN: u64 = 200;

impl Account {
    pub(super) fn details(&self, at: usize) -> Markup {
        let wait = &self.explanation.waits[at];
        let inversions = self.explanation.inversions.iter();
        let mut inversions: Vec<&Inversion> = inversions.filter(|it| it.wait == at).collect();
        inversions.sort_by_key(|inversion| Reverse(inversion.ns));
        html! {
            (bar(self, wait, "bar full"))
            (self.picture(wait).draw())
            (self.causes(wait))
            @if !inversions.is_empty() { (self.inversions_of(&inversions)) }
        }
    }

    fn causes(&self, wait: &Wait) -> Markup {
        let rows = merged(&wait.causes, |cause| cause.kind);
        let is_told = |row: &&Part| is_long(row.ns, wait);
        let told = rows.iter().take_while(is_told).count();
        let told = told.max(FEW).min(rows.len().min(CAUSES_MAX));
        let (shown, rest) = rows.split_at(told);
        html! {
            table {
                thead { tr {
                    th { "cause" } th { "thread on the path" } th.number { "time" } th.number { "of it" }
                    th { "confidence" }
                } }
                tbody {
                    @for row in shown { (self.row(wait, row)) }
                    @for (kind, count, ns) in summed(rest) {
                        tr {
                            td {
                                span class=(format!("swatch {}", class(kind))) {}
                                " " (count) " more: " (kind.word())
                            }
                            td {}
                            td.number { (short(ns)) } td.number { (percent(ns, wait.length())) } td {}
                        }
                    }
                    tr {
                        td { "sum" } td {}
                        td.number { (wait.sum()) } td.number { (percent(wait.sum(), wait.length())) } td {}
                    }
                }
            }
        }
    }

    fn row(&self, wait: &Wait, cause: &Part) -> Markup {
        let label = cause.job.and_then(|job| self.timeline.label(job));
        // They differ in their jobs alone.
        let job = match (label, cause.count) {
            (Some(label), _) => format!(" `{label}`"),
            (None, 1) => String::new(),
            (None, jobs) => format!(", {jobs} jobs"),
        };
        let is_told = |share: &&Share| is_long(share.ns, wait);
        let told = cause.by.iter().take_while(is_told).count().max(1);
        let (shown, rest) = cause.by.split_at(told.min(cause.by.len().min(SHARES_MAX)));
        let rest_ns = rest.iter().fold(Nanos::ZERO, |sum, share| sum + share.ns);
        html! {
            tr {
                td { span class=(format!("swatch {}", class(cause.kind))) {} " " (cause.kind.word()) (job) }
                td { (cause.thread.map_or("an unknown thread".to_owned(), |task| self.thread(task))) }
                td.number { (short(cause.ns)) }
                td.number { (percent(cause.ns, wait.length())) }
                td { (cause.confidence.word()) }
            }
            @for share in shown {
                tr {
                    td.part colspan="2" { (self.ran_instead(share.who)) }
                    td.number { (short(share.ns)) } td.number { (percent(share.ns, wait.length())) } td {}
                }
            }
            @if !rest.is_empty() {
                tr {
                    td.part colspan="2" { (rest.len()) " more" }
                    td.number { (short(rest_ns)) } td.number { (percent(rest_ns, wait.length())) } td {}
                }
            }
        }
    }

    fn ran_instead(&self, who: Who) -> String {
        match who {
            Who::Task(_) => format!("meanwhile {} ran", self.who(who)),
            _ => self.who(who),
        }
    }

    fn inversions_of(&self, inversions: &[&Inversion]) -> Markup {
        let (told, rest) = inversions.split_at(inversions.len().min(INVERSIONS_MAX));
        let alone = told.iter().map(|inversion| Group::alone(inversion));
        html! {
            h3 { "Inversions in it" }
            ul.findings { @for group in alone { (self.group(&group)) } }
            @if !rest.is_empty() { p.note { (rest.len()) " more, each shorter." } }
        }
    }
}

/// Whether it is enough of a wait to be told apart.
fn is_long(part: Nanos, wait: &Wait) -> bool {
    part.0.saturating_mul(PART_MIN) >= wait.length().0
}

/// Rows by kind, the one with the most time first: how many, and how much.
fn summed(rows: &[Part]) -> Vec<(CauseKind, usize, Nanos)> {
    let mut kinds: BTreeMap<CauseKind, (usize, Nanos)> = BTreeMap::new();
    for cause in rows {
        let (count, ns) = kinds.entry(cause.kind).or_default();
        *count += 1;
        *ns += cause.ns;
    }
    let kinds = kinds.into_iter();
    let mut summed: Vec<_> = kinds.map(|(kind, (count, ns))| (kind, count, ns)).collect();
    summed.sort_by_key(|(_, _, ns)| Reverse(*ns));
    summed
}
