//! Signalled workers whose mask keeps them from starting.
//!
//! A worker that steers clear of one CPU depends on the others. If they are busy it waits although the
//! thread that woke it may be about to sleep. So its waker notes when it should have started, at the
//! latest; everybody who passes by with a time stamp at hand looks at that note (threads inside
//! loops at every stamp, waiters, publishers that leave a job to a searcher), a waiter does not sleep
//! past it, and the first to find it overdue gives the worker all CPUs back.
//!
//! All accesses are Relaxed: the note, `woken_at` and `mask` are hints. Stale ones cost a mask that is
//! set in vain or a check that comes later; whoever restores a mask holds the roster's lock, under which
//! a leaving worker takes back its name, so the name is that of a living thread.

use event::{EventKind, Nanos};
use platform::{Atomic, Memory, Ordering, Padded, Platform};

use super::Mask;
use crate::context::Context;
use crate::job::Ticket;
use crate::seat::Role;
use crate::shared::Shared;

/// Bounds of the 99th percentile of wake-ups, in ns: what is less is an interrupt, what is more is load.
const P99_MIN: u64 = 20_000;
const P99_MAX: u64 = 500_000;

/// What all threads of a job system know about steering.
pub(crate) struct Steering<M: Memory> {
    pub(crate) on: bool,
    /// When the first signalled worker with a mask is overdue; 0: none is expected.
    overdue_at: Padded<M::AtomicU64>,
    /// 99th percentile of the wake-ups so far, in ns.
    p99: M::AtomicU64,
}

impl<M: Memory> Steering<M> {
    pub(crate) fn new(on: bool) -> Steering<M> {
        Steering {
            on,
            overdue_at: Padded(M::AtomicU64::new(0)),
            p99: M::AtomicU64::new(100_000),
        }
    }

    /// A wake-up took this long.
    pub(super) fn learn(&self, latency: Nanos) {
        let p99 = follow_p99(self.p99.load(Ordering::Relaxed), latency.0);
        self.p99.store(p99, Ordering::Relaxed);
    }

    /// A wake-up that takes longer than this is late.
    pub(super) fn limit(&self) -> Nanos {
        Nanos(2 * self.p99.load(Ordering::Relaxed))
    }

