//! Linux: real-time tasks before fair ones, on every CPU.
//!
//! [`Linux`] stacks the classes as Linux does: `SCHED_FIFO` and `SCHED_RR` (`realtime`) above a fair class,
//! which has all other tasks. The fair class is the part that differs between versions: `cfs`, `eevdf`. Left
//! out: the stop and deadline classes, groups (cgroups, autogroup: all tasks are in one group), load averages
//! and features built on them (energy-aware placement, `uclamp`).
//!
//! Preemption is decided at ticks, wake-ups and yields only, but in `eevdf-6.18-hrtick`: a slice that ends
//! between two ticks lasts until the second one.
//!
//! A fair task that becomes a real-time one, or comes back (`sched_setscheduler`, priority inheritance),
//! keeps its lead or lag in CPU time, as if it had moved to another CPU and back.
//!
//! Where it is bad: see each class. Common to all: with real-time tasks that do not sleep nothing else
//! runs on their CPU, since throttling is left out.

mod cfs;
mod eevdf;
mod fair;
mod fifo;
mod realtime;
mod rr;
#[cfg(test)]
mod tests;
mod weights;

use event::{Cpu, Nanos, Task};

use crate::{Attr, Class, Cpus, Dequeue, Discipline, Enqueue, Idleness, Setting, place};
use fair::{Balance, Fair};
use realtime::{Among, RealTime};
pub(crate) use weights::Weight;

/// Real-time tasks above the fair class `F`. See the [module](self).
#[derive(Debug)]
struct Linux<F> {
    name: &'static str,
    /// The discipline of tasks that are given none of the real-time ones.
    ordinary: Ordinary,
    realtime: RealTime,
    fair: F,
    balance: Balance,
    /// By task: where it is queued.
    queues: Vec<Option<Cpu>>,
    online: Vec<bool>,
    /// CPUs that idle and should look for tasks that wait elsewhere.
    kicks: Vec<Cpu>,
}

/// The place of tasks that are given no real-time discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ordinary {
    /// They are fair.
    Fair,
    /// They are real-time tasks of this discipline and the priority in their attributes.
    RealTime(Discipline),
}

/// `cfs-4.12`: the Completely Fair Scheduler.
pub(crate) fn cfs_4_12(setting: Setting) -> Box<dyn Class> {
    let fair = cfs::Cfs::new(setting);
    Box::new(Linux::new("cfs-4.12", Ordinary::Fair, fair, setting))
}

/// `eevdf-6.6`: the first release of EEVDF.
pub(crate) fn eevdf_6_6(setting: Setting) -> Box<dyn Class> {
    let fair = eevdf::Eevdf::new(eevdf::V6_6, setting);
    Box::new(Linux::new("eevdf-6.6", Ordinary::Fair, fair, setting))
}

/// `eevdf-6.18`: EEVDF with custom slices, delayed dequeue, and yields that forfeit.
pub(crate) fn eevdf_6_18(setting: Setting) -> Box<dyn Class> {
    let fair = eevdf::Eevdf::new(eevdf::V6_18, setting);
    Box::new(Linux::new("eevdf-6.18", Ordinary::Fair, fair, setting))
}

/// `eevdf-6.18-hrtick`: the same, and a timer ends slices.
pub(crate) fn eevdf_6_18_hrtick(setting: Setting) -> Box<dyn Class> {
    let fair = eevdf::Eevdf::new(eevdf::V6_18_HRTICK, setting);
    Box::new(Linux::new(
        "eevdf-6.18-hrtick",
        Ordinary::Fair,
        fair,
        setting,
    ))
}

pub(crate) use fifo::fifo;
pub(crate) use rr::rr;

impl<F: Fair> Linux<F> {
    fn new(name: &'static str, ordinary: Ordinary, fair: F, setting: Setting) -> Linux<F> {
        Linux {
            name,
            ordinary,
            realtime: RealTime::new(setting.tick),
            fair,
            balance: Balance::new(setting.tick),
            queues: Vec::new(),
            online: Vec::new(),
            kicks: Vec::new(),
        }
    }

