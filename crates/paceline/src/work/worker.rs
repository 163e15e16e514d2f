//! A worker's loop: find work → run it → go idle.
//!
//! A worker takes frame jobs first, if there are any (`lanes`). Otherwise it looks in its own queue (newest
//! ticket, warm in cache), then at the injector. Then it
//! steals: from thread slots that share its last-level cache before others, half of a deque at a time. From
//! inboxes it takes single tickets, because their order is promised. Only when all of that fails does it
//! register as searching. The protocol from there on is in `idle`.

use event::{EventKind, Nanos};
use platform::{Atomic, Omission, Ordering, Parker, Platform};

use super::context::Context;
use super::thread_slot::{LastSleep, ThreadKind, ThreadSlot};
use crate::adapt::Checkpoint;
use crate::policy::{Tuning, WaitPolicy};
use crate::queues::{Deque, Fenced, Queue, STEAL_MAX};
use crate::store::Ticket;

/// The reason why a worker ends its search.
enum Found {
    Work(Ticket),
    /// A job that is pinned to this thread.
    Pinned,
    /// The job system ends, or this worker is one too many.
    Leave,
}

impl<P: Platform> Context<'_, P> {
    /// A worker's loop, from its first search until it is told to leave.
    pub(crate) fn work_loop(&self) {
        loop {
            while let Some(ticket) = self.next() {
                self.run_one(ticket);
                if self.thread.kind == ThreadKind::Spare && self.must_leave() {
                    self.graph().flush_finished();
                    self.announce_what_is_left();
                    self.works_for_normal_lane();
                    return;
                }
            }
            self.graph().flush_finished();
            self.publish(Queue::Own, false);
            match self.idle() {
                Found::Work(ticket) => self.run_one(ticket),
                Found::Pinned => _ = self.run_pinned(None),
                Found::Leave => return,
            }
        }
    }

    /// Starts the job of the ticket. Announces the tickets that this made ready, except the one that this
    /// worker takes next.
    #[inline]
    pub(crate) fn run_one(&self, ticket: Ticket) {
        if self.start(ticket, self.shared.slot(ticket)) {
            self.publish(Queue::Own, true);
        } else {
            self.give_back_place();
        }
    }

    /// This thread will not take the next ticket from its deque, although it may have kept one unannounced in
    /// order to do so.
    pub(super) fn announce_what_is_left(&self) {
        if let Some(extra) = self.extra_lanes() {
            extra.queue_kept(self);
        }
        let announces = !P::omits(Omission::AnnounceBeforeLeaving);
        if announces && self.thread.deque.len() > 0 {
            self.own(|own| own.fresh += 1);
        }
        self.publish(Queue::Own, false);
    }

    /// The next ticket for a thread that may run anything.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<Ticket> {
        let tick = self.own(|own| {
            own.tick = own.tick.wrapping_add(1);
            own.tick
        });
        if tick.is_multiple_of(Tuning::FAIRNESS)
            && let Some(ticket) = self.next_in_fairness()
        {
            return Some(ticket);
        }
        if self.shared.lanes.some_go_first()
            && let Some(ticket) = self.next_that_goes_first()
        {
            return Some(ticket);
        }
        self.take_newest().or_else(|| self.fetch_from_elsewhere())
    }

    /// Once in a while: work that would otherwise wait for as long as there is newer work here. In turn it is
    /// work from outside; a ticket from the queue of another thread (the scope of an outside thread that is
    /// busy otherwise, a ticket that a waiter has left behind); and the oldest ticket here, which jobs that
    /// make jobs for ever would bury. The tickets left here are announced, since this thread does not run the
    /// next one of them.
    #[cold]
    fn next_in_fairness(&self) -> Option<Ticket> {
        self.shared.adapt.passes(self, Checkpoint::Fairness);
        self.works_for_normal_lane();
        let turn = self.own(|own| own.tick) / Tuning::FAIRNESS;
        let first = match turn % 3 {
            // Work from outside; every other time the background is first, and sometimes the side lanes are,
            // since inboxes may never be empty.
            0 if turn.is_multiple_of(2) && self.resume_yielder(false) => None,
            0 if turn.is_multiple_of(2) => self.take_from_backlog(),
            0 if turn % 4 == 1 => self.take_from_behind(),
            0 => None,
            1 => self.take_oldest_elsewhere(),
            _ => self.thread.deque.take_oldest(),
        };
        let ticket = first.or_else(|| self.take_from_outside())?;
        // Guests announce all tickets they make.
        if self.thread.kind != ThreadKind::Guest {
            self.announce_what_is_left();
        }
        Some(ticket)
    }

    /// Work that was not made by a job of this thread.
    fn take_from_outside(&self) -> Option<Ticket> {
        self.take_from_injector()
            .or_else(|| self.take_from_inboxes())
            .or_else(|| self.take_from_behind())
    }

    /// The oldest ticket of another thread slot's deque.
    fn take_oldest_elsewhere(&self) -> Option<Ticket> {
        self.victims(|thread| {
            if thread.deque.len() == 0 || thread.index == self.thread.index {
                return None;
            }
            let ticket = thread.deque.steal_one()?;
            self.note_steal(thread, 1);
            Some(ticket)
        })
    }

    /// A ticket from elsewhere, for a thread that does not count as searching. Tickets that came along with
    /// it were in no queue for a moment. In that moment the last searcher may have looked and gone to sleep.
    /// So they are announced again.
    fn fetch_from_elsewhere(&self) -> Option<Ticket> {
        let ticket = self.find_elsewhere()?;
        if self.thread.deque.len() > 0 {
            self.announce_moved();
        }
        Some(ticket)
    }

    /// A ticket from anywhere but this thread's deque.
    pub(crate) fn find_elsewhere(&self) -> Option<Ticket> {
        self.graph().flush_finished();
        let front = self.take_from_front();
        // The end of a scope may have made something ready here.
        front
            .or_else(|| self.extra_lanes()?.next(self))
            .or_else(|| self.thread.deque.take_newest())
            .or_else(|| self.take_from_injector())
            .or_else(|| self.take_from_inboxes())
            .or_else(|| self.take_from_deques_if(|_| true))
            .or_else(|| self.take_from_behind())
    }

    pub(crate) fn take_from_injector(&self) -> Option<Ticket> {
        if self.shared.injector.is_empty() {
            return None;
        }
        let room = Tuning::INJECTOR_BATCH.min(self.thread.deque.room());
        let tickets = self.shared.injector.take(room);
        // The oldest goes in first: taking the newest from the deque then follows the order of the injector.
        for &ticket in tickets.iter().skip(1).rev() {
            let put = self.thread.deque.put(ticket);
            debug_assert!(put, "no more was taken than there was room for");
        }
        tickets.first().copied()
    }

    fn take_from_inboxes(&self) -> Option<Ticket> {
        self.victims(|thread| {
            let inbox = thread.inbox.as_ref()?;
            if thread.index == self.thread.index {
                return inbox.take_oldest();
            }
            let ticket = inbox.steal_one()?;
            self.note_steal(thread, 1);
            Some(ticket)
        })
    }

    /// Takes the older half of some deque that `wanted` accepts. Returns the oldest ticket; the rest is now
    /// in this thread's deque.
    pub(crate) fn take_from_deques_if(&self, wanted: impl Fn(&Deque<P>) -> bool) -> Option<Ticket> {
        let most = STEAL_MAX.min(self.thread.deque.room());
        self.victims(|thread| {
            if thread.deque.len() == 0
                || thread.index == self.thread.index
                || !wanted(&thread.deque)
            {
                return None;
            }
            let mut first = None;
            let stolen = thread.deque.steal_half(most, |ticket| match first {
                None => first = Some(ticket),
                Some(_) => {
                    let put = self.thread.deque.put(ticket);
                    debug_assert!(put, "no more was taken than there was room for");
                }
            });
            self.note_steal(thread, stolen as u64);
            first
        })
    }

    fn note_steal(&self, victim: &ThreadSlot<P>, tickets: u64) {
        if tickets > 0 && victim.index != self.thread.index {
            self.thread.counters.steals.add(tickets);
            self.record(EventKind::Steal, Ticket::NONE, u64::from(victim.index));
        }
    }

    /// Calls `try_one` with every other thread slot (and with this thread's own, for its inbox), until it
    /// returns something. It begins at a random one, near ones first.
    fn victims<R>(&self, mut try_one: impl FnMut(&ThreadSlot<P>) -> Option<R>) -> Option<R> {
        let count = self.shared.threads.len();
        let start = self.random() as usize % count;
        let here = self.thread.cpu.load(Ordering::Relaxed);
        let passes: &[Option<bool>] = if self.shared.has_many_caches() && here != 0 {
            &[Some(true), Some(false)]
        } else {
            &[None]
        };
        passes.iter().find_map(|pass| {
            (0..count)
                .map(|i| self.shared.threads.get((start + i) % count))
                .find_map(|thread| {
                    if pass.is_some_and(|wanted| wanted != self.is_near(here, thread)) {
                        return None;
                    }
                    try_one(thread)
                })
        })
    }

    /// Whether the thread was last seen near the CPU `here` (+1), as far as that is known. It costs a cache
    /// line of that thread's.
    fn is_near(&self, here: u32, thread: &ThreadSlot<P>) -> bool {
        let there = thread.cpu.load(Ordering::Relaxed);
        there == 0 || self.shared.are_near(here.wrapping_sub(1), there - 1)
    }

    /// xorshift64*: a choice of victim needs no more. Marsaglia, "Xorshift RNGs", 2003.
    fn random(&self) -> u64 {
        self.own(|own| {
            own.random ^= own.random >> 12;
            own.random ^= own.random << 25;
            own.random ^= own.random >> 27;
            own.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
        })
    }

    /// From the first failed look to the next piece of work; `idle` has the protocol.
    #[cold]
    fn idle(&self) -> Found {
        let shared = self.shared;
        self.note_cpu(shared.platform.current_cpu());
        self.forget_stamp();
        let (mut woken, mut woke_at) = (false, None);
        let mut epoch = shared.idle.begin_search::<Fenced>();
        loop {
            // A worker that was woken asks when it has found nothing: a job may be waiting.
            let mut deadline = woke_at.is_none().then(|| self.search_deadline(None));
            let mut spun = false;
            let found = loop {
                let has_pinned = self.has_own_pinned();
                if !has_pinned && self.must_stop() {
                    break Some(Found::Leave);
                }
                if let Some(ticket) = self.find_elsewhere() {
                    if spun {
                        self.own(|own| own.search_habit.paid());
                    }
                    break Some(Found::Work(ticket));
                }
                if has_pinned {
                    break Some(Found::Pinned);
                }
                let deadline = *deadline.get_or_insert_with(|| self.search_deadline(woke_at));
                if deadline <= shared.platform.now() {
                    break None;
                }
                self.spin(epoch, deadline);
                spun = true;
                epoch = shared.idle.epoch();
            };
            if let Some(found) = found {
                return self.leave_search(found);
            }
            if self.resume_yielder(true) {
                woken = false;
                continue;
            }
            let must_refresh = shared.adapt.refresh_is_requested();
            if std::mem::take(&mut woken) && !must_refresh {
                self.thread.counters.wakes_useless.add(1);
            }
            if must_refresh {
                self.leave_search(Found::Leave);
                shared.adapt.refresh_if_requested(self);
                epoch = shared.idle.begin_search::<Fenced>();
                continue;
            }
            (woken, woke_at, epoch) = self.sleep();
        }
    }

    /// Whether a job is ready that is pinned to this worker. Without feature `pools` none ever is.
    #[inline]
    fn has_own_pinned(&self) -> bool {
        cfg!(feature = "pools") && self.count_pinned() > 0
    }

    fn leave_search(&self, found: Found) -> Found {
        let is_last = self.shared.idle.end_search::<Fenced>();
        if self.thread.deque.len() > 0 && !P::omits(Omission::AnnounceMoved) {
            // Tickets that came along with it were in no queue for a moment. In that moment threads that now
            // spin may have looked.
            self.announce_moved();
        } else if is_last && self.shared.has_work() {
            match self.shared.idle.wake_one() {
                Some(thread) => self.wake_worker(thread),
                None => self.alert_helpers(),
            }
        }
        found
    }

    /// Announces tickets that were moved to this thread's deque.
    fn announce_moved(&self) {
        self.own(|own| own.fresh += 1);
        self.publish(Queue::Own, false);
    }

    /// From searching through sleeping to searching again: until this worker is woken, or until there turns
    /// out to be work after all. Returns whether it was woken, when it ran again if it slept, and the epoch
    /// to spin on.
    fn sleep(&self) -> (bool, Option<Nanos>, u16) {
        let (shared, thread) = (self.shared, self.thread);
        let index = thread.index as usize;
        shared.adapt.runs_dry(self);
        shared.idle.begin_sleep::<Fenced>(index);
        self.record(EventKind::Park, Ticket::NONE, 0);
        let mut parked = None;
        let has_work = || shared.has_work() || self.has_own_pinned();
        let is_needed = || has_work() || shared.adapt.refresh_is_requested() || self.must_stop();
        while shared.idle.is_asleep(index) && !is_needed() {
            shared.adapt.parks(self);
            thread.counters.parks.add(1);
            parked = parked.or_else(|| Some(shared.platform.now()));
            thread.parker.park(Nanos::MAX);
        }
        let alone = shared.idle.cancel_sleep(index);
        let woke_at = parked.map(|since| self.note_wake_up(since));
        self.record_unpark(Ticket::NONE);
        // In both cases it counts as searching now. The look that follows comes after this load.
        (!alone, woke_at, shared.idle.epoch())
    }

    /// This worker runs again after a sleep that began at `since`. Steering learns that at once, since it may
    /// have to act while a job runs. How long to spin is learnt later (`learn_from_sleep`). Returns the time.
    fn note_wake_up(&self, since: Nanos) -> Nanos {
        let platform = &self.shared.platform;
        let (now, cpu) = (platform.now(), platform.current_cpu());
        let report = self.thread.wake_report(now, cpu);
        if let Some(report) = &report {
            self.shared.adapt.woke(self, report);
            if report.colocated {
                self.thread.counters.colocated.add(1);
            }
        }
        self.note_cpu(cpu);
        let sleep = LastSleep {
            away: now - since,
            wake_up: report.map(|report| report.latency),
        };
        self.own(|own| own.last_sleep = Some(sleep));
        now
    }

    fn note_cpu(&self, cpu: Option<u32>) {
        let cpu = cpu.map_or(0, |cpu| cpu + 1);
        self.thread.cpu.store(cpu, Ordering::Relaxed);
    }

    /// Adds the last sleep to what decides how long to spin. That is on lines that are cold after a sleep, so
    /// it is done when there is no job that would have to wait.
    fn learn_from_sleep(&self) {
        let Some(sleep) = self.own(|own| own.last_sleep.take()) else {
            return;
        };
        if let Some(latency) = sleep.wake_up {
            self.shared.wake_cost.learn(latency);
        }
        let (full, cost) = (self.shared.spin_time(), self.shared.wake_cost.get());
        self.own(|own| own.search_habit.parked(sleep.away, full, cost));
    }

    /// The time until which a worker without work spins. It began to search at `began`, or else now.
    #[inline(never)]
    fn search_deadline(&self, began: Option<Nanos>) -> Nanos {
        self.learn_from_sleep();
        let full = self.shared.spin_time();
        let time = match self.shared.spin.policy {
            WaitPolicy::Adaptive if self.shared.adapt.is_in_the_way(self) => Nanos::ZERO,
            WaitPolicy::Adaptive => self.own(|own| own.search_habit.time(full)),
            _ => full,
        };
        self.deadline_in(time, began)
    }

    /// The time after `time` from `began`, or else from now. [`Nanos::ZERO`] for no time, so that the clock
    /// is not read then.
    pub(crate) fn deadline_in(&self, time: Nanos, began: Option<Nanos>) -> Nanos {
        match time {
            Nanos::ZERO => Nanos::ZERO,
            time => began.unwrap_or_else(|| self.shared.platform.now()) + time,
        }
    }

    /// Whether this worker is to end its loop: it is to leave, or to be a slow one. Called once a search, so
    /// its flag is read once.
    pub(crate) fn must_stop(&self) -> bool {
        self.must_leave_for(!0)
    }

    /// Whether this worker is to be a slow one.
    pub(crate) fn is_to_be_slow(&self) -> bool {
        // Acquire, partner: as in `must_leave`.
        self.thread.kind == ThreadKind::Worker
            && self.thread.flag.load(Ordering::Acquire) & ThreadSlot::<P>::IS_SLOW != 0
    }

    /// Whether this worker is to leave: the job system ends, the worker was retired, or (for a spare) some
    /// regular worker is back.
    pub(crate) fn must_leave(&self) -> bool {
        self.must_leave_for(ThreadSlot::<P>::RETIRES)
    }

    /// The same for any of these flags.
    #[inline]
    fn must_leave_for(&self, flags: u32) -> bool {
        // Acquire, partner: the Release stores in `workers`: nothing else is read through it, but the queues
        // that are looked at next are at least as new.
        self.shared.workers.is_stopping()
            || self.thread.flag.load(Ordering::Acquire) & flags != 0
            || self.is_spare_in_vain()
    }

    /// Runs the newest job of this thread's deque. False if there is none, or no stack for it.
    pub(crate) fn run_own(&self) -> bool {
        while self.has_stack()
            && let Some(ticket) = self.take_newest()
        {
            if self.start(ticket, self.shared.slot(ticket)) {
                self.graph().flush_finished();
                self.publish(Queue::Own, false);
                return true;
            }
        }
        false
    }

    /// Runs one ready job of any kind on the calling thread. True if there was one, and there is stack for
    /// it.
    pub(crate) fn run_any(&self) -> bool {
        if !self.has_stack() {
            return false; // It was called by a job that was run like this, by a job, and so on.
        }
        if self.shared.pinned.get().is_some() && self.run_pinned(None) {
            return true;
        }
        loop {
            let Some(ticket) = self.next() else {
                return false;
            };
            if self.start(ticket, self.shared.slot(ticket)) {
                self.graph().flush_finished();
                self.publish(Queue::Own, false);
                return true;
            }
        }
    }
}
