//! [`Ext`]: a scheduler in user space as a class of the kernel.
//!
//! Its model: `sched_ext` with the BPF part of `scx_rustland_core` and a process that decides ([`Ops`]).
//! Modelled:
//!
//! - *Messages and rounds.* A task that becomes ready, or comes to the end of its slice, is a message. The
//!   process gets a CPU when one asks for a task while messages wait (or tasks it has not dispatched); that
//!   takes [`Model::round`] and [`Model::message`] for each message, and the CPU does nothing else meanwhile.
//!   It runs on one CPU at a time. To the machine around that CPU looks idle; no task is put there.
//! - *Dispatch queues*: one per CPU, which goes first, and one for all, each in the order of `vtime`.
//! - *Idle bypass* (`builtin_idle`): a task that begins or wakes up while its CPU or another one idles goes
//!   there at once, with a quarter of the slice; the process never hears of it.
//! - *FIFO mode*: while the moving average of waiting tasks is zero, tasks go straight to the queue for all,
//!   with the default slice. The average is taken whenever a task becomes ready, in 1/1024 rounded down, a
//!   quarter of it new; a task counts as waiting if it is ready and does not run (these details are assumed).
//! - *Slices* end at ticks. No task is preempted, but for [`Dispatch::preempt`](super::Dispatch) and
//!   [`Model::kicks`]. A yield ends the slice.
//! - *Statements* of programs about their waits are there for the process as soon as they are made; one that
//!   ends takes its statement along.
//! - *Ring*: 4096 messages; further ones go to the queue for all.
//! - *Watchdog*: [`Class::check`] reports a task that has waited for five seconds; the kernel would throw
//!   the scheduler out.
//!
//! Left out: tasks that never reach the process (kernel threads), the process' own memory and page faults,
//! and the heartbeat, but for schedulers that dispatch nothing.
//!
//! Where it is bad: each decision waits for a process, which needs a CPU first; a task that is woken while
//! all CPUs are busy waits for the end of another task's slice before the process even hears of it.
//!
//! Invariants
//! - A ready task is in exactly one place: a message, with the process, in one dispatch queue, or running.
//! - At most one round is going on.

mod queues;
#[cfg(test)]
mod tests;

use event::{Cpu, Nanos, Task};

use self::queues::{Place, Queues};
use super::{Kernel, Ops};
use crate::{Attr, Class, Cpus, Decisions, Dequeue, Enqueue, Idleness};

/// The behaviour of the kernel's side, and the costs of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// How long the process has a CPU for a round, messages apart.
    pub round: Nanos,
    /// How much longer for each message.
    pub message: Nanos,
    /// The slice of tasks that the process does not hear of; a quarter of it at an idle bypass.
    pub slice: Nanos,
    /// Whether tasks that find an idle CPU go there without the process.
    pub bypass: bool,
    /// Whether there is FIFO mode.
    pub fifo: bool,
    /// Whether the process is asked only when all that it dispatched has run.
    pub bursts: bool,
    /// Whether slices end exactly, and not at ticks.
    pub exact: bool,
    /// Whether a task that wakes up while no CPU idles takes the CPU that it was queued on for the process.
    pub kicks: bool,
}

impl Model {
    /// `scx_rustland_core`, on a machine with this time between two ticks. The round costs 2 µs and a
    /// message 0.5 µs (assumed: two switches and a yield, at 0.2 to 0.7 µs each on a virtual machine, and
    /// the bookkeeping). Without ticks slices have to end exactly.
    pub fn scx(slice: Nanos, tick: Nanos) -> Model {
        Model {
            round: Nanos::from_micros(2),
            message: Nanos(500),
            slice,
            bypass: true,
            fifo: true,
            bursts: false,
            exact: tick == Nanos::ZERO,
            kicks: false,
        }
    }

