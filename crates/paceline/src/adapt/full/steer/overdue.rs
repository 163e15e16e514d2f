//! Signalled workers that do not start.
//!
//! A worker whose mask leaves out one CPU depends on the others. If these are busy it waits, although the
//! thread that woke it may be about to sleep. Then it is given all CPUs back.
//!
//! A worker that wakes up on a busy CPU takes over at once, or not before a tick. A fair kernel (EEVDF)
//! lets it take over at once if the running thread is ahead of its share. Otherwise the kernel checks only
//! at ticks whether that thread's slice is over. At 250 Hz that is every 4 ms, for a slice of 1.4. This
//! check can come earlier: the kernel charges the running thread for its time whenever something about a
//! thread that waits there is changed. So where wake-ups are known to take long, a worker that has not
//! started is *nudged* from time to time: another slice is asked for it, and taken back. The worker gets
//! only its due, and gets it sooner.
//!
//! So a worker's waker notes the time at which the worker should have started at the latest. Threads that
//! pass by with a time stamp at hand read that note: threads inside loops at every stamp, waiters, and
//! publishers that leave a job to a searcher. A waiter does not sleep past that time. The first thread that
//! finds a worker overdue helps it.
//!
//! All accesses are Relaxed: the note, `woken_at` and `mask` are hints. Stale hints cost a mask that is set
//! in vain, a nudge, or a check that comes later. A thread that changes something about a worker's thread
//! holds the lock of the workers' table. Under the same lock a leaving worker takes back its thread's id,
//! so the id is that of a living thread.

use event::{EventKind, Nanos};
use platform::{Atomic, Machine, Memory, Ordering, Padded, Platform, SchedParams};

use super::Steerer;
use crate::adapt::words::{Mask, WorkerWords};
use crate::adapt::workers::{Caller, Workers};

/// Bounds of the 99th percentile of wake-ups, in ns: a smaller value is an interrupt, a larger one is load.
const P99_MIN: u64 = 20_000;
const P99_MAX: u64 = 500_000;
/// If more than one wake-up in a hundred takes longer than this, CPUs are busy with other threads: a halted
/// CPU of a virtual machine takes up to 130 us.
const CROWDED: u64 = 150_000;
/// A nudge comes when a wake-up has taken this long, and again after each further time of this length. It
/// is a small part of the slice that the worker waits for, and a hundred times the cost of a nudge (four
/// system calls).
pub(super) const NUDGE: Nanos = Nanos::from_micros(200);
/// A worker that has not started by then is left to the ticks.
const LAST_NUDGE: Nanos = Nanos::from_millis(4);

/// The facts about steering that all threads of a job system share.
pub(crate) struct Steering<M: Memory> {
    pub(crate) on: bool,
    /// 1: a worker has had a mask at some time. Relaxed: a hint, for threads that look for such workers.
    pub(super) has_steered: M::AtomicU32,
    /// When a signalled worker may need help; 0: no worker is expected.
    overdue_at: Padded<M::AtomicU64>,
    /// 99th percentile of the wake-ups so far, in ns.
    p99: M::AtomicU64,
}

impl<M: Memory> Steering<M> {
    pub(crate) fn new(on: bool) -> Steering<M> {
        Steering {
            on,
            has_steered: M::AtomicU32::new(0),
            overdue_at: Padded(M::AtomicU64::new(0)),
            p99: M::AtomicU64::new(100_000),
        }
    }

    /// A wake-up took this long.
    pub(in crate::adapt) fn learn(&self, latency: Nanos) {
        let p99 = follow_p99(self.p99.load(Ordering::Relaxed), latency.0);
        self.p99.store(p99, Ordering::Relaxed);
    }

    /// A wake-up that takes longer than this is late.
    pub(super) fn limit(&self) -> Nanos {
        Nanos(2 * self.p99.load(Ordering::Relaxed))
    }

    fn is_crowded(&self) -> bool {
        self.p99.load(Ordering::Relaxed) > CROWDED
    }

