//! Histories of values: a time and a number for each change, in the order of time.
//!
//! There is a change for each event and more, and touching memory for the first time costs more than
//! computing the data that go there. So a change has 8 bytes: its time is the difference to a base that is at
//! most four seconds before.

use std::marker::PhantomData;

use event::Nanos;

/// A change: its time, and a number for the new value.
pub(crate) trait Change: Copy {
    /// Both.
    fn parts(self) -> (Nanos, u32);

    /// The same from both.
    fn of(time: Nanos, number: u32) -> Self;
}

#[derive(Clone, Copy, Debug)]
struct HistoryEntry {
    after: u32,
    number: u32,
}

/// A base for the times of the entries after it.
#[derive(Clone, Copy, Debug)]
struct Base {
    /// The first entry, which is at this time.
    from: usize,
    time: u64,
}

/// Changes of one thing.
#[derive(Clone, Debug)]
pub(crate) struct History<T> {
    entries: Vec<HistoryEntry>,
    /// The first entries, if there is no base for them, count from 0.
    bases: Vec<Base>,
    /// That of the last entry.
    base: u64,
    changes: PhantomData<T>,
}

impl<T> Default for History<T> {
    fn default() -> History<T> {
        History {
            entries: Vec::new(),
            bases: Vec::new(),
            base: 0,
            changes: PhantomData,
        }
    }
}

impl<T: Change> History<T> {
    /// Appends a change, which is no earlier than the others.
    #[inline]
    pub(super) fn push(&mut self, change: T) {
        let (time, number) = change.parts();
        let after = match time.0.checked_sub(self.base).map(u32::try_from) {
            Some(Ok(after)) => after,
            _ => self.rebase(time.0),
        };
        self.entries.push(HistoryEntry { after, number });
    }

    #[cold]
    fn rebase(&mut self, time: u64) -> u32 {
        let from = self.entries.len();
        self.bases.push(Base { from, time });
        self.base = time;
        0
    }

    /// Room for `changes` more.
    pub(super) fn reserve(&mut self, changes: usize) {
        self.entries.reserve_exact(changes);
    }

    /// The number of changes.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The latest one.
    #[inline]
    pub(crate) fn last(&self) -> Option<T> {
        let last = self.entries.last()?;
        Some(last.at(self.base))
    }

    /// Corrects the value of the latest change.
    pub(super) fn correct(&mut self, change: T) {
        if let Some(last) = self.entries.last_mut() {
            last.number = change.parts().1;
        }
    }

    /// The one at this position.
    pub(crate) fn get(&self, at: usize) -> Option<T> {
        let entry = self.entries.get(at)?;
        let bases = self.bases.partition_point(|base| base.from <= at);
        Some(entry.at(self.base_of(bases).time))
    }

    /// Those from this position on.
    pub(crate) fn from(&self, at: usize) -> impl Iterator<Item = T> + '_ {
        (at..self.len()).map_while(|at| self.get(at))
    }

    /// The position of the first one that is not before: `is_before` holds for times up to some time.
    pub(crate) fn partition_point(&self, is_before: impl Fn(Nanos) -> bool) -> usize {
        let bases = self
            .bases
            .partition_point(|base| is_before(Nanos(base.time)));
        let Base { from, time } = self.base_of(bases);
        let to = self.bases.get(bases).map_or(self.len(), |next| next.from);
        let entries = &self.entries[from..to];
        from + entries.partition_point(|entry| is_before(Nanos(time + u64::from(entry.after))))
    }

    /// The last of the first `bases` ones.
    fn base_of(&self, bases: usize) -> Base {
        let last = bases.checked_sub(1).map(|last| self.bases[last]);
        last.unwrap_or(Base { from: 0, time: 0 })
    }
}

impl HistoryEntry {
    #[inline]
    fn at<T: Change>(self, base: u64) -> T {
        T::of(Nanos(base + u64::from(self.after)), self.number)
    }
}

/// A history for each position.
#[derive(Clone, Debug)]
pub(crate) struct Histories<T> {
    list: Vec<History<T>>,
    /// The history of positions that have none.
    none: History<T>,
}

impl<T> Default for Histories<T> {
    fn default() -> Histories<T> {
        Histories {
            list: Vec::new(),
            none: History::default(),
        }
    }
}

impl<T: Change> Histories<T> {
    /// The history of a position; an empty one if it has none.
    #[inline]
    pub(crate) fn of(&self, position: u32) -> &History<T> {
        self.list.get(position as usize).unwrap_or(&self.none)
    }

    /// The same, to change it.
    #[inline]
    pub(super) fn of_mut(&mut self, position: u32) -> &mut History<T> {
        let position = position as usize;
        if position >= self.list.len() {
            self.list.resize_with(position + 1, History::default);
        }
        &mut self.list[position]
    }

    /// Every position with its history, as far as there are any.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &History<T>)> {
        (0..).zip(&self.list)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Plain = (u64, u32);

    impl Change for Plain {
        fn parts(self) -> (Nanos, u32) {
            (Nanos(self.0), self.1)
        }

        fn of(time: Nanos, number: u32) -> Plain {
            (time.0, number)
        }
    }

    /// Goal: a change takes 8 bytes. Method: its size.
    #[test]
    fn changes_are_small() {
        assert_eq!(size_of::<HistoryEntry>(), 8);
    }

    proptest! {
        /// Goal: a history is a sorted list. Method: such a list beside it, with times near and far, equal
        /// ones, and the last possible ones; each place, each search.
        #[test]
        fn it_is_a_sorted_list(
            begin in prop_oneof![Just(0), Just(u64::from(u32::MAX)), Just(1 << 40), any::<u64>()],
            steps in proptest::collection::vec(
                prop_oneof![Just(0), 0..9u64, Just(u64::from(u32::MAX)), Just(1 << 32), Just(1 << 62)],
                0..20,
            ),
        ) {
            let (mut list, mut history) = (Vec::new(), History::default());
            let mut time = begin;
            for (number, step) in (0..).zip(steps) {
                time = time.saturating_add(step);
                list.push((time, number));
                history.push((time, number));
                prop_assert_eq!(history.last(), Some((time, number)));
            }
            prop_assert_eq!(history.from(0).collect::<Vec<Plain>>(), &list[..]);
            prop_assert_eq!(history.get(list.len()), None);
            for time in list.iter().flat_map(|(time, _)| [time.saturating_sub(1), *time]) {
                let at = history.partition_point(|other| other.0 <= time);
                prop_assert_eq!(at, list.partition_point(|(other, _)| *other <= time));
                let at = history.partition_point(|other| other.0 < time);
                prop_assert_eq!(at, list.partition_point(|(other, _)| *other < time));
                prop_assert_eq!(history.from(at).collect::<Vec<Plain>>(), &list[at..]);
            }
            if let Some(last) = list.last_mut() {
                last.1 = 99;
                history.correct((0, 99));
                prop_assert_eq!(history.last(), Some(*last));
            }
        }
    }

    /// Goal: each position has a history of its own. Method: two of them, and one that has none.
    #[test]
    fn each_position_has_its_own() {
        let mut histories = Histories::<Plain>::default();
        histories.of_mut(2).push((5, 1));
        histories.of_mut(0).push((7, 2));
        let all: Vec<_> = histories
            .all()
            .map(|(at, history)| (at, history.last()))
            .collect();
        assert_eq!(all, [(0, Some((7, 2))), (1, None), (2, Some((5, 1)))]);
        assert_eq!((histories.of(1).len(), histories.of(9).len()), (0, 0));
    }
}
