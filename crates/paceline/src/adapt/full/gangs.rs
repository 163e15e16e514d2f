//! Whether it pays to have workers run jobs of groups that wait for each other.
//!
//! Such jobs are those of a physics step, whose solvers meet after each stage. If a worker loses its CPU to
//! another program in the middle of one, the others wait until it has a CPU again: for a tick or more, where
//! the whole step takes a part of one. So what a worker's help is worth shows in two sums over its jobs of
//! groups. *Gained* is the time that it had a CPU in them: without it the thread that waits would have had to
//! compute as long. *Lost* is the time that it waited for a CPU in the middle of them: as long, at most, as
//! others have waited for it.
//!
//! (Time in a job's own waits counts as gained.)
//!
//! Once both together are [`WINDOW`], they are compared. If more was lost than gained, groups are not worth
//! sharing for [`HOLD`], and for twice as long each time, up to [`HOLD_MAX`]. If more was gained, it will be
//! half as long the next time. To share them again for a while is the only way to see that the other program
//! is gone.
//!
//! What is lost is an upper bound: alone the thread that waits loses its CPU as well, and where all CPUs
//! change threads at the same moments nothing is lost by sharing. On a simulated machine with the same number
//! of hogs on each CPU that is so, and steps alone take 1.5 times as long; with another number of hogs they
//! take 0.72 to 0.91 of the time, and on a real one (two CPUs, four hogs, Box2D) 0.4 to 0.9.
//!
//! The job system itself does not act on it: a thread may wait for a job without running it. A program that
//! makes a job of a group, and may as well do its work at once, asks
//! ([`groups_are_worth_sharing`](crate::JobSystem::groups_are_worth_sharing)). Jobs that are not awaited soon
//! should not ask: while a worker has no CPU the other threads go on with the rest, so less is lost than is
//! counted here, and two threads get twice the time of one. The jobs of Jolt's steps do not wait for each
//! other, but the step waits for all of them: beside four hogs its mean is 0.5 to 0.75 of that of steps that
//! are always shared.
//!
//! The cost: two looks at the clock for each job of a group that a worker runs. Only after one that took
//! longer than [`LONG`] the kernel is asked whether the worker has lost its CPU, as in `interference`.
//!
//! All atomics here are relaxed: they are numbers, and nothing is published with them. Two workers that
//! settle at the same time may count a sum twice or not at all, once.

use event::Nanos;
use platform::{Atomic, Machine, Memory, Ordering, Padded, Platform, Usage};

use super::local::AdaptLocal;
use crate::adapt::workers::{Caller, Workers};

/// A job that took less has not lost its CPU for a tick.
const LONG: Nanos = Nanos::from_micros(500);
/// What is compared: two ticks at 250 Hz.
const WINDOW: Nanos = Nanos::from_millis(8);
/// How long groups are not shared, the first time.
const HOLD: Nanos = Nanos::from_millis(250);
const HOLD_MAX: Nanos = Nanos::from_secs(8);

/// See the module.
pub(super) struct Gangs<M: Memory>(Padded<GangSums<M>>);

struct GangSums<M: Memory> {
    gained: M::AtomicU64,
    lost: M::AtomicU64,
    /// The time until which groups are not worth sharing; zero: they are.
    alone_until: M::AtomicU64,
    /// How long that will be the next time.
    hold: M::AtomicU64,
}

/// What a worker remembers.
#[derive(Clone, Copy, Default)]
pub(super) struct GangSample {
    /// Not added to the sums yet.
    gained: u64,
    /// When it was asked last.
    then: Usage,
}

impl<P: Platform> Gangs<P> {
    pub(super) fn new() -> Gangs<P> {
        Gangs(Padded(GangSums {
            gained: P::AtomicU64::new(0),
            lost: P::AtomicU64::new(0),
            alone_until: P::AtomicU64::new(0),
            hold: P::AtomicU64::new(HOLD.0),
        }))
    }

    /// Whether groups are worth sharing.
    #[inline]
    pub(super) fn are_worth_sharing(&self, now: impl FnOnce() -> Nanos) -> bool {
        let until = self.0.alone_until.load(Ordering::Relaxed);
        until == 0 || self.is_over(until, now())
    }

    #[cold]
    fn is_over(&self, until: u64, now: Nanos) -> bool {
        let is_over = now.0 >= until;
        if is_over {
            self.0.alone_until.store(0, Ordering::Relaxed);
        }
        is_over
    }

    /// A sentence for people, if groups are not worth sharing.
    pub(super) fn explain(&self, now: Nanos) -> Option<String> {
        let until = Nanos(self.0.alone_until.load(Ordering::Relaxed));
        (until > now).then(|| {
            format!(
                "Workers were without a CPU for more than half of the time in jobs of groups, because of \
                 other programs: for {} ms more such jobs are not worth sharing, and a program that asks \
                 runs them at once.",
                (until - now).0.div_ceil(1_000_000)
            )
        })
    }

