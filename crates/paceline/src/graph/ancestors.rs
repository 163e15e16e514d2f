//! The jobs that a job depends on and that are not over.

use platform::{Atomic, Ordering, Platform};

use super::Graph;
use crate::store::{Label, Map, NIL, Preds, Slot, Ticket};

impl<P: Platform> Graph<P> {
    /// The jobs on the way from `from` to `to` along unfinished predecessors, if `to` is an ancestor of
    /// `from` or `from` itself. Takes time in proportion to the number of ancestors of `from`.
    pub(crate) fn path_to_ancestor(&self, from: Ticket, to: Ticket) -> Option<Vec<Label>> {
        // For each job that was found, the job it was found by. The first one was found by itself.
        let mut found_by = Map::from_iter([(from, from)]);
        let mut stack = vec![from];
        while let Some(job) = stack.pop() {
            if job == to {
                let mut path = vec![job];
                let mut last = job;
                while last != from {
                    let Some(&by) = found_by.get(&last) else {
                        break;
                    };
                    last = by;
                    path.push(last);
                }
                let label = |&job: &Ticket| self.label_of(self.slot(job));
                return Some(path.iter().rev().map(label).collect());
            }
            self.unfinished_preds(job, &mut |pred| {
                if !found_by.contains_key(&pred) {
                    found_by.insert(pred, job);
                    stack.push(pred);
                }
            });
        }
        None
    }

    /// Calls `visit` with the predecessors of `job` that may not be over yet. Jobs that a future awaits are
    /// no predecessors in this sense: it may go on without some of them. The callers have time, for they look
    /// for a circle or end the job system. So they share the code.
    pub(crate) fn unfinished_preds(&self, job: Ticket, visit: &mut dyn FnMut(Ticket)) {
        // Relaxed: the flag is set while the job has no predecessors any more.
        if self.slot(job).flags.load(Ordering::Relaxed) & Slot::<P>::WAS_POLLED == 0 {
            self.awaited(job, visit);
        }
    }

    /// As [`unfinished_preds`](Graph::unfinished_preds), but also with the jobs that a future awaits.
    pub(crate) fn awaited(&self, job: Ticket, mut visit: impl FnMut(Ticket)) {
        self.linked_preds(job, |pred| {
            if !self.slot(pred).is_over(pred) {
                visit(pred);
            }
        });
    }

    /// Calls `visit` with the predecessors from which `job` has links, and with the jobs that it awaits if it
    /// is a future, whether they are over or not. If the job has started meanwhile, all of them are over. If
    /// its links belong to another job by now, it stops.
    #[inline]
    pub(crate) fn linked_preds(&self, job: Ticket, mut visit: impl FnMut(Ticket)) {
        let links = &self.links;
        // Acquire, partner: the Release stores of `preds`.
        let mut number = Preds(self.slot(job).preds.load(Ordering::Acquire)).block();
        while number != NIL {
            if !links.exists(number) {
                return;
            }
            // None: the block is in use for another job, so this job is over.
            let Some((from, more)) = links.get(number).read(job.0) else {
                return;
            };
            for pred in from {
                if !pred.is_none() && self.slots.exists(pred.index()) {
                    visit(pred);
                }
            }
            number = more;
        }
    }
}
