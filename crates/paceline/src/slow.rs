//! Slow workers: those on CPUs that work with a deadline does not belong on.
//!
//! They take *background* jobs, which wait in a queue of their own (the backlog), and shares of ranges that
//! somebody offers them ([`range`](crate::range), `slow.rs`), and nothing else. Everybody may take background
//! jobs; fast workers do when there is nothing else, and every now and then when there is.
//!
//! Slow workers have an [`Idle`] of their own, with the same protocol. In that of the others each of them
//! counts as blocked, because tickets that are published there are not for it: so nobody wakes it for one,
//! and if all others are blocked in waits a spare starts.
//!
//! Who is woken for a background job, and why none is forgotten: `idle/README.md`, "Slow workers". An offered
//! range is no more than a hint: who has offered it runs it anyway.
//!
//! Invariants
//! - A slow worker runs no ticket from a deque or an inbox: not even from its own deque, where what its jobs
//!   have made waits for others. (In a wait it runs what it waits for, as everybody does.)
//! - Where there are no slow workers nothing here is written.

use platform::{Atomic, Memory, Ordering, Padded, Parker, Platform};

use event::{EventKind, Nanos};

use crate::context::{Context, Queue};
use crate::idle::{Fenced, Fences, Idle};
use crate::injector::Injector;
use crate::job::Ticket;
use crate::policy::WakeCost;
use crate::range::Trials;

/// What the threads of a job system know of its slow workers.
pub(crate) struct Slow<M: Memory> {
    pub(crate) idle: Idle<M>,
    /// The range that was offered last, if any. A hint: whoever takes it looks whether it is still open.
    pub(crate) offered: Padded<M::AtomicU64>,
    /// What waking one of them takes.
    pub(crate) wake_cost: WakeCost<M>,
    /// What is known of ranges with slow workers and without.
    pub(crate) trials: Trials<M>,
    /// How many threads may work fast, the one that waits included.
    pub(crate) fast_threads: M::AtomicU32,
}

impl<M: Memory> Slow<M> {
    pub(crate) fn new(seats: usize) -> Slow<M> {
        Slow {
            idle: Idle::new(seats),
            offered: Padded(M::AtomicU64::new(Ticket::NONE.0)),
            wake_cost: WakeCost::slow(),
            trials: Trials::new(),
            fast_threads: M::AtomicU32::new(1),
        }
    }

    /// Steps 2 to 4 of publishing a background job: who is to look at the backlog. The caller has put
    /// something there, or has found something after a fence. Not `fast` workers if a slow one will.
    pub(crate) fn call_for<F: Fences<M>>(&self, backlog: &Injector<M>, fast: &Idle<M>) -> Called {
        if let Some(seat) = self.idle.wake_one() {
            return Called::Worker(seat);
        }
        // Finding nobody took a moment, in which others have seen our count and left their jobs to it.
        F::look();
        if self.idle.load().searching > 0 || backlog.is_empty() {
            return Called::Enough;
        }
        fast.wake_one().map_or(Called::Nobody, Called::Worker)
    }
}

/// Who is to look at the backlog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Called {
    /// The worker on this seat, which the caller must unpark.
    Worker(usize),
    /// Nobody more: somebody searches who will see what there is, or it has been taken.
    Enough,
    /// Nobody sleeps: a busy worker, once it searches.
    Nobody,
}

