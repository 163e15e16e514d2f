//! Other threads want the same CPUs: noticing it, and what is done about it.
//!
//! Each thread of the job system says once a frame what the kernel counted for it: workers when they run
//! out of work, whoever ends the frame for itself. The latter adds it up and asks the rule (`judge`, which
//! says what is done, and why). What was decided is an event ([`EventKind::Interference`]), and what
//! [`JobSystem::interference`](crate::JobSystem::interference) tells.
//!
//! What it costs: asking for switches that were not asked for takes half a microsecond (getrusage, Linux
//! 6.18 on a VM), once a thread and frame. How long a thread was ready and did not run is in a file
//! (`/proc/thread-self/schedstat`, 12 us with the rest of [`Machine::usage_so_far`]); it is read when
//! there was such a switch, when it was worth it the last time, and otherwise every [`REST`] frames: a
//! thread that waits after each wake-up loses no CPU and has no switch. Where nobody sleeps and no frame
//! ends, nothing is asked; where the platform counts nothing, nothing is done.
//!
//! Invariants
//! - Nothing here happens per job.
//! - Totals of a thread slot only grow, whichever thread has it: a thread that gets one begins with what it
//!   has used so far.
//! - The number of workers is changed by [`live`](super::live) alone, as the smallest of what the machine
//!   leaves, what was asked for, and what is found here.

mod judge;
mod sampler;

use event::{EventKind, Interfered, Nanos, Resized};
use platform::{Atomic, Lock, Machine, Memory, Ordering, Padded, Platform, Usage};

use super::live::Live;
use super::local::Local;
use super::workers::{Caller, Workers};

pub(super) use sampler::Sampler;

use judge::{FrameUse, Judge, Load, Used, Verdict, is_delay};

/// Frames after which a thread that nobody preempted is looked at closely all the same.
const REST: u32 = 16;
/// For how many frames one preemption says that the machine is busy: a second's worth.
const REMEMBERED: u64 = 60;
/// Decisions that are kept for [`JobSystem::interference`](crate::JobSystem::interference).
const KEPT: usize = 64;

/// One decision about threads that others keep from running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When, on the platform's clock.
    pub time: Nanos,
    /// How many frames had ended.
    pub frames: u64,
    /// What was decided.
    pub what: Interfered,
    /// How many workers there are to be from then on.
    pub workers: usize,
    /// How long the threads of the job system waited for a CPU in the frames before, in thousandths of the
    /// time that they ran or waited.
    pub waited_thousandths: u32,
    /// How often they lost their CPU in 1000 frames.
    pub switches_per_1000_frames: u32,
}

/// What others on the same machine do to a job system; from
/// [`JobSystem::interference`](crate::JobSystem::interference).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interference {
    /// Threads are kept from running in most frames.
    pub is_noticed: bool,
    /// The most workers there are to be for that reason, none of which spins; `None`: as many as without.
    pub most_workers: Option<usize>,
    /// The latest decisions, the oldest first; 64 at most.
    pub decisions: Vec<Decision>,
}

struct InterferenceState {
    judge: Judge,
    /// What all thread slots had used when the last frame ended.
    used: Used,
    /// Frames that ended.
    frames: u64,
    /// Up to which frame threads are taken to be among others who preempt them.
    busy_until: u64,
    /// Found when the last frame ended; to be done before the next one begins, where time may pass.
    found: Option<Verdict>,
    decisions: Vec<Decision>,
}

/// What others do to this job system, as far as it knows.
pub(crate) struct Noticed<M: Memory> {
    /// Whether there are fewer workers, whether something is to be done, and whether threads are preempted
    /// now and then ([`FEWER`], [`FOUND`], [`BUSY`]). Relaxed: a hint that nothing is published with; what
    /// is found is under the lock.
    flags: M::AtomicU32,
    state: Padded<M::Lock<InterferenceState>>,
}

const FEWER: u32 = 1;
const FOUND: u32 = 2;
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
                found: None,
                decisions: Vec::new(),
            })),
        }
    }

    /// Whether fewer workers run than would without others on the machine.
    #[inline]
    pub(crate) fn are_fewer(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & FEWER != 0
    }

    /// Whether others have taken a CPU from a thread of the job system in the last [`REMEMBERED`] frames.
    #[inline]
    pub(crate) fn are_preempted(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & BUSY != 0
    }

    /// What is known, for the program.
    pub(super) fn report(&self) -> Interference {
        self.state.with(|state| Interference {
            is_noticed: state.judge.is_noticed(),
            most_workers: state.judge.most(),
            decisions: state.decisions.clone(),
        })
    }

    /// What there is to be known by others without the lock.
    fn tell(&self, state: &InterferenceState) {
        let fewer = if state.judge.most().is_some() {
            FEWER
        } else {
            0
        };
        let found = if state.found.is_some() { FOUND } else { 0 };
        let busy = if state.frames < state.busy_until {
            BUSY
        } else {
            0
        };
        self.flags.store(fewer | found | busy, Ordering::Relaxed);
    }
}

/// Interference, for one thread that does something: with what it needs to know of the machine.
pub(super) struct Observer<'a, P: Platform, C> {
    pub(super) noticed: &'a Noticed<P>,
    pub(super) live: &'a Live<P>,
    pub(super) caller: &'a C,
}

impl<P: Platform, C: Caller<P>> Observer<'_, P, C> {
    fn sampler<R>(&self, with: impl FnOnce(&mut Sampler) -> R) -> R {
        self.caller
            .local(|local: &mut Local| with(&mut local.sampler))
    }

    /// Another thread is here now.
    pub(super) fn forget_usage(&self) {
        self.sampler(|sampler| *sampler = Sampler::default());
    }

    /// Says what this thread has used, if it has not done so in this frame. For workers that run out of work.
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
            sampler.looks += 1;
            let unchanged = sampler
                .then
                .is_some_and(|then| then.involuntary == Some(switches));
            !unchanged || sampler.is_close || sampler.looks >= REST
        });
        if is_due {
            // Not exact: a question that makes the kernel look may cost the rest of the frame.
            self.look_closely(machine.usage_so_far());
        }
    }

    fn look_closely(&self, now: Usage) {
        let (then, looks) = self.sampler(|sampler| {
            let looks = std::mem::take(&mut sampler.looks);
            (sampler.then.replace(now), looks)
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
        let is_delayed = is_delay(ran, waited, looks);
        counters.delayed.add(u64::from(is_delayed));
        self.sampler(|sampler| sampler.is_close = is_delayed);
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
                state.found = Some(verdict);
            }
            self.noticed.tell(state);
        });
    }

    /// What all threads have used, as far as they have said.
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

    /// Does what was found necessary when the last frame ended. True if there was something, which took some
    /// time.
    #[inline]
    pub(super) fn follow(&self, now: Nanos) -> bool {
        let flags = self.noticed.flags.load(Ordering::Relaxed);
        let is_due = flags & FOUND != 0;
        if is_due {
            self.do_what_was_found(now);
        }
        is_due
    }

    #[cold]
    fn do_what_was_found(&self, now: Nanos) {
        let workers = self.caller.workers();
        let decided = self.noticed.state.with(|state| {
            let verdict = state.found.take()?;
            self.noticed.tell(state);
            let most = self.live.limit_workers(workers, state.judge.most());
            Some(state.decide(verdict, now, most))
        });
        let Some(decision) = decided else {
            return; // Another thread was faster.
        };
        let count = decision.workers as u64;
        let has_resized = matches!(
            decision.what,
            Interfered::Fewer | Interfered::Restored | Interfered::Probed
        );
        if has_resized {
            self.live.fill(workers);
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
