//! `eevdf-6.6`, `eevdf-6.18` and `eevdf-6.18-hrtick`: earliest eligible virtual deadline first, Linux's
//! fair class since 6.6.
//!
//! Stoica and Abdel-Wahab, "Earliest Eligible Virtual Deadline First: A Flexible and Accurate Mechanism for
//! Proportional Share Resource Allocation" (1995), on a kernel that looks at ticks only. Each queue has an
//! average virtual time V, weighted. A task's *lag* is V minus its own virtual time: the time it is owed. A
//! task that is owed anything is *eligible*. Each has a *deadline*: the virtual time at which it will have
//! run for one slice. Of the eligible tasks the one with the earliest deadline runs; when it has reached its
//! deadline, it gets a new one, one slice later.
//!
//! - *The slice* is 0.70 ms (6.6: 0.75 ms), times 1 to 4 for 1 to 8 CPUs. From 6.12 on a task can ask
//!   for its own ([`Attr::slice`]), 0.1 to 100 ms. A shorter slice means an earlier deadline and an
//!   equal share.
//! - *Protection* (`RUN_TO_PARITY`): the picked task goes on although others become eligible. In 6.6 it does
//!   so until its deadline; in 6.18 until it has run for the shortest slice in its queue.
//! - *`PREEMPT_SHORT`* (6.12): a task that wakes up with a shorter slice than the running one's ignores that.
//! - *Placement* (`PLACE_LAG`): a task keeps its lag while it sleeps or moves, at most two slices or a tick
//!   of it. Since its arrival moves V, it is placed so that its lag is right afterwards. A new task begins
//!   with none, and with half a slice (`PLACE_DEADLINE_INITIAL`). From 6.12 on, a task that moves keeps its
//!   deadline, too (`PLACE_REL_DEADLINE`).
//! - *Delayed dequeue* (`DELAY_DEQUEUE`, 6.12): a task that goes to sleep while it is not eligible stays
//!   in the competition until it is, so that sleeping pays off no debt; it leaves when it would be
//!   picked. Nothing is owed to it then (`DELAY_ZERO`).
//! - *`HRTICK`* (off in most builds): while others wait, a timer interrupts the picked task when its
//!   protection is over. So while a task with a slice of 0.5 ms waits, all turns are that long.
//! - *A yield* moves the deadline one slice back (6.6), or (6.18: commit 79104becf42b "Forfeit vruntime
//!   on yield", of 6.19, in stable kernels since 6.12.63), if the task is eligible, takes the rest of
//!   its slice from it as if it had run. So a loop of yields has half of the CPU in 6.6, and yields once
//!   a slice in 6.18.
//!
//! Sources: the commit messages and `sched-eevdf.rst`; the numbers of the tests are measured on 6.18.44 with
//! 2 CPUs at 250 Hz. In 6.18 the lag that is kept is bound by the task's own slice; later kernels use the
//! longest in the queue (commit 6e3c0a4e1ad1). The bound of 6.18.44 was not looked at.
//!
//! Left out: groups, `PICK_BUDDY` (only `yield_to` sets that buddy), and the approximations of the
//! kernel's V, which is exact here.
//!
//! Where it is bad: slices are rounded up to ticks; with 250 Hz no slice below 4 ms changes how long stints
//! are. A task that wakes up waits for the end of the protection unless its slice is shorter, so latency goes
//! to the tasks that ask for it, and every task may. Lag is forgotten in sleep beyond two slices, so a task
//! that sleeps often and computes little gets less than CFS gave it. In 6.6 a loop of yields moves its
//! deadline away without bound, and waits long for it afterwards.

mod queue;
#[cfg(test)]
mod tests;
mod version;

use event::{Cpu, Nanos, Task};

use super::fair::{Fair, Waiting};
use super::weights::{Weight, scaled};
use crate::{Attr, Dequeue, Discipline, Enqueue, Setting};
use queue::{Entity, Queue, QueuePlace};
use version::{Protection, Version, Yielding};
pub(super) use version::{V6_6, V6_18, V6_18_HRTICK};

