//! Indices for threads of a job system that is not ours: a thread gets the smallest that is free when it
//! first runs something of rayon's, and keeps it until it ends.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

/// Which indices are taken.
#[derive(Debug, Default)]
pub(super) struct Seats(Mutex<Vec<bool>>);

/// A thread's index.
struct Seat {
    of: Arc<Seats>,
    index: usize,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.of.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken[self.index] = false;
    }
}

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

impl Seats {
    /// The calling thread's index. Two threads never have the same at the same time.
    pub(super) fn of_this_thread(self: &Arc<Self>) -> usize {
        SEAT.with_borrow_mut(|seat| {
            if let Some(seat) = seat.as_ref().filter(|seat| Arc::ptr_eq(&seat.of, self)) {
                return seat.index;
            }
            let index = self.take();
            *seat = Some(Seat {
                of: Arc::clone(self),
                index,
            });
            index
        })
    }

    fn take(&self) -> usize {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = taken.iter().position(|taken| !taken);
        let index = free.unwrap_or(taken.len());
        if index == taken.len() {
            taken.push(true);
        } else {
            taken[index] = true;
        }
        index
    }
}
