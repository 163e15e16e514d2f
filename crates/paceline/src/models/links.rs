//! Goal: an edge is either delivered by whoever finishes the predecessor, or whoever adds it learns
//! that the predecessor is over; never both, never neither; and either way the successor sees what its
//! predecessors did. The same for threads that wait.
//! Method: one thread ends a job, and makes the next one in its slot at once, while another adds an
//! edge from it, or waits for it, by the real code of `graph`, `schedule` and `wait`. Then everything
//! that is ready is run. Then two threads, each of which ends one predecessor of the same job. Last, a block
//! of links that gets another user while somebody reads it.
//! Bounds: two threads, two or three jobs, three preemptions for edges and two for waits.
//! Planted bugs: adding is a load and a store instead of a compare-exchange, so that a link is hung into
//! a list that was closed meanwhile, and its owner waits for ever; adding does not look at the
//! generation, so that a link is hung into the list of the slot's next job; adding, closing and the end
//! of a job without Release; counting down without AcqRel, so that the last predecessor to end does not
//! pass on what the others did; filling a block without Release, or without saying first that it is nobody's.

use std::sync::Arc;

use event::Nanos;
use platform::{Ordering, Platform};
use testkit::Loom;

use super::{
    Notes, Ordered, Part, RACE, Site, Spoil, Spoiled, check, held_job, must_find, together,
};
use crate::context::Queue;
use crate::job::{JobId, Links, PLACES, Ticket};
use crate::slab::NIL;

/// Ends `job` and uses its slot again.
fn finisher<P: Platform>(site: &Site<P>, job: Ticket) -> Part {
    let site = site.clone();
    Box::new(move || {
        let context = site.context(1);
        site.do_something();
        context.release(job, 1, Queue::Own);
        context.finish_todo(Queue::Own);
        let next = held_job(&context);
        assert_eq!(next.index(), job.index(), "the slot is used again");
    })
}

const LOST: &str = "runs of the successor";

fn add_an_edge<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let pred = held_job(&site.context(1));
    let saw = Notes::new();
    let adder = {
        let (site, saw) = (site.clone(), saw.clone());
        Box::new(move || {
            let (context, here) = (site.context(0), site.clone());
            let after = JobId::new(site.shared.id, pred);
            let successor = context.job("successor").after(after);
            successor.schedule(move |_| saw.add(here.what_was_done()));
            while context.run_any() {}
        })
    };
    together(first, [adder, finisher(&site, pred)]);
    while site.context(0).run_any() {}
    assert_eq!(saw.take(), [1], "{LOST}");
}

#[test]
fn an_edge_is_delivered_or_over() {
    check(3, 2, |first| add_an_edge(Loom, first));
}

/// Ends `job`, which leaves one of two things done, and runs what follows.
fn ender<P: Platform>(site: &Site<P>, thread: usize, job: Ticket, done: &Site<P>) -> Part {
    let (site, done) = (site.clone(), done.clone());
    Box::new(move || {
        let context = site.context(thread);
        done.do_something();
        context.release(job, 1, Queue::Own);
        context.finish_todo(Queue::Own);
        while context.run_any() {}
    })
}

fn join_two_edges<P: Platform>(platform: P, first: usize) {
    let (site, other) = (Site::new(platform.clone(), 4, 2), Site::new(platform, 1, 0));
    let saw = Notes::new();
    let context = site.context(0);
    let preds = [held_job(&context), held_job(&site.context(1))];
    let names = preds.map(|pred| JobId::new(site.shared.id, pred));
    let (one, two, noted) = (site.clone(), other.clone(), saw.clone());
    let successor = context.job("successor").after_all(&names);
    successor.schedule(move |_| noted.add((one.what_was_done(), two.what_was_done())));
    let enders = [
        ender(&site, 0, preds[0], &site),
        ender(&site, 1, preds[1], &other),
    ];
    together(first, enders);
    assert_eq!(saw.take(), [(1, 1)], "{LOST}");
}

#[test]
fn the_last_of_two_predecessors_releases_the_successor() {
    check(3, 2, |first| {
        join_two_edges(Spoiled::<Ordered>::HERE, first)
    });
}

/// Counting down what holds a job back publishes nothing.
#[derive(Clone, Copy)]
struct NotCounted;

