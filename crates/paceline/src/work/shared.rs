//! The data that all threads of a job system share.

use std::num::NonZeroU32;
use std::sync::{Arc, Weak};

use event::{Nanos, Sink};
use platform::{Atomic, Late, Padded, Platform};

use super::checks::Checks;
use super::context::Context;
use super::ending::EndOfSystem;
use super::hints::Hints;
use super::lanes::{Lanes, SHARES, ShareSetting, Yielded};
use super::range::RangeBlock;
use super::repeat::late_work::Repeat;
use super::report::LongWaits;
use super::slow::Slow;
use super::thread_record::Host;
use super::thread_slot::ThreadKind;
use super::thread_slots::ThreadSlots;
use super::workers::{Spawner, WorkerThreads};
use crate::adapt::{Adapt, caches};
use crate::border::Panics;
use crate::graph::{Failures, Graph, Wakers};
use crate::hooks::{Hooks, JobMoment};
use crate::limits::{JOBS_MAX, RECORDS_MAX};
use crate::policy::{SpinPolicy, WaitRule, WakeCost};
use crate::queues::{Idle, Injector, Queue};
use crate::record::Recorder;
use crate::stats::Stats;
use crate::store::{
    CancelToken, LINK_BLOCKS_MAX, Label, Labels, LaneFlags, Links, Rank, Slab, Slot, Ticket,
};

/// What all threads share. (Programs know another [`Shared`](crate::Shared).)
pub(crate) use self::SystemState as Shared;

/// The job system itself; [`JobSystem`](crate::JobSystem) is the handle to it.
pub(crate) struct SystemState<P: Platform> {
    pub(crate) platform: P,
    pub(crate) id: NonZeroU32,
    pub(crate) this: Weak<Shared<P>>,
    pub(crate) graph: Graph<P>,
    pub(crate) blocks: Slab<P, RangeBlock<P>>,
    pub(crate) threads: ThreadSlots<P>,
    pub(crate) idle: Idle<P>,
    pub(crate) injector: Injector<P>,
    pub(crate) lanes: Lanes<P>,
    /// Set before the first job is made that goes before a waiter's own: one that is pinned to a thread, has
    /// a rank, or is of a lane with a share. One look tells waits that there is nothing of the kind.
    pub(crate) some_before_own: Late<()>,
    /// Made for the first thread that jobs are pinned to.
    pub(crate) pinned: Late<Box<dyn PinnedJobs<P>>>,
    /// Made with the first graph that begins first what holds up the rest, lane with a share, or frame.
    pub(crate) extra: Late<Box<dyn ExtraLanes<P>>>,
    /// Made with the first token.
    pub(crate) tokens: Late<Box<dyn TokenTable<P>>>,
    /// Made with the job system, if jobs of frames begin in the order of what hangs on them.
    pub(crate) order: Late<Box<dyn FrameOrder<P>>>,
    /// Made with the first idempotent job.
    pub(crate) repeats: Late<Box<dyn RepeatTable<P>>>,
    pub(crate) slow: Slow<P>,
    pub(crate) workers: WorkerThreads<P>,
    pub(crate) adapt: Adapt<P>,
    pub(crate) spin: SpinPolicy,
    pub(crate) wait_rule: WaitRule,
    /// The cost of a wake-up.
    pub(crate) wake_cost: Padded<WakeCost<P>>,
    pub(crate) frames: P::AtomicU64,
    /// Empty while nothing has asked for events.
    pub(crate) recorder: Late<Recorder<P>>,
    /// Set when the first background job comes to a checkpoint.
    pub(crate) resume: Late<Resume<P>>,
    pub(crate) hooks: Hooks,
    /// Panics of the program's code that make no job fail.
    pub(crate) panics: Panics<P>,
    /// How far its end is.
    pub(crate) ending: EndOfSystem<P>,
    pub(crate) long_waits: LongWaits<P>,
    pub(crate) checks: Checks<P>,
    pub(crate) hints: Hints,
    pub(crate) fork_epoch: u32,
    /// For each CPU, by its number: its last-level cache. Empty if there is only one.
    caches: Vec<u32>,
}

