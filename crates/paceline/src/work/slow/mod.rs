//! Slow workers: workers on CPUs that are too slow for work with a deadline.
//!
//! They take *background* jobs, which wait in a queue of their own (the backlog), and shares of ranges that
//! another thread offers them ([`range`](super::range), `slow.rs`), and nothing else. Every thread may take
//! background jobs. Fast workers do so when there is nothing else, and every now and then when there is.
//!
//! Slow workers have an [`Idle`](crate::queues::Idle) of their own, with the same protocol. In that of the
//! fast workers each of them counts as blocked, because tickets that are published there are not for slow
//! workers. So no publisher wakes a slow worker for one, and if all fast workers are blocked in waits a spare
//! starts.
//!
//! `idle/README.md`, "Slow workers", says which worker is woken for a background job, and why no such job is
//! forgotten. An offered range is only a hint: the thread that has offered it runs it anyway.
//!
//! Invariants
//! - A slow worker runs no ticket from a deque or an inbox, not even from its own deque, where tickets made
//!   by its jobs wait for other workers. (In a wait it runs what it waits for, as every thread does.)
//! - Where there are no slow workers nothing here is written.

mod state;

use event::{EventKind, Nanos};
use platform::{Ordering, Parker, Platform};

use super::context::Context;
use super::range::OpenLoop;
use crate::queues::{Fenced, Queue};
use crate::store::{LaneFlags, Ticket};

pub(crate) use state::{Called, Slow};

impl<P: Platform> Context<'_, P> {
    /// A slow worker's loop, until it is to leave or to be a fast one.
    pub(crate) fn slow_loop(&self) {
        let shared = self.shared;
        let times_16 = shared.adapt.times_16(&self.thread.words);
        self.own(|own| {
            own.is_slow = true;
            own.slow_times_16 = times_16;
        });
        shared.idle.begin_block::<Fenced>();
        // This worker may have been the last that could run the tickets in the queues.
        shared.consider_spare(self);
        loop {
            while self.run_slow_work() {}
            self.graph().flush_finished();
            self.publish(Queue::Own, false);
            if !self.rest_until_slow_work() {
                break;
            }
        }
        self.own(|own| own.is_slow = false);
        shared.idle.end_block();
    }

    /// Runs a share of a range or a background job. False if there is none.
    fn run_slow_work(&self) -> bool {
        if self.must_stop_slow() {
            return false;
        }
        if let Some(offered) = OpenLoop::offered(self) {
            self.graph().flush_finished();
            let joined = offered.join_slowly();
            // This worker may have been the last to leave the range, and may have made ready what the range
            // held back.
            self.publish(Queue::Own, false);
            return joined;
        }
        let Some(job) = self.take_from_backlog() else {
            return false;
        };
        let lane = self.graph().lane_of(job);
        if lane != LaneFlags::BACKGROUND {
            // It was raised since it was queued here: it is for fast workers.
            self.give_back_place();
            self.enqueue_in(lane, job, Queue::Own);
        } else if self.start(job, self.shared.slot(job)) {
            self.graph().flush_finished();
        } else {
            self.give_back_place();
        }
        self.publish(Queue::Own, false);
        true
    }

    /// From the first look that found nothing to the next piece of work. False if this worker is no longer to
    /// be a slow one. It never spins: a slow CPU that does nothing saves energy, and its work can wait.
    fn rest_until_slow_work(&self) -> bool {
        let (idle, index) = (&self.shared.slow.idle, self.thread.index as usize);
        self.forget_stamp();
        idle.begin_search::<Fenced>();
        loop {
            let stops = self.must_stop_slow();
            if self.shared.adapt.refresh_is_requested() {
                self.end_slow_search();
                self.shared.adapt.refresh_if_requested(self);
                idle.begin_search::<Fenced>();
                continue;
            }
            if stops || self.has_slow_work() {
                self.end_slow_search();
                return !stops;
            }
            idle.begin_sleep::<Fenced>(index);
            self.record(EventKind::Park, Ticket::NONE, 0);
            let mut woken = false;
            let is_requested = || self.shared.adapt.refresh_is_requested();
            let is_needed = || self.has_slow_work() || is_requested() || self.must_stop_slow();
            while idle.is_asleep(index) && !is_needed() {
                self.thread.counters.parks.add(1);
                self.thread.parker.park(Nanos::MAX);
                woken = true;
            }
            let alone = idle.cancel_sleep(index);
            if let Some(report) = self.thread.wake_report(self.shared.platform.now(), None) {
                self.shared.slow.wake_cost.learn(report.latency);
            }
            self.record_unpark(Ticket::NONE);
            if woken && !alone && !is_needed() {
                self.thread.counters.wakes_useless.add(1);
            }
        }
    }

    /// This worker has found something, or has something else to do. The last searcher passes on what there
    /// is.
    fn end_slow_search(&self) {
        if self.shared.slow.idle.end_search::<Fenced>() && self.has_slow_work() {
            self.wake_for_slow_work();
        }
    }

    /// Whether this worker is to end its loop.
    fn must_stop_slow(&self) -> bool {
        self.must_leave() || !self.is_to_be_slow()
    }

    fn has_slow_work(&self) -> bool {
        self.shared.lanes.has_background() || OpenLoop::offered(self).is_some()
    }

    /// Wakes a worker to look at the backlog, or at the range on offer.
    fn wake_for_slow_work(&self) {
        let shared = self.shared;
        let slow = &shared.slow;
        match slow.call_for::<Fenced>(&shared.lanes.backlog, &shared.idle) {
            Called::Worker(thread) => self.wake_worker(thread),
            Called::Enough => {}
            Called::NoWorker => shared.consider_spare(self),
        }
    }

    /// A background job is ready: queues and announces it.
    #[cold]
    pub(crate) fn enqueue_in_backlog(&self, job: Ticket) {
        let shared = self.shared;
        shared.push_to(&shared.lanes.backlog, &[job]);
        // SeqCst, partner: the fence of a thread that has announced that it searches, sleeps or waits, before
        // it looks around.
        P::fence(Ordering::SeqCst);
        if shared.idle.load().watching > 0 {
            match shared.workers.active() {
                // Waiters run any job then.
                0 => self.alert_all(),
                _ => self.alert_watcher_of(job),
            }
        }
        self.announce_background();
    }

    /// There are tickets in the backlog, or a place for a worker that takes one; the caller has fenced.
    pub(crate) fn announce_background(&self) {
        let shared = self.shared;
        if shared.idle.load().wants_work() {
            shared.idle.bump();
        }
        if shared.lanes.has_background() {
            self.wake_for_slow_work();
        }
    }
}
