//! Goal: a thread is woken for a job that is pinned to it, and runs it once, after what comes before it, also
//! if the thread leaves at that moment; and in the middle of a job it comes for what it needs, however late
//! that is known.
//! Method: one thread waits for a job that is pinned to it, and another one ends what comes before that; the
//! same with a thread that leaves. One thread waits, in the middle of a job, for a job that another thread
//! runs, and that one waits in its middle for a job which is pinned to the first and ready. By the real code
//! of `pinned` and `wait`. Bounds: two threads, one preemption (two for the thread that leaves).
//! Planted bugs: a job that is ready does not unpark its thread; a wait that begins does not wake threads
//! whose jobs it may need.

use event::Nanos;
use platform::{Atomic, Omission, Ordering, Parker, Platform};

use super::{Notes, Ordered, Part, Site, Spoil, Spoiled, check, held_job, must_find, together};
use crate::ThreadPin;
use crate::queues::Queue;
use crate::store::{JobId, Ticket};

/// The thread with this number takes jobs that are pinned to it.
fn pin_of<P: Platform>(site: &Site<P>, thread: usize) -> ThreadPin {
    let number = site.shared.pins().arrive(thread as u32);
    ThreadPin::new(site.shared.id, number)
}

/// A job that is held back, and one that comes after it and is pinned to the first thread.
fn pinned_after_held<P: Platform>(site: &Site<P>, saw: &Notes<u32>) -> (Ticket, Ticket) {
    let pin = pin_of(site, 0);
    let context = site.context(1);
    let pred = held_job(&context);
    let (here, noted) = (site.clone(), saw.clone());
    let job = context.job("pinned").pinned_to(pin);
    let job = job.after(JobId::new(site.shared.id, pred));
    let job = job.schedule(move |_| noted.add(here.what_was_done()));
    (pred, job.ticket())
}

/// Ends the job that is held back, on the second thread.
fn releaser<P: Platform>(site: &Site<P>, pred: Ticket) -> Part {
    let site = site.clone();
    Box::new(move || {
        let context = site.context(1);
        site.do_something();
        context.graph().release(pred, 1, Queue::Own);
        context.graph().finish_todo(Queue::Own);
        context.publish(Queue::Own, false);
    })
}

fn ready_while_it_waits<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let saw = Notes::new();
    let (pred, job) = pinned_after_held(&site, &saw);
    let waiter = {
        let site = site.clone();
        Box::new(move || {
            let over = site.context(0).wait_until(job, Nanos::MAX);
            assert!(matches!(over, Ok(true)), "the wait fails");
        })
    };
    together(first, [waiter, releaser(&site, pred)]);
    assert_eq!(saw.take(), [1], "what the pinned job saw");
}

#[test]
fn a_job_wakes_the_thread_it_is_pinned_to() {
    check(1, 2, |first| {
        ready_while_it_waits(Spoiled::by::<Ordered>(), first)
    });
}

/// A job that is ready does not unpark its thread.
#[derive(Clone, Copy)]
struct NotUnparked;

impl Spoil for NotUnparked {
    const ORDERED: bool = true;
    const OMITS: Option<Omission> = Some(Omission::UnparkPinned);
}

#[test]
fn without_an_unpark_it_sleeps_on() {
    must_find("deadlock", 1, || {
        ready_while_it_waits(Spoiled::by::<NotUnparked>(), 0)
    });
}

/// The thread leaves while its job becomes ready. The job is over in any case.
fn ready_while_it_leaves<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let saw = Notes::new();
    let (pred, job) = pinned_after_held(&site, &saw);
    let leaver = {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(0);
            context.run_pinned(None);
            site.shared.pins().leave(&context, false);
        })
    };
    together(first, [leaver, releaser(&site, pred)]);
    while site.context(1).run_any() {}
    while site.context(0).run_any() {}
    assert!(site.shared.slot(job).is_over(job), "the job is left");
    assert!(saw.len() <= 1, "it runs twice");
}

#[test]
fn a_job_is_not_left_behind() {
    check(2, 2, |first| {
        ready_while_it_leaves(Spoiled::by::<Ordered>(), first)
    });
}

/// The first thread has a job that is ready, and needs another one to end, which runs on the second. That one
/// comes to wait, in its middle, for the job that is ready. The first thread blocks as a wait does.
fn needed_late<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let pin = pin_of(&site, 0);
    let context = site.context(1);
    let ready = context.job("ready").pinned_to(pin).schedule(|_| ());
    let ready = ready.ticket();
    let middle = context.schedule(|_| ()).ticket();
    let slot = site.shared.slot(middle);
    assert!(slot.claim(middle), "no other thread claims it");
    // Release, partner: none is needed: the threads are not there yet.
    slot.place.store(1, Ordering::Release);
    let here = site.clone();
    let needs = Box::new(move || {
        let cx = here.context(0);
        loop {
            if let Some(job) = here.shared.pins().find_needed(&cx, middle) {
                assert!(cx.run_pinned(Some(job)), "nothing else holds it back");
                return;
            }
            cx.thread.parker.park(Nanos::MAX);
        }
    });
    let there = site.clone();
    let waits = Box::new(move || {
        let cx = there.context(1);
        // As in a wait.
        cx.thread.waits_for.store(ready.0, Ordering::Relaxed);
        there.shared.pins().waits_have_changed(&cx);
    });
    together(first, [needs, waits]);
    assert!(site.shared.slot(ready).is_over(ready));
}

#[test]
fn it_comes_for_what_it_needs() {
    check(2, 2, |first| needed_late(Spoiled::by::<Ordered>(), first));
}

#[test]
fn without_an_unpark_it_does_not_come() {
    must_find("deadlock", 2, || {
        needed_late(Spoiled::by::<NotUnparked>(), 0)
    });
}
