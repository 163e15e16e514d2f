//! Shares of ranges for slow workers.
//!
//! If a slow thread takes half of the rest, as other threads do, all of them wait for it at the end. So it
//! gets no word of its own that it could be late with. Instead it cuts a *piece* off the back of the longest
//! word and runs that, again and again. Each piece is so small that the fast threads have more than that to
//! do meanwhile. Let there be `left` items, `fast` threads, and a slow thread that takes `times` as long for
//! an item. Then the fast threads are busy for `left / fast` items' time, so
//!
//! ```text
//! piece <= left / (fast * times * margin)
//! ```
//!
//! Where that is less than an item (or a grain) the slow thread leaves. Over the whole range that gives each
//! thread a part in proportion to its speed. The last pieces go to the fast threads.
//!
//! `times` comes from the capacities of the CPUs until it was measured. The first piece measures what an item
//! costs here *now*, and the fast threads measure what it costs there. A little core that has slept may run
//! at a sixth of its frequency, whatever its capacity. So the margin of the first piece is large
//! ([`Tuning::MARGIN_FIRST`]). The margin of the others covers uneven items and further slow threads that
//! come ([`Tuning::MARGIN`]). A piece whose items cost much more than the others, or a slow thread that loses
//! its CPU in the middle of one, is late all the same, by a piece. So pieces are bounded in time, too.
//!
//! This does not tell how the fast threads' clocks will change. Whether a range is offered at all is found by
//! trying ([`trial`](super::trial)).
//!
//! Fast threads offer their range when slow workers sleep and the rest is worth waking one
//! ([`Tuning::WORTH_SLOW`]). Each offers once a block, and at most [`SLOW_OFFERS`] times, so that slow
//! workers that find nothing are not woken again and again.

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use super::body::SharedRange;
use super::open::OpenLoop;
use super::participant::Participant;
use super::words::{RangeBlock, RangeItems};
use crate::adapt::HAS_SLOW_WORKERS;
use crate::policy::Tuning;
use crate::store::{JobPhase, Ticket};
use crate::work::context::Context;
use crate::work::shared::Shared;

/// The number of a slow participant, which has no word.
pub(super) const NO_WORD: usize = usize::MAX;

/// How many slow workers each fast thread wakes for one range at most.
pub(super) const SLOW_OFFERS: u32 = 4;

/// How many of `left` items a slow thread may take at once: see the module.
fn piece(left: u64, fast: u32, times_16: u32, margin: u64) -> u64 {
    left * 16 / (u64::from(fast.max(1)) * u64::from(times_16.max(16)) * margin)
}

/// How many times as long an item takes here as there, in sixteenths. At least 16.
fn times_16(here: u64, there: u64) -> u32 {
    let times = here.saturating_mul(16) / there.max(1);
    u32::try_from(times).unwrap_or(u32::MAX).max(16)
}

/// The facts that a slow thread has about a range that it may take part in.
struct LoopRest {
    /// RangeItems that no thread has taken.
    left: u64,
    /// How many threads may run the range fast.
    fast: u32,
    /// The cost of an item for a fast thread, in picoseconds.
    cost: u64,
}

impl LoopRest {
    /// The rest of the range with this block for a slow thread, if it is more than the end of the range.
    fn of<P: Platform>(shared: &Shared<P>, block: &RangeBlock<P>) -> Option<LoopRest> {
        let fast = shared.slow.fast_threads.load(Ordering::Relaxed);
        let rest = LoopRest {
            left: block.left(),
            fast: fast.max(block.participants() as u32),
            cost: block.cost.load(Ordering::Relaxed),
        };
        (rest.cost > 0 && rest.time() > Tuning::SLOW_LEAVES).then_some(rest)
    }

    /// For how long the fast threads have work.
    fn time(&self) -> Nanos {
        Nanos(self.left.saturating_mul(self.cost) / 1000 / u64::from(self.fast.max(1)))
    }
}

impl<P: Platform> Participant<'_, '_, P> {
    /// After a block: offers the rest to slow workers, if some of them sleep and it is worth it. `left`:
    /// items of this thread's share. Returns how many of the [`SLOW_OFFERS`] that has used up.
    #[inline]
    pub(super) fn offer_to_slow(&self, cost: Option<u64>, left: u32) -> u32 {
        if HAS_SLOW_WORKERS && self.cx.shared.slow.idle.load().sleeping > 0 {
            self.offer_range(cost, left)
        } else {
            0
        }
    }

