//! Blocking, waking, timers, and the CPU that a task goes to.

use std::cmp::Reverse;

use event::{Cpu, KernelEventKind, Left, Nanos, Task};
use policy::{Cpus, Dequeue, Enqueue, Mask};

use super::view::View;
use super::{Kernel, TaskPhase};
use crate::report::On;

impl Kernel {
    /// The running program waits for something, at most until then. Its stack has to be left.
    pub(crate) fn block(&mut self, on: On, until: Nanos) {
        let (me, now) = (self.me(), self.now);
        // It may have lost its CPU since it looked at the clock: then its time is over already.
        let until = until.max(now);
        let control = &mut self.tasks[me.index()];
        control.set_phase(TaskPhase::Blocked(on), now);
        control.until = until;
        control.wait += 1;
        let wait = control.wait;
        if until < Nanos::MAX {
            self.timers_set += 1;
            self.timers
                .push(Reverse((until, self.timers_set, me.0, wait)));
            self.beside_cpus = self.beside_cpus.min(until);
        }
        self.class.dequeue(self.on, me, Dequeue::Sleep, now);
        self.leave(Left::Sleeping);
    }

    /// A blocked task wakes up by itself at this time, if nothing else wakes it earlier.
    pub(crate) fn wake_at(&mut self, task: Task, at: Nanos) {
        let control = &mut self.tasks[task.index()];
        if !matches!(control.phase, TaskPhase::Blocked(_)) {
            return;
        }
        control.until = at;
        let wait = control.wait;
        self.timers_set += 1;
        self.timers
            .push(Reverse((at, self.timers_set, task.0, wait)));
        self.beside_cpus = self.beside_cpus.min(at);
        self.horizon = self.horizon.min(at);
    }

    /// Makes a blocked task ready; `by` is the waker, or an interrupt. False if the task was not blocked.
    pub(crate) fn wake(&mut self, task: Task, by: Option<Task>) -> bool {
        if !matches!(self.tasks[task.index()].phase, TaskPhase::Blocked(_)) {
            return false;
        }
        let now = self.now;
        self.tasks[task.index()].until = Nanos::MAX;
        self.tasks[task.index()].set_phase(TaskPhase::Ready, now);
        self.put(task, Enqueue::Wake, by);
        true
    }

    /// Chooses a CPU for a task that is ready from now on, and queues it there.
    pub(super) fn put(&mut self, task: Task, why: Enqueue, by: Option<Task>) {
        let waker = by.map(|by| self.tasks[by.index()].cpu);
        let from = self.tasks[task.index()].cpu;
        let target = self.choose_cpu(task, waker);
        self.tasks[task.index()].cpu = target;
        self.record(
            waker.unwrap_or(target),
            KernelEventKind::Waking { task, by, target },
        );
        if from != target && why == Enqueue::Wake {
            self.record(
                target,
                KernelEventKind::Migrate {
                    task,
                    from,
                    to: target,
                },
            );
        }
        self.class.enqueue(target, task, why, self.now);
        self.see_who_runs(target, task, waker);
    }

    /// A task was queued on this CPU: should it run at once?
    pub(super) fn see_who_runs(&mut self, cpu: Cpu, queued: Task, waker: Option<Cpu>) {
        let costs = self.machine.kernel;
        let now = self.now;
        let far = match waker {
            Some(waker) if waker != cpu => costs.ipi_deliver,
            _ => Nanos::ZERO,
        };
        let core = &mut self.cores[cpu.index()];
        let at = match core.task {
            None => {
                let exit = self.speeds.exit_latency(cpu, now - core.idle_since);
                Some(now + far + exit)
            }
            Some(running) => {
                let takes_over = self.class.preempts(cpu, running, queued, now);
                takes_over.then_some(now + far)
            }
        };
        if let Some(at) = at {
            let core = &mut self.cores[cpu.index()];
            core.resched_at = core.resched_at.min(at);
        }
        let timer = self.class.timer(cpu, now);
        self.cores[cpu.index()].timer_at = timer;
        self.due_changed(cpu);
        self.kick();
    }

    pub(super) fn choose_cpu(&mut self, task: Task, waker: Option<Cpu>) -> Cpu {
        let view = View {
            machine: &self.machine,
            cores: &self.cores,
            tasks: &self.tasks,
        };
        let chosen = self.class.select_cpu(task, waker, &view);
        if self.may_run(task, chosen) {
            return chosen;
        }
        let all = (0..self.cores.len() as u32).map(Cpu);
        let usable = all.filter(|&cpu| self.may_run(task, cpu));
        let idle_first = |cpu: &Cpu| !self.cores[cpu.index()].is_idle();
        usable.min_by_key(idle_first).unwrap_or(chosen)
    }

