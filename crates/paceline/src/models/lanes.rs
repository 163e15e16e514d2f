//! Goal: a job that is raised, and all that it waits for, is in the queue of its new lane in the end,
//! whatever happens to it meanwhile: it becomes ready, it gets another predecessor, it begins and waits for
//! something, itself or as a part of a scope. A raise that comes when the job is over loses nothing of the
//! slot's next job. Method: one thread raises a job, by the real code of `lanes`. Another thread makes it
//! ready, with a rank or without; adds an edge to it; runs it, and its body says that it waits; ends it, and
//! makes another one. Then the queues are looked through. Bounds: two threads, one or two jobs, two
//! preemptions. Planted bugs: the fence of either side too weak, and the second look of the maker left out.

use event::Nanos;
use platform::{Atomic, Lane, Omission, Ordering, Platform};

use super::{Notes, Ordered, Part, Site, Spoil, Spoiled, check, held_job, must_find, together};
use crate::queues::Queue;
use crate::store::{JobId, LaneFlags, Rank, Slot, Ticket};
use crate::work::Context;

/// The deadline of a wait that runs nothing by itself.
pub(super) const LATER: Nanos = Nanos(u64::MAX - 1);

const FORGOTTEN: &str = "a raised job is left in its old lane";

/// Whether the ticket is in a queue of the normal lane, or of the frame lane.
fn is_queued<P: Platform>(site: &Site<P>, job: Ticket, lane: Lane) -> bool {
    match lane {
        Lane::Frame => site.shared.lanes.front.scan(&mut |ticket| ticket == job),
        _ => {
            let mut threads = site.shared.threads.iter();
            threads.any(|thread| thread.deque.scan(|ticket| ticket == job))
        }
    }
}

/// A thread in this lane is about to wait for the job.
fn raiser<P: Platform>(site: &Site<P>, job: Ticket, lane: Lane) -> Part {
    let site = site.clone();
    Box::new(move || {
        let context = site.context(0);
        context.work_in_lane(lane.into(), || context.raise_awaited(job, LATER));
    })
}

/// The job becomes ready.
fn made_ready<P: Platform>(platform: P, (of, raised_to): (Lane, Lane), first: usize) {
    let site = Site::new(platform, 4, 2);
    let context = site.context(1);
    site.shared.lanes.note_use(raised_to);
    let pred = held_job(&context);
    let job = context.job("job").lane(of);
    let job = job.after(JobId::new(site.shared.id, pred)).schedule(|_| ());
    let maker = {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(1);
            context.graph().release(pred, 1, Queue::Own);
            context.graph().finish_todo(Queue::Own);
            context.publish(Queue::Own, false);
        })
    };
    let raiser = raiser(&site, job.ticket(), raised_to);
    together(first, [raiser, maker]);
    assert!(is_queued(&site, job.ticket(), raised_to), "{FORGOTTEN}");
}

const OUT_OF_BACKGROUND: (Lane, Lane) = (Lane::Background, Lane::Normal);
const OUT_OF_A_SHARE: (Lane, Lane) = (Lane::Share2, Lane::Normal);
const TO_THE_FRONT: (Lane, Lane) = (Lane::Normal, Lane::Frame);

#[test]
fn a_job_that_becomes_ready_is_raised() {
    for lanes in [OUT_OF_BACKGROUND, OUT_OF_A_SHARE, TO_THE_FRONT] {
        check(2, 2, move |first| {
            made_ready(Spoiled::by::<Ordered>(), lanes, first);
        });
    }
}

/// A job with a rank becomes ready.
fn ranked<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let context = site.context(1);
    site.shared.lanes.note_use(Lane::Frame);
    context.note_ranks();
    let job = held_job(&context);
    let maker = {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(1);
            context.graph().make_ready_here(job, site.shared.slot(job));
            context.queue_ranked(job, Rank::of(Nanos(100)));
            context.announce_ranked(1, job);
        })
    };
    let raiser = raiser(&site, job, Lane::Frame);
    together(first, [raiser, maker]);
    assert!(is_queued(&site, job, Lane::Frame), "{FORGOTTEN}");
}

#[test]
fn a_ranked_job_that_becomes_ready_is_raised() {
    check(2, 2, |first| ranked(Spoiled::by::<Ordered>(), first));
}

