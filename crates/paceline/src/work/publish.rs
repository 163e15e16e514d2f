//! Publishing: a ticket goes into a queue, and threads that could run it are notified.
//!
//! Idle workers are notified by the protocol of `queues/idle`, waiting threads through the marks on jobs
//! (`wait/mark.rs`).

use event::{EventKind, Withheld};
use platform::{Atomic, Ordering, Parker, Platform};

use super::context::Context;
use super::shared::Shared;
use super::thread_slot::{ThreadKind, ThreadSlot};
use super::wait::Mark;
use crate::adapt::Checkpoint;
use crate::policy::Tuning;
use crate::queues::{Deque, Fenced, IdleWord, Queue};
use crate::store::Ticket;

impl<P: Platform> Context<'_, P> {
    /// The queue for jobs that are scheduled now.
    #[inline]
    pub(crate) fn queue(&self) -> Queue {
        let outside = self.thread.kind == ThreadKind::Guest && self.own(|own| own.frame.is_null());
        if outside { Queue::Inbox } else { Queue::Own }
    }

    /// Puts a ticket into a queue. The next [`publish`](Context::publish) announces it.
    #[inline(always)]
    pub(crate) fn enqueue(&self, ticket: Ticket, queue: Queue) {
        let deque = self.deque_for(queue);
        if !deque.put(ticket) {
            self.overflow(deque, ticket);
        }
        self.own(|own| own.fresh += 1);
    }

    /// The queue by that name.
    #[inline]
    pub(super) fn deque_for(&self, queue: Queue) -> &Deque<P> {
        match (queue, &self.thread.inbox) {
            (Queue::Inbox, Some(inbox)) => inbox,
            _ => &self.thread.deque,
        }
    }

    #[cold]
    fn overflow(&self, deque: &Deque<P>, ticket: Ticket) {
        let older = deque.spill();
        self.thread.counters.overflow.add(older.len() as u64);
        self.shared.push_to(&self.shared.injector, &older);
        // A waiter that wants one of these tickets no longer finds it through this queue. SeqCst, partner:
        // the fence of a waiter before its last look.
        P::fence(Ordering::SeqCst);
        if self.shared.idle.load().watching > 0 {
            self.shared.idle.bump();
            for &ticket in &older {
                self.alert_watcher_of(ticket);
            }
        }
        let put = deque.put(ticket);
        debug_assert!(put, "half of a full ring was just moved out");
    }

    /// Announces the tickets that were queued since the last call; see `idle`. `runs_one`: this thread goes
    /// back to its worker loop and takes one of them itself, so a single ticket wakes no thread.
    #[inline(always)]
    pub(crate) fn publish(&self, queue: Queue, runs_one: bool) {
        let fresh = self.own(|own| std::mem::take(&mut own.fresh));
        if fresh > u32::from(runs_one) {
            self.announce(fresh, queue);
        }
    }

    #[inline]
    fn announce(&self, fresh: u32, queue: Queue) {
        if let Some(now) = self.shared.idle.after_publish::<Fenced>() {
            self.notify_idle(now, fresh, &|| self.alert_watchers(fresh, queue));
        }
        if self.shared.lanes.front_is_used() {
            self.queue_raised(fresh, queue);
        }
    }

    /// A ticket was put into a queue that all threads share: announces it.
    pub(crate) fn announce_one(&self, ticket: Ticket) {
        if let Some(now) = self.shared.idle.after_publish::<Fenced>() {
            self.notify_idle(now, 1, &|| self.alert_watcher_of(ticket));
        }
    }

    /// `alert_watchers` wakes the waiters that want one of the tickets.
    #[cold]
    pub(super) fn notify_idle(&self, now: IdleWord, fresh: u32, alert_watchers: &dyn Fn()) {
        let idle = &self.shared.idle;
        if now.wants_work() {
            idle.bump();
        }
        if now.watching > 0 {
            match self.shared.workers.active() {
                // Waiters run any job then.
                0 => self.alert_all(),
                _ => alert_watchers(),
            }
        }
        let mut unnotified = fresh;
        let mut why = Withheld::Searched;
        if now.searching == 0 {
            if now.sleeping > 0 {
                if let Some(thread) = idle.wake_one() {
                    self.wake_worker(thread);
                    unnotified -= 1;
                    why = Withheld::Batch;
                }
            } else {
                why = Withheld::NobodySleeps;
                self.alert_helpers();
                if now.blocked > 0 {
                    self.shared.consider_spare(self);
                }
            }
        } else {
            // The tickets are left to the thread that searches, which may be waiting for a CPU.
            self.shared.adapt.passes(self, Checkpoint::Publishing);
        }
        if unnotified > 0 {
            let arg = (why as u64) << 32 | u64::from(unnotified);
            self.record(EventKind::WakeWithheld, Ticket::NONE, arg);
        }
        let unsignalled = self.own(|own| {
            own.unsignalled += unnotified;
            own.unsignalled
        });
        if unsignalled >= Tuning::UNSIGNALLED_MAX {
            self.wake_for_batch();
        }
    }

    /// Wakes as many workers as the jobs since the last flush can use.
    pub(crate) fn wake_for_batch(&self) {
        let jobs = self.own(|own| std::mem::take(&mut own.unsignalled));
        let now = self.shared.idle.load();
        for _ in 0..jobs.saturating_sub(now.searching).min(now.sleeping) {
            match self.shared.idle.wake_another() {
                Some(thread) => self.wake_worker(thread),
                None => return,
            }
        }
    }

    /// Unparks a worker that has been counted as searching.
    pub(crate) fn wake_worker(&self, index: usize) {
        let thread = self.shared.threads.get(index);
        self.record(EventKind::Wake, Ticket::NONE, index as u64);
        self.sign_wake_up(thread);
        if thread.wake(&self.shared.platform) {
            self.thread.counters.wakes_sent.add(1);
            self.shared.adapt.signalled(self, index);
        }
    }

    /// Announces all jobs scheduled so far to as many workers as they can use.
    pub(crate) fn wake_for_all(&self) {
        self.publish(self.queue(), false);
        if self.own(|own| own.unsignalled > 0) {
            self.wake_for_batch();
        }
    }

    /// A quiet job was queued: workers that spin look again. Those that sleep are left alone, and no fence
    /// makes sure that a worker that is about to sleep is seen.
    #[inline]
    pub(crate) fn tell_spinners(&self) {
        if self.shared.idle.load().searching > 0 {
            self.shared.idle.bump();
        }
    }

    /// Wakes a worker if all of them sleep beside work, which quiet jobs of other threads may be. The worker
    /// wakes the next one, if there is more.
    pub(crate) fn wake_for_quiet_jobs(&self) {
        let now = self.shared.idle.load();
        if now.searching == 0
            && now.sleeping > 0
            && self.shared.has_work()
            && let Some(thread) = self.shared.idle.wake_one()
        {
            self.wake_worker(thread);
        }
    }

    /// Wakes the waiters that want one of the tickets just queued.
    #[cold]
    pub(crate) fn alert_watchers(&self, fresh: u32, queue: Queue) {
        let mut left = fresh;
        self.deque_for(queue).scan(|ticket| {
            self.alert_watcher_of(ticket);
            left -= 1;
            left == 0
        });
    }

    /// Wakes the waiters that need this job. They are found by the marks on the job and on the jobs that made
    /// it: one that needs the job itself, and the one that is nearest to it among those that need what made
    /// it.
    pub(crate) fn alert_watcher_of(&self, ticket: Ticket) {
        const NESTING_MAX: usize = 64;
        let mut job = Some(ticket).filter(|job| self.graph().slots.exists(job.index()));
        for _ in 0..NESTING_MAX {
            let Some(known) = job else { return };
            let mark = self.shared.slot(known).mark.load(Ordering::Relaxed);
            if let Some(mark) = Mark::unpack(mark) {
                // A mark orders nothing. If the making of that thread slot is not visible here, its thread
                // has marked the job after this thread's fence. Then that thread's look behind its own fence
                // sees what is published here.
                if mark.is_shared {
                    return self.alert_all();
                } else if let Some(thread) = self.shared.threads.find(mark.thread as usize) {
                    self.alert(thread);
                }
                if known != ticket {
                    return;
                }
            }
            job = self.graph().parent_of(known);
        }
    }

    /// Wakes every thread that waits, if waits run any job: no worker is free for what is ready.
    pub(super) fn alert_helpers(&self) {
        if self.shared.wait_rule.is_anything() && self.shared.idle.load().watching > 0 {
            self.alert_all();
        }
    }

    /// Wakes every thread that waits.
    pub(crate) fn alert_all(&self) {
        _ = self.alert_each(ThreadSlot::waits);
    }

    /// Wakes the other threads of which `is_meant` is true. Whether there was one.
    #[inline(never)]
    pub(crate) fn alert_each(&self, is_meant: fn(&ThreadSlot<P>) -> bool) -> bool {
        let mut has_woken = false;
        for thread in self.shared.threads.iter() {
            if thread.index != self.thread.index && is_meant(thread) {
                self.unpark(thread);
                has_woken = true;
            }
        }
        has_woken
    }

    fn alert(&self, thread: &ThreadSlot<P>) {
        if thread.index != self.thread.index && thread.waits() {
            self.unpark(thread);
        }
    }

    /// Wakes a thread that waits (and does not count as searching).
    pub(crate) fn unpark(&self, thread: &ThreadSlot<P>) {
        let before = self.time_to_record();
        self.sign_wake_up(thread);
        if thread.parker.unpark() {
            self.thread.counters.wakes_sent.add(1);
            self.record_at(before, EventKind::Wake, u64::from(thread.index));
        }
    }
}

impl<P: Platform> Shared<P> {
    /// An event is completed, or a future is woken, perhaps by a thread that has nothing else to do with the
    /// job system.
    pub(crate) fn release_from_outside(&self, context: &Context<'_, P>, job: Ticket) {
        let queue = context.queue();
        context.graph().release_from_outside(job, queue);
        context.graph().finish_todo(queue);
        context.publish(queue, false);
        self.end_if_deferred(context);
    }
}
