//! A node in a run: it becomes ready, it runs or is passed over, and it releases what comes after it.

use std::ptr::NonNull;

use event::EventKind;
use platform::{Atomic, Omission, Ordering, Platform, SharedCell};

use super::{Built, BuiltNode, Successor};
use crate::access::Places;
use crate::border::{Payload, caught};
use crate::graph::Ending;
use crate::queues::Queue;
use crate::store::{Body, BodyTable, LaneFlags, Rank, Slot, Ticket};
use crate::work::context::Context;

/// How a node ended, for those that come after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    Done,
    /// A condition that is not true, or a node that was not run because of one.
    False,
    /// It, or a node that it comes after, panicked.
    Failed,
}

/// Nodes that are ready and get no job of their own, on the thread that found them ready: a list through the
/// nodes, so that it needs no memory and no depth of calls.
pub(super) struct Passed {
    /// The first one, plus one.
    first: u32,
    /// The best of those with a rank.
    kept: Option<(Rank, Ticket)>,
    /// How many of the others are in the queue for such jobs, and not announced.
    queued: u32,
    /// The job whose end made them ready, if it was one: what comes after them comes after it.
    by: Ticket,
}

impl Passed {
    pub(super) fn new(by: Ticket) -> Passed {
        Passed {
            first: 0,
            kept: None,
            queued: 0,
            by,
        }
    }
}

/// The body of a node's job.
struct NodeJob {
    built: NonNull<()>,
    node: u32,
}

/// The functions of such bodies.
struct NodeTable<P>(std::marker::PhantomData<P>);

