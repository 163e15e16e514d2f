//! The words of a range: the items that are left to each participant.

use platform::{Atomic, Memory, Ordering, Padded};

use super::trial::Tried;

/// The most threads that can take part in one range.
pub(crate) const PARTICIPANTS_MAX: usize = 32;

/// The words of one range that is running.
pub(crate) struct RangeBlock<M: Memory> {
    /// How many participants there were so far. Each has the word with its number.
    pub(super) participants: M::AtomicU32,
    /// The cost of an item for a fast thread, in picoseconds, once the range was offered to slow ones.
    pub(super) cost: M::AtomicU64,
    pub(super) tried: Tried<M>,
    pub(super) words: [Padded<M::AtomicU64>; PARTICIPANTS_MAX],
}

impl<M: Memory> RangeBlock<M> {
    /// A block that belongs to no range.
    pub(crate) fn empty() -> Self {
        RangeBlock {
            participants: M::AtomicU32::new(0),
            cost: M::AtomicU64::new(0),
            tried: Tried::new(),
            words: std::array::from_fn(|_| Padded(M::on_own_lines(|| M::AtomicU64::new(0)))),
        }
    }
}

/// A decoded range word: the items that have not been taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RangeItems {
    pub(crate) lo: u32,
    pub(crate) hi: u32,
}

impl RangeItems {
    #[inline]
    pub(super) fn pack(self) -> u64 {
        debug_assert!(self.lo <= self.hi, "{self:?}");
        u64::from(self.hi) << 32 | u64::from(self.lo)
    }

    #[inline]
    pub(super) fn unpack(word: u64) -> RangeItems {
        RangeItems {
            lo: word as u32,
            hi: (word >> 32) as u32,
        }
    }

    #[inline]
    pub(crate) fn len(self) -> u32 {
        self.hi.saturating_sub(self.lo)
    }

    /// The items before `cut`, and the rest.
    #[inline]
    fn split_at(self, cut: u32) -> (RangeItems, RangeItems) {
        let (lo, hi) = (self.lo, self.hi);
        (RangeItems { lo, hi: cut }, RangeItems { lo: cut, hi })
    }

    /// Splits off `most` items at the front; all of them if fewer than `least` would be left.
    #[inline]
    pub(super) fn take_front(self, most: u32, least: u32) -> (RangeItems, RangeItems) {
        let len = self.len();
        let taken = if len.saturating_sub(most) < least {
            len
        } else {
            most
        };
        self.split_at(self.lo + taken)
    }

    /// Splits off up to `most` items at the back, and at most half of them; none if that is fewer than
    /// `least`.
    #[inline]
    fn cut_back(self, most: u32, least: u32) -> (RangeItems, RangeItems) {
        let taken = most.min(self.len() / 2);
        let taken = if taken < least { 0 } else { taken };
        self.split_at(self.hi - taken)
    }

    /// Splits off the back half; all of it if half of it is fewer than `least`, which is 1 or more.
    #[inline]
    fn cut_half(self, least: u32) -> (RangeItems, RangeItems) {
        let rest = self.len() / 2;
        let rest = if rest < least { 0 } else { rest };
        self.split_at(self.lo + rest)
    }
}

/// Takes `most` items from the front of a word, or all if fewer than `least` would be left.
pub(crate) fn take_front<M: Memory>(
    word: &M::AtomicU64,
    most: u32,
    least: u32,
) -> Option<RangeItems> {
    change(word, |items| items.take_front(most, least))
}

/// Takes the back half of a word, or all if that is fewer than `least`.
pub(crate) fn cut_half<M: Memory>(word: &M::AtomicU64, least: u32) -> Option<RangeItems> {
    change(word, |items| {
        let (rest, taken) = items.cut_half(least);
        (taken, rest)
    })
}

#[inline]
fn change(
    word: &impl Atomic<u64>,
    split: impl Fn(RangeItems) -> (RangeItems, RangeItems),
) -> Option<RangeItems> {
    // Relaxed, here and below: the word is the whole state. The data that the items stand for was published
    // when the range was opened, and its participants see that by joining.
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        let items = RangeItems::unpack(seen);
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
    /// Gives a new participant its number, if there is room.
    pub(super) fn join(&self) -> Option<usize> {
        // Relaxed: a number is given out once; the words are the state.
        let number = self.participants.fetch_add(1, Ordering::Relaxed) as usize;
        if number >= PARTICIPANTS_MAX {
            self.participants.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(number)
    }

    pub(super) fn participants(&self) -> usize {
        (self.participants.load(Ordering::Relaxed) as usize).min(PARTICIPANTS_MAX)
    }

    /// Cuts the largest share of another participant in half, or takes all of it if that is fewer than
    /// `least`.
    pub(super) fn steal_for(&self, me: usize, least: u32) -> Option<RangeItems> {
        loop {
            let share = |&other: &usize| {
                RangeItems::unpack(self.words[other].load(Ordering::Relaxed)).len()
            };
            let others = (0..self.participants()).filter(|&other| other != me);
            let victim = others.max_by_key(share).filter(|other| share(other) > 0)?;
            if let Some(items) = cut_half::<M>(&self.words[victim], least) {
                return Some(items);
            }
        }
    }

    /// Makes items the share of a participant that has none.
    pub(super) fn keep(&self, participant: usize, items: RangeItems) {
        // Relaxed: as in `change`. A store is enough: only its owner changes an empty word.
        self.words[participant].store(items.pack(), Ordering::Relaxed);
    }

    /// How many items a participant has that are not yet taken.
    pub(super) fn len_of(&self, participant: usize) -> u32 {
        RangeItems::unpack(self.words[participant].load(Ordering::Relaxed)).len()
    }

    /// Takes up to `most` items off the back of a participant's word, and at most half of the word; nothing
    /// if that is fewer than `least`.
    pub(super) fn cut_back(&self, participant: usize, most: u32, least: u32) -> Option<RangeItems> {
        let taken = change(&*self.words[participant], |items| {
            let (rest, taken) = items.cut_back(most, least);
            (taken, rest)
        });
        taken.filter(|items| items.len() > 0)
    }

    pub(super) fn left(&self) -> u64 {
        (0..self.participants())
            .map(|participant| u64::from(self.len_of(participant)))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_split_without_gaps() {
        let items = RangeItems { lo: 3, hi: 10 };
        assert_eq!(RangeItems::unpack(items.pack()), items);
        assert_eq!(
            items.take_front(4, 3),
            (RangeItems { lo: 3, hi: 7 }, RangeItems { lo: 7, hi: 10 })
        );
        assert_eq!(items.take_front(99, 1).1.len(), 0);
        assert_eq!(items.take_front(4, 4).1.len(), 0);
        assert_eq!(
            items.cut_half(3),
            (RangeItems { lo: 3, hi: 6 }, RangeItems { lo: 6, hi: 10 })
        );
        assert_eq!(
            items.cut_back(2, 2),
            (RangeItems { lo: 3, hi: 8 }, RangeItems { lo: 8, hi: 10 })
        );
        assert_eq!(items.cut_half(4).0.len(), 0);
        assert_eq!(items.cut_back(99, 1).1.len(), 3);
        assert_eq!(items.cut_back(99, 4).1.len(), 0);
        let one = RangeItems { lo: 4, hi: 5 };
        assert_eq!(one.cut_back(1, 1).1.len(), 0);
        assert_eq!(one.cut_half(1), (RangeItems { lo: 4, hi: 4 }, one));
        let whole = RangeItems {
            lo: 0,
            hi: u32::MAX,
        };
        assert_eq!(whole.take_front(u32::MAX, 1).1.len(), 0);
    }
}
