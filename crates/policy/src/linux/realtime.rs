//! `SCHED_FIFO` and `SCHED_RR`: on every CPU a list by priority.
//!
//! The highest priority goes first; among equals the first to come. A task that wakes up goes behind its
//! equals; one that is preempted keeps its place; one that yields, or a `SCHED_RR` task that has used up its
//! time, goes behind its equals. A task whose priority is raised goes behind its new equals, one whose
//! priority is lowered before them: it was there already.
//!
//! `SCHED_RR`: 100 ms at a time (`sched_rr_timeslice_ms`), counted in ticks, kept while another task runs,
//! filled up when it is used up, whether or not another task waits.
//!
//! Left out: throttling (950 of each 1000 ms; from Linux 6.12 on the fair server instead). Here a real-time
//! task that never sleeps starves all others of its CPU for ever.
//!
//! Pushing and pulling between CPUs: a task that wakes up looks for a CPU with a lesser task
//! ([`select`](RealTime::select)), and a CPU takes over a task that waits elsewhere and is better than the
//! one it runs ([`pull`](RealTime::pull)). A CPU that idles does so at once; one that goes over to a lesser
//! task, at its next tick. Linux does not wait for that.
//!
//! Invariant: a list is sorted by priority, the highest first.

use event::{Cpu, Nanos, Task};

use crate::{Attr, Cpus, Discipline, Idleness};

const SLICE: Nanos = Nanos::from_millis(100);

/// A place among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    First,
    Last,
}

/// The lists.
#[derive(Debug)]
pub(super) struct RealTime {
    /// By CPU, the running task included.
    lists: Vec<Vec<Task>>,
    /// By task.
    ranks: Vec<Rank>,
    /// The slice of `SCHED_RR` in ticks.
    ticks: u32,
}

#[derive(Clone, Copy, Debug)]
struct Rank {
    priority: u8,
    discipline: Discipline,
    /// Of `SCHED_RR`: how much of its slice is left.
    ticks: u32,
}

impl RealTime {
    pub(super) fn new(tick: Nanos) -> RealTime {
        let ticks = (SLICE.0 / tick.0.max(1)).clamp(1, u64::from(u32::MAX));
        RealTime {
            lists: Vec::new(),
            ranks: Vec::new(),
            ticks: ticks as u32,
        }
    }

    pub(super) fn set_cpus(&mut self, cpus: usize) {
        self.lists = vec![Vec::new(); cpus];
    }

    pub(super) fn add(&mut self, attr: &Attr) {
        self.ranks.push(Rank {
            priority: attr.priority,
            discipline: attr.discipline,
            ticks: self.ticks,
        });
    }

    /// The task is in no list.
    pub(super) fn set_attr(&mut self, task: Task, attr: &Attr) {
        let rank = &mut self.ranks[task.index()];
        rank.priority = attr.priority;
        rank.discipline = attr.discipline;
    }

    /// Whether the task belongs here.
    #[inline]
    pub(super) fn has(&self, task: Task) -> bool {
        self.ranks[task.index()].discipline.is_realtime()
    }

    pub(super) fn priority(&self, task: Task) -> u8 {
        self.ranks[task.index()].priority
    }

    pub(super) fn enqueue(&mut self, cpu: Cpu, task: Task, among: Among) {
        let priority = self.priority(task);
        let ranks = &self.ranks;
        let list = &mut self.lists[cpu.index()];
        let place = list.partition_point(|other| {
            let other = ranks[other.index()].priority;
            other > priority || (other == priority && among == Among::Last)
        });
        list.insert(place, task);
    }

    pub(super) fn dequeue(&mut self, cpu: Cpu, task: Task) {
        self.lists[cpu.index()].retain(|&other| other != task);
    }

    /// The task that should run.
    #[inline]
    pub(super) fn first(&self, cpu: Cpu) -> Option<Task> {
        self.lists[cpu.index()].first().copied()
    }

    #[inline]
    pub(super) fn queued(&self, cpu: Cpu) -> usize {
        self.lists[cpu.index()].len()
    }

