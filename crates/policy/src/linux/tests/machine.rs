//! A machine without threads: a virtual clock, ticks, and tasks that follow tables. It calls a class as
//! the module `class` says, and costs nothing but what the tables say.
//!
//! At one instant, things happen in this order: wake-ups and planned changes, then for each CPU from the
//! lowest the tick, then the end of what its task does.

use std::collections::VecDeque;

use event::{Cpu, Nanos, Task};

use super::script::{Account, Change, Do, Script, Stint, TICK};
use crate::{Class, Cpus, Dequeue, Enqueue, Idleness, Placement, Setting, named};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Unborn,
    Ready,
    Running,
    Asleep,
    Ended,
}

#[derive(Debug)]
struct State {
    script: Script,
    phase: Phase,
    step: usize,
    left: Nanos,
    wakes: Nanos,
    cpu: Cpu,
    /// Since when it has been ready.
    ready: Nanos,
    /// When it yielded last, while it is not known how long that takes.
    yielded: Option<Nanos>,
}

#[derive(Debug, Default)]
struct Core {
    task: Option<Task>,
    since: Nanos,
    tick: Option<Nanos>,
    offline: bool,
}

pub(super) struct Machine {
    pub(super) class: Box<dyn Class>,
    pub(super) now: Nanos,
    tick: Nanos,
    cores: Vec<Core>,
    tasks: Vec<State>,
    plan: VecDeque<(Nanos, Change)>,
    pub(super) accounts: Vec<Account>,
    pub(super) stints: Vec<Stint>,
    /// Every so many decisions the class is checked.
    pub(super) check_every: u64,
    decisions: u64,
    /// Which run this is, for messages.
    pub(super) label: String,
}

impl Machine {
    /// `cpus` real CPUs under a policy that thinks there are `scale`.
    pub(super) fn new(policy: &str, cpus: usize, scale: usize, tick: Nanos) -> Machine {
        let setting = Setting {
            cpus: scale,
            tick,
            seed: 1,
        };
        let mut class = named(policy, setting).expect("the policy is in the catalogue");
        class.set_cpus(cpus);
        Machine {
            class,
            now: Nanos::ZERO,
            tick,
            cores: (0..cpus).map(|_| Core::default()).collect(),
            tasks: Vec::new(),
            plan: VecDeque::new(),
            accounts: Vec::new(),
            stints: Vec::new(),
            check_every: 1,
            decisions: 0,
            label: policy.to_owned(),
        }
    }

    /// Tasks are numbered in the order in which they are added.
    pub(super) fn add(&mut self, script: Script) -> Task {
        let task = Task(self.tasks.len() as u32);
        self.class.add(task, &script.attr);
        self.tasks.push(State {
            phase: Phase::Unborn,
            step: 0,
            left: Nanos::ZERO,
            wakes: script.begins,
            cpu: Cpu(0),
            ready: Nanos::ZERO,
            yielded: None,
            script,
        });
        self.accounts.push(Account::default());
        task
    }

    /// In the order of time.
    pub(super) fn plan(&mut self, at: Nanos, change: Change) {
        self.plan.push_back((at, change));
    }

    /// One CPU, one policy, these tasks, so long.
    pub(super) fn run(policy: &str, scale: usize, scripts: Vec<Script>, until: Nanos) -> Machine {
        let mut machine = Machine::new(policy, 1, scale, TICK);
        scripts.into_iter().for_each(|script| {
            machine.add(script);
        });
        machine.go(until);
        machine
    }

    /// How long the stints of a task were, except the first one and what was cut off by the end.
    pub(super) fn lengths(&self, task: u32) -> Vec<Nanos> {
        let mine = self.stints.iter().filter(|stint| stint.task == Task(task));
        mine.skip(1).map(|stint| stint.to - stint.from).collect()
    }

    pub(super) fn cpu_of(&self, task: u32) -> Nanos {
        self.accounts[task as usize].cpu
    }

