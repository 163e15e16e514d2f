//! Where idle workers sleep, and the two ways to wake them.
//!
//! One word has the list of sleepers and the number of untaken signals. A sleeper has a parker of its own,
//! because that is how threads block on every platform; the semaphore of the source is the word. The last
//! worker to fall asleep is woken first (ours: the source says "one of the sleeping worker threads").
//!
//! *Counted* ([`signal`](Semaphore::signal)), the semaphore of 2017.3: each signal lets one wait return, now
//! or later. There is no limit, as usual with semaphores: signals that come while no worker sleeps make
//! workers look again that find nothing.
//!
//! *Chained* ([`notify`](Semaphore::notify)), the tracking of 2021.3 and 2022.2: while one worker is on its
//! way no other is woken. The worker that takes the signal ([`wait`](Semaphore::wait),
//! [`clear`](Semaphore::clear)) looks for work after that, and passes it on if there is more. The limit of
//! one on its way is ours; the source says that one "can ensure a worker is always awake", and
//! "conditionally".
//!
//! Why no wake-up is lost: publishing comes before the change of the word in `signal` and `notify`, a
//! worker's look at the queues comes after its change of the word in `wait` and `clear`, and all
//! changes of a word are in one order. Hence `notify` writes the word also where nothing changes.
//!
//! Invariants: a sleeper is in the list once; counted: while there are signals no worker sleeps; chained:
//! there is at most one signal.

use event::Nanos;
use platform::{Atomic, Ordering, Padded, Parker, Platform};

/// The most workers: their numbers have 16 bits in the word.
pub(super) const MAX_WORKERS: usize = (1 << 16) - 2;

/// Sleeping workers and signals.
pub(super) struct Semaphore<P: Platform> {
    word: Padded<P::AtomicU64>,
    slots: Box<[Padded<SlotEntry<P>>]>,
}

/// The state of one worker.
struct SlotEntry<P: Platform> {
    parker: P::Parker,
    /// The worker that fell asleep before this one, + 1.
    next: P::AtomicU32,
    /// 1 if another thread has taken this worker out of the list to wake it.
    granted: P::AtomicU32,
}

/// The word: 16 bits, 24 bits, 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// The last worker that fell asleep, + 1.
    top: u32,
    /// Untaken signals.
    signals: u32,
    /// How often the word was changed; tells a list from an earlier one with the same top.
    changes: u32,
}

const FIELD: u32 = (1 << 24) - 1;

impl State {
    fn of(word: u64) -> State {
        State {
            top: (word >> 48) as u32,
            signals: (word >> 24) as u32 & FIELD,
            changes: word as u32 & FIELD,
        }
    }

    fn word(self) -> u64 {
        u64::from(self.top) << 48 | u64::from(self.signals) << 24 | u64::from(self.changes)
    }
}

impl<P: Platform> Semaphore<P> {
    pub(super) fn new(platform: &P, workers: usize) -> Semaphore<P> {
        let slot = |_| {
            Padded(P::on_own_lines(|| SlotEntry {
                parker: platform.parker(),
                next: P::AtomicU32::new(0),
                granted: P::AtomicU32::new(0),
            }))
        };
        Semaphore {
            word: Padded(P::on_own_lines(|| P::AtomicU64::new(0))),
            slots: (0..workers).map(slot).collect(),
        }
    }

    /// Counted: lets one wait return.
    pub(super) fn signal(&self) {
        let before = self.change(|state| match state.top {
            0 => State {
                signals: (state.signals + 1).min(FIELD),
                ..state
            },
            top => self.without(state, top),
        });
        self.wake(before.top);
    }

    /// Chained: makes sure that some worker looks for work from now on.
    pub(super) fn notify(&self) {
        let before = self.change(|state| match (state.signals, state.top) {
            (1.., _) => state,
            (0, 0) => State {
                signals: 1,
                ..state
            },
            (0, top) => State {
                signals: 1,
                ..self.without(state, top)
            },
        });
        if before.signals == 0 {
            self.wake(before.top);
        }
    }

    /// Chained: the worker that was on its way has found work. It then looks whether there is more.
    pub(super) fn clear(&self) {
        self.change(|state| State {
            signals: 0,
            ..state
        });
    }

    /// Takes a signal, sleeping until there is one. The worker then looks for work.
    pub(super) fn wait(&self, worker: usize) {
        let slot = &self.slots[worker];
        let before = self.change(|state| match state.signals.checked_sub(1) {
            Some(signals) => State { signals, ..state },
            None => {
                // Relaxed: published by the change of the word.
                slot.next.store(state.top, Ordering::Relaxed);
                State {
                    top: worker as u32 + 1,
                    ..state
                }
            }
        });
        if before.signals > 0 {
            return;
        }
        // Acquire, partner: the Release store in `wake`.
        while slot.granted.swap(0, Ordering::Acquire) == 0 {
            slot.parker.park(Nanos::MAX);
        }
    }

    /// Whether a worker sleeps at this moment. Relaxed: a hint.
    pub(super) fn somebody_sleeps(&self) -> bool {
        State::of(self.word.load(Ordering::Relaxed)).top != 0
    }

    /// Untaken signals.
    #[cfg(test)]
    pub(super) fn signals(&self) -> u32 {
        State::of(self.word.load(Ordering::Relaxed)).signals
    }

    /// The state without the first sleeper. Relaxed: if it is not the first any more, the CAS fails.
    fn without(&self, state: State, top: u32) -> State {
        let next = self.slots[top as usize - 1].next.load(Ordering::Relaxed);
        State { top: next, ..state }
    }

    /// Wakes the worker that was taken out of the list, if any.
    fn wake(&self, top: u32) {
        if let Some(worker) = top.checked_sub(1) {
            let slot = &self.slots[worker as usize];
            // Release, partner: the Acquire swap in `wait`.
            slot.granted.store(1, Ordering::Release);
            slot.parker.unpark();
        }
    }

    /// Changes the word in a CAS loop and returns its old value. AcqRel, partner: itself. Each change reads
    /// from the one before it, so everything published before a change is seen after all later ones.
    fn change(&self, how: impl Fn(State) -> State) -> State {
        loop {
            // Acquire, partner: the CAS below, for the list behind the word.
            let word = self.word.load(Ordering::Acquire);
            let before = State::of(word);
            let after = State {
                changes: (before.changes + 1) & FIELD,
                ..how(before)
            };
            let done =
                self.word
                    .compare_exchange(word, after.word(), Ordering::AcqRel, Ordering::Relaxed);
            if done.is_ok() {
                return before;
            }
        }
    }
}
