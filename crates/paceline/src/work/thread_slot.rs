//! Thread slots: what a thread needs to take part, be it a worker or a thread of the program.
//!
//! Every worker has a thread slot for life. An outside thread is given one the first time it calls into the
//! job system, and keeps it until the thread ends (or the job system does). It does not register, and
//! scheduling from the main thread costs the same as from a worker. Tickets that a departed thread left in
//! its queues can still be stolen, and the next outside thread gets the thread slot. A thread that cannot
//! keep a thread slot is lent one for the length of a call (`entry`).
//!
//! Invariants
//! - A thread slot's `own` part is touched only by the thread that has the slot. [`Context`](crate::Context)
//!   is the only way to it, and cannot leave its thread.
//! - Thread slots are created once, in ascending order, and live as long as the job system.

use event::Nanos;
use platform::{Atomic, Ordering, Padded, Parker, Platform, SharedCell};

use super::fork::ForkList;
use super::hints::HintLocal;
use super::lanes::{BackgroundPlace, ShareLocal};
use super::posted::{Posted, ThreadWords};
use super::range::LoopLocal;
use super::wait::{StackLimits, WaitLocal};
use crate::adapt::{AdaptLocal, WakeReport, WorkerWords};
use crate::graph::GraphLocal;
use crate::policy::SpinHabit;
use crate::queues::Deque;
use crate::record::RecordLocal;
use crate::stats::Counters;
use crate::store::{LaneFlags, Rank, Ticket};

/// What kind of thread has a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThreadKind {
    /// A worker thread.
    Worker,
    /// A worker thread that works only while all others are blocked in waits.
    Spare,
    /// A thread of the program, as long as it uses the job system.
    Guest,
}

/// The data from which a thread slot is made.
#[derive(Clone, Copy)]
pub(super) struct ThreadSlotSpec {
    pub(super) kind: ThreadKind,
    pub(super) is_for_visitors: bool,
}

/// One thread's place in the job system.
pub(crate) struct ThreadSlot<P: Platform> {
    pub(crate) index: u32,
    pub(crate) kind: ThreadKind,
    /// The thread slot is lent for the length of a call and never kept.
    pub(super) is_for_visitors: bool,
    /// Tickets made by jobs that ran here, and by scopes opened here.
    pub(crate) deque: Deque<P>,
    /// Guests: tickets of jobs scheduled from outside any job. They are taken one at a time, oldest first, so
    /// that they start in order.
    pub(crate) inbox: Option<Deque<P>>,
    pub(crate) parker: P::Parker,
    /// The job that the thread is waiting for in its innermost wait; 0 if it is not inside a wait. Written by
    /// the owner, read by deadlock checks and wakers.
    pub(crate) waits_for: P::AtomicU64,
    /// How long that wait lasts at most: a wait that ends by itself is no part of a deadlock.
    pub(crate) waits_until: P::AtomicU64,
    /// When the last wake-up was sent here. `woken_from`: the CPU it was sent from (+1; 0 unknown). The waker
    /// writes them before it unparks, and the owner reads them after.
    pub(crate) woken_at: P::AtomicU64,
    pub(crate) woken_from: P::AtomicU32,
    /// Facts about a worker that the rest of the job system may know.
    pub(crate) words: WorkerWords<P>,
    /// The CPU the thread was last seen on (+1; 0 unknown), for the order of stealing. Thieves read it again
    /// and again, so it lies apart from the words that the owner writes for every job it helps with.
    pub(crate) cpu: Padded<P::AtomicU32>,
    /// Guests: 1 while a thread has the slot. Workers: [`ThreadSlot::RETIRES`], [`ThreadSlot::IS_SLOW`].
    pub(crate) flag: P::AtomicU32,
    /// What the thread says about itself.
    pub(super) posted: Posted<P>,
    /// 1 while the thread waits in the middle of a job of a scope, or of one underneath another. Written by
    /// the owner, as long as lanes are used, and read by raises.
    pub(crate) waits_in_part: P::AtomicU32,
    /// 1 from when the thread rests and could run a job in the reserve of its stack, until another one has
    /// seen that (`wait/reserve.rs`).
    pub(crate) wants_reserve: P::AtomicU32,
    pub(crate) counters: Padded<Counters<P>>,
    pub(crate) own: Padded<P::Cell<Own>>,
}

