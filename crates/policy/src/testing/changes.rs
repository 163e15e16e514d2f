//! Changes of the machine and of tasks from outside.

use std::ops::DerefMut;

use event::{Nanos, Task};

use super::machine::Machine;
use super::script::Change;
use super::state::{Control, Phase};
use crate::{Class, Dequeue, Enqueue};

impl<C: DerefMut<Target: Class>> Machine<C> {
    pub(super) fn change(&mut self, change: Change) {
        match change {
            Change::Attr(task, attr) => {
                let Control { phase, cpu, .. } = self.tasks[task.index()];
                match phase {
                    Phase::NotBegun => self.tasks[task.index()].script.attr = attr,
                    Phase::Ended => {}
                    _ => self.class.set_attr(task, &attr, self.now),
                }
                match phase {
                    Phase::Running => self.cores[cpu.index()].resched_at = self.now,
                    Phase::Ready => self.see_who_runs(cpu, task),
                    _ => {}
                }
            }
            Change::Offline(cpu) => {
                self.cores[cpu.index()].offline = true;
                for task in (0..self.tasks.len() as u32).map(Task) {
                    let Control { phase, cpu: at, .. } = self.tasks[task.index()];
                    if at == cpu && matches!(phase, Phase::Ready | Phase::Running) {
                        self.class.dequeue(cpu, task, Dequeue::Move, self.now);
                        if phase == Phase::Running {
                            self.switch(cpu, None);
                        }
                        self.put(task, Enqueue::Move, None);
                    }
                }
                self.class.set_online(cpu, false);
                self.cores[cpu.index()].resched_at = Nanos::MAX;
            }
            Change::Online(cpu) => {
                self.cores[cpu.index()].offline = false;
                self.class.set_online(cpu, true);
                self.cores[cpu.index()].resched_at = self.now;
            }
        }
    }
}
