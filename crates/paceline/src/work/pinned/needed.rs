//! The jobs of this thread without which a wait in the middle of a job does not end. A wait in a group may
//! run all of the group's jobs, so those of this thread are among them.
//!
//! The way to them is that of a raise (`lanes/raise.rs`): from a job that is held back to its unfinished
//! predecessors, from a future to what it awaits, from a job that runs to what its thread waits for in the
//! middle of it, from a job that has opened a scope to the scope's jobs. The latter have no list: all jobs
//! that run are looked at. Of a loop it is not known which threads wait in the middle of it, so the waits of
//! all that take part in loops count. And from a job that is ready for another thread to what that one waits
//! for, if it is in the middle of a job: it may come for the other only when it is through with that.
//!
//! What it does not find now it may find later. A thread that begins to wait says so, and then looks, under
//! the lock, which threads have jobs in their lists, and unparks them. This thread copies its list under the
//! lock before it searches. If that comes later, it finds what the other thread waits for; otherwise it is
//! unparked. The same holds for a job that gets another predecessor, and for one that becomes ready for a
//! thread.

use platform::{Atomic, Ordering, Platform};

use super::Context;
use crate::store::{JobPhase, Set, Slot, Ticket};

/// The first of these jobs that a wait for `target` needs, or one of the group whose jobs it may run.
pub(super) fn first_of<P: Platform>(
    ready: &[Ticket],
    cx: &Context<'_, P>,
    target: Ticket,
) -> Option<Ticket> {
    let of_group = ready.iter().find(|&&job| cx.waits_in_group_of(job));
    if let Some(&job) = of_group {
        return Some(job);
    }
    let mut search = Search {
        cx,
        needed: Set::default(),
        next: vec![target],
        has_loop: false,
    };
    search.run();
    let is_needed = |job: Ticket| search.needed.contains_key(&job) || search.is_part(job);
    ready.iter().copied().find(|&job| is_needed(job))
}

struct Search<'c, 'a, P: Platform> {
    cx: &'c Context<'a, P>,
    /// Jobs without which the wait does not end.
    needed: Set<Ticket>,
    /// Those that are still to be visited.
    next: Vec<Ticket>,
    /// A loop that threads share is among them.
    has_loop: bool,
}

impl<P: Platform> Search<'_, '_, P> {
    fn run(&mut self) {
        let mut had_loop = false;
        loop {
            while let Some(job) = self.next.pop() {
                if !self.cx.shared.slot(job).is_over(job) && self.needed.insert(job, ()) {
                    self.look_behind(job);
                }
            }
            self.add_running_parts();
            if self.has_loop && !had_loop {
                had_loop = true;
                self.add_waits_in_loops();
            }
            if self.next.is_empty() {
                return;
            }
        }
    }

    /// Whether the job is one of a scope that is needed, or that a needed job has opened.
    fn is_part(&self, job: Ticket) -> bool {
        let graph = self.cx.graph();
        graph.any_whole(job, |whole| self.needed.contains_key(&whole))
    }

    fn look_behind(&mut self, job: Ticket) {
        let slot = self.cx.shared.slot(job);
        // Acquire, partner: the Release stores of the state: the links of a job that waits.
        match slot.word(Ordering::Acquire).phase {
            JobPhase::Waiting => {
                let graph = self.cx.graph();
                graph.awaited(job, |pred| self.next.push(pred));
                // Relaxed: does not change while the job waits.
                if slot.flags.load(Ordering::Relaxed) & Slot::<P>::IS_PINNED != 0 {
                    self.visit_awaited_at_home(job);
                }
            }
            JobPhase::Running => self.visit_awaited_in(job, slot),
            JobPhase::Open => self.has_loop = true,
            JobPhase::Ready | JobPhase::Free | JobPhase::Settled => {}
        }
    }

    /// The job that the runner of this one waits for in the middle of it is to be visited.
    fn visit_awaited_in(&mut self, job: Ticket, slot: &Slot<P>) {
        // Relaxed, as for a raise: the place was set to nowhere before the job was ready.
        let thread = slot.place.load(Ordering::Relaxed) as usize;
        if let Some(thread) = self.cx.shared.threads.find(thread)
            && !slot.is_over(job)
        {
            self.visit_later(Ticket(thread.waits_for.load(Ordering::Relaxed)));
        }
    }

    /// What keeps the thread that this job is ready for is to be visited.
    fn visit_awaited_at_home(&mut self, job: Ticket) {
        let pinned = self.cx.shared.pinned.get();
        let Some((home, true)) = pinned.and_then(|pinned| pinned.home_of(job)) else {
            return;
        };
        let runs_there = |slot: &Slot<P>| {
            // Acquire, partner: the CAS of the claim. Relaxed: a hint, as above.
            slot.word(Ordering::Acquire).phase == JobPhase::Running
                && slot.place.load(Ordering::Relaxed) as usize == home
        };
        let thread = self.cx.shared.threads.get(home);
        let graph = self.cx.graph();
        let mut slots = graph.slots.iter();
        if thread.takes_part_in_loop() || slots.any(|(_, slot)| runs_there(slot)) {
            self.visit_later(Ticket(thread.waits_for.load(Ordering::Relaxed)));
        }
    }

    fn visit_later(&mut self, job: Ticket) {
        if !job.is_none() && self.cx.graph().slots.exists(job.index()) {
            self.next.push(job);
        }
    }

    /// Jobs of needed scopes that run, or are shared, are to be visited: no list leads to them.
    fn add_running_parts(&mut self) {
        let cx = self.cx;
        for (index, slot) in cx.graph().slots.iter() {
            // Acquire, partner: the CAS of the claim: the runner's thread slot.
            let word = slot.word(Ordering::Acquire);
            let job = Ticket::new(index, word.generation);
            let runs = matches!(word.phase, JobPhase::Running | JobPhase::Open);
            if runs && !self.needed.contains_key(&job) && self.is_part(job) {
                self.next.push(job);
            }
        }
    }

    /// What threads wait for that take part in a loop is to be visited.
    fn add_waits_in_loops(&mut self) {
        for thread in self.cx.shared.threads.iter() {
            if thread.index != self.cx.thread.index && thread.takes_part_in_loop() {
                self.visit_later(Ticket(thread.waits_for.load(Ordering::Relaxed)));
            }
        }
    }
}
