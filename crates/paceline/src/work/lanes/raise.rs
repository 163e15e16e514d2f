//! A wait raises what it waits for: the job, its unfinished ancestors, and what these wait for, to the lane
//! of the waiter.
//!
//! The way to them is that of a deadlock check (`wait/deadlock.rs`): from a job that is held back to its
//! unfinished predecessors; from a job that runs to what its thread waits for in the middle of it; from a
//! scope, and from a job that has opened one, to the scope's jobs. The latter have no list. Those that are
//! ready are found in the queues. Those that are held back find the scope's flags when they become ready
//! (`Graph::lane_of`), and so do those that run, when they next wait. Those that run and wait already are
//! found by their threads, which have said so.
//!
//! A job that was raised says so in its flags, and a later raise to the same lane stops there. So each edge
//! is crossed at most twice in its life, by whatever number of waits. What is added later is raised by the
//! thread that adds it: an edge by [`Context::raise_new_predecessor`], a wait by the waiter itself, since it
//! is in the lane that its job was raised to. In each case both sides write, fence and look, as in the module
//! above.
//!
//! It is iterative, and bounded by the number of jobs. (Muller, Acar and Harper, "Competitive Parallelism:
//! Getting Your Priorities Right", 2018, rule such waits out by types; Unity's `Complete` moves a job and its
//! dependencies forward.)

use event::Nanos;
use platform::{Atomic, Ordering, Platform};

use super::Context;
use crate::queues::Queue;
use crate::store::{JobPhase, LaneFlags, Set, Slot, Ticket};
use crate::work::thread_slot::ThreadSlot;

/// One raise in progress.
struct Raise<'c, 'a, P: Platform> {
    cx: &'c Context<'a, P>,
    lane: LaneFlags,
    /// The job that this thread is about to run in its wait, so that no other thread is asked to.
    own: Ticket,
    /// Jobs to visit, all as far from the first one.
    next: Vec<Ticket>,
    /// Jobs that have just been raised, with their flags from before. Between visits it is empty.
    raised: Vec<(Ticket, u32)>,
    /// Jobs visited that jobs in the queues may be parts of.
    wholes: Set<Ticket>,
}

impl<P: Platform> Context<'_, P> {
    /// This thread is going to wait for the job, and has said so in its slot. A look that does not wait,
    /// since its deadline has come, raises nothing.
    ///
    /// Returns whether the caller has to take back, when the wait has ended, that the thread waits in the
    /// middle of a part of something.
    #[inline]
    pub(crate) fn raise_awaited(&self, job: Ticket, deadline: Nanos) -> bool {
        self.shared.lanes.are_used() && self.raise_awaited_until(job, deadline)
    }

    #[cold]
    fn raise_awaited_until(&self, job: Ticket, deadline: Nanos) -> bool {
        let is_first = self.says_that_it_is_part();
        if deadline == Nanos::MAX || self.shared.platform.now() < deadline {
            // SeqCst, partner: the fence of a thread that raises the job that this thread is in the middle
            // of: it sees what this thread waits for, or this thread is in that lane already.
            P::fence(Ordering::SeqCst);
            let runs_it = deadline == Nanos::MAX && self.has_stack();
            let own = if runs_it { job } else { Ticket::NONE };
            self.raise(vec![job], self.lane(), own);
        }
        is_first
    }

    /// If this thread is in the middle of a job of a scope, its slot says so from now on. Returns whether it
    /// did not before: then this is the outermost such wait.
    fn says_that_it_is_part(&self) -> bool {
        let job = self.current_job();
        // Relaxed, all of these: flags that do not change, the owner's word, and the fence of the caller.
        let is_part =
            |job| self.shared.slot(job).flags.load(Ordering::Relaxed) & Slot::<P>::IN_SCOPE != 0;
        let said = self.thread.waits_in_part.load(Ordering::Relaxed) != 0;
        let says = !said && !job.is_none() && is_part(job);
        if says {
            self.thread.waits_in_part.store(1, Ordering::Relaxed);
        }
        says
    }

    /// Raises jobs and what they wait for. `own`: the job that this thread is about to run.
    fn raise(&self, jobs: Vec<Ticket>, lane: LaneFlags, own: Ticket) {
        if !lane.is_urgent() {
            return;
        }
        let mut raise = Raise {
            cx: self,
            lane: lane.or(LaneFlags::BACKGROUND), // Without a tag.
            own,
            next: jobs,
            raised: Vec::new(),
            wholes: Set::default(),
        };
        raise.run();
    }

    /// A job has got another predecessor, after a fence of this thread's. If the job was raised, so is what
    /// it waits for now.
    #[cold]
    pub(crate) fn raise_new_predecessor(&self, job: Ticket) {
        // Relaxed: the fences decide.
        let flags = self.shared.slot(job).flags.load(Ordering::Relaxed);
        let lane = LaneFlags::raised_to(flags);
        if lane == LaneFlags::BACKGROUND {
            return;
        }
        let mut preds = Vec::new();
        self.graph().awaited(job, |pred| preds.push(pred));
        self.raise(preds, lane, Ticket::NONE);
    }
}