impl<P: Platform> NodeTable<P> {
    const TABLE: BodyTable = BodyTable {
        run: |body, context| {
            // SAFETY: the table is stored beside a `NodeJob`, in a slot of a job system on `P`.
            let (job, cx) =
                unsafe { (Body::take::<NodeJob>(body), context.get::<Context<'_, P>>()) };
            // SAFETY: the graph stays where it is until the run has been waited for, and this node is part of
            // the run.
            let built = unsafe { job.built.cast::<Built<'_, P>>().as_ref() };
            built.run_job(cx, job.node);
        },
        join: |_, _, _| unreachable!("only ranges can be joined"),
        discard: |_| {}, // It owns nothing.
        drop_result: |_| {},
    };
}

impl<'b, P: Platform> Built<'b, P> {
    fn node(&self, node: u32) -> &BuiltNode<'b, P> {
        &self.nodes[node as usize]
    }

    /// The scope of this run.
    fn run_ticket(&self) -> Ticket {
        // Relaxed: published with the nodes of the run.
        Ticket(self.run.load(Ordering::Relaxed))
    }

    /// Runs a node's job, which this thread has claimed, and ends it. The job is over before any that comes
    /// after it is made. The run counts it at last: the graph is there until then.
    fn run_job(&self, cx: &Context<'_, P>, node: u32) {
        let (graph, job, run) = (cx.graph(), cx.current_job(), self.run_ticket());
        let slot = cx.shared.slot(job);
        // Relaxed: acquired with the claim.
        let flags = slot.flags.load(Ordering::Relaxed);
        cx.thread.counters.jobs.add(1);
        cx.body_begins(job, slot);
        // Relaxed: published with the nodes of the run.
        let rank = Rank(self.node(node).rank_of_loops.load(Ordering::Relaxed));
        let called = cx.with_rank(rank, || self.call(cx, node));
        cx.body_has_ended(job, slot);
        let how = ended(&called);
        let ending = called.map_or_else(Ending::Panicked, |_| Ending::Done);
        graph.finish_uncounted(job, slot, flags, ending, Queue::Own);
        let takes_next = cx.goes_on_with_next();
        cx.in_frame(run, || {
            let mut passed = Passed::new(job);
            self.release_successors(cx, node, how, &mut passed);
            self.pass_all(cx, &mut passed);
            self.keep(cx, passed, takes_next);
        });
        if !P::omits(Omission::AnnounceFan) && cx.own(|own| own.fresh) > 1 {
            // Several threads can go on: `after_job` wakes them at once. Otherwise one is woken when this
            // thread next looks, and the rest after its next job.
            cx.publish(Queue::Own, false);
        }
        graph.finished_in(run, Queue::Own);
        cx.after_job();
    }

    /// Calls the body.
    fn call(&self, cx: &Context<'_, P>, number: u32) -> Result<bool, Payload> {
        let node = self.node(number);
        // Relaxed: published with the nodes of the run.
        let timed = self.timed.load(Ordering::Relaxed);
        let begun = (timed != 0).then(|| cx.shared.platform.now());
        // SAFETY: the places were written before the run, and nothing writes them while it lasts.
        let places = unsafe { self.places.with(|places| &*places) };
        // SAFETY: a node is run once a run, by one thread, and the runs follow each other: this thread has
        // the body to itself. The edges brought what earlier nodes did (see `release_successors`).
        let called = unsafe {
            node.body.with_mut(|body| match &mut *body {
                Some(body) => caught(|| body(cx, Places(places))),
                None => Ok(true),
            })
        };
        if let Some(begun) = begun {
            let time = cx.shared.platform.now() - begun;
            // SAFETY: as for the body.
            unsafe {
                let timing = &self.cold[number as usize].timing;
                timing.with_mut(|timing| {
                    if timed & Self::MEASURES != 0 {
                        (*timing).add(time);
                    }
                    if timed & Self::LEARNS != 0 {
                        (*timing).learn(time);
                    }
                });
            }
        }
        called
    }

    /// A node has ended: counts it down in those that come after it, and goes on with those that are ready.
    fn release_successors(&self, cx: &Context<'_, P>, node: u32, how: Ended, passed: &mut Passed) {
        let (first, end) = self.node(node).successors;
        for &successor in &self.successors[first as usize..end as usize] {
            self.release(cx, successor, how, passed);
        }
    }

    #[inline]
    fn release(&self, cx: &Context<'_, P>, successor: Successor, how: Ended, passed: &mut Passed) {
        let number = successor.node();
        let node = self.node(number);
        // Relaxed, both: published by the subtraction. All threads that write write the same.
        if how == Ended::Failed {
            node.failed.store(1, Ordering::Relaxed);
        } else if how == Ended::False && successor.is_condition() {
            node.skipped.store(1, Ordering::Relaxed);
        }
        if node.predecessors > 1 {
            // AcqRel, partner: the other subtractions of this count: the thread that takes the last one sees
            // what all predecessors did, and passes it on to the thread that runs the node.
            let before = node.left.fetch_sub(1, Ordering::AcqRel);
            debug_assert!(before > 0, "node {number} is released too often");
            if before > 1 {
                return;
            }
            // Relaxed: for the next run, which begins when this node, and so this thread's part, is over.
            node.left.store(node.predecessors, Ordering::Relaxed);
        }
        self.is_ready(cx, number, passed);
    }

    /// Nothing holds the node back: makes its job, or leaves it to another way.
    pub(super) fn is_ready(&self, cx: &Context<'_, P>, number: u32, passed: &mut Passed) {
        let node = self.node(number);
        if node.is_on_main {
            self.post_to_main(cx, number, passed.by);
        } else if !node.has_body || self.is_left_out(node) || !self.make_job(cx, number, passed) {
            // Relaxed: the list is this thread's.
            node.next.store(passed.first, Ordering::Relaxed);
            passed.first = number + 1;
        }
    }

    /// Whether the node is not to be run.
    fn is_left_out(&self, node: &BuiltNode<'b, P>) -> bool {
        // Relaxed, both: acquired with the count.
        node.failed.load(Ordering::Relaxed) + node.skipped.load(Ordering::Relaxed) > 0
    }

    /// Makes the job of a node. False if there is no slot for it.
    #[inline]
    fn make_job(&self, cx: &Context<'_, P>, number: u32, passed: &mut Passed) -> bool {
        let Some((job, slot)) = self.new_job(cx, number, passed.by) else {
            return false;
        };
        // Relaxed: published with the nodes of the run.
        match Rank(self.node(number).rank.load(Ordering::Relaxed)) {
            Rank::NONE => cx.graph().make_ready(job, slot, Queue::Own),
            rank => self.make_ranked(cx, (rank, job), slot, passed),
        }
        true
    }

    /// The job of a node with a rank: this thread keeps the best one for itself, and the others go into the
    /// queue of such jobs. Jobs of another lane go the way of that.
    #[inline(never)]
    fn make_ranked(
        &self,
        cx: &Context<'_, P>,
        (rank, job): (Rank, Ticket),
        slot: &Slot<P>,
        passed: &mut Passed,
    ) {
        // Relaxed: the job is this thread's.
        let flags = slot.flags.load(Ordering::Relaxed);
        if !LaneFlags::is_plainly_normal(flags) {
            cx.graph().make_ready(job, slot, Queue::Own);
            return;
        }
        // Relaxed: published with the state.
        slot.place.store(rank.as_place(), Ordering::Relaxed);
        let before = passed.kept.get_or_insert((rank, job));
        if before.1 == job {
            return;
        }
        let mut other = (rank, job);
        if rank > before.0 {
            std::mem::swap(before, &mut other);
        }
        let (rank, job) = other;
        cx.graph().make_ready_here(job, cx.shared.slot(job));
        cx.queue_ranked(job, rank);
        passed.queued += 1;
    }

    /// The best of the nodes that became ready. A worker that takes its next ticket now keeps it in its
    /// deque. In the deque of any other thread it would be found last.
    #[inline]
    pub(super) fn keep(&self, cx: &Context<'_, P>, passed: Passed, takes_next: bool) {
        let Some((rank, job)) = passed.kept else {
            return;
        };
        let mut queued = passed.queued;
        cx.graph().make_ready_here(job, cx.shared.slot(job));
        if takes_next {
            cx.enqueue(job, Queue::Own);
        } else {
            cx.queue_ranked(job, rank);
            queued += 1;
        }
        if queued > 0 {
            cx.announce_ranked(queued, self.run_ticket());
        }
    }

    /// `by`: the job that it comes after, of which the end made it ready.
    #[inline]
    fn new_job<'c>(
        &self,
        cx: &'c Context<'_, P>,
        number: u32,
        by: Ticket,
    ) -> Option<(Ticket, &'c Slot<P>)> {
        let node = self.node(number);
        // Relaxed: published with the nodes of the run.
        let lane = LaneFlags(self.lane.load(Ordering::Relaxed));
        let flags = match (node.has_lane, lane.tag()) {
            (false, _) => node.flags | lane.0,
            (true, None) => node.flags,
            (true, Some(_)) => self.flags_in_frame(node.flags, lane),
        };
        let graph = cx.graph();
        let made = graph.make_numbered(|| node.number, flags, self.run_ticket());
        let (job, slot) = made?;
        if !by.is_none() {
            cx.record(EventKind::Edge, job, by.0);
        }
        let body = NodeJob {
            built: NonNull::from(self).cast(),
            node: number,
        };
        // SAFETY: the job is new, and the table is that of the body. The graph outlives the run.
        unsafe { slot.put_body(body, &NodeTable::<P>::TABLE) };
        Some((job, slot))
    }

    /// The flags of a node that says its lane, in the run of a frame whose normal jobs are in this lane.
    #[cold]
    fn flags_in_frame(&self, flags: u32, lane: LaneFlags) -> u32 {
        flags & !LaneFlags::ALL | LaneFlags::made_in(flags).in_frame(lane).0
    }

    /// A step for the main thread, which calls this.
    pub(super) fn run_on_main(&self, cx: &Context<'_, P>, number: u32) {
        // Relaxed: acquired with the list.
        let by = Ticket(self.cold[number as usize].by.load(Ordering::Relaxed));
        let made = if self.is_left_out(self.node(number)) {
            None
        } else {
            self.new_job(cx, number, by)
        };
        match made {
            Some((job, slot)) => {
                cx.graph().make_ready_here(job, slot);
                let started = cx.start(job, slot);
                debug_assert!(started, "no other thread has the ticket");
            }
            None => {
                let first = number + 1;
                let mut passed = Passed::new(by);
                passed.first = first;
                // Relaxed: the node is in no other list any more.
                self.node(number).next.store(0, Ordering::Relaxed);
                cx.in_frame(self.run_ticket(), || self.pass_all(cx, &mut passed));
                self.keep(cx, passed, false);
            }
        }
        cx.publish(Queue::Own, false);
    }

    /// Ends the nodes on the list, and those that become ready by that and get no job of their own: sync
    /// points, nodes that are left out, and, if the job table is full, any.
    pub(super) fn pass_all(&self, cx: &Context<'_, P>, passed: &mut Passed) {
        while let Some(number) = passed.first.checked_sub(1) {
            let node = self.node(number);
            // Relaxed: the list is this thread's.
            passed.first = node.next.load(Ordering::Relaxed);
            let how = self.pass(cx, number, node);
            self.release_successors(cx, number, how, passed);
            cx.graph().finished_in(self.run_ticket(), Queue::Own);
        }
    }

    fn pass(&self, cx: &Context<'_, P>, number: u32, node: &BuiltNode<'b, P>) -> Ended {
        // Relaxed, all: acquired with the count; set back for the next run, which begins when this node is
        // over.
        let failed = node.failed.load(Ordering::Relaxed) != 0;
        let skipped = node.skipped.load(Ordering::Relaxed) != 0;
        node.failed.store(0, Ordering::Relaxed);
        node.skipped.store(0, Ordering::Relaxed);
        if failed {
            cx.thread.counters.cancelled.add(u64::from(node.has_body));
            Ended::Failed
        } else if skipped {
            Ended::False
        } else {
            let called = self.call(cx, number);
            let how = ended(&called);
            if let Err(payload) = called {
                let run = self.run_ticket();
                let label = self.cold[number as usize].label;
                cx.graph().record_part_panic(run, label, payload);
            }
            how
        }
    }
}

fn ended(called: &Result<bool, Payload>) -> Ended {
    match called {
        Ok(true) => Ended::Done,
        Ok(false) => Ended::False,
        Err(_) => Ended::Failed,
    }
}
