//! The CPUs as a policy sees them.

use event::{Cpu, Nanos, Task};
use policy::{Cpus, Placement};

use super::{Control, Core};
use crate::machine::Machine;

pub(super) struct View<'a> {
    pub(super) machine: &'a Machine,
    pub(super) cores: &'a [Core],
    pub(super) tasks: &'a [Control],
}

impl Cpus for View<'_> {
    fn len(&self) -> usize {
        self.cores.len()
    }
    fn is_active(&self, cpu: Cpu) -> bool {
        self.cores[cpu.index()].active
    }
    fn is_idle(&self, cpu: Cpu) -> bool {
        self.cores[cpu.index()].is_idle()
    }
    fn current(&self, cpu: Cpu) -> Option<Task> {
        self.cores[cpu.index()].task
    }
    fn capacity(&self, cpu: Cpu) -> u32 {
        self.machine.cluster(cpu).capacity
    }
    fn allows(&self, task: Task, cpu: Cpu) -> bool {
        let mask = &self.tasks[task.index()].mask;
        let is_there = |cpu: u32| self.cores[cpu as usize].active && mask.has(Cpu(cpu));
        mask.is_empty() || mask.has(cpu) || !(0..self.cores.len() as u32).any(is_there)
    }
    fn last_cpu(&self, task: Task) -> Cpu {
        self.tasks[task.index()].cpu
    }
    fn is_new(&self, task: Task) -> bool {
        self.tasks[task.index()].ran_on.is_none()
    }
    fn last_sleep(&self, task: Task) -> Nanos {
        self.tasks[task.index()].last_sleep
    }
    fn share_cache(&self, a: Cpu, b: Cpu) -> bool {
        self.machine.cpus[a.index()].cache == self.machine.cpus[b.index()].cache
    }
    fn share_core(&self, a: Cpu, b: Cpu) -> bool {
        self.machine.cpus[a.index()].core == self.machine.cpus[b.index()].core
    }
    fn placement(&self) -> Placement {
        self.machine.kernel.placement
    }
}
