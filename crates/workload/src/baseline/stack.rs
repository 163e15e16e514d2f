//! A lock-free stack of numbered nodes.
//!
//! The source says "lock-free stack" with "at least one CAS loop". Ours is R. K. Treiber's ("Systems
//! programming: coping with parallelism", 1986). Nodes are numbers of a fixed range and lie in an
//! array, so nothing is allocated; a count of changes beside the head tells a head from an earlier one
//! that named the same node.
//!
//! Invariant: a node is on the stack at most once; the thread that pushes it takes care of that.

use std::ops::Range;

use platform::{Atomic, Ordering, Padded, Platform};

/// A stack of nodes.
pub(super) struct Stack<P: Platform> {
    /// How often it was changed (upper half), and the first node + 1; 0 if there is none.
    head: Padded<P::AtomicU64>,
    /// By node: the one below it, + 1. Sixteen to a line, as nodes that were allocated together.
    below: Box<[P::AtomicU32]>,
}

/// The head after a change.
fn changed(head: u64, node: u32) -> u64 {
    ((head >> 32) + 1) << 32 | u64::from(node)
}

impl<P: Platform> Stack<P> {
    /// An empty stack for the nodes below `nodes`.
    pub(super) fn new(nodes: usize) -> Stack<P> {
        Stack {
            head: Padded(P::on_own_lines(|| P::AtomicU64::new(0))),
            below: P::on_own_lines(|| (0..nodes).map(|_| P::AtomicU32::new(0)).collect()),
        }
    }

    /// Puts a node on top, which is not on the stack.
    pub(super) fn push(&self, node: u32) {
        self.push_all(node..node + 1);
    }

    /// Puts nodes on top, the first one topmost, with one change of the head. None of them is on the
    /// stack, and there is at least one.
    pub(super) fn push_all(&self, nodes: Range<u32>) {
        // Relaxed, all of it: published by the CAS.
        for node in nodes.start..nodes.end - 1 {
            self.below[node as usize].store(node + 2, Ordering::Relaxed);
        }
        let lowest = &self.below[nodes.end as usize - 1];
        loop {
            // Relaxed: the CAS says whether it is still so.
            let head = self.head.load(Ordering::Relaxed);
            lowest.store(head as u32, Ordering::Relaxed);
            if self.change(head, nodes.start + 1) {
                return;
            }
        }
    }

    /// Takes the node on top.
    pub(super) fn pop(&self) -> Option<u32> {
        loop {
            // Acquire, partner: the CAS in `change`.
            let head = self.head.load(Ordering::Acquire);
            let node = (head as u32).checked_sub(1)?;
            // Relaxed: if the node is not on top any more, the CAS fails.
            let below = self.below[node as usize].load(Ordering::Relaxed);
            if self.change(head, below) {
                return Some(node);
            }
        }
    }

    /// Whether nothing is on it at this moment. Acquire, partner: the CAS in `change`.
    pub(super) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Acquire) as u32 == 0
    }

    /// AcqRel, partner: itself and the Acquire loads; a thread that takes a node sees what was written before
    /// it was put there.
    fn change(&self, head: u64, node: u32) -> bool {
        let new = changed(head, node);
        let done = self
            .head
            .compare_exchange(head, new, Ordering::AcqRel, Ordering::Relaxed);
        done.is_ok()
    }
}