impl<P: Platform> Raise<'_, '_, P> {
    fn run(&mut self) {
        let mut known = 0;
        loop {
            while !self.next.is_empty() {
                self.visit_next();
            }
            if self.wholes.len() == known {
                break;
            }
            known = self.wholes.len();
            self.find_parts();
        }
        self.cx.resume_raised_yielders();
        self.cx.publish(Queue::Own, false);
    }

    /// Raises all jobs to visit, and then looks what these wait for. There is one fence for all of them.
    #[inline(never)]
    fn visit_next(&mut self) {
        let mut raised = std::mem::take(&mut self.raised);
        while let Some(job) = self.next.pop() {
            if let Some(before) = self.add_flags(job) {
                raised.push((job, before));
            }
        }
        // SeqCst, partner: the fence of the thread that makes such a job ready, adds an edge to it, or waits
        // in the middle of it (G of the module above).
        P::fence(Ordering::SeqCst);
        for (job, before) in raised.drain(..) {
            self.look_behind(job, before);
        }
        self.raised = raised; // Its memory is for the next ones.
    }

    /// Returns the flags from before, unless the job was raised before or is over.
    #[cold]
    fn add_flags(&self, job: Ticket) -> Option<u32> {
        let slot = self.cx.shared.slot(job);
        // Relaxed, both: hints. A job that is not over now was not over when its flags were read.
        let flags = slot.flags.load(Ordering::Relaxed);
        if slot.is_over(job) || LaneFlags::raised_to(flags).includes(self.lane) {
            return None;
        }
        // Relaxed: the fence decides. If the job ends meanwhile, the slot's next job may be raised without
        // need. To take that back might undo a raise that is needed.
        Some(slot.flags.fetch_or(self.lane.raised(), Ordering::Relaxed))
    }

    /// What a job waits for is to be visited. A job that is ready is queued in its new lane.
    #[cold]
    fn look_behind(&mut self, job: Ticket, flags: u32) {
        let cx = self.cx;
        let slot = cx.shared.slot(job);
        // Acquire, partner: the Release stores of the state: the links of a job that waits.
        let word = slot.word(Ordering::Acquire);
        if word.is_over(job) {
            return;
        }
        match word.phase {
            JobPhase::Waiting => {
                cx.graph().awaited(job, |pred| self.next.push(pred));
                if flags & Slot::<P>::IS_SCOPE != 0 {
                    self.wholes.insert(job, ());
                }
            }
            JobPhase::Ready => self.queue_again(job, flags),
            JobPhase::Open => {
                self.wholes.insert(job, ());
                self.queue_again(job, flags);
            }
            JobPhase::Running => {
                self.wholes.insert(job, ());
                self.visit_awaited_in(job, slot);
            }
            JobPhase::Free | JobPhase::Settled => {}
        }
    }