    #[cold]
    fn offer_range(&self, cost: Option<u64>, left: u32) -> u32 {
        if !self.cx.shared.slow.takes_loops {
            return SLOW_OFFERS;
        }
        if !self.cx.is_worth_slow(cost, left.into()) {
            return 0;
        }
        if !self.is_with_slow() {
            return SLOW_OFFERS;
        }
        let slow = &self.cx.shared.slow;
        // Relaxed: hints. A thread that joins sees the rest by the Acquire of its joining.
        self.block.cost.store(cost.unwrap_or(0), Ordering::Relaxed);
        slow.offered.store(self.job.0, Ordering::Relaxed);
        if let Some(thread) = slow.idle.wake_another() {
            self.cx.wake_worker(thread);
        }
        1
    }

    /// Whether this run of the range is one with slow workers. The first thread that asks decides.
    fn is_with_slow(&self) -> bool {
        let tried = &self.block.tried;
        tried.decided().unwrap_or_else(|| {
            let label = self.slot.label_number();
            let now = self.cx.shared.platform.now();
            let trials = &self.cx.shared.slow.trials;
            trials.decide(label, tried, self.block.left(), now)
        })
    }

    /// Runs pieces of a range until the rest is for the fast threads.
    pub(super) fn run_pieces<F>(&self, range: &SharedRange<F>)
    where
        F: Fn(std::ops::Range<usize>, &Context<'_, P>) + Sync,
    {
        let cx = self.cx;
        let mut last = cx.shared.platform.now();
        let mut times = cx.own(|own| own.slow_times_16);
        let mut margin = Tuning::MARGIN_FIRST;
        while let Some(rest) = LoopRest::of(cx.shared, self.block) {
            let fitting = piece(rest.left, rest.fast, times, margin);
            let here = (rest.cost.saturating_mul(times.into()) / 16).max(1);
            let most = (Tuning::PIECE.0 * 1000 / here).max(1);
            let most = fitting.min(most) as u32;
            if most < range.grain {
                break;
            }
            let Some(items) = self.block.cut_piece(most, range.grain) else {
                break;
            };
            range.run(items, cx);
            let now = cx.shared.platform.now();
            let cost = ((now - last).0 * 1000 / u64::from(items.len())).max(1);
            last = now;
            (times, margin) = (times_16(cost, rest.cost), Tuning::MARGIN);
            cx.thread.counters.blocks.add(1);
            cx.thread.counters.slow_pieces.add(1);
        }
        // The factor for the first piece of the next range: a moving average, smaller after fast pieces.
        cx.own(|own| own.slow_times_16 = (3 * own.slow_times_16 + times) / 4);
    }
}

impl<'c, 'a, P: Platform> OpenLoop<'c, 'a, P> {
    /// The range on offer, if a slow thread's first piece of it would be at least one item.
    pub(crate) fn offered(cx: &'c Context<'a, P>) -> Option<Self> {
        let shared = cx.shared;
        // Relaxed: a hint, `enter` decides.
        let job = Ticket(shared.slow.offered.load(Ordering::Relaxed));
        if job.is_none() || !shared.graph.slots.exists(job.index()) {
            return None;
        }
        let slot = shared.slot(job);
        let word = slot.word(Ordering::Relaxed);
        let index = slot.place.load(Ordering::Relaxed);
        let is_open = word.generation == job.generation() && word.phase == JobPhase::Open;
        if !is_open || !shared.blocks.exists(index) {
            return None;
        }
        let rest = LoopRest::of(shared, shared.blocks.get(index))?;
        let times = cx.own(|own| own.slow_times_16);
        let first = piece(rest.left, rest.fast, times, Tuning::MARGIN_FIRST);
        (first > 0).then(|| OpenLoop::new(cx, job, slot))
    }

    /// The range with this block is over: its time goes into the trial of its label.
    #[inline]
    pub(super) fn note_trial(&self, block: &RangeBlock<P>) {
        if let Some(with) = block.tried.decided() {
            let label = self.slot.label_number();
            let now = self.cx.shared.platform.now();
            self.cx
                .shared
                .slow
                .trials
                .learn(label, &block.tried, with, now);
        }
    }

    /// Takes part in an open range as a slow thread. False if there was nothing to take.
    pub(crate) fn join_slowly(&self) -> bool {
        if !self.enter() {
            return false;
        }
        self.run_as_participant(NO_WORD);
        self.leave();
        self.cx.after_job();
        true
    }
}

impl<P: Platform> RangeBlock<P> {
    /// Takes up to `most` items off the back of the longest word, and at most half of the word; nothing if
    /// that is fewer than `least`.
    fn cut_piece(&self, most: u32, least: u32) -> Option<RangeItems> {
        let longest =
            (0..self.participants()).max_by_key(|&participant| self.len_of(participant))?;
        self.cut_back(longest, most, least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no other thread waits for a slow thread at the end, whatever the numbers, and a slow thread
    /// takes something where there is enough. Method: with even items, the time of its piece is compared with
    /// the time that the fast threads need for the rest, in a table of ranges and machines.
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
        assert_eq!(times_16(50, 100), 16, "a slow thread is never faster");
    }
}
