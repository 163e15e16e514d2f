//! Goal: a thread slot has one worker at a time, also if workers are started while the job system ends.
//! Work that no worker runs, because all of them wait, is run by a spare, which may be about to leave or to
//! rest just then. Method: workers and spares are the job system's own threads, from `worker_main` to the
//! join, by the real code of `workers`. Where that is too much to explore, a thread of the model is the
//! worker. One thread makes the number of workers the wanted one, as after a refresh, while another one
//! ends the job system. A worker waits in the middle of its work, and a job that is scheduled at the same
//! time ends that wait. A spare has run its job and finds that the worker is back, and just then the worker
//! comes to wait for a further job. A spare makes one job ready, which it need not announce, and leaves,
//! while the worker that came back spins. A job that no thread runs is a deadlock, or a spin that does not
//! end. Bounds: one worker, one spare (there may be no other), one publisher, one preemption. Planted bugs:
//! workers are started without a check whether the job system ends; no fence is SeqCst, or only the fence
//! of a worker that leaves is not; a spare that leaves announces nothing.

use event::Nanos;
use platform::{Omission, Ordering, Platform};

use super::whole::Bell;
use super::{
    Notes, Ordered, RACE, Site, Spoil, Spoiled, WeakFences, check, held_job, must_find, parts,
};
use super::{site_of, together};
use crate::WaitPolicy;
use crate::queues::Queue;
use crate::store::{JobId, Ticket};
use crate::work::Context;
use crate::work::thread_slot::ThreadKind;

/// The worker's thread slot, and the publisher's.
pub(super) const WORKER: usize = 0;
pub(super) const PUBLISHER: usize = 1;

/// The symptom of a thread slot that two threads had at a time.
const SYMPTOM: &str = "threads that worked on the thread slot";

/// A thread starts missing workers while the job system ends. None is missing.
fn end_and_start<P: Platform>(platform: P, first: usize) {
    let started = Notes::new();
    let noted = started.clone();
    let mut parts = parts(platform, 4, 1, 0);
    parts.hooks.set_start(move |thread| noted.add(thread));
    let site = site_of(parts);
    site.shared.workers.set_target(1);
    let begun = site.shared.apply_target();
    begun.expect("the model has a thread left");
    let (here, there) = (site.clone(), site.clone());
    let owner = Box::new(move || here.shared.stop());
    let starter = Box::new(move || {
        let started = there.shared.apply_target();
        started.expect("the model has a thread left");
    });
    together(first, [owner, starter]);
    assert_eq!(started.take(), [WORKER], "{SYMPTOM}");
}

#[test]
fn no_worker_is_started_while_the_job_system_ends() {
    check(1, 2, |first| end_and_start(Spoiled::by::<Ordered>(), first));
}

/// Workers are started although the job system ends.
#[derive(Clone, Copy)]
struct StartsBlindly;

impl Spoil for StartsBlindly {
    const ORDERED: bool = true;
    const OMITS: Option<Omission> = Some(Omission::LookBeforeStarting);
}

#[test]
fn a_worker_that_is_started_at_the_end_is_found() {
    must_find(RACE, 1, || {
        end_and_start(Spoiled::by::<StartsBlindly>(), 0);
    });
}

/// A job system with one worker, which is a thread of the model, and room for a spare.
pub(super) fn with_spare<P: Platform>(platform: P, policy: WaitPolicy) -> Site<P> {
    let mut parts = parts(platform, 4, 1, 1);
    parts.threads += 1;
    parts.spares_max = 1;
    parts.spin.policy = policy;
    let site = site_of(parts);
    site.add_slot(ThreadKind::Worker);
    site.add_slot(ThreadKind::Guest);
    site.shared.workers.pretend_active(1);
    site
}

/// The worker waits for a job that is held back, and a job is scheduled that releases it.
fn schedule_what_a_worker_waits_for<P: Platform>(platform: P, first: usize) {
    let site = with_spare(platform, WaitPolicy::Passive);
    let held = held_job(&site.context(PUBLISHER));
    let (here, there) = (site.clone(), site.clone());
    let worker = Box::new(move || {
        let over = here.context(WORKER).wait_until(held, Nanos::MAX);
        assert!(matches!(over, Ok(true)), "the wait fails");
    });
    let publisher = Box::new(move || {
        let context = there.context(PUBLISHER);
        context.schedule(move |context| release(context, held));
    });
    together(first, [worker, publisher]);
    site.shared.stop();
}