    pub(super) fn go(&mut self, until: Nanos) {
        while let Some(next) = self.next_time().filter(|next| *next <= until) {
            assert!(next >= self.now, "time runs back");
            self.now = next;
            self.one_thing();
        }
        self.now = until;
        // Who waits at the end has waited.
        for index in 0..self.tasks.len() {
            match self.tasks[index].phase {
                Phase::Ready => self.has_waited(index),
                Phase::Running => self.pay(self.tasks[index].cpu),
                _ => {}
            }
        }
    }

    fn next_time(&self) -> Option<Nanos> {
        let sleeping = self
            .tasks
            .iter()
            .filter(|task| task.sleeps())
            .map(|task| task.wakes);
        let planned = self.plan.front().map(|(time, _)| *time);
        let cores = self
            .cores
            .iter()
            .flat_map(|core| [core.tick, self.done_at(core)]);
        sleeping.chain(planned).chain(cores.flatten()).min()
    }

    fn done_at(&self, core: &Core) -> Option<Nanos> {
        core.task
            .map(|task| core.since + self.tasks[task.index()].left)
    }

    fn one_thing(&mut self) {
        let due = |task: &State| task.sleeps() && task.wakes == self.now;
        if let Some(index) = self.tasks.iter().position(due) {
            return self.wakes(Task(index as u32));
        }
        if self.plan.front().is_some_and(|(time, _)| *time == self.now) {
            let (_, change) = self.plan.pop_front().expect("it is there");
            return self.change(change);
        }
        for cpu in (0..self.cores.len() as u32).map(Cpu) {
            let core = &self.cores[cpu.index()];
            if core.tick == Some(self.now) {
                return self.ticks(cpu);
            }
            if self.done_at(core) == Some(self.now) {
                return self.done(cpu);
            }
        }
        unreachable!("something is due at {}", self.now);
    }

    fn wakes(&mut self, task: Task) {
        let state = &mut self.tasks[task.index()];
        let why = match state.phase {
            Phase::Unborn => {
                state.left = state.script.steps[0].length();
                Enqueue::New
            }
            _ => {
                state.step += 1;
                state.left = state.next_step().map_or(Nanos::ZERO, Do::length);
                Enqueue::Wake
            }
        };
        self.queue(task, why);
    }

    fn queue(&mut self, task: Task, why: Enqueue) {
        let cpu = self.choose_cpu(task);
        let state = &mut self.tasks[task.index()];
        if why != Enqueue::Move {
            state.ready = self.now;
        }
        state.phase = Phase::Ready;
        state.cpu = cpu;
        self.class.enqueue(cpu, task, why, self.now);
        self.see_who_runs(cpu, task);
        self.kicks();
    }

    fn see_who_runs(&mut self, cpu: Cpu, queued: Task) {
        match self.cores[cpu.index()].task {
            None => self.reschedule(cpu),
            Some(running) => {
                if self.class.preempts(cpu, running, queued, self.now) {
                    self.reschedule(cpu);
                }
            }
        }
    }

    fn choose_cpu(&mut self, task: Task) -> Cpu {
        let view = View {
            cores: &self.cores,
            tasks: &self.tasks,
        };
        let chosen = self.class.select_cpu(task, None, &view);
        if view.may_run(task, chosen) {
            return chosen;
        }
        let mut all = (0..self.cores.len() as u32).map(Cpu);
        all.find(|&cpu| view.may_run(task, cpu))
            .expect("a CPU is active")
    }

    fn ticks(&mut self, cpu: Cpu) {
        self.cores[cpu.index()].tick = Some(self.now + self.tick);
        let running = self.cores[cpu.index()]
            .task
            .expect("ticks are for busy CPUs");
        self.pull(cpu, Idleness::Busy);
        if self.class.tick(cpu, running, self.now) {
            self.reschedule(cpu);
        }
        self.kicks();
    }

    /// The CPUs that the class names pick anew. It may not know yet that one is going away.
    fn kicks(&mut self) {
        while let Some(cpu) = self.class.kick() {
            if !self.cores[cpu.index()].offline {
                self.reschedule(cpu);
            }
        }
    }

