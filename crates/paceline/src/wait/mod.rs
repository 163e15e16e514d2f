//! Waiting, and what a waiter may run meanwhile.
//!
//! The rule: **a waiter runs only what it waits for.** In this order: the awaited job if it is ready;
//! its unfinished ancestors that are ready; parts of a range that is one of these; jobs made by those
//! that are running (their scopes' children, their promoted forks). If there is none of these it
//! spins for a while and then parks, although other work may be ready: an unrelated job under the
//! waiter's frame could take for ever, or wait for something the waiter holds. That is the most
//! reported defect of the field (rayon #592 and #957, Taskflow #649, oneTBB #1316 …).
//!
//! Three things bend the rule:
//!
//! - Where there are no workers at all, a waiter without anything of its own runs whatever is ready: what it
//!   waits for may be an event that such a job completes, and no other thread may ever come. In the middle of
//!   a job, for which what it runs might wait, it does so as a last resort: if no other thread uses the job
//!   system, and none has come for [`LAST_RESORT`](watch::LAST_RESORT).
//! - A wait of an outside thread that has a deadline runs nothing where there are workers, because a body
//!   that has begun cannot be cut short. Without workers it may be late by one body. So may a wait in the
//!   middle of a job: jobs on all workers that wait for a moment, again and again, would else keep each other
//!   from ever running what they wait for. So may, in the end, an outside thread that polls (`poll`).
//! - A waiter that has little of its thread's stack left starts no further body on it. With workers it rests,
//!   and a spare takes over; without them the wait panics (`stack`).
//!
//! Finding ancestors is a depth-first walk along the links, from the target up. Each job on the way
//! is *marked* with the waiter's seat, so that whoever makes one of them ready, or publishes work for
//! one, knows whom to wake. A mark is a hint, the walk after the fence is what the waiter relies on:
//!
//! ```text
//! waiter                                  publisher
//! marks the job (and its state says: not ready)
//!                                         makes it ready, queues its ticket
//! fence                                   fence
//! looks at the job's state again          reads the mark
//! ```
//!
//! One of the two sees what the other wrote. Several waiters may need one job: who marks it after
//! somebody else says so in the mark, and then everybody who waits is woken. If work remains that no
//! waiter may run while every worker waits, a spare worker starts (`crew`).
//!
//! A wait that can never end is reported instead of hanging, in `cycle`.

mod find;
mod mark;
mod poll;
mod stack;
mod watch;

use event::{EventKind, Nanos, Why};
use platform::{Atomic, Ordering, Platform};

use crate::adapt::Passing;
use crate::context::{Context, Queue};
use crate::error::WaitError;
use crate::job::{Slot, Ticket};
use crate::seat::{Role, Seat};

use find::{Look, Walk};
pub(crate) use stack::limit as stack_limit;

/// One wait in progress.
struct Wait {
    target: Ticket,
    /// [`Nanos::MAX`] for none.
    deadline: Nanos,
    /// The target's jobs borrow from the waiter's stack: the wait cannot fail.
    is_for_borrowers: bool,
}

impl Wait {
    /// Whether the wait ends by itself.
    fn is_timed(&self) -> bool {
        self.deadline != Nanos::MAX
    }
}

