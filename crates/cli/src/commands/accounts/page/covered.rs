//! The stretches of time of which a page has everything: those around its waits, the worst first, as many as
//! there is room for.

use std::collections::BTreeMap;

use event::{Nanos, Task};
use trace::explain::Wait;

use super::super::Account;
use super::cast::Cast;

/// The stretch shown before and after a wait: a part of its length.
const MARGIN: u64 = 4;

/// Stretches in the order of time, apart from each other.
#[derive(Default)]
pub(super) struct Stretches(pub(super) Vec<(Nanos, Nanos)>);

/// What a page has.
#[derive(Default)]
pub(super) struct Covered {
    /// Of all CPUs.
    pub(super) cpus: Stretches,
    /// Of the threads with a lane.
    pub(super) threads: BTreeMap<Task, Stretches>,
    /// The waits, with the threads that matter in them.
    pub(super) waits: BTreeMap<usize, Cast>,
}

impl Covered {
    /// What is needed for these waits, as far as there is room for so many changes.
    pub(super) fn of(account: &Account, waits: &[usize], mut room: usize) -> Covered {
        let mut covered = Covered::default();
        for (rank, &at) in waits.iter().enumerate() {
            if covered.waits.contains_key(&at) {
                continue;
            }
            let wait = &account.explanation.waits[at];
            let cast = Cast::of(wait);
            let (mut begin, end) = account.window(wait);
            let mut changes = covered.changes(account, wait, &cast, (begin, end));
            // Of the worst at least its end is there.
            while rank == 0 && changes > room && begin < end {
                begin = end - Nanos((end - begin).0 / 2);
                changes = covered.changes(account, wait, &cast, (begin, end));
            }
            if changes <= room {
                room -= changes;
                covered.add((begin, end), at, cast);
            }
        }
        covered
    }

    fn add(&mut self, stretch: (Nanos, Nanos), wait: usize, cast: Cast) {
        self.cpus.add(stretch);
        for &task in &cast.path {
            self.threads.entry(task).or_default().add(stretch);
        }
        self.waits.insert(wait, cast);
    }

    /// How many changes of CPUs and threads a wait adds, and how many segments its path has.
    fn changes(
        &self,
        account: &Account,
        wait: &Wait,
        cast: &Cast,
        stretch: (Nanos, Nanos),
    ) -> usize {
        let timeline = &account.timeline;
        let runs = self.cpus.missing(stretch).into_iter().map(|(begin, end)| {
            let cpus = timeline.cpus().into_iter();
            cpus.map(|cpu| timeline.runs_within(cpu, begin, end).count())
                .sum::<usize>()
        });
        let none = Stretches::default();
        let stays = cast.path.iter().map(|task| {
            let known = self.threads.get(task).unwrap_or(&none);
            let missing = known.missing(stretch).into_iter();
            missing
                .map(|(begin, end)| timeline.stays_within(*task, begin, end).count())
                .sum::<usize>()
        });
        runs.sum::<usize>() + stays.sum::<usize>() + wait.segments.len()
    }
}

impl Stretches {
    /// The parts of a stretch that are not covered yet.
    fn missing(&self, (begin, end): (Nanos, Nanos)) -> Vec<(Nanos, Nanos)> {
        let mut from = begin;
        let mut missing = Vec::new();
        let first = self.0.partition_point(|known| known.1 <= begin);
        for known in self.0[first..].iter().take_while(|known| known.0 < end) {
            if from < known.0 {
                missing.push((from, known.0));
            }
            from = known.1;
        }
        if from < end {
            missing.push((from, end));
        }
        missing
    }

    /// Whether a time is in one of them.
    pub(super) fn contains(&self, time: Nanos) -> bool {
        let at = self.0.partition_point(|known| known.1 < time);
        self.0.get(at).is_some_and(|known| known.0 <= time)
    }

    fn add(&mut self, (begin, end): (Nanos, Nanos)) {
        let from = self.0.partition_point(|known| known.1 < begin);
        let until = self.0.partition_point(|known| known.0 <= end);
        let touched = &self.0[from..until];
        let begin = touched.first().map_or(begin, |first| first.0.min(begin));
        let end = touched.last().map_or(end, |last| last.1.max(end));
        self.0.splice(from..until, [(begin, end)]);
    }
}

impl Account {
    /// A little more than a wait, as far as the recording goes.
    fn window(&self, wait: &Wait) -> (Nanos, Nanos) {
        let margin = wait.length().0 / MARGIN;
        let (first, last) = self.timeline.span();
        let begin = Nanos(wait.begin.0.saturating_sub(margin)).max(first);
        let end = Nanos(wait.end.0.saturating_add(margin)).min(last);
        (begin.min(wait.begin), end.max(wait.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: stretches are merged where they touch, and what is missing of one is what no other has. Method:
    /// stretches in all orders, compared with a list of instants.
    #[test]
    fn stretches_are_merged() {
        let stretches = [
            (10, 20),
            (30, 40),
            (15, 32),
            (0, 5),
            (5, 6),
            (50, 60),
            (45, 70),
        ];
        for first in 0..stretches.len() {
            let mut covered = Stretches::default();
            let mut known = [false; 80];
            for at in 0..stretches.len() {
                let (begin, end) = stretches[(first + at * 3) % stretches.len()];
                let (from, to) = (Nanos(begin), Nanos(end));
                let missing = covered.missing((from, to));
                let missing: Vec<u64> =
                    missing.iter().flat_map(|(from, to)| from.0..to.0).collect();
                let expected = (begin..end).filter(|&time| !known[time as usize]);
                assert_eq!(missing, expected.collect::<Vec<_>>());
                covered.add((from, to));
                known[begin as usize..end as usize].fill(true);
                let apart = covered.0.windows(2).all(|two| two[0].1 < two[1].0);
                assert!(apart, "{:?}", covered.0);
            }
            let all: Vec<u64> = covered
                .0
                .iter()
                .flat_map(|(from, to)| from.0..to.0)
                .collect();
            let expected = (0..80).filter(|&time| known[time as usize]);
            assert_eq!(all, expected.collect::<Vec<_>>());
        }
    }
}
