//! Reading jobs that are not over.

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use super::{LabelTable, TRIES};
use crate::report::{JobKind, JobState, LiveJob, NamedJob, Report};
use crate::store::{JobId, JobPhase, Slot, StateWord, Ticket};
use crate::work::posted::PostedWait;

/// Reads jobs.
pub(super) struct JobReader<'s, P: Platform> {
    pub(super) names: LabelTable<'s, P>,
    /// The loops in which threads take part, and the slots of these threads, as they were a moment ago.
    pub(super) participants: Vec<(Ticket, usize)>,
}

/// What a look at a slot found.
enum JobLook {
    Nothing,
    Job(LiveJob),
    /// It changed during each look.
    Changing,
}

impl<P: Platform> JobReader<'_, P> {
    /// Reads all jobs.
    pub(super) fn read_all(&mut self, report: &mut Report) {
        let slots = &self.names.shared.graph.slots;
        for (index, slot) in slots.iter() {
            match self.read(index, slot) {
                JobLook::Nothing => {}
                JobLook::Job(job) => report.jobs.push(job),
                JobLook::Changing => report.changing += 1,
            }
        }
    }

    /// Whether the job still waits for the other one.
    pub(super) fn still_waits_for(&mut self, job: JobId, awaited: JobId) -> bool {
        let waits = self.read_again(job).is_some_and(|now| {
            let mut others = now.waits_for.iter();
            others.any(|other| other.id == awaited)
        });
        // A scope waits for the jobs that name it.
        waits
            || self
                .read_again(awaited)
                .is_some_and(|now| now.scope == Some(job))
    }

    fn read_again(&mut self, job: JobId) -> Option<LiveJob> {
        let index = job.ticket().index();
        let slot = self.names.shared.graph.slots.get(index);
        match self.read(index, slot) {
            JobLook::Job(now) if now.id == job => Some(now),
            _ => None,
        }
    }

    fn read(&mut self, index: u32, slot: &Slot<P>) -> JobLook {
        for _ in 0..TRIES {
            // Acquire, partner: the Release stores of the state.
            let word = slot.word(Ordering::Acquire);
            let is_free = matches!(word.phase, JobPhase::Free | JobPhase::Settled);
            if is_free || has_closed(slot, Ticket::new(index, word.generation)) {
                return JobLook::Nothing;
            }
            let found = slot.look_at(index, |job, word| self.look(job, word, slot));
            if let Some(found) = found.flatten() {
                return JobLook::Job(found);
            }
        }
        JobLook::Changing
    }

    /// Reads the job in this slot. The caller makes sure that it is one job from beginning to end.
    fn look(&mut self, job: Ticket, word: StateWord, slot: &Slot<P>) -> Option<LiveJob> {
        // Acquire, all of these, partners: the Release stores in `make`, `run_in_own_lane` and `release`, by
        // which other jobs of the slot wrote these words; see `look_at`.
        let flags = slot.flags.load(Ordering::Acquire);
        let parent = Ticket(slot.parent.load(Ordering::Acquire));
        let label = slot.label.load(Ordering::Acquire);
        let place = slot.place.load(Ordering::Acquire);
        let has = |flag| flags & flag != 0;
        let NamedJob { id, label } = self.names.with_number(job, label)?;
        let (mut waits_for, mut has_deadline) = (Vec::new(), false);
        let mut add_wait = |names: &mut LabelTable<'_, P>, wait: &PostedWait| {
            waits_for.extend(names.named(wait.target));
            has_deadline |= wait.until != Nanos::MAX;
        };
        let state = match word.phase {
            JobPhase::Ready => JobState::Ready,
            // A range that runs and is not open is about to be opened: `place` may be its block already.
            JobPhase::Open | JobPhase::Running if has(Slot::<P>::IS_RANGE) => {
                let participants = word.participants as usize;
                let waits = self.waits_in_loop(job);
                // Acquire, partner: none. It comes after the looks at the threads.
                let now = slot.word(Ordering::Acquire).participants as usize;
                if waits.len() == participants && now == participants {
                    for wait in &waits {
                        add_wait(&mut self.names, wait);
                    }
                }
                JobState::Open { participants }
            }
            JobPhase::Running => {
                let thread = self.names.shared.threads.find(place as usize);
                // The job runs before and after this look at the thread, so it is below the wait.
                if let Some(wait) = thread.and_then(|thread| thread.rests_in()) {
                    add_wait(&mut self.names, &wait);
                }
                JobState::Running {
                    thread: thread.map(|thread| thread.index as usize),
                }
            }
            // A scope has links to what its jobs wait for, and waits for the jobs.
            _ if has(Slot::<P>::IS_SCOPE) => JobState::Waiting,
            _ => {
                let graph = &self.names.shared.graph;
                let names = &mut self.names;
                graph.awaited(job, |pred| waits_for.extend(names.named(pred)));
                JobState::Waiting
            }
        };
        // Acquire, partner: the Release store of the number of nodes, in `start`, as above.
        let pending = slot.pending.load(Ordering::Acquire);
        let kind = kind_of::<P>(flags, pending);
        let (pinned_to, state) = self.for_home(job, flags, state);
        let in_scope = has(Slot::<P>::IN_SCOPE) && has(Slot::<P>::HAS_PARENT);
        Some(LiveJob {
            id,
            label,
            kind,
            state,
            waits_for,
            has_deadline,
            is_pending: kind == JobKind::Future
                && state == JobState::Waiting
                && has(Slot::<P>::IS_OPEN_EVENT),
            lane: self.names.shared.graph.lane_of(job).into(),
            pinned_to,
            scope: in_scope.then(|| JobId::new(self.names.shared.id, parent)),
        })
    }

    /// The thread that the job is pinned to, and its state: if nothing holds it back but that thread, it is
    /// ready.
    fn for_home(&self, job: Ticket, flags: u32, state: JobState) -> (Option<usize>, JobState) {
        let pinned = self.names.shared.pinned.get();
        let pinned = pinned.filter(|_| flags & Slot::<P>::IS_PINNED != 0);
        match pinned.and_then(|pinned| pinned.home_of(job)) {
            Some((thread, true)) if state == JobState::Waiting => (Some(thread), JobState::Ready),
            Some((thread, _)) => (Some(thread), state),
            None => (None, state),
        }
    }

    /// The waits of threads that take part in this loop.
    fn waits_in_loop(&self, job: Ticket) -> Vec<PostedWait> {
        let threads = &self.names.shared.threads;
        let here = self.participants.iter().filter(|(of, _)| *of == job);
        here.filter_map(|(_, slot)| threads.get(*slot).rests_in_loop(job))
            .collect()
    }
}

