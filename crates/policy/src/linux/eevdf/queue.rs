//! Virtual time in one queue: V, lag, eligibility, and the effect of arrivals and departures on them.
//!
//! V is the average of the virtual times, weighted: `sum / weight`. It goes on by itself when a task runs.
//!
//! # What moves V
//!
//! A task that joins with a lag other than zero, or leaves with one, moves V, and with it the lag of every
//! other task, by the same amount. That is no fault of the policy, and a check of lag must leave room for it:
//! the queue sums up all moves back, and counts all arrivals and departures. A task marks the sum whenever it
//! is owed something while it runs: later moves widen its lower bound. It marks the count whenever it owes:
//! its upper bound is checked while nothing has been added since.
//!
//! Invariant: `sum` and `weight` are those of `tasks`.

use event::{Nanos, Task};

use crate::Discipline;
use crate::linux::weights::Weight;

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueuePlace {
    /// In no queue.
    Out,
    Queued,
    /// It sleeps, and competes until it is eligible.
    Delayed,
}

/// A task's state.
#[derive(Debug)]
pub(super) struct Entity {
    pub(super) weight: Weight,
    pub(super) discipline: Discipline,
    pub(super) slice: Nanos,
    /// The slice its deadline was made with; or an earlier, longer one, if its lag comes from there and is
    /// beyond that slice.
    pub(super) request: Nanos,
    pub(super) place: QueuePlace,
    /// Whose queue it is in, or was in last.
    pub(super) cpu: event::Cpu,
    /// It has not run yet.
    pub(super) is_new: bool,
    /// Virtual time; only means something in a queue.
    pub(super) v: i64,
    pub(super) deadline: i64,
    /// Whether the deadline is relative to `v`, and is kept when it joins a queue.
    relative: bool,
    /// Yields have moved the deadline.
    postponed: bool,
    /// The running task is safe from others until this virtual time.
    pub(super) protected: i64,
    /// Its lag, while it is in no queue.
    pub(super) lag: i64,
    /// When it got into its place: among equals the first goes first.
    pub(super) turn: u64,
    /// When it ran last.
    pub(super) ran: Nanos,
    /// The queue's sum of moves back when something was last owed to it while it ran.
    back: i64,
    /// The queue's count of changes when it last owed something.
    changes: u64,
    /// By how much it was owed more than its bound when it joined, and has been since.
    excess: i64,
}

/// The tasks of a CPU.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The running one and those that sleep and compete included, in no meaningful order.
    pub(super) tasks: Vec<Task>,
    /// The picked task.
    pub(super) curr: Option<Task>,
    /// Up to when its time has been accounted.
    pub(super) since: Nanos,
    /// It should go on no longer than necessary.
    pub(super) resched: bool,
    /// A yield has postponed a deadline here since the queue was empty: lag is not bounded.
    pub(super) loose: bool,
    /// How many sleep and compete.
    pub(super) delayed: usize,
    /// The sum of the weights.
    pub(super) weight: i64,
    /// The sum of weight · v.
    sum: i128,
    /// V when the last task left.
    last: i64,
    turns: u64,
    /// By how much arrivals and departures have moved V back, in all.
    back: i64,
    /// How many there were.
    changes: u64,
}

impl Entity {
    pub(super) fn new(weight: Weight, discipline: Discipline, slice: Nanos) -> Entity {
        Entity {
            weight,
            discipline,
            slice,
            request: slice,
            place: QueuePlace::Out,
            cpu: event::Cpu(0),
            is_new: true,
            v: 0,
            deadline: 0,
            relative: false,
            postponed: false,
            protected: 0,
            lag: 0,
            turn: 0,
            ran: Nanos::ZERO,
            back: 0,
            changes: 0,
            excess: 0,
        }
    }

    /// Safe for this long at most, from here.
    pub(super) fn shorten_protection(&mut self, to: Nanos) {
        self.protected = self.protected.min(self.v + self.weight.virtual_time(to));
    }

    /// It left its queue and keeps its deadline.
    pub(super) fn make_relative(&mut self) {
        self.deadline -= self.v;
        self.protected -= self.v;
        self.relative = true;
    }

    /// Another weight; the time it is owed in real time stays. It is in no queue.
    pub(super) fn reweigh(&mut self, weight: Weight) {
        let (before, after) = (self.weight.value(), weight.value());
        let scale = |v: i64| (i128::from(v) * i128::from(before) / i128::from(after)) as i64;
        self.lag = scale(self.lag);
        if self.relative {
            self.deadline = scale(self.deadline);
            self.protected = scale(self.protected);
        }
        self.weight = weight;
    }

    /// The task has joined, perhaps with a lag that is beyond the bound already.
    pub(super) fn bear(&mut self, queue: &Queue, bound: i64) {
        let lag = queue.lag(self);
        self.back = queue.back - (-lag - bound).max(0);
        self.excess = (lag - bound).max(0);
        self.changes = queue.changes;
    }