    /// A tick while `running` runs. True: another task should.
    pub(super) fn tick(&mut self, cpu: Cpu, running: Task) -> bool {
        let full = self.ticks;
        let rank = &mut self.ranks[running.index()];
        if rank.discipline == Discipline::RoundRobin {
            rank.ticks -= 1;
            if rank.ticks == 0 {
                rank.ticks = full;
                self.yields(cpu, running);
            }
        }
        self.first(cpu) != Some(running)
    }

    /// Behind its equals.
    pub(super) fn yields(&mut self, cpu: Cpu, running: Task) {
        self.dequeue(cpu, running);
        self.enqueue(cpu, running, Among::Last);
    }

    /// The CPU for a task that wakes up or begins: the last one if it takes over there at once, else the
    /// one with the least, if that is less than the task, else the last one.
    pub(super) fn select(&self, task: Task, cpus: &dyn Cpus) -> Cpu {
        let usable = |cpu: Cpu| cpus.is_active(cpu) && cpus.allows(task, cpu);
        let mine = Level::RealTime(self.priority(task));
        let last = cpus.last_cpu(task);
        if usable(last) && self.level(last, cpus) < mine {
            return last;
        }
        let all = (0..cpus.len() as u32).map(Cpu).filter(|&cpu| usable(cpu));
        let key = |cpu: &Cpu| (self.level(*cpu, cpus), !cpus.share_cache(*cpu, last), *cpu);
        match all.min_by_key(key) {
            Some(least) if self.level(least, cpus) < mine || !usable(last) => least,
            _ => last,
        }
    }

    /// The best task that waits on another CPU and is better than all this CPU has.
    pub(super) fn pull(
        &self,
        cpu: Cpu,
        idleness: Idleness,
        cpus: &dyn Cpus,
    ) -> Option<(Task, Cpu)> {
        let here = match idleness {
            Idleness::New => Level::Idle,
            Idleness::Busy => self.level(cpu, cpus),
        };
        let others = (0..self.lists.len() as u32).map(Cpu);
        let waiting = others.filter(|&other| other != cpu).flat_map(|other| {
            let list = self.lists[other.index()].iter();
            list.map(move |&task| (task, other))
        });
        let candidates = waiting.filter(|&(task, other)| {
            let mine = Level::RealTime(self.priority(task));
            // One that is better than the task running there is about to take over.
            let stuck = cpus.current(other) != Some(task) && self.running(other, cpus) >= mine;
            stuck && mine > here && cpus.allows(task, cpu)
        });
        // The first among equals: `max_by_key` would take the last.
        candidates.reduce(|best, next| {
            let better = self.priority(next.0) > self.priority(best.0);
            if better { next } else { best }
        })
    }

    /// The best of the task running on this CPU and the one that is about to.
    fn level(&self, cpu: Cpu, cpus: &dyn Cpus) -> Level {
        let first = self.first(cpu);
        let waits = first.map_or(Level::Idle, |task| Level::RealTime(self.priority(task)));
        waits.max(self.running(cpu, cpus))
    }

    fn running(&self, cpu: Cpu, cpus: &dyn Cpus) -> Level {
        match cpus.current(cpu) {
            Some(task) if self.has(task) => Level::RealTime(self.priority(task)),
            Some(_) => Level::Fair,
            None if cpus.is_idle(cpu) => Level::Idle,
            None => Level::Fair,
        }
    }

    /// # Errors
    /// Where a list is out of order.
    pub(super) fn check(&self) -> Result<(), String> {
        for (cpu, list) in self.lists.iter().enumerate() {
            let sorted = list.is_sorted_by_key(|&task| u8::MAX - self.priority(task));
            if !sorted || !list.iter().all(|&task| self.has(task)) {
                return Err(format!(
                    "the real-time list of CPU {cpu} is out of order: {list:?}"
                ));
            }
        }
        Ok(())
    }
}

/// How much a CPU would lose if a task took over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Idle,
    Fair,
    RealTime(u8),
}
