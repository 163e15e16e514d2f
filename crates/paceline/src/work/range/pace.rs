//! How fast a thread runs the items of a range, and how large its next block should be.

use event::Nanos;
use platform::Platform;

use crate::adapt::Checkpoint;
use crate::policy::Tuning;
use crate::work::context::Context;

/// The pace of one thread in one range, or in its share of one.
pub(super) struct Pace {
    grain: u32,
    /// How many items take about [`Tuning::BLOCK`].
    block: u32,
    /// How many items take about [`Tuning::BLOCK_UNWANTED`].
    most: u32,
    /// The part of the rest that is taken at once: 1 / `share`.
    share: u32,
    /// Picoseconds per item, as known before; 0 if unknown.
    known: u64,
    last: Nanos,
    /// How many items were run since then.
    since: u32,
    time: u64,
    items: u64,
    pub(super) blocks: u64,
}

impl Pace {
    pub(super) fn new<P: Platform>(context: &Context<'_, P>, grain: u32) -> Pace {
        let last = context.shared.platform.now();
        Pace {
            grain,
            block: grain,
            most: grain,
            share: 2 * context.shared.threads_at_once(),
            known: 0,
            last,
            since: 0,
            time: 0,
            items: 0,
            blocks: 0,
        }
    }

    /// Starts with the block size that fits a known cost.
    pub(super) fn expect(&mut self, cost: u64) {
        let most = Pace::most(1, cost.div_ceil(1000));
        self.block = Pace::block(most).max(self.grain);
        self.most = most.max(self.block);
        self.known = cost;
    }

    /// How many items fit the largest blocks if `items` took `time` nanoseconds.
    fn most(items: u32, time: u64) -> u32 {
        let fitting = Tuning::BLOCK_UNWANTED.0 * u64::from(items) / time.max(1);
        u32::try_from(fitting).unwrap_or(u32::MAX)
    }

    /// How many items fit an ordinary block, if `most` items fit the largest.
    fn block(most: u32) -> u32 {
        most / Pace::TIMES
    }

    const TIMES: u32 = (Tuning::BLOCK_UNWANTED.0 / Tuning::BLOCK.0) as u32;

    /// The fewest items that a body is called with, unless the range has no more.
    pub(super) fn least(&self) -> u32 {
        self.grain
    }

    /// The size of the next block when `left` items are left. It is a share of them, so that the first blocks
    /// of a long range are larger and calls fewer (guided self-scheduling, Polychronopoulos and Kuck, 1987),
    /// but within bounds in time. While no thread wants work, a thread that comes to want it can still cut
    /// the items left after this block. When a thread wants work, the loop ends sooner if blocks are small
    /// and something is left to share, down to a quarter of a block.
    #[inline(always)]
    pub(super) fn next_block<P: Platform>(&self, context: &Context<'_, P>, left: u32) -> u32 {
        let is_wanted = context.shared.idle.load().wants_work();
        let most = if is_wanted {
            self.block.saturating_mul(Tuning::BLOCKS_AT_ONCE)
        } else {
            self.most
        };
        let share = (left / self.share).clamp(self.block, most);
        let bound = if is_wanted {
            left.max(self.block).div_ceil(4)
        } else {
            left
        };
        share.min(bound).max(self.grain)
    }

    /// A block of `items` has just ended, and `left` items are left here. The clock is read if that may say
    /// something new: at the end, when no cost is known, and when a known cost has been relied upon for
    /// [`Tuning::STAMP`].
    #[inline]
    pub(super) fn ran<P: Platform>(&mut self, context: &Context<'_, P>, items: u32, left: u32) {
        self.blocks += 1;
        self.since = self.since.saturating_add(items);
        let expected = self.known.saturating_mul(self.since.into()) / 1000;
        if left == 0 || self.known == 0 || expected >= Tuning::STAMP.0 {
            self.stamp(context);
        }
    }

    #[inline]
    fn stamp<P: Platform>(&mut self, context: &Context<'_, P>) {
        let now = context.shared.platform.now();
        let took = (now - self.last).0;
        self.last = now;
        context.shared.adapt.passes(context, Checkpoint::Block(now));
        self.time += took;
        self.items += u64::from(self.since);
        let most = Pace::most(self.since, took);
        self.since = 0;
        self.block = Pace::block(most)
            .clamp(self.block / 2, self.block.saturating_mul(2))
            .max(self.grain);
        // This grows no faster than twofold, like the block itself: one stamp may be far off.
        self.most = most.clamp(self.block, self.block.saturating_mul(Pace::TIMES));
    }

    /// The time so far.
    pub(super) fn time(&self) -> Nanos {
        Nanos(self.time)
    }

    /// Picoseconds per item as measured here, if any were measured.
    pub(super) fn measured(&self) -> Option<u64> {
        (self.items > 0).then(|| (self.time.saturating_mul(1000) / self.items).max(1))
    }

    /// The same, or else the cost that was known before.
    pub(super) fn cost(&self) -> Option<u64> {
        self.measured().or((self.known > 0).then_some(self.known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;

    /// Goal: the clock is read after each block while no cost is known, at the end, and once for
    /// [`Tuning::STAMP`] of items with a known cost. Method: blocks of four items that take no time. In one
    /// case their cost is said to be a microsecond each, in the other case it is unknown.
    #[test]
    fn the_time_is_looked_at_where_that_says_something() {
        let js = Builder::small().workers(0).build().unwrap();
        js.enter(|cx| {
            let mut unknown = Pace::new(cx, 1);
            unknown.ran(cx, 4, 96);
            assert_eq!(unknown.items, 4);

            let blocks = Tuning::STAMP.0 as u32 / 4_000;
            let mut known = Pace::new(cx, 1);
            known.expect(1_000_000);
            for block in 1..=2 * blocks {
                known.ran(cx, 4, 100);
                let stamped = block / blocks * blocks;
                assert_eq!(known.items, u64::from(4 * stamped), "block {block}");
                assert_eq!(known.measured().is_none(), stamped == 0);
                assert!(known.cost().is_some());
            }
            known.ran(cx, 3, 0);
            assert_eq!(known.items, u64::from(8 * blocks + 3));
            assert_eq!(known.blocks, u64::from(2 * blocks + 1));
        });
    }
}
