//! A participant in a loop: does a share of the loop.

use std::ops::Range;

use event::EventKind;
use platform::Platform;

use super::body::SharedRange;
use super::pace::Pace;
use super::slow::{NO_WORD, SLOW_OFFERS};
use super::words::{RangeBlock, RangeItems, take_front};
use crate::store::{Slot, Ticket};
use crate::work::context::Context;

/// The facts that a participant needs about its range.
pub(super) struct Participant<'c, 'a, P: Platform> {
    pub(super) cx: &'c Context<'a, P>,
    pub(super) job: Ticket,
    pub(super) slot: &'c Slot<P>,
    pub(super) block: &'c RangeBlock<P>,
    /// The number of its word.
    pub(super) me: usize,
}

impl<P: Platform> Participant<'_, '_, P> {
    /// Works on the range until there is nothing left to take.
    pub(super) fn run<F>(&self, range: &SharedRange<F>)
    where
        F: Fn(Range<usize>, &Context<'_, P>) + Sync,
    {
        if self.me == NO_WORD {
            return self.run_pieces(range);
        }
        let cx = self.cx;
        let mut offers = 0;
        let mut pace = Pace::new(cx, range.grain);
        let label = self.slot.label_number();
        if let Some(known) = cx.own(|own| own.loops.cost_of(label)) {
            pace.expect(known);
        }
        let mut next = match self.me {
            0 => self.take_own(&pace, self.block.len_of(0)),
            _ => self.steal(&pace).map(|(first, _)| first),
        };
        while let Some(items) = next {
            range.run(items, cx);
            let left = self.block.len_of(self.me);
            pace.ran(cx, items.len(), left);
            if left > 0 {
                if cx.worth_inviting(pace.cost(), u64::from(left)) && cx.can_invite() {
                    cx.invite(self.job);
                }
                if offers < SLOW_OFFERS {
                    offers += self.offer_to_slow(pace.cost(), left);
                }
            }
            next = self.take_own(&pace, left);
            if next.is_none()
                && let Some((first, stolen)) = self.steal(&pace)
            {
                cx.thread.counters.splits.add(1);
                let cut = u64::from(stolen.lo) << 32 | u64::from(stolen.len());
                cx.record(EventKind::Split, self.job, cut);
                next = Some(first);
            }
        }
        if pace.blocks > 0 {
            cx.thread.counters.blocks.add(pace.blocks);
            let label = self.slot.label_number();
            cx.own(|own| own.loops.learn(label, pace.measured()));
        }
    }

    /// The next block of this participant's share, in which `left` items are left.
    #[inline]
    fn take_own(&self, pace: &Pace, left: u32) -> Option<RangeItems> {
        match left {
            0 => None,
            left => {
                let most = pace.next_block(self.cx, left);
                take_front::<P>(&self.block.words[self.me], most, pace.least())
            }
        }
    }

    /// Steals half of the largest share of another participant. Returns the block to run first, and all the
    /// items of the half. The rest of it is then this participant's share.
    ///
    /// No other thread sees the first block. If it stood in this participant's word until it is taken from
    /// there, another participant without items could steal it meanwhile, and be stolen from in turn: the
    /// last items of a range would go from one to the other, and none would run them.
    fn steal(&self, pace: &Pace) -> Option<(RangeItems, RangeItems)> {
        let stolen = self.block.steal_for(self.me, pace.least())?;
        let most = pace.next_block(self.cx, stolen.len());
        let (first, rest) = stolen.take_front(most, pace.least());
        if rest.len() > 0 {
            self.block.keep(self.me, rest);
        }
        Some((first, stolen))
    }
}

#[cfg(test)]
mod tests {
    use platform::{Atomic, Lock, Memory, Ordering, Os};

    use super::*;
    use crate::{Builder, Grain};

    /// Goal: no body is called with fewer items than the grain says, whoever takes them, unless the range has
    /// no more; and all items come once. Method: ranges about as long as one grain, two and a few, on three
    /// workers, with bodies that are long enough for others to come.
    #[test]
    fn no_part_is_shorter_than_the_grain() {
        let js = Builder::small().workers(3).build().unwrap();
        let parts = <Os as Memory>::Lock::<Vec<Range<usize>>>::new(Vec::new());
        let grains: &[usize] = if cfg!(miri) { &[3] } else { &[1, 3, 64, 3000] };
        for &grain in grains {
            for items in [
                1,
                grain - 1,
                grain,
                2 * grain - 1,
                2 * grain,
                3 * grain + 1,
                10 * grain,
            ] {
                js.parallel_for(0..items, Grain::Items(grain as u32), |part, _| {
                    std::hint::black_box(part.clone().sum::<usize>());
                    parts.with(|parts| parts.push(part));
                });
                let mut parts = parts.with(std::mem::take);
                parts.sort_by_key(|part| part.start);
                let ends = parts.iter().map(|part| part.end);
                let begins = parts.iter().map(|part| part.start).chain([items]);
                assert!([0].into_iter().chain(ends).eq(begins), "{items}: {parts:?}");
                let shortest = parts.iter().map(|part| part.len()).min().unwrap_or(items);
                assert!(
                    shortest >= grain.min(items),
                    "{items} by {grain}: {parts:?}"
                );
            }
        }
    }

    /// Goal: the block that a thief runs first cannot be stolen from it. So each item is stolen at most once
    /// for each time that a share is halved, and the last one once. Method: participants without items steal
    /// in turn from one that has one item, or eight.
    #[test]
    fn what_is_run_first_is_nobody_elses() {
        let js = Builder::small().workers(0).build().unwrap();
        js.enter(|cx| {
            let items = |lo, hi| RangeItems { lo, hi };
            let slot = Slot::<Os>::empty();
            let block = RangeBlock::<Os>::empty();
            block.participants.store(3, Ordering::Relaxed);
            let pace = Pace::new(cx, 1);
            let steal = |me| {
                let job = Ticket::NONE;
                let slot = &slot;
                let block = &block;
                let participant = Participant {
                    cx,
                    job,
                    slot,
                    block,
                    me,
                };
                participant.steal(&pace)
            };
            block.keep(0, items(0, 1));
            assert_eq!(steal(1), Some((items(0, 1), items(0, 1))));
            assert_eq!(steal(2), None);
            block.keep(0, items(0, 8));
            assert_eq!(steal(1), Some((items(4, 5), items(4, 8))));
            assert_eq!(
                [0, 1, 2].map(|participant| block.len_of(participant)),
                [4, 3, 0]
            );
            assert_eq!(steal(2), Some((items(2, 3), items(2, 4))));
            assert_eq!(
                [0, 1, 2].map(|participant| block.len_of(participant)),
                [2, 3, 1]
            );
        });
    }
}
