//! Limits on how many workers run jobs of a lane with a share at a time
//! ([`Builder::shares_at_most`](crate::Builder::shares_at_most)).
//!
//! A worker takes a *place* in the lane before it takes a job from the lane's queue. It keeps it until it
//! looks for its next job and turns to another lane, so jobs of one lane that follow each other cost nothing
//! more. As for the background (`places.rs`), a wait that runs such a job needs no place; while a worker
//! rests in the middle of one its place is free, so that jobs that wait for each other cannot use up all
//! places; and then it has its place back, even if that is one too many.
//!
//! A lane with jobs and no place is no work: workers go to sleep beside it. So leaving a place is like
//! publishing a job ([`Context::announce_in_lane`]):
//!
//! ```text
//! worker that leaves its place            worker going to sleep
//! W  places - 1                           S  searching - 1, sleeping + 1
//! F  fence                                G  fence
//! R  reads the queue, the idle word       L  reads the queue, the places
//! ```
//!
//! The same goes for the thread that puts a job into the queue (W) and wakes no worker since there is no
//! place (R): the worker that leaves its place (S) looks at the queue behind its fence (L).
//!
//! `models/caps.rs` has it under loom.

use platform::{Atomic, Memory, Ordering, Padded, Platform};

use super::Context;
use super::shares::SHARES;
use crate::queues::{Deque, IdleWord};
use crate::store::Ticket;

/// The limits of the lanes with a share. Lanes have their numbers here, from 1 on.
pub(super) struct ShareCaps<M: Memory> {
    /// How many workers may work for each; 0: all.
    most: [u16; SHARES],
    /// How many do. Written only where they are limited.
    now: [Padded<M::AtomicU32>; SHARES],
}

impl<M: Memory> ShareCaps<M> {
    pub(super) fn new(most: [u16; SHARES]) -> ShareCaps<M> {
        ShareCaps {
            most,
            now: std::array::from_fn(|_| Padded(M::AtomicU32::new(0))),
        }
    }

    fn most(&self, lane: usize) -> u32 {
        self.most[lane - 1].into()
    }

    pub(super) fn is_limited(&self, lane: usize) -> bool {
        self.most(lane) != 0
    }

    /// Whether one more worker may work for the lane.
    pub(super) fn has_place(&self, lane: usize) -> bool {
        // Relaxed: a worker that sees an old number is in the same race as for any queue: see above.
        !self.is_limited(lane) || self.now[lane - 1].load(Ordering::Relaxed) < self.most(lane)
    }

    /// One more worker works for the lane, which is limited. False if there is no place for it.
    pub(super) fn take(&self, lane: usize) -> bool {
        let now = &self.now[lane - 1];
        let mut seen = now.load(Ordering::Relaxed);
        while seen < self.most(lane) {
            // Relaxed, both: only the number counts.
            let relaxed = Ordering::Relaxed;
            match now.compare_exchange(seen, seen + 1, relaxed, relaxed) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
        false
    }

    /// The same for a worker that was resting, whether there is a place for it or not.
    pub(super) fn take_back(&self, lane: usize) {
        self.now[lane - 1].fetch_add(1, Ordering::Relaxed);
    }

    /// One worker less works for the lane. The caller announces that.
    pub(super) fn leave(&self, lane: usize) {
        self.now[lane - 1].fetch_sub(1, Ordering::Relaxed);
    }
}

impl<P: Platform> Context<'_, P> {
    /// A job of a limited lane was queued, or a place in that lane was left. `is_ready`: whether there is a
    /// job that a further worker may take.
    pub(super) fn announce_in_lane(&self, job: Ticket, is_ready: impl FnOnce() -> bool) {
        // SeqCst, partner: the fence of a worker that goes to sleep or of a waiter before its last look, and
        // that of the other of these two (F of the module).
        P::fence(Ordering::SeqCst);
        let Some(now) = self.shared.idle.load_if(IdleWord::NOT_BUSY) else {
            return;
        };
        if is_ready() {
            self.notify_idle(now, 1, &|| self.alert_watcher_of(job));
        } else if now.watching > 0 {
            match self.shared.workers.active() {
                // Waiters run any job then.
                0 => self.alert_all(),
                _ => self.alert_watcher_of(job),
            }
        }
    }

    /// Whether there is a job in the normal lane, without those with a rank, or a frame job.
    pub(super) fn sees_normal_job(&self) -> bool {
        let shared = self.shared;
        let has_inbox = |inbox: &Deque<P>| inbox.len() > 0;
        !shared.injector.is_empty()
            || !shared.lanes.front.is_empty()
            || shared.threads.iter().any(|thread| {
                thread.deque.len() > 0 || thread.inbox.as_ref().is_some_and(has_inbox)
            })
    }
}
