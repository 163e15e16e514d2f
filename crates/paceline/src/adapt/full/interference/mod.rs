//! Other threads want the same CPUs: noticing that, and acting on it.
//!
//! Once a frame each thread of the job system notes the kernel's counts for it. A worker does so when it
//! runs out of work, and the thread that ends the frame does so then. That thread also adds the counts up
//! and asks the rule (`judge`, which has the decisions and their reasons). A decision is an event
//! ([`EventKind::Interference`]), and [`JobSystem::interference`](crate::JobSystem::interference) reports it.
//!
//! The cost: once a thread and frame, the number of involuntary switches is read, which takes half a
//! microsecond (getrusage, Linux 6.18 on a VM). The time that a thread was ready and did not run is in a
//! file (`/proc/thread-self/schedstat`, 12 us with the rest of [`Machine::usage_so_far`]). A thread reads
//! the file if there was such a switch, if the last reading showed a delay, and otherwise every [`REST`]
//! frames: a thread that waits after each wake-up loses no CPU and has no switch. While no worker sleeps
//! and no frame ends, nothing is read. Where the platform counts nothing, nothing is done.
//!
//! Invariants
//! - Nothing here happens per job.
//! - The totals of a thread slot only grow, whichever thread has it: a thread that gets a slot begins with
//!   the usage that it has so far.
//! - The number of workers is changed by [`live`](super::live) alone. It is the smallest of the number that
//!   fits the machine, the number that was requested, and the number that is found here.

mod judge;
mod sampler;

use event::{EventKind, Interfered, Nanos, Resized};
use platform::{Atomic, Lock, Machine, Memory, Ordering, Padded, Platform, Usage};

use super::live::LiveMachine;
use super::local::AdaptLocal;
use crate::adapt::answers::{Decision, Interference};
use crate::adapt::workers::{Caller, Workers};

pub(super) use sampler::Sampler;

use judge::{FrameUse, Judge, Load, Used, Verdict, is_delay};

/// After this many frames a thread that was not preempted takes a sample all the same.
const REST: u32 = 16;
/// The number of frames for which one preemption means that the machine is busy: a second's worth.
const REMEMBERED: u64 = 60;
/// Decisions that are kept for [`JobSystem::interference`](crate::JobSystem::interference).
const KEPT: usize = 64;

struct InterferenceState {
    judge: Judge,
    /// The usage of all thread slots when the last frame ended.
    used: Used,
    /// Frames that have ended.
    frames: u64,
    /// Up to this frame it is believed that other threads preempt those of the job system.
    busy_until: u64,
    /// A verdict from the end of the last frame. It is applied before the next frame begins, when that may
    /// take time.
    pending: Option<Verdict>,
    decisions: Vec<Decision>,
}

/// The job system's knowledge of the effect that other programs have on it.
pub(crate) struct Noticed<M: Memory> {
    /// Whether there are fewer workers, whether a verdict is to be applied, and whether threads are
    /// preempted now and then ([`FEWER`], [`PENDING`], [`BUSY`]). Relaxed: a hint that nothing is published
    /// with. The findings are under the lock.
    flags: M::AtomicU32,
    state: Padded<M::Lock<InterferenceState>>,
}

const FEWER: u32 = 1;
const PENDING: u32 = 2;
const BUSY: u32 = 4;

impl<M: Memory> Noticed<M> {
    pub(crate) fn new() -> Noticed<M> {
        Noticed {
            flags: M::AtomicU32::new(0),
            state: Padded(M::Lock::new(InterferenceState {
                judge: Judge::new(),
                used: Used::default(),
                frames: 0,
                busy_until: 0,
                pending: None,
                decisions: Vec::new(),
            })),
        }
    }

    /// Whether fewer workers run than would run without other programs on the machine.
    #[inline]
    pub(crate) fn are_fewer(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & FEWER != 0
    }

    /// Whether a thread of the job system has lost its CPU to another thread in the last [`REMEMBERED`]
    /// frames.
    #[inline]
    pub(crate) fn are_preempted(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & BUSY != 0
    }

    /// The report for the program.
    pub(super) fn report(&self) -> Interference {
        self.state.with(|state| Interference {
            is_noticed: state.judge.is_noticed(),
            most_workers: state.judge.most(),
            decisions: state.decisions.clone(),
        })
    }

    /// Publishes the facts that threads read without the lock.
    fn publish_flags(&self, state: &InterferenceState) {
        let fewer = if state.judge.most().is_some() {
            FEWER
        } else {
            0
        };
        let pending = if state.pending.is_some() { PENDING } else { 0 };
        let busy = if state.frames < state.busy_until {
            BUSY
        } else {
            0
        };
        self.flags.store(fewer | pending | busy, Ordering::Relaxed);
    }
}

/// Interference for the calling thread, with the facts about the machine that it needs.
pub(super) struct Observer<'a, P: Platform, C> {
    pub(super) noticed: &'a Noticed<P>,
    pub(super) live: &'a LiveMachine<P>,
    pub(super) caller: &'a C,
}

