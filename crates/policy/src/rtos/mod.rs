//! `rtos`: fixed priorities, the lowest number first, as ThreadX has them.
//!
//! Its model: the scheduler of ThreadX (Express Logic, now Eclipse ThreadX), of which source 003 ("Lowering
//! RTOS overhead through proper use of thread priorities", W. E. Lamie) speaks.
//!
//! - Threads with the lowest priority number go first; among equals, first come, first served. A thread
//!   runs until it blocks, until a better one is ready, until it relinquishes, or until its slice ends.
//! - *Relinquish* ([`Class::yields`]) puts the thread behind its equals, and lets equal or better threads
//!   run.
//! - *Time slice* ([`Attr::slice`]): counted in whole ticks that come while the thread runs. At its end it
//!   is filled again, and the thread goes behind its equals if one is ready and the thread has no
//!   preemption-threshold. A preempted thread keeps its rest; blocking and relinquishing fill it.
//! - *Preemption-threshold* ([`Attr::threshold`]): a running thread is preempted only by priorities better
//!   than its threshold. Once it has been, it goes on before all threads that could not have preempted it.
//! - *Inheritance*: the holder of a mutex gets the priority of its best waiter, if that is better
//!   ([`Class::lend`]). Chosen here: a running thread goes to the head of its new priority, a waiting one
//!   to the tail.
//! - [`Rules::max_threads_per_priority`]: kernels that source 003 argues against, with unique priorities or
//!   few threads at each. New threads beyond the limit are refused ([`Class::admits`]), and a priority
//!   that has all its threads cannot be inherited: with unique ones, none can. Counted are the
//!   priorities that threads begin with.
//!
//! *Percentage slices* ([`Attr::percent`]) are source 003's, no service of ThreadX: a block of time
//! ([`Rules::block`]) is dealt out in shares, exactly and not by ticks, to threads of one priority in turn.
//! Chosen here: a thread that blocks forfeits the rest of its part.
//!
//! Several CPUs: not ThreadX's. Each has its own list of ready threads, and one that idles takes over the
//! best thread that waits elsewhere.
//!
//! Where it is bad: a thread that never blocks starves all worse ones for good. Unique priorities cost
//! switches: 18 instead of 4 for the same nine messages in source 003's example. Without inheritance a
//! waiter with a good priority waits for any thread in the middle. On several CPUs a thread can wait for a
//! busy CPU while another one runs something worse.
//!
//! Invariants
//! - No thread runs while a ready thread of its CPU could preempt it ([`Class::check`]).
//! - A running thread is in its priority's list, at the head unless it stands under a threshold.
//! - `held` has the threads that were begun under a threshold and have not blocked since; the last one was
//!   begun last.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use event::{Cpu, Nanos, Task};

use crate::{Attr, Class, Cpus, Dequeue, Enqueue, Idleness};

/// The differences between such kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The name the policy goes by.
    pub name: &'static str,
    /// The time between two ticks, which come at its multiples. Zero: slices end exactly.
    pub tick: Nanos,
    /// The block that percentage slices are shares of. Default: source 003's 1000 cycles at 200 MHz, 5 µs.
    pub block: Nanos,
    /// How many threads may have the same priority, those that wait included. 1: priorities are unique.
    pub max_threads_per_priority: Option<u32>,
    /// Whether mutexes that inherit do.
    pub inherits: bool,
}

