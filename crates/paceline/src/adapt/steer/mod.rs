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
use platform::{Atomic, CpuSet, Ordering, Platform};

use crate::context::Context;
use crate::job::Ticket;
use crate::seat::WakeReport;

pub(crate) use memory::Steer;
pub(crate) use overdue::Steering;
pub(crate) use preempted::Nudging;

/// What a seat says of its worker's mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Mask {
    /// All CPUs that the process may use.
    Full = 0,
    /// One CPU is left out.
    Steered = 1,
    /// One was, until somebody found that it took too long; the worker has not noticed yet.
    Restored = 2,
}

impl<P: Platform> Context<'_, P> {
    /// After a wake-up.
    pub(crate) fn learn_placement(&self, report: &WakeReport) {
        let shared = self.shared;
        shared.steering.learn(report.latency);
        if !shared.steering.on {
            return;
        }
        let now = shared.platform.now();
        let mask = self.seat.mask.load(Ordering::Relaxed);
        if mask != Mask::Full as u32 {
            shared.expect_others(self.seat.index);
        }
        let restored = mask == Mask::Restored as u32;
        if restored {
            self.seat.mask.store(Mask::Full as u32, Ordering::Relaxed);
        }
        let late = restored || report.latency > shared.steering.limit();
        if self.own(|own| own.steer.learn(report, now, late)) {
            self.found_in_the_way(now);
        }
        if restored {
            self.own(|own| own.steer.mask_is_full());
        }
    }

    /// Whether this worker has taken its waker's CPU, where the waker most likely waits to go on: a
    /// worker without work should leave it then instead of spinning.
    pub(crate) fn displaces_waker(&self) -> bool {
        let place = self.own(|own| own.steer.displaced());
        place.is_some() && self.shared.platform.current_cpu() == place
    }

    /// From time to time while a worker works: if it has stayed on its waker's CPU for too long it
    /// leaves.
    #[inline]
    pub(crate) fn leave_waker_at(&self, now: Nanos) {
        if self.own(|own| own.steer.stays(now)) {
            self.found_in_the_way(now);
            self.steer_at(now);
        }
    }

    /// The same where the time is not known.
    pub(crate) fn leave_waker(&self) {
        if self.own(|own| own.steer.may_stay()) {
            self.leave_waker_at(self.shared.platform.now());
        }
    }

    /// Before a worker parks.
    pub(crate) fn steer(&self) {
        if !self.shared.steering.on || self.own(|own| own.steer.has_seen_nothing()) {
            return;
        }
        let now = self.shared.platform.now();
        if self.own(|own| own.steer.stays(now)) {
            self.found_in_the_way(now);
        }
        self.own(|own| own.steer.has_left());
        self.steer_at(now);
    }

    #[cold]
    fn found_in_the_way(&self, now: Nanos) {
        let have_room = self.shared.could_spread_threads();
        self.own(|own| own.steer.found(now, have_room));
    }

    fn steer_at(&self, now: Nanos) {
        let platform = &self.shared.platform;
        let Some(exclude) = self.own(|own| own.steer.change(now)) else {
            return;
        };
        let all = self.shared.worker_cpus(self.seat);
        let mut mask: CpuSet = all.clone();
        exclude.iter().for_each(|&cpu| mask.remove(cpu));
        if mask.is_empty() {
            mask = all;
        }
        // Refused: the worker stays where it may be, which is no worse than before.
        let changed = platform.set_mask(platform.thread_id(), &mask).is_ok();
        let says = match changed && exclude.is_some() {
            true => Mask::Steered,
            false => Mask::Full,
        };
        // Relaxed: a hint for wakers, see `overdue`.
        self.seat.mask.store(says as u32, Ordering::Relaxed);
        if changed {
            let why = match exclude {
                Some(_) => Steered::InTheWay,
                None if self.own(|own| own.steer.was_late()) => Steered::Late,
                None => Steered::Over,
            };
            let arg = (why as u64) << 32 | u64::from(exclude.map_or(0, |cpu| cpu + 1));
            self.record(EventKind::Steered, Ticket::NONE, arg);
        }
    }
}
