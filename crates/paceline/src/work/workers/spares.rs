//! Spare workers.
//!
//! A *spare* is one more worker. It works only while every other worker is blocked inside a wait, so that
//! ready work that no wait may run still runs, or in place of a worker that has made way in the middle of a
//! background job (`lanes/yields.rs`). Spares leave as soon as a regular worker is free again, or goes on.
//! One of them rests then, because a program that needed a spare mostly needs one again, and starting a
//! thread takes longer than most jobs.
//!
//! Their number is limited, and the system may refuse a thread. Then ready work has to wait until a thread
//! comes out of its wait, which may be never. This is reported to the program ([`Stuck`]).

use event::EventKind;
use platform::{Atomic, Lock, Ordering, Parker, Platform};

use super::table::WorkerEntry;
use crate::error::Stuck;
use crate::queues::Fenced;
use crate::store::Ticket;
use crate::work::context::Context;
use crate::work::shared::Shared;
use crate::work::thread_slot::{ThreadKind, ThreadSlot};

/// The place that a spare comes from.
enum Source {
    /// A spare that rested, or was about to end.
    Rested(u32),
    /// A new thread, which is to be started on this thread slot.
    Vacant(u32),
    /// None: there are as many spares as the limit allows.
    Exhausted,
    /// None: another thread was faster.
    NotNeeded,
}

impl<P: Platform> Context<'_, P> {
    /// Whether this worker is a spare and one worker too many.
    #[inline]
    pub(crate) fn is_spare_in_vain(&self) -> bool {
        self.thread.kind == ThreadKind::Spare && self.shared.has_free_worker()
    }
}

impl<P: Platform> Shared<P> {
    /// Whether a spare is one too many: more than one worker is not blocked, and none is missing in the place
    /// of a worker that has made way.
    fn has_free_worker(&self) -> bool {
        let yielders = self.lanes.yielders().count();
        self.workers.active() > self.idle.load().blocked as usize + 1
            && (yielders == 0 || self.workers.active() > self.workers.target() + yielders)
    }

    /// Whether `active` workers are too few: every one of them is blocked, or one is missing in the place of
    /// a worker that has made way.
    fn lacks_worker(&self, active: usize) -> bool {
        let yielders = self.lanes.yielders().count();
        self.idle.load().blocked as usize >= active
            || (yielders > 0 && active < self.workers.target() + yielders)
    }

    /// One more worker, if one is missing while there is work. If there can be none: the report for the
    /// program, once until a spare can be had again.
    /// `rests`: the caller is about to, so the spare may have its CPU.
    fn find_spare_for(&self, context: &Context<'_, P>, rests: bool) -> Option<Stuck> {
        let active = self.workers.active();
        let is_due = active > 0 && self.lacks_worker(active) && self.has_work();
        if !is_due || !self.may_add_spare() {
            return None;
        }
        let why = self.add_spare(context, active, rests).err()?;
        if context.resume_yielder(rests) {
            return None; // It will take the work when its job ends.
        }
        // Relaxed: one of the threads that see 0 reports it; nothing is published with it.
        let is_reported = self.workers.is_stuck.swap(1, Ordering::Relaxed) != 0;
        context.wake_for_reserve();
        let waiting = active;
        (!is_reported).then_some(Stuck { waiting, why })
    }

    /// Whether all workers are blocked, and there can be no further spare. `others`: or all but the calling
    /// one.
    pub(crate) fn are_stuck(&self, context: &Context<'_, P>, others: bool) -> bool {
        let own = usize::from(others && counts_when_blocked(context));
        self.workers.is_stuck() && self.idle.load().blocked as usize + own >= self.workers.active()
    }

    /// Whether as many spares work as there may be.
    pub(crate) fn has_no_further_spare(&self) -> bool {
        self.workers.active() >= self.workers.target() + self.workers.spares_max
    }

    /// The calling worker is about to make way, and is counted and listed: another one works in its place.
    /// False if there can be none.
    pub(crate) fn replace_yielder(&self, context: &Context<'_, P>) -> bool {
        let active = self.workers.active();
        let is_due = self.lacks_worker(active);
        !is_due || (self.may_add_spare() && self.add_spare(context, active, true).is_ok())
    }

    /// Puts a spare to work, if there are `active` workers still. The error says why there can be none.
    /// `rests`: as above.
    fn add_spare(
        &self,
        context: &Context<'_, P>,
        active: usize,
        rests: bool,
    ) -> Result<(), String> {
        let ended = self
            .workers
            .table
            .with(|table| table.take_exited(ThreadKind::Spare));
        self.join_exited(ended);
        let working = match self.find_spare(active, rests.then_some(context)) {
            Source::Rested(slot) => Ok(Some(slot)),
            Source::Vacant(slot) => {
                let is_needed =
                    |_: &ThreadSlot<P>| self.workers.active() == active && self.may_add_spare();
                let started = self.start(slot, &is_needed);
                // The hook that names the thread may have waited here. It may have used up the wake-up of the
                // wait around it, which is about to park. With this that wait looks again.
                context.thread.parker.unpark();
                started
                    .map(|started| started.then_some(slot))
                    .map_err(|error| format!("{error}"))
            }
            Source::Exhausted => Err(format!(
                "the limit is {} (max_spares)",
                self.workers.spares_max
            )),
            Source::NotNeeded => Ok(None),
        };
        if working.is_err() {
            context.thread.counters.spares_refused.add(1);
        }
        if let Some(slot) = working? {
            // Relaxed: see `find_spare_for`.
            self.workers.is_stuck.store(0, Ordering::Relaxed);
            context.thread.counters.spares.add(1);
            context.record(EventKind::Spare, Ticket::NONE, u64::from(slot));
        }
        Ok(())
    }

