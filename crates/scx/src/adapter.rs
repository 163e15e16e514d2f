//! [`Adapter`]: the kernel's side as a `policy::ops::Kernel`.
//!
//! Which CPUs have nothing to run is looked at once at the beginning of a round, as the kernel sees it. From
//! then on each dispatch takes one away. What happens on other CPUs meanwhile, the next round sees.

use event::{Cpu, Nanos, Task};
use policy::ops::{Dispatch, Kernel, Ops, Queued};

use crate::core::{Answer, Core, Message, PREEMPT, WAKEUP};
use crate::threads::Threads;

/// What has happened since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rounds in which something came or went.
    pub rounds: u64,
    /// Rounds in which nothing did.
    pub empty: u64,
    /// Messages.
    pub messages: u64,
    /// Tasks that were let run.
    pub dispatched: u64,
    /// Statements of waits, each counted in each round.
    pub waits: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Adapter<C> {
    core: C,
    threads: Threads,
    capacities: Vec<u32>,
    now: Nanos,
    online: usize,
    running: usize,
    wanting: Vec<bool>,
    /// Tasks that were dispatched earlier and wait for any CPU, so that CPUs may look idle for a moment.
    shared: usize,
    waits: Vec<(Task, Vec<Task>)>,
    counts: Counts,
}

impl<C: Core> Adapter<C> {
    /// `capacities`: of each CPU of the machine, the fastest has 1024.
    pub fn new(core: C, capacities: Vec<u32>) -> Adapter<C> {
        Adapter {
            core,
            threads: Threads::default(),
            wanting: vec![false; capacities.len()],
            capacities,
            now: Nanos::ZERO,
            online: 0,
            running: 0,
            shared: 0,
            waits: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// The kernel's side.
    pub fn core(&mut self) -> &mut C {
        &mut self.core
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The threads that are known.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// One turn of the policy. What programs say about their waits, by `statements`: each waiter's tid, with
    /// those that it waits for. How many tasks the policy holds.
    pub fn round(&mut self, ops: &mut dyn Ops, statements: &[(i32, Vec<i32>)]) -> usize {
        self.now = self.core.now();
        self.online = self.core.online();
        self.running = self.core.running() + 1;
        self.shared = self.core.look(&mut self.wanting);
        self.say(statements);
        let before = self.counts;
        let messages = self.take_all(ops);
        let mut desk = Desk {
            adapter: self,
            messages,
            taken: 0,
        };
        let held = ops.round(&mut desk);
        let dispatched = self.counts.dispatched - before.dispatched;
        if dispatched + (self.counts.messages - before.messages) == 0 {
            self.counts.empty += 1;
        } else {
            self.counts.rounds += 1;
        }
        let gone = self.threads.prune(self.now, &|tid| self.core.is_there(tid));
        for task in gone {
            ops.forget(task);
        }
        held
    }

    /// Takes the messages out of the ring. They are the policy's to take; a task that is a new thread's is
    /// forgotten before.
    fn take_all(&mut self, ops: &mut dyn Ops) -> Vec<Queued> {
        let mut messages = Vec::new();
        while let Some(message) = self.core.next() {
            self.counts.messages += 1;
            let (task, is_new) = self.threads.of(message.tid, self.now);
            let never_ran = message.start == 0 && message.stop == 0;
            if never_ran && !is_new {
                // The thread had this number before has ended.
                ops.forget(task);
            }
            self.threads
                .hear(task, message.flags, message.allowed, self.now);
            messages.push(queued(task, &message));
        }
        messages
    }

    fn say(&mut self, statements: &[(i32, Vec<i32>)]) {
        self.waits.clear();
        for (waiter, others) in statements {
            let (waiter, _) = self.threads.of(*waiter, self.now);
            // A thread that never came to this process is not ready.
            let others = others.iter().filter_map(|&tid| self.threads.find(tid));
            self.waits.push((waiter, others.collect()));
        }
        self.counts.waits += self.waits.len() as u64;
    }

    fn dispatch(&mut self, dispatch: &Dispatch) {
        let (flags, _) = self.threads.facts(dispatch.task);
        let preempt = if dispatch.preempt { PREEMPT } else { 0 };
        self.counts.dispatched += 1;
        match dispatch.cpu {
            Some(cpu) => {
                if let Some(wanting) = self.wanting.get_mut(cpu.index()) {
                    *wanting = false;
                }
            }
            None => self.shared += 1,
        }
        self.core.answer(&Answer {
            tid: self.threads.tid(dispatch.task),
            cpu: dispatch.cpu.map(|cpu| cpu.0 as i32),
            flags: flags & !PREEMPT | preempt,
            slice: dispatch.slice.0,
            vtime: if dispatch.preempt { 0 } else { dispatch.vtime },
            enq_cnt: dispatch.enq_cnt,
        });
    }

    /// The CPU itself if it has nothing to run, else the first one that has not.
    fn select(&self, task: Task, near: Cpu) -> Option<Cpu> {
        let (_, allowed) = self.threads.facts(task);
        let tid = self.threads.tid(task);
        let is_free = |cpu: &Cpu| {
            let wanting = self.wanting.get(cpu.index()) == Some(&true);
            wanting && (allowed as usize >= self.online || self.core.may_use(tid, cpu.0))
        };
        let all = (0..self.wanting.len() as u32).map(Cpu);
        all.filter(is_free).min_by_key(|cpu| (*cpu != near, *cpu))
    }
}

fn queued(task: Task, message: &Message) -> Queued {
    Queued {
        task,
        cpu: Cpu(message.cpu.max(0) as u32),
        allowed: message.allowed as usize,
        woken: message.flags & WAKEUP != 0,
        start: Nanos(message.start),
        stop: Nanos(message.stop),
        exec_runtime: Nanos(message.exec_runtime),
        weight: message.weight,
        vtime: message.vtime,
        enq_cnt: message.enq_cnt,
    }
}

/// The adapter in a round.
struct Desk<'a, C> {
    adapter: &'a mut Adapter<C>,
    messages: Vec<Queued>,
    taken: usize,
}

impl<C: Core> Kernel for Desk<'_, C> {
    fn now(&self) -> Nanos {
        self.adapter.now
    }

    fn dequeue(&mut self) -> Option<Queued> {
        let queued = self.messages.get(self.taken).copied()?;
        self.taken += 1;
        Some(queued)
    }

    fn dispatch(&mut self, dispatch: Dispatch) {
        self.adapter.dispatch(&dispatch);
    }

    fn select_cpu(&mut self, task: Task, cpu: Cpu) -> Option<Cpu> {
        self.adapter.select(task, cpu)
    }

    fn is_idle(&self, cpu: Cpu) -> bool {
        self.adapter.wanting.get(cpu.index()) == Some(&true)
    }

    fn online(&self) -> usize {
        self.adapter.online
    }

    fn running(&self) -> usize {
        self.adapter.running
    }

    fn wanted(&self) -> usize {
        let wanting = self.adapter.wanting.iter().filter(|wanting| **wanting);
        wanting.count().saturating_sub(self.adapter.shared)
    }

    fn cpus(&self) -> usize {
        self.adapter.capacities.len()
    }

    fn capacity(&self, cpu: Cpu) -> u32 {
        let capacity = self.adapter.capacities.get(cpu.index());
        capacity.copied().unwrap_or(1024)
    }

    fn waits(&self, visit: &mut dyn FnMut(Task, &[Task])) {
        for (waiter, others) in &self.adapter.waits {
            visit(*waiter, others);
        }
    }
}