    /// # Errors
    /// By how much the lag is below −`bound` or above `bound` + `spread`.
    pub(super) fn check_lag(&self, queue: &Queue, bound: i64, spread: i64) -> Result<(), String> {
        let lag = queue.lag(self);
        // One for the rounding of V.
        let lowest = -(bound + queue.back - self.back + 1);
        let highest = if queue.changes == self.changes {
            bound + spread + self.excess + 1
        } else {
            i64::MAX
        };
        if !(lowest..=highest).contains(&lag) {
            Err(format!(
                "has a lag of {lag} virtual ns, out of {lowest} to {highest}"
            ))
        } else {
            Ok(())
        }
    }
}

impl Queue {
    /// V.
    #[inline]
    pub(super) fn average(&self) -> i64 {
        match self.weight {
            0 => self.last,
            weight => self.sum.div_euclid(i128::from(weight)) as i64,
        }
    }

    pub(super) fn lag(&self, entity: &Entity) -> i64 {
        self.average() - entity.v
    }

    /// Whether something is owed to the task, or nothing by it. Exact, without the division.
    #[inline]
    pub(super) fn is_eligible(&self, entity: &Entity) -> bool {
        i128::from(entity.v) * i128::from(self.weight) <= self.sum
    }

    /// The task's virtual time goes on.
    #[inline]
    pub(super) fn advance(&mut self, entity: &mut Entity, by: i64) {
        let was_owed = self.is_eligible(entity);
        entity.v += by;
        self.sum += i128::from(by) * i128::from(entity.weight.value());
        if was_owed {
            entity.back = self.back;
        }
        if !self.is_eligible(entity) {
            entity.changes = self.changes;
            entity.excess = 0;
        }
    }

    /// A new deadline for the task, one slice from where it is.
    pub(super) fn renew(&self, entity: &mut Entity, tick: Nanos) {
        let bound = entity.weight.virtual_time(entity.slice + tick);
        let is_from_now = (0..=bound).contains(&self.lag(entity));
        entity.request = if is_from_now {
            entity.slice
        } else {
            entity.request.max(entity.slice)
        };
        entity.postponed = false;
        entity.deadline = entity.v + entity.weight.virtual_time(entity.slice);
    }

    /// The task's deadline goes one slice back.
    pub(super) fn postpone(&mut self, entity: &mut Entity) {
        entity.postponed = true;
        entity.deadline += entity.weight.virtual_time(entity.slice);
        self.loose = true;
    }

    /// Puts a task in, so that its lag is right afterwards.
    ///
    /// With w the task's weight and W that of the others, V goes back by lag · w / (W + w) if the task is
    /// placed at V − lag. So it is placed at V − lag · (W + w) / W.
    pub(super) fn insert(&mut self, entity: &mut Entity, task: Task, is_new: bool) {
        let (weight, before) = (entity.weight.value(), self.average());
        let lag = match self.weight {
            0 => 0,
            others => {
                let wide = i128::from(entity.lag) * i128::from(others + weight);
                (wide / i128::from(others)) as i64
            }
        };
        entity.v = before - lag;
        if entity.relative {
            entity.deadline += entity.v;
            entity.protected += entity.v;
            entity.relative = false;
        } else {
            entity.request = entity.slice;
            entity.postponed = false;
            let whole = entity.weight.virtual_time(entity.slice);
            entity.deadline = entity.v + if is_new { whole / 2 } else { whole };
        }
        let alone = self.tasks.is_empty();
        self.loose = entity.postponed || self.loose && !alone;
        self.tasks.push(task);
        self.weight += weight;
        self.sum += i128::from(weight) * i128::from(entity.v);
        self.put_back(entity);
        if !alone {
            self.has_changed(before);
        }
    }

    /// Takes a task out; its lag is in `lag`.
    pub(super) fn remove(&mut self, entity: &mut Entity, task: Task) {
        let before = self.average();
        entity.lag = before - entity.v;
        self.tasks.retain(|&other| other != task);
        let weight = entity.weight.value();
        self.weight -= weight;
        self.sum -= i128::from(weight) * i128::from(entity.v);
        match self.weight {
            0 => self.last = before,
            _ => self.has_changed(before),
        }
    }

    /// The task goes behind its equals.
    pub(super) fn put_back(&mut self, entity: &mut Entity) {
        self.turns += 1;
        entity.turn = self.turns;
    }

    fn has_changed(&mut self, before: i64) {
        self.back += (before - self.average()).max(0);
        self.changes += 1;
    }

    /// # Errors
    /// The wrong sum.
    pub(super) fn check<'a>(
        &self,
        entities: impl Iterator<Item = &'a Entity> + Clone,
    ) -> Result<(), String> {
        let weight: i64 = entities.clone().map(|entity| entity.weight.value()).sum();
        let products = entities
            .clone()
            .map(|entity| i128::from(entity.weight.value()) * i128::from(entity.v));
        let sum: i128 = products.sum();
        if (weight, sum) != (self.weight, self.sum) {
            let (counted, total) = (self.weight, self.sum);
            return Err(format!(
                "sums are {weight}, {sum}, but count as {counted}, {total}"
            ));
        }
        if !self.tasks.is_empty() && !entities.clone().any(|entity| self.is_eligible(entity)) {
            return Err("no task is eligible".to_owned());
        }
        Ok(())
    }
}
