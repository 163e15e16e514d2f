//! Waiting, and what a waiter may run meanwhile.
//!
//! The rule: **a waiter runs only what it waits for.** In this order: the awaited job if it is ready; its
//! unfinished ancestors that are ready; parts of a range that is one of these; jobs made by those of them
//! that are running (their scopes' children, their promoted forks). If there is no such job the waiter spins
//! for a while and then parks, although other jobs may be ready. An unrelated job under the waiter's frame
//! could take for ever, or wait for something that the waiter holds. That is the most reported defect of such
//! libraries (rayon #592 and #957, Taskflow #649, oneTBB #1316 …).
//!
//! Five things bend the rule:
//!
//! - Where there are no workers at all, a waiter that has none of its own jobs to run runs any job that is
//!   ready. It may wait for an event that such a job completes, and no other thread may ever come. In the
//!   middle of a job it does so only as a last resort, because the jobs that it runs might wait for that job:
//!   if no other thread uses the job system, and none has come for [`LAST_RESORT`](watch::LAST_RESORT). Where
//!   there can be no other thread it does so at once.
//! - A wait of an outside thread that has a deadline runs nothing where there are workers, because a body
//!   that has begun cannot be cut short. Without workers it may be late by one body. So may a wait with a
//!   deadline in the middle of a job: otherwise jobs on all workers that wait for a moment, again and again,
//!   would keep each other from ever running what they wait for. So may, in the end, an outside thread that
//!   polls (`poll`).
//! - A waiter that has little of its thread's stack left starts no further body on it. With workers it rests,
//!   and a spare takes over. Without workers, or when all of them rest and there is no further spare, the
//!   wait panics (`reserve`).
//! - A wait may name a group. Then it runs the jobs of that group, too, and no others (`group`).
//! - A pinned thread runs jobs that are pinned to it in its waits outside of jobs, whether or not it waits
//!   for them, because no other thread ever will. In the middle of a job it runs those that the wait needs
//!   (`pinned`).
//!
//! Ancestors are found by a depth-first walk along the links, from the target up. Each job on the way is
//! *marked* with the waiter's thread slot. So a thread that makes one of them ready, or that publishes work
//! for one, knows which thread to wake. A mark is a hint; the waiter relies on the walk after the fence:
//!
//! ```text
//! waiter                                  publisher
//! marks the job (and its state says: not ready)
//!                                         makes it ready, queues its ticket
//! fence                                   fence
//! looks at the job's state again          reads the mark
//! ```
//!
//! One of the two sees what the other wrote. Several waiters may need the same job. A waiter that replaces
//! another's mark says so in its own mark, and then every waiting thread is woken. If there is work that no
//! waiter may run while every worker waits, a spare worker starts (`workers`).
//!
//! A wait that can never end is reported instead of hanging, in `deadlock`. A wait that lasts long is
//! reported, too, if the program or its user asks for that, in `long`.

mod deadlock;
mod find;
mod group;
mod help;
mod local;
mod long;
mod mark;
mod poll;
mod reserve;
mod stack;
mod waiter;
mod walk;
mod watch;

use std::panic::Location;

use event::{EventKind, Nanos};
use platform::{Atomic, Ordering, Platform};

use super::context::Context;
use super::thread_slot::ThreadKind;
use crate::adapt::Checkpoint;
use crate::error::WaitError;
use crate::store::{CallSite, Label, Ticket};

pub(crate) use local::WaitLocal;
pub(crate) use mark::Mark;
pub(crate) use stack::StackLimits;
use waiter::Waiter;

impl<P: Platform> Context<'_, P> {
    /// Waits until the job is over or `deadline` has come. `Ok(false)`: it is not over yet.
    #[track_caller]
    pub(crate) fn wait_until(&self, target: Ticket, deadline: Nanos) -> Result<bool, WaitError> {
        self.wait_at(Location::caller(), target, deadline)
    }

    /// The same for a wait that the program calls at this place.
    pub(crate) fn wait_at(
        &self,
        site: CallSite,
        target: Ticket,
        deadline: Nanos,
    ) -> Result<bool, WaitError> {
        self.wake_for_all();
        if self.shared.slot(target).is_over(target) {
            self.shared.checks.waited_for(target);
            return Ok(true);
        }
        self.check_stack_until(deadline);
        let waited = self.wait_for(target, deadline, Some(site));
        if let Ok(true) = waited {
            self.shared.checks.waited_for(target);
        }
        waited
    }

    /// Waits until a job that borrows from the caller's stack is over, whatever happens. `give_up` is called
    /// with the cycle if the job can never end.
    pub(crate) fn wait_for_borrowers(&self, target: Ticket, give_up: impl Fn(Vec<Label>)) {
        loop {
            self.wake_for_all();
            if self.shared.slot(target).is_over(target) {
                return;
            }
            match self.wait_for(target, Nanos::MAX, None) {
                Ok(true) => return,
                Err(WaitError::Deadlock { cycle }) => give_up(cycle),
                Ok(false) | Err(_) => {}
            }
        }
    }

    /// `site`: where the program called it, unless the job itself was made there.
    fn wait_for(
        &self,
        target: Ticket,
        deadline: Nanos,
        site: Option<CallSite>,
    ) -> Result<bool, WaitError> {
        if self.thread.kind == ThreadKind::Guest {
            self.shared.adapt.passes(self, Checkpoint::Outside);
        }
        self.record(EventKind::WaitBegin, target, 0);
        let outer = self.thread.waits_for.load(Ordering::Relaxed);
        let outer_until = self.thread.waits_until.load(Ordering::Relaxed);
        // Relaxed: deadlock checks fence on both sides (see `cycle`).
        self.thread.waits_until.store(deadline.0, Ordering::Relaxed);
        self.thread.waits_for.store(target.0, Ordering::Relaxed);
        let is_part = self.raise_awaited(target, deadline);
        let mut waiter = Waiter::begin(self, target, deadline, site);
        let result = waiter.wait();
        waiter.end();
        if is_part {
            self.thread.waits_in_part.store(0, Ordering::Relaxed);
        }
        self.thread.waits_for.store(outer, Ordering::Relaxed);
        self.thread
            .waits_until
            .store(outer_until, Ordering::Relaxed);
        let code = match &result {
            Ok(true) => 0,
            Ok(false) => 3,
            Err(_) => 4,
        };
        self.record(EventKind::WaitEnd, target, code);
        result
    }

    /// For models, which have no time for a whole wait: the part of a wait in which it has found that it may
    /// run the awaited job.
    #[cfg(all(test, paceline_models, not(miri)))]
    pub(crate) fn help_with_awaited(&self, target: Ticket) -> bool {
        let waiter = Waiter::begin(self, target, Nanos::MAX, None);
        let helped = waiter.help(target, self.shared.slot(target));
        waiter.end();
        helped
    }
}
