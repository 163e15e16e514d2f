//! A kernel for tests of policies: a virtual clock, CPUs, and tasks that are tables.
//!
//! It drives any [`Class`] by the order of calls in [`class`](crate::class), without threads and without
//! costs: a switch takes no time, an interrupt arrives at once. So what comes out is the policy's doing
//! alone, to the nanosecond.
//!
//! What happens at one instant happens in this order: tasks begin and sleepers wake up; then CPU by CPU,
//! the lowest first: the program that is done with its work goes on, a tick, the class's timer, a new
//! choice. A task that is done at the very moment its slice ends is done.

use event::{Cpu, Nanos, Task};

use crate::{Attr, Class, Cpus, Dequeue, Enqueue, Idleness, Mask, Placement};

/// What a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It needs a CPU for so long.
    Run(Nanos),
    /// It blocks for so long.
    Sleep(Nanos),
    /// It blocks until then.
    SleepUntil(Nanos),
    /// A message into a mailbox, for whoever receives from it.
    Send(usize),
    /// It takes a message from a mailbox, and blocks until there is one.
    Receive(usize),
    /// It calls `sched_yield`.
    Yield,
}

/// A task: what it asks of the scheduler, and a table of what it does.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) attr: Attr,
    pub(crate) begins: Nanos,
    /// Where it may run; empty: everywhere.
    pub(crate) mask: Mask,
    pub(crate) steps: Vec<Step>,
    /// How often it goes through its steps before it ends.
    pub(crate) rounds: u64,
}

impl Script {
    /// A task that goes through these steps once, from the beginning of time.
    pub(crate) fn once(attr: Attr, steps: &[Step]) -> Script {
        Script {
            attr,
            begins: Nanos::ZERO,
            mask: Mask::default(),
            steps: steps.to_vec(),
            rounds: 1,
        }
    }

    /// A task that goes through these steps for ever.
    pub(crate) fn forever(attr: Attr, steps: &[Step]) -> Script {
        Script {
            rounds: u64::MAX,
            ..Script::once(attr, steps)
        }
    }
}

/// A task had a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stint {
    pub(crate) cpu: Cpu,
    pub(crate) task: Task,
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
}

/// The machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    pub(crate) cpus: usize,
    /// The time between two ticks of a busy CPU; zero: none.
    pub(crate) tick: Nanos,
}

/// Runs the tasks under the class until then, or until all have ended or wait for messages. Who had a CPU
/// when, in the order of the beginnings; stints without length included.
///
/// Panics if the class breaks a promise or forgets a task, and if nothing moves on.
pub(crate) fn run(
    class: &mut dyn Class,
    machine: Machine,
    scripts: &[Script],
    until: Nanos,
) -> Vec<Stint> {
    let in_order = scripts.is_sorted_by_key(|script| script.begins);
    assert!(
        in_order,
        "tasks are numbered in the order of their beginnings"
    );
    class.set_cpus(machine.cpus);
    let mut kernel = Kernel {
        class,
        machine,
        now: Nanos::ZERO,
        cores: vec![Core::default(); machine.cpus],
        tasks: Vec::new(),
        mailboxes: Vec::new(),
        stints: Vec::new(),
    };
    kernel.tasks = scripts.iter().map(Control::new).collect();
    kernel.run(until);
    kernel.stints.sort_by_key(|stint| stint.from);
    kernel.stints
}

/// The stints of one CPU as letters, A for task 0, one for each unit of time; what is shorter is not seen.
pub(crate) fn letters(stints: &[Stint], unit: Nanos) -> String {
    let letter = |task: Task| char::from(b'A' + task.0 as u8);
    let units = |stint: &Stint| ((stint.to - stint.from).0 / unit.0) as usize;
    let words = stints
        .iter()
        .map(|stint| letter(stint.task).to_string().repeat(units(stint)));
    words.collect()
}

/// How often a CPU went over from one task to another.
pub(crate) fn switches(stints: &[Stint]) -> usize {
    let between = stints.windows(2).filter(|two| two[0].task != two[1].task);
    between.count()
}

