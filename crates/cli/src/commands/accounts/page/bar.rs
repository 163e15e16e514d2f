//! A wait as one bar: its causes beside each other, as wide as they were long.

use maud::{Markup, html};
use trace::explain::{CauseKind, Wait};

use super::super::{Account, percent, short};

/// A part that is narrower, in per mille, is not seen.
const PART_MIN: u64 = 2;

/// The style of a kind's colour.
pub(super) fn class(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::Running => "ran",
        CauseKind::Awake => "awake",
        CauseKind::SmallCore | CauseKind::LowFrequency | CauseKind::FrequencyLimit => "slow",
        CauseKind::Preempted | CauseKind::WakeLatency | CauseKind::IdleExit => "runnable",
        CauseKind::BusyWaitStolen => "burnt",
        CauseKind::Throttled | CauseKind::NoCore => "nowhere",
        CauseKind::QueuedBehind | CauseKind::NotReady => "behind",
        CauseKind::Lock => "lock",
        CauseKind::Io | CauseKind::Blocked | CauseKind::Interrupt => "asleep",
        CauseKind::Interrupted => "nowhere",
        _ => "unknown",
    }
}

/// The colour of what most of a wait was.
pub(super) fn main_class(wait: &Wait) -> &'static str {
    wait.causes
        .first()
        .map_or("unknown", |cause| class(cause.kind))
}

/// The bar, of this style.
pub(super) fn bar(account: &Account, wait: &Wait, style: &str) -> Markup {
    let length = wait.length();
    let parts = account.parts(wait);
    let parts = parts.iter().map(|part| {
        let mille = u128::from(part.ns.0) * 1_000 / u128::from(length.0.max(1));
        let (label, of) = (account.label(wait, part), percent(part.ns, length));
        (
            mille as u64,
            class(part.kind),
            format!("{label}: {}, {of}", short(part.ns)),
        )
    });
    html! {
        div class=(style) {
            @for (mille, class, title) in parts.filter(|(mille, ..)| *mille >= PART_MIN) {
                span class=(class) style=(format!("width:{}.{}%", mille / 10, mille % 10)) title=(title) {}
            }
        }
    }
}
