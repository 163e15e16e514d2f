//! The state of tasks and CPUs in the kernel for tests, and its view for the class.

use event::{Cpu, Nanos, Task};

use super::script::Script;
use crate::{Cpus, Placement};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    NotBegun,
    Ready,
    Running,
    Asleep(Nanos),
    Receiving(usize),
    Ended,
}

#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) script: Script,
    pub(super) phase: Phase,
    pub(super) cpu: Cpu,
    pub(super) step: usize,
    pub(super) rounds: u64,
    /// The rest of the step `Run` that it is in; `None`: it is not in one.
    pub(super) left: Option<Nanos>,
    /// Since when it has been ready without running.
    pub(super) ready: Nanos,
    /// When it yielded, while it has not run since.
    pub(super) yielded: Option<Nanos>,
}

impl Control {
    pub(super) fn new(script: Script) -> Control {
        Control {
            phase: Phase::NotBegun,
            cpu: Cpu(0),
            step: 0,
            rounds: script.rounds,
            left: None,
            ready: script.begins,
            yielded: None,
            script,
        }
    }

    /// Its step is done.
    pub(super) fn advance(&mut self) {
        self.left = None;
        self.step += 1;
        if self.step == self.script.steps.len() {
            self.step = 0;
            self.rounds -= 1;
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Core {
    pub(super) task: Option<Task>,
    /// The number of this stint, and up to when its time has been accounted.
    pub(super) stint: usize,
    pub(super) paid: Nanos,
    pub(super) done_at: Nanos,
    pub(super) tick_at: Nanos,
    pub(super) timer_at: Nanos,
    pub(super) resched_at: Nanos,
    pub(super) offline: bool,
}

impl Default for Core {
    fn default() -> Core {
        Core {
            task: None,
            stint: 0,
            paid: Nanos::ZERO,
            done_at: Nanos::MAX,
            tick_at: Nanos::MAX,
            timer_at: Nanos::MAX,
            resched_at: Nanos::MAX,
            offline: false,
        }
    }
}

/// The number of untaken messages, by mailbox.
#[derive(Default)]
pub(super) struct Mailboxes(Vec<u64>);

impl Mailboxes {
    pub(super) fn put(&mut self, mailbox: usize) {
        *self.messages(mailbox) += 1;
    }

    /// Whether there was one to take.
    pub(super) fn take(&mut self, mailbox: usize) -> bool {
        let messages = self.messages(mailbox);
        let any = *messages > 0;
        *messages -= u64::from(any);
        any
    }

    fn messages(&mut self, mailbox: usize) -> &mut u64 {
        if self.0.len() <= mailbox {
            self.0.resize(mailbox + 1, 0);
        }
        &mut self.0[mailbox]
    }
}

/// The class's view. All CPUs share one cache.
pub(super) struct View<'a>(pub(super) &'a [Core], pub(super) &'a [Control]);

impl View<'_> {
    pub(super) fn may_run(&self, task: Task, cpu: Cpu) -> bool {
        self.is_active(cpu) && self.allows(task, cpu)
    }
}

impl Cpus for View<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn is_active(&self, cpu: Cpu) -> bool {
        !self.0[cpu.index()].offline
    }
    fn is_idle(&self, cpu: Cpu) -> bool {
        let core = &self.0[cpu.index()];
        core.task.is_none() && core.resched_at == Nanos::MAX
    }
    fn current(&self, cpu: Cpu) -> Option<Task> {
        self.0[cpu.index()].task
    }
    fn capacity(&self, _: Cpu) -> u32 {
        1024
    }
    fn allows(&self, task: Task, cpu: Cpu) -> bool {
        let mask = &self.1[task.index()].script.mask;
        let is_there = |cpu: u32| self.is_active(Cpu(cpu)) && mask.has(Cpu(cpu));
        mask.is_empty() || mask.has(cpu) || !(0..self.len() as u32).any(is_there)
    }
    fn last_cpu(&self, task: Task) -> Cpu {
        self.1[task.index()].cpu
    }
    fn share_cache(&self, _: Cpu, _: Cpu) -> bool {
        true
    }
    fn share_core(&self, a: Cpu, b: Cpu) -> bool {
        a == b
    }
    fn placement(&self) -> Placement {
        Placement::Mainline
    }
}
