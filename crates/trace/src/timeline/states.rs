//! Threads: their states over time, and their wakers.

use event::{Cpu, Nanos};

use super::dense::NOBODY;
use super::history::{Change, Histories, History};

/// The state of a thread, as far as the kernel is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// The recording does not say.
    Unknown,
    /// It ran here.
    Running(Cpu),
    /// It ran or could have run: there are no kernel events, and the thread's own events do not say that it
    /// slept.
    Awake,
    /// It could have run and did not.
    Runnable(Since),
    /// The same, but the CPU time of its group was used up: it was put aside.
    Throttled(Since),
    /// It waited for something.
    Sleeping,
    /// It waited for something that no signal can interrupt.
    Blocked,
    /// It had ended.
    Dead,
}

/// The state before a runnable thread became so.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Since {
    /// It had run and could have continued: something else was given its CPU, or it gave it away.
    Preempted,
    /// It was woken, or had just begun.
    Woken,
}

impl State {
    /// Whether it waits for something other than a CPU.
    pub fn is_asleep(self) -> bool {
        matches!(self, State::Sleeping | State::Blocked)
    }

    /// The origin of a state in which it only waits to run: for its turn, or for CPU time of its group.
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
            // No machine has so many CPUs that the last numbers are one.
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
    /// Its beginning.
    pub begin: Nanos,
    /// Its end.
    pub end: Nanos,
    /// Its state.
    pub state: State,
}

/// A wake-up that made a thread runnable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WakeUp {
    pub(crate) time: Nanos,
    /// The position of the waker; [`NOBODY`]: see `interrupt`.
    pub(crate) by: u32,
    /// Whether there is no waker because it was an interrupt; else the waker is not known.
    pub(crate) interrupt: bool,
}

/// The waker of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waker {
    Thread(u32),
    Interrupt,
    Unknown,
}

/// In place of a thread, in a history: an interrupt.
const INTERRUPT: u32 = NOBODY - 1;

impl Change for WakeUp {
    #[inline]
    fn parts(self) -> (Nanos, u32) {
        match (self.by, self.interrupt) {
            (NOBODY, true) => (self.time, INTERRUPT),
            (by, _) => (self.time, by),
        }
    }

    #[inline]
    fn of(time: Nanos, number: u32) -> WakeUp {
        let interrupt = number == INTERRUPT;
        let by = if interrupt { NOBODY } else { number };
        WakeUp {
            time,
            by,
            interrupt,
        }
    }
}

impl WakeUp {
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
pub(super) struct StateBuilder {
    histories: Histories<Interval>,
}

impl StateBuilder {
    /// Makes room for about `states` changes of a thread.
    pub(super) fn reserve(&mut self, thread: u32, states: usize) {
        self.histories.of_mut(thread).reserve(states);
    }

    /// The current state of a thread, and since when; `None`: no event of it was seen yet.
    #[inline]
    pub(super) fn now(&self, thread: u32) -> Option<Interval> {
        self.histories.of(thread).last()
    }

    /// A thread changes to a state.
    #[inline]
    pub(super) fn set(&mut self, thread: u32, begin: Nanos, state: State) {
        let interval = Interval { begin, state };
        self.histories.of_mut(thread).push(interval);
    }

    /// Corrects the state of a thread since its latest change.
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

/// The number of states in which a time at which a thread ran is looked for.
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
