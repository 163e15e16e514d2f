//! Invariants of the kernel, checked after each decision if the configuration asks for it. A tick that lets a
//! task continue is a decision too.
//!
//! - *Work is conserved*: no CPU idles while a task waits in its own queue, if the policy promises that
//!   ([`policy::Class::conserves_work`]). A CPU that is on its way (an interrupt, the end of a sleep state)
//!   does not idle.
//! - *No task starves*: no task waits for a CPU longer than the configuration says.
//! - *Clocks are monotone*: no event is earlier than the one before it.
//! - The policy's own promises ([`policy::Class::check`]): bounded lag, order of priorities. With more than
//!   32 CPUs they are checked less often than after each decision.
//!
//! A lost wake-up needs no check: it makes the run end in a deadlock.

use event::{Cpu, Nanos};

use super::{Kernel, TaskPhase};

impl Kernel {
    /// Checks everything after a decision on this CPU. The first violation is kept.
    pub(super) fn check(&mut self, cpu: Cpu) {
        if !self.trace.checks() {
            return;
        }
        self.looks += 1;
        let found = self.violation(cpu);
        self.trace.judge(self.now, found);
    }

    fn violation(&self, cpu: Cpu) -> Result<(), String> {
        if self.now < self.trace.latest() {
            return Err(format!("time ran back from {}", self.trace.latest()));
        }
        let core = &self.cores[cpu.index()];
        let queued = self.class.queued(cpu);
        if core.active && core.is_idle() && queued > 0 && self.class.conserves_work() {
            return Err(format!(
                "CPU {} idles while {queued} tasks wait for it",
                cpu.0
            ));
        }
        let waits_too_long = |bound: Nanos| {
            self.tasks.iter().enumerate().find(|(_, task)| {
                task.phase == TaskPhase::Ready && task.in_phase_for(self.now) > bound
            })
        };
        if let Some((number, task)) = self.starvation.and_then(waits_too_long) {
            return Err(format!(
                "task {number} ({}) has waited {} for a CPU",
                task.name,
                task.in_phase_for(self.now)
            ));
        }
        if self.looks.is_multiple_of(self.look_each()) {
            self.class.check(self.now)
        } else {
            Ok(())
        }
    }

    /// A class looks at the queues of all CPUs: on large machines it is not asked after each decision, or
    /// checks would be most of a run.
    fn look_each(&self) -> u64 {
        const CPUS_EACH_TIME: u64 = 32;
        (self.cores.len() as u64).div_ceil(CPUS_EACH_TIME)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use event::Task;
    use policy::{Attr, Class, Dequeue, Enqueue, Mask};

    use super::*;
    use crate::kernel::Next;
    use crate::machine::Machine;
    use crate::trace::Trace;

    /// A class with one error: it never picks a task although tasks wait.
    struct Lazy(Vec<Task>);

    impl Class for Lazy {
        fn name(&self) -> &'static str {
            "lazy"
        }
        fn set_cpus(&mut self, _: usize) {}
        fn add(&mut self, _: Task, _: &Attr) {}
        fn set_attr(&mut self, _: Task, _: &Attr, _: Nanos) {}
        fn enqueue(&mut self, _: Cpu, task: Task, _: Enqueue, _: Nanos) {
            self.0.push(task);
        }
        fn dequeue(&mut self, _: Cpu, task: Task, _: Dequeue, _: Nanos) {
            self.0.retain(|&other| other != task);
        }
        fn pick(&mut self, _: Cpu, _: Option<Task>, _: Nanos) -> Option<Task> {
            None
        }
        fn tick(&mut self, _: Cpu, _: Task, _: Nanos) -> bool {
            false
        }
        fn preempts(&mut self, _: Cpu, _: Task, _: Task, _: Nanos) -> bool {
            false
        }
        fn yields(&mut self, _: Cpu, _: Task, _: Nanos) {}
        fn queued(&self, _: Cpu) -> usize {
            self.0.len()
        }
    }

    /// Goal: a class that lets a CPU idle beside its queue is found. Method: a class that never picks a task,
    /// with one task.
    #[test]
    fn an_idle_cpu_beside_a_task_is_a_violation() {
        let machine = Arc::new(Machine::ideal(1));
        let trace = Trace::new(false, true);
        let lazy = Box::new(Lazy(Vec::new()));
        let mut kernel = Kernel::new(machine, lazy, Vec::new(), Nanos::MAX, None, trace);
        kernel.begin("waits".into(), Attr::default(), Mask::default(), None);
        assert_eq!(kernel.next(), Next::Deadlock);
        let (_, violation) = kernel.trace.into_parts();
        let (_, what) = violation.expect("it is found");
        assert!(what.contains("CPU 0 idles while 1 tasks wait"), "{what}");
    }

