//! Goal: a thread slot that is made while other threads work is found whole by every thread that may look
//! for it. It is handed on from one thread to the next as the last one left it. Method: outside threads,
//! which are given a thread slot at their first call. One waits for a job, and so marks the jobs that it
//! needs with its new thread slot. Meanwhile another thread ends the job's predecessor, and wakes the
//! thread slot of the mark. Then threads come one after the other to the only thread slot and write to its
//! own part, by the real `ThreadSlots` alone. Bounds: two threads; two jobs and one preemption, or one
//! thread slot and three. Planted bug: thread slots are counted, and left, without Release.

use event::Nanos;
use platform::{Ordering, Platform, SharedCell};

use super::{Notes, Ordered, Part, RACE, Site, Spoil, Spoiled, check, held_job, must_find};
use super::{parts, site_of, together};
use crate::queues::Queue;
use crate::store::JobId;
use crate::work::thread_slot::ThreadKind;

/// An outside thread calls for the first time, to wait for a job, while another thread ends the job's
/// predecessor.
fn wait_with_a_new_slot<P: Platform>(platform: P, first: usize) {
    let site = site_of(parts(platform, 4, 1, 1));
    site.add_slot(ThreadKind::Worker);
    // This worker and one more, which is busy.
    site.shared.workers.pretend_active(2);
    let context = site.context(0);
    let pred = held_job(&context);
    let job = context.job("awaited");
    let job = job.after(JobId::new(site.shared.id, pred)).schedule(|_| ());
    let (here, there) = (site.clone(), site.clone());
    let guest = Box::new(move || {
        let context = here.shared.context().expect("there is a thread");
        let over = context.wait_until(job.ticket(), Nanos::MAX);
        assert!(matches!(over, Ok(true)), "the wait fails");
    });
    let releaser = Box::new(move || {
        let context = there.context(0);
        context.graph().release(pred, 1, Queue::Own);
        context.graph().finish_todo(Queue::Own);
        context.publish(Queue::Own, false);
    });
    together(first, [guest, releaser]);
}

/// The symptom of a thread that finds another state than the last one left.
const SYMPTOM: &str = "threads that had the slot";

/// Two threads come to the only thread slot, at the same time or one after the other.
fn take_turns<P: Platform>(platform: P, first: usize) {
    let site = site_of(parts(platform, 2, 0, 1));
    let had = Notes::new();
    let hold = |site: &Site<P>, had: &Notes<u32>| {
        let threads = &site.shared.threads;
        let Some(thread) = threads.take_guest(&site.shared.platform, false) else {
            return;
        };
        // SAFETY: the thread has the slot. The checker is asked whether it is the only one.
        let before = unsafe {
            thread.own.with_mut(|own| {
                (*own).tick += 1;
                (*own).tick - 1
            })
        };
        had.add(before);
        threads.leave(thread.index);
    };
    let part = || {
        let (site, had) = (site.clone(), had.clone());
        Box::new(move || hold(&site, &had)) as Part
    };
    together(first, [part(), part()]);
    hold(&site, &had);
    let had = had.take();
    let in_turn: Vec<u32> = (0..had.len() as u32).collect();
    assert!(had.len() >= 2 && had == in_turn, "{SYMPTOM}: {had:?}");
}

#[test]
fn a_mark_may_lead_to_a_new_slot() {
    check(1, 2, |first| {
        wait_with_a_new_slot(Spoiled::by::<Ordered>(), first);
    });
}

#[test]
fn a_thread_slot_has_one_thread_after_the_other() {
    check(3, 2, |first| take_turns(Spoiled::by::<Ordered>(), first));
}

/// A thread slot can be found before it is whole, or is free before its last thread is done.
#[derive(Clone, Copy)]
struct NotReleased;

impl Spoil for NotReleased {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["work/thread_slots.rs"];
    fn store_small(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn a_thread_slot_that_is_counted_too_early_is_found() {
    must_find(RACE, 1, || {
        wait_with_a_new_slot(Spoiled::by::<NotReleased>(), 0);
    });
}

#[test]
fn a_thread_slot_that_is_left_too_early_is_found() {
    must_find(RACE, 3, || {
        take_turns(Spoiled::by::<NotReleased>(), 0);
    });
}
