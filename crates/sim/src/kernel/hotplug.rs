//! Planned changes of the machine from outside.

use event::{Cpu, KernelEventKind, Task};
use policy::{Dequeue, Enqueue};

use super::{Kernel, TaskPhase};
use crate::config::Planned;

impl Kernel {
    pub(super) fn carry_out(&mut self, what: Planned) {
        match what {
            Planned::Offline(cpu) => self.go_offline(cpu),
            Planned::Online(cpu) => self.go_online(cpu),
            Planned::Stolen(cpu, time) => {
                self.cores[cpu.index()].delay(time);
                self.due_changed(cpu);
            }
            Planned::Cap(cpu, khz) => {
                self.speeds.cap(cpu, khz, self.now);
                self.apply_speeds();
            }
        }
    }

    /// The last active CPU stays.
    fn go_offline(&mut self, cpu: Cpu) {
        let active = self.cores.iter().filter(|core| core.active).count();
        if !self.cores[cpu.index()].active || active == 1 {
            return;
        }
        self.cores[cpu.index()].active = false;
        self.record(cpu, KernelEventKind::Online(false));
        if let Some(running) = self.cores[cpu.index()].task {
            self.push_off(cpu, running);
        }
        for index in 0..self.tasks.len() {
            let control = &self.tasks[index];
            if control.cpu == cpu && control.phase == TaskPhase::Ready {
                self.push_over(Task(index as u32), cpu);
            }
        }
        self.class.set_online(cpu, false);
    }

    fn push_over(&mut self, task: Task, from: Cpu) {
        self.class.dequeue(from, task, Dequeue::Move, self.now);
        let to = self.choose_cpu(task, None);
        self.tasks[task.index()].cpu = to;
        self.class.enqueue(to, task, Enqueue::Move, self.now);
        self.record(to, KernelEventKind::Migrate { task, from, to });
        self.see_who_runs(to, task, Some(from));
    }

    fn go_online(&mut self, cpu: Cpu) {
        if self.cores[cpu.index()].active {
            return;
        }
        self.cores[cpu.index()].active = true;
        self.class.set_online(cpu, true);
        self.record(cpu, KernelEventKind::Online(true));
        self.cores[cpu.index()].idle_since = self.now;
        // A task may be waiting on another CPU.
        self.cores[cpu.index()].resched_at = self.now;
        self.due_changed(cpu);
    }
}