/// The part of a thread slot that only its owner touches. Each subject has a part of it.
pub(crate) struct Own {
    pub(crate) graph: GraphLocal,
    pub(crate) loops: LoopLocal,
    pub(crate) forks: ForkList,
    pub(crate) wait: WaitLocal,
    pub(crate) record: RecordLocal,
    /// What the thread remembers of its machine.
    pub(crate) adapt: AdaptLocal,
    pub(crate) hints: HintLocal,
    /// The innermost job that runs here.
    pub(crate) frame: *const Running,
    /// The lane in which the innermost job that runs here was made: jobs that it makes are made in it, too.
    pub(crate) lane: LaneFlags,
    /// The rank of loops of the innermost job of a graph or frame that runs here: their helpers come by that.
    pub(crate) rank: Rank,
    /// For each job of a frame that runs here and was made with a rank: what was there before it.
    pub(crate) ranks_underneath: Vec<Rank>,
    /// What the thread's time counts for, as soon as there has been a lane with a share.
    pub(crate) share: ShareLocal,
    /// A worker's place among those that run background jobs.
    pub(crate) place: BackgroundPlace,
    /// Where the reserve of the thread's stack begins.
    pub(crate) stack: StackLimits,
    /// Jobs published since the last time all threads that could help were notified.
    pub(crate) unsignalled: u32,
    /// Tickets queued since the last time anything was announced.
    pub(crate) fresh: u32,
    /// Counts looks for the next ticket. Some of these looks are for fairness.
    pub(crate) tick: u32,
    pub(crate) random: u64,
    /// How useful spinning in search of work has been.
    pub(crate) search_habit: SpinHabit,
    /// A worker's last sleep, until that habit has learnt from it.
    pub(crate) last_sleep: Option<LastSleep>,
    /// This worker is in its loop as a slow one, and counts as blocked because of that.
    pub(crate) is_slow: bool,
    /// This worker is in a [`blocking`](super::Context::blocking) call, and counts as blocked.
    pub(crate) is_lent: bool,
    /// This worker is in a background job that has come to a checkpoint, and counts as one that would make
    /// way.
    pub(crate) is_lender: bool,
    /// Slow workers: how many times as long as on a fast CPU a piece of work is believed to take, in
    /// sixteenths.
    pub(crate) slow_times_16: u32,
}

/// A worker's sleep.
pub(crate) struct LastSleep {
    /// How long it was.
    pub(crate) away: Nanos,
    /// How long the wake-up took, if one was sent.
    pub(crate) wake_up: Option<Nanos>,
}

/// A running job, linked to the job that runs underneath it on the same thread.
pub(crate) struct Running {
    pub(crate) job: Ticket,
    pub(crate) outer: *const Running,
}

impl<P: Platform> ThreadSlot<P> {
    /// Bit of a worker's `flag`: it is to leave at its next idle point.
    pub(crate) const RETIRES: u32 = 1;
    /// Bit of a worker's `flag`: it is a slow one from its next idle point on.
    pub(crate) const IS_SLOW: u32 = 1 << 1;
    /// Bit of a spare's `flag`: it rests until it is needed again.
    pub(crate) const RESTS: u32 = 1 << 2;
    /// Bit of a spare's `flag`: it is about to end, but can be taken back until it has ended.
    pub(crate) const LEAVES: u32 = 1 << 3;

