//! A kernel's desk: messages on one side, answers on the other, and nothing behind it. It is for asking a
//! scheduler in user space for its decisions, by hand ([`rustland`](super::rustland)'s tests) or in turn
//! ([`paper`](super::paper)).

use std::collections::VecDeque;

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

    /// No idle CPU is known to it.
    fn select_cpu(&mut self, _: Task, _: Cpu) -> Option<Cpu> {
        None
    }

    fn online(&self) -> usize {
        self.online
    }

    fn running(&self) -> usize {
        self.running
    }
}