const SLICE_MIN: Nanos = Nanos::from_micros(100);
const SLICE_MAX: Nanos = Nanos::from_millis(100);
/// The least time after which `HRTICK`'s timer rings.
const HRTICK_MIN: Nanos = Nanos::from_micros(10);

/// The class.
#[derive(Debug)]
pub(super) struct Eevdf {
    version: Version,
    base_slice: Nanos,
    tick: Nanos,
    queues: Vec<Queue>,
    /// By task.
    entities: Vec<Entity>,
}

impl Eevdf {
    pub(super) fn new(version: Version, setting: Setting) -> Eevdf {
        Eevdf {
            version,
            base_slice: scaled(version.base_slice, setting.cpus),
            tick: setting.tick,
            queues: Vec::new(),
            entities: Vec::new(),
        }
    }

    fn slice_of(&self, attr: &Attr) -> Nanos {
        match attr.slice {
            Some(slice) if self.version.since_6_12 => slice.clamp(SLICE_MIN, SLICE_MAX),
            _ => self.base_slice,
        }
    }

    /// Accounts the running task's time up to now. If it has reached its deadline, it gets a new one.
    fn update(&mut self, cpu: Cpu, now: Nanos) {
        let queue = &mut self.queues[cpu.index()];
        let passed = now - queue.since;
        queue.since = now;
        let Some(curr) = queue.curr.filter(|_| passed > Nanos::ZERO) else {
            return;
        };
        let entity = &mut self.entities[curr.index()];
        entity.ran = now;
        queue.advance(entity, entity.weight.virtual_time(passed));
        let is_over = entity.v >= entity.deadline;
        if is_over {
            queue.renew(entity, self.tick);
        }
        let unprotected = self.version.protection == Protection::ShortestSlice
            && !is_protected(self.version.protection, entity);
        let alone = queue.tasks.len() == 1;
        queue.resched |= !alone && (is_over || unprotected);
    }

    /// Puts the task into the queue. Its lag is right afterwards.
    fn join(&mut self, cpu: Cpu, task: Task, is_new: bool) {
        let entity = &mut self.entities[task.index()];
        entity.cpu = cpu;
        self.queues[cpu.index()].insert(entity, task, is_new);
        let bound = self.bound(task);
        let queue = &self.queues[cpu.index()];
        let entity = &mut self.entities[task.index()];
        entity.bear(queue, bound);
    }

    /// Takes the task out of its queue, with its lag.
    fn leave(&mut self, task: Task) {
        let entity = &mut self.entities[task.index()];
        self.queues[entity.cpu.index()].remove(entity, task);
        self.clamp_lag(task);
    }

    fn clamp_lag(&mut self, task: Task) {
        let entity = &mut self.entities[task.index()];
        let most = self.tick.max(Nanos(2 * entity.slice.0));
        let most = entity.weight.virtual_time(most);
        entity.lag = entity.lag.clamp(-most, most);
    }

    /// A task that sleeps competes no longer. Nothing is owed to it.
    fn finish_delayed(&mut self, task: Task) {
        self.leave(task);
        let entity = &mut self.entities[task.index()];
        self.queues[entity.cpu.index()].delayed -= 1;
        entity.place = QueuePlace::Out;
        entity.lag = entity.lag.min(0);
    }

    /// A task that sleeps and competes wakes up where it does.
    fn requeue_delayed(&mut self, cpu: Cpu, task: Task) {
        let entity = &mut self.entities[task.index()];
        entity.place = QueuePlace::Queued;
        self.queues[cpu.index()].delayed -= 1;
        if self.queues[cpu.index()].lag(entity) > 0 {
            self.leave(task);
            self.entities[task.index()].lag = 0;
            self.join(cpu, task, false);
        }
    }

