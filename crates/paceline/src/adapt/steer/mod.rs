//! Steering: a remedy for kernels that put a woken worker on its waker's CPU, and for workers that do not get
//! the CPU that they wait for.
//!
//! Some schedulers (in virtual machines, on phones) place a thread on the CPU of the thread that woke
//! it although another one idles. A frame then runs on one CPU however many workers there are. A
//! worker that finds itself so placed, and has been in its waker's way for a while, excludes the
//! waker's CPU from its own mask, which moves it at once, and again before it parks if the waker was
//! elsewhere: the waker has nothing to do for it.
//!
//! It is a remedy and not the default path:
//!
//! - It is *armed* by a wake-up on the waker's CPU while there are CPUs for all threads of this job system,
//!   if one is in the other's way: the worker stays there, or it had to wait until its waker was through. (A
//!   worker that is done after a few microseconds is better off there than on a CPU that has to be woken up,
//!   too.) It is *disarmed* when that was not seen for a second. What a worker remembers is in `memory`. That
//!   others compute on all CPUs is no reason to stay: here it competes with them and with its waker, there
//!   with them alone.
//! - A mask that is in the way costs more than it gives: the CPUs that are left may be busy. Whoever
//!   finds that a signalled worker with a mask has not started after twice the 99th percentile of
//!   wake-ups gives it all CPUs back (`overdue`), and a worker that was late twice in a row holds off.
//!
//! Where others keep the CPUs busy, who waits for a worker that has not started (`overdue`), or that lost
//! its CPU in the middle of something (`preempted`), has the kernel look again at who runs there.
//!
//! Invariants
//! - Only masks of workers are changed, by themselves or while the roster's lock keeps them alive;
//!   never that of an outside thread.
//! - Correctness does not depend on any of it: every word here is a hint.

mod memory;
mod overdue;
mod preempted;

use event::{EventKind, Nanos, Steered};
use platform::{CpuSet, Machine, Platform};

use crate::adapt::interference::Noticed;
use crate::adapt::live::Live;
use crate::adapt::local::Local;
use crate::adapt::words::{Mask, WakeReport};
use crate::adapt::workers::{Caller, Workers};

pub(super) use memory::Steer;
pub(super) use overdue::Steering;
pub(crate) use preempted::Nudging;

/// Steering, for one thread that does something: with what it needs to know of the machine.
pub(super) struct Steerer<'a, P: Platform, C> {
    pub(super) steering: &'a Steering<P>,
    pub(super) live: &'a Live<P>,
    pub(super) caller: &'a C,
    pub(super) noticed: &'a Noticed<P>,
}

impl<P: Platform, C: Caller<P>> Steerer<'_, P, C> {
    fn platform(&self) -> &P {
        self.caller.workers().platform()
    }

    fn memory<R>(&self, with: impl FnOnce(&mut Steer) -> R) -> R {
        self.caller
            .local(|local: &mut Local| with(&mut local.steer))
    }

    /// After a wake-up.
    pub(super) fn learn(&self, report: &WakeReport) {
        self.steering.learn(report.latency);
        let words = self.caller.words().filter(|_| self.steering.on);
        let Some(words) = words else { return };
        let now = self.platform().now();
        let mask = Mask::of(words);
        if mask != Mask::Full as u32 {
            self.expect_others(self.caller.index());
        }
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

    /// Whether this worker has taken its waker's CPU, where the waker most likely waits to go on: a
    /// worker without work should leave it then instead of spinning.
    pub(super) fn displaces_waker(&self) -> bool {
        let place = self.memory(|steer| steer.displaced());
        place.is_some() && self.platform().current_cpu() == place
    }

    /// From time to time while a worker works: if it has stayed on its waker's CPU for too long it
    /// leaves.
    #[inline]
    pub(super) fn leave_waker_at(&self, now: Nanos) {
        if self.memory(|steer| steer.stays(now)) {
            self.found_in_the_way(now);
            self.steer_at(now);
        }
    }

    /// The same where the time is not known.
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
        if self.memory(|steer| steer.stays(now)) {
            self.found_in_the_way(now);
        }
        self.memory(Steer::has_left);
        self.steer_at(now);
    }

    #[cold]
    fn found_in_the_way(&self, now: Nanos) {
        let have_room = self.could_spread_threads();
        self.memory(|steer| steer.found(now, have_room));
    }

    /// Whether there are CPUs for all threads of this job system, so that none has to be in another's way.
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
        // Refused: the worker stays where it may be, which is no worse than before.
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
