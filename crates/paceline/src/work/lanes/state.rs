//! What the lanes of a job system need beside the deques.

use platform::{Atomic, Lane, Memory, Ordering, Padded};

use super::shares::{SHARES, ShareSetting};
use super::yielders::Yielders;
use crate::queues::Injector;

/// A worker's place among those that run background jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BackgroundPlace {
    None,
    /// For the ticket that it has just taken from the backlog.
    Taken,
    /// It runs a background job.
    Held,
    /// It works for a lane with a share and a limit (`caps.rs`).
    InShare,
}

/// There has been a background job.
const BACKGROUND_USED: u32 = 1;
/// There has been a frame job.
const FRAME_USED: u32 = 2;
/// There has been a job of a scope in the backlog.
const PARTS_USED: u32 = 4;
/// There has been a job with a rank, or of a lane with a share.
const EXTRA_USED: u32 = 8;

/// What the lanes need beside the deques.
pub(crate) struct Lanes<M: Memory> {
    often: Padded<ReadOften<M>>,
    /// Frame jobs that are ready.
    pub(crate) front: Padded<Injector<M>>,
    /// Background jobs that are ready. Every thread that searches asks whether there are any, and nearly
    /// always there are none. So nothing that is written often may lie beside it.
    pub(crate) backlog: Padded<Injector<M>>,
    /// What was asked for the lanes that have a share.
    pub(crate) shares: [ShareSetting; SHARES],
    /// How many workers may run background jobs at a time; [`u32::MAX`]: all.
    background_max: u32,
    /// How many do. Written only if it is limited.
    background_now: Padded<M::AtomicU32>,
}

/// What every thread reads for every job or every search, and what is hardly ever written.
struct ReadOften<M: Memory> {
    /// What was ever used: [`BACKGROUND_USED`] and the others. It is written four times at most.
    used: M::AtomicU32,
    /// The workers that have made way in the middle of a background job.
    yielders: Yielders<M>,
}

impl<M: Memory> Lanes<M> {
    pub(crate) fn new(background_max: Option<u32>, shares: [ShareSetting; SHARES]) -> Lanes<M> {
        Lanes {
            often: Padded(ReadOften {
                used: M::AtomicU32::new(0),
                yielders: Yielders::new(),
            }),
            front: Padded(Injector::new()),
            backlog: Padded(Injector::new()),
            shares,
            background_max: background_max.unwrap_or(u32::MAX),
            background_now: Padded(M::AtomicU32::new(0)),
        }
    }

    /// The workers that have made way in the middle of a background job.
    #[inline]
    pub(crate) fn yielders(&self) -> &Yielders<M> {
        &self.often.yielders
    }

    /// Whether the worker on this thread slot rests in the middle of a background job, for a report.
    pub(crate) fn makes_way(&self, thread: u32) -> bool {
        self.often.yielders.count() > 0 && self.often.yielders.is_listed(thread)
    }

    /// Whether a wait may have to raise something.
    #[inline(always)]
    pub(crate) fn are_used(&self) -> bool {
        // Relaxed: a thread that raises has seen that there is something to raise, or is its maker. A thread
        // that sees it late is in the same race as for any queue.
        self.often.used.load(Ordering::Relaxed) & !EXTRA_USED != 0
    }

    /// Whether there has been a frame job, so that the front queue and raises to it matter.
    #[inline(always)]
    pub(crate) fn front_is_used(&self) -> bool {
        // Relaxed: as above.
        self.often.used.load(Ordering::Relaxed) & FRAME_USED != 0
    }

    /// Whether there have been frame jobs, jobs with a rank or lanes with a share: some jobs may go first.
    #[inline(always)]
    pub(crate) fn some_go_first(&self) -> bool {
        // Relaxed: as above.
        self.often.used.load(Ordering::Relaxed) & (FRAME_USED | EXTRA_USED) != 0
    }

    /// Jobs with a rank, or of a lane with a share, are going to be made.
    pub(super) fn note_extra(&self) {
        self.add_use(EXTRA_USED);
    }

    /// Whether there is a background job that another worker may run.
    #[inline]
    pub(crate) fn has_background(&self) -> bool {
        !self.backlog.is_empty() && self.has_place()
    }

    /// Whether one more worker may run background jobs.
    pub(super) fn has_place(&self) -> bool {
        // Relaxed: a worker that sees an old number is in the same race as for any queue: see `places`.
        !self.is_limited() || self.background_now.load(Ordering::Relaxed) < self.background_max
    }

    pub(super) fn is_limited(&self) -> bool {
        self.background_max != u32::MAX
    }

    /// One more worker runs background jobs. False if there is no place for it.
    pub(crate) fn take_place(&self) -> bool {
        let now = &self.background_now;
        let mut seen = now.load(Ordering::Relaxed);
        while seen < self.background_max {
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
    pub(super) fn take_place_back(&self) {
        self.background_now.fetch_add(1, Ordering::Relaxed);
    }

    /// One worker less runs background jobs. The caller announces that.
    pub(super) fn leave_place(&self) {
        self.background_now.fetch_sub(1, Ordering::Relaxed);
    }

    /// Jobs of this lane are going to be made.
    pub(crate) fn note_use(&self, lane: Lane) {
        let used = match lane {
            Lane::Frame => FRAME_USED,
            Lane::Background => BACKGROUND_USED,
            _ => return,
        };
        self.add_use(used);
    }

    /// A job of a scope is going to be put into the backlog.
    pub(super) fn note_part(&self) {
        self.add_use(PARTS_USED);
    }

    /// Whether there may be jobs of scopes in the backlog. If not, a raise need not look through it, and a
    /// long backlog costs a wait nothing.
    pub(super) fn may_have_parts(&self) -> bool {
        // Relaxed: a raise that does not see the maker's store fenced before the maker did. So the maker sees
        // the raise when it looks again.
        self.often.used.load(Ordering::Relaxed) & PARTS_USED != 0
    }

    fn add_use(&self, used: u32) {
        if self.often.used.load(Ordering::Relaxed) & used == 0 {
            self.often.used.fetch_or(used, Ordering::Relaxed);
        }
    }
}
