//! Scheduling: picking tasks, switching between them, ticks.

use event::{Cpu, KernelEventKind, Left, Nanos, Task};
use policy::{Dequeue, Enqueue, Idleness};

use super::view::View;
use super::{Busy, Kernel, TaskPhase};

impl Kernel {
    /// The class chooses the task that runs on this CPU from now on.
    pub(super) fn reschedule(&mut self, cpu: Cpu) {
        let prev = self.cores[cpu.index()].task;
        self.pick_and_switch(cpu, Left::Runnable, prev);
    }

    /// The running task stops for this reason, and the CPU picks another one. The class knows already.
    pub(super) fn leave(&mut self, why: Left) {
        self.pick_and_switch(self.on, why, None);
    }

    /// The running task could continue, but is no longer queued on this CPU.
    pub(super) fn expel(&mut self, cpu: Cpu) {
        self.pick_and_switch(cpu, Left::Runnable, None);
    }

    fn pick_and_switch(&mut self, cpu: Cpu, why: Left, prev: Option<Task>) {
        self.cores[cpu.index()].resched_at = Nanos::MAX;
        self.count_share(cpu);
        let mut next = if self.cores[cpu.index()].active {
            self.pick(cpu, prev)
        } else {
            None
        };
        if next.is_none() && self.pull(cpu, Idleness::New) {
            next = self.pick(cpu, None);
        }
        if next.is_none() || next != prev {
            self.switch(cpu, why, next);
        }
        self.give_share_back(cpu);
        self.ask_for_timer(cpu);
        self.check(cpu);
    }

    /// The task that the class picks, if there is CPU time for it. A task without CPU time is throttled, and
    /// the class is asked again.
    fn pick(&mut self, cpu: Cpu, mut prev: Option<Task>) -> Option<Task> {
        loop {
            let next = self.class.pick(cpu, prev, self.now)?;
            if self.has_ration(cpu, next) {
                return Some(next);
            }
            self.throttle(cpu, next);
            prev = prev.filter(|&prev| prev != next);
        }
    }

    fn switch(&mut self, cpu: Cpu, why: Left, next: Option<Task>) {
        let now = self.now;
        let core = &mut self.cores[cpu.index()];
        let prev = core.task.take();
        if prev.is_none() && next.is_none() {
            return;
        }
        if let Some(prev) = prev {
            let control = &mut self.tasks[prev.index()];
            match why {
                Left::Runnable | Left::Preempted => {
                    control.left = match control.spins_on {
                        Some(_) => Busy::NOTHING,
                        None => core.left(now),
                    };
                    control.involuntary += 1;
                    let phase = if control.is_parked {
                        TaskPhase::Throttled
                    } else {
                        TaskPhase::Ready
                    };
                    control.set_phase(phase, now);
                }
                Left::Sleeping | Left::Blocked => control.voluntary += 1,
                Left::Dead => {}
            }
        }
        core.task = next;
        core.done_at = Nanos::MAX;
        match next {
            Some(next) => self.start(cpu, next, prev.is_none()),
            None => {
                core.idle_since = now;
                core.tick_at = Nanos::MAX;
            }
        }
        self.record(
            cpu,
            KernelEventKind::Switch {
                prev,
                state: why,
                next,
            },
        );
        if prev.is_none() != next.is_none() {
            self.busyness_changed(cpu);
        }
    }

    /// The task gets the CPU.
    fn start(&mut self, cpu: Cpu, task: Task, was_idle: bool) {
        let now = self.now;
        let costs = self.machine.kernel;
        let control = &mut self.tasks[task.index()];
        let moved = control.ran_on.is_some_and(|before| before != cpu);
        let overhead = costs.switch + if moved { costs.migrate } else { Nanos::ZERO };
        control.set_phase(TaskPhase::Running, now);
        control.cpu = cpu;
        control.ran_on = Some(cpu);
        let left = std::mem::take(&mut control.left);
        let core = &mut self.cores[cpu.index()];
        core.begin(now + overhead, left);
        if was_idle {
            core.tick_at = self.ticks.after(now);
        }
    }

    /// A CPU went from idle to busy or back: others of its core and its cluster may run at another speed.
    fn busyness_changed(&mut self, cpu: Cpu) {
        let busy = self.cores[cpu.index()].task.is_some();
        self.speeds.set_busy(cpu, busy, self.now);
        self.apply_speeds();
    }