impl<P: Platform, C: Caller<P>> Observer<'_, P, C> {
    fn sampler<R>(&self, with: impl FnOnce(&mut Sampler) -> R) -> R {
        self.caller
            .local(|local: &mut AdaptLocal| with(&mut local.sampler))
    }

    /// Another thread has the thread slot now.
    pub(super) fn forget_usage(&self) {
        self.sampler(|sampler| *sampler = Sampler::default());
    }

    /// Notes this thread's usage, if that was not done in this frame. For workers that run out of work.
    #[inline]
    pub(super) fn note_usage(&self) {
        let frame = self.caller.workers().frames();
        if self.live.is_on && frame != self.sampler(|sampler| sampler.frame) {
            self.note_usage_in(frame);
        }
    }

    #[cold]
    fn note_usage_in(&self, frame: u64) {
        let machine = self.caller.workers().machine();
        let Some(switches) = machine.involuntary() else {
            self.sampler(|sampler| sampler.frame = frame);
            return;
        };
        let is_due = self.sampler(|sampler| {
            sampler.frame = frame;
            sampler.frames += 1;
            let unchanged = sampler
                .then
                .is_some_and(|then| then.involuntary == Some(switches));
            !unchanged || sampler.was_delayed || sampler.frames >= REST
        });
        if is_due {
            // Not exact: an exact answer makes the kernel check slices, which may cost the rest of the
            // frame.
            self.take_sample(machine.usage_so_far());
        }
    }

    fn take_sample(&self, now: Usage) {
        let (then, frames) = self.sampler(|sampler| {
            let frames = std::mem::take(&mut sampler.frames);
            (sampler.then.replace(now), frames)
        });
        let (Some(then), Some(cpu), Some(runnable)) = (then, now.cpu, now.runnable) else {
            return;
        };
        let ran = Nanos(cpu.0.saturating_sub(then.cpu.unwrap_or(cpu).0));
        let waited = Nanos(
            runnable
                .0
                .saturating_sub(then.runnable.unwrap_or(runnable).0),
        );
        let switches = now.involuntary.zip(then.involuntary);
        let counters = self.caller.counters();
        counters.ran_ns.add(ran.0);
        counters.waited_ns.add(waited.0);
        counters
            .preempted
            .add(switches.map_or(0, |(now, then)| now.saturating_sub(then)));
        let is_delayed = is_delay(ran, waited, frames);
        counters.delayed.add(u64::from(is_delayed));
        self.sampler(|sampler| sampler.was_delayed = is_delayed);
    }

    /// A frame has ended on this thread. Never waits.
    pub(super) fn end_frame(&self, begin: Nanos, end: Nanos) {
        if !self.live.is_on {
            return;
        }
        self.note_usage();
        let used = self.used();
        self.noticed.state.with(|state| {
            let frame = FrameUse {
                begin,
                end,
                used: used.since(&state.used),
            };
            state.used = used;
            state.frames += 1;
            if frame.used.switches > 0 {
                state.busy_until = state.frames + REMEMBERED;
            }
            let load = || Load {
                workers: self.caller.workers().target(),
                fits: self.live.fits(),
            };
            if let Some(verdict) = state.judge.frame(&frame, load) {
                state.pending = Some(verdict);
            }
            self.noticed.publish_flags(state);
        });
    }

    /// The usage of all threads, as far as they have noted it.
    fn used(&self) -> Used {
        let workers = self.caller.workers();
        let mut used = Used::default();
        for index in 0..workers.threads() {
            let counters = workers.counters(index);
            used.ran += counters.ran_ns.get();
            used.waited += counters.waited_ns.get();
            used.switches += counters.preempted.get();
            used.delays += counters.delayed.get();
        }
        used
    }

    /// Applies the verdict from the end of the last frame. True if there was one, which took some time.
    #[inline]
    pub(super) fn apply_verdict(&self, now: Nanos) -> bool {
        let flags = self.noticed.flags.load(Ordering::Relaxed);
        let is_due = flags & PENDING != 0;
        if is_due {
            self.apply(now);
        }
        is_due
    }

    #[cold]
    fn apply(&self, now: Nanos) {
        let workers = self.caller.workers();
        let decided = self.noticed.state.with(|state| {
            let verdict = state.pending.take()?;
            self.noticed.publish_flags(state);
            let most = self.live.limit_workers(workers, state.judge.most());
            Some(state.decide(verdict, now, most))
        });
        let Some(decision) = decided else {
            return; // Another thread has applied it.
        };
        let count = decision.workers as u64;
        let has_resized = matches!(
            decision.what,
            Interfered::Fewer | Interfered::Restored | Interfered::Probed
        );
        if has_resized {
            // Refused: the next refresh tries again.
            let _ = self.live.fill(workers);
            self.caller.counters().resizes.add(1);
            let why = Resized::Interference as u64;
            self.caller.note(EventKind::Resized, 0, why << 32 | count);
        }
        let found = u64::from(decision.waited_thousandths) << 32
            | u64::from(decision.switches_per_1000_frames);
        let arg = (decision.what as u64) << 32 | count;
        self.caller.note(EventKind::Interference, found, arg);
    }
}

impl InterferenceState {
    fn decide(&mut self, verdict: Verdict, time: Nanos, workers: usize) -> Decision {
        let decision = Decision {
            time,
            frames: self.frames,
            what: verdict.what,
            workers,
            waited_thousandths: verdict.waited_thousandths,
            switches_per_1000_frames: verdict.switches_per_1000_frames,
        };
        if self.decisions.len() == KEPT {
            self.decisions.remove(0);
        }
        self.decisions.push(decision);
        decision
    }
}

#[cfg(test)]
mod tests;
