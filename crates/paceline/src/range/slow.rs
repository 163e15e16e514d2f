//! Shares of ranges for slow workers.
//!
//! A slow thread that takes half of what is left, as others do, is the one that everybody waits for at the
//! end. So it gets no word of its own that it could be late with: it cuts a *piece* off the back of the
//! longest word and runs that, again and again, and each piece is so small that the fast threads have more
//! than that to do meanwhile. With `left` items, `fast` threads and a slow one that takes `times` as long for
//! an item, the fast ones are busy for `left / fast` items' time, so
//!
//! ```text
//! piece <= left / (fast * times * margin)
//! ```
//!
//! and where that is less than an item (or a grain) the slow thread leaves. Over the whole range that gives
//! each thread a part in proportion to its speed; the last pieces are the fast threads'.
//!
//! `times` is what the capacities of the CPUs promise until it was measured: the first piece says what an
//! item takes here *now*, and the fast threads say what it takes there. A little core that has slept may run
//! at a sixth of its frequency, whatever its capacity, so the margin of the first piece is large
//! ([`Tuning::MARGIN_FIRST`]), and that of the others covers uneven items and more slow threads that come
//! ([`Tuning::MARGIN`]). A piece whose items cost much more than the others, or a slow thread that loses its
//! CPU in the middle of one, is late all the same, by a piece: pieces are bounded in time, too.
//!
//! None of this knows what becomes of the fast threads' clocks; whether a range is offered at all is found by
//! trying ([`trial`](super::trial)).
//!
//! Fast threads offer their range when slow workers sleep and what is left is worth waking one
//! ([`Tuning::WORTH_SLOW`]): one a block, and [`SLOW_OFFERS`] each at most, so that those that find nothing
//! are not woken again and again.

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use super::crew::Share;
use super::words::{Items, RangeBlock, SharedRange};
use crate::context::Context;
use crate::job::{Phase, Slot, Ticket};
use crate::policy::Tuning;

/// In place of a member's number: a slow one, which has no word.
pub(super) const NO_WORD: usize = usize::MAX;

/// How many slow workers each fast thread wakes for one range at most.
pub(super) const SLOW_OFFERS: u32 = 4;

/// How many of `left` items a slow thread may take at once: see the module.
fn piece(left: u64, fast: u32, times_16: u32, margin: u64) -> u64 {
    left * 16 / (u64::from(fast.max(1)) * u64::from(times_16.max(16)) * margin)
}

/// How many times as long an item takes here as there, in sixteenths; at least as long.
fn times_16(here: u64, there: u64) -> u32 {
    let times = here.saturating_mul(16) / there.max(1);
    u32::try_from(times).unwrap_or(u32::MAX).max(16)
}

/// What a slow thread knows of a range that it may take part in.
struct Rest {
    /// Items that nobody has taken.
    left: u64,
    /// Threads that may be at it fast.
    fast: u32,
    /// What an item takes those, in picoseconds.
    cost: u64,
}

impl Rest {
    /// For how long the fast threads have something to do.
    fn time(&self) -> Nanos {
        Nanos(self.left.saturating_mul(self.cost) / 1000 / u64::from(self.fast.max(1)))
    }
}

