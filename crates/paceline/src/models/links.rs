//! Goal: either the thread that finishes the predecessor delivers an edge, or the thread that adds the edge
//! learns that the predecessor is over. It is never both and never neither. In both cases the successor
//! sees the effects of its predecessors. The same holds for threads that wait.
//! Method: one thread ends a job, and makes the next one in its slot at once. Meanwhile another thread adds
//! an edge from the job, or waits for it, by the real code of `graph`, `schedule` and `wait`. Then all
//! ready jobs are run. Then two threads each end one predecessor of the same job. Then one thread ends the
//! predecessor of two jobs, while the other thread runs the first of these and uses its slot, in which the
//! second one's link is known, again. Then a thread asks for the parent of a job whose slot has had, or
//! gets, links in that place. Last, a block of links gets another user while a thread reads it.
//! Bounds: two threads, two to four jobs, three preemptions for edges and two for waits.
//! Planted bugs: adding is a load and a store instead of a compare-exchange, so that a link is put into a
//! list that was closed meanwhile, and its owner waits for ever; adding does not look at the generation, so
//! that a link is put into the list of the slot's next job; adding, closing and the end of a job without
//! Release; counting down without AcqRel, so that the last predecessor to end does not pass on the effects
//! of the others; looking for the next successor only after the one before was released; the next link, or
//! the mark that there is a parent in its place, without Release; filling a block without Release, or
//! without first marking that it has no user.

use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Ordering, Platform};
use testkit::Loom;

use super::{
    Notes, Ordered, Part, RACE, Site, Spoil, Spoiled, check, held_job, must_find, spoiled, together,
};
use crate::queues::Queue;
use crate::store::NIL;
use crate::store::{JobId, Label, Link, Links, PLACES, Ticket};
use crate::work::Context;