/// How long each of so many tasks had a CPU.
pub(crate) fn shares(stints: &[Stint], tasks: usize) -> Vec<Nanos> {
    let mut shares = vec![Nanos::ZERO; tasks];
    for stint in stints {
        shares[stint.task.index()] += stint.to - stint.from;
    }
    shares
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    NotBegun,
    Ready,
    Running,
    Asleep(Nanos),
    Receiving(usize),
    Ended,
}

#[derive(Clone, Debug)]
struct Control {
    script: Script,
    phase: Phase,
    cpu: Cpu,
    step: usize,
    rounds: u64,
    /// What is left of the step `Run` that it is in; `None`: it is not in one.
    left: Option<Nanos>,
}

impl Control {
    fn new(script: &Script) -> Control {
        Control {
            phase: Phase::NotBegun,
            cpu: Cpu(0),
            step: 0,
            rounds: script.rounds,
            left: None,
            script: script.clone(),
        }
    }

    /// Its step is done.
    fn advance(&mut self) {
        self.left = None;
        self.step += 1;
        if self.step == self.script.steps.len() {
            self.step = 0;
            self.rounds -= 1;
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Core {
    task: Option<Task>,
    /// Since when its stint lasts.
    from: Nanos,
    done_at: Nanos,
    tick_at: Nanos,
    timer_at: Nanos,
    resched_at: Nanos,
}

impl Default for Core {
    fn default() -> Core {
        Core {
            task: None,
            from: Nanos::ZERO,
            done_at: Nanos::MAX,
            tick_at: Nanos::MAX,
            timer_at: Nanos::MAX,
            resched_at: Nanos::MAX,
        }
    }
}

struct Kernel<'a> {
    class: &'a mut dyn Class,
    machine: Machine,
    now: Nanos,
    cores: Vec<Core>,
    tasks: Vec<Control>,
    /// Messages that nobody has taken, by mailbox.
    mailboxes: Vec<u64>,
    stints: Vec<Stint>,
}

/// How many things may happen at one instant before that is a loop.
const MANY: u32 = 100_000;

impl Kernel<'_> {
    fn run(&mut self, until: Nanos) {
        let mut at_this_instant = 0;
        loop {
            if self.all_ended() {
                break;
            }
            let due = self.next_due();
            if due >= until || due == Nanos::MAX {
                self.now = self.now.max(until.min(due));
                break;
            }
            assert!(due >= self.now, "time runs back: {due} at {}", self.now);
            at_this_instant = if due == self.now {
                at_this_instant + 1
            } else {
                0
            };
            assert!(
                at_this_instant < MANY,
                "nothing moves on at {due}: {:?}",
                self.cores
            );
            self.now = due;
            self.one_thing();
        }
        for cpu in 0..self.cores.len() {
            self.close_stint(Cpu(cpu as u32));
        }
    }

    fn all_ended(&self) -> bool {
        self.tasks.iter().all(|task| task.phase == Phase::Ended)
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
        let due = cores.chain(tasks).min().unwrap_or(Nanos::MAX);
        let waits = |task: &Control| matches!(task.phase, Phase::Ended | Phase::Receiving(_));
        assert!(
            due < Nanos::MAX || self.tasks.iter().all(waits),
            "somebody waits for a CPU for good at {}: {:?}",
            self.now,
            self.tasks
        );
        due
    }

    /// Does the first of what is due now.
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
        for cpu in (0..self.cores.len() as u32).map(Cpu) {
            let core = &mut self.cores[cpu.index()];
            let running = core.task;
            if core.done_at == now {
                core.done_at = Nanos::MAX;
                return self.go_on(cpu);
            } else if core.tick_at == now {
                core.tick_at = now + self.machine.tick;
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
        match self.class.tick(cpu, running, self.now) {
            true => self.pick(cpu, Some(running)),
            false => self.ask(cpu),
        }
    }

    /// The program on this CPU goes on until it needs time, blocks, or somebody else is to be picked.
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
                    if !self.take(mailbox) {
                        return self.block(cpu, Phase::Receiving(mailbox));
                    }
                    self.tasks[me.index()].advance();
                }
                Step::Yield => {
                    control.advance();
                    self.class.yields(cpu, me, now);
                    self.cores[cpu.index()].done_at = now;
                    return self.pick(cpu, Some(me));
                }
            }
        }
    }

    fn mailbox(&mut self, mailbox: usize) -> &mut u64 {
        if self.mailboxes.len() <= mailbox {
            self.mailboxes.resize(mailbox + 1, 0);
        }
        &mut self.mailboxes[mailbox]
    }

    fn take(&mut self, mailbox: usize) -> bool {
        let messages = self.mailbox(mailbox);
        let any = *messages > 0;
        *messages -= u64::from(any);
        any
    }

    /// Whoever waits gets the message, the lowest number first; else it is kept.
    fn send(&mut self, mailbox: usize, from: Cpu) {
        let waits = |task: &Control| task.phase == Phase::Receiving(mailbox);
        match self.tasks.iter().position(waits) {
            Some(receiver) => self.put(Task(receiver as u32), Enqueue::Wake, Some(from)),
            None => *self.mailbox(mailbox) += 1,
        }
    }

    fn block(&mut self, cpu: Cpu, phase: Phase) {
        let me = self.cores[cpu.index()].task.expect("a program runs here");
        self.tasks[me.index()].phase = phase;
        self.class.dequeue(cpu, me, Dequeue::Sleep, self.now);
        self.cores[cpu.index()].done_at = Nanos::MAX;
        self.pick(cpu, None);
    }

    /// A task begins or wakes up. Its step of waiting is over.
    fn put(&mut self, task: Task, why: Enqueue, waker: Option<Cpu>) {
        if why == Enqueue::Wake {
            self.tasks[task.index()].advance();
        }
        let view = View(self.machine, &self.cores, &self.tasks);
        let mut cpu = self.class.select_cpu(task, waker, &view);
        if !view.allows(task, cpu) {
            let mut all = (0..view.len() as u32).map(Cpu);
            let allowed = all.find(|&cpu| view.allows(task, cpu));
            cpu = allowed.expect("masks name a CPU");
        }
        self.tasks[task.index()].cpu = cpu;
        self.tasks[task.index()].phase = Phase::Ready;
        self.class.enqueue(cpu, task, why, self.now);
        let core = &self.cores[cpu.index()];
        let anew = match core.task {
            None => true,
            Some(running) => self.class.preempts(cpu, running, task, self.now),
        };
        if anew {
            self.cores[cpu.index()].resched_at = self.now;
        }
        self.ask(cpu);
    }

    /// Who runs on this CPU from now on?
    fn pick(&mut self, cpu: Cpu, prev: Option<Task>) {
        self.cores[cpu.index()].resched_at = Nanos::MAX;
        let mut next = self.class.pick(cpu, prev, self.now);
        if next.is_none() && self.pull(cpu, Idleness::New) {
            next = self.class.pick(cpu, None, self.now);
        }
        let core = &self.cores[cpu.index()];
        if next.is_none() || next != prev {
            let left = core.done_at - self.now;
            if let Some(prev) = prev {
                let control = &mut self.tasks[prev.index()];
                control.left = control.left.map(|_| left);
                control.phase = Phase::Ready;
            }
            self.close_stint(cpu);
            self.start(cpu, next);
        }
        self.ask(cpu);
        if let Err(broken) = self.class.check(self.now) {
            panic!("at {}: {broken}", self.now);
        }
    }

    fn start(&mut self, cpu: Cpu, next: Option<Task>) {
        let (now, tick) = (self.now, self.machine.tick);
        let core = &mut self.cores[cpu.index()];
        core.task = next;
        core.from = now;
        core.done_at = Nanos::MAX;
        let Some(next) = next else {
            core.tick_at = Nanos::MAX;
            return;
        };
        if core.tick_at == Nanos::MAX && tick > Nanos::ZERO {
            core.tick_at = Nanos((now.0 / tick.0 + 1) * tick.0);
        }
        let control = &mut self.tasks[next.index()];
        assert_eq!(control.phase, Phase::Ready, "{next:?} cannot run");
        assert_eq!(control.cpu, cpu, "{next:?} is queued elsewhere");
        control.phase = Phase::Running;
        core.done_at = now + control.left.unwrap_or(Nanos::ZERO);
    }

    fn close_stint(&mut self, cpu: Cpu) {
        let core = &mut self.cores[cpu.index()];
        if let Some(task) = core.task.take() {
            self.stints.push(Stint {
                cpu,
                task,
                from: core.from,
                to: self.now,
            });
        }
    }

    fn pull(&mut self, cpu: Cpu, idleness: Idleness) -> bool {
        let view = View(self.machine, &self.cores, &self.tasks);
        let Some((task, from)) = self.class.pull(cpu, idleness, &view, self.now) else {
            return false;
        };
        let waits = self.tasks[task.index()].phase == Phase::Ready;
        if !waits || !view.allows(task, cpu) {
            return false;
        }
        self.class.dequeue(from, task, Dequeue::Move, self.now);
        self.tasks[task.index()].cpu = cpu;
        self.class.enqueue(cpu, task, Enqueue::Move, self.now);
        true
    }

    /// What follows each hook that concerned this CPU: asks the class for its timer there, and whom to kick,
    /// and checks its count.
    fn ask(&mut self, cpu: Cpu) {
        self.cores[cpu.index()].timer_at = self.class.timer(cpu, self.now);
        let here = |task: &&Control| {
            task.cpu == cpu && matches!(task.phase, Phase::Ready | Phase::Running)
        };
        let queued = self.tasks.iter().filter(here).count();
        assert_eq!(self.class.queued(cpu), queued, "on {cpu:?} at {}", self.now);
        while let Some(kicked) = self.class.kick() {
            self.cores[kicked.index()].resched_at = self.now;
        }
    }
}

