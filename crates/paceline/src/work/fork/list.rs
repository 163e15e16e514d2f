//! The list of a thread's forks that are not jobs, or not yet.
//!
//! Invariant: the list holds unpromoted forks only, oldest at `first`, newest at `last`, and every
//! frame on it belongs to a `join` further down this thread's stack.

use std::cell::Cell;
use std::panic::Location;
use std::ptr;

use event::Nanos;

use crate::store::{Erased, Ticket};

/// A thread slot's unpromoted forks.
pub(crate) struct ForkList {
    first: *const ForkHeader,
    pub(super) last: *const ForkHeader,
    pub(super) len: u32,
    /// When the outermost join that is still open began, if the clock was read.
    pub(super) since: Nanos,
    /// How often a promotion was considered. It keeps the clock from being read each time.
    pub(super) tick: u32,
}

impl ForkList {
    pub(crate) fn new() -> Self {
        ForkList {
            first: ptr::null(),
            last: ptr::null(),
            len: 0,
            since: Nanos::MAX,
            tick: 0,
        }
    }

    /// Adds the newest fork.
    ///
    /// # Safety
    /// The frame stays where it is until it is off the list.
    #[inline]
    pub(super) unsafe fn push(&mut self, fork: *const ForkHeader) {
        // SAFETY: frames on the list are alive (the list's invariant), and only this thread touches their
        // links.
        unsafe {
            (*fork).older.set(self.last);
            if self.last.is_null() {
                self.first = fork
            } else {
                (*self.last).newer.set(fork)
            }
        }
        self.last = fork;
        self.len += 1;
    }

    /// Puts the oldest fork back.
    ///
    /// # Safety
    /// As for [`push`](ForkList::push).
    pub(super) unsafe fn push_oldest(&mut self, fork: *const ForkHeader) {
        // SAFETY: as in `push`.
        unsafe {
            (*fork).newer.set(self.first);
            if self.first.is_null() {
                self.last = fork
            } else {
                (*self.first).older.set(fork)
            }
        }
        self.first = fork;
        self.len += 1;
    }

    /// Takes the newest fork off: its owner has come back to it.
    #[inline]
    pub(super) fn pop(&mut self) {
        // SAFETY: as in `push`.
        unsafe {
            self.last = (*self.last).older.get();
            if self.last.is_null() {
                self.first = ptr::null()
            } else {
                (*self.last).newer.set(ptr::null())
            }
        }
        self.len -= 1;
    }

    /// Takes the oldest fork off, to be promoted.
    pub(super) fn pop_oldest(&mut self) -> Option<*const ForkHeader> {
        let fork = self.first;
        if fork.is_null() {
            return None;
        }
        // SAFETY: as in `push`.
        unsafe {
            self.first = (*fork).newer.get();
            if self.first.is_null() {
                self.last = ptr::null()
            } else {
                (*self.first).older.set(ptr::null())
            }
        }
        self.len -= 1;
        Some(fork)
    }
}

/// The part of a fork that does not depend on the closure's type.
pub(super) struct ForkHeader {
    pub(super) older: Cell<*const ForkHeader>,
    pub(super) newer: Cell<*const ForkHeader>,
    /// The job it became; [`Ticket::NONE`] while it is on the list.
    pub(super) job: Cell<Ticket>,
    /// Runs the fork that this header belongs to.
    pub(super) run: unsafe fn(*const ForkHeader, Erased<'_>),
    pub(super) site: &'static Location<'static>,
    /// The job that joins.
    pub(super) parent: Ticket,
}
