//! Goal: a scheduled range is run once by all its participants together, and ends when the last of them has
//! left. That participant, whichever it is, announces the jobs that the range held back. Method: a range
//! and a job after it. Two threads start the range at the same time, as workers do, or as a waiter does
//! that may run it. One opens the range; the other one shares it, or joins when nothing of it is left. The
//! checker sees the accesses to body and table: participants read where the body lies, the last one drops
//! it. Then one of the two threads is a worker for good. The other one goes elsewhere and waits for an
//! effect of the job after the range. A ticket that was not announced is a deadlock. Bounds: two threads,
//! one item or two, three preemptions; two where one thread is a worker. Planted bugs: a participant that
//! joined in vain and left last announces nothing; participants leave without Release.
//!
//! A whole wait for a range is too much to explore: its walk and its marks are in `wait`.

use platform::{Omission, Ordering, Platform};

use super::whole::Bell;
use super::{Notes, Ordered, Part, RACE, Site, Spoil, Spoiled, check, must_find, together};
use crate::Grain;
use crate::store::{JobId, Ticket};
use crate::work::Context;

/// The symptom of tickets that a thread made ready and kept to itself when it went elsewhere.
const UNANNOUNCED: &str = "tickets that are not announced";

/// The symptom of a job after the range that sees wrong effects.
const SYMPTOM: &str = "what the range did";

/// A range of `items` items, and a job after it that notes the range's effects.
fn range_and_next<P: Platform>(site: &Site<P>, items: usize, saw: &Notes<u32>) -> Ticket {
    let context = site.context(0);
    let (here, there, noted) = (site.clone(), site.clone(), saw.clone());
    let range = context.job("range");
    let range = range.schedule_for(0..items, Grain::Items(1), move |part, _| {
        // Two participants would race for the cell.
        if part.start == 0 {
            here.do_something();
        }
    });
    let next = context.job("next").after(range);
    next.schedule(move |_| noted.add(there.what_was_done()));
    range.ticket()
}

/// The way in which a thread starts a range.
type Start<P> = fn(&Context<'_, P>, Ticket);

/// As a worker.
fn work<P: Platform>(context: &Context<'_, P>, range: Ticket) {
    context.run_one(range);
}

/// As a waiter that has found that it may run the range.
fn help<P: Platform>(context: &Context<'_, P>, range: Ticket) {
    context.help_with_awaited(range);
}

/// Two threads start the range. Then the rest is run.
fn started_by_two<P: Platform>(platform: P, first: usize, items: usize, other: Start<P>) {
    let site = Site::new(platform, 4, 2);
    let saw = Notes::new();
    let range = range_and_next(&site, items, &saw);
    let part = |thread: usize, start: Start<P>| {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(thread);
            start(&context, range);
            let fresh = context.own(|own| own.fresh);
            assert_eq!(fresh, 0, "{UNANNOUNCED}");
        }) as Part
    };
    together(first, [part(0, work), part(1, other)]);
    while site.context(0).run_any() {}
    assert_eq!(saw.take(), [1], "{SYMPTOM}");
}

/// A worker starts the range and goes on working. The other thread helps with it, and then waits for an
/// effect of the job after the range.
fn left_to_a_worker<S: Spoil>(first: usize) {
    let site = Site::new(Spoiled::by::<S>(), 4, 2);
    let (bell, context) = (Bell::new(), site.context(1));
    let rope = bell.clone();
    let range = context.job("range");
    let range: JobId = range.schedule_for(0..1, Grain::Items(1), |_, _| ());
    let next = context.job("next").after(range);
    next.schedule(move |_| rope.ring());
    let (here, there) = (site.clone(), site.clone());
    let helper = Box::new(move || {
        help(&here.context(1), range.ticket());
        bell.wait();
        here.shared.signal_stop();
    });
    let worker = Box::new(move || {
        there.context(0).run_one(range.ticket());
        there.context(0).work_loop();
    });
    together(first, [helper, worker]);
}

/// Leaves out the step that announces.
#[derive(Clone, Copy)]
struct InSilence;

impl Spoil for InSilence {
    const ORDERED: bool = true;
    const OMITS: Option<Omission> = Some(Omission::AnnounceAfterVainJoin);
}

/// Participants publish nothing when they leave.
#[derive(Clone, Copy)]
struct NotReleased;

impl Spoil for NotReleased {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["range/open.rs"];
    fn change(_: u64, _: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

#[test]
fn two_workers_run_a_range() {
    for items in [1, 2] {
        check(3, 2, move |first| {
            started_by_two(Spoiled::by::<Ordered>(), first, items, work);
        });
    }
}

#[test]
fn a_worker_and_a_waiter_run_a_range() {
    for items in [1, 2] {
        check(3, 2, move |first| {
            started_by_two(Spoiled::by::<Ordered>(), first, items, help);
        });
    }
}

#[test]
fn a_silent_end_after_a_vain_join_is_found() {
    must_find(UNANNOUNCED, 3, || {
        started_by_two(Spoiled::by::<InSilence>(), 0, 1, work);
    });
    must_find(UNANNOUNCED, 3, || {
        started_by_two(Spoiled::by::<InSilence>(), 1, 1, help);
    });
}

#[test]
fn participants_that_leave_without_release_are_found() {
    must_find(RACE, 3, || {
        started_by_two(Spoiled::by::<NotReleased>(), 0, 1, work);
    });
}

#[test]
fn the_job_after_a_range_runs_without_a_waiter() {
    check(2, 2, left_to_a_worker::<Ordered>);
}

#[test]
fn a_job_that_is_not_announced_does_not() {
    must_find("deadlock", 2, || left_to_a_worker::<InSilence>(0));
}
