//! The kernel: it runs scripts under a class.
//!
//! Events of one instant happen in this order: tasks begin and sleepers wake up; changes from outside; then
//! CPU by CPU, the lowest first: the program that is done with its work goes on, a tick, the class's timer, a
//! new choice. A task that is done at the very moment its slice ends is done.
//!
//! It panics if the class breaks a promise or forgets a task, and if nothing moves on.

use std::collections::VecDeque;
use std::ops::DerefMut;

use event::{Cpu, Nanos, Task};

use super::script::{Change, Script, Step};
use super::seen::{Account, Stint};
use super::state::{Control, Core, Mailboxes, Phase, View};
use crate::{Class, Cpus, Dequeue, Enqueue, Idleness, Setting, named};

/// The machine to run on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) cpus: usize,
    /// The time between two ticks of a busy CPU; zero: none.
    pub(crate) tick: Nanos,
}

/// Runs the tasks under the class until then, or until all have ended or wait for messages. Gives the stints
/// of the CPUs, in the order of their beginnings; stints without length included.
pub(crate) fn run(
    class: &mut dyn Class,
    shape: Shape,
    scripts: &[Script],
    until: Nanos,
) -> Vec<Stint> {
    let mut machine = Machine::under(class, shape);
    for script in scripts {
        machine.add(script.clone());
    }
    machine.go(until);
    machine.stints
}

/// A machine under a class, which it owns or borrows.
pub(crate) struct Machine<C> {
    pub(crate) class: C,
    shape: Shape,
    pub(crate) now: Nanos,
    pub(super) cores: Vec<Core>,
    pub(super) tasks: Vec<Control>,
    mailboxes: Mailboxes,
    plan: VecDeque<(Nanos, Change)>,
    pub(crate) stints: Vec<Stint>,
    pub(crate) accounts: Vec<Account>,
    /// The class is checked once every `check_every` decisions.
    pub(crate) check_every: u64,
    decisions: u64,
    /// A name of this run, for messages.
    pub(crate) label: String,
}

impl Machine<Box<dyn Class>> {
    /// Machines of `cpus` CPUs under a policy of the catalogue that was made for `scale` of them.
    pub(crate) fn named(policy: &str, cpus: usize, scale: usize, tick: Nanos) -> Self {
        let setting = Setting {
            cpus: scale,
            tick,
            seed: 1,
        };
        let class = named(policy, setting).expect("the policy is in the catalogue");
        let mut machine = Machine::under(class, Shape { cpus, tick });
        machine.label = policy.to_owned();
        machine
    }
}

/// The number of events at one instant beyond which there must be a loop.
const MANY: u32 = 100_000;

impl<C: DerefMut<Target: Class>> Machine<C> {
    pub(crate) fn under(mut class: C, shape: Shape) -> Machine<C> {
        class.set_cpus(shape.cpus);
        Machine {
            class,
            shape,
            now: Nanos::ZERO,
            cores: vec![Core::default(); shape.cpus],
            tasks: Vec::new(),
            mailboxes: Mailboxes::default(),
            plan: VecDeque::new(),
            stints: Vec::new(),
            accounts: Vec::new(),
            check_every: 1,
            decisions: 0,
            label: String::new(),
        }
    }

    /// Tasks are numbered in the order in which they are added, which is that of their beginnings.
    pub(crate) fn add(&mut self, script: Script) -> Task {
        let last = self.tasks.last().map(|task| task.script.begins);
        assert!(
            last <= Some(script.begins),
            "tasks begin in the order of their numbers"
        );
        self.tasks.push(Control::new(script));
        self.accounts.push(Account::default());
        Task(self.tasks.len() as u32 - 1)
    }

    /// In the order of time.
    pub(crate) fn plan(&mut self, at: Nanos, change: Change) {
        self.plan.push_back((at, change));
    }

    /// How long the stints of a task were, except the first one and the last, if the end cut it off.
    pub(crate) fn lengths(&self, task: u32) -> Vec<Nanos> {
        let mine = self.stints.iter().filter(|stint| stint.task == Task(task));
        mine.skip(1).map(|stint| stint.to - stint.from).collect()
    }

    pub(crate) fn cpu_of(&self, task: u32) -> Nanos {
        self.accounts[task as usize].cpu
    }

