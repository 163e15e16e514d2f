//! What the process sees of the kernel's side.

use event::{Cpu, Nanos, Task};

use super::{Place, Queues};
use crate::ops::{Dispatch, Kernel, Queued};

impl Kernel for Queues {
    fn now(&self) -> Nanos {
        self.now
    }

    fn dequeue(&mut self) -> Option<Queued> {
        let task = self.messages.pop_front()?;
        let known = &mut self.tasks[task.index()];
        known.place = Place::Held;
        Some(Queued {
            task,
            cpu: known.cpu,
            allowed: known.allowed_cpus,
            woken: known.woken,
            start: known.start,
            stop: known.stop,
            exec_runtime: known.exec_runtime,
            weight: known.weight,
            vtime: known.vtime,
            enq_cnt: known.enq_cnt,
        })
    }

    fn dispatch(&mut self, dispatch: Dispatch) {
        let task = dispatch.task;
        let Some(known) = self.tasks.get_mut(task.index()) else {
            self.cancelled += 1;
            return;
        };
        if known.place != Place::Held || known.enq_cnt != dispatch.enq_cnt {
            self.cancelled += 1;
            return;
        }
        self.decisions.dispatched += 1;
        self.decisions.slices += dispatch.slice;
        known.slice = dispatch.slice;
        known.vtime = dispatch.vtime;
        let home = known.cpu;
        let usable = |cpu: &Cpu| {
            let lane = self.lanes.get(cpu.index());
            known.allowed.has(*cpu) && lane.is_some_and(|lane| lane.online)
        };
        let to = dispatch.cpu.filter(usable);
        if dispatch.preempt {
            let victim = to.unwrap_or(home);
            self.lanes[victim.index()].cut = true;
            self.kicks.insert(victim);
        }
        let vtime = if dispatch.preempt { 0 } else { dispatch.vtime };
        self.insert(task, to, vtime);
    }

    fn select_cpu(&mut self, task: Task, cpu: Cpu) -> Option<Cpu> {
        let known = self.tasks.get(task.index())?;
        let free = |other: &Cpu| self.is_idle(*other) && known.allowed.has(*other);
        let all = (0..self.lanes.len() as u32).map(Cpu);
        all.filter(free).min_by_key(|other| (*other != cpu, *other))
    }

    fn is_idle(&self, cpu: Cpu) -> bool {
        let lane = &self.lanes[cpu.index()];
        let empty = lane.running.is_none() && lane.local.is_empty();
        let process = self.is_the_process_on(cpu) && !self.model.kicks;
        lane.online && empty && !process
    }

    fn online(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.online).count()
    }

    fn running(&self) -> usize {
        let running = self.lanes.iter().filter(|lane| lane.running.is_some());
        running.count() + usize::from(self.round.is_some())
    }

    fn waiting(&self) -> Option<usize> {
        Some(self.unserved())
    }

    fn wanted(&self) -> usize {
        let lacks = |cpu: &Cpu| {
            let lane = &self.lanes[cpu.index()];
            lane.online && lane.running.is_none() && self.first(*cpu).is_none()
        };
        (0..self.lanes.len() as u32).map(Cpu).filter(lacks).count()
    }

    fn cpus(&self) -> usize {
        self.lanes.len()
    }

    fn capacity(&self, cpu: Cpu) -> u32 {
        self.lanes[cpu.index()].capacity
    }

    fn waits(&self, visit: &mut dyn FnMut(Task, &[Task])) {
        for (&waiter, others) in &self.waits {
            visit(waiter, others);
        }
    }
}