/// The parts of a job system. The builder fills them in.
pub(crate) struct Parts<P: Platform> {
    pub(crate) platform: P,
    pub(crate) threads: usize,
    pub(crate) guests_max: usize,
    pub(crate) workers_max: usize,
    pub(crate) spares_max: usize,
    pub(crate) queue: usize,
    pub(crate) max_jobs: u32,
    pub(crate) spin: SpinPolicy,
    pub(crate) wait_rule: WaitRule,
    pub(crate) adapt: Adapt<P>,
    pub(crate) sink: Option<Arc<dyn Sink>>,
    pub(crate) recording: bool,
    pub(crate) hooks: Hooks,
    pub(crate) stack_bytes: Option<usize>,
    pub(crate) slice: Option<Nanos>,
    pub(crate) spawner: Option<Spawner<P>>,
    pub(crate) slow_takes_loops: bool,
    pub(crate) background_max: Option<u32>,
    pub(crate) shares: [ShareSetting; SHARES],
    pub(crate) long_waits: LongWaits<P>,
    pub(crate) checks: bool,
    pub(crate) hints: Hints,
}

/// The tokens of jobs that have not begun; see `tokens.rs`.
pub(crate) trait TokenTable<P: Platform>: Send + Sync {
    /// A new job has this token.
    fn add(&self, job: Ticket, token: CancelToken);

    /// The job will not run.
    fn forget(&self, job: Ticket);

    /// Ends a job with a token that this thread has claimed, if the token was cancelled. Otherwise it may
    /// begin.
    fn ends(&self, cx: &Context<'_, P>, job: Ticket, slot: &Slot<P>, flags: u32) -> bool;

    #[cfg(test)]
    fn len(&self) -> usize;
}

/// Idempotent jobs that are not over; see `repeat.rs`.
pub(crate) trait RepeatTable<P: Platform>: Send + Sync {
    /// Notes a new one.
    fn add(&self, job: Ticket, pieces: Weak<dyn Repeat<P>>);

    /// It is over.
    fn forget(&self, job: Ticket);

