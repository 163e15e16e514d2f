//! `cfs-4.12`: the Completely Fair Scheduler, as in Linux 4.12.
//!
//! The task with the least virtual time runs, for a share of a period: 6 ms if there are at most 8 tasks,
//! else 0.75 ms for each (`sched_latency`, `sched_min_granularity`), divided by weight. It is preempted at a
//! tick when that is used up, or when it is further ahead than that of the one with the least virtual
//! time, but not before 0.75 ms; and at a wake-up by a task that is more than 1 ms behind it
//! (`sched_wakeup_granularity`, in the virtual time of the task that wakes up). All three grow with the
//! number of CPUs: four times as long from 8 CPUs on.
//!
//! - *Sleepers* get up to half a period ahead of the others and no more (`GENTLE_FAIR_SLEEPERS`): the virtual
//!   time of a task that wakes up is at least the queue's least, which never goes back, minus that.
//! - *New tasks* begin a share of their own behind (`START_DEBIT`).
//! - *A yield* asks only to be skipped once: the second one in line runs if it is at most the wake-up
//!   granularity ahead, else the task that yields goes on. It gives nothing away. So a loop of yields
//!   gets its full share of the CPU: the observation of source 002, "To sched_yield() Or Not To
//!   sched_yield()?".
//! - *Buddies*: a task that preempts at a wake-up is preferred at the pick that follows, and with 8 tasks or
//!   more the preempted task is at the next ones (`LAST_BUDDY`), unless that is unfair by more than the
//!   granularity.
//!
//! Sources: the kernel's `sched-design-CFS.rst`, `sched(7)`, the names and values of
//! `/proc/sys/kernel/sched_*` in that release; the fit to source 002 is a test. Deviations: shares of a
//! period are exact quotients, the kernel's are off by up to one in 2^31. Left out: groups, and the
//! preferences that depend on them.
//!
//! Where it is bad: a task that wakes up cannot say that it is in a hurry; it waits for up to a whole period
//! (24 ms on 8 CPUs) if it has had its share. Sleepers are paid for sleeping: a task that sleeps half of the
//! time gets in at once, always, at the expense of tasks that compute. Yields are expensive noise. With many
//! tasks, the period grows and so does every task's wait.

use event::{Cpu, Nanos, Task};

use super::fair::{Fair, Waiting};
use super::weights::{Weight, scaled};
use crate::{Attr, Dequeue, Discipline, Enqueue, Setting};

/// How many tasks share a period before it grows (`sched_nr_latency`).
const NR_LATENCY: usize = 8;

/// The class.
#[derive(Debug)]
pub(super) struct Cfs {
    tunables: Tunables,
    queues: Vec<CfsQueue>,
    /// By task.
    entities: Vec<CfsEntity>,
}

#[derive(Debug)]
struct Tunables {
    latency: Nanos,
    min_granularity: Nanos,
    wakeup_granularity: Nanos,
}

#[derive(Debug)]
struct CfsEntity {
    weight: Weight,
    discipline: Discipline,
    /// Virtual time.
    v: i64,
    /// Whether `v` is relative to the least of a queue; else it is that of the queue it is in, or was in
    /// when it went to sleep.
    relative: bool,
    cpu: Cpu,
    queued: bool,
    /// When it got into its place: among equals the first goes first.
    turn: u64,
    /// When it ran last.
    ran: Nanos,
    /// How long it has run since it was picked.
    stint: Nanos,
}

#[derive(Debug, Default)]
struct CfsQueue {
    /// The running one included, in no meaningful order.
    tasks: Vec<Task>,
    /// The picked task.
    curr: Option<Task>,
    /// Up to when its time has been accounted.
    since: Nanos,
    /// The sum of the weights.
    weight: i64,
    /// The least virtual time there was; never goes back.
    min_v: i64,
    turns: u64,
    /// The task that yielded, the one that preempts, the one that was preempted.
    skip: Option<Task>,
    next: Option<Task>,
    last: Option<Task>,
}

impl Cfs {
    pub(super) fn new(setting: Setting) -> Cfs {
        let scaled = |micros| scaled(Nanos::from_micros(micros), setting.cpus);
        Cfs {
            tunables: Tunables {
                latency: scaled(6_000),
                min_granularity: scaled(750),
                wakeup_granularity: scaled(1_000),
            },
            queues: Vec::new(),
            entities: Vec::new(),
        }
    }

