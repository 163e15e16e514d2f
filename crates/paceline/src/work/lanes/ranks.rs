//! Jobs with a rank: those of graphs and frames that begin first what holds up the rest (`order`).
//!
//! They are of the normal lane, and go before all others of it, in an order that all threads share: the
//! greatest rank first. The thread that makes several of them ready announces them together. If it is a
//! worker that takes its next ticket now, it keeps the best one in its own deque, so that no other thread is
//! woken for it. Before it takes that, it looks whether the queue has a better one. If so, or if it takes
//! anything else first, it puts its own into the queue: in a deque other threads would find it last.
//!
//! A job in the middle of which a thread invites others to a loop gives its rank to the invitation.
//!
//! A waiter runs only what it waits for, and knows jobs of frames by its marks (`wait`). So where frames have
//! such jobs it marks all that it needs before it takes its first one from the queue.
//!
//! The queue is made with the first such graph (`extra.rs`).

use platform::{Atomic, Ordering, Platform};

use super::looks_for_raise;
use crate::queues::{Fenced, Queue};
use crate::store::{LaneFlags, Rank, Slot, Ticket};
use crate::work::context::Context;
use crate::work::thread_slot::ThreadKind;

impl<P: Platform> Context<'_, P> {
    /// Puts a job with a rank, which is ready, into the queue. [`Context::announce_ranked`] announces it.
    pub(crate) fn queue_ranked(&self, job: Ticket, rank: Rank) {
        match self.extra_lanes() {
            Some(extra) => extra.push(job, rank),
            None => unreachable!("the queue was made before the rank"),
        }
    }

    /// A job of the normal lane is ready. If it has a rank it goes into the queue and is announced, unless
    /// this is a worker that is about to take its next ticket: that keeps the best one.
    pub(super) fn enqueue_by_rank(&self, job: Ticket, queue: Queue) {
        let mut other = (self.rank_of(job), job);
        if other.0 != Rank::NONE {
            let takes_next = !self.is_called_back() && self.thread.kind != ThreadKind::Guest;
            if queue == Queue::Inbox || !takes_next {
                return self.queue_one_ranked(other);
            }
            let kept = self.rank_of_newest();
            if kept >= other.0 {
                return self.queue_one_ranked(other);
            }
            if kept != Rank::NONE
                && let Some(ticket) = self.thread.deque.take_newest()
            {
                self.own(|own| own.fresh = own.fresh.saturating_sub(1));
                other = (kept, ticket);
            }
        }
        self.enqueue(job, queue);
        if other.1 != job {
            self.queue_one_ranked(other);
        }
    }

    fn queue_one_ranked(&self, (rank, job): (Rank, Ticket)) {
        self.queue_ranked(job, rank);
        self.announce_ranked(1, job);
    }

    /// Announces so many jobs that were put into the queue: the parts of a scope, which no wait can name and
    /// which are raised with it; or one job.
    pub(crate) fn announce_ranked(&self, count: u32, whole: Ticket) {
        if let Some(now) = self.shared.idle.after_publish::<Fenced>() {
            self.notify_idle(now, count, &|| self.alert_watcher_of(whole));
        }
        // That was F of the module above.
        if self.shared.lanes.front_is_used()
            && self.graph().lane_of(whole) == LaneFlags::FRAME
            && looks_for_raise::<P>()
        {
            self.move_raised();
        }
    }

    /// Jobs that were raised meanwhile go to the frame jobs.
    #[cold]
    fn move_raised(&self) {
        let mut is_raised = |ticket: Ticket| {
            let graph = self.graph();
            graph.slots.exists(ticket.index())
                && graph.lane_of(ticket) == LaneFlags::FRAME
                // Relaxed: the lane that it was made in does not change.
                && !LaneFlags::is_ahead(self.shared.slot(ticket).flags.load(Ordering::Relaxed))
        };
        while let Some(job) = self
            .extra_lanes()
            .and_then(|extra| extra.take(&mut is_raised))
        {
            self.enqueue_in_front(job);
        }
    }

    /// The rank by which helpers come to the loop of a job of a frame, if the job was made with one.
    pub(crate) fn rank_of_loops(&self, job: Ticket, slot: &Slot<P>) -> Option<Rank> {
        // Relaxed: the flag does not change.
        if slot.flags.load(Ordering::Relaxed) & Slot::<P>::IS_RANKED == 0 {
            return None;
        }
        self.shared
            .order
            .get()
            .map(|order| order.rank_of_loops(job))
    }

    /// Runs something with that rank.
    pub(crate) fn with_rank<R>(&self, rank: Rank, run: impl FnOnce() -> R) -> R {
        let outer = self.own(|own| std::mem::replace(&mut own.rank, rank));
        let result = run();
        self.own(|own| own.rank = outer);
        result
    }

    /// The rank of the newest ticket of the own deque.
    pub(super) fn rank_of_newest(&self) -> Rank {
        self.peek_newest()
            .map_or(Rank::NONE, |ticket| self.rank_of(ticket))
    }

    /// The rank of a job that is ready.
    fn rank_of(&self, job: Ticket) -> Rank {
        // Relaxed: acquired with the ticket, or the ticket is stale.
        Rank::in_place(self.shared.slot(job).place.load(Ordering::Relaxed))
    }

    /// Moves the newest ticket of the own deque into the queue, if it has a rank.
    pub(super) fn queue_newest(&self) {
        let Some(ticket) = self.thread.deque.take_newest() else {
            return; // It was stolen.
        };
        match self.rank_of(ticket) {
            Rank::NONE => self.enqueue(ticket, Queue::Own),
            rank => {
                self.queue_ranked(ticket, rank);
                self.announce_ranked(1, ticket);
            }
        }
    }
}
