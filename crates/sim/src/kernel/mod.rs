//! The simulated kernel: tasks, CPUs, virtual time, and the loop that decides what happens next.
//!
//! Every event has a time, and events happen in the order (time, kind, CPU): a timer before a planned change,
//! a planned change before ticks, the lowest CPU first. The program that runs is always that of the
//! *earliest* CPU. It continues without a switch of stacks until its next step would end at or after the next
//! event of another CPU (the *horizon*). So the effects of CPUs on each other happen in the order of their
//! clocks, and a step costs little while other CPUs have no events near.
//!
//! Plain data and the changes that keep it consistent: nothing here suspends a program; `run` does.
//!
//! Invariants
//! - Time never goes back.
//! - A task is `Running` exactly if its CPU's `task` is it, and then the class has it queued there.
//! - Tasks and CPUs are visited in the order of their numbers.

mod calendar;
mod check;
mod core;
mod hotplug;
mod quota;
mod schedule;
mod steals;
mod sync;
mod task;
mod ticks;
mod view;
mod wake;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use event::{Cpu, KernelEventKind, Nanos, Task};
use policy::{Attr, Class, Mask};

use crate::config::Planned;
use crate::lines::{Access, Lines};
use crate::machine::Machine;
use crate::report::On;
use crate::speeds::Speeds;
use crate::trace::Trace;
use calendar::Calendar;
use ticks::Ticks;

pub(crate) use self::core::Core;
pub(crate) use steals::Steals;
pub(crate) use task::{Busy, Control, TaskPhase, task};

/// If no event is to come, and the programs take no step for this long, that is a deadlock.
const STUCK: Nanos = Nanos::from_secs(1);

/// As [`Kernel::admits`], for a class that is not part of a kernel yet.
pub(crate) fn admits(class: &dyn Class, name: &str, attr: &Attr) -> Result<(), String> {
    let refused = |why| format!("policy {} refuses thread {name:?}: {why}", class.name());
    class.admits(attr).map_err(refused)
}

/// A simulated kernel.
pub(crate) struct Kernel {
    pub(crate) now: Nanos,
    /// The earliest event of any CPU, apart from the running program's step, or a time before it: zero if it
    /// has not been looked for yet.
    horizon: Nanos,
    pub(crate) machine: Arc<Machine>,
    pub(crate) class: Box<dyn Class>,
    pub(crate) lines: Lines,
    pub(crate) trace: Trace,
    speeds: Speeds,
    cores: Vec<Core>,
    ticks: Ticks,
    steals: Steals,
    calendar: Box<Calendar>,
    pub(crate) tasks: Vec<Control>,
    /// The times at which blocked tasks wake up by themselves: (time, order, task, its wait).
    timers: BinaryHeap<Reverse<(Nanos, u64, u32, u64)>>,
    timers_set: u64,
    plan: VecDeque<(Nanos, Planned)>,
    until: Nanos,
    /// The longest time that a task may wait for a CPU, if there is a bound.
    starvation: Option<Nanos>,
    /// The number of checks of the invariants so far.
    looks: u64,
    /// The earliest of timers, plan and end, or a time before it: looking costs more than this.
    beside_cpus: Nanos,
    syncs: sync::Syncs,
    /// The quota of CPU time, if there is one.
    rations: Option<Box<quota::Rations>>,
    /// The CPU of the running program.
    on: Cpu,
    pub(crate) alive: usize,
    /// The steps of programs so far, and an earlier count with its time, to notice that no program moves.
    pub(crate) steps: u64,
    moved: (u64, Nanos),
}

/// The answer to what happens next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// The program of this task continues.
    Resume(Task),
    /// All tasks have ended.
    AllEnded,
    /// No task can continue.
    Deadlock,
    /// The run's time is up.
    TimeUp,
}