    pub(super) fn new(
        platform: &P,
        index: u32,
        spec: ThreadSlotSpec,
        queue: usize,
    ) -> ThreadSlot<P> {
        let ThreadSlotSpec {
            kind,
            is_for_visitors,
        } = spec;
        ThreadSlot {
            index,
            kind,
            is_for_visitors,
            deque: Deque::new(queue),
            inbox: (kind == ThreadKind::Guest).then(|| Deque::new(queue)),
            parker: platform.parker(),
            waits_for: P::AtomicU64::new(0),
            waits_until: P::AtomicU64::new(0),
            woken_at: P::AtomicU64::new(0),
            woken_from: P::AtomicU32::new(0),
            words: WorkerWords::new(),
            cpu: Padded(P::on_own_lines(|| P::AtomicU32::new(0))),
            flag: P::AtomicU32::new(0),
            posted: Posted::new(),
            waits_in_part: P::AtomicU32::new(0),
            wants_reserve: P::AtomicU32::new(0),
            counters: Padded(P::on_own_lines(Counters::new)),
            own: Padded(P::Cell::new(Own {
                graph: GraphLocal::new(),
                loops: LoopLocal::new(),
                forks: ForkList::new(),
                wait: WaitLocal::new(),
                record: RecordLocal::new(),
                adapt: AdaptLocal::new(),
                hints: HintLocal::new(),
                frame: std::ptr::null(),
                lane: LaneFlags::NORMAL,
                rank: Rank::NONE,
                ranks_underneath: Vec::new(),
                share: ShareLocal::new(),
                place: BackgroundPlace::None,
                stack: StackLimits::default(),
                unsignalled: 0,
                fresh: 0,
                tick: 0,
                random: platform.seed() ^ (u64::from(index) << 32 | 1),
                search_habit: SpinHabit::default(),
                last_sleep: None,
                is_slow: false,
                is_lent: false,
                is_lender: false,
                slow_times_16: 16,
            })),
        }
    }

    /// The name of the thread that has the slot, if it has one.
    #[cfg_attr(not(feature = "trace"), expect(dead_code, reason = "traces ask"))]
    pub(crate) fn tenant_name(&self) -> Option<String> {
        self.posted.name()
    }

    /// Whether its thread is in the middle of a part of a loop.
    pub(super) fn takes_part_in_loop(&self) -> bool {
        !self.innermost_loop().is_none()
    }

    /// The innermost loop in which its thread is in the middle of a part, or [`Ticket::NONE`].
    pub(super) fn innermost_loop(&self) -> Ticket {
        self.posted.innermost_loop()
    }

    /// The words that say what its thread does.
    pub(crate) fn words_of_thread(&self) -> ThreadWords<'_, P> {
        ThreadWords {
            posted: &self.posted,
            waits_for: &self.waits_for,
        }
    }

    /// Whether a regular worker is wanted on this thread slot.
    pub(crate) fn is_wanted(&self) -> bool {
        // Relaxed: changed under the table's lock, which the caller holds.
        self.flag.load(Ordering::Relaxed) & ThreadSlot::<P>::RETIRES == 0
    }

    /// Sends a wake-up that the sleeper can measure. Returns whether a system call was needed.
    pub(crate) fn wake(&self, platform: &P) -> bool {
        // Relaxed: published by the parker's own edge (unpark → park).
        self.woken_from.store(
            platform.current_cpu().map_or(0, |cpu| cpu + 1),
            Ordering::Relaxed,
        );
        self.woken_at.store(platform.now().0, Ordering::Relaxed);
        self.parker.unpark()
    }
}

impl<P: Platform> ThreadSlot<P> {
    /// Whether the thread is inside a wait, and runs nothing there.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.waits_for.load(Ordering::Relaxed) != 0
    }

    /// When the last wake-up was sent here, if the worker has not started yet.
    pub(crate) fn signalled(&self) -> Option<Nanos> {
        let sent = self.woken_at.load(Ordering::Relaxed);
        (sent != 0).then_some(Nanos(sent))
    }

    /// The cost of the last wake-up, if one was sent since the last report. For use after a park, by a thread
    /// that runs at `now` on this CPU.
    pub(crate) fn wake_report(&self, now: Nanos, cpu: Option<u32>) -> Option<WakeReport> {
        // Relaxed: only the owner resets it, and the waker's store came with the unpark.
        let sent = self.woken_at.load(Ordering::Relaxed);
        if sent == 0 {
            return None;
        }
        self.woken_at.store(0, Ordering::Relaxed);
        let waker_cpu = self.woken_from.load(Ordering::Relaxed).checked_sub(1);
        Some(WakeReport {
            at: now,
            latency: now - Nanos(sent),
            colocated: waker_cpu.is_some() && cpu == waker_cpu,
            waker_cpu,
        })
    }
}
