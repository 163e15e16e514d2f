//! A process's page: its memory, and which of its slots have a thread.

use std::fmt;
use std::process;
use std::ptr::NonNull;

use platform::{Atomic, Lock, Memory, Ordering};

use crate::layout::{LINE_WORDS, MAGIC, header, shape};

/// The memory in which the threads of a process publish, as the process has it.
///
/// ```
/// use std::sync::Arc;
/// use event::Task; // paceline_event
/// use paceline_hint::{Page, read_page};
/// use platform::Os; // paceline_platform
///
/// // In a program it comes from `connect`, and the tids from the system.
/// let page = Arc::new(Page::<Os>::unshared(4));
/// let mut slot = page.slot(Task(11)).unwrap();
/// slot.publish_wait(&[Task(12)]);
///
/// let mut seen = Vec::new();
/// let process = 10;
/// read_page::<Os>(process, page.words(), &|_| Some(process), &mut |entry| {
///     seen.push((entry.thread, entry.waits_for.to_vec()));
/// });
/// assert_eq!(seen, [(Task(11), vec![Task(12)])]);
/// ```
pub struct Page<M: Memory> {
    words: NonNull<[M::AtomicU64]>,
    slots: M::Lock<Slots>,
    /// The process that has it, if others could write to it: those that were forked off that.
    process: Option<u32>,
    /// What keeps the words where they are.
    memory: Box<dyn Keeper>,
}

/// What keeps the words of a page where they are.
pub(crate) trait Keeper: Send + Sync {
    /// Whether the broker that the page is from still has it.
    fn is_heard(&self) -> bool;
}

/// Which slots have no thread.
struct Slots {
    free: Vec<u32>,
    /// The number of the first slot that has never been used.
    used: u32,
    refused: u64,
}

// SAFETY: the words are atomics, and all else is behind a lock.
unsafe impl<M: Memory> Send for Page<M> {}
// SAFETY: as above.
unsafe impl<M: Memory> Sync for Page<M> {}

/// So that words which lie in a box can be kept as any memory can.
struct Unshared<M: Memory>(#[expect(dead_code)] Box<[M::AtomicU64]>);

impl<M: Memory> Keeper for Unshared<M> {
    fn is_heard(&self) -> bool {
        true
    }
}

impl<M: Memory> Page<M> {
    /// A page in memory of this process, with so many slots: for tests, and for models.
    pub fn unshared(slots: u32) -> Page<M> {
        let words = (slots as usize + 1) * LINE_WORDS;
        let words: Box<[M::AtomicU64]> = (0..words).map(|_| Atomic::new(0)).collect();
        write_header::<M>(&words, 0);
        let place = NonNull::from(&*words);
        // SAFETY: the words are on the heap, where a box that moves leaves them, and the box is kept.
        unsafe { Page::over(place, None, Box::new(Unshared::<M>(words))) }
    }

    /// A page over these words.
    ///
    /// # Safety
    /// The words stay where they are and can be used until `memory` is dropped.
    pub(crate) unsafe fn over(
        words: NonNull<[M::AtomicU64]>,
        process: Option<u32>,
        memory: Box<dyn Keeper>,
    ) -> Page<M> {
        let slots = Slots {
            free: Vec::new(),
            used: 0,
            refused: 0,
        };
        Page {
            words,
            slots: Lock::new(slots),
            process,
            memory,
        }
    }

    /// All words, the header's first.
    #[inline]
    pub fn words(&self) -> &[M::AtomicU64] {
        // SAFETY: see `over`.
        unsafe { self.words.as_ref() }
    }

    /// How many threads can publish at the same time.
    pub fn slots(&self) -> u32 {
        (self.words().len() / LINE_WORDS - 1) as u32
    }

    /// The number of a slot without a thread. If there is none, that is counted in the page.
    pub(crate) fn take(&self) -> Option<u32> {
        self.slots.with(|slots| {
            if let Some(number) = slots.free.pop() {
                return Some(number);
            }
            // Relaxed, both stores: a slot's own sequence says whether it can be read.
            if slots.used == self.slots() {
                slots.refused += 1;
                self.words()[header::REFUSED].store(slots.refused, Ordering::Relaxed);
                return None;
            }
            slots.used += 1;
            self.words()[header::USED].store(slots.used.into(), Ordering::Relaxed);
            Some(slots.used - 1)
        })
    }

    /// How many threads came that found no slot.
    pub fn refused(&self) -> u64 {
        self.slots.with(|slots| slots.refused)
    }

    /// Whether the scheduler that the page is from still has it: it has not ended since. Costs a system call.
    pub fn is_heard(&self) -> bool {
        self.memory.is_heard()
    }

    /// Whether what is published here is heard, in a sentence. Costs a system call, and allocates.
    pub fn explain(&self) -> String {
        if !self.is_heard() {
            return "Hints: the scheduler has ended, and what this job system says is heard no more; \
                    programs that are started from now on are heard by the next scheduler."
                .to_owned();
        }
        let slots = self.slots();
        let refused = match self.refused() {
            0 => String::new(),
            refused => format!("; {refused} came that found no place"),
        };
        format!("Hints: a scheduler can hear what {slots} threads run and wait for{refused}.")
    }

    /// Whether this process may write to it. Costs a system call.
    pub(crate) fn is_own(&self) -> bool {
        self.process.is_none_or(|process| process == process::id())
    }

    pub(crate) fn give_back(&self, number: u32) {
        self.slots.with(|slots| slots.free.push(number));
    }
}

impl<M: Memory> fmt::Debug for Page<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut page = f.debug_struct("Page");
        page.field("slots", &self.slots()).finish_non_exhaustive()
    }
}

/// Makes a page of words that are all zero.
pub(crate) fn write_header<M: Memory>(words: &[M::AtomicU64], process: u32) {
    let slots = (words.len() / LINE_WORDS - 1) as u32;
    // Relaxed: the page is handed over by a system call, or as a value.
    words[header::MAGIC].store(MAGIC, Ordering::Relaxed);
    words[header::SHAPE].store(shape(slots), Ordering::Relaxed);
    words[header::PROCESS].store(process.into(), Ordering::Relaxed);
}