    /// Goes on until then: events due at that moment are not done yet.
    pub(crate) fn go(&mut self, until: Nanos) {
        let mut in_a_row = 0;
        while self.tasks.iter().any(|task| task.phase != Phase::Ended) {
            let due = self.next_due();
            if due >= until || due == Nanos::MAX {
                self.now = self.now.max(until.min(due));
                break;
            }
            assert!(due >= self.now, "time runs back: {due} at {}", self.now);
            in_a_row += 1;
            if due > self.now {
                in_a_row = 0;
            }
            let cores = &self.cores;
            assert!(in_a_row < MANY, "nothing moves on at {due}: {cores:?}");
            self.now = due;
            self.one_thing();
        }
        (0..self.cores.len() as u32).for_each(|cpu| self.pay(Cpu(cpu)));
        // A task that waits at the end has waited.
        for index in 0..self.tasks.len() {
            if self.tasks[index].phase == Phase::Ready {
                self.has_waited(index);
            }
        }
    }

    fn next_due(&self) -> Nanos {
        let cores = self.cores.iter().map(|core| {
            let kernel = core.tick_at.min(core.timer_at).min(core.resched_at);
            kernel.min(core.done_at)
        });
        let tasks = self.tasks.iter().map(|task| match task.phase {
            Phase::NotBegun => task.script.begins,
            Phase::Asleep(until) => until,
            _ => Nanos::MAX,
        });
        let planned = self.plan.front().map_or(Nanos::MAX, |(time, _)| *time);
        let due = cores.chain(tasks).min().unwrap_or(Nanos::MAX).min(planned);
        let waits = |task: &Control| matches!(task.phase, Phase::Ended | Phase::Receiving(_));
        assert!(
            due < Nanos::MAX || self.tasks.iter().all(waits),
            "a task waits for a CPU for good at {}: {:?}",
            self.now,
            self.tasks
        );
        due
    }

    /// Does the first of the due events.
    fn one_thing(&mut self) {
        let now = self.now;
        for index in 0..self.tasks.len() {
            let task = Task(index as u32);
            match self.tasks[index].phase {
                Phase::NotBegun if self.tasks[index].script.begins == now => {
                    let attr = self.tasks[index].script.attr.clone();
                    let admitted = self.class.admits(&attr);
                    admitted.expect("scripts ask for what the class has");
                    self.class.add(task, &attr);
                    return self.put(task, Enqueue::New, None);
                }
                Phase::Asleep(until) if until <= now => {
                    return self.put(task, Enqueue::Wake, None);
                }
                _ => {}
            }
        }
        if self.plan.front().is_some_and(|(time, _)| *time <= now) {
            let (_, change) = self.plan.pop_front().expect("it is there");
            return self.change(change);
        }
        for cpu in (0..self.cores.len() as u32).map(Cpu) {
            let core = &mut self.cores[cpu.index()];
            let running = core.task;
            if core.done_at == now {
                core.done_at = Nanos::MAX;
                return self.go_on(cpu);
            } else if core.tick_at == now {
                core.tick_at = now + self.shape.tick;
                return self.tick(cpu, running.expect("only busy CPUs tick"));
            } else if core.timer_at <= now {
                core.timer_at = Nanos::MAX;
                return match running {
                    Some(running) if !self.class.tick(cpu, running, now) => self.ask(cpu),
                    _ => self.pick(cpu, running),
                };
            } else if core.resched_at == now {
                return self.pick(cpu, running);
            }
        }
    }

    fn tick(&mut self, cpu: Cpu, running: Task) {
        self.pull(cpu, Idleness::Busy);
        if self.class.tick(cpu, running, self.now) {
            self.pick(cpu, Some(running))
        } else {
            self.ask(cpu)
        }
    }

