//! The words of a range, and the body they stand for.

use std::ops::Range;

use platform::{Atomic, Memory, Ordering, Padded, Platform};

use crate::border::{Body, BodyTable};
use crate::context::Context;
use crate::error::ScheduleError;
use crate::policy::Grain;

use super::trial::Tried;

/// Most threads that take part in one range.
pub(crate) const CREW_MAX: usize = 32;

/// The words of one range that is being run.
pub(crate) struct RangeBlock<M: Memory> {
    /// Members so far; each has the word with its number.
    pub(super) members: M::AtomicU32,
    /// What an item takes a fast thread, in picoseconds, once the range was offered to slow ones.
    pub(super) cost: M::AtomicU64,
    pub(super) tried: Tried<M>,
    pub(super) words: [Padded<M::AtomicU64>; CREW_MAX],
}

impl<M: Memory> RangeBlock<M> {
    /// A block of no range.
    pub(crate) fn empty() -> Self {
        RangeBlock {
            members: M::AtomicU32::new(0),
            cost: M::AtomicU64::new(0),
            tried: Tried::new(),
            words: std::array::from_fn(|_| Padded(M::on_own_lines(|| M::AtomicU64::new(0)))),
        }
    }
}

/// A decoded range word: the items not yet taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Items {
    pub(crate) lo: u32,
    pub(crate) hi: u32,
}

impl Items {
    #[inline]
    pub(super) fn pack(self) -> u64 {
        u64::from(self.hi) << 32 | u64::from(self.lo)
    }

    #[inline]
    pub(super) fn unpack(word: u64) -> Items {
        Items {
            lo: word as u32,
            hi: (word >> 32) as u32,
        }
    }

    #[inline]
    pub(crate) fn len(self) -> u32 {
        self.hi.saturating_sub(self.lo)
    }

    /// The items before `cut`, and the others.
    #[inline]
    fn split_at(self, cut: u32) -> (Items, Items) {
        let (lo, hi) = (self.lo, self.hi);
        (Items { lo, hi: cut }, Items { lo: cut, hi })
    }

    /// Splits off up to `most` items at the front.
    #[inline]
    pub(super) fn take_front(self, most: u32) -> (Items, Items) {
        self.split_at(self.lo + most.min(self.len()))
    }

    /// Splits off up to `most` items at the back, half of them at most.
    #[inline]
    fn cut_back(self, most: u32) -> (Items, Items) {
        self.split_at(self.hi - most.min(self.len() / 2))
    }

    /// Splits off the back half; all of it if that is a single item.
    #[inline]
    fn cut_half(self) -> (Items, Items) {
        self.split_at(self.lo + self.len() / 2)
    }
}

/// Takes up to `most` items from the front of a word.
pub(crate) fn take_front<M: Memory>(word: &M::AtomicU64, most: u32) -> Option<Items> {
    change(word, |items| items.take_front(most))
}

/// Takes the back half of a word.
pub(crate) fn cut_half<M: Memory>(word: &M::AtomicU64) -> Option<Items> {
    change(word, |items| {
        let (rest, taken) = items.cut_half();
        (taken, rest)
    })
}

#[inline]
fn change(word: &impl Atomic<u64>, split: impl Fn(Items) -> (Items, Items)) -> Option<Items> {
    // Relaxed, here and below: the word is the whole state; what the items stand for was published
    // when the range was opened, and its members see that by joining.
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        let items = Items::unpack(seen);
        if items.len() == 0 {
            return None;
        }
        let (taken, rest) = split(items);
        let new = rest.pack();
        match word.compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(taken),
            Err(now) => seen = now,
        }
    }
}

