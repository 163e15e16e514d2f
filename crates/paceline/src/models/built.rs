//! Goal: in a graph that was built once, a node sees what those before it did, nodes that a condition leaves
//! out do not run, all is as before for the next run, and no step for the main thread is lost.
//! Method: two threads run two nodes each of which has the same successor, or one for the main thread, by
//! the real code of `built`. Bodies write to plain memory, and the last one reads it. Then one thread runs
//! the graph again.
//! And a thread waits for a step that another thread makes ready.
//! Bounds: two threads, four nodes, two preemptions, and one for the wait.
//! Planted bugs: the count down is not ordered, so that the successor reads too early, or runs although it is
//! left out; a step is put into the list by a load and a store, so that one of two is lost; the main thread
//! waits for a bell that no other thread can find.

use std::sync::Arc;

use platform::{Platform, SharedCell};
use testkit::Loom;

use super::{Notes, Ordered, Part, RACE, Site, Spoil, Spoiled, check, must_find, together};
use crate::access::Places;
use crate::error::WaitError;
use crate::queues::Queue;
use crate::store::Ticket;
use crate::work::Context;
use crate::work::built::{Built, NodePlan, Run, label_here};

/// Plain memory of bodies.
struct Cells<P: Platform>(Arc<[P::Cell<u32>; 2]>);

// SAFETY: the checker is asked whether the accesses are ordered.
unsafe impl<P: Platform> Send for Cells<P> {}
// SAFETY: as above.
unsafe impl<P: Platform> Sync for Cells<P> {}

impl<P: Platform> Clone for Cells<P> {
    fn clone(&self) -> Self {
        Cells(self.0.clone())
    }
}

impl<P: Platform> Cells<P> {
    fn new() -> Self {
        Cells(Arc::new([P::Cell::new(0), P::Cell::new(0)]))
    }

    fn write(&self, cell: usize) {
        // SAFETY: the checker is asked.
        unsafe { self.0[cell].with_mut(|value| *value += 1) };
    }

    fn read(&self, cell: usize) -> u32 {
        // SAFETY: the checker is asked.
        unsafe { self.0[cell].with(|value| *value) }
    }
}

fn node<P: Platform>(
    predecessors: usize,
    successors: &[(usize, bool)],
    body: impl FnMut() -> bool + Send + 'static,
) -> NodePlan<'static, P> {
    let mut body = body;
    NodePlan {
        label: label_here("node"),
        body: Some(Box::new(move |_: &Context<'_, P>, _: Places<'_>| body())),
        lane: None,
        is_on_main: false,
        predecessors,
        successors: successors.to_vec(),
    }
}

/// Begins a run, and takes the tickets of the two nodes that are ready.
fn begin<P: Platform>(site: &Site<P>, built: &Built<'static, P>) -> (Run, [Ticket; 2]) {
    let cx = site.context(0);
    // SAFETY: no other run is in progress, and the bodies need no data.
    let run = unsafe { built.start(&cx, Vec::new(), Ticket::NONE, cx.lane()) };
    let take = |_| cx.thread.deque.take_newest().expect("two nodes are ready");
    (run.expect("there is room"), [0, 1].map(take))
}

/// A thread runs a node, and what becomes ready by that.
fn run_from<P: Platform>(cx: &Context<'_, P>, first: Ticket) {
    let mut next = Some(first);
    while let Some(ticket) = next {
        cx.start(ticket, cx.shared.slot(ticket));
        cx.publish(Queue::Own, false);
        next = cx.thread.deque.take_newest();
    }
    cx.graph().flush_finished();
}

/// Two threads run the graph from its two first nodes, and then one thread runs it again.
/// `between` looks at what the first run did.
fn run_twice<P: Platform>(
    site: &Site<P>,
    built: &Arc<Built<'static, P>>,
    first: usize,
    between: impl FnOnce(),
) {
    let (run, tickets) = begin(site, built);
    let parts = [0, 1].map(|thread| -> Part {
        let (site, built) = (site.clone(), built.clone());
        Box::new(move || {
            run_from(&site.context(thread), tickets[thread]);
            drop(built); // It outlives the run.
        })
    });
    together(first, parts);
    let cx = site.context(0);
    expect_success(built.wait(&cx, &run));
    between();
    let (run, tickets) = begin(site, built);
    for ticket in tickets {
        run_from(&cx, ticket);
    }
    assert!(built.is_over(cx.shared, &run), "the second run is not over");
    expect_success(built.wait(&cx, &run));
}

/// What the checker reports in a body is a panic of that body.
fn expect_success(error: Option<WaitError>) {
    if let Some(error) = error {
        panic!("{error}");
    }
}

fn join<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 8, 2);
    let (cells, sums) = (Cells::<P>::new(), Notes::new());
    let write = |cell| {
        let cells = cells.clone();
        move || {
            cells.write(cell);
            true
        }
    };
    let (read, noted) = (cells.clone(), sums.clone());
    let nodes = vec![
        node(0, &[(2, false)], write(0)),
        node(0, &[(2, false)], write(1)),
        node(2, &[], move || {
            noted.add(read.read(0) + read.read(1));
            true
        }),
    ];
    let built = Built::new(&site.context(0), label_here("graph"), nodes);
    run_twice(&site, &Arc::new(built), first, || ());
    assert_eq!(sums.take(), [2, 4], "the last node ran once a run");
}

