//! Names for the words, parkers and locks of a run.
//!
//! Objects are told apart by a number, never by their address: addresses differ from run to run. The number
//! is given at the first use in a run, in the order of first uses, so it is a function of the schedule. It
//! depends neither on other runs in this process nor on when the object was made.
//!
//! Invariant: the state a tag carries belongs to the run its number was given in; a later run that uses the
//! object starts from zero. So an object that a stopped run left in the middle of an operation is usable
//! again.

use std::panic::Location;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The name of an object. All accesses are Relaxed: within a run there is one OS thread, and
/// between runs the owner of the object hands it over.
#[derive(Debug)]
pub(crate) struct Tag {
    /// Run (upper half) and number in that run.
    name: AtomicU64,
    /// The number of threads that are blocked on the object.
    waiting: AtomicU32,
    made_at: &'static Location<'static>,
}

impl Tag {
    #[track_caller]
    pub(crate) fn new() -> Tag {
        let made_at = Location::caller();
        Tag {
            name: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            made_at,
        }
    }

    pub(super) fn set_name(&self, run: u32, id: u32) {
        let name = u64::from(run) << 32 | u64::from(id);
        self.name.store(name, Ordering::Relaxed);
    }

    /// The object's number in this run; `next` gives out a new one.
    #[inline]
    pub(crate) fn id(&self, run: u32, next: impl FnOnce() -> u32) -> u32 {
        let name = self.name.load(Ordering::Relaxed);
        if (name >> 32) as u32 == run {
            return name as u32;
        }
        let id = next();
        self.set_name(run, id);
        self.waiting.store(0, Ordering::Relaxed);
        id
    }

    pub(crate) fn made_at(&self) -> &'static Location<'static> {
        self.made_at
    }

    /// Whether a thread may be blocked on the object.
    #[inline]
    pub(crate) fn has_waiters(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn add_waiter(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove_waiter(&self) {
        let before = self.waiting.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a thread that had not been added leaves");
    }
}