impl<P: Platform> Context<'_, P> {
    /// Waits until the job is over or `deadline` has come. `Ok(false)`: it is not over yet.
    pub(crate) fn wait_until(&self, target: Ticket, deadline: Nanos) -> Result<bool, WaitError> {
        self.do_wait(&Wait {
            target,
            deadline,
            is_for_borrowers: false,
        })
    }

    /// Waits until a job that borrows from the caller's stack is over, whatever happens.
    pub(crate) fn wait_for_borrowers(&self, target: Ticket) {
        let wait = Wait {
            target,
            deadline: Nanos::MAX,
            is_for_borrowers: true,
        };
        while !matches!(self.do_wait(&wait), Ok(true)) {}
    }

    fn do_wait(&self, wait: &Wait) -> Result<bool, WaitError> {
        let &Wait {
            target, deadline, ..
        } = wait;
        self.flush();
        if self.shared.slot(target).is_over(target) {
            return Ok(true);
        }
        if !wait.is_for_borrowers {
            self.check_stack();
        }
        if self.seat.role == Role::Guest {
            self.shared.adapt.passes(self, Passing::Outside);
        }
        self.record(EventKind::WaitBegin, target, 0);
        let outer = self.seat.waits_for.load(Ordering::Relaxed);
        let outer_until = self.seat.waits_until.load(Ordering::Relaxed);
        // Relaxed: deadlock checks fence on both sides (see `cycle`).
        self.seat.waits_until.store(deadline.0, Ordering::Relaxed);
        self.seat.waits_for.store(target.0, Ordering::Relaxed);
        let mut stack = self.own(|own| {
            own.marks_from = own.serial + 1;
            own.awaited.push(target);
            std::mem::take(&mut own.search)
        });
        stack.clear();
        let mut walk = Walk::with(stack);
        let result = match self.help_until_stuck(wait, &mut walk) {
            true => Ok(true),
            false if self.is_late(wait) => Ok(false),
            false => self.watch(wait, &mut walk),
        };
        if wait.is_timed() {
            self.note_poll(wait, &mut walk, matches!(result, Ok(false)));
        }
        // Kept for the next wait. (A wait inside a job that this one runs has its own.)
        self.own(|own| {
            own.search = walk.stack;
            own.awaited.pop();
            // The wait underneath has to mark afresh what it needs.
            own.marks_from = own.serial + 1;
        });
        self.seat.waits_for.store(outer, Ordering::Relaxed);
        self.seat.waits_until.store(outer_until, Ordering::Relaxed);
        let code = match &result {
            Ok(true) => 0,
            Ok(false) => 3,
            Err(_) => 4,
        };
        self.record(EventKind::WaitEnd, target, code);
        result
    }

    /// Runs what the wait may run. True when the target is over, false when there is nothing to run
    /// at the moment.
    fn help_until_stuck(&self, wait: &Wait, walk: &mut Walk) -> bool {
        let is_over = || self.shared.slot(wait.target).is_over(wait.target);
        // All bodies start on top of this frame.
        let has_stack = self.has_stack();
        let mut is_first = true;
        loop {
            // A wait with a deadline that may run bodies runs one at least, or polling would lead nowhere.
            let may_help = self.may_help_on(wait, has_stack) && (is_first || !self.is_late(wait));
            is_first = false;
            if may_help {
                self.help_with_own(wait);
            }
            self.flush_finished();
            if is_over() {
                return true;
            }
            let helped = may_help
                && (self.help_ancestor(wait.target, walk)
                    || self.fetch_tickets(wait.target)
                    || self.help_descendant(wait.target, Look::Quick)
                    || self.help_anything(wait.target, walk));
            if !helped {
                return is_over();
            }
        }
    }

    fn is_late(&self, wait: &Wait) -> bool {
        wait.is_timed() && self.shared.platform.now() >= wait.deadline
    }

    /// Whether the wait may run bodies at this moment.
    fn may_help(&self, wait: &Wait) -> bool {
        self.may_help_on(wait, self.has_stack())
    }

    /// The same where it is known whether there is stack for them.
    #[inline]
    fn may_help_on(&self, wait: &Wait, has_stack: bool) -> bool {
        if self.shared.crew.active() == 0 {
            // Whether there is stack was asked when the wait began, a frame further up. Asked again here, it
            // could come out otherwise, and no other thread would run what is needed. (The same if the last
            // worker has left since: then one body begins in the reserve, and a wait inside of it panics.)
            return true;
        }
        has_stack && (!wait.is_timed() || self.is_called_back() || self.has_polled_enough())
    }

    /// Whether the rule that a waiter runs only what it waits for does not hold here; see the module.
    fn may_run_anything(&self, walk: &Walk) -> bool {
        self.shared.crew.active() == 0
            && (!self.is_called_back()
                || self.shared.platform.now() >= walk.last_resort && self.is_only_guest())
    }

    fn is_only_guest(&self) -> bool {
        // Relaxed: a guest that comes at this moment is not waited for.
        let is_taken = |seat: &Seat<P>| seat.flag.load(Ordering::Relaxed) != 0;
        let guests = self.shared.seats.iter();
        let mut guests = guests.filter(|seat| seat.role == Role::Guest && is_taken(seat));
        guests.all(|seat| seat.index == self.seat.index)
    }

    /// Without workers: runs something that is ready, whatever it is.
    fn help_anything(&self, target: Ticket, walk: &mut Walk) -> bool {
        if !self.may_run_anything(walk) {
            return false;
        }
        walk.last_resort = Nanos::MAX;
        while let Some(ticket) = self.next() {
            if self.help(ticket, self.shared.slot(ticket), target) {
                return true;
            }
        }
        false
    }

    /// As long as the wait may run the newest ticket of the own deque, runs it. That is the common
    /// case and needs no search: the jobs of a scope, the other half of a join, a needed job that
    /// the last one has just made ready.
    fn help_with_own(&self, wait: &Wait) {
        let (target, is_timed) = (wait.target, wait.is_timed());
        while let Some(ticket) = self.peek_newest() {
            let slot = self.shared.slot(ticket);
            // A stale ticket may look wanted: starting it fails. One that is not wanted is not
            // started even if it looks stale: a range that is just being opened does.
            let child = slot.parent(slot.flags.load(Ordering::Relaxed)) == target;
            let wanted = child || self.is_wanted(ticket, target);
            if !wanted && self.is_startable(ticket) {
                return;
            }
            self.seat.deque.take_newest();
            if wanted && self.help(ticket, slot, target) && is_timed {
                return; // It may be late by now.
            }
        }
    }

    /// Moves tickets from the injector, or from a seat whose oldest ticket is wanted, to the own
    /// deque. They were announced where they were, but who looked for them meanwhile may have
    /// missed them: what is not run at once is announced again.
    fn fetch_tickets(&self, target: Ticket) -> bool {
        self.forget_stamp();
        let before = self.seat.deque.len();
        let first = self.take_from_injector().or_else(|| {
            self.take_from_deques_if(|deque| {
                deque.peek_oldest().is_some_and(|ticket| {
                    self.shared.slots.exists(ticket.index())
                        && self.is_startable(ticket)
                        && self.is_wanted(ticket, target)
                })
            })
        });
        let Some(first) = first else { return false };
        // Fewer, if some have been stolen from here meanwhile.
        let moved = self.seat.deque.len().saturating_sub(before);
        self.own(|own| own.fresh += moved as u32);
        self.enqueue(first, Queue::Own);
        self.publish(Queue::Own, false);
        true
    }

    /// Runs a ticket from inside a wait.
    #[inline]
    fn help(&self, ticket: Ticket, slot: &Slot<P>, target: Ticket) -> bool {
        // While the helped job runs this thread does not wait: who asks what the job is waiting for
        // must not be told about the wait underneath it.
        let waits_for = self.seat.waits_for.load(Ordering::Relaxed);
        self.seat.waits_for.store(0, Ordering::Relaxed);
        self.set_why(|| self.why_help(ticket, target));
        let helped = self.start(ticket, slot);
        self.seat.waits_for.store(waits_for, Ordering::Relaxed);
        if !helped {
            self.own(|own| own.why = Why::Next);
        } else {
            self.seat.counters.helps.add(1);
            // Unlike a worker, a waiter may not be allowed to run what it has just made ready.
            self.publish(Queue::Own, false);
        }
        helped
    }

    /// For models, which have no time for a whole wait: a wait for a job that has found that it may run it.
    #[cfg(all(test, not(any(miri, paceline_tsan))))]
    pub(crate) fn help_with_awaited(&self, target: Ticket) -> bool {
        self.help(target, self.shared.slot(target), target)
    }

    fn why_help(&self, ticket: Ticket, target: Ticket) -> Why {
        match ticket == target {
            true => Why::Awaited,
            false if self.is_marked(ticket) => Why::Needed,
            false if self.descends(ticket, target) => Why::Part,
            false => Why::Next,
        }
    }

    /// Announces everything scheduled so far to as many workers as can use it.
    pub(crate) fn flush(&self) {
        self.publish(self.queue(), false);
        if self.own(|own| own.unsignalled > 0) {
            self.wake_for_batch();
        }
    }
}