impl<M: Memory> RangeBlock<M> {
    /// Gives a new member its number, if there is room.
    pub(super) fn join(&self) -> Option<usize> {
        // Relaxed: a number is given out once; the words are the state.
        let number = self.members.fetch_add(1, Ordering::Relaxed) as usize;
        if number >= CREW_MAX {
            self.members.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(number)
    }

    pub(super) fn members(&self) -> usize {
        (self.members.load(Ordering::Relaxed) as usize).min(CREW_MAX)
    }

    /// Cuts the largest share of another member in half.
    pub(super) fn steal_for(&self, me: usize) -> Option<Items> {
        loop {
            let share =
                |&other: &usize| Items::unpack(self.words[other].load(Ordering::Relaxed)).len();
            let others = (0..self.members()).filter(|&other| other != me);
            let victim = others.max_by_key(share).filter(|other| share(other) > 0)?;
            if let Some(items) = cut_half::<M>(&self.words[victim]) {
                return Some(items);
            }
        }
    }

    /// Makes items the share of a member that has none.
    pub(super) fn keep(&self, member: usize, items: Items) {
        // Relaxed: as in `change`. A store will do: nobody changes an empty word but its owner.
        self.words[member].store(items.pack(), Ordering::Relaxed);
    }

    /// How many items a member has that it has not yet taken.
    pub(super) fn len_of(&self, member: usize) -> u32 {
        Items::unpack(self.words[member].load(Ordering::Relaxed)).len()
    }

    /// Takes up to `most` items off the back of a member's word, half of it at most.
    pub(super) fn cut_back(&self, member: usize, most: u32) -> Option<Items> {
        let taken = change(&*self.words[member], |items| {
            let (rest, taken) = items.cut_back(most);
            (taken, rest)
        });
        taken.filter(|items| items.len() > 0)
    }

    pub(super) fn left(&self) -> u64 {
        (0..self.members())
            .map(|member| u64::from(self.len_of(member)))
            .sum()
    }
}

/// The body of a range: the closure and what it ranges over.
pub(crate) struct SharedRange<F> {
    pub(super) start: usize,
    pub(super) items: u32,
    pub(super) grain: u32,
    body: F,
}

impl<F> SharedRange<F> {
    pub(crate) fn new(range: Range<usize>, grain: Grain, body: F) -> Result<Self, ScheduleError> {
        let items = range.end.saturating_sub(range.start);
        let too_long = ScheduleError::TooLong { items };
        let items = u32::try_from(items).map_err(|_| too_long)?;
        Ok(SharedRange {
            start: range.start,
            items,
            grain: grain.items(),
            body,
        })
    }

    /// Calls the body with these items.
    #[inline]
    pub(super) fn run<P: Platform>(&self, items: Items, context: &Context<'_, P>)
    where
        F: Fn(Range<usize>, &Context<'_, P>),
    {
        let part = self.start + items.lo as usize..self.start + items.hi as usize;
        (self.body)(part, context);
    }
}

impl<F> SharedRange<&F> {
    /// The same range once more, for a job.
    pub(super) fn again(&self) -> Self {
        SharedRange { ..*self }
    }
}

/// The table of a range's body, by platform and closure.
pub(crate) struct RangeTable<P, F>(std::marker::PhantomData<(P, F)>);

impl<P: Platform, F: Fn(Range<usize>, &Context<'_, P>) + Sync> RangeTable<P, F> {
    pub(crate) const TABLE: BodyTable<P> = BodyTable::of_range(
        |body, context| {
            // SAFETY: the table is stored beside a body that holds a `SharedRange<F>`, which stays
            // there until the last member has left.
            let range = unsafe { Body::peek::<SharedRange<F>>(body) };
            context.open_range(range);
        },
        |body, context, number| {
            // SAFETY: as above; the caller is a member.
            let range = unsafe { Body::peek::<SharedRange<F>>(body) };
            context.run_share(range, number);
        },
        |body| {
            // SAFETY: as above; nobody is a member any more, or nobody ever was.
            drop(unsafe { Body::take::<SharedRange<F>>(body) });
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_split_without_gaps() {
        let items = Items { lo: 3, hi: 10 };
        assert_eq!(Items::unpack(items.pack()), items);
        assert_eq!(
            items.take_front(4),
            (Items { lo: 3, hi: 7 }, Items { lo: 7, hi: 10 })
        );
        assert_eq!(items.take_front(99).1.len(), 0);
        assert_eq!(
            items.cut_half(),
            (Items { lo: 3, hi: 6 }, Items { lo: 6, hi: 10 })
        );
        assert_eq!(
            items.cut_back(2),
            (Items { lo: 3, hi: 8 }, Items { lo: 8, hi: 10 })
        );
        assert_eq!(items.cut_back(99).1.len(), 3);
        let one = Items { lo: 4, hi: 5 };
        assert_eq!(one.cut_back(1).1.len(), 0);
        assert_eq!(one.cut_half(), (Items { lo: 4, hi: 4 }, one));
        let whole = Items {
            lo: 0,
            hi: u32::MAX,
        };
        assert_eq!(whole.take_front(u32::MAX).1.len(), 0);
    }
}
