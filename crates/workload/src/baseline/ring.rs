//! A bounded lock-free queue for any number of producers and consumers.
//!
//! The source says "lock-free, multiple-producer, multiple-consumer queue" and that taking something takes
//! "at least one CAS loop"; it does not say which queue it was. Ours is D. Vyukov's bounded queue
//! (1024cores.net, "Bounded MPMC queue"), the best known one of that kind: each cell has a sequence number
//! that tells whether it is free or full in this round, and a CAS on the position takes the cell. A cell is
//! one word here (sequence number above, entry below), so that no `unsafe` is needed.
//!
//! Invariants, for a ring of n cells: cell i holds a sequence number s with s mod n = i if it is free for
//! position s, and s - 1 mod n = i if it holds the entry of position s - 1. `head` and `tail` only grow.

use std::cmp::Ordering as Compared;

use platform::{Atomic, Ordering, Padded, Platform};

/// A queue of 32-bit entries.
pub(super) struct Ring<P: Platform> {
    /// The next position to take from.
    head: Padded<P::AtomicU64>,
    /// The next position to put to.
    tail: Padded<P::AtomicU64>,
    /// Eight to a line.
    cells: Box<[P::AtomicU64]>,
}

/// A cell's word.
fn cell(sequence: u64, entry: u32) -> u64 {
    sequence << 32 | u64::from(entry)
}

/// How the cell's sequence number compares with this one. Both are 32 bits of numbers that only grow.
fn compare(cell: u64, sequence: u64) -> Compared {
    let ahead = ((cell >> 32) as u32).wrapping_sub(sequence as u32) as i32;
    ahead.cmp(&0)
}

impl<P: Platform> Ring<P> {
    /// An empty queue for at least `entries` entries.
    pub(super) fn new(entries: usize) -> Ring<P> {
        let cells = entries.next_power_of_two().max(2) as u64;
        let word = || Padded(P::on_own_lines(|| P::AtomicU64::new(0)));
        let free = |position| P::AtomicU64::new(cell(position, 0));
        Ring {
            head: word(),
            tail: word(),
            cells: P::on_own_lines(|| (0..cells).map(free).collect()),
        }
    }

    /// Adds an entry; false if the queue is full.
    #[must_use]
    pub(super) fn enqueue(&self, entry: u32) -> bool {
        loop {
            // Relaxed: the cell says whether the position is right, and the CAS whether it still is.
            let position = self.tail.load(Ordering::Relaxed);
            // Acquire, partner: the Release store in `dequeue` that frees the cell.
            match compare(self.at(position).load(Ordering::Acquire), position) {
                Compared::Less => return false,
                Compared::Greater => continue,
                Compared::Equal => {}
            }
            if advance(&*self.tail, position) {
                // Release, partner: the Acquire load in `oldest`.
                let full = cell(position + 1, entry);
                self.at(position).store(full, Ordering::Release);
                return true;
            }
        }
    }

    /// Takes the oldest entry. `None` if there is none, or if it is just being written.
    pub(super) fn dequeue(&self) -> Option<u32> {
        loop {
            let (position, entry) = self.oldest()?;
            if advance(&*self.head, position) {
                let free = cell(position + self.cells.len() as u64, 0);
                // Release, partner: the Acquire load in `enqueue`.
                self.at(position).store(free, Ordering::Release);
                return Some(entry);
            }
        }
    }

    /// Whether there is nothing to take at this moment.
    pub(super) fn is_empty(&self) -> bool {
        self.oldest().is_none()
    }

    /// The oldest entry and its position.
    fn oldest(&self) -> Option<(u64, u32)> {
        loop {
            // Relaxed: as in `enqueue`.
            let position = self.head.load(Ordering::Relaxed);
            // Acquire, partner: the Release store in `enqueue`.
            let found = self.at(position).load(Ordering::Acquire);
            match compare(found, position + 1) {
                Compared::Less => return None,
                Compared::Equal => return Some((position, found as u32)),
                // Another thread has taken it in between.
                Compared::Greater => {}
            }
        }
    }

    fn at(&self, position: u64) -> &P::AtomicU64 {
        &self.cells[(position % self.cells.len() as u64) as usize]
    }
}

/// Takes a position. Relaxed: entries are published by the cell.
fn advance<A: Atomic<u64>>(word: &A, position: u64) -> bool {
    let taken = word.compare_exchange(position, position + 1, Ordering::Relaxed, Ordering::Relaxed);
    taken.is_ok()
}
