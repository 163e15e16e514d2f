//! The jobs that a waiter runs, and when it may run them.

use event::{Nanos, Why};
use platform::{Atomic, Ordering, Platform};

use super::waiter::Waiter;
use super::watch::leave_watch_if_busy;
use crate::queues::Queue;
use crate::store::{Rank, Slot, Ticket};
use crate::work::shared::RepeatTable;
use crate::work::thread_slot::{ThreadKind, ThreadSlot};

/// What there was that goes before the own jobs of a thread that waits.
enum BeforeOwn {
    Nothing,
    /// A job with a rank has run.
    Ranked,
    /// A job that is pinned to this thread has not run yet.
    Pinned,
}

impl<P: Platform> Waiter<'_, '_, P> {
    /// Runs the jobs that the wait may run. True when the target is over, false when there is nothing to run
    /// at the moment.
    pub(super) fn help_until_stuck(&mut self) -> bool {
        // All bodies start on top of this frame.
        let has_stack = self.cx.has_stack();
        let mut is_first = true;
        loop {
            // A wait with a deadline that may run bodies runs at least one. Otherwise polling would get
            // nowhere.
            let may_begin = is_first || !self.is_late();
            is_first = false;
            // No other thread would run it.
            let mut helped = may_begin && self.some_before_own() && self.help_with_ready_pinned();
            let may_help = may_begin && self.may_help_on(has_stack);
            if may_help {
                helped |= self.help_with_own();
            }
            self.cx.graph().flush_finished();
            if self.is_over() {
                return true;
            }
            if may_help && !helped {
                helped = self.help_ancestor()
                    || self.fetch_tickets()
                    || self.help_descendant()
                    || self.help_anything();
            }
            if !helped {
                return self.is_over();
            }
        }
    }

    /// Whether the wait may run bodies at this moment.
    pub(super) fn may_help(&self) -> bool {
        self.may_help_on(self.cx.has_stack())
    }

    /// The same if it is known whether there is stack for them.
    #[inline]
    fn may_help_on(&self, has_stack: bool) -> bool {
        if self.cx.shared.workers.active() == 0 {
            // Whether there is stack was asked when the wait began, a frame further up. To ask again here
            // could give another answer, and no other thread would run the jobs that are needed. (The last
            // worker may have left since then. Then one body begins in the reserve, and a wait inside it
            // panics.)
            return true;
        }
        has_stack && (!self.is_timed() || self.cx.is_called_back() || self.has_polled_enough())
    }

    /// Whether this wait is exempt from the rule that a waiter runs only what it waits for; see the module.
    pub(super) fn may_run_anything(&self) -> bool {
        if self.helps_with_anything() {
            return true;
        }
        self.cx.shared.workers.active() == 0
            && (!self.cx.is_called_back()
                || self.cx.shared.platform.now() >= self.walk.last_resort && self.is_only_guest())
    }

    /// Whether the program wants its waits to run any job.
    fn helps_with_anything(&self) -> bool {
        self.cx.shared.wait_rule.is_anything() && self.cx.thread.kind != ThreadKind::Guest
    }

    /// Whether the wait is over, if it may run jobs that it does not need. The next one may be such a job,
    /// and would be run on top of it all the same.
    #[inline]
    fn is_through_with_others(&self) -> bool {
        (self.helps_with_anything() || self.is_in_group()) && {
            self.cx.graph().flush_finished();
            self.is_over()
        }
    }

    fn is_only_guest(&self) -> bool {
        // Relaxed: a guest that comes at this moment is not considered.
        let is_taken = |thread: &ThreadSlot<P>| thread.flag.load(Ordering::Relaxed) != 0;
        let guests = self.cx.shared.threads.iter();
        let mut guests =
            guests.filter(|thread| thread.kind == ThreadKind::Guest && is_taken(thread));
        guests.all(|thread| thread.index == self.cx.thread.index)
    }

