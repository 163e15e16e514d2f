//! Goal: a thread waits for a job that another thread makes ready and leaves to it. The waiter is woken to
//! run the job, and sees the effects of its predecessor. (A waiter that is told of the end is in `links`.)
//! Method: a job waits for another one. One thread waits for the job, the other thread ends its predecessor
//! and goes away. By the real code of `wait`, `graph` and `context`: walk, mark, fence, look, park; and
//! make ready, queue, fence, read the mark.
//! Bounds: two threads, two jobs, one preemption.
//! Planted bugs: fences that are not SeqCst (the waiter parks, and the maker sees no mark: each has looked
//! before the other wrote); a job that is made ready without Release.

use event::Nanos;
use platform::{Ordering, Platform};

use super::{
    Notes, Ordered, Site, Spoil, Spoiled, WeakFences, check, held_job, must_find, together,
};
use crate::queues::Queue;
use crate::store::JobId;

/// A body that looks too early panics (the checker reports the race there), and a job's panic is caught.
/// Then nothing was seen.
const SYMPTOM: &str = "what the awaited job saw";

fn run_by_a_waiter<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let saw = Notes::new();
    let context = site.context(1);
    let pred = held_job(&context);
    let job = context
        .job("awaited")
        .after(JobId::new(site.shared.id, pred));
    let (here, noted) = (site.clone(), saw.clone());
    let job = job.schedule(move |_| noted.add(here.what_was_done()));
    let waiter = {
        let site = site.clone();
        Box::new(move || {
            let over = site.context(0).wait_until(job.ticket(), Nanos::MAX);
            assert!(matches!(over, Ok(true)), "the wait fails");
        })
    };
    let releaser = {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(1);
            site.do_something();
            context.graph().release(pred, 1, Queue::Own);
            context.graph().finish_todo(Queue::Own);
            context.publish(Queue::Own, false);
        })
    };
    together(first, [waiter, releaser]);
    assert_eq!(saw.take(), [1], "{SYMPTOM}");
}

#[test]
fn a_waiter_runs_what_it_waits_for() {
    check(1, 2, |first| {
        run_by_a_waiter(Spoiled::by::<Ordered>(), first)
    });
}

/// A job is made ready, and nothing is published with that.
#[derive(Clone, Copy)]
struct NotReleased;

impl Spoil for NotReleased {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["graph/finish.rs"];
    fn store(value: u64, order: Ordering) -> Ordering {
        /// The phase Ready.
        const READY: u8 = 2;
        if value as u8 == READY {
            Ordering::Relaxed
        } else {
            order
        }
    }
}

#[test]
fn a_job_that_was_not_released_is_run_too_early() {
    must_find(SYMPTOM, 1, || {
        run_by_a_waiter(Spoiled::by::<NotReleased>(), 0)
    });
}

#[test]
fn without_full_fences_a_waiter_is_overlooked() {
    must_find("deadlock", 1, || {
        run_by_a_waiter(Spoiled::by::<WeakFences>(), 0)
    });
}