    /// Tasks wait on this CPU: the next one that idles should look at that.
    fn kick_idle(&mut self, cpu: Cpu) {
        let cpus = self.online.len();
        let others = (1..cpus).map(|distance| Cpu(((cpu.index() + distance) % cpus) as u32));
        let mut idle =
            others.filter(|&other| self.online[other.index()] && self.queued(other) == 0);
        if let Some(idle) = idle.next() {
            self.kicks.push(idle);
        }
    }

    /// The attributes that count.
    fn effective(&self, attr: &Attr) -> Attr {
        let mut attr = attr.clone();
        if let Ordinary::RealTime(discipline) = self.ordinary
            && !attr.discipline.is_realtime()
        {
            attr.discipline = discipline;
        }
        attr
    }

    /// The task changes between the classes, or its priority as a real-time task changes.
    fn change_class(&mut self, task: Task, attr: &Attr, now: Nanos) {
        let queue = self.queues[task.index()];
        let was_realtime = self.realtime.has(task);
        let was = was_realtime.then(|| self.realtime.priority(task));
        match (queue, was_realtime) {
            (Some(cpu), true) => self.realtime.dequeue(cpu, task),
            (Some(cpu), false) => self.fair.dequeue(cpu, task, Dequeue::Move, now),
            (None, true) => {}
            (None, false) => self.fair.forget(task, now),
        }
        self.realtime.set_attr(task, attr);
        self.fair.set_attr(task, attr, now);
        let Some(cpu) = queue else {
            return;
        };
        let lowered = was.is_some_and(|was| was > attr.priority);
        match (attr.discipline.is_realtime(), lowered) {
            (true, true) => self.realtime.enqueue(cpu, task, Among::First),
            (true, false) => self.realtime.enqueue(cpu, task, Among::Last),
            (false, _) => self.fair.enqueue(cpu, task, Enqueue::Move, now),
        }
    }
}