fn release<P: Platform>(context: &Context<'_, P>, held: Ticket) {
    context.graph().release(held, 1, Queue::Own);
    context.graph().finish_todo(Queue::Own);
}

#[test]
fn a_spare_runs_what_the_worker_waits_for() {
    check(1, 2, |first| {
        schedule_what_a_worker_waits_for(Spoiled::by::<Ordered>(), first);
    });
}

#[test]
fn without_full_fences_there_is_no_spare() {
    must_find("deadlock", 1, || {
        schedule_what_a_worker_waits_for(Spoiled::by::<WeakFences>(), 0);
    });
}

/// The worker goes on, and rests until the bell rings, as in a wait.
fn block_until_it_rings<P: Platform>(context: &Context<'_, P>, bell: &Bell) {
    context.shared.begin_block(context);
    // SeqCst, partner: the publisher's fence (F in `idle`), as in `rest`.
    P::fence(Ordering::SeqCst);
    assert!(
        context.shared.replace_blocked(context).is_none(),
        "there is a spare"
    );
    bell.wait();
    context.shared.end_block(context);
}

/// A spare has a job when the worker comes back, and is to leave. Then the worker waits for the next job.
fn wait_again_while_the_spare_leaves<P: Platform>(platform: P, first: usize) {
    let site = with_spare(platform, WaitPolicy::Passive);
    let bell = Bell::new();
    let rope = bell.clone();
    site.shared.begin_block(&site.context(WORKER));
    site.context(PUBLISHER).schedule(|_| ());
    let (here, there) = (site.clone(), site.clone());
    let worker = Box::new(move || {
        let context = here.context(WORKER);
        context.shared.end_block(&context);
        block_until_it_rings(&context, &bell);
    });
    let publisher = Box::new(move || {
        let context = there.context(PUBLISHER);
        context.schedule(move |_| rope.ring());
    });
    together(first, [worker, publisher]);
    site.shared.stop();
}

/// A worker that leaves may have been counted on for a job, and does not see the job.
#[derive(Clone, Copy)]
struct WeakAtTheDoor;

impl Spoil for WeakAtTheDoor {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["workers/life.rs"];
    fn fence(_: Ordering) -> Ordering {
        Ordering::AcqRel // Partner: the publisher's fence.
    }
}

#[test]
fn a_spare_that_leaves_passes_on_what_it_was_counted_on_for() {
    check(1, 2, |first| {
        wait_again_while_the_spare_leaves(Spoiled::by::<Ordered>(), first);
    });
}

#[test]
fn without_the_fence_of_the_spare_that_leaves_it_does_not() {
    must_find("deadlock", 1, || {
        wait_again_while_the_spare_leaves(Spoiled::by::<WeakAtTheDoor>(), 0);
    });
}

/// A spare makes a job ready, and finds that the worker is back. The worker spins until there is a job.
fn leave_beside_a_spinner<S: Spoil>(first: usize) {
    let site = with_spare(Spoiled::by::<S>(), WaitPolicy::Active);
    let context = site.context(PUBLISHER);
    let held = held_job(&context);
    let last = context.job("last").after(JobId::new(site.shared.id, held));
    last.schedule(|context| context.shared.signal_stop());
    site.shared.begin_block(&site.context(WORKER));
    context.schedule(move |context| release(context, held));
    let here = site.clone();
    let worker = Box::new(move || {
        let context = here.context(WORKER);
        context.shared.end_block(&context);
        context.work_loop();
    });
    together(first, [worker]);
    site.shared.stop();
}

/// A spin goes on until it sees the value that it waits for.
#[derive(Clone, Copy)]
struct Patient;

impl Spoil for Patient {
    const ORDERED: bool = true;
    const SPINS_ON: bool = true;
}

/// A spare leaves with a ticket that it has promised to run.
#[derive(Clone, Copy)]
struct LeavesAtOnce;

impl Spoil for LeavesAtOnce {
    const ORDERED: bool = true;
    const SPINS_ON: bool = true;
    const OMITS: Option<Omission> = Some(Omission::AnnounceBeforeLeaving);
}

#[test]
fn a_spare_leaves_nothing_behind_for_a_spinner_to_overlook() {
    check(1, 1, leave_beside_a_spinner::<Patient>);
}

#[test]
fn a_ticket_that_a_spare_keeps_to_itself_is_found() {
    must_find("branches", 1, || leave_beside_a_spinner::<LeavesAtOnce>(0));
}