impl Spoil for NotCounted {
    const ORDERED: bool = true;
    const FILE: &'static str = "graph.rs";
    fn count_down(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

/// The race is in the successor's body: a panic of the job, which is caught, and nothing is seen.
#[test]
fn a_release_that_publishes_nothing_runs_the_successor_too_early() {
    must_find(LOST, 3, || join_two_edges(Spoiled::<NotCounted>::HERE, 0));
}

fn wait_for_the_end<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let job = held_job(&site.context(1));
    let waiter = {
        let site = site.clone();
        Box::new(move || {
            let over = site.context(0).wait_until(job, Nanos::MAX);
            assert!(matches!(over, Ok(true)), "the wait fails");
            assert_eq!(site.what_was_done(), 1);
        })
    };
    together(first, [waiter, finisher(&site, job)]);
}

#[test]
fn a_waiter_is_told_and_sees_what_was_done() {
    check(2, 2, |first| wait_for_the_end(Loom, first));
}

/// Adding a link publishes nothing.
#[derive(Clone, Copy)]
struct NotReleasedByAdder;

impl Spoil for NotReleasedByAdder {
    const FILE: &'static str = "edges.rs";
    fn exchange(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn an_edge_that_was_added_without_release_is_misread() {
    must_find(RACE, 3, || {
        add_an_edge(Spoiled::<NotReleasedByAdder>::HERE, 0)
    });
}

/// Whether the list is still open is looked at, but not in the step that adds to it.
#[derive(Clone, Copy)]
struct Torn;

impl Spoil for Torn {
    const FILE: &'static str = "edges.rs";
    const TORN: bool = true;
}

#[test]
fn an_edge_that_is_added_to_a_closed_list_is_lost() {
    must_find(LOST, 3, || add_an_edge(Spoiled::<Torn>::HERE, 0));
    must_find("deadlock", 2, || wait_for_the_end(Spoiled::<Torn>::HERE, 0));
}

/// Adding looks at the link that is on top, and not at whose list it is.
#[derive(Clone, Copy)]
struct NoGeneration;

impl Spoil for NoGeneration {
    const FILE: &'static str = "edges.rs";
    fn mistaken(now: u64, current: u64, new: u64) -> Option<u64> {
        let node = u64::from(NIL);
        (now & node == current & node).then_some(now & !node | new & node)
    }
}

#[test]
fn an_edge_that_is_added_to_the_next_jobs_list_is_lost() {
    must_find(LOST, 3, || add_an_edge(Spoiled::<NoGeneration>::HERE, 0));
}

/// The end of a job publishes nothing.
#[derive(Clone, Copy)]
struct NotReleasedBySlot;

impl Spoil for NotReleasedBySlot {
    const FILE: &'static str = "graph.rs";
    fn store(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

/// Closing the list publishes nothing.
#[derive(Clone, Copy)]
struct NotReleasedByCloser;

impl Spoil for NotReleasedByCloser {
    const FILE: &'static str = "graph.rs";
    fn change(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn an_end_that_publishes_nothing_is_seen_too_early() {
    must_find(RACE, 2, || {
        wait_for_the_end(Spoiled::<NotReleasedBySlot>::HERE, 0)
    });
    must_find(RACE, 3, || {
        add_an_edge(Spoiled::<NotReleasedByCloser>::HERE, 0)
    });
}

/// The two users of a block, by generation: a reader of the first one's links must not get the other's.
const OLD: Ticket = Ticket(1 << 24 | 5);
const NEW: Ticket = Ticket(2 << 24 | 5);
const MIXED: &str = "another user's links";

fn fill_while_it_is_read<P: Platform>(first: usize) {
    let preds =
        |of: Ticket| std::array::from_fn::<_, PLACES, _>(|place| Ticket(of.0 + 8 + place as u64));
    let block = Arc::new(Links::<P>::empty());
    block.fill(&preds(OLD), OLD.0, 1);
    let reader = {
        let block = block.clone();
        Box::new(move || {
            if let Some((from, more)) = block.read(OLD.0) {
                assert_eq!((from, more), (preds(OLD), 1), "{MIXED}");
            }
            if let Some((from, more)) = block.read(NEW.0) {
                assert_eq!((from, more), (preds(NEW), 2), "{MIXED}");
            }
        })
    };
    together(
        first,
        [reader, Box::new(move || block.fill(&preds(NEW), NEW.0, 2))],
    );
}

#[test]
fn links_are_read_whole_or_not_at_all() {
    check(3, 2, fill_while_it_is_read::<Loom>);
}

/// Filling publishes nothing.
#[derive(Clone, Copy)]
struct NotReleasedByFiller;

impl Spoil for NotReleasedByFiller {
    const FILE: &'static str = "job/links.rs";
    fn store(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

/// Filling begins while the block still seems to be its last user's.
#[derive(Clone, Copy)]
struct NotCleared;

impl Spoil for NotCleared {
    const FILE: &'static str = "job/links.rs";
    fn written(value: u64) -> u64 {
        if value == 0 { OLD.0 } else { value }
    }
}

#[test]
fn a_block_that_is_filled_carelessly_is_misread() {
    must_find(MIXED, 3, || {
        fill_while_it_is_read::<Spoiled<NotReleasedByFiller>>(0)
    });
    must_find(MIXED, 3, || fill_while_it_is_read::<Spoiled<NotCleared>>(0));
}