    /// The task that should run: the earliest deadline among the eligible, unless the running one is
    /// protected.
    fn choose(&self, cpu: Cpu, protect: bool) -> Option<Task> {
        let queue = &self.queues[cpu.index()];
        if queue.tasks.len() == 1 {
            return queue.tasks.first().copied();
        }
        let entity = |task: Task| &self.entities[task.index()];
        let curr = queue.curr.filter(|&curr| queue.is_eligible(entity(curr)));
        if let Some(curr) = curr
            && protect
            && is_protected(self.version.protection, entity(curr))
        {
            return Some(curr);
        }
        let all = queue.tasks.iter().copied();
        let eligible = all.filter(|&task| queue.is_eligible(entity(task)));
        // Among equals, the running task goes last.
        eligible.min_by_key(|&task| {
            let entity = entity(task);
            (entity.deadline, queue.curr == Some(task), entity.turn)
        })
    }

    /// The picked task is safe from others for a while.
    fn protect(&mut self, cpu: Cpu, picked: Task) {
        let shortest = self.shortest_slice(cpu);
        let entity = &mut self.entities[picked.index()];
        entity.protected = entity.deadline;
        if self.version.protection == Protection::ShortestSlice && shortest < entity.slice {
            entity.shorten_protection(shortest);
        }
    }

    fn shortest_slice(&self, cpu: Cpu) -> Nanos {
        let tasks = self.queues[cpu.index()].tasks.iter();
        let slices = tasks.map(|task| self.entities[task.index()].slice);
        slices.min().unwrap_or(self.base_slice)
    }

    /// How far from zero the task's lag may be, in virtual time, in a queue that no task joins or leaves.
    fn bound(&self, task: Task) -> i64 {
        let entity = &self.entities[task.index()];
        let slice = entity.slice.max(entity.request);
        entity.weight.virtual_time(slice + self.tick)
    }
}

fn is_protected(protection: Protection, entity: &Entity) -> bool {
    match protection {
        // A new deadline, or one that a yield has moved, is another one.
        Protection::UntilDeadline => entity.protected == entity.deadline,
        Protection::ShortestSlice => entity.v < entity.protected,
    }
}

impl Fair for Eevdf {
    fn set_cpus(&mut self, cpus: usize) {
        self.queues.resize_with(cpus, Queue::default);
    }

    fn add(&mut self, _: Task, attr: &Attr) {
        let slice = self.slice_of(attr);
        let entity = Entity::new(Weight::of(attr), attr.discipline, slice);
        self.entities.push(entity);
    }

    /// Another weight leaves the time it is owed, in real time, as it is. Another slice counts from the next
    /// deadline on.
    fn set_attr(&mut self, task: Task, attr: &Attr, now: Nanos) {
        let slice = self.slice_of(attr);
        let (cpu, place) = {
            let entity = &self.entities[task.index()];
            (entity.cpu, entity.place)
        };
        let weight = Weight::of(attr);
        let entity = &mut self.entities[task.index()];
        entity.discipline = attr.discipline;
        if (entity.weight, entity.slice) == (weight, slice) {
            return;
        }
        let queued = place != QueuePlace::Out;
        if queued {
            self.update(cpu, now);
            self.leave(task);
            self.entities[task.index()].make_relative();
        }
        let entity = &mut self.entities[task.index()];
        entity.reweigh(weight);
        entity.slice = slice;
        if queued {
            self.join(cpu, task, false);
        }
    }

    fn enqueue(&mut self, cpu: Cpu, task: Task, why: Enqueue, now: Nanos) {
        self.update(cpu, now);
        let entity = &self.entities[task.index()];
        if entity.place == QueuePlace::Delayed {
            if entity.cpu == cpu {
                return self.requeue_delayed(cpu, task);
            }
            self.forget(task, now);
        }
        let entity = &mut self.entities[task.index()];
        entity.place = QueuePlace::Queued;
        entity.is_new = why == Enqueue::New;
        self.join(cpu, task, why == Enqueue::New);
        // A task that is moved here may preempt as if it woke up; the kernel around asks at wake-ups only.
        let curr = self.queues[cpu.index()].curr;
        if let (Enqueue::Move, Some(curr)) = (why, curr) {
            self.preempts(cpu, curr, task, now);
        }
    }