/// Whether the job has ended although its slot does not say so yet. Only jobs that can be named have a list
/// that is closed.
fn has_closed<P: Platform>(slot: &Slot<P>, job: Ticket) -> bool {
    // Acquire, partner: the Release store in `make`. If these are the flags of the slot's next job, this one
    // has ended, or is found to have changed.
    let flags = slot.flags.load(Ordering::Acquire);
    flags & Slot::<P>::IS_ANONYMOUS == 0 && slot.has_ended(job)
}

/// What sort of job has these flags. `pending`: how many jobs it waits for.
fn kind_of<P: Platform>(flags: u32, pending: u32) -> JobKind {
    let has = |flag| flags & flag != 0;
    if has(Slot::<P>::IS_RANGE) {
        JobKind::Loop
    } else if has(Slot::<P>::IS_FUTURE) {
        JobKind::Future
    } else if has(Slot::<P>::HAS_BODY) {
        JobKind::Body
    } else if has(Slot::<P>::IS_OPEN_EVENT) {
        JobKind::Event
    } else if has(Slot::<P>::IS_SCOPE) && has(Slot::<P>::OF_RUN) {
        JobKind::Graph {
            nodes_left: pending as usize,
        }
    } else if has(Slot::<P>::IS_SCOPE) {
        JobKind::Scope
    } else {
        JobKind::Combination
    }
}
