//! Waits that can never end.
//!
//! A thread that is about to park follows the chain of waits, starting from the job it waits for. A job that
//! is held back waits for its unfinished predecessors. A running job waits for what the thread that runs it
//! waits for. A scope waits for its jobs. If the chain leads to a job that this thread is in the middle of,
//! or back to a job already on the path, none of the threads involved can ever go on.
//!
//! Two threads may close a cycle at the same moment. Both write what they wait for, fence, and then look: at
//! least one of them sees the other.

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use super::waiter::Waiter;
use crate::error::WaitError;
use crate::store::{JobPhase, Label, Map, Set, Ticket};
use crate::work::context::Context;

impl<P: Platform> Waiter<'_, '_, P> {
    /// Whether this thread could wait for itself at all. A cycle of edges alone needs an edge that was added
    /// late. A cycle through this thread needs a job that it is in the middle of.
    pub(super) fn may_be_in_cycle(&self) -> bool {
        let late_edges = &self.cx.graph().late_edges;
        !self.cx.current_job().is_none() || late_edges.load(Ordering::Relaxed) != 0
    }

    /// The error to report if this wait, in which the thread is about to park, can never end. Takes time in
    /// proportion to the number of jobs that the target depends on.
    pub(super) fn find_cycle(&self) -> Option<WaitError> {
        // SeqCst, partner: the same fence of a thread that closes the cycle at the same moment: one of the
        // two sees what the other waits for.
        P::fence(Ordering::SeqCst);
        let mut search = CycleSearch {
            context: self.cx,
            mine: waiting_for(self.cx),
            seen: Map::default(),
            path: Vec::new(),
        };
        search.leads_back(self.target).then(|| WaitError::Deadlock {
            cycle: search.cycle(),
        })
    }
}

impl<P: Platform> Context<'_, P> {
    /// The wait that can never end, if this thread is in the middle of a job that `awaited` waits for as its
    /// scope or run. For waits that have no other answer: they look before they begin.
    pub(crate) fn cycle_inside(&self, awaited: Ticket) -> Option<WaitError> {
        let above = |job: &Ticket| self.graph().parent_of(*job);
        let is_inside = self.any_running(|job| {
            let running = Some(job).filter(|job| !job.is_none());
            std::iter::successors(running, above).any(|job| job == awaited)
        });
        let label = |job| self.graph().label_of(self.shared.slot(job));
        is_inside.then(|| WaitError::Deadlock {
            cycle: vec![label(awaited), label(self.current_job())],
        })
    }
}

/// The jobs that the thread is in the middle of, and the scopes that wait for them.
fn waiting_for<P: Platform>(cx: &Context<'_, P>) -> Set<Ticket> {
    let mut mine = Set::default();
    cx.any_running(|running| {
        let mut above = Some(running).filter(|job| !job.is_none());
        // For a job that is already in the set, the jobs above it are in the set, too.
        while let Some(job) = above.filter(|&job| mine.insert(job, ())) {
            above = cx.graph().parent_of(job);
        }
        false
    });
    mine
}

/// How far the search from a job is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    OnPath,
    /// No cycle was found from it.
    Done,
}

struct CycleSearch<'c, 'a, P: Platform> {
    context: &'c Context<'a, P>,
    /// The jobs that wait for this thread.
    mine: Set<Ticket>,
    seen: Map<Ticket, Seen>,
    path: Vec<Ticket>,
}

impl<P: Platform> CycleSearch<'_, '_, P> {
    /// Whether the walk from `start` closes a cycle; then `path` holds it. It goes depth first with an
    /// explicit stack, on which `None` means "leave the job on top of the path".
    fn leads_back(&mut self, start: Ticket) -> bool {
        let mut stack = vec![Some(start)];
        while let Some(step) = stack.pop() {
            let Some(job) = step else {
                if let Some(left) = self.path.pop() {
                    self.seen.insert(left, Seen::Done);
                }
                continue;
            };
            let slot = self.context.shared.slot(job);
            if slot.is_over(job) {
                continue;
            }
            let seen = self.seen.get(&job).copied();
            if seen == Some(Seen::OnPath) || self.mine.contains_key(&job) {
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

    /// The jobs of a path that closes, each waiting for the next. Jobs before the cycle are left out, and the
    /// job where the cycle closes is named once.
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
        let label = |&job: &Ticket| context.graph().label_of(context.shared.slot(job));
        self.path.iter().map(label).collect()
    }

    fn push_awaited(&self, job: Ticket, stack: &mut Vec<Option<Ticket>>) {
        let slot = self.context.shared.slot(job);
        // Acquire, partner: the CAS of the claim: the runner's thread slot.
        match slot.word(Ordering::Acquire).phase {
            JobPhase::Waiting => {
                self.context
                    .graph()
                    .unfinished_preds(job, &mut |pred| stack.push(Some(pred)));
            }
            JobPhase::Running => {
                // Relaxed: the place was set to nowhere before the job was ready, so this is the place of
                // this job.
                let thread = slot.place.load(Ordering::Relaxed) as usize;
                let Some(thread) = self.context.shared.threads.find(thread) else {
                    return;
                };
                let awaited = thread.waits_for.load(Ordering::Relaxed);
                if thread.waits_until.load(Ordering::Relaxed) != Nanos::MAX.0 {
                    return;
                }
                // The job is checked again: the thread slot was running this very job.
                if awaited != 0 && !slot.is_over(job) && self.known(Ticket(awaited)) {
                    stack.push(Some(Ticket(awaited)));
                }
            }
            _ => {}
        }
    }

    fn known(&self, job: Ticket) -> bool {
        self.context.graph().slots.exists(job.index())
    }
}
