//! Threads: in which state each was when, and who woke it.

use event::{Cpu, Nanos};

use super::dense::NOBODY;
use super::lists::Lists;

/// What a thread was doing, as far as the kernel is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// The recording does not say.
    Unknown,
    /// It ran here.
    Running(Cpu),
    /// It ran or could have run: there are no kernel events, and the thread itself said nothing of sleeping.
    Awake,
    /// It could have run and did not.
    Runnable(Since),
    /// It waited for something.
    Sleeping,
    /// It waited for something that no signal can interrupt.
    Blocked,
    /// It had ended.
    Dead,
}

/// What a runnable thread came from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Since {
    /// It had run and could have gone on: something else was given its CPU, or it gave it away.
    Preempted,
    /// It was woken, or had just begun.
    Woken,
}

impl State {
    /// Whether it waits for something other than a CPU.
    pub fn is_asleep(self) -> bool {
        matches!(self, State::Sleeping | State::Blocked)
    }
}

/// The beginning of a state; it lasts until the next one begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interval {
    pub(crate) begin: Nanos,
    pub(crate) state: State,
}

/// A stretch of a thread's time in one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stay {
    /// From when.
    pub begin: Nanos,
    /// Until when.
    pub end: Nanos,
    /// In which.
    pub state: State,
}

/// A wake-up that made a thread runnable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wake {
    pub(crate) time: Nanos,
    /// The position of the thread that woke; [`NOBODY`]: see `interrupt`.
    pub(crate) by: u32,
    /// Whether nobody is named because it was an interrupt; else it is not known who it was.
    pub(crate) interrupt: bool,
}

/// Who woke a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waker {
    Thread(u32),
    Interrupt,
    Unknown,
}

impl Wake {
    pub(crate) fn waker(self) -> Waker {
        match (self.by, self.interrupt) {
            (NOBODY, true) => Waker::Interrupt,
            (NOBODY, false) => Waker::Unknown,
            (thread, _) => Waker::Thread(thread),
        }
    }
}

/// States of all threads while they are found, in the order of time.
#[derive(Default)]
pub(super) struct Builder {
    lists: Lists<Interval>,
}

impl Builder {
    /// A thread will go over to about so many states.
    pub(super) fn reserve(&mut self, thread: u32, states: usize) {
        self.lists.reserve(thread, states);
    }

    /// A thread's state as it is now, and since when; `None`: nothing was seen of it yet.
    #[inline]
    pub(super) fn now(&self, thread: u32) -> Option<Interval> {
        self.lists.of(thread).last().copied()
    }

    /// A thread goes over to a state.
    #[inline]
    pub(super) fn set(&mut self, thread: u32, begin: Nanos, state: State) {
        self.lists.push(thread, Interval { begin, state });
    }

    /// It turns out that a thread has been in another state since its latest change.
    pub(super) fn correct(&mut self, thread: u32, state: State) {
        if let Some(latest) = self.lists.of_mut(thread).last_mut() {
            latest.state = state;
        }
    }

    pub(super) fn finish(self) -> Lists<Interval> {
        self.lists
    }
}

/// How far to look for a time at which a thread ran.
const LOOK: usize = 64;

/// The time nearest to this one at which a thread with these states ran, or may have run; the same time, if
/// there is none.
pub(super) fn nearest_run(states: &[Interval], time: Nanos) -> Nanos {
    let runs = |at: usize| matches!(states[at].state, State::Running(_) | State::Awake);
    let after = states.partition_point(|interval| interval.begin <= time);
    let Some(at) = after.checked_sub(1) else {
        return time;
    };
    if runs(at) || states[at].state == State::Unknown {
        return time;
    }
    let earlier = (at.saturating_sub(LOOK)..at).rev().find(|&at| runs(at));
    let earlier = earlier.map(|at| states[at + 1].begin);
    let later = (after..states.len().min(after + LOOK)).find(|&at| runs(at));
    let later = later.map(|at| states[at].begin);
    match (earlier, later) {
        (Some(earlier), Some(later)) if later - time < time - earlier => later,
        (Some(time), _) | (None, Some(time)) => time,
        (None, None) => time,
    }
}
