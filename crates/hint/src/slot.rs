//! A thread's slot, as its thread has it: the writer's side of the format.
//!
//! The thread counts the sequence up to an odd number, writes, and counts it up to an even one:
//!
//! ```text
//! writer                              reader
//! sequence := odd                     sequence: even                (Acquire)
//! fence (Release)                     the other words
//! the other words                     fence (Acquire)
//! sequence := even  (Release)         sequence again: the same, so the words are of one moment
//! ```
//!
//! A reader that sees a word of a later moment sees behind its fence that the sequence is not what it was. A
//! writer that is killed in the middle leaves an odd number, and the slot is passed over from then on. The
//! models are in `models.rs`, with each of the orderings taken away.

use std::fmt;
use std::sync::Arc;

use event::Task;
use platform::{Atomic, Lane, Memory, Ordering};

use crate::layout::{Head, LINE_WORDS, Run, WAIT_WORDS, WAITS_MAX, pair, slot};
use crate::page::Page;

/// A thread's place in a [`Page`]. Dropped, it is another thread's.
pub struct Slot<M: Memory> {
    page: Arc<Page<M>>,
    number: u32,
    /// The numbers in the slot, as this thread wrote them last: it reads nothing there.
    sequence: u64,
    head: Head,
}

impl<M: Memory> Page<M> {
    /// A slot for this thread, by its kernel's number; `None` if all have a thread. A thread that finds none
    /// is counted in the page. Takes a lock and may allocate: for once a thread.
    pub fn slot(self: &Arc<Self>, thread: Task) -> Option<Slot<M>> {
        let number = self.take()?;
        Some(Slot::begin(self.clone(), number, thread))
    }
}

impl<M: Memory> Slot<M> {
    /// The thread has got the slot. It runs nothing and waits for nothing.
    fn begin(page: Arc<Page<M>>, number: u32, thread: Task) -> Slot<M> {
        let mut slot = Slot {
            page,
            number,
            sequence: 0,
            head: Head::of(thread),
        };
        // Relaxed: the lock that the slot's number came from orders the last owner's stores before this.
        let seen = slot.words()[slot::SEQUENCE].load(Ordering::Relaxed);
        slot.sequence = seen.wrapping_add(seen & 1);
        slot.write(|_, head| head);
        slot
    }

    /// The thread's number, as the kernel has it.
    pub fn thread(&self) -> Task {
        self.head.thread()
    }

    /// The thread is about to block until these threads have done something. Of more than [`WAITS_MAX`] the
    /// first count, and none means that it is not known. Replaces what it waited for before; what it runs
    /// stays. Costs up to six stores.
    #[inline]
    pub fn publish_wait(&mut self, threads: &[Task]) {
        let listed = &threads[..threads.len().min(WAITS_MAX)];
        self.write(|words, head| {
            // Relaxed: inside of the sequence.
            for (word, pair_of) in words[slot::WAITS..].iter().zip(listed.chunks(2)) {
                let second = pair_of.get(1).copied().unwrap_or(Task(0));
                word.store(pair(pair_of[0], second), Ordering::Relaxed);
            }
            head.with_waits(listed.len())
        });
    }

    /// The thread waits no more. Costs three stores.
    #[inline]
    pub fn clear_wait(&mut self) {
        self.write(|_, head| head.with_waits(0));
    }

    /// The thread runs this from now on. What it waits for stays. Costs four stores.
    #[inline]
    pub fn publish_run(&mut self, run: Run) {
        self.set_run(
            Some(run.lane),
            run.deadline.map_or(0, |deadline| deadline.0),
        );
    }

    /// The thread runs nothing that matters. Costs four stores.
    #[inline]
    pub fn clear_run(&mut self) {
        self.set_run(None, 0);
    }

    #[inline]
    fn set_run(&mut self, lane: Option<Lane>, deadline: u64) {
        self.write(|words, head| {
            // Relaxed: inside of the sequence.
            words[slot::DEADLINE].store(deadline, Ordering::Relaxed);
            head.with_lane(lane)
        });
    }

    /// Writes what `change` stores, and the head that it returns, as one.
    #[inline]
    fn write(&mut self, change: impl FnOnce(&[M::AtomicU64], Head) -> Head) {
        let (before, head) = (self.sequence, self.head);
        let words = self.words();
        // Relaxed: the fence orders it before what follows.
        words[slot::SEQUENCE].store(before.wrapping_add(1), Ordering::Relaxed);
        // Release, partner: the fence in `read_slot`: the odd number comes before the words.
        M::fence(Ordering::Release);
        let head = change(words, head);
        words[slot::HEAD].store(head.0, Ordering::Relaxed);
        // Release, partner: the Acquire load in `read_slot`: the words.
        words[slot::SEQUENCE].store(before.wrapping_add(2), Ordering::Release);
        self.sequence = before.wrapping_add(2);
        self.head = head;
    }

    #[inline]
    fn words(&self) -> &[M::AtomicU64] {
        const { assert!(slot::WAITS + WAIT_WORDS <= LINE_WORDS) };
        let first = (self.number as usize + 1) * LINE_WORDS;
        &self.page.words()[first..first + LINE_WORDS]
    }
}

impl<M: Memory> Drop for Slot<M> {
    fn drop(&mut self) {
        // What a fork's child drops is its copy, and the slot is still its parent's.
        if !self.page.is_own() {
            return;
        }
        self.write(|_, _| Head(0));
        self.page.give_back(self.number);
    }
}

impl<M: Memory> fmt::Debug for Slot<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut slot = f.debug_struct("Slot");
        slot.field("number", &self.number)
            .field("thread", &self.thread())
            .finish()
    }
}
