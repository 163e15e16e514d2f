//! A background job makes way for more urgent work ([`Context::checkpoint`]).
//!
//! A body cannot be taken off its thread. So the thread rests in the middle of it, and a spare worker takes
//! its place. More urgent jobs must not run on top of the body: they might wait for what it holds.
//!
//! A worker that has made way counts as blocked. There is a spare for each (`workers/spares.rs`), and the
//! spare leaves when the worker goes on. It is told to go on by
//! - a worker that finds nothing else, before it goes to sleep, and now and then a worker that does
//!   (`worker.rs`, fairness). As long as one has made way, no worker takes a job from the backlog, and a
//!   spare that has let one go on takes none either;
//! - a thread that raises one of the jobs that it is in the middle of;
//! - a thread that wants a spare and gets none.
//!
//! So there is always a worker that will do so, or the worker does not rest. It is listed, fences and looks;
//! the others act, fence and look at the list:
//!
//! ```text
//! worker that makes way                   another thread
//! W  is listed                            S  sleeps; blocks; leaves as a spare; raises its job
//! F  fence                                G  fence
//! R  reads the sleepers, the number of    L  reads the list
//!    workers, the lanes of its jobs
//! ```
//!
//! If R does not see S, then F comes before G in the order of fences, so L sees W.
//!
//! Every wait and every worker may have to have one go on, and most programs have no checkpoints. So they
//! call it through a pointer that the first checkpoint sets, and the linker leaves out what is behind it.
//!
//! `models/yields.rs` has it under loom.

use event::{EventKind, Nanos};
use platform::{Omission, Ordering, Parker, Platform};

use super::Context;
use super::yielders::Yielded;
use crate::queues::IdleWord;
use crate::store::{LaneFlags, Ticket};
use crate::work::thread_slot::ThreadKind;

