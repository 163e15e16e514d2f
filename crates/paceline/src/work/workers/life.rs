//! A worker thread from start to end.

use platform::{Atomic, Lock, Omission, Ordering, Parker, Platform};

use super::table::WorkerEntry;
use crate::adapt::HAS_SLOW_WORKERS;
use crate::border::UnwindGuard;
use crate::work::context::Context;
use crate::work::entry::begin_with_slot;
use crate::work::shared::Shared;
use crate::work::thread_record::note_slot;
use crate::work::thread_slot::{ThreadKind, ThreadSlot};

impl<P: Platform> Shared<P> {
    /// The name for the thread on this thread slot.
    pub(super) fn thread_name(&self, slot: usize) -> String {
        let asked = self.hooks.thread_name(slot);
        let asked = asked.and_then(|asked| self.panics.call_hook(|| asked));
        asked.unwrap_or_else(|| format!("paceline {slot}"))
    }

    pub(super) fn worker_main(&self, index: usize) {
        let guard = UnwindGuard::<P>::new("a worker");
        let slot = self.threads.get(index);
        note_slot(&self.platform, self.id.get(), slot, self.host());
        let named = Named {
            shared: self,
            index,
        };
        // SAFETY: the thread was started for this thread slot, which is noted. An entry has one thread at a
        // time: the next is started only after this one was joined.
        let context = unsafe { Context::new(self, slot) };
        begin_with_slot(&context);
        self.work(&context);
        if cfg!(feature = "pools")
            && let Some(pinned) = self.pinned.get()
        {
            pinned.leave(&context, true);
        }
        context.own(|own| self.hints.depart(&mut own.hints, slot.index));
        slot.posted.depart();
        drop(named);
        guard.disarm();
    }

    fn work(&self, context: &Context<'_, P>) {
        let index = context.worker();
        let starts = || self.hooks.thread_starts(index).unwrap_or(Ok(()));
        let stops = || self.hooks.thread_stops(index).unwrap_or(Ok(()));
        context.call_hook(starts);
        loop {
            // A spare may have been recalled to the CPU of another worker, from its rest or as it was
            // leaving.
            self.adapt.takes_over(context);
            if HAS_SLOW_WORKERS && context.is_to_be_slow() {
                context.slow_loop()
            } else {
                context.work_loop()
            }
            let next = self.come_out(context);
            if next == Next::Works {
                continue;
            }
            // A publisher may have counted on this worker just before it left.
            self.pass_on(context);
            if next == Next::Rests && self.rests(context) {
                continue;
            }
            context.call_hook(stops);
            self.end_if_last(context);
            if self.has_left(context) {
                return;
            }
            context.call_hook(starts);
        }
    }

    /// What a worker does next after its loop. If it is not to work, it no longer counts as a worker when
    /// this returns. From the same moment on a spare can be taken back. It may be the last spare that the
    /// limit allows. Otherwise a thread that finds all others blocked beside ready work would then get none.
    fn come_out(&self, context: &Context<'_, P>) -> Next {
        let slot = context.thread;
        self.workers.table.with(|table| {
            if !context.must_leave() {
                return Next::Works;
            }
            self.workers.active.fetch_sub(1, Ordering::Relaxed);
            if slot.kind != ThreadKind::Spare {
                return Next::Leaves;
            }
            self.workers.is_stuck.store(0, Ordering::Relaxed);
            // Relaxed, both: changed under this lock.
            let rests = |entry: &WorkerEntry<P>| {
                let flag = self
                    .threads
                    .get(entry.slot as usize)
                    .flag
                    .load(Ordering::Relaxed);
                entry.kind == ThreadKind::Spare && flag & ThreadSlot::<P>::RESTS != 0
            };
            let leaves = self.workers.is_stopping() || table.entries.iter().any(rests);
            let (next, flag) = if leaves {
                (Next::Leaves, ThreadSlot::<P>::LEAVES)
            } else {
                (Next::Rests, ThreadSlot::<P>::RESTS)
            };
            slot.flag.store(flag, Ordering::Relaxed);
            next
        })
    }

    /// A spare rests instead of ending, until it is needed again. False if it is to end.
    fn rests(&self, context: &Context<'_, P>) -> bool {
        let slot = context.thread;
        // Acquire, partner: the Release store in `recall`.
        let is_resting = || slot.flag.load(Ordering::Acquire) & ThreadSlot::<P>::RESTS != 0;
        while is_resting() {
            if self.workers.is_stopping() {
                return self.workers.table.with(|_| {
                    // Relaxed: changed under this lock.
                    let is_needed = !is_resting();
                    if !is_needed {
                        slot.flag.store(ThreadSlot::<P>::LEAVES, Ordering::Relaxed);
                    }
                    is_needed
                });
            }
            slot.parker.park(event::Nanos::MAX);
        }
        true
    }

    /// The last thing a worker does: its entry can be filled again. False if the worker is wanted after all,
    /// because the number of workers was raised meanwhile, or because it was needed as a spare.
    fn has_left(&self, context: &Context<'_, P>) -> bool {
        let slot = context.thread;
        self.workers.table.with(|table| {
            // Relaxed: only changed under this lock.
            let flag = slot.flag.load(Ordering::Relaxed);
            if slot.kind == ThreadKind::Spare {
                if flag & ThreadSlot::<P>::LEAVES == 0 {
                    return false; // It counts again already.
                }
                slot.flag.store(0, Ordering::Relaxed);
            } else if flag & ThreadSlot::<P>::RETIRES == 0 && !self.workers.is_stopping() {
                self.workers.active.fetch_add(1, Ordering::Relaxed);
                return false;
            }
            table.entry(slot.index).left = true;
            true
        })
    }

    /// Passes the work that is left, if there is any, to another worker.
    fn pass_on(&self, context: &Context<'_, P>) {
        // SeqCst, partner: the publisher's fence (F in `idle`): the publisher saw that this worker was
        // leaving, or this worker sees its ticket.
        P::fence(Ordering::SeqCst);
        if self.has_work() {
            if !P::omits(Omission::AnnounceBeforeLeaving) {
                // Threads that spin may have looked before the work was there.
                self.idle.bump();
            }
            if self.workers.active() == 0 {
                // Waiters run any job then.
                context.alert_all();
            }
            match self.idle.wake_one() {
                Some(slot) => context.wake_worker(slot),
                None => self.consider_spare(context),
            }
        }
    }
}

/// What a worker does next after its loop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Works,
    /// A spare, until it is needed again.
    Rests,
    Leaves,
}

/// A worker's thread, which adaptation knows of until it ends, in whatever way it ends.
struct Named<'a, P: Platform> {
    shared: &'a Shared<P>,
    index: usize,
}

impl<P: Platform> Drop for Named<'_, P> {
    fn drop(&mut self) {
        self.shared
            .adapt
            .thread_ended(self.shared, Some(self.index));
    }
}