    /// The program on this CPU goes on until it needs time, blocks, or another task is to be picked.
    fn go_on(&mut self, cpu: Cpu) {
        let me = self.cores[cpu.index()].task.expect("a program runs here");
        let now = self.now;
        if self.tasks[me.index()].left.is_some() {
            self.tasks[me.index()].advance();
        }
        loop {
            if self.cores[cpu.index()].resched_at <= now {
                self.cores[cpu.index()].done_at = now;
                return self.pick(cpu, Some(me));
            }
            let control = &mut self.tasks[me.index()];
            if control.rounds == 0 {
                control.phase = Phase::Ended;
                self.class.dequeue(cpu, me, Dequeue::End, now);
                self.class.remove(me);
                return self.pick(cpu, None);
            }
            match control.script.steps[control.step] {
                Step::Run(time) => {
                    control.left = Some(time);
                    self.cores[cpu.index()].done_at = now + time;
                    return;
                }
                Step::Sleep(time) => return self.block(cpu, Phase::Asleep(now + time)),
                Step::SleepUntil(time) => return self.block(cpu, Phase::Asleep(time.max(now))),
                Step::Send(mailbox) => {
                    control.advance();
                    self.send(mailbox, cpu);
                }
                Step::Receive(mailbox) => {
                    if !self.mailboxes.take(mailbox) {
                        return self.block(cpu, Phase::Receiving(mailbox));
                    }
                    self.tasks[me.index()].advance();
                }
                Step::Say(other) => {
                    control.advance();
                    let others: Vec<Task> = other.map(Task).into_iter().collect();
                    self.class.waits_for(me, &others);
                }
                Step::Yield => {
                    control.advance();
                    control.yielded = Some(now);
                    self.class.yields(cpu, me, now);
                    self.cores[cpu.index()].done_at = now;
                    self.pick(cpu, Some(me));
                    return self.runs_again(me);
                }
            }
        }
    }

    /// A waiting receiver gets the message, the lowest number first; else it is kept.
    fn send(&mut self, mailbox: usize, from: Cpu) {
        let waits = |task: &Control| task.phase == Phase::Receiving(mailbox);
        match self.tasks.iter().position(waits) {
            Some(receiver) => self.put(Task(receiver as u32), Enqueue::Wake, Some(from)),
            None => self.mailboxes.put(mailbox),
        }
    }

    fn block(&mut self, cpu: Cpu, phase: Phase) {
        let me = self.cores[cpu.index()].task.expect("a program runs here");
        self.tasks[me.index()].phase = phase;
        self.class.dequeue(cpu, me, Dequeue::Sleep, self.now);
        self.cores[cpu.index()].done_at = Nanos::MAX;
        self.pick(cpu, None);
    }

    /// A task begins, wakes up, or has lost its CPU. With a wake-up its step of waiting is over.
    pub(super) fn put(&mut self, task: Task, why: Enqueue, waker: Option<Cpu>) {
        if why == Enqueue::Wake {
            self.tasks[task.index()].advance();
        }
        let view = View(&self.cores, &self.tasks);
        let mut cpu = self.class.select_cpu(task, waker, &view);
        if !view.may_run(task, cpu) {
            let mut all = (0..view.len() as u32).map(Cpu);
            let allowed = all.find(|&cpu| view.may_run(task, cpu));
            cpu = allowed.expect("a CPU is active");
        }
        let control = &mut self.tasks[task.index()];
        control.cpu = cpu;
        control.phase = Phase::Ready;
        if why != Enqueue::Move {
            control.ready = self.now;
        }
        self.class.enqueue(cpu, task, why, self.now);
        self.see_who_runs(cpu, task);
    }

    /// A task waits on this CPU, or waits there as another one than before: should it run at once?
    pub(super) fn see_who_runs(&mut self, cpu: Cpu, queued: Task) {
        let anew = match self.cores[cpu.index()].task {
            None => true,
            Some(running) => self.class.preempts(cpu, running, queued, self.now),
        };
        if anew {
            self.cores[cpu.index()].resched_at = self.now;
        }
        self.ask(cpu);
    }

    /// Which task runs on this CPU from now on?
    fn pick(&mut self, cpu: Cpu, prev: Option<Task>) {
        self.cores[cpu.index()].resched_at = Nanos::MAX;
        let mut next = self.class.pick(cpu, prev, self.now);
        if next.is_none() && self.pull(cpu, Idleness::New) {
            next = self.class.pick(cpu, None, self.now);
        }
        assert!(
            next.is_some() || self.class.queued(cpu) == 0 || !self.class.conserves_work(),
            "{}: {cpu:?} idles at {}",
            self.label,
            self.now
        );
        if next.is_none() || next != prev {
            self.switch(cpu, next);
        }
        self.decisions += 1;
        self.ask(cpu);
        if self.decisions.is_multiple_of(self.check_every)
            && let Err(broken) = self.class.check(self.now)
        {
            panic!("{} at {}: {broken}", self.label, self.now);
        }
    }

