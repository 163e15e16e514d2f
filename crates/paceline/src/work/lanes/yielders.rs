//! The workers that have made way for more urgent work in the middle of a background job.

use platform::{Atomic, Lock, Memory, Ordering};

use crate::queues::Idle;
use crate::store::Ticket;

/// The workers that are to go on.
#[derive(Clone, Copy)]
pub(crate) enum Yielded {
    /// The one that made way first.
    First,
    /// The same, on the CPU of the calling thread, which is about to rest.
    InPlace,
    /// Those in the middle of a job that is no longer in the background.
    Raised,
}

/// The workers that have made way, and those that would. One that is listed counts as blocked, and is counted
/// here first and last. So a thread that finds none here, then one that is blocked, then none here, has seen
/// another one that is blocked.
pub(crate) struct Yielders<M: Memory> {
    /// How many workers have made way. Threads that search read it.
    count: M::AtomicU32,
    lists: M::Lock<Lists>,
}

#[derive(Default)]
struct Lists {
    /// The workers that have made way, in that order, each with every job that it is in the middle of.
    listed: Vec<(u32, Ticket)>,
    /// How many workers run a background job that has come to a checkpoint, and so may come to another one.
    lenders: usize,
}

impl<M: Memory> Yielders<M> {
    pub(super) fn new() -> Yielders<M> {
        Yielders {
            count: M::AtomicU32::new(0),
            lists: M::Lock::new(Lists::default()),
        }
    }

    /// How many workers have made way.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        // Relaxed: a thread that sees it late is in the same race as for any queue; see `yields`.
        self.count.load(Ordering::Relaxed) as usize
    }

    /// One more worker, or one less, runs a job that comes to checkpoints. `idle` says to joins and loops
    /// whether there is any.
    pub(super) fn count_lender(&self, is_one: bool, idle: &Idle<M>) {
        self.lists.with(|lists| {
            let before = lists.lenders;
            lists.lenders = if is_one { before + 1 } else { before - 1 };
            if before.min(lists.lenders) == 0 {
                idle.set_lending(is_one);
            }
        });
    }

    /// The worker on this thread slot makes way, in the middle of these jobs (at least one). From now on it
    /// counts as blocked; the caller's fence comes after this.
    pub(super) fn add(&self, thread: u32, jobs: &[Ticket], idle: &Idle<M>) {
        debug_assert!(!jobs.is_empty(), "it would not be listed");
        self.lists.with(|lists| {
            let listed = jobs.iter().map(|&job| (thread, job));
            lists.listed.extend(listed);
            self.set_count(self.count() + 1);
            idle.count_blocked();
        });
    }

    /// The worker on this thread slot is to go on; without one, the worker that made way first. It
    /// counts as a free one at once, so that the spare in its place leaves. Returns which it is: none if it
    /// was told so before.
    pub(super) fn remove(&self, thread: Option<u32>, idle: &Idle<M>) -> Option<u32> {
        self.lists.with(|lists| {
            let thread = thread.or_else(|| Some(lists.listed.first()?.0))?;
            let before = lists.listed.len();
            lists.listed.retain(|&(other, _)| other != thread);
            (lists.listed.len() < before).then(|| {
                idle.end_block();
                self.set_count(self.count() - 1);
                thread
            })
        })
    }

    /// Whether the worker on this thread slot is not yet to go on.
    pub(super) fn is_listed(&self, thread: u32) -> bool {
        let is_it = |&(other, _): &(u32, Ticket)| other == thread;
        self.lists.with(|lists| lists.listed.iter().any(is_it))
    }

    /// A worker that has made way in the middle of a job that `is_meant` means.
    pub(super) fn find_in(&self, is_meant: impl Fn(Ticket) -> bool) -> Option<u32> {
        let is_meant = |&&(_, job): &&(u32, Ticket)| is_meant(job);
        let found = |lists: &mut Lists| {
            lists
                .listed
                .iter()
                .find(is_meant)
                .map(|&(thread, _)| thread)
        };
        self.lists.with(found)
    }

    /// Under the lock.
    fn set_count(&self, count: usize) {
        // Release, partner: the fence of a thread that has workers go on.
        self.count.store(count as u32, Ordering::Release);
    }
}
