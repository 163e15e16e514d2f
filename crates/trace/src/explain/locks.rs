//! The holder of the lock that a thread slept for.
//!
//! A kernel does not tell which thread owns a lock. These tell: a lock that lends its waiter's priority; a
//! futex that the waker and the sleeper both named; markers, of which those of Android's runtime name the
//! owner. Without any of these a sleep is no lock here. With only the sleeper's marker, the waker is assumed
//! to be the holder.

use event::{FutexCall, Nanos};

use super::Confidence;
use super::words::NameHints;
use crate::timeline::{NOBODY, Stay, Timeline};

/// Whether a sleep that this thread ended was because of a lock that it held, and how sure that is.
pub(super) fn held_by(
    timeline: &Timeline,
    says: &[NameHints],
    sleeper: u32,
    sleep: Stay,
    waker: u32,
) -> Option<Confidence> {
    if lent(timeline, sleeper, sleep, waker) {
        return Some(Confidence::Known);
    }
    let call = call(timeline, sleeper, sleep);
    if matches!(call, Some((_, FutexCall::LockPi))) {
        return Some(Confidence::Known);
    }
    let wanted = wanted(timeline, says, sleeper, sleep.begin);
    let named = wanted.and_then(|wanted| wanted.owner);
    if named.is_some() && named == timeline.tid(timeline.task(waker)) {
        return Some(Confidence::Known);
    }
    let same_word = call.is_some_and(|(address, _)| woke_at(timeline, waker, address, sleep.end));
    let holds = holds(timeline, says, waker, sleep);
    match (wanted.is_some(), holds) {
        (true, _) if same_word => Some(Confidence::Known),
        (false, true) if same_word => Some(Confidence::Known),
        (true, true) => Some(Confidence::Inferred),
        (true, false) => Some(Confidence::Assumed),
        (false, _) => None,
    }
}

/// Whether a thread fell asleep while it wanted a lock.
pub(super) fn is_lock(timeline: &Timeline, says: &[NameHints], sleeper: u32, sleep: Stay) -> bool {
    matches!(call(timeline, sleeper, sleep), Some((_, FutexCall::LockPi)))
        || wanted(timeline, says, sleeper, sleep.begin).is_some()
}

/// Whether a thread fell asleep while it waited for a device, as the kernel says.
pub(super) fn is_for_device(
    timeline: &Timeline,
    says: &[NameHints],
    sleeper: u32,
    sleep: Stay,
) -> bool {
    innermost(timeline, says, sleeper, sleep.begin).is_some_and(|says| says.device)
}

/// The meaning of the innermost slice at a time, if it is that its thread wants a lock.
fn wanted(timeline: &Timeline, says: &[NameHints], thread: u32, time: Nanos) -> Option<NameHints> {
    innermost(timeline, says, thread, time).filter(|says| says.locks)
}

/// The meaning of the innermost slice at a time.
fn innermost(
    timeline: &Timeline,
    says: &[NameHints],
    thread: u32,
    time: Nanos,
) -> Option<NameHints> {
    let slice = timeline.slices.slices.before(thread, time).innermost?;
    says.get(slice.name.0 as usize).copied()
}

/// Whether the waker had been lent the sleeper's priority until it woke it.
fn lent(timeline: &Timeline, sleeper: u32, sleep: Stay, waker: u32) -> bool {
    let Some(last) = timeline.step(waker, sleep.end) else {
        return false;
    };
    // It may have given the priority back just before.
    let given_back = Some(last.since)
        .filter(|since| *since >= sleep.begin && *since > Nanos::ZERO)
        .and_then(|since| timeline.step(waker, since - Nanos(1)));
    let wanted = timeline.step(sleeper, sleep.begin);
    [Some(last), given_back].into_iter().flatten().any(|step| {
        let named = step.lender == sleeper;
        let alike = step.lender == NOBODY && wanted.is_some_and(|wanted| wanted.now == step.now);
        step.now < step.own && (named || alike)
    })
}

/// The futex call in which a thread fell asleep.
fn call(timeline: &Timeline, thread: u32, sleep: Stay) -> Option<(u64, FutexCall)> {
    let calls = timeline.futexes.of(thread);
    let after = calls.partition_point(|call| call.begin <= sleep.begin);
    let call = calls[..after].last()?;
    let sleeps = matches!(call.call, FutexCall::Wait | FutexCall::LockPi);
    (sleeps && call.end >= sleep.end).then_some((call.address, call.call))
}

/// Whether a thread was in a futex call for this word when it woke another one.
fn woke_at(timeline: &Timeline, waker: u32, address: u64, time: Nanos) -> bool {
    let calls = timeline.futexes.of(waker);
    let after = calls.partition_point(|call| call.begin <= time);
    let call = calls[..after].last();
    call.is_some_and(|call| {
        let wakes = matches!(call.call, FutexCall::Wake | FutexCall::UnlockPi);
        wakes && call.address == address && call.end >= time
    })
}

/// How long after the end of a marker its lock may still be given back.
const GIVES_BACK: Nanos = Nanos::from_micros(100);

/// Whether the waker was in a slice that says that it holds something, when the sleep began, and stayed in it
/// until just before the sleep ended.
fn holds(timeline: &Timeline, says: &[NameHints], waker: u32, sleep: Stay) -> bool {
    let slices = timeline.slices.slices.of(waker);
    let after = slices.partition_point(|slice| slice.begin <= sleep.begin);
    let mut slices = slices[..after].iter().rev().take(16);
    slices.any(|slice| {
        let says = says.get(slice.name.0 as usize);
        says.is_some_and(|says| says.holds)
            && slice.end >= sleep.begin
            && slice.end + GIVES_BACK >= sleep.end
    })
}