struct View<'a>(Machine, &'a [Core], &'a [Control]);

impl Cpus for View<'_> {
    fn len(&self) -> usize {
        self.0.cpus
    }
    fn is_active(&self, _: Cpu) -> bool {
        true
    }
    fn is_idle(&self, cpu: Cpu) -> bool {
        let core = &self.1[cpu.index()];
        core.task.is_none() && core.resched_at == Nanos::MAX
    }
    fn current(&self, cpu: Cpu) -> Option<Task> {
        self.1[cpu.index()].task
    }
    fn capacity(&self, _: Cpu) -> u32 {
        1024
    }
    fn allows(&self, task: Task, cpu: Cpu) -> bool {
        let mask = &self.2[task.index()].script.mask;
        mask.is_empty() || mask.has(cpu)
    }
    fn last_cpu(&self, task: Task) -> Cpu {
        self.2[task.index()].cpu
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

mod tests {
    use super::*;
    use crate::random::{Explore, Order};

    /// Goal: the kernel for tests keeps time: nobody runs twice at once, everybody gets what it needs, and
    /// a message wakes its receiver. Method: four tasks that run, sleep, yield and send to each other on one
    /// CPU in any order.
    #[test]
    fn everybody_gets_exactly_its_time() {
        let ms = Nanos::from_millis;
        let work = [Step::Run(ms(3)), Step::Sleep(ms(1)), Step::Run(ms(2))];
        let scripts = [
            Script::once(Attr::default(), &work),
            Script::once(Attr::default(), &[Step::Receive(0), Step::Run(ms(4))]),
            Script::once(
                Attr::default(),
                &[Step::Run(ms(5)), Step::Yield, Step::Send(0)],
            ),
            Script {
                begins: ms(2),
                rounds: 3,
                ..Script::once(Attr::default(), &work)
            },
        ];
        for seed in 0..50 {
            let machine = Machine {
                cpus: 1,
                tick: ms(1),
            };
            let mut class = Explore::new(Order::Random, seed);
            let stints = run(&mut class, machine, &scripts, ms(1000));
            assert_eq!(shares(&stints, 4), [ms(5), ms(4), ms(5), ms(15)]);
            assert!(stints.windows(2).all(|two| two[0].to <= two[1].from));
            assert!(switches(&stints) > 4, "{}", letters(&stints, ms(1)));
        }
    }
}