impl Kernel {
    pub(crate) fn new(
        machine: Arc<Machine>,
        mut class: Box<dyn Class>,
        mut plan: Vec<(Nanos, Planned)>,
        until: Nanos,
        starvation: Option<Nanos>,
        trace: Trace,
    ) -> Kernel {
        let cpus = machine.cpus.len();
        class.set_cpus(cpus);
        plan.sort_by_key(|(time, _)| *time);
        let speeds = Speeds::new(&machine);
        let cores = (0..cpus as u32).map(|cpu| Core::new(speeds.speed(Cpu(cpu))));
        Kernel {
            now: Nanos::ZERO,
            horizon: Nanos::ZERO,
            lines: Lines::new(&machine),
            calendar: Calendar::new(cpus),
            cores: cores.collect(),
            ticks: Ticks::new(machine.kernel.tick, Nanos::ZERO, 0),
            steals: Steals::none(),
            speeds,
            machine,
            class,
            trace,
            tasks: Vec::new(),
            timers: BinaryHeap::new(),
            timers_set: 0,
            plan: plan.into(),
            until,
            starvation,
            looks: 0,
            beside_cpus: Nanos::ZERO,
            syncs: sync::Syncs::default(),
            rations: None,
            on: Cpu(0),
            alive: 0,
            steps: 0,
            moved: (0, Nanos::ZERO),
        }
    }

    /// The same with ticks that are late by at most `late_max`, drawn from the seed.
    pub(crate) fn with_late_ticks(self, late_max: Nanos, seed: u64) -> Kernel {
        Kernel {
            ticks: Ticks::new(self.machine.kernel.tick, late_max, seed),
            ..self
        }
    }

    /// The same with a host that takes CPUs away.
    pub(crate) fn with_steals(self, steals: Steals) -> Kernel {
        Kernel { steals, ..self }
    }

    /// The task of the running program.
    #[inline]
    pub(crate) fn me(&self) -> Task {
        let running = self.cores[self.on.index()].task;
        running.expect("a program runs on its CPU")
    }

    /// The task of the running program, if the run has begun.
    pub(crate) fn running(&self) -> Option<Task> {
        self.cores[self.on.index()].task
    }

    /// The CPU of the running program.
    pub(crate) fn here(&self) -> Cpu {
        self.on
    }

    /// The running program is busy for this long. True if it may continue at once; else its stack has to be
    /// left, and the program continues when the time has come.
    pub(crate) fn spend(&mut self, time: Nanos) -> bool {
        self.step_until(self.now + time, Busy::fixed(time))
    }

    /// The same for an access to a line, the most frequent operation of programs.
    #[inline]
    pub(crate) fn access(&mut self, line: u32, access: Access) -> bool {
        let end = self.lines.access(line, self.on, access, self.now);
        self.step_until(end, Busy::fixed(end - self.now))
    }

    /// The same for work.
    pub(crate) fn work(&mut self, work: Nanos) -> bool {
        let busy = Busy {
            fixed: Nanos::ZERO,
            work,
        };
        let end = self.now + self.cores[self.on.index()].takes(work);
        self.step_until(end, busy)
    }

    /// How long the running task has been on a CPU.
    pub(crate) fn ran_of_running(&mut self) -> Nanos {
        let control = &self.tasks[self.me().index()];
        control.spent_until(self.now).run
    }

    /// The running program is busy with this until `end`.
    #[inline(always)]
    fn step_until(&mut self, end: Nanos, busy: Busy) -> bool {
        if end < self.horizon {
            self.now = end;
            return true;
        }
        // The horizon is not known, or others have to go first.
        let core = &mut self.cores[self.on.index()];
        debug_assert!(core.is_looked_at(), "what is due has changed unnoticed");
        core.begin_until(self.now, busy, end);
        let others = self.calendar.set_and_see(self.on, end.min(core.besides));
        let horizon = others.min(core.besides).min(self.beside_cpus);
        if end >= horizon {
            return false;
        }
        core.done_at = Nanos::MAX;
        self.horizon = horizon;
        self.now = end;
        true
    }

    fn occupy(&mut self, busy: Busy) {
        let now = self.now;
        self.cores[self.on.index()].begin(now, busy);
        self.due_changed(self.on);
    }