    /// Another thread has the thread slot now.
    pub(super) fn forget_usage<C: Caller<P>>(&self, caller: &C) {
        caller.local(|local: &mut AdaptLocal| local.gang = GangSample::default());
    }

    /// The calling thread is a worker that has run a job of a group.
    #[inline]
    pub(super) fn job_ended<C: Caller<P>>(&self, caller: &C, began: Nanos, ended: Nanos) {
        let length = ended - began;
        let gained = caller.local(|local: &mut AdaptLocal| {
            local.gang.gained += length.0;
            local.gang.gained
        });
        if gained >= LONG.0 {
            self.settle(caller, length, ended);
        }
    }

    #[cold]
    fn settle<C: Caller<P>>(&self, caller: &C, length: Nanos, now: Nanos) {
        let mut gained =
            caller.local(|local: &mut AdaptLocal| std::mem::take(&mut local.gang.gained));
        let mut lost = 0;
        if length >= LONG {
            match lost_in(caller, length) {
                Some(waited) => lost = waited,
                None => gained -= length.0, // It may have had a CPU or not.
            }
        }
        self.judge(gained.saturating_sub(lost), lost, now);
    }

    fn judge(&self, gained: u64, lost: u64, now: Nanos) {
        let sums = &self.0;
        let gained = sums.gained.fetch_add(gained, Ordering::Relaxed) + gained;
        let lost = sums.lost.fetch_add(lost, Ordering::Relaxed) + lost;
        if gained + lost < WINDOW.0 {
            return;
        }
        sums.gained.store(0, Ordering::Relaxed);
        sums.lost.store(0, Ordering::Relaxed);
        let hold = sums.hold.load(Ordering::Relaxed);
        let next = if lost > gained {
            sums.alone_until.store(now.0 + hold, Ordering::Relaxed);
            hold * 2
        } else {
            hold / 2
        };
        let next = next.clamp(HOLD.0, HOLD_MAX.0);
        sums.hold.store(next, Ordering::Relaxed);
    }
}

/// How long the calling thread was without a CPU in a job that took so long and has just ended. `None`: it
/// was not asked before, or the system does not say.
fn lost_in<P: Platform, C: Caller<P>>(caller: &C, length: Nanos) -> Option<u64> {
    let machine = caller.workers().machine();
    let then = caller.local(|local: &mut AdaptLocal| local.gang.then);
    let switches = machine.involuntary()?;
    if then.involuntary == Some(switches) {
        return Some(0);
    }
    let now = machine.usage_so_far();
    caller.local(|local: &mut AdaptLocal| local.gang.then = now);
    let waited = now.runnable?.0.saturating_sub(then.runnable?.0);
    Some(waited.min(length.0))
}

#[cfg(test)]
mod tests {
    use platform::Os;

    use super::*;

    /// Goal: groups are shared as long as more is gained than lost, then left alone for a while, for longer
    /// each time up to a bound, and for less when sharing has paid. Method: sums of each kind, with the time.
    #[test]
    fn what_is_lost_more_than_gained_is_left_alone() {
        let gangs = Gangs::<Os>::new();
        let ms = |time: u64| Nanos::from_millis(time).0;
        let shared_at = |time| gangs.are_worth_sharing(|| Nanos::from_millis(time));
        gangs.judge(ms(100), ms(99), Nanos(0));
        assert!(shared_at(0), "more is gained");
        gangs.judge(ms(1), ms(6), Nanos(0));
        assert!(shared_at(0), "it is less than a window");
        let mut now = 1000;
        gangs.judge(0, ms(2), Nanos::from_millis(now));
        for hold in [250, 500, 1000, 2000, 4000, 8000, 8000] {
            assert!(!shared_at(now) && !shared_at(now + hold - 1), "{hold} ms");
            assert!(
                shared_at(now + hold) && shared_at(now),
                "it was shared again"
            );
            now += hold;
            gangs.judge(ms(3), ms(5), Nanos::from_millis(now));
        }
        gangs.judge(ms(8), 0, Nanos::from_millis(now));
        gangs.judge(ms(8), 0, Nanos::from_millis(now));
        gangs.judge(ms(3), ms(5), Nanos::from_millis(now));
        let said = gangs.explain(Nanos::from_millis(now + 500));
        assert!(said.is_some_and(|said| said.contains("for 1500 ms more")));
        assert_eq!(gangs.explain(Nanos::from_millis(now + 2000)), None);
        assert!(!shared_at(now + 1999) && shared_at(now + 2000));
    }
}