impl Default for Rules {
    /// ThreadX without ticks: any number of threads per priority, with inheritance.
    fn default() -> Rules {
        Rules {
            name: "rtos",
            tick: Nanos::ZERO,
            block: Nanos::from_micros(5),
            max_threads_per_priority: None,
            inherits: true,
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Rtos {
    rules: Rules,
    threads: Vec<Thread>,
    lanes: Vec<Lane>,
    /// How many threads there are that began with each priority.
    at_priority: BTreeMap<u8, u32>,
}

#[derive(Debug)]
struct Thread {
    attr: Attr,
    /// The priority it began with.
    began: u8,
    slice: Option<Slice>,
    /// The rest of its slice.
    left: Nanos,
    /// Where it is ready or runs.
    cpu: Option<Cpu>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slice {
    full: Nanos,
    /// It ends to the nanosecond; else at a tick.
    exact: bool,
}

/// A CPU.
#[derive(Debug, Default)]
struct Lane {
    ready: BTreeMap<u8, VecDeque<Task>>,
    held: Vec<Task>,
    /// The running thread, and since when its slice has not been charged.
    running: Option<(Task, Nanos)>,
    queued: usize,
    /// A thread was told to take over and has not been picked yet.
    taking_over: bool,
}

impl Rtos {
    /// The policy with these rules.
    pub fn new(rules: Rules) -> Rtos {
        Rtos {
            rules,
            threads: Vec::new(),
            lanes: Vec::new(),
            at_priority: BTreeMap::new(),
        }
    }

    fn slice(&self, attr: &Attr) -> Option<Slice> {
        if let Some(percent) = attr.percent {
            let share = u128::from(self.rules.block.0) * u128::from(percent) / 100;
            let full = Nanos((share as u64).max(1));
            return Some(Slice { full, exact: true });
        }
        let asked = attr.slice?.0.max(1);
        Some(match self.rules.tick.0 {
            0 => Slice {
                full: Nanos(asked),
                exact: true,
            },
            tick => Slice {
                full: Nanos(asked.div_ceil(tick).saturating_mul(tick)),
                exact: false,
            },
        })
    }

    /// The worst priority that does not preempt the thread when it runs.
    fn threshold(&self, task: Task) -> u8 {
        let attr = &self.threads[task.index()].attr;
        attr.threshold
            .map_or(attr.priority, |threshold| threshold.min(attr.priority))
    }

    fn has_threshold(&self, task: Task) -> bool {
        self.threshold(task) < self.priority(task)
    }

    fn priority(&self, task: Task) -> u8 {
        self.threads[task.index()].attr.priority
    }

    fn fill(&mut self, task: Task) {
        let thread = &mut self.threads[task.index()];
        thread.left = thread.slice.map_or(Nanos::ZERO, |slice| slice.full);
    }

    /// How many of the running thread's priority are ready here, itself included.
    fn equals(&self, cpu: Cpu, running: Task) -> usize {
        let level = self.lanes[cpu.index()].ready.get(&self.priority(running));
        level.map_or(0, VecDeque::len)
    }

    /// Whether the end of this thread's slice would be another thread's turn.
    fn takes_turns(&self, cpu: Cpu, running: Task) -> bool {
        self.equals(cpu, running) > 1 && !self.has_threshold(running)
    }

    /// Charges the running thread's slice. If that has ended it is filled again, and the thread goes behind
    /// its equals; true if there are any.
    fn charge(&mut self, cpu: Cpu, now: Nanos) -> bool {
        let Some((running, since)) = self.lanes[cpu.index()].running else {
            return false;
        };
        self.lanes[cpu.index()].running = Some((running, now));
        let tick = self.rules.tick.0;
        let thread = &mut self.threads[running.index()];
        let Some(slice) = thread.slice else {
            return false;
        };
        let used = if slice.exact {
            now - since
        } else {
            Nanos((now.0 / tick - since.0 / tick) * tick)
        };
        if used < thread.left {
            thread.left = thread.left - used;
            return false;
        }
        let beyond = (used - thread.left).0 % slice.full.0;
        thread.left = slice.full - Nanos(beyond);
        let turns = self.takes_turns(cpu, running);
        if turns {
            self.fill(running);
            self.put_last(cpu, running);
        }
        turns
    }

    /// Before a thread joins a running one that was alone at its priority, and so had no timer: the newcomer
    /// waits for the rest of the slice that would be running now.
    fn settle(&mut self, cpu: Cpu, now: Nanos) {
        if let Some((running, _)) = self.lanes[cpu.index()].running
            && self.equals(cpu, running) == 1
            && let Some(Slice { exact: true, .. }) = self.threads[running.index()].slice
        {
            self.charge(cpu, now);
        }
    }

    fn put_last(&mut self, cpu: Cpu, task: Task) {
        let priority = self.priority(task);
        let level = self.lanes[cpu.index()].ready.entry(priority).or_default();
        level.retain(|&other| other != task);
        level.push_back(task);
    }

    /// Takes the task out of its list.
    fn take_out(&mut self, cpu: Cpu, task: Task) {
        let priority = self.priority(task);
        let ready = &mut self.lanes[cpu.index()].ready;
        let level = ready.get_mut(&priority).expect("a queued task has a list");
        level.retain(|&other| other != task);
        if level.is_empty() {
            ready.remove(&priority);
        }
    }

    fn best(&self, cpu: Cpu) -> Option<Task> {
        let (_, level) = self.lanes[cpu.index()].ready.first_key_value()?;
        level.front().copied()
    }

    /// Whether this priority has all the threads it may have.
    fn is_full(&self, priority: u8) -> bool {
        let there = self.at_priority.get(&priority).copied().unwrap_or(0);
        let limit = self.rules.max_threads_per_priority;
        limit.is_some_and(|limit| there >= limit)
    }
}

impl Class for Rtos {
    fn name(&self) -> &'static str {
        self.rules.name
    }

    fn set_cpus(&mut self, cpus: usize) {
        self.lanes.resize_with(cpus, Lane::default);
    }

    /// Refused: a threshold worse than the priority, a share out of range, and a thread beyond
    /// [`Rules::max_threads_per_priority`].
    fn admits(&self, attr: &Attr) -> Result<(), String> {
        let priority = attr.priority;
        if let Some(threshold) = attr.threshold
            && threshold > priority
        {
            return Err(format!(
                "preemption-threshold {threshold} is worse than priority {priority}: \
                 choose one from 0 to {priority}"
            ));
        }
        if let Some(percent @ (0 | 101..)) = attr.percent {
            return Err(format!(
                "a share of {percent} % of a block: choose 1 to 100"
            ));
        }
        if self.is_full(priority) {
            let limit = self.rules.max_threads_per_priority.unwrap_or(u32::MAX);
            let threads = if limit == 1 { "thread" } else { "threads" };
            return Err(format!(
                "priority {priority} is taken: at most {limit} {threads} may have it, choose another one"
            ));
        }
        Ok(())
    }

    /// The waiter's priority, if it is better and has room for one more thread.
    fn lend(&self, waiter: &Attr, holder: &Attr) -> Option<Attr> {
        let better = waiter.priority < holder.priority;
        let lends = self.rules.inherits && better && !self.is_full(waiter.priority);
        lends.then(|| Attr {
            priority: waiter.priority,
            ..holder.clone()
        })
    }

    fn add(&mut self, _: Task, attr: &Attr) {
        *self.at_priority.entry(attr.priority).or_default() += 1;
        let slice = self.slice(attr);
        self.threads.push(Thread {
            attr: attr.clone(),
            began: attr.priority,
            slice,
            left: Nanos::ZERO,
            cpu: None,
        });
    }

    fn remove(&mut self, task: Task) {
        let began = self.threads[task.index()].began;
        if let Some(there) = self.at_priority.get_mut(&began) {
            *there -= 1;
        }
    }

    fn set_attr(&mut self, task: Task, attr: &Attr, now: Nanos) {
        let cpu = self.threads[task.index()].cpu;
        let running = cpu.and_then(|cpu| self.lanes[cpu.index()].running);
        let runs = running.is_some_and(|(running, _)| running == task);
        if let Some(cpu) = cpu {
            if runs {
                _ = self.charge(cpu, now);
            } else {
                self.settle(cpu, now);
            }
            self.take_out(cpu, task);
        }
        let slice = self.slice(attr);
        let thread = &mut self.threads[task.index()];
        thread.attr = attr.clone();
        if thread.slice != slice {
            thread.slice = slice;
            self.fill(task);
        }
        let keeps = self.has_threshold(task);
        let Some(cpu) = cpu else { return };
        let lane = &mut self.lanes[cpu.index()];
        let level = lane.ready.entry(attr.priority).or_default();
        if runs {
            level.push_front(task)
        } else {
            level.push_back(task)
        }
        if !keeps {
            lane.held.retain(|&held| held != task);
        } else if runs && !lane.held.contains(&task) {
            lane.held.push(task);
        }
        // The kernel picks anew.
        lane.taking_over = true;
    }

    fn enqueue(&mut self, cpu: Cpu, task: Task, why: Enqueue, now: Nanos) {
        self.settle(cpu, now);
        if why != Enqueue::Move {
            self.fill(task);
        }
        self.threads[task.index()].cpu = Some(cpu);
        self.lanes[cpu.index()].queued += 1;
        self.put_last(cpu, task);
    }

    fn dequeue(&mut self, cpu: Cpu, task: Task, _: Dequeue, now: Nanos) {
        let running = self.lanes[cpu.index()].running;
        if running.is_some_and(|(running, _)| running == task) {
            self.charge(cpu, now);
            self.lanes[cpu.index()].running = None;
        }
        self.take_out(cpu, task);
        self.threads[task.index()].cpu = None;
        let lane = &mut self.lanes[cpu.index()];
        lane.held.retain(|&held| held != task);
        lane.queued -= 1;
    }

    fn pick(&mut self, cpu: Cpu, prev: Option<Task>, now: Nanos) -> Option<Task> {
        if prev.is_some() {
            self.charge(cpu, now);
        }
        self.lanes[cpu.index()].running = None;
        self.lanes[cpu.index()].taking_over = false;
        let best = self.best(cpu)?;
        let held = self.lanes[cpu.index()].held.last().copied();
        let next = match held {
            Some(held) if self.threshold(held) <= self.priority(best) => held,
            _ => best,
        };
        let keeps = self.has_threshold(next);
        let lane = &mut self.lanes[cpu.index()];
        lane.running = Some((next, now));
        if keeps {
            lane.held.retain(|&held| held != next);
            lane.held.push(next);
        }
        Some(next)
    }

    fn tick(&mut self, cpu: Cpu, _: Task, now: Nanos) -> bool {
        self.charge(cpu, now)
    }

    fn preempts(&mut self, cpu: Cpu, running: Task, woken: Task, _: Nanos) -> bool {
        let takes_over = self.priority(woken) < self.threshold(running);
        self.lanes[cpu.index()].taking_over |= takes_over;
        takes_over
    }

    fn yields(&mut self, cpu: Cpu, running: Task, now: Nanos) {
        self.charge(cpu, now);
        self.fill(running);
        let lane = &mut self.lanes[cpu.index()];
        lane.held.retain(|&held| held != running);
        self.put_last(cpu, running);
    }

    /// The best thread that waits elsewhere, on the CPU with the lowest number among equals.
    fn pull(
        &mut self,
        cpu: Cpu,
        idleness: Idleness,
        cpus: &dyn Cpus,
        _: Nanos,
    ) -> Option<(Task, Cpu)> {
        if idleness == Idleness::Busy {
            return None;
        }
        let others = (0..self.lanes.len() as u32).map(Cpu);
        let waiting = others.filter(|&other| other != cpu).filter_map(|other| {
            let lane = &self.lanes[other.index()];
            let runs = lane.running.map(|(task, _)| task);
            let mut ready = lane.ready.values().flatten().copied();
            let task = ready.find(|&task| Some(task) != runs && cpus.allows(task, cpu))?;
            Some((self.priority(task), other, task))
        });
        let (_, from, task) = waiting.min()?;
        Some((task, from))
    }

    /// The end of an exact slice.
    fn timer(&self, cpu: Cpu, now: Nanos) -> Nanos {
        let Some((running, since)) = self.lanes[cpu.index()].running else {
            return Nanos::MAX;
        };
        let thread = &self.threads[running.index()];
        match thread.slice {
            Some(slice) if slice.exact && self.takes_turns(cpu, running) => {
                (since + thread.left).max(now)
            }
            _ => Nanos::MAX,
        }
    }

    fn queued(&self, cpu: Cpu) -> usize {
        self.lanes[cpu.index()].queued
    }

    /// No thread runs while a ready thread of its CPU could preempt it.
    fn check(&self, _: Nanos) -> Result<(), String> {
        for (cpu, lane) in self.lanes.iter().enumerate() {
            let best = self.best(Cpu(cpu as u32));
            if let (Some((running, _)), Some(best), false) = (lane.running, best, lane.taking_over)
                && self.priority(best) < self.threshold(running)
            {
                return Err(format!(
                    "on CPU {cpu} task {} of priority {} waits while task {} runs with threshold {}",
                    best.0,
                    self.priority(best),
                    running.0,
                    self.threshold(running)
                ));
            }
        }
        Ok(())
    }
}