#[test]
fn a_node_sees_what_both_before_it_did() {
    check(2, 2, |first| join(Loom, first));
}

/// The count down orders nothing.
#[derive(Clone, Copy)]
struct Unordered;

impl Spoil for Unordered {
    const FILES: &'static [&'static str] = &["built/node.rs"];
    fn count_down(_: platform::Ordering) -> platform::Ordering {
        platform::Ordering::Relaxed
    }
}

#[test]
fn without_order_it_reads_too_early() {
    must_find(RACE, 2, || join(Spoiled::by::<Unordered>(), 0));
}

const LEFT_OUT: &str = "a node that is left out does not run";

/// The first node is a condition that is false at first. The third node hangs on it, and the fourth one comes
/// after that.
fn condition<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 8, 2);
    let ran = Notes::new();
    let mut holds = true;
    let noted = |number: u32| {
        let ran = ran.clone();
        move || {
            ran.add(number);
            true
        }
    };
    let nodes = vec![
        node(0, &[(2, true)], move || {
            holds = !holds;
            holds
        }),
        node(0, &[(2, false)], || true),
        node(2, &[(3, false)], noted(3)),
        node(1, &[], noted(4)),
    ];
    let built = Built::new(&site.context(0), label_here("graph"), nodes);
    let first_run = || assert_eq!(ran.take(), [4], "{LEFT_OUT}");
    run_twice(&site, &Arc::new(built), first, first_run);
    assert_eq!(ran.take(), [3, 4], "the next run is whole");
}

#[test]
fn a_false_condition_leaves_a_node_out_once() {
    check(2, 2, |first| condition(Loom, first));
}

#[test]
fn without_order_a_condition_is_overlooked() {
    must_find(LEFT_OUT, 2, || condition(Spoiled::by::<Unordered>(), 0));
}

/// The two nodes that are ready have one successor each, for the main thread.
fn steps<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 8, 2);
    let ran = Notes::new();
    let step = |number: u32| {
        let ran = ran.clone();
        let node = node(1, &[], move || {
            ran.add(number);
            true
        });
        NodePlan {
            is_on_main: true,
            ..node
        }
    };
    let nodes = vec![
        node(0, &[(2, false)], || true),
        node(0, &[(3, false)], || true),
        step(2),
        step(3),
    ];
    let built = Built::new(&site.context(0), label_here("graph"), nodes);
    let built = Arc::new(built);
    let (run, tickets) = begin(&site, &built);
    let parts = [0, 1].map(|thread| -> Part {
        let (site, built) = (site.clone(), built.clone());
        Box::new(move || {
            run_from(&site.context(thread), tickets[thread]);
            drop(built); // It outlives the run.
        })
    });
    together(first, parts);
    expect_success(built.wait(&site.context(0), &run));
    assert_eq!(ran.take(), [2, 3]);
}

#[test]
fn steps_of_two_threads_are_kept() {
    check(2, 2, |first| steps(Loom, first));
}

/// Exchanges in the list of steps are a load and a store.
#[derive(Clone, Copy)]
struct TornSteps;

impl Spoil for TornSteps {
    const FILES: &'static [&'static str] = &["built/main_steps.rs"];
    const TORN: bool = true;
}

#[test]
fn a_torn_exchange_loses_a_step() {
    must_find("deadlock", 2, || steps(Spoiled::by::<TornSteps>(), 0));
}

/// The main thread waits for a step while another thread runs what comes before it.
fn step_while_it_waits<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 8, 2);
    let step = NodePlan {
        is_on_main: true,
        ..node(1, &[], || true)
    };
    let nodes = vec![node(0, &[(2, false)], || true), node(0, &[], || true), step];
    let built = Arc::new(Built::new(&site.context(0), label_here("graph"), nodes));
    let (run, tickets) = begin(&site, &built);
    let waiter = {
        let (site, built) = (site.clone(), built.clone());
        Box::new(move || expect_success(built.wait(&site.context(0), &run)))
    };
    let runner = {
        let (site, built) = (site.clone(), built.clone());
        Box::new(move || {
            for ticket in tickets {
                run_from(&site.context(1), ticket);
            }
            drop(built); // It outlives the run.
        })
    };
    together(first, [waiter, runner]);
}

#[test]
fn a_step_wakes_the_thread_that_waits_for_it() {
    check(1, 2, |first| {
        step_while_it_waits(Spoiled::by::<Ordered>(), first)
    });
}

/// The bell is not put where other threads look for it.
#[derive(Clone, Copy)]
struct NoBell;

impl Spoil for NoBell {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["built/main_steps.rs"];
    fn operand(_: u64) -> u64 {
        0
    }
}

#[test]
fn without_a_bell_it_sleeps_on() {
    must_find("deadlock", 1, || {
        step_while_it_waits(Spoiled::by::<NoBell>(), 0)
    });
}