    fn done(&mut self, cpu: Cpu) {
        self.pay(cpu);
        let task = self.cores[cpu.index()].task.expect("somebody runs");
        let state = &mut self.tasks[task.index()];
        let Some(step) = state.next_step() else {
            return self.stops(cpu, task, Phase::Ended, Dequeue::End);
        };
        if let Do::Yield(_) = step {
            state.yielded = Some(self.now);
        }
        state.step += 1;
        let yields = matches!(step, Do::Yield(_));
        match state.next_step() {
            None => self.stops(cpu, task, Phase::Ended, Dequeue::End),
            Some(Do::Sleep(time)) => {
                state.wakes = self.now + time;
                self.stops(cpu, task, Phase::Asleep, Dequeue::Sleep);
            }
            Some(Do::Run(time) | Do::Yield(time)) => {
                state.left = time;
                if yields {
                    self.class.yields(cpu, task, self.now);
                    self.reschedule(cpu);
                    self.runs_again(task);
                }
            }
        }
    }

    fn stops(&mut self, cpu: Cpu, task: Task, phase: Phase, why: Dequeue) {
        self.tasks[task.index()].phase = phase;
        self.class.dequeue(cpu, task, why, self.now);
        if phase == Phase::Ended {
            self.class.remove(task);
        }
        self.pick(cpu, None);
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Attr(task, attr) => {
                self.class.set_attr(task, &attr, self.now);
                let State { phase, cpu, .. } = self.tasks[task.index()];
                match phase {
                    Phase::Running => self.reschedule(cpu),
                    Phase::Ready => self.see_who_runs(cpu, task),
                    _ => {}
                }
            }
            Change::Offline(cpu) => {
                self.cores[cpu.index()].offline = true;
                for task in (0..self.tasks.len() as u32).map(Task) {
                    let State { phase, cpu: at, .. } = self.tasks[task.index()];
                    if at == cpu && matches!(phase, Phase::Ready | Phase::Running) {
                        self.class.dequeue(cpu, task, Dequeue::Move, self.now);
                        if phase == Phase::Running {
                            self.switch(cpu, None);
                        }
                        self.queue(task, Enqueue::Move);
                    }
                }
                self.class.set_online(cpu, false);
            }
            Change::Online(cpu) => {
                self.cores[cpu.index()].offline = false;
                self.class.set_online(cpu, true);
                self.reschedule(cpu);
            }
        }
    }

    fn reschedule(&mut self, cpu: Cpu) {
        self.pay(cpu);
        let prev = self.cores[cpu.index()].task;
        self.pick(cpu, prev);
    }

    fn pick(&mut self, cpu: Cpu, prev: Option<Task>) {
        let mut next = self.class.pick(cpu, prev, self.now);
        if next.is_none() && self.pull(cpu, Idleness::New) {
            next = self.class.pick(cpu, None, self.now);
        }
        assert!(
            next.is_some() || self.class.queued(cpu) == 0,
            "CPU {} idles",
            cpu.0
        );
        if next.is_none() || next != prev {
            self.switch(cpu, next);
        }
        self.decisions += 1;
        if self.decisions.is_multiple_of(self.check_every) {
            self.check();
        }
    }

    /// The class's own checks, and that it has queued what is ready.
    fn check(&self) {
        if let Err(what) = self.class.check(self.now) {
            panic!("{} at {}: {what}", self.label, self.now);
        }
        for cpu in (0..self.cores.len() as u32).map(Cpu) {
            let ready = |task: &&State| {
                task.cpu == cpu && matches!(task.phase, Phase::Ready | Phase::Running)
            };
            let ready = self.tasks.iter().filter(ready).count();
            assert_eq!(
                self.class.queued(cpu),
                ready,
                "at {}, CPU {}",
                self.now,
                cpu.0
            );
        }
    }

    fn switch(&mut self, cpu: Cpu, next: Option<Task>) {
        self.pay(cpu);
        let now = self.now;
        let core = &mut self.cores[cpu.index()];
        if let Some(prev) = core.task {
            let state = &mut self.tasks[prev.index()];
            if state.phase == Phase::Running {
                state.phase = Phase::Ready;
                state.ready = now;
            }
        }
        let was_idle = core.task.is_none();
        core.task = next;
        let Some(next) = next else {
            core.tick = None;
            return;
        };
        core.since = now;
        if was_idle && self.tick > Nanos::ZERO {
            core.tick = Some(Nanos((now.0 / self.tick.0 + 1) * self.tick.0));
        }
        self.stints.push(Stint {
            task: next,
            cpu,
            from: now,
            to: now,
        });
        self.has_waited(next.index());
        let state = &mut self.tasks[next.index()];
        assert_eq!(
            (state.phase, state.cpu),
            (Phase::Ready, cpu),
            "{next:?} cannot run"
        );
        state.phase = Phase::Running;
        self.runs_again(next);
    }

    /// Accounts what the CPU's task has had.
    fn pay(&mut self, cpu: Cpu) {
        let core = &mut self.cores[cpu.index()];
        let Some(task) = core.task else {
            return;
        };
        let passed = self.now - core.since;
        core.since = self.now;
        let state = &mut self.tasks[task.index()];
        state.left = state.left - passed;
        self.accounts[task.index()].cpu += passed;
        let mut recent = self.stints.iter_mut().rev();
        let stint = recent.find(|stint| stint.cpu == cpu).expect("it runs");
        stint.to = self.now;
    }

    fn has_waited(&mut self, index: usize) {
        let waited = self.now - self.tasks[index].ready;
        let longest = &mut self.accounts[index].longest_wait;
        *longest = waited.max(*longest);
    }

    fn runs_again(&mut self, task: Task) {
        let state = &mut self.tasks[task.index()];
        if state.phase == Phase::Running
            && let Some(yielded) = state.yielded.take()
        {
            self.accounts[task.index()].yields.push(self.now - yielded);
        }
    }

    fn pull(&mut self, cpu: Cpu, idleness: Idleness) -> bool {
        let view = View {
            cores: &self.cores,
            tasks: &self.tasks,
        };
        let Some((task, from)) = self.class.pull(cpu, idleness, &view, self.now) else {
            return false;
        };
        let state = &self.tasks[task.index()];
        assert_eq!(
            (state.phase, state.cpu),
            (Phase::Ready, from),
            "{task:?} was pulled"
        );
        assert!(view.may_run(task, cpu), "{task:?} was pulled to {cpu:?}");
        self.class.dequeue(from, task, Dequeue::Move, self.now);
        self.tasks[task.index()].cpu = cpu;
        self.class.enqueue(cpu, task, Enqueue::Move, self.now);
        true
    }
}

