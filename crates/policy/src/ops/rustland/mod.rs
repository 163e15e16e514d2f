//! `rustland-pre333`, `rustland-333`, `rustland-333-capped`: `scx_rustland` around the pull request of source
//! 004, in June 2024. And `rustland-pre333-all`, the first as source 004's text describes it.
//!
//! The rules that they share, as the project's pull requests describe them (235, 325, 333, 336); they differ
//! in the slice they give ([`pre333()`], [`pre333_all()`], [`merged()`], [`capped()`]):
//!
//! - *Virtual time*: a task that becomes ready gets the least virtual time plus the CPU time of its last
//!   turn, times 100 by its weight, at least 1 ns and at most the base slice.
//! - *Order*: the least virtual time first, then the lower number. The least virtual time is that of the
//!   task dispatched last.
//! - *Interactive* is a task that blocks at least 10 times a second, averaged: looked at once a second, half
//!   of the old average and half of the new rate. Its weight counts 100 times (after a cap at 1000), it is
//!   dispatched to any CPU, and it preempts. All others stay on their CPU.
//! - *Batch*: as many tasks a round as CPUs are idle, at least one.
//!
//! Deviations, all because `scx_rustland_core` delivers less today than it did then: voluntary switches are
//! counted by messages of tasks that woke up, so a wake-up on an idle CPU that skips the process is not
//! counted; idle *CPUs* are counted instead of idle cores, by the number of running tasks.
//!
//! Where all of them are bad, beside what each says: a task that computes stays behind another one on its CPU
//! while other CPUs idle, until it sleeps. An interactive task is one for up to two seconds after it has
//! begun to compute, with a hundred times its weight. And each decision costs a round trip through a
//! process.
//!
//! `scx_rustland` does none of this today: the rule was replaced in August 2024.

mod capped;
mod merged;
mod pre333;
#[cfg(test)]
mod tests;

pub use capped::capped;
pub use merged::merged;
pub use pre333::{pre333, pre333_all};

use std::collections::BTreeSet;

use event::{Nanos, Task};

use super::{Dispatch, Kernel, Ops, Queued};

/// The constants of `scx_rustland`; the defaults are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// The base slice (`-s`). Default: 5 ms.
    pub slice: Nanos,
    /// The least slice. Default: 0.25 ms.
    pub slice_min: Nanos,
    /// How much more the weight of an interactive task counts (`-b`). Default: 100.
    pub boost: u64,
    /// How often a task blocks in a second that is interactive. Default: 10.
    pub interactive: u64,
    /// How many tasks are dispatched in a round.
    pub batch: Batch,
}

/// How many tasks are dispatched in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Batch {
    /// As many as CPUs are idle, at least one. As `scx_rustland` does.
    #[default]
    IdleCpus,
    /// All that are ready: bursts, as the example of source 004 assumes.
    All,
}

impl Default for Constants {
    fn default() -> Constants {
        Constants {
            slice: Nanos::from_millis(5),
            slice_min: Nanos::from_micros(250),
            boost: 100,
            interactive: 10,
            batch: Batch::IdleCpus,
        }
    }
}

/// The measure that a slice is made from.
#[derive(Clone, Copy, Debug)]
struct Position {
    /// How far the task's virtual time is ahead of the least one.
    ahead: Nanos,
    /// How many tasks the process had in hand at the beginning of the round, it included.
    in_hand: u64,
    /// How many tasks had no CPU then, those that were dispatched before and wait for one, too.
    waiting: u64,
}

type PositionRule = fn(&Constants, Position) -> Nanos;

/// See the [module](self).
#[derive(Debug)]
pub struct Rustland {
    name: &'static str,
    constants: Constants,
    rule: PositionRule,
    /// The tasks that wait, by virtual time.
    pool: BTreeSet<(Nanos, Task)>,
    /// By task.
    known: Vec<KnownTask>,
    least: Nanos,
    dispatched: u64,
}

#[derive(Clone, Debug, Default)]
struct KnownTask {
    message: Option<Queued>,
    /// Times it blocked since `since`.
    blocked: u64,
    since: Nanos,
    /// Times it blocks in a second, averaged.
    average: u64,
}

impl Rustland {
    fn new(name: &'static str, constants: Constants, rule: PositionRule) -> Rustland {
        Rustland {
            name,
            constants,
            rule,
            pool: BTreeSet::new(),
            known: Vec::new(),
            least: Nanos::ZERO,
            dispatched: 0,
        }
    }

    fn is_interactive(&self, task: Task) -> bool {
        self.known[task.index()].average >= self.constants.interactive
    }

    /// A message came: the task joins the pool.
    fn take(&mut self, queued: Queued, now: Nanos) {
        let index = queued.task.index();
        if self.known.len() <= index {
            self.known.resize(index + 1, KnownTask::default());
        }
        let known = &mut self.known[index];
        known.blocked += u64::from(queued.woken);
        let passed = now - known.since;
        if passed > Nanos::from_secs(1) {
            let rate = u128::from(known.blocked) * 1_000_000_000 / u128::from(passed.0);
            known.average = (known.average + rate as u64) / 2;
            known.blocked = 0;
            known.since = now;
        }
        known.message = Some(queued);
        let weight = if self.is_interactive(queued.task) {
            queued.weight.min(1000) * self.constants.boost
        } else {
            queued.weight
        };
        let used = u128::from((queued.stop - queued.start).0) * 100 / u128::from(weight.max(1));
        let most = self.constants.slice.0.max(1);
        let used = (used.min(u128::from(most)) as u64).max(1);
        self.pool.insert((self.least + Nanos(used), queued.task));
    }

    fn dispatch_next(&mut self, [in_hand, waiting]: [u64; 2], kernel: &mut dyn Kernel) {
        let Some((v, task)) = self.pool.pop_first() else {
            return;
        };
        let position = Position {
            ahead: v - self.least,
            in_hand,
            waiting,
        };
        let slice = (self.rule)(&self.constants, position);
        self.least = v;
        self.dispatched += 1;
        if let Some(queued) = self.known[task.index()].message.take() {
            let interactive = self.is_interactive(task);
            kernel.dispatch(Dispatch {
                cpu: (!interactive).then_some(queued.cpu),
                preempt: interactive,
                ..Dispatch::of(&queued, slice, self.dispatched)
            });
        }
    }
}

impl Ops for Rustland {
    fn name(&self) -> &'static str {
        self.name
    }

    fn forget(&mut self, task: Task) {
        if let Some(known) = self.known.get_mut(task.index()) {
            *known = KnownTask::default();
            self.pool.retain(|&(_, other)| other != task);
        }
    }

    fn round(&mut self, kernel: &mut dyn Kernel) -> usize {
        while let Some(queued) = kernel.dequeue() {
            self.take(queued, kernel.now());
        }
        let idle = kernel.online().saturating_sub(kernel.running());
        let batch = match self.constants.batch {
            Batch::IdleCpus => idle.max(1),
            Batch::All => self.pool.len(),
        };
        let in_hand = self.pool.len();
        let waiting = kernel.waiting().unwrap_or(in_hand);
        for _ in 0..batch {
            self.dispatch_next([in_hand as u64, waiting as u64], kernel);
        }
        self.pool.len()
    }
}
