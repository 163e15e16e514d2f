//! Funding: the statements of waits, followed from each waiter to the ready tasks at the ends.
//!
//! The waiter with the least account goes first, and each statement is followed once a round. So a ready task
//! is reached first by the least account that funds it, and a round costs the number of statements, not of
//! paths. Nothing is recursive: chains may be as long as programs make them.

use std::collections::{BTreeMap, BTreeSet};

use event::{Nanos, Task};

use super::STEPS_MAX;

/// A right to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Claim {
    /// The account that it counts with.
    pub(super) vtime: Nanos,
    pub(super) task: Task,
    /// The task with that account.
    pub(super) payer: Task,
}

impl Claim {
    /// Whether it is another one's account.
    pub(super) fn is_funded(&self) -> bool {
        self.payer != self.task
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Funding {
    /// The tasks that each waiter named.
    waits: BTreeMap<Task, Vec<Task>>,
    /// The funded tasks, by their claims, and the other way round.
    claims: BTreeMap<(Nanos, Task), Task>,
    keys: BTreeMap<Task, Nanos>,
    /// Ready tasks that wait for another ready one.
    in_vain: BTreeSet<Task>,
    pub(super) cut_short: u64,
}

impl Funding {
    /// A round begins: nothing is known of earlier ones.
    pub(super) fn begin(&mut self) {
        self.waits.clear();
        self.claims.clear();
        self.keys.clear();
        self.in_vain.clear();
    }

    pub(super) fn note(&mut self, waiter: Task, others: &[Task]) {
        self.waits.insert(waiter, others.to_vec());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    pub(super) fn waiters(&self) -> Vec<Task> {
        self.waits.keys().copied().collect()
    }

    /// Gives each ready task that is waited for its claim. Each task that an account funds comes after
    /// those before it by their `price`.
    pub(super) fn follow(
        &mut self,
        vtime: &dyn Fn(Task) -> Nanos,
        price: &dyn Fn(Task, Task) -> Nanos,
        is_ready: &dyn Fn(Task) -> bool,
    ) {
        let mut donors = self.waiters();
        donors.sort_by_key(|&waiter| (vtime(waiter), waiter));
        let mut followed = BTreeSet::new();
        let mut steps = 0;
        for donor in donors {
            let mut next = vtime(donor);
            let mut ahead = vec![donor];
            while let Some(waiter) = ahead.pop() {
                if !followed.insert(waiter) {
                    continue;
                }
                for &other in self.waits.get(&waiter).into_iter().flatten() {
                    steps += 1;
                    if steps > STEPS_MAX {
                        self.cut_short += 1;
                        return;
                    }
                    if other == donor {
                        continue;
                    }
                    if is_ready(other) && !self.keys.contains_key(&other) {
                        self.keys.insert(other, next);
                        self.claims.insert((next, other), donor);
                        next += price(donor, other);
                    }
                    ahead.push(other);
                }
            }
        }
        self.find_those_in_vain(is_ready);
    }

    /// A ready task that waits for a ready one has nothing to do yet. In a circle of them none has to
    /// yield.
    fn find_those_in_vain(&mut self, is_ready: &dyn Fn(Task) -> bool) {
        for (&waiter, others) in &self.waits {
            let ends = |&other: &Task| is_ready(other) && !self.waits.contains_key(&other);
            if is_ready(waiter) && others.iter().any(ends) {
                self.in_vain.insert(waiter);
            }
        }
    }

    /// The claim that goes first, of tasks for which there is a place.
    pub(super) fn first(&self, no_place: &BTreeSet<Task>) -> Option<Claim> {
        let ready = self.claims.iter();
        let may = |task: &Task| !self.in_vain.contains(task) && !no_place.contains(task);
        let mut ready = ready.filter(|((_, task), _)| may(task));
        ready
            .next()
            .map(|(&(vtime, task), &payer)| Claim { vtime, task, payer })
    }

    /// Whether the task waits for one that is ready.
    pub(super) fn has_to_yield(&self, task: Task) -> bool {
        self.in_vain.contains(&task)
    }

    /// The task has been dispatched.
    pub(super) fn remove(&mut self, task: Task) {
        if let Some(key) = self.keys.remove(&task) {
            self.claims.remove(&(key, task));
        }
        // Its waiters may run again beside it.
        self.in_vain.retain(|waiter| {
            let others = self.waits.get(waiter);
            !others.is_some_and(|others| others.contains(&task))
        });
    }
}
