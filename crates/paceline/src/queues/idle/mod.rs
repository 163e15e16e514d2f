//! The idle threads, and which of them are woken for new work.
#![doc = ""]
#![doc = include_str!("README.md")]

use platform::{Atomic, Memory, Ordering, Padded};

/// The most thread slots that the counters can count.
pub(crate) const THREAD_SLOTS_MAX: usize = (1 << IdleWord::BITS) - 1;

/// A decoded idle word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct IdleWord {
    pub(crate) epoch: u16,
    pub(crate) blocked: u32,
    pub(crate) watching: u32,
    pub(crate) searching: u32,
    pub(crate) sleeping: u32,
    /// A worker in the background would soon make way.
    pub(crate) lending: bool,
}

impl IdleWord {
    const BITS: u32 = 12;
    const MASK: u64 = (1 << IdleWord::BITS) - 1;
    const SLEEPING: u64 = 1;
    const SEARCHING: u64 = 1 << IdleWord::BITS;
    const WATCHING: u64 = 1 << (2 * IdleWord::BITS);
    const BLOCKED: u64 = 1 << (3 * IdleWord::BITS);
    const LENDING: u64 = 1 << (4 * IdleWord::BITS);
    const EPOCH: u64 = 2 * IdleWord::LENDING;
    /// All but the epoch.
    pub(crate) const NOT_BUSY: u64 = IdleWord::EPOCH - 1;
    /// All but the epoch and the blocked workers.
    pub(crate) const COULD_HELP: u64 = IdleWord::NOT_BUSY & !(IdleWord::MASK * IdleWord::BLOCKED);

    #[inline]
    pub(crate) fn unpack(word: u64) -> IdleWord {
        IdleWord {
            epoch: (word / IdleWord::EPOCH) as u16,
            blocked: ((word / IdleWord::BLOCKED) & IdleWord::MASK) as u32,
            watching: ((word / IdleWord::WATCHING) & IdleWord::MASK) as u32,
            searching: ((word / IdleWord::SEARCHING) & IdleWord::MASK) as u32,
            sleeping: (word & IdleWord::MASK) as u32,
            lending: word & IdleWord::LENDING != 0,
        }
    }

    /// Whether a thread would look at new work at once.
    #[inline]
    pub(crate) fn wants_work(self) -> bool {
        self.searching + self.watching > 0
    }
}

/// The idle threads and their states; see the module.
pub(crate) struct Idle<M: Memory> {
    word: Padded<M::AtomicU64>,
    /// One bit for each thread slot: it is asleep, and no thread has decided to wake it.
    sleepers: Padded<Box<[M::AtomicU64]>>,
}

/// The fences of the protocol, so that the models can take one away.
pub(crate) trait Fences<M: Memory> {
    /// F: between putting a ticket and reading the idle word. SeqCst, partner: `look`.
    fn publish() {
        M::fence(Ordering::SeqCst);
    }
    /// G: between announcing a state and looking through the queues. SeqCst, partner: `publish`; edge I4,
    /// partner: the subtraction in `end_search` by a searcher that stopped before.
    fn look() {
        M::fence(Ordering::SeqCst);
    }
}

/// Both fences in place.
pub(crate) struct Fenced;
impl<M: Memory> Fences<M> for Fenced {}

impl<M: Memory> Idle<M> {
    pub(crate) fn new(threads: usize) -> Idle<M> {
        assert!(
            threads <= THREAD_SLOTS_MAX,
            "{threads} threads cannot be counted"
        );
        Idle {
            word: Padded(M::AtomicU64::new(0)),
            sleepers: Padded(
                (0..threads.div_ceil(64))
                    .map(|_| M::AtomicU64::new(0))
                    .collect(),
            ),
        }
    }

    /// The word at this moment. Relaxed: it carries no data; see "Edges".
    #[inline]
    pub(crate) fn load(&self) -> IdleWord {
        IdleWord::unpack(self.word.load(Ordering::Relaxed))
    }

    /// The word at this moment, if any of these parts of it is not 0. Relaxed, as above.
    #[inline]
    pub(crate) fn load_if(&self, parts: u64) -> Option<IdleWord> {
        let word = self.word.load(Ordering::Relaxed);
        (word & parts != 0).then(|| IdleWord::unpack(word))
    }

