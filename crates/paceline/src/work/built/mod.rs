//! Graphs that are built once and run many times.
#![doc = ""]
#![doc = include_str!("README.md")]

mod main_steps;
mod node;
mod ranking;
mod timing;

use std::panic::Location;

use platform::{Atomic, Lane, Ordering, Os, Platform, SharedCell};

use super::context::Context;
use super::shared::Shared;
use crate::access::{Place, Places};
use crate::border::{UnwindGuard, UserValue, caught};
use crate::error::{ScheduleError, WaitError};
use crate::queues::Queue;
use crate::store::{Label, LabelId, LaneFlags, Slot, Ticket};

use main_steps::MainSteps;
use node::Passed;
use ranking::Ranking;
pub(crate) use timing::Timing;

/// The body of a node: gets the places of the run's data, and says whether the node is true. (Only that of a
/// condition may say no.)
pub(crate) type NodeBody<'b, P> = Box<dyn FnMut(&Context<'_, P>, Places<'_>) -> bool + Send + 'b>;

/// The description of a node, for [`Built::new`].
pub(crate) struct NodePlan<'b, P: Platform> {
    pub(crate) label: Label,
    /// None: there is nothing to run (a sync point).
    pub(crate) body: Option<NodeBody<'b, P>>,
    /// `None`: that of the job that runs the graph.
    pub(crate) lane: Option<Lane>,
    /// It is run by the thread that runs the graph.
    pub(crate) is_on_main: bool,
    pub(crate) predecessors: usize,
    /// The nodes that come after it, and whether they hang on it as a condition.
    pub(crate) successors: Vec<(usize, bool)>,
}

/// What a run needs of each node: a cache line.
#[repr(align(64))]
struct BuiltNode<'b, P: Platform> {
    /// Predecessors that have not ended in this run. The thread that ends the last of them sets it for the
    /// next run.
    left: P::AtomicU32,
    /// 1: a predecessor failed. The thread that finds the node ready sets it back.
    failed: P::AtomicU32,
    /// 1: a condition that it hangs on is false. As above.
    skipped: P::AtomicU32,
    /// The next node in the list that this one is in, plus one. It is in one list at a time, that of a thread
    /// or that of the steps for the main thread.
    next: P::AtomicU32,
    predecessors: u32,
    /// Where its successors are in [`Built::successors`].
    successors: (u32, u32),
    number: LabelId,
    /// The flags of its job.
    flags: u32,
    /// Its lane is in these flags; otherwise it is that of the run.
    has_lane: bool,
    is_on_main: bool,
    has_body: bool,
    /// Touched by the thread that runs the node, of which there is one a run.
    body: P::Cell<Option<NodeBody<'b, P>>>,
    /// Its [`Rank`](crate::store::Rank), and that of loops in its body. Written before a run.
    rank: P::AtomicU32,
    rank_of_loops: P::AtomicU32,
}