    /// Accounts the running task's time up to now.
    fn update(&mut self, cpu: Cpu, now: Nanos) {
        let queue = &mut self.queues[cpu.index()];
        let passed = now - queue.since;
        queue.since = now;
        if let Some(curr) = queue.curr
            && passed > Nanos::ZERO
        {
            let entity = &mut self.entities[curr.index()];
            entity.v += entity.weight.virtual_time(passed);
            entity.stint += passed;
            entity.ran = now;
            self.update_min(cpu);
        }
    }

    fn update_min(&mut self, cpu: Cpu) {
        let queue = &mut self.queues[cpu.index()];
        let least = queue.tasks.iter().map(|task| self.entities[task.index()].v);
        if let Some(least) = least.min() {
            queue.min_v = queue.min_v.max(least);
        }
    }

    /// The slice of the task: its share of a period.
    fn share(&self, cpu: Cpu, task: Task) -> Nanos {
        let queue = &self.queues[cpu.index()];
        let entity = &self.entities[task.index()];
        // A task that is about to be queued counts already.
        let more = usize::from(!entity.queued);
        let count = queue.tasks.len() + more;
        let weight = entity.weight.value();
        let sum = queue.weight + weight * more as i64;
        let period = if count > NR_LATENCY {
            self.tunables.min_granularity.0 * count as u64
        } else {
            self.tunables.latency.0
        };
        Nanos((u128::from(period) * weight as u128 / sum as u128) as u64)
    }

    fn insert(&mut self, cpu: Cpu, task: Task) {
        let queue = &mut self.queues[cpu.index()];
        let entity = &mut self.entities[task.index()];
        queue.turns += 1;
        entity.turn = queue.turns;
        entity.queued = true;
        entity.cpu = cpu;
        queue.weight += entity.weight.value();
        queue.tasks.push(task);
    }

    /// The task leaves its queue behind, but keeps how far it is ahead of it.
    fn make_relative(&mut self, task: Task) {
        let entity = &mut self.entities[task.index()];
        if !entity.relative {
            entity.v -= self.queues[entity.cpu.index()].min_v;
            entity.relative = true;
        }
    }

    /// How far behind the others a sleeper may begin.
    fn credit(&self) -> i64 {
        (self.tunables.latency.0 / 2) as i64
    }

    fn clear_buddies(&mut self, cpu: Cpu, task: Task) {
        let queue = &mut self.queues[cpu.index()];
        for buddy in [&mut queue.skip, &mut queue.next, &mut queue.last] {
            buddy.take_if(|buddy| *buddy == task);
        }
    }

    /// Whether `task` is so far ahead of `behind` that it must not run instead.
    fn is_unfair(&self, task: Task, behind: Task) -> bool {
        let (task, behind) = (&self.entities[task.index()], &self.entities[behind.index()]);
        let granularity = self.tunables.wakeup_granularity;
        task.v - behind.v > behind.weight.virtual_time(granularity)
    }

    /// The task that should run, by virtual time and buddies.
    fn choose(&self, cpu: Cpu) -> Option<Task> {
        let queue = &self.queues[cpu.index()];
        // Among equals, the running task goes last.
        let key = |task: &Task| {
            let entity = &self.entities[task.index()];
            (entity.v, queue.curr == Some(*task), entity.turn)
        };
        let first = *queue.tasks.iter().min_by_key(|&task| key(task))?;
        let mut best = first;
        if queue.skip == Some(first) {
            let others = queue.tasks.iter().filter(|&&task| task != first);
            let second = others.min_by_key(|&task| key(task));
            best = match second {
                Some(&second) if !self.is_unfair(second, first) => second,
                _ => first,
            };
        }
        for buddy in [queue.last, queue.next].into_iter().flatten() {
            if !self.is_unfair(buddy, first) {
                best = buddy;
            }
        }
        Some(best)
    }
}

impl Fair for Cfs {
    fn set_cpus(&mut self, cpus: usize) {
        self.queues.resize_with(cpus, CfsQueue::default);
    }

    fn add(&mut self, _: Task, attr: &Attr) {
        self.entities.push(CfsEntity {
            weight: Weight::of(attr),
            discipline: attr.discipline,
            v: 0,
            relative: true,
            cpu: Cpu(0),
            queued: false,
            turn: 0,
            ran: Nanos::ZERO,
            stint: Nanos::ZERO,
        });
    }

