//! Goal: a worker with little stack left runs what its wait needs all the same, when it and all others would
//! rest for ever. Method: two workers, no spares. One has little stack, and a job in its queue that only its
//! own wait needs. The other one waits for what that job releases. By the real code of `wait` and
//! `workers/spares`, from the beginning of both waits to their ends. In one model the job system knows that
//! there are no spares, in the other one it finds out. A wake-up that is lost is a deadlock.
//! Bounds: two threads, two jobs, one preemption.
//! Planted bugs: fences that are not SeqCst; only those of `wait/reserve.rs` are not.

use event::Nanos;
use platform::{Ordering, Platform};

use super::{
    Ordered, Spoil, Spoiled, WeakFences, check, held_job, must_find, parts, site_of, together,
};
use crate::queues::Queue;
use crate::work::StackLimits;
use crate::work::thread_slot::ThreadKind;

/// The worker with little stack, and the other one.
const LOW: usize = 0;
const OTHER: usize = 1;

fn go_on_in_the_reserve<P: Platform>(platform: P, is_known: bool, first: usize) {
    let mut parts = parts(platform, 4, 2, 0);
    parts.hooks.set_stuck(|_| ());
    let site = site_of(parts);
    for _ in [LOW, OTHER] {
        site.add_slot(ThreadKind::Worker);
    }
    site.shared.workers.pretend_active(2);
    if is_known {
        site.shared.workers.pretend_stuck();
    }
    let context = site.context(LOW);
    context.own(|own| own.stack = StackLimits::only_reserve());
    let held = held_job(&context);
    let needed = context.schedule(move |context| {
        context.graph().release(held, 1, Queue::Own);
        context.graph().finish_todo(Queue::Own);
    });
    let (here, there) = (site.clone(), site.clone());
    let low = Box::new(move || {
        // A wait that can fail would do so at once, if the other one rests already.
        let unexpected = |_| panic!("there is no cycle");
        here.context(LOW)
            .wait_for_borrowers(needed.ticket(), unexpected);
    });
    let other = Box::new(move || {
        let over = there.context(OTHER).wait_until(held, Nanos::MAX);
        assert!(matches!(over, Ok(true)), "the wait fails");
    });
    together(first, [low, other]);
}

#[test]
fn the_reserve_is_taken_when_all_rest() {
    for is_known in [false, true] {
        check(1, 2, move |first| {
            go_on_in_the_reserve(Spoiled::by::<Ordered>(), is_known, first);
        });
    }
}

#[test]
fn without_full_fences_all_rest() {
    must_find("deadlock", 1, || {
        go_on_in_the_reserve(Spoiled::by::<WeakFences>(), true, 0);
    });
}

/// A wait that wants the reserve and one that is the last may both overlook each other.
#[derive(Clone, Copy)]
struct WeakInTheReserve;

impl Spoil for WeakInTheReserve {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["wait/reserve.rs"];
    fn fence(_: Ordering) -> Ordering {
        Ordering::AcqRel // Partner: the other one's fence.
    }
}

#[test]
fn without_the_fences_of_the_reserve_all_rest() {
    must_find("deadlock", 1, || {
        go_on_in_the_reserve(Spoiled::by::<WeakInTheReserve>(), true, 0);
    });
}
