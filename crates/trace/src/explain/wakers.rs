//! The waker of a sleep, and how sure it is.
//!
//! Where a recording does not mark interrupts, the thread that an event names may be one that an interrupt
//! stopped: to a timer it makes no difference which thread happens to run. So each waker is assumed there,
//! and where an interrupt is likelier, it is taken to be one: for the kernel's threads of one CPU, which
//! timers and interrupts wake, and for wake-ups in a steady rhythm by threads that had nothing to do with it.

use event::Nanos;

use super::Confidence;
use crate::timeline::{Stay, Timeline, Waker};

/// Names of the kernel's threads that interrupts and timers wake, mostly: those of one CPU, and those of RCU.
const BY_INTERRUPTS: [&str; 8] = [
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "watchdog/",
    "cpuhp/",
    "irq/",
    "rcu_",
    "rcuc/",
];

/// A rhythm is one of at least this length: shorter sleeps follow each other for other reasons.
const BEAT_MIN: Nanos = Nanos::from_millis(1);
/// Two beats are equal if they differ by less than one in this many, or by [`NEAR`].
const NEAR_PART: u64 = 64;
const NEAR: Nanos = Nanos::from_micros(50);

/// The waker of a thread's sleep.
pub(super) fn waker(timeline: &Timeline, thread: u32, sleep: Stay) -> (Waker, Confidence) {
    let waker = timeline.waker(thread, sleep.begin, sleep.end);
    if !timeline.recording().origin.is_unmarked {
        return (waker, Confidence::Known);
    }
    match waker {
        Waker::Thread(by)
            if is_woken_by_interrupts(timeline, thread)
                || is_in_rhythm(timeline, thread, sleep.end, by) =>
        {
            (Waker::Interrupt, Confidence::Assumed)
        }
        Waker::Thread(_) => (waker, Confidence::Assumed),
        waker => (waker, Confidence::Known),
    }
}

/// Whether a thread is one of the kernel's that interrupts wake. Unbound ones ("kworker/u8:1") get work from
/// threads.
fn is_woken_by_interrupts(timeline: &Timeline, thread: u32) -> bool {
    let name = timeline.name(timeline.task(thread));
    BY_INTERRUPTS.iter().any(|begin| {
        let rest = name.strip_prefix(begin);
        rest.is_some_and(|rest| !rest.starts_with('u'))
    })
}

/// Whether a wake-up is one of three in a steady rhythm, and the thread that is named for it neither slept
/// since the one before nor is named for each of them: a thread that keeps time sleeps in between.
fn is_in_rhythm(timeline: &Timeline, thread: u32, end: Nanos, by: u32) -> bool {
    let wakes = timeline.wakes_around(thread, end);
    wakes.windows(3).any(|three| {
        let [first, second, third] = [three[0], three[1], three[2]];
        let is_one_of_them = (first.time..=third.time).contains(&end);
        let (one, other) = (second.time - first.time, third.time - second.time);
        let near = Nanos(one.0 / NEAR_PART).max(NEAR);
        let is_steady = one >= BEAT_MIN && Nanos(one.0.abs_diff(other.0)) <= near;
        let others = three.iter().any(|wake| wake.by != by);
        is_one_of_them
            && is_steady
            && (others || !timeline.sleeps_within(by, first.time, third.time))
    })
}