    /// Without workers: runs any job that is ready.
    fn help_anything(&mut self) -> bool {
        if !self.may_run_anything() {
            return false;
        }
        self.walk.last_resort = Nanos::MAX;
        while let Some(ticket) = self.cx.next() {
            if self.help(ticket, self.cx.shared.slot(ticket)) {
                return true;
            }
        }
        false
    }

    /// Runs the newest ticket of this thread's deque, as long as the wait may run it. That is the common case
    /// and needs no search: the jobs of a scope, the other half of a join, a needed job that the last one has
    /// just made ready. True if the wait is to be looked at before the rest: a job that is pinned to this
    /// thread goes first, or one with a rank has run.
    fn help_with_own(&mut self) -> bool {
        loop {
            if self.some_before_own() {
                match self.help_before_own() {
                    BeforeOwn::Nothing => {}
                    BeforeOwn::Pinned => return true,
                    BeforeOwn::Ranked if !self.is_timed() && !self.is_in_group() => continue,
                    BeforeOwn::Ranked => return true, // It may be late by now, or over.
                }
            }
            let Some(ticket) = self.cx.peek_newest() else {
                return false;
            };
            let slot = self.cx.shared.slot(ticket);
            // A stale ticket may look wanted: starting it fails. A ticket that is not wanted is not started
            // even if it looks stale. A range that is just being opened looks like that.
            let child = slot.parent(slot.flags.load(Ordering::Relaxed)) == self.target;
            if !child && self.is_through_with_others() {
                return false;
            }
            let wanted = child || self.helps_with_anything() || self.is_wanted(ticket);
            if !wanted && self.is_startable(ticket) {
                return false;
            }
            self.cx.thread.deque.drop_newest();
            if wanted && self.help(ticket, slot) && self.is_timed() {
                return false; // It may be late by now.
            }
        }
    }

    /// Whether there may be jobs that go before this thread's own ones.
    #[inline]
    fn some_before_own(&self) -> bool {
        self.cx.shared.some_before_own.get().is_some()
    }

    /// Runs a job that the wait may run and that goes before this thread's own ones, unless it is a pinned
    /// one.
    #[cold]
    #[inline(never)]
    fn help_before_own(&mut self) -> BeforeOwn {
        if self.may_run_pinned() {
            BeforeOwn::Pinned
        } else if self.help_by_rank() {
            BeforeOwn::Ranked
        } else {
            BeforeOwn::Nothing
        }
    }

    /// Runs a job with a rank that the wait may run and that goes before the own ones.
    fn help_by_rank(&mut self) -> bool {
        let cx = self.cx;
        let Some(extra) = cx.extra_lanes() else {
            return false;
        };
        if extra.best() == Rank::NONE {
            return false;
        }
        // Nodes of a graph are parts of what a wait for it needs; jobs of frames are found by their marks.
        if cx.shared.order.get().is_some() {
            self.mark_all();
        }
        let mut wanted = |ticket| self.could_help_with(ticket);
        let ticket = extra.next_if(cx, &mut wanted);
        ticket.is_some_and(|ticket| self.help(ticket, cx.shared.slot(ticket)))
    }

    /// Moves tickets to this thread's deque from the injector, or from a thread slot whose oldest ticket is
    /// wanted. They were announced where they were, but threads that looked for them meanwhile may have
    /// missed them. So tickets that are not run at once are announced again.
    fn fetch_tickets(&self) -> bool {
        let cx = self.cx;
        cx.forget_stamp();
        let before = self.cx.thread.deque.len();
        let first = cx.take_from_injector().or_else(|| {
            cx.take_from_deques_if(|deque| {
                let oldest = deque.peek_oldest();
                oldest.is_some_and(|ticket| self.could_help_with(ticket))
            })
        });
        let Some(first) = first else { return false };
        // It is fewer if thieves have taken some from here meanwhile.
        let moved = self.cx.thread.deque.len().saturating_sub(before);
        cx.own(|own| own.fresh += moved as u32);
        cx.enqueue(first, Queue::Own);
        cx.publish(Queue::Own, false);
        true
    }

