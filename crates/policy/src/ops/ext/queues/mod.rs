//! The kernel's side: messages, dispatch queues, CPUs.

mod process;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use event::{Cpu, Nanos, Task};

use super::Model;
use crate::linux::Weight;
use crate::{Attr, Cpus, Decisions, Dequeue, Enqueue, Mask};

/// How many messages there is room for.
const RING: usize = 4096;
/// One task, in the average of those that wait.
const ONE: u64 = 1024;

/// A task's place in a dispatch queue: `vtime`, then the order of dispatches.
type Key = (u64, u64);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) model: Model,
    pub(super) now: Nanos,
    tasks: Vec<ExtTask>,
    lanes: Vec<ExtCpu>,
    messages: VecDeque<Task>,
    /// The dispatch queue for all CPUs.
    shared: BTreeSet<(Key, Task)>,
    pub(super) round: Option<Round>,
    /// How many tasks the process has taken and not dispatched, as it says.
    pub(super) held: usize,
    /// The process has nothing to say before that.
    pub(super) rests_until: Nanos,
    /// How many tasks wait on average, in units of 1/[`ONE`].
    average: u64,
    pub(super) kicks: BTreeSet<Cpu>,
    pub(super) rounds: u64,
    pub(super) decisions: Decisions,
    pub(super) cancelled: u64,
    /// Where `select_cpu` sent a task to run at once.
    bypass: Option<(Task, Cpu)>,
    order: u64,
    /// What programs say that each waiting task waits for.
    waits: BTreeMap<Task, Vec<Task>>,
}

/// The process is at work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    cpu: Cpu,
    pub(super) ends: Nanos,
}

/// Where a task is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Not ready.
    Away,
    /// A message.
    Message,
    /// With the process.
    Held,
    /// In the dispatch queue of a CPU.
    Local(Cpu, Key),
    /// In the dispatch queue for all.
    Shared(Key),
    /// On this CPU.
    Running(Cpu),
}

/// A task.
#[derive(Debug)]
pub(super) struct ExtTask {
    pub(super) place: Place,
    /// Whose task it is in the kernel's eyes.
    pub(super) cpu: Cpu,
    /// Since when it has been where it is, messages and queues being one.
    pub(super) since: Nanos,
    allowed: Mask,
    allowed_cpus: usize,
    weight: u64,
    slice: Nanos,
    vtime: u64,
    woken: bool,
    start: Nanos,
    stop: Nanos,
    exec_runtime: Nanos,
    enq_cnt: u64,
}

/// A CPU.
#[derive(Debug)]
struct ExtCpu {
    online: bool,
    /// As a share of the fastest CPU's speed, which has 1024.
    capacity: u32,
    queued: usize,
    local: BTreeSet<(Key, Task)>,
    running: Option<Task>,
    /// The running task's slice is over, whatever the clock says.
    cut: bool,
    /// It has to pick again at once.
    again: bool,
}

impl Queues {
    pub(super) fn new(model: Model) -> Queues {
        Queues {
            model,
            now: Nanos::ZERO,
            tasks: Vec::new(),
            lanes: Vec::new(),
            messages: VecDeque::new(),
            shared: BTreeSet::new(),
            round: None,
            held: 0,
            rests_until: Nanos::ZERO,
            average: 0,
            kicks: BTreeSet::new(),
            rounds: 0,
            decisions: Decisions::default(),
            cancelled: 0,
            bypass: None,
            order: 0,
            waits: BTreeMap::new(),
        }
    }

    pub(super) fn set_cpus(&mut self, cpus: usize) {
        let lane = || ExtCpu {
            online: true,
            capacity: 1024,
            queued: 0,
            local: BTreeSet::new(),
            running: None,
            cut: false,
            again: false,
        };
        self.lanes.resize_with(cpus, lane);
    }

    pub(super) fn add(&mut self, attr: &Attr) {
        self.tasks.push(ExtTask {
            place: Place::Away,
            cpu: Cpu(0),
            since: self.now,
            allowed: Mask::default(),
            allowed_cpus: 0,
            weight: weight(attr),
            slice: Nanos::ZERO,
            vtime: 0,
            woken: false,
            start: Nanos::ZERO,
            stop: Nanos::ZERO,
            exec_runtime: Nanos::ZERO,
            enq_cnt: 0,
        });
    }

    pub(super) fn set_weight(&mut self, task: Task, attr: &Attr) {
        self.tasks[task.index()].weight = weight(attr);
    }