    /// The same with a BPF part of its own:
    ///
    /// - It calls `scx_bpf_kick_cpu` with `SCX_KICK_PREEMPT` for each task that wakes up while no CPU idles.
    ///   The process decides at once which task goes on there, and may choose the one that was interrupted.
    ///   `scx_rustland_core` has nothing of the kind: there a decision waits for the end of a slice, up to a
    ///   tick and more, and no statement about waits could make it earlier.
    /// - It asks whenever a CPU loses its task, and not only when messages come.
    /// - It has no FIFO mode, so that the process knows each ready task.
    /// - It counts the CPU on which the process runs as an idle one, so that the process can tell whether a
    ///   task may use it.
    pub fn kicking(slice: Nanos, tick: Nanos) -> Model {
        Model {
            fifo: false,
            kicks: true,
            ..Model::scx(slice, tick)
        }
    }

    /// No kernel: decisions cost nothing, all of them are the process's, it works in bursts, and slices end
    /// exactly.
    pub fn ideal() -> Model {
        Model {
            round: Nanos::ZERO,
            message: Nanos::ZERO,
            slice: Nanos::from_millis(5),
            bypass: false,
            fifo: false,
            bursts: true,
            exact: true,
            kicks: false,
        }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Ext<O> {
    ops: O,
    queues: Queues,
}

/// After this long a scheduler that dispatched nothing, although a CPU had nothing to run, is asked again.
const HEARTBEAT: Nanos = Nanos::from_millis(100);
/// How long a task may wait before the kernel throws the scheduler out.
const WATCHDOG: Nanos = Nanos::from_secs(5);

impl<O: Ops> Ext<O> {
    /// This scheduler under such a kernel.
    pub fn new(ops: O, model: Model) -> Ext<O> {
        Ext {
            ops,
            queues: Queues::new(model),
        }
    }

    /// The scheduler, at the end.
    pub fn into_ops(self) -> O {
        self.ops
    }

    /// How many answers came too late or twice, and were ignored.
    pub fn cancelled(&self) -> u64 {
        self.queues.cancelled
    }

    /// How many rounds there have been.
    pub fn rounds(&self) -> u64 {
        self.queues.rounds
    }

    /// The process is done with its round, if the time has come. True if so. This CPU picks.
    fn finish_round(&mut self, cpu: Cpu) -> bool {
        let queues = &mut self.queues;
        if queues.round.is_none_or(|round| queues.now < round.ends) {
            return false;
        }
        queues.rounds += 1;
        let (before, waiting) = (queues.decisions, queues.unserved());
        queues.held = self.ops.round(queues);
        queues.round = None;
        queues.decisions.round(before, waiting, queues.held);
        if queues.decisions.dispatched == before.dispatched && queues.wanted() > 0 {
            queues.rests_until = queues.now + HEARTBEAT;
        }
        queues.kick_the_idle(cpu);
        true
    }

    /// The task that runs here from now on, of those that are ready and here.
    fn choose(&mut self, cpu: Cpu) -> Option<Task> {
        let mut finished = self.finish_round(cpu);
        loop {
            if self.queues.is_the_process_on(cpu) {
                return None;
            }
            let first = self.queues.first(cpu);
            let may_ask = if self.queues.model.bursts {
                first.is_none()
            } else {
                !finished || first.is_none()
            };
            if !may_ask || !self.queues.begin_round(cpu) {
                // One that is queued elsewhere has to be pulled over.
                return first.filter(|&task| self.queues.task(task).cpu == cpu);
            }
            if !self.finish_round(cpu) {
                return None;
            }
            finished = true;
        }
    }
}

impl<O: Ops> Class for Ext<O> {
    fn name(&self) -> &'static str {
        self.ops.name()
    }

    fn set_cpus(&mut self, cpus: usize) {
        self.queues.set_cpus(cpus);
    }

    fn add(&mut self, task: Task, attr: &Attr) {
        self.queues.add(attr);
        self.ops.hint(task, attr);
    }

    fn remove(&mut self, task: Task) {
        self.queues.set_waits(task, &[]);
    }

    fn set_attr(&mut self, task: Task, attr: &Attr, _: Nanos) {
        self.queues.set_weight(task, attr);
        self.ops.hint(task, attr);
    }

    fn waits_for(&mut self, task: Task, others: &[Task]) {
        self.queues.set_waits(task, others);
    }

    fn listens(&self) -> bool {
        self.ops.listens()
    }

    /// The CPU it ran on last, if that idles; another idle one, near first; else the last one.
    fn select_cpu(&mut self, task: Task, _: Option<Cpu>, cpus: &dyn Cpus) -> Cpu {
        self.queues.learn(task, cpus);
        self.queues.select_idle(task, cpus)
    }

    fn enqueue(&mut self, cpu: Cpu, task: Task, why: Enqueue, now: Nanos) {
        self.queues.now = now;
        self.queues.enqueue(cpu, task, why);
    }

    fn dequeue(&mut self, cpu: Cpu, task: Task, why: Dequeue, now: Nanos) {
        self.queues.now = now;
        self.queues.dequeue(cpu, task, why);
    }

    fn pick(&mut self, cpu: Cpu, prev: Option<Task>, now: Nanos) -> Option<Task> {
        self.queues.now = now;
        self.queues.looks(cpu);
        if let Some(prev) = prev {
            if !self.queues.is_over(cpu, prev) {
                return Some(prev);
            }
            self.queues.stop(cpu, prev);
            self.queues.make_ready(prev);
        }
        let next = self.choose(cpu)?;
        self.queues.start(cpu, next);
        Some(next)
    }

    fn tick(&mut self, cpu: Cpu, running: Task, now: Nanos) -> bool {
        self.queues.now = now;
        self.queues.is_over(cpu, running)
    }

    /// Never: a woken task waits for a decision.
    fn preempts(&mut self, _: Cpu, _: Task, _: Task, _: Nanos) -> bool {
        false
    }

    fn yields(&mut self, cpu: Cpu, _: Task, now: Nanos) {
        self.queues.now = now;
        self.queues.cut(cpu);
    }

    /// The first task that may run here, if it is queued elsewhere: dispatch queues know no homes.
    fn pull(
        &mut self,
        cpu: Cpu,
        idleness: Idleness,
        cpus: &dyn Cpus,
        now: Nanos,
    ) -> Option<(Task, Cpu)> {
        self.queues.now = now;
        if idleness == Idleness::Busy || self.queues.is_the_process_on(cpu) {
            return None;
        }
        while let Some(task) = self.queues.first(cpu) {
            let home = self.queues.task(task).cpu;
            if cpus.allows(task, cpu) {
                if home == cpu {
                    self.queues.look_again(cpu);
                    return None;
                }
                return Some((task, home));
            }
            // Its mask changed since it was looked at.
            self.queues.learn(task, cpus);
        }
        None
    }

    fn timer(&self, cpu: Cpu, now: Nanos) -> Nanos {
        self.queues.timer(cpu).max(now)
    }

    fn kick(&mut self) -> Option<Cpu> {
        self.queues.kicks.pop_first()
    }

    fn set_online(&mut self, cpu: Cpu, online: bool) {
        self.queues.set_online(cpu, online);
    }

    fn queued(&self, cpu: Cpu) -> usize {
        self.queues.queued(cpu)
    }

    fn decisions(&self) -> Option<Decisions> {
        Some(self.queues.decisions)
    }

    /// It does not: tasks wait for the process while CPUs idle.
    fn conserves_work(&self) -> bool {
        false
    }

    /// No task waits for five seconds.
    fn check(&self, now: Nanos) -> Result<(), String> {
        for (task, known) in self.queues.tasks() {
            let waits = !matches!(known.place, Place::Away | Place::Running(_));
            if waits && now - known.since > WATCHDOG {
                return Err(format!(
                    "task {} has been ready since {} and did not run for {}: sched_ext would throw {} out",
                    task.0,
                    known.since,
                    now - known.since,
                    self.ops.name()
                ));
            }
        }
        Ok(())
    }
}
