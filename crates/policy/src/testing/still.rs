//! CPUs on which nothing happens: for asking a class where it would put a task.

use event::{Cpu, Nanos, Task};

use crate::{Cpus, Placement};

/// Equal CPUs that share a cache, as they are at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Still {
    pub(crate) cpus: usize,
    /// By CPU; a CPU that is not named idles.
    pub(crate) running: Vec<Option<Task>>,
    /// By task; 0 if not named.
    pub(crate) last: Vec<Cpu>,
    pub(crate) forbidden: Option<(Task, Cpu)>,
    /// How long every task slept last.
    pub(crate) slept: Nanos,
    pub(crate) placement: Placement,
}

impl Still {
    /// `cpus` CPUs that idle.
    pub(crate) fn idle(cpus: usize) -> Still {
        Still {
            cpus,
            slept: Nanos::MAX,
            ..Still::default()
        }
    }
}

impl Cpus for Still {
    fn len(&self) -> usize {
        self.cpus
    }
    fn is_active(&self, _: Cpu) -> bool {
        true
    }
    fn is_idle(&self, cpu: Cpu) -> bool {
        self.current(cpu).is_none()
    }
    fn current(&self, cpu: Cpu) -> Option<Task> {
        self.running.get(cpu.index()).copied().flatten()
    }
    fn capacity(&self, _: Cpu) -> u32 {
        1024
    }
    fn allows(&self, task: Task, cpu: Cpu) -> bool {
        self.forbidden != Some((task, cpu))
    }
    fn last_cpu(&self, task: Task) -> Cpu {
        self.last.get(task.index()).copied().unwrap_or(Cpu(0))
    }
    fn last_sleep(&self, _: Task) -> Nanos {
        self.slept
    }
    fn share_cache(&self, _: Cpu, _: Cpu) -> bool {
        true
    }
    fn share_core(&self, a: Cpu, b: Cpu) -> bool {
        a == b
    }
    fn placement(&self) -> Placement {
        self.placement
    }
}
