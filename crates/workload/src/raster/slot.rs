//! The place where one job leaves a buffer for the next one.
//!
//! A buffer is moved out of its slot, worked on, and moved back: while a job has it, it is the job's
//! own, so loops over it are loops over plain memory. The lock is held for the move only and never
//! fought over, because the graph lets one job at a time want it. A job that comes too early finds the
//! slot empty, or what an earlier frame left there, and its result is wrong: nothing is waited for
//! here that the job system should have waited for.
//!
//! The locks are the machine's own on every platform, as the words of results are ([`crate::words`]).

use std::sync::Arc;

use platform::{Lock, Memory, Os};

type OsLock<T> = <Os as Memory>::Lock<T>;

/// A place for one value.
pub(super) struct Slot<T: Send>(OsLock<Option<T>>);

impl<T: Send> Slot<T> {
    /// Leaves a value; the one before goes.
    pub(super) fn put(&self, value: T) {
        // Dropped after the lock is free.
        let _before = self.0.with(|slot| slot.replace(value));
    }
}

impl<T: Send + Default> Slot<T> {
    /// Takes the value, or an empty one if there is none.
    pub(super) fn take(&self) -> T {
        self.0.with(Option::take).unwrap_or_default()
    }

    /// Looks at the value.
    pub(super) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.0.with(|slot| look(slot.get_or_insert_default()))
    }
}

impl<T: Send + Sync + Default> Slot<Arc<T>> {
    /// The value, for many readers.
    pub(super) fn share(&self) -> Arc<T> {
        self.look(Arc::clone)
    }

    /// Takes a value that had many readers; an empty one if there is still a reader.
    pub(super) fn take_back(&self) -> T {
        Arc::into_inner(self.take()).unwrap_or_default()
    }
}

impl<T: Send> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot(OsLock::new(None))
    }
}
