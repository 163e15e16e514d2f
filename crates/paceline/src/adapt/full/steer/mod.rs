//! Steering: a remedy for kernels that put a woken worker on its waker's CPU, and for workers that do not get
//! the CPU that they wait for.
//!
//! Some schedulers (in virtual machines, on phones) put a woken thread on the CPU of the thread that woke
//! it, although another CPU idles. A frame then runs on one CPU, however many workers there are. If a
//! worker finds itself there and has been in its waker's way for a while, it excludes the waker's CPU from
//! its own mask. That moves the worker at once. Before the worker parks it does so again, if the waker was
//! on another CPU. The waker has no part in this.
//!
//! Steering is a remedy and not the default path:
//!
//! - It is *armed* by two wake-ups on the waker's CPU, in a short time, while there are CPUs for all threads
//!   of this job system, if one of the two threads is in the other's way: the worker stays there, or it had
//!   to wait until its waker was done. (One alone may be an interrupt. Where short jobs are handed off now
//!   and then, a second with a mask for that doubled the time until they start. A worker that is done after
//!   a few microseconds is better off there than on a CPU that has to be woken, too.) It is *disarmed* if
//!   that was not seen for a second. A worker's memory of this is in `memory`. Other programs that compute
//!   on all CPUs are no reason to stay. Here the worker competes with them and with its waker, on another
//!   CPU with them alone.
//! - A mask that is in the way costs more than it gives, because the CPUs that are left may be busy. A
//!   thread that finds that a signalled worker with a mask has not started after twice the 99th percentile
//!   of wake-ups gives it all CPUs back (`overdue`). A worker that was late twice in a row does without a
//!   mask for a while.
//! - A waiter that is about to sleep leaves its CPU to the workers that may hold what it waits for: it gives
//!   them all CPUs back. One that has lost its own CPU to another thread is then pulled to this one, where
//!   it would have stayed behind that thread until the next tick. A worker to which this happens again and
//!   again does without a mask for a while, too.
//!
//! A worker that rests in the middle of a job hands its CPU over to the spare in its place, and a worker with
//! nothing to do to one that goes on: the one that is woken is held to that CPU until it runs.
//!
//! Other programs may keep the CPUs busy. A thread that waits for a worker that has not started
//! (`overdue`), or that lost its CPU with work in its hands (`preempted`), then has the kernel decide
//! earlier which thread runs there.
//!
//! Invariants
//! - Only masks of workers are changed, by the workers themselves or while the lock of the workers' table
//!   keeps them alive. The mask of an outside thread is never changed.
//! - Correctness does not depend on steering: every word here is a hint.

mod memory;
mod overdue;
mod preempted;

use event::{EventKind, Nanos, Steered};
use platform::{Atomic, CpuSet, Machine, Ordering, Platform};

use crate::adapt::full::interference::Noticed;
use crate::adapt::full::live::LiveMachine;
use crate::adapt::full::local::AdaptLocal;
use crate::adapt::words::{Mask, WakeReport, WorkerWords};
use crate::adapt::workers::{Caller, Workers};

pub(super) use memory::Steer;
pub(super) use overdue::Steering;
pub(crate) use preempted::Nudging;

/// Steering for the calling thread, with the facts about the machine that it needs.
pub(super) struct Steerer<'a, P: Platform, C> {
    pub(super) steering: &'a Steering<P>,
    pub(super) live: &'a LiveMachine<P>,
    pub(super) caller: &'a C,
    pub(super) noticed: &'a Noticed<P>,
}

