//! Goal: a scope knows all jobs outside of it that its jobs depend on, and a thread that waits for the scope
//! runs those of them that are ready, whenever the scope came to need them.
//! Method: two threads each tell a scope of one more job that it needs, in a list that is empty, or that has
//! the place of a job that is over. Then a thread waits for a scope, while another one schedules a job
//! outside of it, tells the scope that it needs that job, and goes away. By the real code of `graph` and
//! `wait`.
//! Bounds: two threads, up to four jobs, three preemptions for the list and one for the wait.
//! Planted bugs: a place is taken by a load and a store instead of a
//! compare-exchange, so that one of two jobs is forgotten; fences that are not SeqCst, so that the waiter
//! parks without having seen the job, and the other thread sees no waiter.

use event::Nanos;
use platform::{Atomic, Ordering, Platform};
use testkit::Loom;

use super::{
    Ordered, Part, Site, Spoil, Spoiled, WeakFences, check, held_job, must_find, together,
};
use crate::queues::Queue;
use crate::store::{Slot, Ticket};
use crate::work::Context;

/// A job of `scope` that does not start.
fn job_of<P: Platform>(context: &Context<'_, P>, scope: Ticket) -> Ticket {
    let job = held_job(context);
    let slot = context.shared.slot(job);
    let flags = Slot::<P>::IN_SCOPE | Slot::<P>::HAS_PARENT;
    // Relaxed: the threads that read these are started afterwards.
    slot.flags.store(flags, Ordering::Relaxed);
    slot.parent.store(scope.0, Ordering::Relaxed);
    job
}

const FORGOTTEN: &str = "what the scope needs";

fn two_needs<P: Platform>(platform: P, first: usize, some_are_over: bool) {
    let site = Site::new(platform, 8, 2);
    let context = site.context(0);
    let scope = held_job(&context);
    if some_are_over {
        let over = held_job(&context);
        let told = context.graph().needs(scope, over);
        told.expect("there is room");
        context.graph().release(over, 1, Queue::Own);
        context.graph().finish_todo(Queue::Own);
    }
    let preds = [held_job(&context), held_job(&site.context(1))];
    let parts = [0, 1].map(|thread| -> Part {
        let (site, pred) = (site.clone(), preds[thread]);
        Box::new(move || {
            let told = site.context(thread).graph().needs(scope, pred);
            told.expect("there is room");
        })
    });
    together(first, parts);
    let mut found = Vec::new();
    let graph = &site.shared.graph;
    graph.unfinished_preds(scope, &mut |pred| found.push(pred));
    found.sort_unstable();
    let mut preds = preds.to_vec();
    preds.sort_unstable();
    assert_eq!(found, preds, "{FORGOTTEN}");
}

#[test]
fn a_scope_is_told_by_two_threads() {
    check(3, 2, |first| two_needs(Loom, first, false));
    check(3, 2, |first| two_needs(Loom, first, true));
}

/// Compare-exchanges in the file of edges are a load and a store.
#[derive(Clone, Copy)]
struct TornEdges;

impl Spoil for TornEdges {
    const FILES: &'static [&'static str] = &["graph/edges.rs"];
    const TORN: bool = true;
}

#[test]
fn a_torn_exchange_forgets_a_job() {
    must_find(FORGOTTEN, 3, || {
        two_needs(Spoiled::by::<TornEdges>(), 0, true)
    });
}

fn need_while_it_waits<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 8, 2);
    let context = site.context(1);
    let scope = held_job(&context);
    let job = job_of(&context, scope);
    let waiter = {
        let site = site.clone();
        Box::new(move || {
            let over = site.context(0).wait_until(scope, Nanos::MAX);
            assert!(matches!(over, Ok(true)), "the wait fails");
        })
    };
    let teller = {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(1);
            // Not a job of the scope; the last one that keeps it from ending.
            let outside = context.schedule(move |cx| {
                cx.graph().release(scope, 1, Queue::Own);
                cx.graph().finish_todo(Queue::Own);
            });
            let slot = site.shared.slot(job);
            let told = context.graph().tell_scope(slot, &[outside.ticket()]);
            told.expect("there is room");
        })
    };
    together(first, [waiter, teller]);
}

#[test]
fn a_waiter_runs_what_its_scope_comes_to_need() {
    check(1, 2, |first| {
        need_while_it_waits(Spoiled::by::<Ordered>(), first)
    });
}

#[test]
fn without_full_fences_the_waiter_is_not_told() {
    must_find("deadlock", 1, || {
        need_while_it_waits(Spoiled::by::<WeakFences>(), 0)
    });
}