impl<P: Platform> Context<'_, P> {
    /// A slow worker's life, until it is to leave or to be a fast one.
    pub(crate) fn slow_loop(&self) {
        let shared = self.shared;
        let times_16 = shared.adapt.times_16(&self.seat.words);
        self.own(|own| {
            own.is_slow = true;
            own.slow_times_16 = times_16;
        });
        shared.idle.begin_block::<Fenced>();
        // It may have been the last that could run what there is.
        self.consider_spare();
        loop {
            while self.run_slow_work() {}
            self.flush_finished();
            self.publish(Queue::Own, false);
            if !self.rest_until_slow_work() {
                break;
            }
        }
        self.own(|own| own.is_slow = false);
        shared.idle.end_block();
    }

    /// Runs a share of a range or a background job. False if there is none.
    fn run_slow_work(&self) -> bool {
        if self.must_stop_slow() {
            return false;
        }
        if let Some((job, slot)) = self.offered_share() {
            self.flush_finished();
            let joined = self.join_range_slowly(job, slot);
            // It may have been the last to leave the range, and have made ready what that held back.
            self.publish(Queue::Own, false);
            return joined;
        }
        let Some(job) = self.take_from_backlog() else {
            return false;
        };
        if self.start(job, self.shared.slot(job)) {
            self.flush_finished();
            self.publish(Queue::Own, false);
        }
        true
    }

    /// From the first look that found nothing to the next piece of work. False if this worker is not to be a
    /// slow one any more. It never spins: a slow CPU that does nothing saves energy, and what it takes can
    /// wait.
    fn rest_until_slow_work(&self) -> bool {
        let (idle, index) = (&self.shared.slow.idle, self.seat.index as usize);
        self.forget_stamp();
        idle.begin_search::<Fenced>();
        loop {
            let stops = self.must_stop_slow();
            if self.shared.adapt.asks_for_look() {
                self.end_slow_search();
                self.shared.adapt.look_if_asked(self);
                idle.begin_search::<Fenced>();
                continue;
            }
            if stops || self.has_slow_work() {
                self.end_slow_search();
                return !stops;
            }
            idle.begin_sleep::<Fenced>(index);
            self.record(EventKind::Park, Ticket::NONE, 0);
            let mut woken = false;
            let is_asked = || self.shared.adapt.asks_for_look();
            let is_needed = || self.has_slow_work() || is_asked() || self.must_stop_slow();
            while idle.is_asleep(index) && !is_needed() {
                self.seat.counters.parks.add(1);
                self.seat.parker.park(Nanos::MAX);
                woken = true;
            }
            let alone = idle.cancel_sleep(index);
            if let Some(report) = self.seat.wake_report(&self.shared.platform) {
                self.shared.slow.wake_cost.learn(report.latency);
            }
            self.record_unpark(Ticket::NONE);
            if woken && !alone && !is_needed() {
                self.seat.counters.wakes_useless.add(1);
            }
        }
    }

    /// It has found something, or has something else to do. The last one passes on what there is.
    fn end_slow_search(&self) {
        if self.shared.slow.idle.end_search::<Fenced>() && self.has_slow_work() {
            self.wake_for_slow_work();
        }
    }

    /// Whether this worker is to come out of its loop.
    fn must_stop_slow(&self) -> bool {
        self.must_leave() || !self.is_to_be_slow()
    }

    fn has_slow_work(&self) -> bool {
        !self.shared.backlog.is_empty() || self.offered_share().is_some()
    }

    /// Gets somebody to look at the backlog, or at the range on offer.
    fn wake_for_slow_work(&self) {
        let shared = self.shared;
        let slow = &shared.slow;
        match slow.call_for::<Fenced>(&shared.backlog, &shared.idle) {
            Called::Worker(seat) => self.wake_worker(seat),
            Called::Enough => {}
            Called::Nobody => self.consider_spare(),
        }
    }

    /// The background job that has waited longest.
    pub(crate) fn take_from_backlog(&self) -> Option<Ticket> {
        self.shared.backlog.take(1).first().copied()
    }

    /// A background job is ready: queues and announces it.
    #[cold]
    pub(crate) fn enqueue_in_backlog(&self, job: Ticket) {
        let shared = self.shared;
        shared.backlog.push(&[job]);
        // SeqCst, partner: the fence of whoever has said that it searches, sleeps or waits and looks around.
        P::fence(Ordering::SeqCst);
        let now = shared.idle.load();
        if now.is_hungry() {
            shared.idle.bump();
        }
        if now.watching > 0 {
            match shared.crew.active() {
                // Waiters run anything then.
                0 => self.alert_all(),
                _ => self.alert_watcher_of(job),
            }
        }
        self.wake_for_slow_work();
    }

    /// Runs something as part of a job of a lane: what it schedules is of that lane, too. `lane`: the flag.
    pub(crate) fn in_lane<R>(&self, lane: u32, run: impl FnOnce() -> R) -> R {
        /// Restores the lane, also when something unwinds.
        struct InLane<'c, 'a, P: Platform>(&'c Context<'a, P>, u32);
        impl<P: Platform> Drop for InLane<'_, '_, P> {
            fn drop(&mut self) {
                self.0.own(|own| own.lane = self.1);
            }
        }
        let outer = self.own(|own| std::mem::replace(&mut own.lane, lane));
        let _in_lane = InLane(self, outer);
        run()
    }

    /// Whether the innermost job that runs here is in the background: so is what it schedules, and each range
    /// that it has opened or joined.
    pub(crate) fn works_in_background(&self) -> bool {
        self.own(|own| own.lane) != 0
    }
}
