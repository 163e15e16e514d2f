//! What tasks do, and what became of them, as data.

use event::{Cpu, Nanos, Task};

use crate::{Attr, Mask};

/// 250 Hz.
pub(super) const TICK: Nanos = Nanos::from_millis(4);

pub(super) fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

pub(super) fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

/// What a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Do {
    Run(Nanos),
    Sleep(Nanos),
    /// Runs for so long, then yields.
    Yield(Nanos),
}

/// Runs for good.
pub(super) const SPIN: Do = Do::Run(Nanos(u64::MAX / 2));

/// A task: when it begins, and what it does then, again and again.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) attr: Attr,
    pub(super) mask: Mask,
    pub(super) begins: Nanos,
    pub(super) steps: Vec<Do>,
    /// How often; then it ends.
    pub(super) rounds: u64,
}

impl Script {
    pub(super) fn new(attr: Attr, steps: &[Do]) -> Script {
        Script {
            attr,
            mask: Mask::default(),
            begins: Nanos::ZERO,
            steps: steps.to_vec(),
            rounds: u64::MAX,
        }
    }

    pub(super) fn begins(mut self, begins: Nanos) -> Script {
        self.begins = begins;
        self
    }

    pub(super) fn on(mut self, cpu: u32) -> Script {
        self.mask = Mask::of([Cpu(cpu)]);
        self
    }

    pub(super) fn once(mut self) -> Script {
        self.rounds = 1;
        self
    }
}

/// A change from outside.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Attr(Task, Attr),
    Offline(Cpu),
    Online(Cpu),
}

/// A task had a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stint {
    pub(super) task: Task,
    pub(super) cpu: Cpu,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
}

impl Do {
    /// How long it takes.
    pub(super) fn length(self) -> Nanos {
        let (Do::Run(time) | Do::Sleep(time) | Do::Yield(time)) = self;
        time
    }
}

/// What a task has had.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    pub(super) cpu: Nanos,
    /// The longest time that it was ready without running.
    pub(super) longest_wait: Nanos,
    /// How long each yield took after its own cost: zero if it went on at once.
    pub(super) yields: Vec<Nanos>,
}