    /// The running program spins on a word until a write to the word's line, or until `until`.
    pub(crate) fn spin(&mut self, on: On, until: Nanos) {
        let now = self.now;
        let me = self.me();
        self.tasks[me.index()].spins_on = Some(on);
        self.cores[self.on.index()].spin(now, until);
        self.due_changed(self.on);
    }

    /// The running program stops spinning.
    pub(crate) fn stop_spinning(&mut self) {
        let me = self.me();
        self.tasks[me.index()].spins_on = None;
    }

    /// The line was written: tasks that spin on it have to look again.
    pub(crate) fn written(&mut self, line: u32) {
        for cpu in (0..self.cores.len() as u32).map(Cpu) {
            let spinner = self.cores[cpu.index()].task;
            let spins = spinner.and_then(|task| self.tasks[task.index()].spins_on);
            let here = matches!(spins, Some(On::Word { id, .. }) if id == line);
            if here && cpu != self.on {
                let now = self.now;
                let core = &mut self.cores[cpu.index()];
                core.done_at = core.done_at.min(now);
                self.due_changed(cpu);
            }
        }
    }

    /// One of the events of this CPU has changed.
    #[inline]
    fn due_changed(&mut self, cpu: Cpu) {
        let due = self.cores[cpu.index()].look();
        self.calendar.set(cpu, due);
        self.horizon = self.horizon.min(due);
    }

    /// The task that continues after the running program has begun a step, if no other event comes before:
    /// the usual case where several CPUs are busy. `None`: ask [`next`](Kernel::next).
    #[inline]
    pub(crate) fn next_at_once(&mut self) -> Option<Task> {
        let (due, cpu) = self.calendar.earliest();
        let core = &self.cores[cpu.index()];
        if due >= self.beside_cpus || core.done_at != due || core.resched_at == due {
            return None;
        }
        self.now = due;
        self.go_on(cpu)
    }

    /// The task of this CPU has ended its step.
    #[inline]
    fn go_on(&mut self, cpu: Cpu) -> Option<Task> {
        let core = &mut self.cores[cpu.index()];
        core.done_at = Nanos::MAX;
        self.on = cpu;
        // Where several CPUs are busy another event usually comes before the end of the program's next step,
        // and looking ahead now would be in vain. The calendar still names this time; that step sets another
        // one.
        self.horizon = Nanos::ZERO;
        core.task
    }

    /// What happens next. Called while no program runs.
    pub(crate) fn next(&mut self) -> Next {
        loop {
            if self.alive == 0 {
                return Next::AllEnded;
            }
            let (due, cpu) = self.calendar.earliest();
            if due >= self.beside_cpus {
                match self.look_beside_cpus(due) {
                    ControlFlow::Break(over) => return over,
                    ControlFlow::Continue(true) => continue,
                    ControlFlow::Continue(false) => {}
                }
            }
            debug_assert!(due >= self.now, "time runs back: {due} at {}", self.now);
            self.now = due;
            if let Some(task) = self.cpu_is_due(cpu) {
                return Next::Resume(task);
            }
        }
    }

    /// No CPU has an event before this time: a timer, a planned change or the end may. Returns whether one of
    /// them was due.
    fn look_beside_cpus(&mut self, due: Nanos) -> ControlFlow<Next, bool> {
        let timer = self.next_timer();
        let quota = self.quota_due();
        let planned = self.plan.front().map_or(Nanos::MAX, |(time, _)| *time);
        let by_itself = timer.min(quota);
        let time = due.min(by_itself).min(planned);
        if time == Nanos::MAX || self.is_stuck(by_itself, planned) {
            return ControlFlow::Break(Next::Deadlock);
        }
        let stolen = self.steals.due();
        let time = time.min(stolen);
        if time > self.until {
            self.now = self.until;
            return ControlFlow::Break(Next::TimeUp);
        }
        // Now and then even if no event is to come: programs may be stuck.
        let look_again = time + STUCK;
        let after_the_end = self.until + Nanos(1);
        let beside_cpus = by_itself.min(planned).min(stolen);
        self.beside_cpus = beside_cpus.min(after_the_end).min(look_again);
        if time == timer {
            self.now = time;
            self.timer_rings();
        } else if time == planned {
            self.now = time;
            let (_, what) = self.plan.pop_front().expect("it is there");
            self.carry_out(what);
        } else if time == quota {
            self.now = time;
            self.hand_out_quota();
        } else if time == stolen {
            self.now = time;
            let (cpu, away) = self.steals.next(self.cores.len());
            self.carry_out(Planned::Stolen(cpu, away));
        } else {
            return ControlFlow::Continue(false);
        }
        self.beside_cpus = Nanos::ZERO;
        ControlFlow::Continue(true)
    }

