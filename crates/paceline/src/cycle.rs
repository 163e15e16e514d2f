//! Waits that can never end.
//!
//! A thread that is about to park follows who waits for whom, starting from what it waits for:
//! a job that is held back waits for its unfinished predecessors; a running job waits for what the
//! thread that runs it waits for; a scope waits for its jobs. If that leads to a job this thread is
//! in the middle of, or back to a job already on the path, nobody involved can ever go on.
//!
//! Two threads that close a cycle at the same moment both write what they wait for, fence, and then
//! look: at least one of them sees the other.

use std::collections::HashSet;

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use crate::context::Context;
use crate::error::WaitError;
use crate::job::{Label, Phase, Ticket};

impl<P: Platform> Context<'_, P> {
    /// The error to report if the wait for `target`, which this thread is about to park in, can
    /// never end.
    pub(crate) fn find_cycle(&self, target: Ticket) -> Option<WaitError> {
        let in_a_job = !self.current_job().is_none();
        // Cycles of edges alone need an edge that was added late; cycles through this thread need a
        // job it is in the middle of.
        if !in_a_job && self.shared.late_edges.load(Ordering::Relaxed) == 0 {
            return None;
        }
        // SeqCst, partner: the same fence of whoever closes the cycle at the same moment: one of us
        // sees what the other waits for.
        P::fence(Ordering::SeqCst);
        let mut walk = Walk {
            context: self,
            done: HashSet::new(),
            path: Vec::new(),
        };
        walk.leads_back(target).then(|| WaitError::Deadlock {
            cycle: walk.cycle(),
        })
    }

    /// The jobs from `from` to `to` along unfinished predecessors, if `to` is an ancestor of `from`
    /// or `from` itself.
    pub(crate) fn path_to_ancestor(&self, from: Ticket, to: Ticket) -> Option<Vec<Label>> {
        let mut done = HashSet::new();
        let mut stack = vec![vec![from]];
        while let Some(path) = stack.pop() {
            let last = *path.last()?;
            if last == to {
                return Some(
                    path.iter()
                        .map(|&j| self.label_of(self.shared.slot(j)))
                        .collect(),
                );
            }
            if done.insert(last) {
                self.unfinished_preds(last, |pred| {
                    stack.push([path.as_slice(), &[pred]].concat());
                });
            }
        }
        None
    }
}

struct Walk<'c, 'a, P: Platform> {
    context: &'c Context<'a, P>,
    /// Jobs from which no cycle was found.
    done: HashSet<Ticket>,
    path: Vec<Ticket>,
}

impl<P: Platform> Walk<'_, '_, P> {
    /// Whether the walk from `start` closes a cycle; then `path` holds it. Depth first with an
    /// explicit stack: `None` in it means "leave the job on top of the path".
    fn leads_back(&mut self, start: Ticket) -> bool {
        let mut stack = vec![Some(start)];
        while let Some(step) = stack.pop() {
            let Some(job) = step else {
                self.path.pop();
                continue;
            };
            let slot = self.context.shared.slot(job);
            if slot.is_over(job) {
                continue;
            }
            if self.is_mine(job) || self.path.contains(&job) {
                self.path.push(job);
                return true;
            }
            if !self.done.insert(job) {
                continue;
            }
            self.path.push(job);
            stack.push(None);
            self.push_awaited(job, &mut stack);
        }
        false
    }

    /// Who waits for whom on a path that closes: what is before the cycle is left out, and the job
    /// where it closes is named once.
    fn cycle(mut self) -> Vec<Label> {
        let context = self.context;
        let Some(last) = self.path.pop() else {
            return Vec::new();
        };
        match self.path.iter().position(|&job| job == last) {
            Some(first) => drop(self.path.drain(..first)),
            None => {
                let waiting = context.current_job();
                self.path.insert(0, waiting);
                if last != waiting {
                    self.path.push(last);
                }
            }
        }
        let label = |&job: &Ticket| context.label_of(context.shared.slot(job));
        self.path.iter().map(label).collect()
    }

    /// Whether this thread is in the middle of the job, or of one that the job (a scope) waits for.
    fn is_mine(&self, job: Ticket) -> bool {
        self.context.any_running(|running| {
            let mut above = Some(running);
            for _ in 0..NESTING_MAX {
                match above {
                    Some(same) if same == job => return true,
                    Some(other) => above = self.context.parent_of(other),
                    None => return false,
                }
            }
            false
        })
    }

    fn push_awaited(&self, job: Ticket, stack: &mut Vec<Option<Ticket>>) {
        let slot = self.context.shared.slot(job);
        // Acquire, partner: the CAS of the claim: the runner's seat.
        match slot.word(Ordering::Acquire).phase {
            Phase::Waiting => {
                self.context
                    .unfinished_preds(job, |pred| stack.push(Some(pred)));
            }
            Phase::Running => {
                let seat = slot.place.load(Ordering::Relaxed) as usize;
                if seat >= self.context.shared.seats.len() {
                    return;
                }
                let seat = self.context.shared.seats.get(seat);
                let awaited = seat.waits_for.load(Ordering::Relaxed);
                if seat.waits_until.load(Ordering::Relaxed) != Nanos::MAX.0 {
                    return;
                }
                // Looked at again: the seat was running this very job.
                if awaited != 0 && !slot.is_over(job) && self.known(Ticket(awaited)) {
                    stack.push(Some(Ticket(awaited)));
                }
            }
            _ => {}
        }
    }

    fn known(&self, job: Ticket) -> bool {
        self.context.shared.slots.exists(job.index())
    }
}

const NESTING_MAX: usize = 256;