    /// A worker with a mask was signalled at `sent`.
    fn expect(&self, sent: Nanos) {
        let at = (sent + self.limit()).0;
        // If somebody is expected already the check that follows looks at all.
        let _ = self
            .overdue_at
            .compare_exchange(0, at, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// When to check, if there is anything to check.
    fn overdue_at(&self) -> Option<Nanos> {
        if !self.on {
            return None;
        }
        let at = self.overdue_at.load(Ordering::Relaxed);
        (at != 0).then_some(Nanos(at))
    }
}

/// A running estimate of the 99th percentile without a memory of values: up by half when one is above
/// it, down by 1/198 of that otherwise, so that it stands still if one in a hundred is above ("frugal
/// streaming", Ma, Muthukrishnan and Sandler 2013, with steps in proportion).
fn follow_p99(p99: u64, value: u64) -> u64 {
    let next = match value > p99 {
        true => p99 + p99 / 2,
        false => p99 - p99 / 198,
    };
    next.clamp(P99_MIN, P99_MAX)
}

impl<P: Platform> Shared<P> {
    /// Whether all threads of this job system could have CPUs of their own at once: because all others that
    /// are ready could, too, and then another one idles if two of them share one; or because those others
    /// have to stand back.
    pub(super) fn could_spread_threads(&self) -> bool {
        let width = self.live.width();
        let have_room = || match self.platform.threads_ready() {
            Some(ready) => ready <= width.threads,
            None => true,
        };
        self.crew.active() < width.threads && (self.is_favoured() || have_room())
    }

    /// A worker with a mask has started: who else is expected?
    pub(super) fn expect_others(&self, started: u32) {
        self.steering.overdue_at.store(0, Ordering::Relaxed);
        for seat in self.seats.iter().filter(|seat| seat.index != started) {
            if let Some(sent) = seat.signalled_with_mask() {
                self.steering.expect(sent);
            }
        }
    }

    /// Gives the worker on this seat all CPUs. False if there is none any more.
    fn restore_mask(&self, index: u32) -> bool {
        let seat = self.seats.get(index as usize);
        let all = self.worker_cpus(seat);
        self.with_worker_thread(seat, |thread| {
            let restored = self.platform.set_mask(thread, &all).is_ok();
            seat.mask.store(Mask::Restored as u32, Ordering::Relaxed);
            restored
        })
    }
}

impl<P: Platform> Context<'_, P> {
    /// Notes that a worker has just been signalled.
    pub(crate) fn expect_start(&self, index: usize) {
        if self.shared.steering.on
            && let Some(sent) = self.shared.seats.get(index).signalled_with_mask()
        {
            self.shared.steering.expect(sent);
        }
    }

    /// Until when a waiter may sleep without looking for overdue workers.
    pub(crate) fn overdue_at(&self) -> Nanos {
        self.shared.steering.overdue_at().unwrap_or(Nanos::MAX)
    }

    /// If somebody is overdue by now, does something about it. For threads that know the time.
    #[inline]
    pub(crate) fn check_overdue_at(&self, now: Nanos) {
        if let Some(at) = self.shared.steering.overdue_at()
            && now >= at
        {
            self.restore_overdue(at, now);
        }
    }

    /// The same for threads that do not.
    #[inline]
    pub(crate) fn check_overdue(&self) {
        if self.shared.steering.overdue_at().is_some() {
            self.check_overdue_at(self.shared.platform.now());
        }
    }

    #[cold]
    fn restore_overdue(&self, at: Nanos, now: Nanos) {
        let steering = &self.shared.steering;
        let mine =
            steering
                .overdue_at
                .compare_exchange(at.0, 0, Ordering::Relaxed, Ordering::Relaxed);
        if mine.is_err() {
            return; // Somebody else is at it.
        }
        let seats = self
            .shared
            .seats
            .iter()
            .filter(|seat| seat.role != Role::Guest);
        for seat in seats {
            match seat.signalled_with_mask() {
                Some(sent) if now - sent < steering.limit() => steering.expect(sent),
                Some(_) if self.shared.restore_mask(seat.index) => {
                    self.seat.counters.masks_restored.add(1);
                    self.record(EventKind::MaskRestored, Ticket::NONE, seat.index.into());
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use platform::Os;

    use super::*;
    use crate::{Builder, WaitPolicy};

    /// Goal: the estimate finds the 99th percentile from below and from above, and follows when it
    /// changes. Method: uniform latencies of 0 to 200 us, then of 0 to 400 us; a mean over many steps
    /// is within a fifth of the truth.
    #[test]
    fn the_estimate_is_the_percentile() {
        // Arithmetic alone: an interpreter sees it all from one side.
        let starts = &[P99_MIN, P99_MAX][usize::from(cfg!(miri))..];
        for &start in starts {
            let (mut p99, mut word) = (start, 1u64);
            for (top, truth) in [(200_000, 198_000), (400_000, 396_000)] {
                let mut sum = 0;
                for step in 0..20_000 {
                    word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    p99 = follow_p99(p99, (word >> 33) % top);
                    sum += if step >= 10_000 { p99 } else { 0 };
                }
                let mean = sum / 10_000;
                assert!(
                    mean.abs_diff(truth) < truth / 5,
                    "{mean} from {start} for {truth}"
                );
            }
        }
    }

    /// Goal: a signalled worker that has not started gets all CPUs back, once, from whoever passes by
    /// after the limit and not before; and notices when it starts. Method: the seat of a sleeping
    /// worker is made to look like that of one with a mask, signalled a while ago; then it is really
    /// woken, by a job that the main thread does not help with.
    #[test]
    fn an_overdue_worker_gets_its_cpus_back() {
        let all = Os.topology().allowed();
        if Os.set_mask(Os.thread_id(), all).is_err() {
            return; // There are no masks here, and so nothing to restore.
        }
        let js = Builder::new()
            .workers(1)
            .wait_policy(WaitPolicy::Passive)
            .build()
            .unwrap();
        let shared = js.shared();
        let seat = shared.seats.iter().find(|seat| seat.role == Role::Worker);
        let seat = seat.expect("it was started");
        let (send, receive) = std::sync::mpsc::channel();
        while shared.idle.load().sleeping == 0 {
            let _ = receive.recv_timeout(Duration::from_millis(1));
        }
        let sent = Os.now();
        seat.mask.store(Mask::Steered as u32, Ordering::Relaxed);
        seat.woken_at.store(sent.0, Ordering::Relaxed);
        js.enter(|cx| {
            cx.expect_start(seat.index as usize);
            let limit = shared.steering.limit();
            assert_eq!(cx.overdue_at(), sent + limit);
            cx.check_overdue_at(sent + limit - Nanos(1));
            assert_eq!(seat.mask.load(Ordering::Relaxed), Mask::Steered as u32);
            for _ in 0..2 {
                cx.check_overdue_at(sent + limit);
                assert_eq!(seat.mask.load(Ordering::Relaxed), Mask::Restored as u32);
                assert_eq!(cx.overdue_at(), Nanos::MAX);
            }
        });
        assert_eq!(js.stats().masks_restored, 1);
        js.schedule(move |_| send.send(()).unwrap());
        js.flush();
        receive.recv().unwrap();
        assert_eq!(seat.mask.load(Ordering::Relaxed), Mask::Full as u32);
    }
}