const _: () = assert!(size_of::<BuiltNode<'_, Os>>() == 64);

/// The rest of a node, which few runs need.
struct ColdNode<P: Platform> {
    label: Label,
    /// Of a step for the main thread: the job whose end made it ready. Written by the thread that puts it
    /// into the list.
    by: P::AtomicU64,
    /// As the body.
    timing: P::Cell<Timing>,
}

/// A node that comes after another: its number, and whether it hangs on the other as a condition.
#[derive(Clone, Copy)]
struct Successor(u32);

impl Successor {
    const IS_CONDITION: u32 = 1 << 31;

    fn new(node: usize, is_condition: bool) -> Successor {
        let flag = if is_condition {
            Successor::IS_CONDITION
        } else {
            0
        };
        Successor(node as u32 | flag)
    }

    fn node(self) -> u32 {
        self.0 & !Successor::IS_CONDITION
    }

    fn is_condition(self) -> bool {
        self.0 & Successor::IS_CONDITION != 0
    }
}

/// A graph that was built once.
///
/// Invariant: one run at a time. [`Run`] and [`Built::run`] see to it: their callers have the graph to
/// themselves.
pub(crate) struct Built<'b, P: Platform> {
    label: Label,
    nodes: Box<[BuiltNode<'b, P>]>,
    cold: Box<[ColdNode<P>]>,
    successors: Box<[Successor]>,
    roots: Box<[u32]>,
    main: MainSteps<P>,
    main_count: u32,
    /// The scope of the run. The words of a run are written before its first node is made, and read by the
    /// threads that run its nodes.
    run: P::AtomicU64,
    /// The lane of the job that runs the graph, or of the normal jobs of the frame that started it: that of
    /// nodes that say none.
    lane: P::AtomicU32,
    /// Whether bodies are timed: [`MEASURES`](Built::MEASURES), [`LEARNS`](Built::LEARNS).
    timed: P::AtomicU32,
    /// Touched by the thread that has the graph to itself, between runs.
    ranking: P::Cell<Option<Box<Ranking>>>,
    /// Where the data of the run lies.
    places: P::Cell<Vec<Place>>,
}

// SAFETY: the words are atomic. A body and a timing are touched by the one thread that runs their node, and
// the edges order the runs of it. The places and the ranking are written by the thread that has the graph to
// itself, before the run, and read in it. Bodies are Send. What the places lead to may be sent or shared, as
// far as bodies do it (the accesses demand it).
unsafe impl<P: Platform> Sync for Built<'_, P> {}
// SAFETY: as above.
unsafe impl<P: Platform> Send for Built<'_, P> {}

/// A run in progress.
#[must_use = "its end has to be waited for"]
pub(crate) struct Run(Ticket);

impl<'b, P: Platform> Built<'b, P> {
    /// Makes the memory for a graph. `order` of the nodes is that of the roots.
    pub(crate) fn new(cx: &Context<'_, P>, label: Label, plans: Vec<NodePlan<'b, P>>) -> Self {
        let mut successors = Vec::new();
        let mut roots = Vec::new();
        let mut nodes = Vec::with_capacity(plans.len());
        let mut cold = Vec::with_capacity(plans.len());
        for (number, plan) in plans.into_iter().enumerate() {
            let first = successors.len() as u32;
            let next = plan.successors.iter();
            successors.extend(next.map(|&(node, when)| Successor::new(node, when)));
            if plan.predecessors == 0 {
                roots.push(number as u32);
            }
            cold.push(ColdNode {
                label: plan.label,
                by: P::AtomicU64::new(0),
                timing: P::Cell::new(Timing::default()),
            });
            nodes.push(P::on_own_lines(|| {
                BuiltNode::new(cx, plan, (first, successors.len() as u32))
            }));
        }
        cx.graph().reserve(nodes.len() as u32);
        Built {
            label,
            main_count: nodes.iter().filter(|node| node.is_on_main).count() as u32,
            nodes: nodes.into(),
            cold: cold.into(),
            successors: successors.into(),
            roots: roots.into(),
            main: MainSteps::new(),
            run: P::AtomicU64::new(0),
            lane: P::AtomicU32::new(0),
            timed: P::AtomicU32::new(0),
            ranking: P::Cell::new(None),
            places: P::Cell::new(Vec::new()),
        }
    }

    /// Runs the graph. Meanwhile this thread calls `beside`, and then runs nodes. Returns when both are over.
    ///
    /// # Errors
    /// If there is no slot for the run: then nothing has run. If a node failed: the inner error.
    ///
    /// # Safety
    /// The caller has the graph to itself, and the places lead to the data that its bodies expect.
    pub(crate) unsafe fn run<R>(
        &self,
        cx: &Context<'_, P>,
        places: Vec<Place>,
        beside: impl FnOnce() -> R,
    ) -> Result<(R, Option<WaitError>), ScheduleError> {
        // SAFETY: the caller's promise.
        let run = unsafe { self.start(cx, places, cx.current_job(), cx.lane())? };
        let guard = UnwindGuard::<P>::new("a graph whose jobs borrow");
        let result = caught(beside);
        let error = self.wait(cx, &run);
        guard.disarm();
        match result {
            Ok(result) => Ok((result, error)),
            Err(payload) => {
                if let Some(other) = error.and_then(WaitError::into_payload) {
                    let other = UserValue::new(other);
                    cx.in_frame(Ticket::NONE, || cx.shared.panics.discard(other));
                }
                payload.resume()
            }
        }
    }

    /// Begins a run. The nodes that nothing holds back are published. `parent`: the job that waits for it.
    /// `lane`: that of nodes that say none.
    ///
    /// # Errors
    /// If there is no slot for the run.
    ///
    /// # Panics
    /// If there is no stack left to wait for it. Then nothing has run.
    ///
    /// # Safety
    /// As for [`run`](Built::run), until the run has been waited for.
    pub(crate) unsafe fn start(
        &self,
        cx: &Context<'_, P>,
        places: Vec<Place>,
        parent: Ticket,
        lane: LaneFlags,
    ) -> Result<Run, ScheduleError> {
        cx.check_stack();
        let graph = cx.graph();
        let flags = Slot::<P>::IS_SCOPE | Slot::<P>::OF_RUN;
        let made = graph.make(&self.label, flags, parent);
        let (run, slot) = made.ok_or_else(|| graph.full())?;
        // One for each node, and one for this thread. Release, partner: the CAS in `hold_back`: that the slot
        // is another job's now.
        slot.pending
            .store(self.nodes.len() as u32 + 1, Ordering::Release);
        // SAFETY: no node of this graph runs: the caller has it to itself.
        unsafe {
            self.places.with_mut(|kept| *kept = places);
            self.rank_for_run(cx);
        }
        // Relaxed, both: published with the nodes.
        self.run.store(run.0, Ordering::Relaxed);
        self.lane.store(lane.0, Ordering::Relaxed);
        let mut passed = Passed::new(Ticket::NONE);
        for &root in &self.roots {
            self.is_ready(cx, root, &mut passed);
        }
        cx.in_frame(run, || self.pass_all(cx, &mut passed));
        self.keep(cx, passed, false);
        graph.finished_in(run, Queue::Own);
        graph.flush_finished();
        cx.wake_for_all();
        Ok(Run(run))
    }

    /// Runs the steps for this thread, helps with the rest, and returns when all is over: with the first
    /// failure.
    pub(crate) fn wait(&self, cx: &Context<'_, P>, run: &Run) -> Option<WaitError> {
        let &Run(run) = run;
        self.do_main_steps(cx, run);
        // A node that waits for this thread's job finds the cycle in its own wait. Nodes that have not begun
        // wait for no job that they could be dropped for.
        cx.wait_for_borrowers(run, |_| ());
        cx.graph().take_failure(run)
    }

    /// The error of a wait for the run in one of its own jobs.
    pub(crate) fn cycle_of_wait(&self, cx: &Context<'_, P>, run: &Run) -> Option<WaitError> {
        cx.cycle_inside(run.0)
    }

    /// Whether the run is over, apart from its failure.
    pub(crate) fn is_over(&self, shared: &Shared<P>, run: &Run) -> bool {
        shared.slot(run.0).has_ended(run.0)
    }

    /// The places of the last run, for the next one to be filled in. Their contents mean nothing.
    ///
    /// # Safety
    /// No run is in progress.
    pub(crate) unsafe fn take_places(&self) -> Vec<Place> {
        // SAFETY: the caller's promise.
        unsafe { self.places.with_mut(|kept| std::mem::take(&mut *kept)) }
    }

    /// In `timed`: for the program.
    const MEASURES: u32 = 1;
    /// In `timed`: for the order of the nodes.
    const LEARNS: u32 = 2;

    /// Whether bodies are timed from the next run on. For a caller that has the graph to itself.
    pub(crate) fn set_timed(&self, is_timed: bool) {
        self.set_flag(Self::MEASURES, is_timed);
    }

    fn set_flag(&self, flag: u32, is_set: bool) {
        // Relaxed, both: published with the nodes of the next run.
        let others = self.timed.load(Ordering::Relaxed) & !flag;
        let flags = others | if is_set { flag } else { 0 };
        self.timed.store(flags, Ordering::Relaxed);
    }

    /// The timing of a node.
    ///
    /// # Safety
    /// No run is in progress.
    pub(crate) unsafe fn timing(&self, node: usize) -> Timing {
        // SAFETY: the caller's promise.
        unsafe { self.cold[node].timing.with(|timing| *timing) }
    }
}

impl<'b, P: Platform> BuiltNode<'b, P> {
    fn new(cx: &Context<'_, P>, plan: NodePlan<'b, P>, successors: (u32, u32)) -> Self {
        let of_scope = Slot::<P>::IS_ANONYMOUS | Slot::<P>::IN_SCOPE;
        let mut flags = Slot::<P>::HAS_BODY | Slot::<P>::OF_RUN | of_scope;
        if let Some(lane) = plan.lane {
            flags |= LaneFlags::from(lane).0;
            cx.shared.note_lane(lane);
        }
        BuiltNode {
            left: P::AtomicU32::new(plan.predecessors as u32),
            failed: P::AtomicU32::new(0),
            skipped: P::AtomicU32::new(0),
            next: P::AtomicU32::new(0),
            predecessors: plan.predecessors as u32,
            successors,
            number: cx.graph().label_number(&plan.label),
            flags,
            has_lane: plan.lane.is_some(),
            is_on_main: plan.is_on_main,
            has_body: plan.body.is_some(),
            body: P::Cell::new(plan.body),
            rank: P::AtomicU32::new(0),
            rank_of_loops: P::AtomicU32::new(0),
        }
    }
}

/// The label of a graph.
#[track_caller]
pub(crate) fn label_here(name: &'static str) -> Label {
    Label {
        name,
        site: Location::caller(),
    }
}
