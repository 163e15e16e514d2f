//! Goal: a thread in a wait of a group is woken for a job of the group that another thread makes and leaves
//! to it, and sees what that thread has done before.
//! Method: a job is held back. One thread waits for it in a wait of a group, the other thread makes a job of
//! the group, which lets the awaited one go, and goes away. By the real code of `wait`, `graph` and
//! `publish`: mark the group, fence, look through the queues, park; and queue, fence, read the group's mark.
//! Bounds: two threads, three jobs, one preemption.
//! Planted bugs: fences that are not SeqCst (the waiter parks, and the maker sees no mark: each has looked
//! before the other wrote); a wait that is not one of the group, which leaves the job alone.

use std::panic::Location;

use event::Nanos;
use platform::Platform;

use super::{Notes, Ordered, Site, Spoiled, WeakFences, check, held_job, must_find, together};
use crate::api::Group;
use crate::queues::Queue;

const SYMPTOM: &str = "what the job of the group saw";

fn run_in_a_wait<P: Platform>(platform: P, first: usize, of_the_group: bool) {
    let site = Site::new(platform, 4, 2);
    let saw = Notes::new();
    let context = site.context(1);
    let awaited = held_job(&context);
    let group = Group::new(context.job("group")).expect("there is room");
    let ticket = group.ticket();
    let waiter = {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(0);
            let over = if of_the_group {
                context.wait_in_group(Location::caller(), ticket, (awaited, Nanos::MAX))
            } else {
                context.wait_until(awaited, Nanos::MAX)
            };
            assert!(matches!(over, Ok(true)), "the wait fails");
        })
    };
    let maker = {
        let (site, noted) = (site.clone(), saw.clone());
        Box::new(move || {
            site.do_something();
            let context = site.context(1);
            let here = site.clone();
            let job = context.job("of the group").in_group(&group);
            job.schedule(move |cx| {
                noted.add(here.what_was_done());
                cx.graph().release(awaited, 1, Queue::Own);
                cx.graph().finish_todo(Queue::Own);
            });
            std::mem::forget(group); // Its end is another subject.
        })
    };
    together(first, [waiter, maker]);
    assert_eq!(saw.take(), [1], "{SYMPTOM}");
}

#[test]
fn a_waiter_runs_jobs_of_its_group() {
    check(1, 2, |first| {
        run_in_a_wait(Spoiled::by::<Ordered>(), first, true)
    });
}

#[test]
fn without_full_fences_a_waiter_of_the_group_is_overlooked() {
    must_find("deadlock", 1, || {
        run_in_a_wait(Spoiled::by::<WeakFences>(), 0, true)
    });
}

#[test]
fn a_wait_of_no_group_leaves_the_job_alone() {
    must_find("deadlock", 1, || {
        run_in_a_wait(Spoiled::by::<Ordered>(), 0, false)
    });
}