    /// Whether the task may be queued on this CPU at this moment.
    pub(super) fn may_run(&self, task: Task, cpu: Cpu) -> bool {
        let view = View {
            machine: &self.machine,
            cores: &self.cores,
            tasks: &self.tasks,
        };
        view.is_active(cpu) && view.allows(task, cpu)
    }

    /// Whether waking this task means interrupting another CPU than the caller's: the waker pays.
    pub(crate) fn has_to_interrupt(&self, task: Task) -> bool {
        self.tasks[task.index()].cpu != self.on
    }

    /// When the next blocked task wakes up by itself. Timers of waits that are over are dropped.
    pub(super) fn next_timer(&mut self) -> Nanos {
        while let Some(&Reverse((time, _, task, wait))) = self.timers.peek() {
            let control = &self.tasks[task as usize];
            if control.wait == wait && matches!(control.phase, TaskPhase::Blocked(_)) {
                return time;
            }
            self.timers.pop();
        }
        Nanos::MAX
    }

    /// The earliest time at which something can be different if no program does anything: the next timer, or
    /// the next nanosecond.
    pub(crate) fn next_moment(&mut self) -> Nanos {
        match self.next_timer() {
            Nanos::MAX => self.now + Nanos(1),
            time => time,
        }
    }

    pub(super) fn timer_rings(&mut self) {
        if let Some(Reverse((_, _, task, _))) = self.timers.pop() {
            self.wake(Task(task), None);
        }
    }

    /// Restricts the task to these CPUs; an empty mask: to all. The task moves if it is on another one. True
    /// if the running program itself has to move: its stack has to be left.
    pub(crate) fn set_mask(&mut self, task: Task, mask: Mask) -> bool {
        self.tasks[task.index()].mask = mask;
        let cpu = self.tasks[task.index()].cpu;
        if self.may_run(task, cpu) {
            return false;
        }
        match self.tasks[task.index()].phase {
            TaskPhase::Ready => {
                let to = self.choose_cpu(task, None);
                self.move_to(task, cpu, to);
                self.see_who_runs(to, task, Some(self.on));
                false
            }
            TaskPhase::Running => {
                self.push_off(cpu, task);
                cpu == self.on
            }
            TaskPhase::Throttled | TaskPhase::Blocked(_) | TaskPhase::Ended => false,
        }
    }

    /// Takes the running task off this CPU and queues it elsewhere.
    pub(super) fn push_off(&mut self, cpu: Cpu, task: Task) {
        if cpu == self.on && self.cores[cpu.index()].done_at == Nanos::MAX {
            let now = self.now;
            self.cores[cpu.index()].begin(now, super::Busy::NOTHING);
        }
        // The task is off its CPU first: only waiting tasks change queues.
        let to = self.choose_cpu(task, None);
        self.class.dequeue(cpu, task, Dequeue::Move, self.now);
        self.expel(cpu);
        self.tasks[task.index()].cpu = to;
        self.class.enqueue(to, task, Enqueue::Move, self.now);
        self.record(
            to,
            KernelEventKind::Migrate {
                task,
                from: cpu,
                to,
            },
        );
        self.see_who_runs(to, task, Some(cpu));
    }
}

impl Kernel {
    /// Whether the CPU exists and takes tasks.
    pub(crate) fn is_active(&self, cpu: Cpu) -> bool {
        self.cores.get(cpu.index()).is_some_and(|core| core.active)
    }

    /// Whether the CPU exists and takes none.
    pub(crate) fn is_offline(&self, cpu: Cpu) -> bool {
        self.cores.get(cpu.index()).is_some_and(|core| !core.active)
    }

    /// The task has these attributes from now on.
    pub(super) fn apply_attr(&mut self, task: Task, attr: policy::Attr) {
        self.class.set_attr(task, &attr, self.now);
        self.tasks[task.index()].attr = attr;
        let cpu = self.tasks[task.index()].cpu;
        match self.tasks[task.index()].phase {
            TaskPhase::Ready => self.see_who_runs(cpu, task, Some(self.on)),
            TaskPhase::Running => {
                let now = self.now;
                self.cores[cpu.index()].resched_at = now;
                self.due_changed(cpu);
            }
            TaskPhase::Throttled | TaskPhase::Blocked(_) | TaskPhase::Ended => {}
        }
    }
}