#[test]
fn without_a_fence_or_a_second_look_a_ranked_job_is_not_raised() {
    must_find(FORGOTTEN, 2, || ranked(Spoiled::by::<LooksOnce>(), 0));
    must_find(FORGOTTEN, 2, || ranked(Spoiled::by::<WeakAtPublisher>(), 0));
    must_find(FORGOTTEN, 2, || ranked(Spoiled::by::<WeakAtRaiser>(), 0));
}

/// The fence of the thread that raises is too weak, and that of a waiter.
#[derive(Clone, Copy)]
pub(super) struct WeakAtRaiser;

impl Spoil for WeakAtRaiser {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["lanes/raise.rs"];
    fn fence(_: Ordering) -> Ordering {
        Ordering::AcqRel // Partner: the maker's fence.
    }
}

/// The fences with which a background job is announced are too weak: that behind the ticket, and that of the
/// look for a slow worker.
#[derive(Clone, Copy)]
struct WeakAtBacklog;

impl Spoil for WeakAtBacklog {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["slow/mod.rs", "idle/mod.rs"];
    fn fence(_: Ordering) -> Ordering {
        Ordering::AcqRel // Partner: the raiser's fence.
    }
}

/// The same for other jobs.
#[derive(Clone, Copy)]
struct WeakAtPublisher;

impl Spoil for WeakAtPublisher {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["idle/mod.rs"];
    fn fence(_: Ordering) -> Ordering {
        Ordering::AcqRel // Partner: the raiser's fence.
    }
}

/// The thread that makes a job ready does not look again.
#[derive(Clone, Copy)]
struct LooksOnce;

impl Spoil for LooksOnce {
    const ORDERED: bool = true;
    const OMITS: Option<Omission> = Some(Omission::LookForRaise);
}

#[test]
fn with_a_weaker_fence_of_the_raiser_a_job_that_becomes_ready_is_not_raised() {
    must_find(FORGOTTEN, 2, || {
        made_ready(Spoiled::by::<WeakAtRaiser>(), OUT_OF_BACKGROUND, 0);
    });
    must_find(FORGOTTEN, 2, || {
        made_ready(Spoiled::by::<WeakAtRaiser>(), TO_THE_FRONT, 0);
    });
}

#[test]
fn with_a_weaker_fence_of_the_maker_a_job_that_becomes_ready_is_not_raised() {
    must_find(FORGOTTEN, 2, || {
        made_ready(Spoiled::by::<WeakAtBacklog>(), OUT_OF_BACKGROUND, 0);
    });
    must_find(FORGOTTEN, 2, || {
        made_ready(Spoiled::by::<WeakAtPublisher>(), TO_THE_FRONT, 0);
    });
    must_find(FORGOTTEN, 2, || {
        made_ready(Spoiled::by::<WeakAtPublisher>(), OUT_OF_A_SHARE, 0);
    });
}

#[test]
fn without_the_second_look_a_job_that_becomes_ready_is_not_raised() {
    for lanes in [OUT_OF_BACKGROUND, OUT_OF_A_SHARE, TO_THE_FRONT] {
        must_find(FORGOTTEN, 2, move || {
            made_ready(Spoiled::by::<LooksOnce>(), lanes, 0);
        });
    }
}

/// The job gets another predecessor, which is ready.
fn edge_added<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let context = site.context(1);
    let bell = held_job(&context);
    let job = context.job("job").after(JobId::new(site.shared.id, bell));
    let job = job.schedule(|_| ());
    let pred = context.job("late").background().schedule(|_| ());
    let adder = {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(1);
            let added = context.graph().add_dependency(job, Some(pred.ticket()));
            assert!(added.is_ok(), "the job has not started");
        })
    };
    let raiser = raiser(&site, job.ticket(), Lane::Normal);
    together(first, [raiser, adder]);
    assert!(is_queued(&site, pred.ticket(), Lane::Normal), "{FORGOTTEN}");
}

#[test]
fn a_predecessor_that_is_added_is_raised() {
    check(2, 2, |first| edge_added(Spoiled::by::<Ordered>(), first));
}

/// The fence behind a late edge is too weak.
#[derive(Clone, Copy)]
struct WeakAtEdge;

impl Spoil for WeakAtEdge {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["work/caller.rs"];
    fn fence(_: Ordering) -> Ordering {
        Ordering::AcqRel // Partner: the raiser's fence.
    }
}

#[test]
fn with_a_weaker_fence_a_predecessor_that_is_added_is_not_raised() {
    must_find(FORGOTTEN, 2, || edge_added(Spoiled::by::<WeakAtEdge>(), 0));
    must_find(FORGOTTEN, 2, || {
        edge_added(Spoiled::by::<WeakAtRaiser>(), 0);
    });
}

