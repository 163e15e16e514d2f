//! What ends a sleep in a replay: a thread, a time, or a length of time.

use event::Task;
use trace::explain::{Ender, ender};
use trace::timeline::Stay;

use super::source::Source;

/// What ends a sleep in a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ends {
    /// A signal of this thread.
    Signal(Task),
    /// The time at which it ended: the thread's sleeps end in a rhythm.
    At,
    /// Its length.
    After,
}

/// What ended a sleep. A thread that is named for it must have run at that time.
pub(super) fn ends(source: &Source<'_>, task: Task, sleep: Stay, has_rhythm: bool) -> Ends {
    let (by, _) = ender(source.timeline, task, sleep);
    match by {
        Ender::Thread(by) if by != task && source.runs_at(by, sleep.end) => Ends::Signal(by),
        _ if has_rhythm => Ends::At,
        _ => Ends::After,
    }
}

/// Whether the times at which a thread's sleeps end are a rhythm rather than the sleeps' lengths: they differ
/// by less, from one to the next.
pub(super) fn has_rhythm(ended: &[Stay]) -> bool {
    if ended.len() < 4 {
        return false;
    }
    let beats: Vec<u64> = ended
        .windows(2)
        .map(|two| (two[1].end - two[0].end).0)
        .collect();
    let lengths: Vec<u64> = ended.iter().map(|stay| (stay.end - stay.begin).0).collect();
    spread(beats) < spread(lengths)
}

/// The median of the distances from the median.
fn spread(mut values: Vec<u64>) -> u64 {
    let middle = |values: &mut Vec<u64>| {
        values.sort_unstable();
        values[values.len() / 2]
    };
    let median = middle(&mut values);
    let mut distances = values.iter().map(|value| value.abs_diff(median)).collect();
    middle(&mut distances)
}

/// The sleeps of a thread that no thread ended.
pub(super) fn by_timers(source: &Source<'_>, task: Task) -> Vec<Stay> {
    let sleeps = source.ended_sleeps(task);
    let by_itself = sleeps.filter(|stay| ends(source, task, *stay, false) == Ends::After);
    by_itself.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Nanos;
    use trace::timeline::State;

    fn sleeps(ends: &[(u64, u64)]) -> Vec<Stay> {
        let stay = |&(begin, end): &(u64, u64)| Stay {
            begin: Nanos(begin),
            end: Nanos(end),
            state: State::Sleeping,
        };
        ends.iter().map(stay).collect()
    }

    /// Goal: a thread that is woken every 100 has a rhythm, one that sleeps for 30 after work of any length
    /// has none. Method: five sleeps of each.
    #[test]
    fn a_rhythm_is_steadier_than_the_sleeps() {
        let steady = sleeps(&[(10, 100), (150, 200), (260, 300), (310, 400), (430, 500)]);
        assert!(has_rhythm(&steady));
        let alike = sleeps(&[(10, 40), (70, 100), (180, 210), (220, 250), (300, 330)]);
        assert!(!has_rhythm(&alike));
        assert!(!has_rhythm(&steady[..3]));
    }
}