    /// Steps 1 and 2 of publishing: the facts that the publisher needs. `None`: all threads are busy, so none
    /// wants to hear of new work.
    #[inline]
    pub(crate) fn after_publish<F: Fences<M>>(&self) -> Option<IdleWord> {
        F::publish();
        let word = self.word.load(Ordering::Relaxed);
        (word % IdleWord::LENDING != 0).then(|| IdleWord::unpack(word))
    }

    /// Makes searchers and watchers look again.
    pub(crate) fn bump(&self) {
        // Release: edge I3, partner: `epoch` and `spin`.
        self.word.fetch_add(IdleWord::EPOCH, Ordering::Release);
    }

    /// The epoch to spin on, read before the caller looks around.
    pub(crate) fn epoch(&self) -> u16 {
        // Acquire: edge I3, partner: `bump`. The caller's look must not miss what this epoch announced.
        IdleWord::unpack(self.word.load(Ordering::Acquire)).epoch
    }

    /// Spins until the epoch is no longer `seen` or `deadline` has come.
    pub(crate) fn spin(&self, seen: u16, deadline: event::Nanos) {
        M::spin_until(
            &self.word,
            |word| IdleWord::unpack(word).epoch != seen,
            deadline,
        );
    }

    /// Wakes one sleeper if no thread searches. Returns the sleeper's thread slot. The caller must unpark it,
    /// and it counts as searching from now on.
    pub(crate) fn wake_one(&self) -> Option<usize> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let now = IdleWord::unpack(word);
            if now.searching > 0 || now.sleeping == 0 {
                return None;
            }
            let new = word.wrapping_add(IdleWord::SEARCHING);
            // Acquire: edge I2, partner: `begin_sleep`.
            match self
                .word
                .compare_exchange(word, new, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(seen) => word = seen,
            }
        }
        self.pick_for_searching()
    }

    /// Wakes one sleeper, however many threads search already (for batches of known size).
    pub(crate) fn wake_another(&self) -> Option<usize> {
        if self.load().sleeping == 0 {
            return None;
        }
        // Acquire: edge I2, partner: `begin_sleep`.
        self.word.fetch_add(IdleWord::SEARCHING, Ordering::Acquire);
        self.pick_for_searching()
    }

    /// The caller has counted a thread as searching: finds a sleeper for that count, or takes it back. It
    /// is not inlined: to wake a sleeper costs a system call anyway.
    #[inline(never)]
    fn pick_for_searching(&self) -> Option<usize> {
        loop {
            if let Some(thread) = self.pick() {
                self.word.fetch_sub(IdleWord::SLEEPING, Ordering::Relaxed);
                return Some(thread);
            }
            // Acquire: edge I2, partner: `begin_sleep`.
            let before = self.word.fetch_sub(IdleWord::SEARCHING, Ordering::Acquire);
            // Meanwhile other threads may have taken our count for a searcher and left their tickets to it,
            // and a worker may have gone to sleep without seeing them. Then the count is for that worker.
            if IdleWord::unpack(before).searching > 1 || !self.has_sleepers() {
                return None;
            }
            // Acquire: edge I2, as above; partner: `begin_sleep`.
            self.word.fetch_add(IdleWord::SEARCHING, Ordering::Acquire);
        }
    }

    /// Whether any bit is set.
    fn has_sleepers(&self) -> bool {
        self.sleepers
            .iter()
            .any(|bits| bits.load(Ordering::Relaxed) != 0)
    }

    /// Clears one sleeper's bit. Low thread slots come first, so that the same few threads stay warm.
    fn pick(&self) -> Option<usize> {
        for (index, bits) in self.sleepers.iter().enumerate() {
            let mut seen = bits.load(Ordering::Relaxed);
            while seen != 0 {
                let bit = seen & seen.wrapping_neg();
                // AcqRel: edge I1, partner: `cancel_sleep`; edge I5, partner: `begin_sleep`.
                let before = bits.fetch_and(!bit, Ordering::AcqRel);
                if before & bit != 0 {
                    return Some(index * 64 + bit.trailing_zeros() as usize);
                }
                seen = before & !bit;
            }
        }
        None
    }

    /// Step 1 of going idle. Returns the epoch to spin on.
    pub(crate) fn begin_search<F: Fences<M>>(&self) -> u16 {
        let before = self.word.fetch_add(IdleWord::SEARCHING, Ordering::Relaxed);
        F::look();
        IdleWord::unpack(before).epoch
    }

    /// Step 2: the search has found something. True if the caller was the last searcher. It must then look
    /// for more work, to wake another worker.
    pub(crate) fn end_search<F: Fences<M>>(&self) -> bool {
        // Release: edge I4, partner: the fence in `look`, of the searcher that stops after this one.
        let before = self.word.fetch_sub(IdleWord::SEARCHING, Ordering::Release);
        let searching = IdleWord::unpack(before).searching;
        debug_assert!(searching > 0, "a search ends that was not counted");
        let last = searching == 1;
        if last {
            F::look();
        }
        last
    }

    /// Step 4: from searching to sleeping. The caller looks once more before it parks.
    pub(crate) fn begin_sleep<F: Fences<M>>(&self, thread: usize) {
        // Release: edge I5, partner: `pick`: the thread slot itself, for wakers that were let in by another
        // sleeper.
        self.sleepers[thread / 64].fetch_or(1 << (thread % 64), Ordering::Release);
        let change = IdleWord::SLEEPING.wrapping_sub(IdleWord::SEARCHING);
        // Release: edge I2, partner: `wake_one` and the like: our bit.
        self.word.fetch_add(change, Ordering::Release);
        F::look();
    }

    /// Whether no thread has decided to wake this sleeper yet. For use after a park has returned.
    pub(crate) fn is_asleep(&self, thread: usize) -> bool {
        // Acquire: edge I1, partner: `pick`.
        self.sleepers[thread / 64].load(Ordering::Acquire) & (1 << (thread % 64)) != 0
    }

    /// Step 5: from sleeping back to searching, by the sleeper itself. True if it did that alone. False if a
    /// waker was faster, which has then counted it as searching.
    pub(crate) fn cancel_sleep(&self, thread: usize) -> bool {
        let bit = 1 << (thread % 64);
        // AcqRel: edge I1, partner: `pick`.
        let alone = self.sleepers[thread / 64].fetch_and(!bit, Ordering::AcqRel) & bit != 0;
        if alone {
            let change = IdleWord::SEARCHING.wrapping_sub(IdleWord::SLEEPING);
            self.word.fetch_add(change, Ordering::Relaxed);
        }
        alone
    }

    /// A waiter has nothing to run: from now on publishers tell it about new work.
    pub(crate) fn begin_watch<F: Fences<M>>(&self) -> u16 {
        let before = IdleWord::unpack(self.word.fetch_add(IdleWord::WATCHING, Ordering::Relaxed));
        debug_assert!(u64::from(before.watching) < IdleWord::MASK, "one too many");
        F::look();
        before.epoch
    }

    /// The waiter is no longer watching.
    pub(crate) fn end_watch(&self) {
        let before = self.word.fetch_sub(IdleWord::WATCHING, Ordering::Relaxed);
        let watching = IdleWord::unpack(before).watching;
        debug_assert!(watching > 0, "a watch ends that was not counted");
    }

    /// A worker parks in the middle of a job. Returns how many workers have done so, with this one.
    pub(crate) fn begin_block<F: Fences<M>>(&self) -> u32 {
        let blocked = self.count_blocked();
        F::look();
        blocked
    }

    /// The same for a caller with a fence of its own between this and its look.
    pub(crate) fn count_blocked(&self) -> u32 {
        let before = IdleWord::unpack(self.word.fetch_add(IdleWord::BLOCKED, Ordering::Relaxed));
        debug_assert!(u64::from(before.blocked) < IdleWord::MASK, "one too many");
        before.blocked + 1
    }

    /// From now on a worker would soon make way, or none would any more. The caller sees to it that calls
    /// alternate.
    pub(crate) fn set_lending(&self, lending: bool) {
        // Relaxed, both: a hint for joins and loops.
        let before = if lending {
            self.word.fetch_add(IdleWord::LENDING, Ordering::Relaxed)
        } else {
            self.word.fetch_sub(IdleWord::LENDING, Ordering::Relaxed)
        };
        debug_assert!(
            IdleWord::unpack(before).lending != lending,
            "they alternate"
        );
    }

    /// The worker continues its job.
    pub(crate) fn end_block(&self) {
        let before = self.word.fetch_sub(IdleWord::BLOCKED, Ordering::Relaxed);
        let blocked = IdleWord::unpack(before).blocked;
        debug_assert!(blocked > 0, "a worker goes on that was not blocked");
    }
}