    fn set_attr(&mut self, task: Task, attr: &Attr, now: Nanos) {
        let cpu = self.entities[task.index()].cpu;
        self.update(cpu, now);
        let entity = &mut self.entities[task.index()];
        let before = entity.weight.value();
        entity.weight = Weight::of(attr);
        entity.discipline = attr.discipline;
        if entity.queued {
            self.queues[cpu.index()].weight += entity.weight.value() - before;
        }
    }

    fn enqueue(&mut self, cpu: Cpu, task: Task, why: Enqueue, now: Nanos) {
        self.update(cpu, now);
        self.make_relative(task);
        let min_v = self.queues[cpu.index()].min_v;
        let share = self.share(cpu, task);
        let credit = self.credit();
        let entity = &mut self.entities[task.index()];
        entity.relative = false;
        entity.v = min_v
            + match why {
                Enqueue::Move => entity.v,
                Enqueue::Wake => entity.v.max(-credit),
                Enqueue::New => entity.weight.virtual_time(share),
            };
        self.insert(cpu, task);
    }

    fn dequeue(&mut self, cpu: Cpu, task: Task, why: Dequeue, now: Nanos) {
        self.update(cpu, now);
        self.clear_buddies(cpu, task);
        if why == Dequeue::Move {
            self.make_relative(task);
        }
        let queue = &mut self.queues[cpu.index()];
        let entity = &mut self.entities[task.index()];
        queue.tasks.retain(|&other| other != task);
        queue.weight -= entity.weight.value();
        queue.curr.take_if(|curr| *curr == task);
        entity.queued = false;
        self.update_min(cpu);
    }

    fn pick(&mut self, cpu: Cpu, now: Nanos) -> Option<Task> {
        self.update(cpu, now);
        let best = self.choose(cpu)?;
        self.clear_buddies(cpu, best);
        if self.queues[cpu.index()].curr != Some(best) {
            self.put_prev(cpu, now);
            self.queues[cpu.index()].curr = Some(best);
            self.entities[best.index()].stint = Nanos::ZERO;
        }
        Some(best)
    }

    fn put_prev(&mut self, cpu: Cpu, now: Nanos) {
        self.update(cpu, now);
        let queue = &mut self.queues[cpu.index()];
        if let Some(prev) = queue.curr.take() {
            queue.turns += 1;
            self.entities[prev.index()].turn = queue.turns;
        }
    }

    fn tick(&mut self, cpu: Cpu, running: Task, now: Nanos) -> bool {
        self.update(cpu, now);
        let queue = &self.queues[cpu.index()];
        if queue.curr != Some(running) {
            return true;
        }
        let entity = &self.entities[running.index()];
        let others = queue.tasks.iter().filter(|&&task| task != running);
        let Some(least) = others.map(|task| self.entities[task.index()].v).min() else {
            return false;
        };
        let share = self.share(cpu, running);
        let is_over = entity.stint > share;
        let is_ahead =
            entity.stint >= self.tunables.min_granularity && entity.v - least > share.0 as i64;
        if is_over {
            // Buddies must not bring it back.
            self.clear_buddies(cpu, running);
        }
        is_over || is_ahead
    }

    fn preempts(&mut self, cpu: Cpu, running: Task, woken: Task, now: Nanos) -> bool {
        self.update(cpu, now);
        if self.queues[cpu.index()].curr != Some(running) {
            return true;
        }
        let discipline = |task: Task| self.entities[task.index()].discipline;
        let preempts = match (discipline(running), discipline(woken)) {
            (Discipline::Idle, Discipline::Fair | Discipline::Batch) => true,
            (_, Discipline::Fair) => self.is_unfair(running, woken),
            _ => false,
        };
        let queue = &mut self.queues[cpu.index()];
        if preempts {
            queue.next = Some(woken);
            if queue.tasks.len() >= NR_LATENCY {
                queue.last = Some(running);
            }
        }
        preempts
    }

    fn yields(&mut self, cpu: Cpu, running: Task, now: Nanos) {
        if self.queued(cpu) > 1 {
            self.update(cpu, now);
            self.clear_buddies(cpu, running);
            self.queues[cpu.index()].skip = Some(running);
        }
    }

