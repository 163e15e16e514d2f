//! The name of a thread that jobs are pinned to.

use std::num::NonZeroU32;

/// Names the thread that a job is pinned to; from [`PinnedThread::pin`](crate::PinnedThread::pin). A plain
/// copy.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let main = js.pinned_thread();
/// let pin: paceline::ThreadPin = main.pin();
/// js.wait(js.job("present").pinned_to(pin).schedule(|_| ()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ThreadPin {
    pool: NonZeroU32,
    number: u32,
}

impl ThreadPin {
    pub(crate) fn new(pool: NonZeroU32, number: u32) -> ThreadPin {
        ThreadPin { pool, number }
    }

    /// Its number in this job system. In others it is none's.
    pub(crate) fn number_in(self, pool: NonZeroU32) -> u32 {
        if self.pool == pool { self.number } else { 0 }
    }
}