    /// The task that runs here stops, and could go on if it runs still; another one has the CPU from now on.
    pub(super) fn switch(&mut self, cpu: Cpu, next: Option<Task>) {
        self.pay(cpu);
        let (now, tick) = (self.now, self.shape.tick);
        let core = &mut self.cores[cpu.index()];
        let left = core.done_at - now;
        if let Some(prev) = core.task.take() {
            let control = &mut self.tasks[prev.index()];
            if control.phase == Phase::Running {
                control.left = control.left.map(|_| left);
                control.phase = Phase::Ready;
                control.ready = now;
            }
        }
        core.task = next;
        core.done_at = Nanos::MAX;
        let Some(next) = next else {
            core.tick_at = Nanos::MAX;
            return;
        };
        if core.tick_at == Nanos::MAX && tick > Nanos::ZERO {
            core.tick_at = Nanos((now.0 / tick.0 + 1) * tick.0);
        }
        core.paid = now;
        core.stint = self.stints.len();
        self.stints.push(Stint {
            cpu,
            task: next,
            from: now,
            to: now,
        });
        let control = &mut self.tasks[next.index()];
        assert_eq!(control.phase, Phase::Ready, "{next:?} cannot run");
        assert_eq!(control.cpu, cpu, "{next:?} is queued elsewhere");
        control.phase = Phase::Running;
        core.done_at = now + control.left.unwrap_or(Nanos::ZERO);
        self.has_waited(next.index());
        self.runs_again(next);
    }

    /// Accounts the time that the CPU's task has had.
    fn pay(&mut self, cpu: Cpu) {
        let core = &mut self.cores[cpu.index()];
        if let Some(task) = core.task {
            self.accounts[task.index()].cpu += self.now - core.paid;
            self.stints[core.stint].to = self.now;
            core.paid = self.now;
        }
    }

    fn has_waited(&mut self, index: usize) {
        let waited = self.now - self.tasks[index].ready;
        let longest = &mut self.accounts[index].longest_wait;
        *longest = waited.max(*longest);
    }

    /// It runs: its yield is over, if it yielded.
    fn runs_again(&mut self, task: Task) {
        let control = &mut self.tasks[task.index()];
        if control.phase == Phase::Running
            && let Some(yielded) = control.yielded.take()
        {
            self.accounts[task.index()].yields.push(self.now - yielded);
        }
    }

    fn pull(&mut self, cpu: Cpu, idleness: Idleness) -> bool {
        let view = View(&self.cores, &self.tasks);
        let Some((task, from)) = self.class.pull(cpu, idleness, &view, self.now) else {
            return false;
        };
        let Control { phase, cpu: at, .. } = self.tasks[task.index()];
        assert_eq!((phase, at), (Phase::Ready, from), "{task:?} was pulled");
        if !view.may_run(task, cpu) {
            return false;
        }
        self.class.dequeue(from, task, Dequeue::Move, self.now);
        self.tasks[task.index()].cpu = cpu;
        self.class.enqueue(cpu, task, Enqueue::Move, self.now);
        true
    }

    /// The follow-up of each hook that concerned this CPU: asks the class for its timer there, and for CPUs
    /// to kick, and checks its count.
    fn ask(&mut self, cpu: Cpu) {
        self.cores[cpu.index()].timer_at = self.class.timer(cpu, self.now);
        if self.decisions.is_multiple_of(self.check_every) {
            let here = |task: &&Control| {
                task.cpu == cpu && matches!(task.phase, Phase::Ready | Phase::Running)
            };
            let queued = self.tasks.iter().filter(here).count();
            let label = &self.label;
            assert_eq!(
                self.class.queued(cpu),
                queued,
                "{label}: {cpu:?} at {}",
                self.now
            );
        }
        // The class may not know yet that a CPU is going away.
        while let Some(kicked) = self.class.kick() {
            let core = &mut self.cores[kicked.index()];
            if !core.offline {
                core.resched_at = self.now;
            }
        }
    }
}
