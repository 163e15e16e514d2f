//! An explanation of the words of a page: those that are in it, as crate `trace` explains them.

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
                dt { span class=(format!("swatch {}", class(kind))) {} (kind.word()) }
                dd { (kind.about()) }
            }
        }
        @if !inversions.is_empty() {
            h3 { "Kinds of inversions" }
            dl.words {
                @for kind in inversions { dt { (kind.word()) } dd { (kind.about()) } }
            }
        }
        p.note {
            "The thread on the path is the one that would have had to go on for the wait to end. The causes "
            "of a wait do not overlap and sum exactly to its length. What ran meanwhile is what had the CPU "
            "in whose queue the thread on the path was; if that CPU is not known, each instant is split "
            "equally over the CPUs on which the thread was allowed. known: the recording says so; "
            "inferred: it follows from what is recorded; assumed: it is the likeliest reading."
        }
    }
}
