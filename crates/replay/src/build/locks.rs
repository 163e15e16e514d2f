//! Locks: when their owners hold them, and when others want them.
//!
//! No kernel tells that. A recording has the sleeps of those that had to wait, mostly no more. If both
//! threads mark what they do, it has the times when the lock was free, too: then these are played as well,
//! since with a change they may not be free.

use std::collections::BTreeMap;

use event::{Nanos, Task};
use sim::scenario::{Segment, WaitUntil};
use trace::Name;
use trace::explain::LockWaits;
use trace::timeline::{Slice, Stay};

use super::source::Source;

/// A thread that waits, and the owner of the lock.
type Pair = (Task, Task);

/// The sleeps that were found, by pair, in the order of time.
#[derive(Default)]
pub(super) struct FoundLocks {
    pairs: BTreeMap<Pair, Vec<Contended>>,
}

/// A sleep because of a lock.
struct Contended {
    sleep: Stay,
    /// The slices of both threads that say so.
    marks: Option<(Slice, Slice)>,
}

impl FoundLocks {
    /// A thread slept until the owner of a lock gave it back.
    pub(super) fn add(&mut self, (task, sleep): (Task, Stay), owner: Task, locks: &LockWaits<'_>) {
        let wanting = locks.wanting(task, sleep.begin);
        let marks = wanting.zip(locks.holding(owner, sleep.begin));
        let pair = self.pairs.entry((task, owner)).or_default();
        pair.push(Contended { sleep, marks });
    }

    /// What the threads do.
    pub(super) fn deeds(&self, source: &Source<'_>) -> Vec<(Task, Nanos, Segment)> {
        let mut deeds = Vec::new();
        for (&pair, sleeps) in &self.pairs {
            let mut before = Nanos::ZERO;
            for contended in sleeps {
                let sleep = contended.sleep;
                // The owner has had it since its own words for that began, or else since it slept last or
                // gave it back last.
                let since = match contended.marks {
                    Some((_, holding)) => holding.begin,
                    None => source.awake_since(pair.1, sleep.begin),
                };
                holds(
                    source,
                    pair,
                    (since.max(before).min(sleep.end), sleep.end),
                    &mut deeds,
                );
                before = sleep.end;
            }
            let marks = sleeps.iter().filter_map(|contended| contended.marks);
            let mut names: Vec<(Name, Name)> = marks
                .map(|(wants, holds)| (wants.name, holds.name))
                .collect();
            names.sort_unstable();
            names.dedup();
            for (wants, held) in names {
                uncontended(source, pair, sleeps, (wants, held), &mut deeds);
            }
        }
        deeds
    }
}

fn holds(
    source: &Source<'_>,
    (task, owner): Pair,
    (begin, end): (Nanos, Nanos),
    deeds: &mut Vec<(Task, Nanos, Segment)>,
) {
    let name = source.names[&task].as_str();
    deeds.push((owner, begin, Segment::Hold(name.into())));
    deeds.push((owner, end, Segment::Free(name.into())));
}

/// The times when the owner held the lock and nobody waited, and when it was free and the other thread took
/// it.
fn uncontended(
    source: &Source<'_>,
    pair: Pair,
    sleeps: &[Contended],
    (wants, held): (Name, Name),
    deeds: &mut Vec<(Task, Nanos, Segment)>,
) {
    let timeline = source.timeline;
    let (task, owner) = pair;
    let is_contended = |slice: &Slice| {
        let marks = sleeps.iter().filter_map(|contended| contended.marks);
        let mut holding = marks.map(|(_, holding)| holding);
        holding.any(|mark| mark.begin == slice.begin)
    };
    // Also where the owner's words for it were over when the thread fell asleep.
    let has_sleep = |slice: &Slice| {
        let first = sleeps.partition_point(|contended| contended.sleep.begin < slice.begin);
        let first = sleeps.get(first);
        first.is_some_and(|contended| contended.sleep.begin < slice.end)
    };
    let of_owner = timeline
        .slices(owner)
        .iter()
        .filter(|slice| slice.name == held);
    for slice in of_owner.filter(|slice| !is_contended(slice)) {
        holds(source, pair, (slice.begin, slice.end), deeds);
    }
    let of_task = timeline
        .slices(task)
        .iter()
        .filter(|slice| slice.name == wants);
    for slice in of_task.filter(|slice| !has_sleep(slice)) {
        let on = source.names[&owner].as_str().into();
        let wait = Segment::Wait {
            on,
            until: WaitUntil::Free,
            late: Nanos::ZERO,
            lends: false,
        };
        deeds.push((task, slice.begin, wait));
    }
}