/// Ends `job` and uses its slot again.
fn finisher<P: Platform>(site: &Site<P>, job: Ticket) -> Part {
    let site = site.clone();
    Box::new(move || {
        let context = site.context(1);
        site.do_something();
        context.graph().release(job, 1, Queue::Own);
        context.graph().finish_todo(Queue::Own);
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

/// Ends `job`, which leaves a note in `done`, and runs its successors.
fn ender<P: Platform>(site: &Site<P>, thread: usize, job: Ticket, done: &Site<P>) -> Part {
    let (site, done) = (site.clone(), done.clone());
    Box::new(move || {
        let context = site.context(thread);
        done.do_something();
        context.graph().release(job, 1, Queue::Own);
        context.graph().finish_todo(Queue::Own);
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
    let successor = context.job("successor").after_all(names);
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
        join_two_edges(Spoiled::by::<Ordered>(), first)
    });
}

/// The countdown of a job's predecessors publishes nothing.
#[derive(Clone, Copy)]
struct NotCounted;

impl Spoil for NotCounted {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["graph/finish.rs"];
    fn count_down(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

/// The race is in the successor's body. It is a panic of the job, which is caught, and nothing is seen.
#[test]
fn a_release_that_publishes_nothing_runs_the_successor_too_early() {
    must_find(LOST, 3, || join_two_edges(Spoiled::by::<NotCounted>(), 0));
}

/// Tells the listeners on a list that a job is over.
type Notify<P> = fn(&Context<'_, P>, u32, Ticket);

fn notify<P: Platform>(context: &Context<'_, P>, first: u32, job: Ticket) {
    context.graph().notify_list(first, job, false, Queue::Own);
}

/// As `notify`, but looks for the next link after it has released the job that this link leads to.
fn notify_and_then_look<P: Platform>(context: &Context<'_, P>, first: u32, _: Ticket) {
    let mut link = first;
    while link != NIL {
        let (to, _) = context.graph().read_link(Link::unpack(link));
        context.graph().release(Ticket(to), 1, Queue::Own);
        link = context.graph().read_link(Link::unpack(link)).1;
    }
}

/// One thread runs one of two successors as soon as it is ready, and uses its slot again.
fn notify_two<P: Platform>(platform: P, first: usize, notify: Notify<P>) {
    let site = Site::new(platform, 4, 2);
    let ran = Notes::new();
    let pred = held_job(&site.context(1));
    let context = site.context(0);
    let after = JobId::new(site.shared.id, pred);
    for number in [1, 2] {
        let (noted, here) = (ran.clone(), site.clone());
        let successor = context.job("successor").after(after);
        successor.schedule(move |_| noted.add((number, here.what_was_done())));
    }
    let runner = {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(0);
            if context.run_any() {
                held_job(&context);
            }
        })
    };
    let ender = {
        let site = site.clone();
        Box::new(move || {
            let (context, slot) = (site.context(1), site.shared.slot(pred));
            site.do_something();
            let list = context.graph().close(pred, slot, 0);
            slot.move_on(pred);
            notify(&context, list, pred);
        })
    };
    together(first, [runner, ender]);
    while context.run_any() {}
    assert_eq!(ran.take(), [(1, 1), (2, 1)], "{LOST}");
}

#[test]
fn all_successors_are_told_although_the_first_one_is_over() {
    check(3, 2, |first| {
        notify_two(Spoiled::by::<Ordered>(), first, notify)
    });
}

#[test]
fn a_successor_that_is_looked_for_too_late_is_lost() {
    must_find(LOST, 3, || {
        notify_two(Spoiled::by::<Ordered>(), 0, notify_and_then_look)
    });
}

const MADE_BY: &str = "the job's parent";

/// A slot has two jobs, one after the other. Of one of them it knows the parent (`parent_first`: of the
/// first one). Of the other one it knows the link behind the job's own in the list of `gate`. Meanwhile a
/// thread asks for the parent of the first job.
fn ask_for_the_parent<P: Platform>(platform: P, first: usize, parent_first: bool) {
    let site = Site::new(platform, 6, 2);
    let context = site.context(1);
    let [gate, maker] = [(); 2].map(|()| held_job(&context));
    let after = JobId::new(site.shared.id, gate);
    let combine = move |context: &Context<'_, P>| {
        let job = context.job("linked").after(after).try_combine();
        job.expect("there is room").ticket()
    };
    combine(&context);
    let label = Label {
        name: "made",
        site: std::panic::Location::caller(),
    };
    let old = if parent_first {
        let made = context.graph().make(&label, 0, maker);
        let (job, slot) = made.expect("there is room");
        // Release, partner: the CAS in `hold_back`, as for any new job.
        slot.pending.store(1, Ordering::Release);
        job
    } else {
        combine(&context)
    };
    let expected = parent_first.then_some(maker);
    let asker = {
        let site = site.clone();
        Box::new(move || {
            let parent = site.shared.slot(old).parent_of(old);
            assert!(parent.is_none() || parent == expected, "{MADE_BY}");
        })
    };
    let user = {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(1);
            let next = if parent_first {
                context.graph().release(old, 1, Queue::Own);
                context.graph().finish_todo(Queue::Own);
                combine(&context)
            } else {
                context.graph().release(gate, 1, Queue::Own);
                context.graph().finish_todo(Queue::Own);
                let made = || context.graph().make(&label, 0, maker);
                let mut made = [(); 3].map(|()| made().expect("there is room").0);
                made.sort_by_key(|job| job.index() != old.index());
                made[0]
            };
            assert_eq!(next.index(), old.index(), "the slot is used again");
        })
    };
    together(first, [asker, user]);
}

#[test]
fn links_are_not_taken_for_a_parent() {
    for parent_first in [true, false] {
        check(3, 2, move |first| {
            ask_for_the_parent(Loom, first, parent_first)
        });
    }
}

/// The flags of a new job publish nothing.
#[derive(Clone, Copy)]
struct NotReleasedFlags;

impl Spoil for NotReleasedFlags {
    const FILES: &'static [&'static str] = &["graph/make.rs"];
    fn store_small(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn links_without_release_are_taken_for_a_parent() {
    must_find(MADE_BY, 3, || {
        ask_for_the_parent(Spoiled::by::<NotReleasedBySlot>(), 0, true)
    });
    must_find(MADE_BY, 3, || {
        ask_for_the_parent(Spoiled::by::<NotReleasedFlags>(), 0, false)
    });
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
    const FILES: &'static [&'static str] = &["edges.rs"];
    fn exchange(_: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn an_edge_that_was_added_without_release_is_misread() {
    must_find(RACE, 3, || {
        add_an_edge(Spoiled::by::<NotReleasedByAdder>(), 0)
    });
}

/// Adding looks whether the list is still open, but not in the step that adds to it.
#[derive(Clone, Copy)]
struct Torn;

impl Spoil for Torn {
    const FILES: &'static [&'static str] = &["edges.rs"];
    const TORN: bool = true;
}

#[test]
fn an_edge_that_is_added_to_a_closed_list_is_lost() {
    must_find(LOST, 3, || add_an_edge(Spoiled::by::<Torn>(), 0));
    must_find("deadlock", 2, || wait_for_the_end(Spoiled::by::<Torn>(), 0));
}

/// Adding looks at the link on top of the list, and not at the job that the list belongs to.
#[derive(Clone, Copy)]
struct NoGeneration;

impl Spoil for NoGeneration {
    const FILES: &'static [&'static str] = &["edges.rs"];
    fn mistaken(now: u64, current: u64, new: u64) -> Option<u64> {
        let node = u64::from(NIL);
        (now & node == current & node).then_some(now & !node | new & node)
    }
}

#[test]
fn an_edge_that_is_added_to_the_next_jobs_list_is_lost() {
    must_find(LOST, 3, || add_an_edge(Spoiled::by::<NoGeneration>(), 0));
}

/// A slot publishes nothing: neither the end of a job nor the next link of a list.
#[derive(Clone, Copy)]
struct NotReleasedBySlot;

impl Spoil for NotReleasedBySlot {
    const FILES: &'static [&'static str] = &["store/slot.rs"];
    fn store(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

/// Closing the list publishes nothing.
#[derive(Clone, Copy)]
struct NotReleasedByCloser;

impl Spoil for NotReleasedByCloser {
    const FILES: &'static [&'static str] = &["graph/finish.rs"];
    fn change(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn an_end_that_publishes_nothing_is_seen_too_early() {
    must_find(RACE, 2, || {
        wait_for_the_end(Spoiled::by::<NotReleasedBySlot>(), 0)
    });
    must_find(RACE, 3, || {
        add_an_edge(Spoiled::by::<NotReleasedByCloser>(), 0)
    });
}

/// The two users of a block, by generation. A reader of the first one's links must not get the other's.
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
    const FILES: &'static [&'static str] = &["store/links.rs"];
    fn store(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

/// Filling begins while the block still seems to be its last user's.
#[derive(Clone, Copy)]
struct NotCleared;

impl Spoil for NotCleared {
    const FILES: &'static [&'static str] = &["store/links.rs"];
    fn written(value: u64) -> u64 {
        if value == 0 { OLD.0 } else { value }
    }
}

#[test]
fn a_block_that_is_filled_carelessly_is_misread() {
    must_find(MIXED, 3, || {
        spoiled::<NotReleasedByFiller>(|| fill_while_it_is_read::<Spoiled>(0))
    });
    must_find(MIXED, 3, || {
        spoiled::<NotCleared>(|| fill_while_it_is_read::<Spoiled>(0))
    });
}
