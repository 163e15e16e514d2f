//! What the words of a page mean: those that are in it.

use std::collections::BTreeSet;

use maud::{Markup, html};
use trace::explain::{CauseKind, Explanation, InversionKind};

use super::bar::class;

/// The kinds of causes and inversions that an explanation has, each in a line.
pub(super) fn words(explanation: &Explanation) -> Markup {
    let causes = explanation.waits.iter().flat_map(|wait| &wait.causes);
    let causes: BTreeSet<CauseKind> = causes.map(|cause| cause.kind).collect();
    let inversions = explanation.inversions.iter();
    let inversions: BTreeSet<InversionKind> = inversions.map(|inversion| inversion.kind).collect();
    html! {
        dl.words {
            @for kind in causes {
                dt { span class=(format!("swatch {}", class(kind))) {} " " (kind.word()) }
                dd { (cause(kind)) }
            }
        }
        @if !inversions.is_empty() {
            h3 { "Kinds of inversions" }
            dl.words {
                @for kind in inversions { dt { (kind.word()) } dd { (inversion(kind)) } }
            }
        }
        p.note {
            "The thread on the path is the one that would have had to go on for the wait to end. The causes "
            "of a wait do not overlap and sum exactly to its length. What ran meanwhile: each instant is "
            "split equally over the CPUs on which the thread on the path was allowed. known: the recording "
            "says so; inferred: it follows from what is recorded; assumed: it is the likeliest reading."
        }
    }
}

fn cause(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::Running => "The thread on the path ran.",
        CauseKind::RunningSlowCore => {
            "It ran on a slower CPU, or at a lower frequency, than the machine has: how much longer it took."
        }
        CauseKind::Preempted => "It had run and could have gone on; something else ran.",
        CauseKind::WakeLatency => "It had been woken, could have run, and did not run yet.",
        CauseKind::Throttled => "It could have run; the CPU quota of its group was used up.",
        CauseKind::NoCore => "It could have run; no CPU that it was allowed on was online.",
        CauseKind::QueuedBehind => {
            "The job could have begun; who ran it was busy with another one first."
        }
        CauseKind::NotReady => "The job could not begin, and nothing tells what it waited for.",
        CauseKind::BusyWaitStolen => {
            "It could have run; a thread that waited for it burnt a CPU that it was allowed on."
        }
        CauseKind::Lock => "It slept because of a lock, and nothing tells who held it.",
        CauseKind::Io => "It slept because of a device.",
        CauseKind::Interrupt => {
            "It slept until a timer or a device woke it, or an interrupt had its CPU."
        }
        _ => "The recording does not say.",
    }
}

fn inversion(kind: InversionKind) -> &'static str {
    match kind {
        InversionKind::Throttled => "A CPU quota that was used up kept it from running.",
        InversionKind::Lock => "It held a lock that somebody on the path was blocked on.",
        InversionKind::BusyWait => {
            "Somebody who waited for it ran on a CPU that it was allowed on."
        }
        InversionKind::Placement => {
            "A CPU that it was allowed on was idle, or it ran on a slow one while a faster one ran others."
        }
        InversionKind::NoCore => "No CPU that it was allowed on was online.",
        InversionKind::Preemption => "Something else ran.",
        other => other.word(),
    }
}
