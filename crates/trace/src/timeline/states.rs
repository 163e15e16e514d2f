//! Threads: in which state each was when, and who woke it.

use event::{Cpu, Nanos};

use super::dense::NOBODY;
use super::history::{Change, Histories, History};

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
    /// The same, but the CPU time that its group may use was used up: it was put aside.
    Throttled(Since),
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

    /// What it came from, if all it waits for is to run: its turn, or CPU time that its group may use.
    pub fn ready(self) -> Option<Since> {
        match self {
            State::Runnable(since) | State::Throttled(since) => Some(since),
            _ => None,
        }
    }
}

/// The beginning of a state; it lasts until the next one begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interval {
    pub(crate) begin: Nanos,
    pub(crate) state: State,
}

/// The number of [`State::Running`] on CPU 0, in a history; those of other CPUs are behind it.
const RUNNING: u32 = 9;

impl Change for Interval {
    #[inline]
    fn parts(self) -> (Nanos, u32) {
        let number = match self.state {
            State::Unknown => 0,
            State::Awake => 1,
            State::Runnable(Since::Preempted) => 2,
            State::Runnable(Since::Woken) => 3,
            State::Sleeping => 4,
            State::Blocked => 5,
            State::Dead => 6,
            State::Throttled(Since::Preempted) => 7,
            State::Throttled(Since::Woken) => 8,
            // No machine has so many that the last ones are one.
            State::Running(cpu) => cpu.0.saturating_add(RUNNING),
        };
        (self.begin, number)
    }

    #[inline]
    fn of(begin: Nanos, number: u32) -> Interval {
        let state = match number {
            RUNNING.. => State::Running(Cpu(number - RUNNING)),
            1 => State::Awake,
            2 => State::Runnable(Since::Preempted),
            3 => State::Runnable(Since::Woken),
            4 => State::Sleeping,
            5 => State::Blocked,
            6 => State::Dead,
            7 => State::Throttled(Since::Preempted),
            8 => State::Throttled(Since::Woken),
            _ => State::Unknown,
        };
        Interval { begin, state }
    }
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

/// In place of a thread, in a history: an interrupt.
const INTERRUPT: u32 = NOBODY - 1;

impl Change for Wake {
    #[inline]
    fn parts(self) -> (Nanos, u32) {
        match (self.by, self.interrupt) {
            (NOBODY, true) => (self.time, INTERRUPT),
            (by, _) => (self.time, by),
        }
    }

    #[inline]
    fn of(time: Nanos, number: u32) -> Wake {
        let interrupt = number == INTERRUPT;
        let by = if interrupt { NOBODY } else { number };
        Wake {
            time,
            by,
            interrupt,
        }
    }
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
    histories: Histories<Interval>,
}

impl Builder {
    /// A thread will go over to about so many states.
    pub(super) fn reserve(&mut self, thread: u32, states: usize) {
        self.histories.of_mut(thread).reserve(states);
    }

    /// A thread's state as it is now, and since when; `None`: nothing was seen of it yet.
    #[inline]
    pub(super) fn now(&self, thread: u32) -> Option<Interval> {
        self.histories.of(thread).last()
    }

    /// A thread goes over to a state.
    #[inline]
    pub(super) fn set(&mut self, thread: u32, begin: Nanos, state: State) {
        let interval = Interval { begin, state };
        self.histories.of_mut(thread).push(interval);
    }

    /// It turns out that a thread has been in another state since its latest change.
    pub(super) fn correct(&mut self, thread: u32, state: State) {
        let history = self.histories.of_mut(thread);
        if let Some(latest) = history.last() {
            history.correct(Interval { state, ..latest });
        }
    }

    pub(super) fn finish(self) -> Histories<Interval> {
        self.histories
    }
}

/// How far to look for a time at which a thread ran.
const LOOK: usize = 64;

/// The time nearest to this one at which a thread with these states ran, or may have run; the same time, if
/// there is none.
pub(super) fn nearest_run(states: &History<Interval>, time: Nanos) -> Nanos {
    let state = |at: usize| states.get(at).map(|interval| interval.state);
    let begin = |at: usize| states.get(at).map(|interval| interval.begin);
    let runs = |at: usize| matches!(state(at), Some(State::Running(_) | State::Awake));
    let after = states.partition_point(|begin| begin <= time);
    let Some(at) = after.checked_sub(1) else {
        return time;
    };
    if runs(at) || state(at) == Some(State::Unknown) {
        return time;
    }
    let earlier = (at.saturating_sub(LOOK)..at).rev().find(|&at| runs(at));
    let earlier = earlier.and_then(|at| begin(at + 1));
    let later = (after..states.len().min(after + LOOK)).find(|&at| runs(at));
    let later = later.and_then(begin);
    match (earlier, later) {
        (Some(earlier), Some(later)) if later - time < time - earlier => later,
        (Some(time), _) | (None, Some(time)) => time,
        (None, None) => time,
    }
}
