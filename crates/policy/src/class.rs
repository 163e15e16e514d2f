//! The interface of a scheduling class inside a kernel.
//!
//! The kernel around it knows which task runs on which CPU and which tasks sleep. The class knows which task
//! is queued where, and orders them.
//!
//! # When which hook is called
//!
//! ```text
//! a task begins      add → select_cpu → enqueue(New)      → preempts?
//! it is woken              select_cpu → enqueue(Wake)     → preempts?
//! it blocks          dequeue(Sleep) → pick(prev = None)
//! it ends            dequeue(End) → remove → pick(prev = None)
//! a tick, a timer    tick → if true: pick(prev = it)
//! it yields          yields → pick(prev = it)
//! a CPU has nothing  pick → None → pull → dequeue(Move) there, enqueue(Move) here → pick
//! before each tick   pull(Busy) → dequeue(Move) there, enqueue(Move) here
//! one is kicked      pick(prev = the task there)
//! it says it waits   waits_for
//! a CPU goes away    dequeue(Move) there, select_cpu, enqueue(Move) for each; then set_online
//! ```
//!
//! The task that runs stays in its CPU's queue in the sense of [`queued`](Class::queued): it was enqueued and
//! not dequeued. `pick` gives the task that runs from then on; a class that keeps the running task outside of
//! its order puts `prev` back there.
//!
//! Invariant: `now` never goes backwards from one call to the next.

use event::{Cpu, Nanos, Task};

use crate::{Attr, Cpus, Decisions, place};

/// Why a task gets into a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Enqueue {
    /// It begins.
    New,
    /// It slept.
    Wake,
    /// It comes from another CPU's queue.
    Move,
}

/// Why a task leaves a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dequeue {
    /// It waits for something.
    Sleep,
    /// It ended.
    End,
    /// It goes to another CPU's queue.
    Move,
}

/// Why a CPU looks into the queues of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idleness {
    /// It would go idle.
    New,
    /// It runs something; this is its tick.
    Busy,
}

/// A scheduling class. See the [module](self) for the order of calls; hooks without a default have to be
/// written.
pub trait Class {
    /// The name it is chosen by.
    fn name(&self) -> &'static str;

    /// There are this many CPUs; called once, before anything else.
    fn set_cpus(&mut self, cpus: usize);

    /// Whether the class takes a new task with these attributes. The kernel asks before `add`, begins no task
    /// that is refused, and reports why. A class that is not asked makes do with what it gets. Default: it
    /// takes all.
    ///
    /// # Errors
    /// The error, in a line.
    fn admits(&self, attr: &Attr) -> Result<(), String> {
        let _ = attr;
        Ok(())
    }

    /// A task begins. It is not queued yet. Tasks come in the order of their numbers, without gaps.
    fn add(&mut self, task: Task, attr: &Attr);

    /// A task ended; it is not queued, and its number is not used again. Default: nothing.
    fn remove(&mut self, task: Task) {
        let _ = task;
    }

    /// The task's attributes are others from now on. It may be queued or running: its place must be
    /// that of the new ones. The kernel picks anew on the task's CPU afterwards, and calls `preempts` if
    /// it waits.
    fn set_attr(&mut self, task: Task, attr: &Attr, now: Nanos);

    /// The task's program says that it waits for these tasks from now on; for none: that it waits no more. A
    /// statement, which may be wrong: the task may go on running, and the others may have ended. Default: it
    /// is ignored, as kernels do that have no such call.
    fn waits_for(&mut self, task: Task, others: &[Task]) {
        let _ = (task, others);
    }

    /// Whether [`waits_for`](Class::waits_for) changes anything. Default: it does not.
    fn listens(&self) -> bool {
        false
    }

    /// Where a task that begins or wakes up should be queued. `waker`: the CPU this happens on; `None` in
    /// an interrupt. The kernel takes another one if this one is not active or not allowed. Default:
    /// [`place`].
    fn select_cpu(&mut self, task: Task, waker: Option<Cpu>, cpus: &dyn Cpus) -> Cpu {
        place(task, waker, cpus)
    }

    /// The task is ready to run and waits on this CPU from now on.
    fn enqueue(&mut self, cpu: Cpu, task: Task, why: Enqueue, now: Nanos);

    /// The task, which is queued on this CPU and may be running there, leaves.
    fn dequeue(&mut self, cpu: Cpu, task: Task, why: Dequeue, now: Nanos);