impl<P: Platform, C: Caller<P>> Steerer<'_, P, C> {
    fn platform(&self) -> &P {
        self.caller.workers().platform()
    }

    fn memory<R>(&self, with: impl FnOnce(&mut Steer) -> R) -> R {
        self.caller
            .local(|local: &mut AdaptLocal| with(&mut local.steer))
    }

    /// After a wake-up.
    pub(super) fn learn(&self, report: &WakeReport) {
        self.steering.learn(report.latency);
        let words = self.caller.words().filter(|_| self.steering.on);
        let Some(words) = words else { return };
        let now = report.at;
        let mask = Mask::of(words);
        if mask != Mask::Full as u32 {
            self.expect_others(self.caller.index());
        }
        self.notice_widened(words, now);
        let restored = mask == Mask::Restored as u32;
        if restored {
            Mask::Full.set(words);
        }
        let late = restored || report.latency > self.steering.limit();
        if self.memory(|steer| steer.learn(report, now, late)) {
            self.found_in_the_way(now);
        }
        if restored {
            self.memory(Steer::mask_is_full);
        }
    }

    /// Whether this worker has taken its waker's CPU, where the waker most likely waits to go on. Then a
    /// worker without work should leave the CPU instead of spinning.
    pub(super) fn displaces_waker(&self) -> bool {
        let place = self.memory(|steer| steer.displaced());
        place.is_some() && self.platform().current_cpu() == place
    }

    /// Called from time to time while a worker works. If the worker has stayed on its waker's CPU for too
    /// long, it leaves.
    #[inline]
    pub(super) fn leave_waker_at(&self, now: Nanos) {
        if self.memory(|steer| steer.stays(now)) {
            self.found_in_the_way(now);
            self.steer_at(now);
        }
    }

    /// The same for a worker that does not know the time.
    pub(super) fn leave_waker(&self) {
        if self.memory(|steer| steer.may_stay()) {
            self.leave_waker_at(self.platform().now());
        }
    }

    /// Before a worker parks.
    pub(super) fn before_park(&self) {
        if !self.steering.on || self.memory(|steer| steer.has_seen_nothing()) {
            return;
        }
        let now = self.platform().now();
        if let Some(words) = self.caller.words() {
            self.notice_widened(words, now);
        }
        if self.memory(|steer| steer.stays(now)) {
            self.found_in_the_way(now);
        }
        self.memory(Steer::has_left);
        self.steer_at(now);
    }

    /// If a waiter has widened this worker's mask, the worker notices that now.
    fn notice_widened(&self, words: &WorkerWords<P>, now: Nanos) {
        if Mask::of(words) == Mask::Widened as u32 {
            Mask::Full.set(words);
            let here = self.platform().current_cpu();
            self.memory(|steer| steer.was_widened(here, now));
        }
    }

    /// The calling thread is about to rest, and is going to wake this worker, which rests, to run in its
    /// place: on its CPU. Otherwise the kernel, to which this CPU is busy, may put the worker behind another
    /// thread that works, and this CPU idles. The worker's thread does not end meanwhile. A system call.
    pub(super) fn hand_over(&self, index: usize) {
        let (platform, workers) = (self.platform(), self.caller.workers());
        let words = workers.worker(index).filter(|_| self.steering.on);
        let (Some(words), Some(cpu)) = (words, platform.current_cpu()) else {
            return;
        };
        // Relaxed: the thread lives.
        let thread = words.thread.load(Ordering::Relaxed);
        let may_be_here = || self.live.worker_cpus(platform, words).contains(cpu);
        if thread == 0 || !may_be_here() {
            return;
        }
        let mask = [cpu].into_iter().collect();
        // Refused: the kernel decides where it runs.
        if platform.machine().set_mask(thread, &mask).is_ok() {
            Mask::HandedOver.set(words);
        }
    }

    /// The calling thread is a worker that runs again: all of its CPUs are its own again.
    pub(super) fn take_over(&self) {
        let words = self.caller.words();
        let words = words.filter(|words| Mask::of(words) == Mask::HandedOver as u32);
        let Some(words) = words else { return };
        let platform = self.platform();
        let all = self.live.worker_cpus(platform, words);
        // Refused: the process may not use these CPUs any more, and the kernel has taken care of that.
        let _ = platform.machine().set_mask(platform.thread_id(), &all);
        Mask::Full.set(words);
        self.memory(Steer::mask_is_full);
    }

    /// The calling thread is about to sleep in a wait: gives all CPUs to the workers that may hold what it
    /// waits for. A system call for each of them that has a mask.
    pub(super) fn leave_cpu(&self) {
        if self.steering.has_steered.load(Ordering::Relaxed) == 0 {
            return;
        }
        let workers = self.caller.workers();
        for (index, words) in workers.each() {
            if Mask::is_steered(words) && self.may_hold_work(index) {
                self.widen(words, Mask::Widened);
            }
        }
    }

    #[cold]
    fn found_in_the_way(&self, now: Nanos) {
        let have_room = self.could_spread_threads();
        self.memory(|steer| steer.found(now, have_room));
    }

    /// Whether there are CPUs for all threads of this job system, so that no thread has to be in another's
    /// way.
    fn could_spread_threads(&self) -> bool {
        self.caller.workers().active() < self.live.width().threads
    }

    fn steer_at(&self, now: Nanos) {
        let Some(exclude) = self.memory(|steer| steer.change(now)) else {
            return;
        };
        let Some(words) = self.caller.words() else {
            return; // Only workers' masks are changed.
        };
        let platform = self.platform();
        let all = self.live.worker_cpus(platform, words);
        let mut mask: CpuSet = all.clone();
        if let Some(cpu) = exclude {
            mask.remove(cpu);
        }
        if mask.is_empty() {
            mask = all;
        }
        // Refused: the worker keeps its mask, which is no worse than before.
        let changed = platform
            .machine()
            .set_mask(platform.thread_id(), &mask)
            .is_ok();
        let says = if changed && exclude.is_some() {
            Mask::Steered
        } else {
            Mask::Full
        };
        says.set(words);
        if exclude.is_some() {
            self.steering.has_steered.store(1, Ordering::Relaxed);
        }
        if changed {
            let why = match exclude {
                Some(_) => Steered::InTheWay,
                None if self.memory(|steer| steer.was_late()) => Steered::Late,
                None => Steered::Over,
            };
            let arg = (why as u64) << 32 | u64::from(exclude.map_or(0, |cpu| cpu + 1));
            self.caller.note(EventKind::Steered, 0, arg);
        }
    }
}
