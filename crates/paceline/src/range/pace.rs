//! How fast a thread gets through a range, how large its next block should be, and when somebody
//! else is worth inviting.

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use crate::adapt::Passing;
use crate::context::{Context, Queue};
use crate::job::{Slot, Ticket};
use crate::policy::Tuning;

/// One thread's way through (its share of) one range.
pub(super) struct Pace {
    grain: u32,
    /// Items that take about [`Tuning::BLOCK`].
    block: u32,
    /// Items that take about [`Tuning::BLOCK_UNWANTED`].
    most: u32,
    /// What part of the rest is taken at once: one in this many.
    share: u32,
    /// Picoseconds per item, as known before; 0: not at all.
    known: u64,
    last: Nanos,
    /// Items since then.
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

    /// How many items fit an ordinary block, if so many fit the largest.
    fn block(most: u32) -> u32 {
        most / Pace::TIMES
    }

    const TIMES: u32 = (Tuning::BLOCK_UNWANTED.0 / Tuning::BLOCK.0) as u32;

    /// The size of the next block when `left` items are left: a share of them, so that the first
    /// blocks of a long range are larger and calls fewer (guided self-scheduling, Polychronopoulos
    /// and Kuck, 1987), but within bounds in time. While nobody is hungry, whoever becomes so can
    /// still cut what is left after this block; when somebody is, the end comes for all sooner if
    /// blocks are small and something is left to share, down to a quarter of a block.
    #[inline]
    pub(super) fn next_block<P: Platform>(&self, context: &Context<'_, P>, left: u32) -> u32 {
        let is_wanted = context.shared.idle.load().is_hungry();
        let most = match is_wanted {
            true => self.block.saturating_mul(Tuning::BLOCKS_AT_ONCE),
            false => self.most,
        };
        let share = (left / self.share).clamp(self.block, most);
        let bound = match is_wanted {
            true => left.max(self.block).div_ceil(4),
            false => left,
        };
        share.min(bound).max(self.grain)
    }

    /// A block of `items` has just ended, and `left` are left here. The time is looked at if that may say
    /// something new: at the end, and where nothing is known, or what is known has been relied upon for
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
        context.shared.adapt.passes(context, Passing::Block(now));
        self.time += took;
        self.items += u64::from(self.since);
        let most = Pace::most(self.since, took);
        self.since = 0;
        self.block = Pace::block(most)
            .clamp(self.block / 2, self.block.saturating_mul(2))
            .max(self.grain);
        // As the block itself, this grows no faster than twofold: one stamp may be far off.
        self.most = most.clamp(self.block, self.block.saturating_mul(Pace::TIMES));
    }

    /// Time so far.
    pub(super) fn time(&self) -> Nanos {
        Nanos(self.time)
    }

    /// Picoseconds per item as measured here, if anything was.
    pub(super) fn measured(&self) -> Option<u64> {
        (self.items > 0).then(|| (self.time.saturating_mul(1000) / self.items).max(1))
    }

    /// The same, or else what was known before.
    pub(super) fn cost(&self) -> Option<u64> {
        self.measured().or((self.known > 0).then_some(self.known))
    }
}

/// What a thread has kept to itself although somebody could have been woken to help: the time of
/// short loops that followed each other closely.
#[derive(Clone, Copy, Default)]
pub(crate) struct Unshared {
    time: Nanos,
    forget_at: Nanos,
}

impl<P: Platform> Context<'_, P> {
    /// One more ticket for an open range.
    pub(super) fn invite(&self, job: Ticket) {
        self.own(|own| own.unshared = Unshared::default());
        if self.works_in_background() {
            self.enqueue_in_backlog(job);
            return;
        }
        self.enqueue(job, Queue::Own);
        self.publish(Queue::Own, false);
    }

    /// Whether the last invitation has been taken up.
    pub(super) fn can_invite(&self) -> bool {
        match self.works_in_background() {
            true => self.shared.backlog.is_empty(),
            false => self.seat.deque.len() == 0,
        }
    }

    /// Whether somebody could help, and `items` at `cost` picoseconds each are worth it.
    pub(super) fn worth_inviting(&self, cost: Option<u64>, items: u64) -> bool {
        if items < 2 {
            return false;
        }
        let idle = self.shared.idle.load();
        let price = if idle.is_hungry() {
            Tuning::WORTH_SHARING
        } else if idle.sleeping > 0 {
            // A helper that has to be woken takes its half only after the wake-up, and the waker
            // pays for the call. What was kept to itself just before counts: many short loops in a
            // row are worth one wake-up.
            Nanos(2 * self.shared.wake_cost.get().0) - self.own(|own| own.unshared.time)
        } else {
            return idle.blocked > 0
                && self.shared.slow.idle.load().sleeping > 0
                && self.is_worth_slow(cost, items);
        };
        // Unknown cost: better to share a cheap loop in vain once than to keep a costly one.
        cost.is_none_or(|cost| items.saturating_mul(cost) / 1000 > price.0)
    }

    /// A loop that took `time` has just ended without being shared.
    pub(super) fn note_unshared(&self, time: Nanos) {
        if time < Tuning::WORTH_SHARING || self.shared.idle.load().sleeping == 0 {
            return;
        }
        let now = self.shared.platform.now();
        // A helper that is awake waits that long for the next loop.
        let forget_at = now + self.shared.wake_cost.get();
        self.own(|own| {
            let recent = now - time < own.unshared.forget_at;
            let before = if recent {
                own.unshared.time
            } else {
                Nanos::ZERO
            };
            own.unshared = Unshared {
                time: before + time,
                forget_at,
            };
        });
    }

    pub(super) fn cost_of(&self, slot: &Slot<P>) -> Option<u64> {
        self.cost_of_label(slot.label.load(Ordering::Relaxed))
    }

    /// What an item of this label has cost on this thread, in picoseconds.
    pub(crate) fn cost_of_label(&self, label: u32) -> Option<u64> {
        self.own(|own| {
            own.costs
                .get(label as usize)
                .copied()
                .filter(|&cost| cost > 0)
        })
    }

    /// Learns the cost of an item (a moving average over runs).
    pub(crate) fn learn(&self, label: u32, cost: Option<u64>) {
        const LABELS_MAX: usize = 1 << 16;
        let (Some(cost), true) = (cost, (label as usize) < LABELS_MAX) else {
            return;
        };
        self.own(|own| {
            if own.costs.len() <= label as usize {
                own.costs.resize(label as usize + 1, 0);
            }
            let known = &mut own.costs[label as usize];
            *known = if *known == 0 {
                cost
            } else {
                (*known * 3 + cost) / 4
            }
            .max(1);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;

    /// Goal: the time is looked at after each block while nothing is known, at the end, and once for
    /// [`Tuning::STAMP`] of known items. Method: blocks of four items that take nothing but are said to take
    /// a microsecond each, or nothing is said.
    #[test]
    fn the_time_is_looked_at_where_that_says_something() {
        let js = Builder::new().workers(0).build().unwrap();
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