impl State {
    fn sleeps(&self) -> bool {
        matches!(self.phase, Phase::Unborn | Phase::Asleep)
    }

    fn next_step(&self) -> Option<Do> {
        let steps = &self.script.steps;
        let round = (self.step / steps.len()) as u64;
        (round < self.script.rounds).then(|| steps[self.step % steps.len()])
    }
}

/// What the class may look at. All CPUs share one cache.
struct View<'a> {
    cores: &'a [Core],
    tasks: &'a [State],
}

impl View<'_> {
    fn may_run(&self, task: Task, cpu: Cpu) -> bool {
        self.is_active(cpu) && self.allows(task, cpu)
    }
}

impl Cpus for View<'_> {
    fn len(&self) -> usize {
        self.cores.len()
    }
    fn is_active(&self, cpu: Cpu) -> bool {
        !self.cores[cpu.index()].offline
    }
    fn is_idle(&self, cpu: Cpu) -> bool {
        self.cores[cpu.index()].task.is_none()
    }
    fn current(&self, cpu: Cpu) -> Option<Task> {
        self.cores[cpu.index()].task
    }
    fn capacity(&self, _: Cpu) -> u32 {
        1024
    }
    fn allows(&self, task: Task, cpu: Cpu) -> bool {
        let mask = &self.tasks[task.index()].script.mask;
        let active = |cpu: u32| self.is_active(Cpu(cpu)) && mask.has(Cpu(cpu));
        mask.has(cpu) || !(0..self.cores.len() as u32).any(active)
    }
    fn last_cpu(&self, task: Task) -> Cpu {
        self.tasks[task.index()].cpu
    }
    fn share_cache(&self, _: Cpu, _: Cpu) -> bool {
        true
    }
    fn share_core(&self, a: Cpu, b: Cpu) -> bool {
        a == b
    }
    fn placement(&self) -> Placement {
        Placement::Mainline
    }
}