    /// Puts a second ticket of a job that is ready, or of a range that others may join, into the queue of the
    /// lane, if it was in a lower one.
    #[inline(never)]
    fn queue_again(&self, job: Ticket, flags: u32) {
        let was_there = LaneFlags::of(flags).includes(self.lane) && !LaneFlags::is_ahead(flags);
        if job != self.own && !was_there {
            self.cx.enqueue_in(self.lane, job, Queue::Own);
        }
    }

    /// The job that the runner of this one waits for in the middle of it is to be visited.
    #[cold]
    fn visit_awaited_in(&mut self, job: Ticket, slot: &Slot<P>) {
        // Relaxed, as for a deadlock check: the place was set to nowhere before the job was ready.
        let thread = slot.place.load(Ordering::Relaxed) as usize;
        if let Some(thread) = self.cx.shared.threads.find(thread)
            && !slot.is_over(job)
        {
            self.visit_awaited_by(thread);
        }
    }

    #[inline(never)]
    fn visit_awaited_by(&mut self, thread: &ThreadSlot<P>) {
        // Relaxed: the fences decide.
        let awaited = Ticket(thread.waits_for.load(Ordering::Relaxed));
        if !awaited.is_none() && self.cx.graph().slots.exists(awaited.index()) {
            self.next.push(awaited);
        }
    }

    /// The parts of raised jobs are to be visited.
    fn find_parts(&mut self) {
        self.find_queued_parts();
        self.find_waiting_parts();
    }

    /// Those of which a thread is in the middle in a wait, and what threads wait for in the middle of loops.
    #[cold]
    fn find_waiting_parts(&mut self) {
        let cx = self.cx;
        let mut has_parts = false;
        for thread in cx.shared.threads.iter() {
            if thread.index == cx.thread.index {
                continue;
            }
            // Relaxed: the fences decide.
            has_parts |= thread.waits_in_part.load(Ordering::Relaxed) != 0;
            let shared = thread.innermost_loop();
            if !shared.is_none() && self.is_part(shared) {
                self.visit_awaited_by(thread);
            }
        }
        if !has_parts {
            return;
        }
        for (index, slot) in cx.graph().slots.iter() {
            // Acquire, partner: the CAS of the claim: whose the slot is, and the job's scope.
            let word = slot.word(Ordering::Acquire);
            let job = Ticket::new(index, word.generation);
            if word.phase == JobPhase::Running && self.is_part(job) {
                self.next.push(job);
            }
        }
    }

    /// Whether the job is one of a scope that was raised, or that a raised job has opened, or is one of these
    /// itself.
    #[inline(never)]
    fn is_part(&self, job: Ticket) -> bool {
        let graph = self.cx.graph();
        let is_whole = |job| self.wholes.contains_key(&job);
        graph.slots.exists(job.index()) && (is_whole(job) || graph.any_whole(job, is_whole))
    }

    /// Those that lie in the queues of lower lanes.
    #[cold]
    fn find_queued_parts(&mut self) {
        let (cx, lane) = (self.cx, self.lane);
        let mut parts = Vec::new();
        let mut look = |ticket: Ticket| {
            if self.is_part(ticket) {
                parts.push(ticket);
            }
            false
        };
        if cx.shared.lanes.may_have_parts() {
            cx.shared.lanes.backlog.scan(&mut look);
            if let Some(extra) = cx.extra_lanes() {
                extra.scan_beside(&mut look);
            }
        }
        if lane == LaneFlags::FRAME {
            cx.shared.injector.scan(&mut look);
            if let Some(extra) = cx.extra_lanes() {
                extra.scan(&mut look);
            }
            for thread in cx.shared.threads.iter() {
                for deque in std::iter::once(&thread.deque).chain(&thread.inbox) {
                    deque.scan(&mut look);
                }
            }
        }
        self.next = parts;
    }
}