    fn dequeue(&mut self, cpu: Cpu, task: Task, why: Dequeue, now: Nanos) {
        self.update(cpu, now);
        let queue = &mut self.queues[cpu.index()];
        let entity = &mut self.entities[task.index()];
        queue.curr.take_if(|curr| *curr == task);
        let stays = self.version.since_6_12 && why == Dequeue::Sleep && !queue.is_eligible(entity);
        if stays {
            queue.put_back(entity);
            queue.delayed += 1;
            entity.place = QueuePlace::Delayed;
            return;
        }
        self.leave(task);
        let entity = &mut self.entities[task.index()];
        entity.place = QueuePlace::Out;
        if why == Dequeue::Move && self.version.since_6_12 {
            entity.make_relative();
        }
    }

    fn pick(&mut self, cpu: Cpu, now: Nanos) -> Option<Task> {
        self.update(cpu, now);
        self.queues[cpu.index()].resched = false;
        let best = loop {
            let best = self.choose(cpu, true)?;
            if self.entities[best.index()].place != QueuePlace::Delayed {
                break best;
            }
            self.finish_delayed(best);
        };
        if self.queues[cpu.index()].curr != Some(best) {
            self.put_prev(cpu, now);
            self.queues[cpu.index()].curr = Some(best);
            self.entities[best.index()].is_new = false;
            self.protect(cpu, best);
        }
        Some(best)
    }

    fn put_prev(&mut self, cpu: Cpu, now: Nanos) {
        self.update(cpu, now);
        let queue = &mut self.queues[cpu.index()];
        if let Some(prev) = queue.curr.take() {
            queue.put_back(&mut self.entities[prev.index()]);
        }
    }

    fn tick(&mut self, cpu: Cpu, running: Task, now: Nanos) -> bool {
        self.update(cpu, now);
        let queue = &self.queues[cpu.index()];
        queue.curr != Some(running) || queue.resched
    }

    fn slice_ends(&self, cpu: Cpu, now: Nanos) -> Nanos {
        let queue = &self.queues[cpu.index()];
        let Some(curr) = queue.curr else {
            return Nanos::MAX;
        };
        if !self.version.hrtick || queue.tasks.len() < 2 {
            return Nanos::MAX;
        }
        let entity = &self.entities[curr.index()];
        let v = entity.v + entity.weight.virtual_time(now - queue.since);
        // Behind its protection it may be the best one all the same, until its deadline.
        let left = match entity.weight.real_time(entity.protected - v) {
            Nanos::ZERO => entity.weight.real_time(entity.deadline - v),
            left => left,
        };
        now + left.max(HRTICK_MIN)
    }

    fn preempts(&mut self, cpu: Cpu, running: Task, woken: Task, now: Nanos) -> bool {
        self.update(cpu, now);
        let queue = &self.queues[cpu.index()];
        if queue.curr != Some(running) || queue.resched {
            return true;
        }
        let (curr, other) = (
            &self.entities[running.index()],
            &self.entities[woken.index()],
        );
        let idle = (
            curr.discipline == Discipline::Idle,
            other.discipline == Discipline::Idle,
        );
        let newer = self.version.since_6_12;
        let impatient = newer && other.slice < curr.slice && queue.is_eligible(other);
        let preempts = match idle {
            (true, false) => true,
            _ if other.discipline != Discipline::Fair || newer && other.is_new => false,
            _ => self.choose(cpu, !impatient) == Some(woken),
        };
        let shortest = self.shortest_slice(cpu);
        let curr = &mut self.entities[running.index()];
        if preempts {
            if impatient || idle.0 {
                curr.protected = curr.protected.min(curr.v);
            }
            self.queues[cpu.index()].resched = true;
        } else if impatient {
            curr.shorten_protection(shortest);
        }
        preempts
    }

