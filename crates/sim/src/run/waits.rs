//! How programs wait and let others go on: blocking, spinning, waking, yielding.

use std::thread::panicking;

use event::{Nanos, Task};

use super::engine::{Engine, Op};
use super::tag::Tag;
use crate::kernel::{TaskPhase, task};
use crate::machine::KernelSpec;
use crate::report::On;

/// How long a statement about a wait takes.
const SAYING: Nanos = Nanos(20);

impl Engine {
    /// Blocks the running program until it is woken or until this time. Not while it panics.
    pub(crate) fn block(&self, on: On, tag: Option<&Tag>, until: Nanos) {
        assert!(!panicking(), "a panicking thread cannot block");
        if let Some(tag) = tag {
            tag.add_waiter();
        }
        let mut kernel = self.kernel.borrow_mut();
        kernel.block(on, until);
        self.hand_over(kernel);
        if let Some(tag) = tag {
            tag.remove_waiter();
        }
        if self.explores() {
            let mut kernel = self.kernel.borrow_mut();
            let (me, id) = (kernel.me(), self.id_in(&mut kernel, tag));
            self.record(me, Op::Wake, id);
        }
    }

    /// The running program spins on a line until the line is written, until this time, or for a while: then
    /// it has to look again. A policy that looks for errors takes it off its CPU instead.
    pub(crate) fn spin(&self, on: On, tag: &Tag, until: Nanos) {
        if self.explores() {
            return self.block(on, Some(tag), until);
        }
        tag.add_waiter();
        let mut kernel = self.kernel.borrow_mut();
        kernel.spin(on, until);
        self.hand_over(kernel);
        self.kernel.borrow_mut().stop_spinning();
        tag.remove_waiter();
    }

    /// Whether the wait that is about to block should return spuriously instead.
    pub(crate) fn returns_spuriously(&self) -> bool {
        let perturb = &self.config.perturb;
        perturb.returns_spuriously(&mut self.perturb.borrow_mut())
    }

    /// The running program waited without effect; it must not starve the threads it waits for.
    pub(crate) fn waited_in_vain(&self) {
        let mut kernel = self.kernel.borrow_mut();
        let me = kernel.me();
        kernel.class.waited_in_vain(me);
    }

    /// Wakes the threads that wait for this object.
    pub(crate) fn wake_waiters(&self, tag: &Tag) {
        let mut kernel = self.kernel.borrow_mut();
        let line = self.id_in(&mut kernel, Some(tag));
        kernel.written(line);
        let me = kernel.me();
        for index in 0..kernel.tasks.len() {
            if let TaskPhase::Blocked(On::Word { id, .. } | On::Lock { id, .. }) =
                kernel.tasks[index].phase
                && id == line
            {
                kernel.wake(Task(index as u32), Some(me));
            }
        }
    }

    /// Wakes a task if it waits for a token. The caller has paid for it.
    pub(crate) fn wake_parked(&self, task: Task) {
        let mut kernel = self.kernel.borrow_mut();
        if let TaskPhase::Blocked(On::Parker { .. }) = kernel.tasks[task.index()].phase {
            let me = kernel.me();
            kernel.wake(task, Some(me));
        }
    }

    /// The cost of waking a task to the running program, which calls the kernel for it.
    pub(crate) fn pay_for_wake(&self, task: Task) {
        self.pay_for_wake_after(|costs| costs.syscall, task);
    }

    /// The cost of waking a task to a program that has called the kernel for something else.
    pub(crate) fn pay_for_wake_within(&self, task: Task) {
        self.pay_for_wake_after(|_| Nanos::ZERO, task);
    }

    fn pay_for_wake_after(&self, entering: fn(&KernelSpec) -> Nanos, task: Task) {
        self.step(Op::Wake, None, |kernel| {
            let costs = kernel.machine.kernel;
            let far = kernel.has_to_interrupt(task);
            let send = if far { costs.ipi_send } else { Nanos::ZERO };
            kernel.spend(entering(&costs) + costs.wake + send)
        });
    }

    /// Whether programs say what their threads wait for.
    pub(crate) fn has_hints(&self) -> bool {
        self.config.hints
    }

    /// The running program says that it waits for these threads; for none: that it waits no more.
    pub(crate) fn say_waits(&self, threads: &[usize]) {
        if self.config.hints {
            self.step(Op::Store, None, |kernel| kernel.spend(SAYING));
            self.say_waits_at_once(threads);
        }
    }

    /// The same, before any other program does anything. The time that it takes is not counted.
    pub(crate) fn say_waits_at_once(&self, threads: &[usize]) {
        if self.config.hints {
            let others: Vec<Task> = threads.iter().copied().map(task).collect();
            let mut kernel = self.kernel.borrow_mut();
            let me = kernel.me();
            kernel.class.waits_for(me, &others);
        }
    }

    /// The running program calls `sched_yield`.
    pub(crate) fn yields(&self) {
        self.step(Op::Yield, None, |kernel| {
            let costs = kernel.machine.kernel;
            kernel.spend(costs.syscall.min(costs.yields))
        });
        if !panicking() {
            self.kernel.borrow_mut().yields();
            self.suspend();
        }
    }
}