impl<F: Fair> Class for Linux<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn set_cpus(&mut self, cpus: usize) {
        self.realtime.set_cpus(cpus);
        self.fair.set_cpus(cpus);
        self.balance.set_cpus(cpus);
        self.online = vec![true; cpus];
    }

    fn add(&mut self, task: Task, attr: &Attr) {
        let attr = self.effective(attr);
        self.realtime.add(&attr);
        self.fair.add(task, &attr);
        self.queues.push(None);
    }

    fn set_attr(&mut self, task: Task, attr: &Attr, now: Nanos) {
        let attr = self.effective(attr);
        let (is, was) = (attr.discipline.is_realtime(), self.realtime.has(task));
        if is != was || is && attr.priority != self.realtime.priority(task) {
            return self.change_class(task, &attr, now);
        }
        self.realtime.set_attr(task, &attr);
        self.fair.set_attr(task, &attr, now);
    }

    fn select_cpu(&mut self, task: Task, waker: Option<Cpu>, cpus: &dyn Cpus) -> Cpu {
        if self.realtime.has(task) {
            return self.realtime.select(task, cpus);
        }
        let usable = |cpu: &Cpu| cpus.is_active(*cpu) && cpus.allows(task, *cpu);
        let competes_on = self.fair.competes_on(task).filter(usable);
        competes_on.unwrap_or_else(|| place(task, waker, cpus))
    }

    fn enqueue(&mut self, cpu: Cpu, task: Task, why: Enqueue, now: Nanos) {
        self.queues[task.index()] = Some(cpu);
        if self.realtime.has(task) {
            self.realtime.enqueue(cpu, task, Among::Last)
        } else {
            self.fair.enqueue(cpu, task, why, now)
        }
        if self.realtime.queued(cpu) > 1 {
            self.kick_idle(cpu);
        }
    }

    fn dequeue(&mut self, cpu: Cpu, task: Task, why: Dequeue, now: Nanos) {
        self.queues[task.index()] = None;
        if self.realtime.has(task) {
            self.realtime.dequeue(cpu, task)
        } else {
            self.fair.dequeue(cpu, task, why, now)
        }
    }

    fn pick(&mut self, cpu: Cpu, _: Option<Task>, now: Nanos) -> Option<Task> {
        let Some(first) = self.realtime.first(cpu) else {
            return self.fair.pick(cpu, now);
        };
        self.fair.put_prev(cpu, now);
        Some(first)
    }

    fn tick(&mut self, cpu: Cpu, running: Task, now: Nanos) -> bool {
        if self.queued(cpu) > 1 {
            self.kick_idle(cpu);
        }
        if self.realtime.has(running) {
            self.realtime.tick(cpu, running)
        } else {
            self.fair.tick(cpu, running, now) || self.realtime.first(cpu).is_some()
        }
    }

    fn timer(&self, cpu: Cpu, now: Nanos) -> Nanos {
        match self.realtime.first(cpu) {
            Some(_) => Nanos::MAX,
            None => self.fair.slice_ends(cpu, now),
        }
    }

    fn preempts(&mut self, cpu: Cpu, running: Task, woken: Task, now: Nanos) -> bool {
        match (self.realtime.has(running), self.realtime.has(woken)) {
            (true, true) => self.realtime.priority(woken) > self.realtime.priority(running),
            (true, false) => false,
            (false, true) => true,
            (false, false) => self.fair.preempts(cpu, running, woken, now),
        }
    }

    fn yields(&mut self, cpu: Cpu, running: Task, now: Nanos) {
        if self.realtime.has(running) {
            self.realtime.yields(cpu, running)
        } else {
            self.fair.yields(cpu, running, now)
        }
    }

    fn pull(
        &mut self,
        cpu: Cpu,
        idleness: Idleness,
        cpus: &dyn Cpus,
        now: Nanos,
    ) -> Option<(Task, Cpu)> {
        let urgent = self.realtime.pull(cpu, idleness, cpus);
        if urgent.is_some() || self.realtime.first(cpu).is_some() {
            return urgent;
        }
        let (realtime, fair) = (&self.realtime, &self.fair);
        let queued = |cpu| realtime.queued(cpu) + fair.queued(cpu);
        self.balance.pull(fair, (cpu, idleness), queued, cpus, now)
    }

    fn kick(&mut self) -> Option<Cpu> {
        self.kicks.pop()
    }

    fn has_quotas(&self) -> bool {
        self.ordinary == Ordinary::Fair
    }

    /// Fair tasks are, as by `cpu.max`.
    fn rations(&self, task: Task) -> bool {
        !self.realtime.has(task)
    }

    fn set_online(&mut self, cpu: Cpu, online: bool) {
        self.online[cpu.index()] = online;
        debug_assert!(
            online || self.queued(cpu) == 0,
            "CPU {cpu:?} still has tasks"
        );
    }

    /// The priority of a real-time task, as `PTHREAD_PRIO_INHERIT` mutexes do. Fair tasks lend nothing:
    /// niceness is not inherited.
    fn lend(&self, waiter: &Attr, holder: &Attr) -> Option<Attr> {
        let (waiter, holder) = (self.effective(waiter), self.effective(holder));
        let has_more = waiter.discipline.is_realtime()
            && (!holder.discipline.is_realtime() || waiter.priority > holder.priority);
        let discipline = match holder.discipline {
            Discipline::RoundRobin => Discipline::RoundRobin,
            _ => Discipline::Fifo,
        };
        has_more.then_some(Attr {
            discipline,
            priority: waiter.priority,
            ..holder
        })
    }

    fn queued(&self, cpu: Cpu) -> usize {
        self.realtime.queued(cpu) + self.fair.queued(cpu)
    }

    fn check(&self, _: Nanos) -> Result<(), String> {
        self.realtime.check()?;
        self.fair.check()
    }
}