    fn yields(&mut self, cpu: Cpu, running: Task, now: Nanos) {
        self.update(cpu, now);
        let queue = &mut self.queues[cpu.index()];
        if queue.tasks.len() == 1 || queue.curr != Some(running) {
            return;
        }
        let entity = &mut self.entities[running.index()];
        match self.version.yielding {
            Yielding::Postpones => queue.postpone(entity),
            Yielding::Forfeits if queue.is_eligible(entity) => {
                queue.advance(entity, entity.deadline - entity.v);
                queue.renew(entity, self.tick);
            }
            Yielding::Forfeits => {}
        }
    }

    fn competes_on(&self, task: Task) -> Option<Cpu> {
        let entity = &self.entities[task.index()];
        (entity.place == QueuePlace::Delayed).then_some(entity.cpu)
    }

    fn forget(&mut self, task: Task, now: Nanos) {
        let entity = &self.entities[task.index()];
        if entity.place == QueuePlace::Delayed {
            self.update(entity.cpu, now);
            self.finish_delayed(task);
        }
    }

    fn queued(&self, cpu: Cpu) -> usize {
        let queue = &self.queues[cpu.index()];
        queue.tasks.len() - queue.delayed
    }

    fn load(&self, cpu: Cpu) -> i64 {
        let queue = &self.queues[cpu.index()];
        match queue.delayed {
            0 => queue.weight,
            _ => self
                .awake(cpu)
                .map(|task| self.entities[task.index()].weight.value())
                .sum(),
        }
    }

    fn awake(&self, cpu: Cpu) -> impl Iterator<Item = Task> {
        let tasks = self.queues[cpu.index()].tasks.iter().copied();
        tasks.filter(|task| self.entities[task.index()].place == QueuePlace::Queued)
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

    /// Sums are right, some task is eligible, and lag is bounded. In virtual time, where no task joins or
    /// leaves:
    ///
    /// - lag ≥ −(slice + tick). No task is picked that owes anything. The picked task runs for a slice at
    ///   most until it is over, then until the next tick at most, and V does not go back meanwhile.
    /// - lag ≤ slice + tick + the excess of the other tasks, spread over all: Σ(slice + 2 ticks) / Σw. When a
    ///   task is owed its whole slice, V is at its deadline, and from then on only tasks with earlier
    ///   deadlines are picked before it. Those are owed, too. The time that all of them are owed is the
    ///   excess that others have had, by the first bound, since lags add up to zero; and each has a tick too
    ///   much when it stops. The paper's bound is one slice; the rest is the price of looking at ticks only,
    ///   and it is heavy tasks among many light ones that pay it.
    ///
    /// A task that joins or leaves with a lag moves V for all others. So the lower bound is lower by the
    /// distance that V was moved back meanwhile. The upper one is only checked where no task did so. (It
    /// follows from the lower bounds of all that no task is owed more than the excess of the others.)
    ///
    /// Nothing is bounded in a queue where a yield has postponed a deadline: the task that yielded runs until
    /// it is reached, however far off. Nor is it without ticks: the running task is asked at wake-ups only.
    fn check(&self) -> Result<(), String> {
        for (cpu, queue) in self.queues.iter().enumerate() {
            let entities = queue.tasks.iter().map(|task| &self.entities[task.index()]);
            queue
                .check(entities)
                .map_err(|what| format!("CPU {cpu}: {what}"))?;
            if queue.loose || self.tick == Nanos::ZERO {
                continue;
            }
            let ahead = queue.tasks.iter().map(|task| {
                let entity = &self.entities[task.index()];
                entity.slice.max(entity.request).0 + 2 * self.tick.0
            });
            let spread = 1024 * ahead.sum::<u64>() as i64 / queue.weight.max(1);
            for &task in &queue.tasks {
                let entity = &self.entities[task.index()];
                entity
                    .check_lag(queue, self.bound(task), spread)
                    .map_err(|what| format!("CPU {cpu}: task {} {what}", task.0))?;
            }
        }
        Ok(())
    }
}