    pub(super) fn apply_speeds(&mut self) {
        while let Some((cpu, speed)) = self.speeds.take_changed() {
            let now = self.now;
            self.cores[cpu.index()].set_speed(speed, now);
            self.due_changed(cpu);
        }
        while let Some((cpu, khz)) = self.speeds.take_frequency() {
            self.record(cpu, KernelEventKind::Frequency(khz));
        }
    }

    fn ask_for_timer(&mut self, cpu: Cpu) {
        let timer = self.class.timer(cpu, self.now);
        self.cores[cpu.index()].timer_at = timer;
        self.due_changed(cpu);
        self.kick();
    }

    /// Interrupts the CPUs that the class wants to pick anew although no hook was called for them.
    pub(super) fn kick(&mut self) {
        while let Some(cpu) = self.class.kick() {
            let core = &self.cores[cpu.index()];
            let exit = match core.task {
                None => self.speeds.exit_latency(cpu, self.now - core.idle_since),
                Some(_) => Nanos::ZERO,
            };
            let at = self.now + self.machine.kernel.ipi_deliver + exit;
            let core = &mut self.cores[cpu.index()];
            core.resched_at = core.resched_at.min(at);
            self.due_changed(cpu);
        }
    }

    pub(super) fn tick(&mut self, cpu: Cpu) {
        let costs = self.machine.kernel;
        let core = &mut self.cores[cpu.index()];
        let Some(running) = core.task else {
            core.tick_at = Nanos::MAX;
            return self.due_changed(cpu);
        };
        core.tick_at = self.ticks.after(self.now);
        if self.tasks[running.index()].spins_on.is_none() {
            core.delay(costs.tick_cost);
        }
        self.speeds.tick(cpu, self.now);
        self.apply_speeds();
        self.pull(cpu, Idleness::Busy);
        self.count_share(cpu);
        let anew = self.class.tick(cpu, running, self.now);
        if anew || !self.has_ration(cpu, running) {
            self.reschedule(cpu);
        } else {
            self.ask_for_timer(cpu);
            // To let the running task continue is a decision as well.
            self.check(cpu);
        }
    }

    pub(super) fn class_timer(&mut self, cpu: Cpu) {
        self.cores[cpu.index()].timer_at = Nanos::MAX;
        let anew = match self.cores[cpu.index()].task {
            Some(running) => self.class.tick(cpu, running, self.now),
            None => true,
        };
        if anew {
            self.reschedule(cpu);
        } else {
            self.ask_for_timer(cpu);
        }
    }

    /// The running program calls `sched_yield`.
    pub(crate) fn yields(&mut self) {
        let (me, cpu) = (self.me(), self.on);
        self.class.yields(cpu, me, self.now);
        // The program continues at once when it runs again.
        self.occupy(Busy::NOTHING);
        self.reschedule(cpu);
        // A switch has its own cost. A yield that finds no other task is not free either.
        let costs = self.machine.kernel;
        let core = &mut self.cores[cpu.index()];
        if core.task == Some(me) {
            core.delay(costs.yields - costs.syscall);
            self.due_changed(cpu);
        }
    }

    /// A policy that looks for errors has chosen another task before the program's next step.
    pub(crate) fn preempt(&mut self) {
        self.occupy(Busy::NOTHING);
        self.reschedule(self.on);
    }

    /// Takes a task over from another CPU's queue, if the class names one.
    fn pull(&mut self, cpu: Cpu, idleness: Idleness) -> bool {
        if !self.cores[cpu.index()].active {
            return false;
        }
        let view = View {
            machine: &self.machine,
            cores: &self.cores,
            tasks: &self.tasks,
        };
        let Some((task, from)) = self.class.pull(cpu, idleness, &view, self.now) else {
            return false;
        };
        if self.tasks[task.index()].phase != TaskPhase::Ready || !self.may_run(task, cpu) {
            return false;
        }
        self.move_to(task, from, cpu);
        true
    }

    /// Moves a waiting task from one queue to another.
    pub(super) fn move_to(&mut self, task: Task, from: Cpu, to: Cpu) {
        self.class.dequeue(from, task, Dequeue::Move, self.now);
        self.tasks[task.index()].cpu = to;
        self.class.enqueue(to, task, Enqueue::Move, self.now);
        self.record(to, KernelEventKind::Migrate { task, from, to });
    }
}
