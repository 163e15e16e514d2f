//! A kernel's desk: messages on one side, answers on the other, and nothing behind it. It is for asking a
//! scheduler in user space for its decisions, by hand ([`rustland`](super::rustland)'s tests) or in turn
//! ([`paper`](super::paper)).

use std::collections::{BTreeMap, VecDeque};

use event::{Cpu, Nanos, Task};

use super::{Dispatch, Kernel, Queued};

/// The caller puts messages down, lets the scheduler have a round, and takes the answers.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) now: Nanos,
    pub(super) messages: VecDeque<Queued>,
    pub(super) answers: Vec<Dispatch>,
    pub(super) online: usize,
    pub(super) running: usize,
    pub(super) waits: BTreeMap<Task, Vec<Task>>,
}

impl Desk {
    /// A desk with `online` CPUs, of which `running` have a task; the scheduler's own process is one.
    pub(super) fn new(online: usize, running: usize) -> Desk {
        Desk {
            now: Nanos::ZERO,
            messages: VecDeque::new(),
            answers: Vec::new(),
            online,
            running,
            waits: BTreeMap::new(),
        }
    }
}

/// The message of a task that used `used` the last time.
pub(super) fn message(task: Task, used: Nanos) -> Queued {
    Queued {
        task,
        cpu: Cpu(0),
        allowed: 1,
        woken: false,
        start: Nanos::ZERO,
        stop: used,
        exec_runtime: used,
        weight: 100,
        vtime: 0,
        enq_cnt: 1,
    }
}

impl Kernel for Desk {
    fn now(&self) -> Nanos {
        self.now
    }

    fn dequeue(&mut self) -> Option<Queued> {
        self.messages.pop_front()
    }

    fn dispatch(&mut self, dispatch: Dispatch) {
        self.answers.push(dispatch);
    }

    /// The CPU that asks.
    fn select_cpu(&mut self, _: Task, _: Cpu) -> Option<Cpu> {
        Some(Cpu(0))
    }

    fn is_idle(&self, cpu: Cpu) -> bool {
        cpu == Cpu(0)
    }

    fn online(&self) -> usize {
        self.online
    }

    fn running(&self) -> usize {
        self.running
    }

    /// The desk is where a CPU asks; others idle. Each answer is for one of them.
    fn wanted(&self) -> usize {
        let asking = self.online.saturating_sub(self.running).max(1);
        asking.saturating_sub(self.answers.len())
    }

    fn cpus(&self) -> usize {
        self.online
    }

    /// All are alike.
    fn capacity(&self, _: Cpu) -> u32 {
        1024
    }

    fn waits(&self, visit: &mut dyn FnMut(Task, &[Task])) {
        for (&waiter, others) in &self.waits {
            visit(waiter, others);
        }
    }
}
