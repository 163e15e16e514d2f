//! Shared parts of the two idealised rules of source 004: work in bursts, by what tasks promise.

use std::collections::BTreeSet;

use event::{Nanos, Task};

use super::{Dispatch, Kernel, Ops, Queued};
use crate::Attr;

/// The numbers of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// The least slice there is; source 004's unit of time. Default: 1 ms.
    pub unit: Nanos,
    /// The promise of a task that gives none. Default: 5 ms, rustland's slice.
    pub unknown: Nanos,
    /// The slice of every task, where it is uniform. Default: 2 ms, two units.
    pub uniform: Nanos,
}

impl Default for Promises {
    fn default() -> Promises {
        Promises {
            unit: Nanos::from_millis(1),
            unknown: Nanos::from_millis(5),
            uniform: Nanos::from_millis(2),
        }
    }
}

/// How long the slice of a task is, by how far its virtual time is ahead of the least one.
type SliceRule = fn(&Promises, ahead: Nanos) -> Nanos;

/// An idealised rule of source 004. In each round:
///
/// 1. each task that is ready gets a virtual time: the least one, as it is now, plus its promise;
/// 2. all of them are dispatched in the order of their virtual times, the one with the lower number first
///    among equals; each gets its slice by the rule, and the least virtual time becomes its.
///
/// The next round comes when all that was dispatched has run.
#[derive(Debug)]
pub struct Bursts {
    name: &'static str,
    promises: Promises,
    rule: SliceRule,
    /// By task.
    promised: Vec<Nanos>,
    /// The least virtual time.
    least: Nanos,
    dispatched: u64,
}

impl Bursts {
    pub(super) fn new(name: &'static str, promises: Promises, rule: SliceRule) -> Bursts {
        Bursts {
            name,
            promises,
            rule,
            promised: Vec::new(),
            least: Nanos::ZERO,
            dispatched: 0,
        }
    }
}

impl Ops for Bursts {
    fn name(&self) -> &'static str {
        self.name
    }

    fn hint(&mut self, task: Task, attr: &Attr) {
        let unknown = self.promises.unknown;
        if self.promised.len() <= task.index() {
            self.promised.resize(task.index() + 1, unknown);
        }
        self.promised[task.index()] = attr.slice.unwrap_or(unknown);
    }

    fn round(&mut self, kernel: &mut dyn Kernel) -> usize {
        let mut burst: BTreeSet<(Nanos, Task)> = BTreeSet::new();
        let mut messages: Vec<Queued> = Vec::new();
        while let Some(queued) = kernel.dequeue() {
            let promised = self.promised.get(queued.task.index());
            let promise = promised.copied().unwrap_or(self.promises.unknown);
            burst.insert((self.least + promise, queued.task));
            messages.push(queued);
        }
        messages.sort_unstable_by_key(|queued| queued.task);
        for (v, task) in burst {
            let slice = (self.rule)(&self.promises, v - self.least);
            self.least = v;
            self.dispatched += 1;
            let message = messages.binary_search_by_key(&task, |queued| queued.task);
            let queued = &messages[message.expect("its message came in this round")];
            kernel.dispatch(Dispatch::of(queued, slice, self.dispatched));
        }
        0
    }
}