    /// The task that runs on this CPU from now on. `prev` ran until now and could go on; `None` if it was
    /// dequeued or if the CPU idled. The answer may be `prev`. `None`: no task is queued here.
    ///
    /// A class may not leave a queued task waiting beside an idle CPU, unless it says so in its
    /// documentation ([`conserves_work`](Class::conserves_work)).
    fn pick(&mut self, cpu: Cpu, prev: Option<Task>, now: Nanos) -> Option<Task>;

    /// A tick, or the time that [`timer`](Class::timer) asked for, while `running` runs. True: pick anew.
    fn tick(&mut self, cpu: Cpu, running: Task, now: Nanos) -> bool;

    /// Whether `woken`, which has just been queued on this CPU, should take over from `running` at once.
    fn preempts(&mut self, cpu: Cpu, running: Task, woken: Task, now: Nanos) -> bool;

    /// `running` calls `sched_yield`. The kernel picks anew afterwards.
    fn yields(&mut self, cpu: Cpu, running: Task, now: Nanos);

    /// A task that this CPU should take over from another one's queue, where it waits and does not run. With
    /// [`Idleness::New`], `pick` has just found no task. The kernel moves it if it is allowed here. Default:
    /// none.
    fn pull(
        &mut self,
        cpu: Cpu,
        idleness: Idleness,
        cpus: &dyn Cpus,
        now: Nanos,
    ) -> Option<(Task, Cpu)> {
        let _ = (cpu, idleness, cpus, now);
        None
    }

    /// When the class wants to be asked again although no tick is due: `tick` is called then, or `pick`
    /// on an idle CPU. Asked after each hook that concerns the CPU. [`Nanos::MAX`]: never. Default: never.
    fn timer(&self, cpu: Cpu, now: Nanos) -> Nanos {
        let _ = (cpu, now);
        Nanos::MAX
    }

    /// Another CPU that should pick anew at once, although no hook concerned it: it shares queues with one
    /// that did, or its task should stop. Asked after each hook until it names none; the kernel sends an
    /// interrupt to each. Default: none.
    fn kick(&mut self) -> Option<Cpu> {
        None
    }

    /// The CPU takes tasks, or takes none any more; its queue is empty. Default: nothing.
    fn set_online(&mut self, cpu: Cpu, online: bool) {
        let _ = (cpu, online);
    }

    /// The attributes with which the holder of a mutex runs while `waiter` waits for it, if they are better
    /// than its own; for mutexes that inherit. `None`: the waiter has nothing to lend, or the policy knows no
    /// such thing. Default: `None`.
    fn lend(&self, waiter: &Attr, holder: &Attr) -> Option<Attr> {
        let _ = (waiter, holder);
        None
    }

    /// How many tasks are queued on this CPU, the running one included.
    fn queued(&self, cpu: Cpu) -> usize;

    /// Whether the class wants [`step`](Class::step). Asked once. Default: no.
    fn has_steps(&self) -> bool {
        false
    }

    /// `running` is about to do something that other tasks can see: an access to shared memory, a call of the
    /// kernel. True: pick anew before it does. For policies that look for errors in programs. Default: go on.
    fn step(&mut self, cpu: Cpu, running: Task) -> bool {
        let _ = (cpu, running);
        false
    }

    /// `running` waited without effect: for something that had come, or until a time that had passed.
    /// Default: nothing.
    fn waited_in_vain(&mut self, running: Task) {
        let _ = running;
    }

    /// Whether this class can ration the CPU time of tasks by a quota. Default: it cannot.
    fn has_quotas(&self) -> bool {
        false
    }

    /// Whether this task's CPU time is rationed if its group has a quota. Default: it is not.
    fn rations(&self, task: Task) -> bool {
        let _ = task;
        false
    }

    /// What has been decided so far, if the decisions are a process's and are counted. Default: they are not.
    fn decisions(&self) -> Option<Decisions> {
        None
    }

    /// Whether no CPU of this class ever idles while a task that it may run waits in its own queue. Default:
    /// none does, and the simulator checks it.
    fn conserves_work(&self) -> bool {
        true
    }

    /// Whether the class keeps its promises about its tasks: bounded lag, order of priorities. Called by
    /// checks, after each decision.
    ///
    /// # Errors
    /// The broken promise, and the task.
    fn check(&self, now: Nanos) -> Result<(), String> {
        let _ = now;
        Ok(())
    }
}