    /// Goal: a clock that runs back is found. Method: a decision at 7 ns, then one at 6.
    #[test]
    fn time_that_runs_back_is_a_violation() {
        let machine = Arc::new(Machine::ideal(1));
        let trace = Trace::new(false, true);
        let lazy = Box::new(Lazy(Vec::new()));
        let mut kernel = Kernel::new(machine, lazy, Vec::new(), Nanos::MAX, None, trace);
        for (time, is_fine) in [(5, true), (7, true), (7, true), (6, false)] {
            kernel.now = Nanos(time);
            kernel.check(Cpu(0));
            assert_eq!(kernel.trace.checks(), is_fine, "at {time} ns");
            kernel.record(Cpu(0), event::KernelEventKind::Online(true));
        }
        let (_, violation) = kernel.trace.into_parts();
        let (when, what) = violation.expect("it is found");
        assert_eq!((when, &*what), (Nanos(6), "time ran back from 7 ns"));
    }

    /// EEVDF that never preempts the running task, whatever the tick says.
    struct Stubborn(Box<dyn Class>);

    impl Class for Stubborn {
        fn name(&self) -> &'static str {
            "stubborn"
        }
        fn set_cpus(&mut self, cpus: usize) {
            self.0.set_cpus(cpus);
        }
        fn add(&mut self, task: Task, attr: &Attr) {
            self.0.add(task, attr);
        }
        fn set_attr(&mut self, task: Task, attr: &Attr, now: Nanos) {
            self.0.set_attr(task, attr, now);
        }
        fn enqueue(&mut self, cpu: Cpu, task: Task, why: Enqueue, now: Nanos) {
            self.0.enqueue(cpu, task, why, now);
        }
        fn dequeue(&mut self, cpu: Cpu, task: Task, why: Dequeue, now: Nanos) {
            self.0.dequeue(cpu, task, why, now);
        }
        fn pick(&mut self, cpu: Cpu, prev: Option<Task>, now: Nanos) -> Option<Task> {
            self.0.pick(cpu, prev, now)
        }
        fn tick(&mut self, cpu: Cpu, task: Task, now: Nanos) -> bool {
            self.0.tick(cpu, task, now);
            false
        }
        fn preempts(&mut self, cpu: Cpu, running: Task, queued: Task, now: Nanos) -> bool {
            self.0.preempts(cpu, running, queued, now)
        }
        fn yields(&mut self, cpu: Cpu, task: Task, now: Nanos) {
            self.0.yields(cpu, task, now);
        }
        fn queued(&self, cpu: Cpu) -> usize {
            self.0.queued(cpu)
        }
        fn check(&self, now: Nanos) -> Result<(), String> {
            self.0.check(now)
        }
    }

    /// Goal: lag beyond its bound is found, and the fault names the task. Method: two tasks, of which one is
    /// not preempted for a second; and the unchanged class, which preempts and has no fault.
    #[test]
    fn lag_without_a_bound_is_a_violation() {
        let violation = |spoil: fn(Box<dyn Class>) -> Box<dyn Class>| {
            let mut machine = Machine::ideal(1);
            machine.kernel.tick = Nanos::from_millis(4);
            let setting = policy::Setting {
                cpus: 1,
                tick: machine.kernel.tick,
                seed: 1,
            };
            let class = policy::named("eevdf-6.18", setting).expect("it is in the catalogue");
            let (until, trace) = (Nanos::from_secs(1), Trace::new(false, true));
            let mut kernel = Kernel::new(
                Arc::new(machine),
                spoil(class),
                Vec::new(),
                until,
                None,
                trace,
            );
            for name in ["a", "b"] {
                kernel.begin(name.into(), Attr::default(), Mask::default(), None);
            }
            while let Next::Resume(_) = kernel.next() {
                while kernel.work(Nanos::from_millis(1)) {}
            }
            kernel.trace.into_parts().1
        };
        assert_eq!(violation(|class| class), None);
        let found = violation(|class| Box::new(Stubborn(class)));
        let (when, what) = found.expect("it is found");
        assert!(
            what.contains("task ") && what.contains("has a lag of"),
            "{what}"
        );
        assert!(when < Nanos::from_secs(1), "{when}");
    }
}