impl<P: Platform> Context<'_, P> {
    /// Rests while work before the background waits for a worker, if this worker may rest here. Returns
    /// whether it did.
    pub(crate) fn make_way(&self) -> bool {
        // Slow workers and those that have lent their core are in nobody's way.
        let may_be_in_the_way =
            self.own(|own| own.lane == LaneFlags::BACKGROUND && !own.is_slow && !own.is_lent);
        if !may_be_in_the_way || self.thread.kind == ThreadKind::Guest || self.is_wanted_here() {
            return false;
        }
        if self.own(|own| !std::mem::replace(&mut own.is_lender, true)) {
            // Refused: it is there already.
            _ = self.shared.resume.set(|cx, yielded| cx.have_go_on(yielded));
            self.count_as_lender(true);
        }
        self.shared.is_short_of_workers() && self.rest_out_of_the_way()
    }

    /// Whether a worker in the background would soon make way for work of this thread's lane.
    #[inline]
    pub(crate) fn could_have_way(&self, idle: IdleWord) -> bool {
        idle.lending && self.is_before_background()
    }

    #[cold]
    #[inline(never)]
    fn is_before_background(&self) -> bool {
        self.lane() != LaneFlags::BACKGROUND
    }

    /// The innermost job here that came to a checkpoint is over.
    #[cold]
    pub(crate) fn lends_no_more(&self) {
        self.own(|own| own.is_lender = false);
        self.count_as_lender(false);
    }

    fn count_as_lender(&self, is_one: bool) {
        let shared = self.shared;
        shared.lanes.yielders().count_lender(is_one, &shared.idle);
    }

    /// Whether a job that this thread is in the middle of is not a background job, or is not one any more.
    fn is_wanted_here(&self) -> bool {
        let is_urgent = |job| self.graph().lane_of(job) != LaneFlags::BACKGROUND;
        self.any_running(|job| job.is_none() || is_urgent(job))
    }

    #[cold]
    fn rest_out_of_the_way(&self) -> bool {
        // Halves of joins that only this thread could run.
        self.promote_all();
        self.graph().flush_finished();
        self.wake_for_all();
        self.rest_without_place(|| {
            let (shared, index) = (self.shared, self.thread.index);
            let yielders = &shared.lanes.yielders();
            let mut jobs = vec![Ticket::NONE]; // It is listed in any case.
            self.any_running(|job| {
                jobs.push(job);
                false
            });
            yielders.add(index, &jobs, &shared.idle);
            // SeqCst (F of the module), partner: the fences of a worker that goes to sleep, blocks in a wait,
            // or leaves, and of a thread that raises one of the jobs.
            P::fence(Ordering::SeqCst);
            let goes_on = shared.idle.load().sleeping > 0 || self.is_wanted_here();
            let looks = !P::omits(Omission::LookBeforeYielding);
            if looks && (goes_on || !shared.replace_yielder(self)) {
                self.take_off(index);
                return false;
            }
            self.rest_until_resumed();
            true
        })
    }

    /// Rests as long as this worker is listed.
    fn rest_until_resumed(&self) {
        let (shared, thread) = (self.shared, self.thread);
        self.record(EventKind::MakesWay, Ticket::NONE, 0);
        thread.counters.yields.add(1);
        self.forget_stamp();
        while shared.lanes.yielders().is_listed(thread.index) {
            if shared.workers.is_stopping() {
                self.take_off(thread.index);
                break;
            }
            thread.counters.parks.add(1);
            thread.parker.park(Nanos::MAX);
        }
        self.shared.adapt.takes_over(self);
        self.forget_stamp();
        self.record(EventKind::GoesOn, Ticket::NONE, 0);
    }

    /// A worker that has made way goes on, if there is one: the first that did. Returns whether there was
    /// one. For a fast worker. `rests`: this one has nothing else to do.
    #[inline]
    pub(crate) fn resume_yielder(&self, rests: bool) -> bool {
        let yielded = if rests {
            Yielded::InPlace
        } else {
            Yielded::First
        };
        self.shared.lanes.yielders().count() > 0 && self.resume(yielded)
    }

    /// Jobs were raised, and a fence came after that: the workers that have made way in the middle of them go
    /// on.
    #[inline]
    pub(crate) fn resume_raised_yielders(&self) {
        if self.shared.lanes.yielders().count() > 0 {
            self.resume(Yielded::Raised);
        }
    }

    #[cold]
    #[inline(never)]
    fn resume(&self, yielded: Yielded) -> bool {
        // Acquire, partner: the Release store of the count, which the caller has read. What is called was put
        // in before the first worker was listed.
        P::fence(Ordering::Acquire);
        self.shared
            .resume
            .get()
            .is_some_and(|resume| resume(self, yielded))
    }

    /// Tells the workers that are meant to go on. Returns whether there was one.
    fn have_go_on(&self, yielded: Yielded) -> bool {
        let yielders = self.shared.lanes.yielders();
        match yielded {
            Yielded::First | Yielded::InPlace => {
                let first = yielders.remove(None, &self.shared.idle);
                if let Some(thread) = first {
                    if let Yielded::InPlace = yielded {
                        self.shared.adapt.hands_over(self, thread as usize);
                    }
                    self.note_resumed(thread);
                }
                first.is_some()
            }
            Yielded::Raised => {
                let is_raised = |job: Ticket| {
                    !job.is_none() && self.graph().lane_of(job) != LaneFlags::BACKGROUND
                };
                let mut has_found = false;
                while let Some(thread) = yielders.find_in(is_raised) {
                    has_found = true;
                    self.take_off(thread);
                }
                has_found
            }
        }
    }

    /// The worker on this thread slot goes on, if it has made way.
    fn take_off(&self, thread: u32) {
        let shared = self.shared;
        let removed = shared.lanes.yielders().remove(Some(thread), &shared.idle);
        if removed.is_some() {
            self.note_resumed(thread);
        }
    }

    /// The worker on this thread slot is no longer listed.
    fn note_resumed(&self, thread: u32) {
        if thread != self.thread.index {
            self.unpark(self.shared.threads.get(thread as usize));
        }
    }
}