    /// Whether a spare can still be of use. It can if the owner has left the end to the workers: the jobs
    /// they wait for have to run before they leave. (Otherwise the thread that ends the job system runs those
    /// jobs.)
    fn may_add_spare(&self) -> bool {
        !self.workers.is_stopping() || self.ending.is_due()
    }

    /// `resting`: the thread whose CPU the spare may have.
    fn find_spare(&self, active: usize, resting: Option<&Context<'_, P>>) -> Source {
        self.workers.table.with(|table| {
            if self.workers.active() != active || !self.may_add_spare() {
                return Source::NotNeeded;
            }
            let slot_of = |entry: &WorkerEntry<P>| self.threads.get(entry.slot as usize);
            let spares = || {
                table
                    .entries
                    .iter()
                    .filter(|entry| entry.kind == ThreadKind::Spare)
            };
            // Relaxed: changed under this lock.
            let flag_of = |entry: &WorkerEntry<P>| slot_of(entry).flag.load(Ordering::Relaxed);
            for flag in [ThreadSlot::<P>::RESTS, ThreadSlot::<P>::LEAVES] {
                if let Some(entry) = spares().find(|entry| flag_of(entry) & flag != 0) {
                    let slot = slot_of(entry);
                    if let Some(resting) = resting {
                        self.adapt.hands_over(resting, slot.index as usize);
                    }
                    self.recall(slot);
                    return Source::Rested(entry.slot);
                }
            }
            if let Some(entry) = spares().find(|entry| entry.is_vacant()) {
                return Source::Vacant(entry.slot);
            }
            if spares().count() >= self.workers.spares_max {
                return Source::Exhausted;
            }
            let added = self.add_entry(table, ThreadKind::Spare);
            added.map_or(Source::Exhausted, Source::Vacant)
        })
    }

    /// Puts a spare that rests, or was about to end, to work again. Called under the table's lock.
    fn recall(&self, slot: &ThreadSlot<P>) {
        self.workers.active.fetch_add(1, Ordering::Relaxed);
        // Release, partner: the Acquire load in `rests`.
        slot.flag.store(0, Ordering::Release);
        slot.parker.unpark();
    }

    /// Makes sure that a spare works if every worker is blocked in a wait while there is work.
    #[cold]
    pub(crate) fn consider_spare(&self, context: &Context<'_, P>) {
        if let Some(stuck) = self.find_spare_for(context, false) {
            self.report_stuck(context, &stuck);
        }
    }

    #[cold]
    pub(crate) fn report_stuck(&self, context: &Context<'_, P>, stuck: &Stuck) {
        if self.hooks.has_stuck_hook() {
            context.call_hook(|| self.hooks.stuck(stuck).unwrap_or(Ok(())));
        } else {
            eprintln!("paceline: {stuck}");
        }
    }

    /// The calling worker is about to rest inside a wait. Afterwards it looks for work once more and then
    /// calls [`replace_blocked`](Shared::replace_blocked).
    pub(crate) fn begin_block(&self, context: &Context<'_, P>) {
        if counts_when_blocked(context) {
            self.idle.begin_block::<Fenced>();
        }
    }

    /// The calling worker is blocked and has found nothing it may run. If it was the last free one, the work
    /// of others needs a spare. Returns the report if there can be none; it is to be made when this worker is
    /// no longer blocked.
    pub(crate) fn replace_blocked(&self, context: &Context<'_, P>) -> Option<Stuck> {
        match context.thread.kind {
            ThreadKind::Guest => None,
            _ => self.find_spare_for(context, true),
        }
    }

    /// The calling worker is about to block on something that the job system does not know. Work that no
    /// other worker is free for gets a spare.
    pub(crate) fn begin_lending(&self, context: &Context<'_, P>) {
        self.begin_block(context);
        if let Some(stuck) = self.replace_blocked(context) {
            self.end_block(context);
            self.report_stuck(context, &stuck);
            self.begin_block(context);
        }
        context.own(|own| own.is_lent = true);
    }

    /// The calling worker goes on.
    pub(crate) fn end_lending(&self, context: &Context<'_, P>) {
        context.own(|own| own.is_lent = false);
        self.end_block(context);
    }

    /// The calling worker goes on.
    pub(crate) fn end_block(&self, context: &Context<'_, P>) {
        if counts_when_blocked(context) {
            self.idle.end_block();
        }
    }
}

/// Guests are not workers. Slow workers count as blocked all the time, and a worker that has lent its core
/// already does.
fn counts_when_blocked<P: Platform>(context: &Context<'_, P>) -> bool {
    let counts_already = context.own(|own| own.is_slow || own.is_lent);
    context.thread.kind != ThreadKind::Guest && !counts_already
}