/// What is raised while a job begins and waits.
#[derive(Clone, Copy)]
enum Raised {
    /// That job.
    Itself,
    /// The scope that it belongs to.
    ItsScope,
}

/// The job begins, and waits for another one in the middle.
fn begun<P: Platform>(platform: P, raised: Raised, first: usize) {
    let site = Site::new(platform, 4, 2);
    let context = site.context(1);
    let inner = context.job("inner").background().schedule(|_| ()).ticket();
    let outer = context.job("outer").background().schedule(|_| ()).ticket();
    let raised = match raised {
        Raised::Itself => outer,
        Raised::ItsScope => scope_of(&context, outer),
    };
    // As `run_claimed` and `wait_at` do it, as far as raises go. The body does not end in the model.
    let runner = {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(1);
            let slot = site.shared.slot(outer);
            assert!(slot.claim(outer), "no other thread claims it");
            slot.place.store(context.thread.index, Ordering::Release); // Partner: a look at a job.
            let wait = || {
                context.thread.waits_for.store(inner.0, Ordering::Relaxed);
                context.raise_awaited(inner, LATER);
            };
            context.work_in_lane(LaneFlags::BACKGROUND, || context.in_frame(outer, wait));
        })
    };
    let raiser = raiser(&site, raised, Lane::Normal);
    together(first, [raiser, runner]);
    assert!(is_queued(&site, inner, Lane::Normal), "{FORGOTTEN}");
}

/// A scope that does not end, and that the job belongs to.
fn scope_of<P: Platform>(context: &Context<'_, P>, job: Ticket) -> Ticket {
    let scope = held_job(context);
    // Relaxed, all of these: the threads that read them are started afterwards.
    let flags = |job| &context.shared.slot(job).flags;
    flags(scope).fetch_or(Slot::<P>::IS_SCOPE, Ordering::Relaxed);
    flags(job).fetch_or(
        Slot::<P>::IN_SCOPE | Slot::<P>::HAS_PARENT,
        Ordering::Relaxed,
    );
    let parent = &context.shared.slot(job).parent;
    parent.store(scope.0, Ordering::Relaxed);
    scope
}

#[test]
fn what_a_job_waits_for_is_raised_with_it() {
    check(2, 2, |first| {
        begun(Spoiled::by::<Ordered>(), Raised::Itself, first);
    });
}

#[test]
fn with_a_weaker_fence_what_a_job_waits_for_is_not_raised() {
    must_find(FORGOTTEN, 2, || {
        begun(Spoiled::by::<WeakAtRaiser>(), Raised::Itself, 0);
    });
}

#[test]
fn what_a_part_waits_for_is_raised_with_its_scope() {
    check(2, 2, |first| {
        begun(Spoiled::by::<Ordered>(), Raised::ItsScope, first);
    });
}

#[test]
fn with_a_weaker_fence_what_a_part_waits_for_is_not_raised() {
    must_find(FORGOTTEN, 2, || {
        begun(Spoiled::by::<WeakAtRaiser>(), Raised::ItsScope, 0);
    });
}

/// The job ends, and its slot becomes another job, which waits in the backlog.
fn ended<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let context = site.context(1);
    let job = context.job("job").background().schedule(|_| ()).ticket();
    let next = Notes::new();
    let runner = {
        let (site, next) = (site.clone(), next.clone());
        Box::new(move || {
            let context = site.context(1);
            let slot = site.shared.slot(job);
            assert!(slot.claim(job), "no other thread claims it");
            context.run_claimed(job, slot);
            let later = context.job("later").background().schedule(|_| ()).ticket();
            assert_eq!(later.index(), job.index(), "the slot is used again");
            next.add(later.0);
        })
    };
    let raiser = raiser(&site, job, Lane::Normal);
    together(first, [raiser, runner]);
    let later = Ticket(next.take()[0]);
    let in_backlog = site
        .shared
        .lanes
        .backlog
        .scan(&mut |ticket| ticket == later);
    assert!(
        in_backlog || is_queued(&site, later, Lane::Normal),
        "it is in no queue"
    );
    assert!(site.shared.slot(later).claim(later), "it is not ready");
}

#[test]
fn a_raise_that_comes_too_late_loses_nothing() {
    check(2, 2, |first| ended(Spoiled::by::<Ordered>(), first));
}