    /// Outside of all jobs: whether a job that is pinned to this thread is ready, and there is stack for it.
    #[inline]
    pub(super) fn has_pinned(&self) -> bool {
        self.cx.shared.pinned.get().is_some() && self.may_run_pinned()
    }

    #[cold]
    #[inline(never)]
    fn may_run_pinned(&self) -> bool {
        let may_run = !self.cx.is_called_back() || self.helps_with_anything();
        may_run && self.cx.count_pinned() > 0 && self.cx.has_reserve()
    }

    /// Runs the next job that is pinned to this thread, if the wait may run it.
    #[cold]
    #[inline(never)]
    fn help_with_ready_pinned(&self) -> bool {
        self.may_run_pinned() && self.help_with_pinned(None)
    }

    /// Runs a job that is pinned to this thread and ready, or the next one.
    #[cold]
    #[inline(never)]
    pub(super) fn help_with_pinned(&self, which: Option<Ticket>) -> bool {
        self.on_top(|| self.cx.run_pinned(which))
    }

    /// Runs pieces of idempotent jobs that the wait needs: those that no thread has begun, or one that is
    /// late. Returns nothing then. Otherwise returns when to look again.
    #[inline]
    pub(super) fn help_with_late_pieces(&self) -> Option<Nanos> {
        match self.cx.shared.repeats.get() {
            None => Some(Nanos::MAX),
            Some(repeats) => self.help_with_late(&**repeats),
        }
    }

    #[cold]
    #[inline(never)]
    fn help_with_late(&self, repeats: &dyn RepeatTable<P>) -> Option<Nanos> {
        if !self.may_help() {
            return Some(Nanos::MAX);
        }
        let mut look_at = Some(Nanos::MAX);
        self.on_top(|| {
            look_at = repeats.help(self.cx, &|job| self.is_wanted(job));
            look_at.is_none()
        });
        look_at
    }

    /// In a wait in the middle of a job: a job that is pinned to this thread, is ready, and has to run before
    /// the wait can end.
    #[inline]
    pub(super) fn needed_pinned(&self) -> Option<Ticket> {
        let pinned = self.cx.shared.pinned.get()?;
        if !self.cx.is_called_back() || self.cx.count_pinned() == 0 || !self.cx.has_reserve() {
            return None;
        }
        pinned.find_needed(self.cx, self.target)
    }

    /// Runs something on top of the wait. While that runs, this thread does not wait: a deadlock check that
    /// asks what the job on top waits for must not find the wait underneath it, and other threads need not
    /// share their work with a thread that is as busy as they are.
    #[inline(always)]
    fn on_top(&self, run: impl FnOnce() -> bool) -> bool {
        let waits_for = self.cx.thread.waits_for.load(Ordering::Relaxed);
        self.cx.thread.waits_for.store(0, Ordering::Relaxed);
        leave_watch_if_busy(self.cx);
        let has_run = run();
        self.cx.thread.waits_for.store(waits_for, Ordering::Relaxed);
        has_run
    }

    /// Runs a ticket from inside a wait.
    #[inline]
    pub(super) fn help(&self, ticket: Ticket, slot: &Slot<P>) -> bool {
        let cx = self.cx;
        let helped = self.on_top(|| {
            cx.set_why(|| self.why_help(ticket));
            cx.start(ticket, slot)
        });
        if !helped {
            cx.own(|own| own.record.why = Why::Next);
        } else {
            self.cx.thread.counters.helps.add(1);
            // Unlike a worker, a waiter may not be allowed to run the job that it has just made ready.
            cx.publish(Queue::Own, false);
        }
        helped
    }

    fn why_help(&self, ticket: Ticket) -> Why {
        if ticket == self.target {
            Why::Awaited
        } else if self.is_marked(ticket) {
            Why::Needed
        } else if self.descends(ticket) {
            Why::Part
        } else {
            Why::Next
        }
    }
}
