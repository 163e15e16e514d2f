//! Waits that can never end.
//!
//! A thread that is about to park follows who waits for whom, starting from what it waits for:
//! a job that is held back waits for its unfinished predecessors; a running job waits for what the
//! thread that runs it waits for; a scope waits for its jobs. If that leads to a job this thread is
//! in the middle of, or back to a job already on the path, nobody involved can ever go on.
//!
//! Two threads that close a cycle at the same moment both write what they wait for, fence, and then
//! look: at least one of them sees the other.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use crate::context::Context;
use crate::error::WaitError;
use crate::job::{Label, Phase, Ticket};

impl<P: Platform> Context<'_, P> {
    /// Whether there is any way in which this thread could wait for itself: cycles of edges alone need an
    /// edge that was added late; cycles through this thread need a job that it is in the middle of.
    pub(crate) fn may_be_in_cycle(&self) -> bool {
        !self.current_job().is_none() || self.shared.late_edges.load(Ordering::Relaxed) != 0
    }

    /// The error to report if the wait for `target`, which this thread is about to park in, can
    /// never end. Takes time in proportion to what the target depends on.
    pub(crate) fn find_cycle(&self, target: Ticket) -> Option<WaitError> {
        // SeqCst, partner: the same fence of whoever closes the cycle at the same moment: one of us
        // sees what the other waits for.
        P::fence(Ordering::SeqCst);
        let mut walk = Walk {
            context: self,
            mine: self.waiting_for_me(),
            seen: HashMap::new(),
            path: Vec::new(),
        };
        walk.leads_back(target).then(|| WaitError::Deadlock {
            cycle: walk.cycle(),
        })
    }

    /// The jobs that this thread is in the middle of, and the scopes that wait for them.
    fn waiting_for_me(&self) -> HashSet<Ticket> {
        let mut mine = HashSet::new();
        self.any_running(|running| {
            let mut above = Some(running).filter(|job| !job.is_none());
            // What is in the set already has its own in it, too.
            while let Some(job) = above.filter(|&job| mine.insert(job)) {
                above = self.parent_of(job);
            }
            false
        });
        mine
    }

    /// The jobs from `from` to `to` along unfinished predecessors, if `to` is an ancestor of `from`
    /// or `from` itself. Takes time in proportion to the ancestors of `from`.
    pub(crate) fn path_to_ancestor(&self, from: Ticket, to: Ticket) -> Option<Vec<Label>> {
        // By which job each was found; the first one by itself.
        let mut found_by = HashMap::from([(from, from)]);
        let mut stack = vec![from];
        while let Some(job) = stack.pop() {
            if job == to {
                let mut path = vec![job];
                let mut last = job;
                while last != from {
                    last = found_by[&last];
                    path.push(last);
                }
                let label = |&job: &Ticket| self.label_of(self.shared.slot(job));
                return Some(path.iter().rev().map(label).collect());
            }
            self.unfinished_preds(job, |pred| {
                if let Entry::Vacant(place) = found_by.entry(pred) {
                    place.insert(job);
                    stack.push(pred);
                }
            });
        }
        None
    }
}

/// How far a job's own search is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    OnPath,
    /// No cycle was found from it.
    Done,
}

struct Walk<'c, 'a, P: Platform> {
    context: &'c Context<'a, P>,
    /// What waits for this thread.
    mine: HashSet<Ticket>,
    seen: HashMap<Ticket, Seen>,
    path: Vec<Ticket>,
}

impl<P: Platform> Walk<'_, '_, P> {
    /// Whether the walk from `start` closes a cycle; then `path` holds it. Depth first with an
    /// explicit stack: `None` in it means "leave the job on top of the path".
    fn leads_back(&mut self, start: Ticket) -> bool {
        let mut stack = vec![Some(start)];
        while let Some(step) = stack.pop() {
            let Some(job) = step else {
                let left = self.path.pop();
                left.into_iter()
                    .for_each(|job| _ = self.seen.insert(job, Seen::Done));
                continue;
            };
            let slot = self.context.shared.slot(job);
            if slot.is_over(job) {
                continue;
            }
            let seen = self.seen.get(&job).copied();
            if seen == Some(Seen::OnPath) || self.mine.contains(&job) {
                self.path.push(job);
                return true;
            }
            if seen == Some(Seen::Done) {
                continue;
            }
            self.seen.insert(job, Seen::OnPath);
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

    fn push_awaited(&self, job: Ticket, stack: &mut Vec<Option<Ticket>>) {
        let slot = self.context.shared.slot(job);
        // Acquire, partner: the CAS of the claim: the runner's seat.
        match slot.word(Ordering::Acquire).phase {
            Phase::Waiting => {
                self.context
                    .unfinished_preds(job, |pred| stack.push(Some(pred)));
            }
            Phase::Running => {
                // Relaxed: it was said to be nowhere before the job was ready, so it is this job's place.
                let seat = slot.place.load(Ordering::Relaxed) as usize;
                let Some(seat) = self.context.shared.seats.find(seat) else {
                    return;
                };
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
