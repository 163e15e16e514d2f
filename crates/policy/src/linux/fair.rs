//! The interface of a fair class to the stack above it, and how fair tasks change CPUs.
//!
//! The stack ([`Linux`](super::Linux)) puts real-time tasks before all fair ones. So a fair class sees only
//! fair tasks, and has to be told when the task it had picked no longer runs ([`put_prev`](Fair::put_prev)).
//!
//! # Load balance
//!
//! - A CPU that would idle takes one waiting task from the CPU with the greatest load that has more than
//!   one task, near ones first (newidle balance): the one that has not run for the longest time.
//! - A CPU that idles already is kicked to do the same when a busy one has more than one task at its tick
//!   (nohz idle balance). It leaves a task that has run in the last 0.5 ms (`sched_migration_cost`), as one
//!   has that the same tick put aside; after two vain looks that does not count (`cache_nice_tries`). So
//!   one of two spinners goes to the idle CPU at the third tick, as measured on `vm-2` (13 to 15 ms).
//! - A busy CPU looks around every 16 ms times the CPUs that share its cache (`busy_factor`), less a
//!   tick, so that periods are not multiples of each other; and every second time a tick later, in place
//!   of the noise of real ticks: without it tasks that take turns by ticks would always be found the
//!   same way. It takes a task over if the other CPU has over 17 % more load (`imbalance_pct`), if the
//!   task is not more than the difference, and under the same condition. So three spinners on two CPUs take
//!   turns in sharing one.
//!
//! Simpler than Linux: loads are sums of weights, not averages over time; there is one level of domains; a
//! CPU that would idle takes tasks that have just run, too, and does so however short its idle times have
//! been; no task is pushed off while it runs (active balance), and capacities do not count.

use event::{Cpu, Nanos, Task};

use crate::{Attr, Cpus, Dequeue, Enqueue, Idleness};

/// A fair class. Calls come as those of a [`Class`](crate::Class), for fair tasks only, except `add`.
pub(super) trait Fair {
    fn set_cpus(&mut self, cpus: usize);

    /// A task begins, fair or not; tasks come in the order of their numbers.
    fn add(&mut self, task: Task, attr: &Attr);

    /// The task may be queued or running.
    fn set_attr(&mut self, task: Task, attr: &Attr, now: Nanos);

    fn enqueue(&mut self, cpu: Cpu, task: Task, why: Enqueue, now: Nanos);

    fn dequeue(&mut self, cpu: Cpu, task: Task, why: Dequeue, now: Nanos);

    /// The task that runs from now on. The task that ran until now is known from the last call, unless it was
    /// dequeued or put back since.
    fn pick(&mut self, cpu: Cpu, now: Nanos) -> Option<Task>;

    /// The picked task, if any, runs no longer, though it could.
    fn put_prev(&mut self, cpu: Cpu, now: Nanos);

    fn tick(&mut self, cpu: Cpu, running: Task, now: Nanos) -> bool;

    /// When `tick` should be called although no tick is due, because the picked task's slice is over.
    fn slice_ends(&self, cpu: Cpu, now: Nanos) -> Nanos {
        let _ = (cpu, now);
        Nanos::MAX
    }

    fn preempts(&mut self, cpu: Cpu, running: Task, woken: Task, now: Nanos) -> bool;

    fn yields(&mut self, cpu: Cpu, running: Task, now: Nanos);

    /// The CPU on which a sleeping task still competes, and where it has to wake up.
    fn competes_on(&self, task: Task) -> Option<Cpu> {
        let _ = task;
        None
    }

    /// The task, which sleeps, competes nowhere any longer: it is to become a real-time task, or the CPU
    /// goes away.
    fn forget(&mut self, task: Task, now: Nanos) {
        let _ = (task, now);
    }

    fn queued(&self, cpu: Cpu) -> usize;

    /// The sum of the weights of the tasks queued there.
    fn load(&self, cpu: Cpu) -> i64;

    /// Those that are queued there and do not sleep, with the one that runs.
    fn awake(&self, cpu: Cpu) -> impl Iterator<Item = Task>;

    /// The task that was picked there and not put back since.
    fn current(&self, cpu: Cpu) -> Option<Task>;

    /// A queued task as load balance sees it.
    fn seen(&self, task: Task) -> Waiting;

    /// Those that are queued there and do not run.
    fn waiting(&self, cpu: Cpu) -> impl Iterator<Item = Waiting> {
        let current = self.current(cpu);
        let waiting = self.awake(cpu).filter(move |&task| current != Some(task));
        waiting.map(|task| self.seen(task))
    }

    /// As [`Class::check`](crate::Class::check).
    fn check(&self) -> Result<(), String>;
}

/// A task that waits, as load balance sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) task: Task,
    pub(super) weight: i64,
    /// When it ran last; zero if it never did.
    pub(super) ran: Nanos,
}