    /// Handles one of the events that are due on this CPU at this moment. Returns the program that continues,
    /// if that is the event.
    fn cpu_is_due(&mut self, cpu: Cpu) -> Option<Task> {
        let core = &mut self.cores[cpu.index()];
        // A step that ends at the very moment the slice ends has ended.
        let is_done = core.done_at == self.now && core.resched_at != self.now;
        if core.tick_at == self.now && !is_done {
            self.tick(cpu);
        } else if core.timer_at == self.now && !is_done {
            self.class_timer(cpu);
        } else if core.resched_at == self.now {
            self.reschedule(cpu);
        } else {
            return self.go_on(cpu);
        }
        None
    }

    /// Whether nothing but ticks will ever happen.
    fn is_stuck(&mut self, timer: Nanos, planned: Nanos) -> bool {
        let (steps, since) = self.moved;
        if steps != self.steps {
            self.moved = (self.steps, self.now);
            return false;
        }
        timer == Nanos::MAX
            && planned == Nanos::MAX
            && self.now - since > STUCK
            && self.tasks.iter().all(|task| match task.phase {
                TaskPhase::Blocked(_) | TaskPhase::Ended => true,
                TaskPhase::Ready | TaskPhase::Running => task.spins_on.is_some(),
                TaskPhase::Throttled => false,
            })
            && self.cores.iter().all(|core| core.done_at == Nanos::MAX)
    }

    /// Whether the class takes a new task with these attributes.
    ///
    /// # Errors
    /// The policy, the thread that it refuses, and the reason, in one line.
    pub(crate) fn admits(&self, name: &str, attr: &Attr) -> Result<(), String> {
        admits(&*self.class, name, attr)
    }

    /// A new task, which the class admits, ready to run. `by` is the task that started it.
    pub(crate) fn begin(&mut self, name: String, attr: Attr, mask: Mask, by: Option<Task>) -> Task {
        let new = task(self.tasks.len());
        let cpu = by.map_or(self.first_cpu(&mask), |by| self.tasks[by.index()].cpu);
        let rationed = self.is_rationed(&name, by);
        let mut control = Control::new(name, attr.clone(), mask, cpu, self.now);
        control.rationed = rationed;
        self.tasks.push(control);
        self.alive += 1;
        self.class.add(new, &attr);
        self.put(new, policy::Enqueue::New, by);
        new
    }

    /// The first CPU of a task that no other task started.
    fn first_cpu(&self, mask: &Mask) -> Cpu {
        let all = (0..self.cores.len() as u32).map(Cpu);
        let mut allowed = all.filter(|&cpu| mask.is_empty() || mask.has(cpu));
        allowed.next().unwrap_or(Cpu(0))
    }

    /// The running program has ended.
    pub(crate) fn end(&mut self) {
        let (me, now) = (self.me(), self.now);
        let control = &mut self.tasks[me.index()];
        control.set_phase(TaskPhase::Ended, now);
        control.ended = now;
        self.alive -= 1;
        self.class
            .dequeue(self.on, me, policy::Dequeue::End, self.now);
        self.class.remove(me);
        self.leave(event::Left::Dead);
    }

    /// The use of each cluster up to now.
    pub(crate) fn usage(&mut self) -> Vec<crate::machine::ClusterUse> {
        self.speeds.usage(self.now)
    }

    pub(crate) fn record(&mut self, cpu: Cpu, what: KernelEventKind) {
        self.trace.record(self.now, cpu, what);
    }
}