    /// A check is needed at this time, or earlier.
    fn expect(&self, at: Nanos) {
        let seen = self.overdue_at.load(Ordering::Relaxed);
        if seen == 0 || at.0 < seen {
            // If that fails another thread has noted a time. The check then looks at all workers.
            let _ =
                self.overdue_at
                    .compare_exchange(seen, at.0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The time of the next check, if one is needed.
    pub(in crate::adapt) fn overdue_at(&self) -> Option<Nanos> {
        if !self.on {
            return None;
        }
        let at = self.overdue_at.load(Ordering::Relaxed);
        (at != 0).then_some(Nanos(at))
    }
}

/// The help for a worker that was signalled some time ago, and the time of the next check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Remedy {
    restore: bool,
    nudge: bool,
    /// The next check, as a time after the wake-up.
    again: Option<Nanos>,
}

impl Remedy {
    /// `limit`: the longest time that a wake-up may take with a mask.
    fn for_delay(delay: Nanos, is_steered: bool, limit: Nanos, is_crowded: bool) -> Remedy {
        let restore = is_steered && delay >= limit;
        let nudge = is_crowded && (NUDGE..LAST_NUDGE).contains(&delay);
        let for_mask = (is_steered && !restore).then_some(limit);
        let next = if nudge { delay + NUDGE } else { NUDGE };
        let for_nudge = (is_crowded && next < LAST_NUDGE && delay < next).then_some(next);
        Remedy {
            restore,
            nudge,
            again: for_mask.into_iter().chain(for_nudge).min(),
        }
    }
}

/// A running estimate of the 99th percentile that remembers no values. It goes up by half if a value is
/// above it, and down by 1/198 otherwise, so it stands still if one value in a hundred is above it ("frugal
/// streaming", Ma, Muthukrishnan and Sandler 2013, with steps in proportion).
fn follow_p99(p99: u64, value: u64) -> u64 {
    let next = if value > p99 {
        p99 + p99 / 2
    } else {
        p99 - p99 / 198
    };
    next.clamp(P99_MIN, P99_MAX)
}

impl<P: Platform, C: Caller<P>> Steerer<'_, P, C> {
    /// Whether wake-ups take long and threads are preempted, and workers have slices of their own. Then it
    /// must be other threads that keep the CPUs, and not a CPU that takes long to leave its idle state.
    pub(super) fn nudges_pay(&self) -> bool {
        let steering = self.steering;
        steering.on
            && self.noticed.are_preempted()
            && steering.is_crowded()
            && self.caller.workers().slice().is_some()
    }

    /// Notes that the worker with this index has just been signalled.
    pub(in crate::adapt) fn expect_start(&self, index: usize) {
        if self.steering.on {
            self.expect(index);
        }
    }

    /// Notes when a worker may need help, if it has been signalled.
    fn expect(&self, index: usize) {
        if let Some((sent, words)) = self.awaited_since(index)
            && let Some(first) = self.remedy(words, Nanos::ZERO).again
        {
            self.steering.expect(sent + first);
        }
    }

    /// The time since which a worker has been signalled and has not started.
    fn awaited_since(&self, index: usize) -> Option<(Nanos, &WorkerWords<P>)> {
        let workers = self.caller.workers();
        let sent = workers.signalled(index)?;
        Some((sent, workers.worker(index)?))
    }

    /// The help for a worker at `delay` after it was signalled.
    fn remedy(&self, words: &WorkerWords<P>, delay: Nanos) -> Remedy {
        let limit = self.steering.limit();
        Remedy::for_delay(delay, Mask::is_steered(words), limit, self.nudges_pay())
    }

    /// A worker with a mask has started. Notes the other workers that are expected.
    pub(super) fn expect_others(&self, started: usize) {
        self.steering.overdue_at.store(0, Ordering::Relaxed);
        let others = 0..self.caller.workers().threads();
        for other in others.filter(|&other| other != started) {
            self.expect(other);
        }
    }

    /// Gives a worker all CPUs, and notes why. False if its thread has ended.
    pub(super) fn widen(&self, words: &WorkerWords<P>, why: Mask) -> bool {
        let workers = self.caller.workers();
        let all = self.live.worker_cpus(workers.platform(), words);
        workers.with_thread(words, |thread| {
            let restored = workers.machine().set_mask(thread, &all).is_ok();
            why.set(words);
            restored
        })
    }

    /// Has the kernel decide again which thread runs on the CPU that a worker waits for. False if that is
    /// not possible. Then the worker waits as before.
    pub(super) fn nudge(&self, index: usize, words: &WorkerWords<P>) -> bool {
        let workers = self.caller.workers();
        let nudged = workers.with_thread(words, |thread| {
            let machine = workers.machine();
            // Any slice will do that is not the one that the thread has.
            let other = workers.slice().map(|slice| Nanos(slice.0 ^ 1));
            let undo =
                other.map(|other| machine.set_sched_params(thread, &SchedParams::slice(other)));
            undo.is_some_and(|undo| {
                undo.is_ok_and(|undo| machine.set_sched_params(thread, &undo).is_ok())
            })
        });
        if nudged {
            self.caller.counters().nudges.add(1);
            self.caller.note(EventKind::Nudged, 0, index as u64);
        }
        nudged
    }

    /// Helps workers that are overdue by now. For threads that know the time.
    #[inline]
    pub(in crate::adapt) fn check_overdue_at(&self, now: Nanos) {
        if let Some(at) = self.steering.overdue_at()
            && now >= at
        {
            self.help_overdue(at, now);
        }
    }

    /// The same for threads that do not know it.
    #[inline]
    pub(in crate::adapt) fn check_overdue(&self) {
        if self.steering.overdue_at().is_some() {
            self.check_overdue_at(self.caller.workers().platform().now());
        }
    }

    #[cold]
    fn help_overdue(&self, at: Nanos, now: Nanos) {
        let mine = self.steering.overdue_at.compare_exchange(
            at.0,
            0,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if mine.is_err() {
            return; // Another thread does it.
        }
        for index in 0..self.caller.workers().threads() {
            let Some((sent, words)) = self.awaited_since(index) else {
                continue;
            };
            let remedy = self.remedy(words, now - sent);
            if let Some(again) = remedy.again {
                self.steering.expect(sent + again);
            }
            if remedy.restore && self.widen(words, Mask::Restored) {
                self.caller.counters().masks_restored.add(1);
                self.caller.note(EventKind::MaskRestored, 0, index as u64);
            }
            if remedy.nudge {
                self.nudge(index, words);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use platform::{Atomic, Os};

    use super::*;
    use crate::{Builder, WaitPolicy};

    /// Goal: the estimate finds the 99th percentile from below and from above, and follows it when it
    /// changes. Method: uniform latencies of 0 to 200 us, then of 0 to 400 us. A mean over many steps is
    /// within a fifth of the true value.
    #[test]
    fn the_estimate_is_the_percentile() {
        // This is arithmetic alone: one start is enough for an interpreter.
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

    /// Goal: each kind of help comes at its time. Method: a worker with a mask and one without, where
    /// wake-ups take long and where they do not, at times around each bound.
    #[test]
    fn remedies_come_in_time() {
        let limit = Nanos::from_micros(500);
        let at = |micros: u64, is_steered: bool, is_crowded: bool| {
            let delay = Nanos::from_micros(micros);
            let remedy = Remedy::for_delay(delay, is_steered, limit, is_crowded);
            let again = remedy.again.map(|again| again.0 / 1_000);
            (remedy.restore, remedy.nudge, again)
        };
        let nothing = (false, false, None);
        assert_eq!([0, 300, 9_000].map(|t| at(t, false, false)), [nothing; 3]);
        assert_eq!(at(0, true, false), (false, false, Some(500)));
        assert_eq!(at(499, true, false), (false, false, Some(500)));
        assert_eq!(at(500, true, false), (true, false, None));
        assert_eq!(at(0, false, true), (false, false, Some(200)));
        assert_eq!(at(199, false, true), (false, false, Some(200)));
        assert_eq!(at(210, false, true), (false, true, Some(410)));
        assert_eq!(at(3_790, false, true), (false, true, Some(3_990)));
        assert_eq!(at(3_990, false, true), (false, true, None));
        assert_eq!(at(4_000, false, true), nothing);
        assert_eq!(at(0, true, true), (false, false, Some(200)));
        assert_eq!(at(310, true, true), (false, true, Some(500)));
        assert_eq!(at(600, true, true), (true, true, Some(800)));
    }

    /// Goal: a signalled worker that has not started gets all CPUs back, once, from a thread that passes by
    /// after the limit and not before, and the worker notices that when it starts. Method: the thread slot
    /// of a sleeping worker is made to look like that of a worker with a mask that was signalled a while
    /// ago. Then the worker is really woken, by a job that the main thread does not help with.
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
        let thread = shared
            .threads
            .iter()
            .find(|thread| thread.kind == crate::work::thread_slot::ThreadKind::Worker);
        let thread = thread.expect("it was started");
        let (send, receive) = std::sync::mpsc::channel::<u32>();
        while shared.idle.load().sleeping == 0 {
            let _ = receive.recv_timeout(Duration::from_millis(1));
        }
        let sent = Os.now();
        thread
            .words
            .mask
            .store(Mask::Steered as u32, Ordering::Relaxed);
        thread.woken_at.store(sent.0, Ordering::Relaxed);
        js.enter(|cx| {
            let vigil = shared.adapt.watch();
            shared.adapt.signalled(cx, thread.index as usize);
            let limit = shared.adapt.steering.limit();
            assert_eq!(vigil.sleeps_until(), sent + limit);
            vigil.passes(cx, sent + limit - Nanos(1));
            assert_eq!(
                thread.words.mask.load(Ordering::Relaxed),
                Mask::Steered as u32
            );
            for _ in 0..2 {
                vigil.passes(cx, sent + limit);
                assert_eq!(
                    thread.words.mask.load(Ordering::Relaxed),
                    Mask::Restored as u32
                );
                assert_eq!(vigil.sleeps_until(), Nanos::MAX);
            }
        });
        assert_eq!(js.stats().masks_restored, 1);
        // The job reads the mask itself: once the worker goes to sleep again it may keep off its waker's CPU.
        js.schedule(move |cx| {
            let mask = cx.thread.words.mask.load(Ordering::Relaxed);
            send.send(mask).unwrap();
        });
        js.flush();
        assert_eq!(receive.recv().unwrap(), Mask::Full as u32);
    }
}
