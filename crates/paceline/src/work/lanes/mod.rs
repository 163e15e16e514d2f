//! Lanes: which ready job goes first.
//!
//! | lane | ready jobs wait in | and are taken |
//! |---|---|---|
//! | frame | the *front queue*, which all threads share | before all else |
//! | frame, of a frame that is ahead (`in_flight.rs`) | the queue of those with a rank | behind those |
//! | normal, with a rank | a queue that all threads share (`ranks.rs`) | greatest rank first |
//! | normal | the deques, the inboxes and the injector | as `worker.rs` says |
//! | normal, of a later frame (`in_flight.rs`) | a side lane (`side.rs`) | after all normal ones |
//! | with a share | a side lane each (`shares.rs`, `caps.rs`) | by the time that each lane has used |
//! | background | the backlog, which all threads share | after all else, and now and then (`slow`) |
//!
//! A job is made in the lane that its description says, or in that of the job that makes it. A wait raises
//! what it waits for to its own lane ([`raise`]). A job of a scope is also in the lane of the
//! scope, and of the job that has opened it, since these do not end before it.
//!
//! The front queue is one queue under a lock, since few jobs should go there. Its order is that in which jobs
//! became ready, whichever thread made them so.
//!
//! # A raise and a job that becomes ready
//!
//! A ready job's ticket lies in the queue of its lane. The thread that makes a job ready and the thread that
//! raises it may be at it in the same moment. Either may have the last word, and both may queue a ticket,
//! since a second one does no harm:
//!
//! ```text
//! maker                                   raiser
//! W  state: ready; puts the ticket        S  adds the flags
//!    where the flags say
//! F  fence                                G  fence
//! R  reads the flags again                L  reads the state
//!    (more urgent? once more)                (ready? puts a ticket there)
//! ```
//!
//! If R does not see S, then F comes before G in the order of fences, so L sees W. F is the fence that
//! announces the ticket in any case. R is left out as long as only one lane is in use. Of a ticket that its
//! maker keeps for itself and does not announce, it is the maker that runs it next.
//!
//! `models/lanes.rs` has it under loom, with each of the fences and looks left out.

mod caps;
mod extra;
mod in_flight;
mod places;
mod raise;
mod ranks;
mod shares;
mod side;
mod state;
mod yielders;
mod yields;

use platform::{Atomic, Omission, Ordering, Platform};

use super::context::Context;
use super::thread_slot::ThreadKind;
use crate::queues::Queue;
use crate::store::{LaneFlags, Slot, Ticket};

pub(crate) use shares::{SHARES, ShareLocal, ShareSetting};
pub(crate) use state::{BackgroundPlace, Lanes};
pub(crate) use yielders::Yielded;

impl<P: Platform> Context<'_, P> {
    /// The lane in which this thread works, which is that of the job that runs here: what it waits for is
    /// raised to it.
    #[inline]
    pub(crate) fn lane(&self) -> LaneFlags {
        let lane = self.own(|own| own.lane);
        if lane == LaneFlags::NORMAL && !self.shared.lanes.front_is_used() {
            return lane;
        }
        self.lane_by_now(lane)
    }

    /// The job that runs here may have been raised since it began.
    #[cold]
    fn lane_by_now(&self, lane: LaneFlags) -> LaneFlags {
        match self.current_job() {
            Ticket::NONE => lane,
            job => match self.graph().lane_of(job) {
                by_now if lane.includes(by_now) => lane, // With its tag.
                by_now => lane.or(by_now),
            },
        }
    }

    /// Queues a ready job of which the flags alone do not say that it is in the normal lane. Outside of that
    /// lane it is announced, too.
    #[cold]
    pub(crate) fn enqueue_in_lane(&self, job: Ticket, queue: Queue) {
        let lane = self.graph().lane_of(job);
        // Relaxed: written before the job was ready.
        let flags = self.shared.slot(job).flags.load(Ordering::Relaxed);
        if LaneFlags::is_ahead(flags) {
            return self.enqueue_beside(LaneFlags::made_in(flags), job, queue);
        }
        if lane.is_urgent() {
            return self.enqueue_in(lane, job, queue);
        }
        if flags & Slot::<P>::IN_SCOPE != 0 {
            self.shared.lanes.note_part();
        }
        match lane {
            LaneFlags::BACKGROUND => self.enqueue_in_backlog(job),
            beside => self.enqueue_beside(beside, job, queue),
        }
        // The fence behind that is F of the module.
        let by_now = self.graph().lane_of(job);
        if by_now != lane && looks_for_raise::<P>() {
            self.enqueue_in(by_now, job, queue);
        }
    }

    /// Queues a ready job in the normal lane or a more urgent one. In the normal one the caller announces it.
    pub(crate) fn enqueue_in(&self, lane: LaneFlags, job: Ticket, queue: Queue) {
        match lane {
            LaneFlags::NORMAL => match self.extra_lanes() {
                Some(extra) => extra.enqueue_by_rank(self, job, queue),
                None => self.enqueue(job, queue),
            },
            _ => self.enqueue_in_front(job),
        }
    }

    /// A frame job is ready: queues and announces it.
    #[cold]
    pub(crate) fn enqueue_in_front(&self, job: Ticket) {
        self.shared.push_to(&self.shared.lanes.front, &[job]);
        self.announce_one(job);
    }

    /// The frame job that has been ready longest.
    #[inline]
    pub(crate) fn take_from_front(&self) -> Option<Ticket> {
        if self.shared.lanes.front.is_empty() {
            return None;
        }
        self.take_next_in_front()
    }

    #[inline(never)]
    fn take_next_in_front(&self) -> Option<Ticket> {
        self.works_for_normal_lane();
        self.shared.lanes.front.take(1).first().copied()
    }

    /// What this thread does from now on is not for a lane with a share, whatever it did until now.
    #[inline(never)]
    pub(crate) fn works_for_normal_lane(&self) {
        if let Some(extra) = self.extra_lanes() {
            extra.work_for_normal_lane(self);
        }
    }

    /// The first of the frame jobs, or of the extra lanes, for a thread that may have kept a ticket
    /// unannounced, in order to run it next.
    #[cold]
    pub(crate) fn next_that_goes_first(&self) -> Option<Ticket> {
        let Some(ticket) = self.take_from_front() else {
            return self.extra_lanes()?.next(self);
        };
        // Guests announce all tickets they make.
        if self.thread.kind != ThreadKind::Guest {
            self.announce_what_is_left();
        }
        Some(ticket)
    }

    /// Tickets were announced (F of the module): those whose jobs were raised meanwhile are queued in front,
    /// too.
    #[cold]
    pub(crate) fn queue_raised(&self, fresh: u32, queue: Queue) {
        let mut left = fresh;
        let mut raised = Vec::new();
        self.deque_for(queue).scan(|ticket| {
            let exists = self.graph().slots.exists(ticket.index());
            if exists && self.graph().lane_of(ticket) == LaneFlags::FRAME && looks_for_raise::<P>()
            {
                raised.push(ticket);
            }
            left -= 1;
            left == 0
        });
        for ticket in raised {
            self.enqueue_in_front(ticket);
        }
    }
}

/// The look R of the module.
#[inline(always)]
fn looks_for_raise<P: Platform>() -> bool {
    !P::omits(Omission::LookForRaise)
}