/// How long a task's data is taken to stay in its CPU's cache.
const MIGRATION_COST: Nanos = Nanos::from_micros(500);
/// How long a busy CPU waits between two looks at others, per CPU that shares its cache.
const BUSY_INTERVAL: Nanos = Nanos::from_millis(16);

/// The number of vain looks after which a task that has just run is taken, too.
const NICE_TRIES: u32 = 2;

/// Why a CPU looks at others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    /// It would idle from now on.
    New,
    /// It idles, and a busy one has more than one task at its tick.
    Kicked,
    /// It is busy, and this is its tick.
    Busy,
}

/// When CPUs look at others.
#[derive(Debug)]
pub(super) struct Balance {
    tick: Nanos,
    /// Of each CPU while it is busy.
    busy: Vec<Looks>,
    /// Of each CPU while it idles.
    idle: Vec<Looks>,
}

/// A CPU's record of its looks at others.
#[derive(Clone, Copy, Debug, Default)]
struct Looks {
    /// No other one before.
    due: Nanos,
    /// How many there were.
    count: u64,
    /// How often in a row it has taken nothing.
    vain: u32,
}

impl Balance {
    pub(super) fn new(tick: Nanos) -> Balance {
        Balance {
            tick,
            busy: Vec::new(),
            idle: Vec::new(),
        }
    }

    pub(super) fn set_cpus(&mut self, cpus: usize) {
        self.busy = vec![Looks::default(); cpus];
        self.idle = vec![Looks::default(); cpus];
    }

    /// Begins a look if it is due, and says how many were in vain; `near`: how many CPUs share its cache.
    fn begin(&mut self, (cpu, why): (Cpu, Why), near: usize, now: Nanos) -> Option<u32> {
        let looks = match why {
            Why::Busy => &mut self.busy[cpu.index()],
            Why::Kicked => &mut self.idle[cpu.index()],
            Why::New => return Some(0),
        };
        if now < looks.due {
            return None;
        }
        looks.count += 1;
        let wait = match why {
            Why::Busy => {
                let later = Nanos(self.tick.0 * (looks.count % 2));
                Nanos(BUSY_INTERVAL.0 * near as u64) - self.tick + later
            }
            // Several busy CPUs may kick it at one tick.
            _ => Nanos(self.tick.0 / 2),
        };
        looks.due = now + wait;
        Some(looks.vain)
    }

    fn end(&mut self, (cpu, why): (Cpu, Why), found: bool) {
        let (busy, idle) = (&mut self.busy[cpu.index()], &mut self.idle[cpu.index()]);
        let looks = match why {
            Why::Busy => busy,
            Why::Kicked => idle,
            Why::New => {
                (busy.vain, idle.vain) = (0, 0);
                return;
            }
        };
        looks.vain = if found { 0 } else { looks.vain + 1 };
    }

    /// The task that this CPU should take over. `queued`: how many tasks of any class a CPU has.
    pub(super) fn pull(
        &mut self,
        fair: &impl Fair,
        to: (Cpu, Idleness),
        queued: impl Fn(Cpu) -> usize,
        cpus: &dyn Cpus,
        now: Nanos,
    ) -> Option<(Task, Cpu)> {
        let (cpu, idleness) = to;
        let why = match (idleness, cpus.current(cpu)) {
            (Idleness::Busy, _) => Why::Busy,
            (Idleness::New, Some(_)) => Why::New,
            (Idleness::New, None) => Why::Kicked,
        };
        let all = || (0..cpus.len() as u32).map(Cpu);
        let near = all().filter(|&other| cpus.share_cache(cpu, other)).count();
        let vain = self.begin((cpu, why), near, now)?;
        let here = fair.load(cpu);
        // A CPU's only task is about to run there.
        let crowded = all().filter(|&other| other != cpu && queued(other) > 1);
        let moves = |from: Cpu, waiting: &Waiting| {
            let excess = fair.load(from) - here;
            let worth = || fair.load(from) * 100 > here * 117 && waiting.weight <= excess;
            let never_ran = waiting.ran == Nanos::ZERO;
            let cold = || never_ran || now - waiting.ran >= MIGRATION_COST || vain >= NICE_TRIES;
            let goes = match why {
                Why::New => true,
                Why::Kicked => cold(),
                Why::Busy => worth() && cold(),
            };
            cpus.allows(waiting.task, cpu) && goes
        };
        let best_of = |from: Cpu| {
            let candidates = fair.waiting(from).filter(|waiting| moves(from, waiting));
            let best = candidates.min_by_key(|waiting| (waiting.ran, waiting.task));
            best.map(|waiting| (waiting.task, from))
        };
        let key = |(_, from): &(Task, Cpu)| {
            let distance = (from.0 + cpus.len() as u32 - cpu.0) % cpus.len() as u32;
            (!cpus.share_cache(cpu, *from), -fair.load(*from), distance)
        };
        let found = crowded.filter_map(best_of).min_by_key(key);
        self.end((cpu, why), found.is_some());
        found
    }
}
