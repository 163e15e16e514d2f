//! Goal: a worker that has made way in the middle of a background job goes on in the end: when no worker has
//! anything else to do, or when the job is raised. What it made way for is run. Method: a worker comes to a
//! checkpoint, by the real code of `lanes/yields.rs`, beside a ticket that another worker could take. The
//! other one goes to sleep just then; a thread raises the job; the spare that would take the worker's place
//! is about to leave, since the worker was back from a wait. A worker that rests for ever is a deadlock.
//! Bounds: two threads, or one and a spare; one or two jobs; two preemptions (one with a spare). Planted
//! bugs: the fence of each side too weak; a worker that rests without having looked. (The fence of a spare
//! that leaves is in `workers`.)

use platform::{Lane, Omission, Ordering, Platform};

use super::lanes::{LATER, WeakAtRaiser};
use super::slow::WeakAtWorker;
use super::workers::{PUBLISHER, WORKER, with_spare};
use super::{Ordered, Site, Spoil, Spoiled, check, must_find, together};
use crate::WaitPolicy;
use crate::store::LaneFlags;
use crate::work::Context;
use crate::work::thread_slot::Running;

/// The thread is in the background from here on. Nothing is undone: the checker can cut an execution short
/// here, and then nothing of it may be touched any more.
fn come_to_checkpoint<P: Platform>(context: &Context<'_, P>) {
    context.own(|own| own.lane = LaneFlags::BACKGROUND);
    context.make_way();
}

/// One worker makes way, and the other one goes to sleep.
fn make_way_beside_a_sleeper<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    site.shared.workers.pretend_active(2);
    site.context(0).schedule(|_| ());
    let (here, there) = (site.clone(), site.clone());
    let yielder = Box::new(move || {
        come_to_checkpoint(&here.context(0));
        here.shared.signal_stop();
    });
    let sleeper = Box::new(move || there.context(1).work_loop());
    together(first, [yielder, sleeper]);
}

#[test]
fn a_worker_that_finds_nothing_has_it_go_on() {
    check(2, 2, |first| {
        make_way_beside_a_sleeper(Spoiled::by::<Ordered>(), first);
    });
}

/// The fence of the worker that makes way is too weak.
#[derive(Clone, Copy)]
struct WeakAtYielder;

impl Spoil for WeakAtYielder {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["lanes/yields.rs"];
    fn fence(_: Ordering) -> Ordering {
        Ordering::AcqRel // Partner: the fences of the others.
    }
}

/// The worker rests without having looked whether another one works in its place.
#[derive(Clone, Copy)]
struct RestsBlindly;

impl Spoil for RestsBlindly {
    const ORDERED: bool = true;
    const OMITS: Option<Omission> = Some(Omission::LookBeforeYielding);
}

#[test]
fn with_a_weaker_fence_at_either_side_it_rests_for_ever() {
    must_find("deadlock", 2, || {
        make_way_beside_a_sleeper(Spoiled::by::<WeakAtYielder>(), 0);
    });
    must_find("deadlock", 2, || {
        make_way_beside_a_sleeper(Spoiled::by::<WeakAtWorker>(), 0);
    });
}

#[test]
fn without_a_look_it_rests_for_ever() {
    must_find("deadlock", 2, || {
        make_way_beside_a_sleeper(Spoiled::by::<RestsBlindly>(), 0);
    });
}

#[test]
fn without_a_look_it_overlooks_a_raise() {
    must_find("deadlock", 2, || {
        make_way_while_raised(Spoiled::by::<RestsBlindly>(), 0);
    });
}

/// The job makes way, and another thread comes to wait for it. A third worker is busy for good.
fn make_way_while_raised<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let context = site.context(0);
    context.schedule(|_| ());
    let job = context.job("bake").background().schedule(|_| ()).ticket();
    let (here, there) = (site.clone(), site.clone());
    let yielder = Box::new(move || {
        let context = here.context(0);
        let slot = here.shared.slot(job);
        assert!(slot.claim(job), "no other thread claims it");
        // As `in_frame`, and not undone either.
        let outer = std::ptr::null();
        let frame = Running { job, outer };
        context.own(|own| own.frame = &raw const frame);
        come_to_checkpoint(&context);
    });
    let raiser = Box::new(move || {
        let context = there.context(1);
        context.work_in_lane(Lane::Normal.into(), || context.raise_awaited(job, LATER));
    });
    together(first, [yielder, raiser]);
}

#[test]
fn a_raise_has_it_go_on() {
    check(2, 2, |first| {
        make_way_while_raised(Spoiled::by::<Ordered>(), first)
    });
}

#[test]
fn with_a_weaker_fence_at_either_side_it_is_not_raised() {
    must_find("deadlock", 2, || {
        make_way_while_raised(Spoiled::by::<WeakAtYielder>(), 0)
    });
    must_find("deadlock", 2, || {
        make_way_while_raised(Spoiled::by::<WeakAtRaiser>(), 0)
    });
}

/// A spare has a job when the only worker comes back from a wait, and is to leave. Then the worker makes way
/// for the next job.
fn make_way_while_the_spare_leaves<P: Platform>(platform: P, first: usize) {
    let site = with_spare(platform, WaitPolicy::Passive);
    site.shared.workers.set_target(1);
    site.shared.begin_block(&site.context(WORKER));
    let publisher = site.context(PUBLISHER);
    publisher.schedule(|_| ());
    publisher.schedule(|context| context.shared.signal_stop());
    site.shared.end_block(&site.context(WORKER));
    let here = site.clone();
    let worker = Box::new(move || {
        let context = here.context(WORKER);
        come_to_checkpoint(&context);
        context.work_loop();
    });
    together(first, [worker]);
    site.shared.stop();
}

#[test]
fn the_spare_in_its_place_does_not_leave() {
    check(1, 1, |first| {
        make_way_while_the_spare_leaves(Spoiled::by::<Ordered>(), first);
    });
}

#[test]
fn without_a_look_there_is_no_spare() {
    must_find("deadlock", 1, || {
        make_way_while_the_spare_leaves(Spoiled::by::<RestsBlindly>(), 0);
    });
}