    /// For a wait that has nothing else to run, and that needs the jobs that are `wanted`: runs pieces of one
    /// that no thread has begun, or one that is late; then returns nothing. Otherwise returns when to look
    /// again.
    fn help(&self, cx: &Context<'_, P>, wanted: &dyn Fn(Ticket) -> bool) -> Option<Nanos>;

    /// Adds what was counted.
    fn add_to(&self, total: &mut Stats);
}

/// What the jobs of frames hang on each other, as it was learnt; see `order/frames.rs`.
pub(crate) trait FrameOrder<P: Platform>: Send + Sync {
    /// A frame with this number begins.
    fn frame_begins(&self, cx: &Context<'_, P>, number: u64, label: &Label);

    /// It ends.
    fn frame_ends(&self, cx: &Context<'_, P>, number: u64);

    /// A frame has made this job, which comes after others and is not published yet: finds its rank.
    fn note(&self, cx: &Context<'_, P>, frame: u64, job: Ticket, after: &[Ticket]);

    /// Writes the rank of this job into its slot, where other threads look for it.
    fn is_about_to_be_ready(&self, job: Ticket, slot: &Slot<P>);

    /// The rank by which helpers come to the loop of a job.
    fn rank_of_loops(&self, job: Ticket) -> Rank;

    /// A body, or a part of it, begins or has ended.
    fn body_moment(&self, cx: &Context<'_, P>, moment: JobMoment, job: Ticket, slot: &Slot<P>);
}

/// What is called when a pinned job becomes ready.
pub(crate) type ReadyHook = Arc<dyn Fn() + Send + Sync>;

/// The threads that jobs are pinned to, and those jobs; see `pinned.rs`.
pub(crate) trait PinnedJobs<P: Platform>: Send + Sync {
    /// Jobs may be pinned to the thread on this thread slot from now on. Returns its number, which it has
    /// until it has left as often as it came.
    fn arrive(&self, thread: u32) -> u32;

    /// What to call whenever a job of this thread becomes ready.
    fn call(&self, pin: u32, hook: ReadyHook);

    /// This thread takes jobs for one caller less. If that was the last one, or the thread is about to end,
    /// it takes no more, and those that are left are called off.
    fn leave(&self, cx: &Context<'_, P>, is_ending: bool);

    /// Notes a new job, which is not published yet. False if there is no such thread.
    fn add(&self, job: Ticket, pin: u32) -> bool;

    /// Hands a job that may run to its thread. If that thread has left, the job becomes ready for all, to be
    /// called off.
    fn hand_over(&self, cx: &Context<'_, P>, job: Ticket);

    /// How many jobs of this thread are ready.
    fn count(&self, cx: &Context<'_, P>) -> usize;

    /// Runs a job of this thread that is ready, or the next one. False if there is none.
    fn run(&self, cx: &Context<'_, P>, which: Option<Ticket>) -> bool;

    /// A job of this thread that is ready, and without which a wait for `target` in the middle of a job does
    /// not end.
    fn find_needed(&self, cx: &Context<'_, P>, target: Ticket) -> Option<Ticket>;

    /// Something waits for something else than before: threads with jobs that are ready, and that they did
    /// not need, may need them now.
    fn waits_have_changed(&self, cx: &Context<'_, P>);

    /// The job will not run, or has.
    fn forget(&self, job: Ticket);

    /// The thread slot of the thread that a job is pinned to, and whether the job waits for nothing else.
    fn home_of(&self, job: Ticket) -> Option<(usize, bool)>;
}

/// Jobs with a rank, and of side lanes, that are ready; see `lanes/extra.rs`. What does not say otherwise is
/// about the former.
pub(crate) trait ExtraLanes<P: Platform>: Send + Sync {
    /// The greatest rank, or [`Rank::NONE`].
    fn best(&self) -> Rank;

    /// Whether a job of either kind is ready.
    fn has_work(&self) -> bool;

    /// How many there are.
    fn len(&self) -> usize;

    /// The caller announces it.
    fn push(&self, job: Ticket, rank: Rank);

    /// Takes a job of a lane with a share that is due. Otherwise the best one of those with a rank, for a
    /// thread that may have kept a better one in its deque: only if it goes before that.
    fn next(&self, cx: &Context<'_, P>) -> Option<Ticket>;

    /// The same for a wait: only if `wanted` accepts the best one. It does not look further, since others
    /// want the queue meanwhile.
    fn next_if(
        &self,
        cx: &Context<'_, P>,
        wanted: &mut dyn FnMut(Ticket) -> bool,
    ) -> Option<Ticket>;

    /// A job of the normal lane, which may have a rank, is ready: queues it. It is announced, unless it went
    /// into `queue`, as others do.
    fn enqueue_by_rank(&self, cx: &Context<'_, P>, job: Ticket, queue: Queue);

    /// This thread does not take the next ticket from its deque: if it has kept one there, it goes into the
    /// queue.
    fn queue_kept(&self, cx: &Context<'_, P>);

    /// Other threads may join an open range, before jobs of lesser ranks. Announces it.
    fn invite(&self, cx: &Context<'_, P>, job: Ticket, rank: Rank);

    /// Takes the best one of all that `wanted` accepts, whatever this thread has kept.
    fn take(&self, wanted: &mut dyn FnMut(Ticket) -> bool) -> Option<Ticket>;

    /// Calls `look` with each of them, in no order, until it returns true. Returns whether it did.
    fn scan(&self, look: &mut dyn FnMut(Ticket) -> bool) -> bool;

    /// Takes a job of a side lane, for a thread that finds none in the normal lane.
    fn next_behind(&self, cx: &Context<'_, P>) -> Option<Ticket>;

    /// A job of a side lane, or of a frame that is ahead, is ready: queues it. It is announced, unless it
    /// went into `queue`, as normal ones do.
    fn enqueue(&self, cx: &Context<'_, P>, lane: LaneFlags, job: Ticket, queue: Queue);

    /// Whether no job of this side lane, or of frames that are ahead, is ready.
    fn is_empty_in(&self, lane: LaneFlags) -> bool;

    /// Calls `look` with each job of a side lane until it returns true. Returns whether it did.
    fn scan_beside(&self, look: &mut dyn FnMut(Ticket) -> bool) -> bool;

    /// How many jobs of side lanes there are.
    fn len_beside(&self) -> usize;

    /// The thread's time is the normal lane's from now on.
    fn work_for_normal_lane(&self, cx: &Context<'_, P>);

    /// The thread, which has a place in a limited lane, rests in the middle of a job, or goes on with it.
    fn rests(&self, cx: &Context<'_, P>, rests: bool);

    /// A frame with this number begins.
    fn frame_begins(&self, number: u64, deadline: Nanos);

    /// It ends. The jobs of the first of those that are left come after no other frame's: they are normal
    /// ones from now on.
    fn frame_ends(&self, cx: Option<&Context<'_, P>>, number: u64);

    /// The lane of the normal jobs of a frame.
    fn lane_of_frame(&self, frame: u64) -> LaneFlags;

    /// The deadline of a job that was made in this lane: that of its frame, as far as the lane says whose the
    /// job is.
    fn deadline_of(&self, lane: LaneFlags) -> Option<Nanos>;
}

/// Has workers go on that have made way; see `lanes/yields.rs`.
type Resume<P> = for<'c, 'a> fn(&'c Context<'a, P>, Yielded) -> bool;

/// The most ranges that several threads run at a time. Further ranges stay on their thread.
const BLOCKS_MAX: u32 = 1 << 12;
/// How many blocks of links there may be for each job.
const LINK_BLOCKS_PER_JOB: u32 = 4;
const _: () = assert!(JOBS_MAX * LINK_BLOCKS_PER_JOB <= LINK_BLOCKS_MAX);

impl<P: Platform> Shared<P> {
    pub(crate) fn new(parts: Parts<P>) -> Arc<Shared<P>> {
        // The parts move into the closure before anything is made of them: what a closure has captured has
        // drop glue of its own.
        Arc::new_cyclic(move |this| Shared::of(parts, this.clone()))
    }

    fn of(parts: Parts<P>, this: Weak<Shared<P>>) -> Shared<P> {
        let threads = parts.threads as u32;
        let slots_max = Slab::<P, Slot<P>>::with_hoards(parts.max_jobs, threads);
        // The order matters on simulated machines. Words made one after the other share a line there, as the
        // fields of a struct do on a real machine.
        let slots = P::on_own_lines(|| Slab::new(parts.max_jobs, threads, Slot::empty));
        let links = P::on_own_lines(|| {
            Slab::new(parts.max_jobs * LINK_BLOCKS_PER_JOB, threads, Links::empty)
        });
        let blocks = P::on_own_lines(|| Slab::new(BLOCKS_MAX, 0, RangeBlock::empty));
        let threads = ThreadSlots::new(parts.threads, parts.guests_max, parts.queue);
        let (idle, injector) = (Idle::new(parts.threads), Injector::new());
        let lanes = Lanes::new(parts.background_max, parts.shares);
        let slow = Slow::new(parts.threads, parts.slow_takes_loops);
        let labels = Labels::new();
        let failures = Failures::new(slots_max, RECORDS_MAX);
        let most = (parts.workers_max, parts.spares_max);
        let workers = WorkerThreads::new(most, parts.stack_bytes, parts.slice, parts.spawner);
        let wake_cost = Padded(WakeCost::fast());
        let graph = Graph {
            slots,
            links,
            labels,
            failures,
            wakers: Wakers::new(),
            late_edges: P::AtomicU32::new(0),
            max_jobs: parts.max_jobs,
        };
        let frames = P::AtomicU64::new(0);
        let (id, fork_epoch) = (platform::fresh_pool_id(), parts.platform.fork_epoch());
        let recorder = parts
            .sink
            .map(|sink| Recorder::new(sink, parts.recording, parts.threads));
        let (panics, ending) = (Panics::new(), EndOfSystem::new());
        Shared {
            id,
            this,
            graph,
            blocks,
            threads,
            idle,
            injector,
            lanes,
            some_before_own: Late::empty(),
            pinned: Late::empty(),
            extra: Late::empty(),
            tokens: Late::empty(),
            order: Late::empty(),
            repeats: Late::empty(),
            slow,
            workers,
            adapt: parts.adapt,
            spin: parts.spin,
            wait_rule: parts.wait_rule,
            wake_cost,
            frames,
            recorder: Late::from(recorder),
            resume: Late::empty(),
            hooks: parts.hooks,
            panics,
            ending,
            long_waits: parts.long_waits,
            checks: Checks::new(parts.checks),
            hints: parts.hints,
            fork_epoch,
            caches: caches(&parts.platform),
            platform: parts.platform,
        }
    }

    /// Whether this process is a child of the one that made the job system.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.platform.fork_epoch() != self.fork_epoch
    }

    pub(crate) fn host(&self) -> Weak<dyn Host> {
        self.this.clone()
    }

    /// Puts tickets into a queue. They are not announced.
    #[inline(never)] // Or it is there once for each lane.
    pub(crate) fn push_to(&self, queue: &Injector<P>, tickets: &[Ticket]) {
        queue.push(tickets, &|ticket| self.slot(ticket).is_over(ticket));
    }

    #[inline]
    pub(crate) fn slot(&self, ticket: Ticket) -> &Slot<P> {
        self.graph.slot(ticket)
    }

    /// Jobs that go before a waiter's own are going to be made.
    pub(crate) fn note_some_before_own(&self) {
        // Refused: there were some before.
        _ = self.some_before_own.set(());
    }

    /// Whether any queue holds a ticket, or a worker has made way, as far as this thread can see.
    pub(crate) fn has_work(&self) -> bool {
        self.has_foreground() || self.lanes.has_background() || self.lanes.yielders().count() > 0
    }

    /// The same for tickets before the background.
    #[inline(never)]
    fn has_foreground(&self) -> bool {
        !self.injector.is_empty()
            || !self.lanes.front.is_empty()
            || self.has_extra()
            || self.threads.iter().any(|thread| {
                thread.deque.len() > 0 || thread.inbox.as_ref().is_some_and(|inbox| inbox.len() > 0)
            })
    }

    /// Whether a job with a rank, or of a side lane, is ready.
    fn has_extra(&self) -> bool {
        self.extra_lanes().is_some_and(|extra| extra.has_work())
    }

    /// Whether a ticket before the background is in a queue, and no worker is idle that would take it.
    pub(crate) fn is_short_of_workers(&self) -> bool {
        let idle = self.idle.load();
        idle.searching == 0 && idle.sleeping == 0 && self.has_foreground()
    }

    /// Whether two CPUs share a last-level cache. An unknown CPU counts as near.
    pub(crate) fn are_near(&self, a: u32, b: u32) -> bool {
        match (self.caches.get(a as usize), self.caches.get(b as usize)) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        }
    }

    pub(crate) fn has_many_caches(&self) -> bool {
        !self.caches.is_empty()
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut total = Stats::default();
        for thread in self.threads.iter() {
            thread.counters.add_to(&mut total);
        }
        self.panics.add_to(&mut total);
        if let Some(repeats) = self.repeats.get() {
            repeats.add_to(&mut total);
        }
        total
    }
}

impl<P: Platform> Host for Shared<P> {
    fn guest_left(&self, thread: u32) {
        let slot = self.threads.get(thread as usize);
        if slot.kind == ThreadKind::Guest {
            if !self.is_forked() {
                // SAFETY: the calling thread has this slot until it leaves.
                let context = unsafe { Context::new(self, slot) };
                context.wake_for_all(); // Of jobs that it scheduled quietly no other thread has heard.
                if let Some(pinned) = self.pinned.get() {
                    pinned.leave(&context, true);
                }
                context.own(|own| self.hints.depart(&mut own.hints, thread));
            }
            slot.posted.depart();
            self.threads.leave(thread);
        }
    }

    fn role_thread_ends(&self) {
        if !self.is_forked() {
            self.adapt.thread_ended(self, None);
        }
    }
}