impl<P: Platform> Context<'_, P> {
    /// After a block: offers the rest to slow workers, if there are some that sleep and it is worth it.
    /// `left`: items of the own share. Returns how many of the [`SLOW_OFFERS`] that has used up.
    #[inline]
    pub(super) fn offer_to_slow(&self, share: &Share<'_, P>, cost: Option<u64>, left: u32) -> u32 {
        match self.shared.slow.idle.load().sleeping {
            0 => 0,
            _ => self.offer_range(share, cost, left),
        }
    }

    #[cold]
    fn offer_range(&self, share: &Share<'_, P>, cost: Option<u64>, left: u32) -> u32 {
        if !self.is_worth_slow(cost, left.into()) {
            return 0;
        }
        if !self.is_with_slow(share) {
            return SLOW_OFFERS;
        }
        let slow = &self.shared.slow;
        // Relaxed: hints. Who joins sees the rest by the Acquire of its joining.
        share.block.cost.store(cost.unwrap_or(0), Ordering::Relaxed);
        slow.offered.store(share.job.0, Ordering::Relaxed);
        if let Some(seat) = slow.idle.wake_another() {
            self.wake_worker(seat);
        }
        1
    }

    /// Whether this run of the range is one with slow workers. Whoever asks first decides.
    fn is_with_slow(&self, share: &Share<'_, P>) -> bool {
        let tried = &share.block.tried;
        tried.decided().unwrap_or_else(|| {
            let label = self.shared.slot(share.job).label.load(Ordering::Relaxed);
            let now = self.shared.platform.now();
            let trials = &self.shared.slow.trials;
            trials.decide(label, tried, share.block.left(), now)
        })
    }

    /// The range with this block is over: what it took goes into the trial of its label.
    #[inline]
    pub(super) fn note_trial(&self, slot: &Slot<P>, block: &RangeBlock<P>) {
        if let Some(with) = block.tried.decided() {
            let label = slot.label.load(Ordering::Relaxed);
            let now = self.shared.platform.now();
            self.shared
                .slow
                .trials
                .learn(label, &block.tried, with, now);
        }
    }

    /// Whether a share of so many items at `cost` picoseconds each, and as much with each other fast thread,
    /// is worth waking slow workers.
    pub(super) fn is_worth_slow(&self, cost: Option<u64>, items: u64) -> bool {
        let worth = Tuning::WORTH_SLOW.max(Nanos(2 * self.shared.slow.wake_cost.get().0));
        cost.is_some_and(|cost| items.saturating_mul(cost) / 1000 > worth.0)
    }

    /// What is left of the range with this block for a slow thread, if that is more than its end.
    fn rest_of(&self, block: &RangeBlock<P>) -> Option<Rest> {
        let fast = self.shared.slow.fast_threads.load(Ordering::Relaxed);
        let rest = Rest {
            left: block.left(),
            fast: fast.max(block.members() as u32),
            cost: block.cost.load(Ordering::Relaxed),
        };
        (rest.cost > 0 && rest.time() > Tuning::SLOW_LEAVES).then_some(rest)
    }

    /// The range on offer, if a slow thread's first piece of it would be an item at least.
    pub(crate) fn offered_share(&self) -> Option<(Ticket, &Slot<P>)> {
        // Relaxed: a hint, `enter_crew` decides.
        let job = Ticket(self.shared.slow.offered.load(Ordering::Relaxed));
        if job.is_none() || !self.shared.slots.exists(job.index()) {
            return None;
        }
        let slot = self.shared.slot(job);
        let word = slot.word(Ordering::Relaxed);
        let index = slot.place.load(Ordering::Relaxed);
        let is_open = word.generation == job.generation() && word.phase == Phase::Open;
        if !is_open || !self.shared.blocks.exists(index) {
            return None;
        }
        let rest = self.rest_of(self.shared.blocks.get(index))?;
        let times = self.own(|own| own.slow_times_16);
        let first = piece(rest.left, rest.fast, times, Tuning::MARGIN_FIRST);
        (first > 0).then_some((job, slot))
    }

    /// Takes part in an open range as a slow thread. False if there was nothing to take.
    pub(crate) fn join_range_slowly(&self, job: Ticket, slot: &Slot<P>) -> bool {
        if !self.enter_crew(job, slot) {
            return false;
        }
        self.run_as_member(job, slot, NO_WORD);
        self.leave_range(job, slot);
        self.after_job();
        true
    }

    /// Runs pieces of a range until what is left is for the fast threads.
    pub(super) fn run_pieces<F>(&self, range: &SharedRange<F>, share: &Share<'_, P>)
    where
        F: Fn(std::ops::Range<usize>, &Context<'_, P>) + Sync,
    {
        let mut last = self.shared.platform.now();
        let mut times = self.own(|own| own.slow_times_16);
        let mut margin = Tuning::MARGIN_FIRST;
        while let Some(rest) = self.rest_of(share.block) {
            let fitting = piece(rest.left, rest.fast, times, margin);
            let here = (rest.cost.saturating_mul(times.into()) / 16).max(1);
            let most = (Tuning::PIECE.0 * 1000 / here).max(1);
            let most = fitting.min(most) as u32;
            if most < range.grain {
                break;
            }
            let Some(items) = share.block.cut_piece(most) else {
                break;
            };
            range.run(items, self);
            let now = self.shared.platform.now();
            let cost = ((now - last).0 * 1000 / u64::from(items.len())).max(1);
            last = now;
            (times, margin) = (times_16(cost, rest.cost), Tuning::MARGIN);
            self.seat.counters.blocks.add(1);
            self.seat.counters.slow_pieces.add(1);
        }
        // What it will be believed to take at the beginning of the next range, the faster the less.
        self.own(|own| own.slow_times_16 = (3 * own.slow_times_16 + times) / 4);
    }
}

impl<P: Platform> RangeBlock<P> {
    /// Takes up to `most` items off the back of the longest word, half of it at most.
    fn cut_piece(&self, most: u32) -> Option<Items> {
        let longest = (0..self.members()).max_by_key(|&member| self.len_of(member))?;
        self.cut_back(longest, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a slow thread is never what everybody waits for, whatever the numbers, and takes something where
    /// there is enough. Method: with even items, the time of its piece is compared with that of the fast
    /// threads for what they have left, in a table of ranges and machines.
    #[test]
    fn a_piece_takes_less_time_than_the_rest() {
        let mut largest = 0;
        for (left, fast, times) in [0, 1, 31, 32, 200, 5_000, 1 << 40]
            .into_iter()
            .flat_map(|left| [1, 4, 15].map(|fast| (left, fast)))
            .flat_map(|(left, fast)| [0, 16, 27, 62, 400].map(|times| (left, fast, times)))
        {
            for margin in [Tuning::MARGIN, Tuning::MARGIN_FIRST] {
                let piece = piece(left, fast, times, margin);
                let (here, there) = (piece * u64::from(times.max(16)), (left - piece) * 16);
                assert!(
                    here * u64::from(fast) <= there,
                    "{left} {fast} {times} {margin}"
                );
                largest = largest.max(piece);
            }
        }
        assert!(largest > 0);
        assert_eq!(piece(200, 4, 62, Tuning::MARGIN), 6);
        assert_eq!(times_16(400, 100), 64);
        assert_eq!(times_16(50, 100), 16, "nobody slow is faster");
    }
}