    fn forget(&mut self, task: Task, _: Nanos) {
        self.make_relative(task);
        let credit = self.credit();
        let entity = &mut self.entities[task.index()];
        entity.v = entity.v.max(-credit);
    }

    fn queued(&self, cpu: Cpu) -> usize {
        self.queues[cpu.index()].tasks.len()
    }

    fn load(&self, cpu: Cpu) -> i64 {
        self.queues[cpu.index()].weight
    }

    fn awake(&self, cpu: Cpu) -> impl Iterator<Item = Task> {
        self.queues[cpu.index()].tasks.iter().copied()
    }

    fn current(&self, cpu: Cpu) -> Option<Task> {
        self.queues[cpu.index()].curr
    }

    fn seen(&self, task: Task) -> Waiting {
        let entity = &self.entities[task.index()];
        Waiting {
            task,
            weight: entity.weight.value(),
            ran: entity.ran,
        }
    }

    /// No task is further behind the queue's least virtual time than sleepers may be, and the sums are right.
    fn check(&self) -> Result<(), String> {
        for (cpu, queue) in self.queues.iter().enumerate() {
            let entity = |task: &Task| &self.entities[task.index()];
            let weight: i64 = queue
                .tasks
                .iter()
                .map(|task| entity(task).weight.value())
                .sum();
            if weight != queue.weight {
                return Err(format!(
                    "CPU {cpu}: weights of {weight} count as {}",
                    queue.weight
                ));
            }
            let first = queue.tasks.iter().min_by_key(|task| entity(task).v);
            if let Some(task) = first
                && queue.min_v - entity(task).v > self.credit()
            {
                let behind = queue.min_v - entity(task).v;
                return Err(format!(
                    "CPU {cpu}: task {} is {behind} ns behind all",
                    task.0
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: Cpu = Cpu(0);

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// A class with `tasks` spinners on one of 8 CPUs, with 2 ms of virtual time between each two, the first
    /// one ahead of all others.
    fn class(tasks: u32) -> Cfs {
        let mut class = Cfs::new(Setting {
            cpus: 8,
            tick: ms(4),
            seed: 0,
        });
        class.set_cpus(1);
        for task in 0..tasks {
            class.add(Task(task), &Attr::default());
            class.enqueue(CPU, Task(task), Enqueue::Move, Nanos::ZERO);
        }
        for task in 0..tasks {
            class.entities[task as usize].v = ms(2 * u64::from(tasks - task)).0 as i64;
        }
        class
    }

    /// Goal: a task that preempts at a wake-up runs, although another one has a little less; not if that is
    /// unfair. Method: three tasks, one of which wakes up.
    #[test]
    fn who_preempts_is_preferred() {
        for (ahead, expected) in [(ms(2), Task(3)), (ms(5), Task(2))] {
            let mut class = class(3);
            class.add(Task(3), &Attr::default());
            class.queues[0].curr = Some(Task(0));
            class.entities[0].v = ms(20).0 as i64;
            class.enqueue(CPU, Task(3), Enqueue::Move, Nanos::ZERO);
            class.entities[3].v = class.entities[2].v + ahead.0 as i64;
            assert!(class.preempts(CPU, Task(0), Task(3), Nanos::ZERO));
            assert_eq!(class.pick(CPU, Nanos::ZERO), Some(expected));
        }
    }

    /// Goal: with 8 tasks or more, the task that a wake-up preempted comes next; with fewer, the one with the
    /// least virtual time. Method: the second pick.
    #[test]
    fn whom_it_preempted_comes_next() {
        for (tasks, expected) in [(6, Task(5)), (7, Task(0))] {
            let mut class = class(tasks);
            class.add(Task(tasks), &Attr::default());
            let least = class.entities[tasks as usize - 1].v;
            class.queues[0].curr = Some(Task(0));
            class.entities[0].v = least + ms(3).0 as i64;
            class.enqueue(CPU, Task(tasks), Enqueue::Move, Nanos::ZERO);
            class.entities[tasks as usize].v = least - ms(3).0 as i64;
            assert!(class.preempts(CPU, Task(0), Task(tasks), Nanos::ZERO));
            assert_eq!(class.pick(CPU, Nanos::ZERO), Some(Task(tasks)));
            class.dequeue(CPU, Task(tasks), Dequeue::Sleep, Nanos::ZERO);
            assert_eq!(class.pick(CPU, Nanos::ZERO), Some(expected));
        }
    }
}