    pub(super) fn task(&self, task: Task) -> &ExtTask {
        &self.tasks[task.index()]
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = (Task, &ExtTask)> {
        let numbered = self.tasks.iter().enumerate();
        numbered.map(|(index, known)| (Task(index as u32), known))
    }

    pub(super) fn queued(&self, cpu: Cpu) -> usize {
        self.lanes[cpu.index()].queued
    }

    /// Remembers where the task may run.
    pub(super) fn learn(&mut self, task: Task, cpus: &dyn Cpus) {
        let all = || (0..cpus.len() as u32).map(Cpu);
        for cpu in all() {
            self.lanes[cpu.index()].capacity = cpus.capacity(cpu);
        }
        let allowed: Vec<Cpu> = all().filter(|&cpu| cpus.allows(task, cpu)).collect();
        let known = &mut self.tasks[task.index()];
        known.allowed_cpus = allowed.len();
        known.allowed = Mask::of(allowed);
    }

    /// A CPU for a task that begins or wakes up; an idle one, if there is one.
    pub(super) fn select_idle(&mut self, task: Task, cpus: &dyn Cpus) -> Cpu {
        let last = cpus.last_cpu(task);
        let usable = |cpu: &Cpu| cpus.is_active(*cpu) && cpus.allows(task, *cpu);
        let free = |cpu: &Cpu| usable(cpu) && cpus.is_idle(*cpu) && !self.is_the_process_on(*cpu);
        let all = || (0..cpus.len() as u32).map(Cpu);
        let distance = |cpu: &Cpu| (*cpu != last, !cpus.share_cache(*cpu, last), *cpu);
        let idle = all().filter(free).min_by_key(distance);
        self.bypass = idle.filter(|_| self.model.bypass).map(|cpu| (task, cpu));
        idle.or_else(|| all().filter(usable).min_by_key(distance))
            .unwrap_or(last)
    }

    pub(super) fn enqueue(&mut self, cpu: Cpu, task: Task, why: Enqueue) {
        self.lanes[cpu.index()].queued += 1;
        let bypass = self.bypass.take() == Some((task, cpu));
        let known = &mut self.tasks[task.index()];
        known.cpu = cpu;
        match why {
            Enqueue::New | Enqueue::Wake => {
                known.woken = why == Enqueue::Wake;
                known.exec_runtime = Nanos::ZERO;
            }
            Enqueue::Move => match known.place {
                Place::Away => {}
                // Sent to a CPU and moved to another one.
                Place::Local(to, _) if to != cpu => {
                    self.take_out(task);
                    let vtime = self.tasks[task.index()].vtime;
                    return self.insert(task, None, vtime);
                }
                _ => return,
            },
        }
        if bypass {
            let known = &mut self.tasks[task.index()];
            known.since = self.now;
            known.slice = Nanos(self.model.slice.0 / 4);
            return self.insert(task, Some(cpu), 0);
        }
        self.make_ready(task);
    }

    pub(super) fn dequeue(&mut self, cpu: Cpu, task: Task, why: Dequeue) {
        self.lanes[cpu.index()].queued -= 1;
        let place = self.tasks[task.index()].place;
        if let Place::Running(on) = place {
            self.stop(on, task);
        } else if why != Dequeue::Move {
            self.take_out(task);
        }
    }

    /// How many ready tasks have no CPU.
    pub(super) fn unserved(&self) -> usize {
        let ready: usize = self.lanes.iter().map(|lane| lane.queued).sum();
        let running = self.lanes.iter().filter(|lane| lane.running.is_some());
        ready.saturating_sub(running.count())
    }

    /// The task is ready and the process has to decide.
    pub(super) fn make_ready(&mut self, task: Task) {
        let others = (self.unserved() as u64).saturating_sub(1);
        self.average = (3 * self.average + others * ONE) / 4;
        let known = &mut self.tasks[task.index()];
        known.since = self.now;
        known.enq_cnt += 1;
        let fifo = self.model.fifo && self.average == 0;
        if fifo || self.messages.len() >= RING {
            known.slice = self.model.slice;
            let last = self.shared.last().map_or(0, |((vtime, _), _)| *vtime);
            return self.insert(task, None, last);
        }
        let (home, woken) = (known.cpu, known.woken);
        known.place = Place::Message;
        self.messages.push_back(task);
        self.rests_until = Nanos::ZERO;
        if self.model.kicks && woken && self.round.is_none() {
            self.lanes[home.index()].cut = true;
            self.kicks.insert(home);
        }
    }

    /// The task waits for these from now on, as its program says; for none: it does not wait.
    pub(super) fn set_waits(&mut self, task: Task, others: &[Task]) {
        if others.is_empty() {
            self.waits.remove(&task);
        } else {
            self.waits.insert(task, others.to_vec());
        }
    }

    /// Into a dispatch queue.
    fn insert(&mut self, task: Task, to: Option<Cpu>, vtime: u64) {
        self.order += 1;
        let key = (vtime, self.order);
        let known = &mut self.tasks[task.index()];
        match to {
            Some(cpu) => {
                known.place = Place::Local(cpu, key);
                self.lanes[cpu.index()].local.insert((key, task));
            }
            None => {
                known.place = Place::Shared(key);
                self.shared.insert((key, task));
            }
        }
    }

    /// Out of wherever it waits.
    fn take_out(&mut self, task: Task) {
        let known = &mut self.tasks[task.index()];
        let place = std::mem::replace(&mut known.place, Place::Away);
        match place {
            Place::Message => self.messages.retain(|&other| other != task),
            Place::Local(cpu, key) => _ = self.lanes[cpu.index()].local.remove(&(key, task)),
            Place::Shared(key) => _ = self.shared.remove(&(key, task)),
            // The process' answer will find another place, or another count.
            Place::Held | Place::Away | Place::Running(_) => {}
        }
    }

    /// The first task that may run on this CPU.
    pub(super) fn first(&self, cpu: Cpu) -> Option<Task> {
        let local = self.lanes[cpu.index()].local.iter();
        let may = |task: &Task| self.tasks[task.index()].allowed.has(cpu);
        let mut both = local.chain(&self.shared).map(|(_, task)| *task);
        both.find(may)
    }

    /// The task gets this CPU.
    pub(super) fn start(&mut self, cpu: Cpu, task: Task) {
        self.take_out(task);
        let known = &mut self.tasks[task.index()];
        known.place = Place::Running(cpu);
        known.start = self.now;
        known.since = self.now;
        let lane = &mut self.lanes[cpu.index()];
        lane.running = Some(task);
        lane.cut = false;
    }

    /// The task has had this CPU until now.
    pub(super) fn stop(&mut self, cpu: Cpu, task: Task) {
        self.lanes[cpu.index()].running = None;
        if self.model.kicks {
            // This CPU asks, whatever the process had for others.
            self.rests_until = Nanos::ZERO;
        }
        let known = &mut self.tasks[task.index()];
        known.place = Place::Away;
        known.stop = self.now;
        known.exec_runtime += known.stop - known.start;
        known.woken = false;
    }

    /// Whether the running task's slice is over.
    pub(super) fn is_over(&self, cpu: Cpu, running: Task) -> bool {
        let known = &self.tasks[running.index()];
        self.lanes[cpu.index()].cut || self.now >= known.start + known.slice
    }

    /// The running task's slice is over.
    pub(super) fn cut(&mut self, cpu: Cpu) {
        self.lanes[cpu.index()].cut = true;
    }

    /// The CPU has to pick again at once: the task it looked at has changed meanwhile.
    pub(super) fn look_again(&mut self, cpu: Cpu) {
        self.lanes[cpu.index()].again = true;
    }

    /// The CPU picks.
    pub(super) fn looks(&mut self, cpu: Cpu) {
        self.lanes[cpu.index()].again = false;
    }

    pub(super) fn is_the_process_on(&self, cpu: Cpu) -> bool {
        self.round.is_some_and(|round| round.cpu == cpu)
    }

    fn has_work(&self) -> bool {
        self.held > 0 || !self.messages.is_empty()
    }

    /// The process gets this CPU, if it has something to do. True if so.
    pub(super) fn begin_round(&mut self, cpu: Cpu) -> bool {
        if self.round.is_some() || !self.has_work() || self.now < self.rests_until {
            return false;
        }
        let messages = Nanos(self.model.message.0 * self.messages.len() as u64);
        let ends = self.now + self.model.round + messages;
        self.round = Some(Round { cpu, ends });
        true
    }

    /// Other CPUs than this one that idle get a look at the dispatched tasks.
    pub(super) fn kick_the_idle(&mut self, but: Cpu) {
        for cpu in (0..self.lanes.len() as u32).map(Cpu) {
            let lane = &self.lanes[cpu.index()];
            let idles = lane.online && lane.running.is_none() && cpu != but;
            if idles && self.first(cpu).is_some() {
                self.kicks.insert(cpu);
            }
        }
    }

    pub(super) fn set_online(&mut self, cpu: Cpu, online: bool) {
        self.lanes[cpu.index()].online = online;
        if online && self.model.kicks {
            self.rests_until = Nanos::ZERO;
        }
        if !online
            && let Some(round) = &mut self.round
            && round.cpu == cpu
        {
            // It goes on elsewhere.
            let other = self.lanes.iter().position(|lane| lane.online);
            round.cpu = Cpu(other.unwrap_or(0) as u32);
            self.kicks.insert(round.cpu);
        }
    }

    pub(super) fn timer(&self, cpu: Cpu) -> Nanos {
        let lane = &self.lanes[cpu.index()];
        if let Some(running) = lane.running {
            let known = &self.tasks[running.index()];
            return if self.model.exact {
                known.start + known.slice
            } else {
                Nanos::MAX
            };
        }
        match self.round {
            _ if !lane.online => Nanos::MAX,
            _ if lane.again => Nanos::ZERO,
            Some(round) => round.ends,
            None if self.has_work() => self.rests_until,
            None => Nanos::MAX,
        }
    }
}

/// A task's weight as `sched_ext` gives it: that of the fair class in hundredths of a normal task's, to the
/// nearest, 1 to 10 000 (`sched_weight_to_cgroup`).
fn weight(attr: &Attr) -> u64 {
    const NORMAL: u64 = 100;
    Weight::of(attr).parts_of_normal(NORMAL).clamp(1, 10_000)
}
