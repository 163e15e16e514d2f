//! Indices for threads of a job system that is not ours. A worker has its own number. Any other thread that
//! runs something of rayon's has the smallest number behind them that is free, as long as it runs that.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Which indices are taken, besides the workers'.
#[derive(Debug)]
pub(super) struct Seats {
    workers: usize,
    taken: Mutex<Vec<bool>>,
}

/// A thread's index, for a while.
#[derive(Debug)]
pub(super) struct Seat<'s> {
    of: &'s Seats,
    place: usize,
}

impl Seat<'_> {
    pub(super) fn index(&self) -> usize {
        self.of.workers + self.place
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.of.taken()[self.place] = false;
    }
}

impl Seats {
    /// So many workers have an index each.
    pub(super) fn behind(workers: usize) -> Seats {
        Seats {
            workers,
            taken: Mutex::default(),
        }
    }

    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    fn taken(&self) -> MutexGuard<'_, Vec<bool>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The smallest that is free. Two threads never have the same at the same time.
    pub(super) fn take(&self) -> Seat<'_> {
        let mut taken = self.taken();
        let free = taken.iter().position(|taken| !taken);
        let place = free.unwrap_or(taken.len());
        if place == taken.len() {
            taken.push(true);
        } else {
            taken[place] = true;
        }
        Seat { of: self, place }
    }
}
