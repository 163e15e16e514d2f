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

/// The bar. Its parts are places in a picture and not styles of elements, which the page's policy forbids.
pub(super) fn bar(account: &Account, wait: &Wait) -> Markup {
    let length = wait.length();
    let mut from = 0;
    let parts = account.parts(wait);
    let parts = parts.iter().map(|part| {
        let mille = (u128::from(part.ns.0) * 1_000 / u128::from(length.0.max(1))) as u64;
        let (label, of) = (account.label(wait, part), percent(part.ns, length));
        let x = tenths(from);
        from += mille;
        let title = format!("{label}: {}, {of}", short(part.ns));
        (mille, x, class(part.kind), title)
    });
    html! {
        svg.bar {
            @for (mille, x, class, title) in parts.filter(|(mille, ..)| *mille >= PART_MIN) {
                rect class=(class) x=(x) width=(tenths(mille)) height="100%" { title { (title) } }
            }
        }
    }
}

/// Per mille in per cent.
fn tenths(mille: u64) -> String {
    format!("{}.{}%", mille / 10, mille % 10)
}
