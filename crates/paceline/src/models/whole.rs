//! Goal: the parts fit together. A scheduled job runs, once, and its effects are there when a wait, a join,
//! a scope or a loop is over. Job systems end, whatever is under way.
//! Method: whole job systems, from starting a worker to joining it, used by the model's own thread and at
//! times one more. Where that is too much to explore, a thread of the model is the worker: the same loop
//! without its beginning and its end. A lost wake-up is a deadlock, and a missing edge is a race.
//! Bounds: one worker, one or two outside threads, up to four jobs, rings of two, one preemption (two for
//! the smallest).
//! Planted bug: no fence is SeqCst, which loses the wake-up of a worker that is about to park.
//!
//! An outside thread keeps a job system alive by its handles, with a reference count that the checker does
//! not see. So the model's first thread ends last.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Ordering, Parker, Platform, Thread, ThreadSpec};
use testkit::Loom;

use super::{
    Notes, Ordered, Site, Spoiled, WeakFences, Word32, check, must_find, shared, together,
};
use crate::error::WaitError;
use crate::work::Context;
use crate::work::shared::Shared;
use crate::{Grain, JobSystem};

/// A job system with one worker, for up to `guests` outside threads.
struct System<P: Platform> {
    door: ManuallyDrop<JobSystem<P>>,
    /// The state behind it, kept for longer than any of its threads can need it.
    shared: ManuallyDrop<Arc<Shared<P>>>,
}

impl<P: Platform> System<P> {
    fn new(platform: P, guests: usize) -> Self {
        let shared = shared(platform, 4, 1, guests);
        let door = JobSystem::from_shared(shared.clone());
        door.resize(1).expect("the model has a thread left");
        System {
            door: ManuallyDrop::new(door),
            shared: ManuallyDrop::new(shared),
        }
    }
}

impl<P: Platform> Deref for System<P> {
    type Target = JobSystem<P>;
    fn deref(&self) -> &JobSystem<P> {
        &self.door
    }
}

impl<P: Platform> Drop for System<P> {
    /// As for [`Site`]: an execution that was cut short leaves its words behind, and they stay there.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: neither is used again, and this is the only place that drops them.
            unsafe {
                ManuallyDrop::drop(&mut self.door);
                ManuallyDrop::drop(&mut self.shared);
            }
        }
    }
}

/// An event outside the job system.
pub(super) struct Bell {
    rung: Word32,
    parker: <Loom as Platform>::Parker,
}

impl Bell {
    pub(super) fn new() -> Arc<Bell> {
        Arc::new(Bell {
            rung: Word32::new(0),
            parker: Loom.parker(),
        })
    }

    pub(super) fn ring(&self) {
        // Release, partner: the load in `wait`.
        self.rung.fetch_add(1, Ordering::Release);
        self.parker.unpark();
    }

    pub(super) fn wait(&self) {
        // Acquire, partner: the addition in `ring`.
        while self.rung.load(Ordering::Acquire) == 0 {
            self.parker.park(Nanos::MAX);
        }
    }
}

/// Checks a job system that the model's first thread uses.
fn check_system(preemptions: usize, guests: usize, act: fn(System<Spoiled>)) {
    check(preemptions, 1, move |_| {
        act(System::new(Spoiled::by::<Ordered>(), guests))
    });
}

fn forget_a_job(system: System<Spoiled>) {
    let bell = Bell::new();
    let rope = bell.clone();
    system.schedule(move |_| rope.ring());
    bell.wait();
}

#[test]
fn a_job_without_a_waiter_runs() {
    check_system(2, 1, forget_a_job);
}

#[test]
fn without_full_fences_it_does_not() {
    must_find("deadlock", 2, || {
        forget_a_job(System::new(Spoiled::by::<WeakFences>(), 1));
    });
}

#[test]
fn a_chain_without_a_waiter_runs() {
    check_system(1, 1, |system| {
        let bell = Bell::new();
        let rope = bell.clone();
        let first = system.schedule(|_| ());
        let second = system.job("second").after(first);
        second.schedule(move |_| rope.ring());
        bell.wait();
    });
}

#[test]
fn a_scope_ends_after_its_jobs() {
    check_system(1, 1, |system| {
        let mut cells = [0, 0];
        system.scope(|scope| {
            for cell in &mut cells {
                scope.spawn(move |_| *cell += 1);
            }
        });
        assert_eq!(cells, [1, 1]);
    });
}

#[test]
fn a_loop_ends_after_its_blocks() {
    check_system(1, 1, |system| {
        let items = Notes::new();
        system.parallel_for(0..3, Grain::Items(1), |part, _| {
            part.for_each(|item| items.add(item));
        });
        assert_eq!(items.take(), [0, 1, 2]);
    });
}

#[test]
fn a_result_comes_to_its_handle() {
    check_system(1, 1, |system| {
        assert_eq!(system.job("five").run(|_| 5).wait(), 5);
    });
}

/// A value that notes that it was dropped.
struct Dropped(Notes<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add(());
    }
}

#[test]
fn an_unwanted_result_is_dropped_once() {
    check_system(2, 1, |system| {
        let drops = Notes::new();
        let result = Dropped(drops.clone());
        drop(system.job("unwanted").run(move |_| result));
        drop(system);
        assert_eq!(drops.take().len(), 1);
    });
}

#[test]
fn a_worker_that_was_retired_is_replaced() {
    check_system(1, 1, |system| {
        system.resize(0).expect("fewer are always possible");
        system.resize(1).expect("the model has a thread left");
        forget_a_job(system);
    });
}

#[test]
fn an_event_may_be_completed_while_everything_ends() {
    check_system(1, 2, |system| {
        let event = system.event("event");
        let handle = system.job("late").after(event.id()).run(|_| 1);
        let complete = Box::new(move || event.complete());
        let thread = Loom.spawn(ThreadSpec::default(), complete);
        drop(system);
        let thread = thread.expect("the model has a thread left");
        thread.join().expect("a panic ends the whole model");
        // The completion came in time, or too late.
        let late = handle.try_wait();
        let known = matches!(late, Ok(1) | Err(WaitError::ShutDown));
        assert!(known, "the job was neither run nor dropped: {late:?}");
    });
}

/// Checks one thread's actions while another thread is a worker.
fn check_with_a_worker(act: fn(&Context<'_, Spoiled>, &Site<Spoiled>)) {
    check(1, 2, move |first| {
        let site = Site::new(Spoiled::by::<Ordered>(), 4, 2);
        let (here, there) = (site.clone(), site);
        let user = Box::new(move || {
            act(&here.context(1), &here);
            here.shared.signal_stop();
        });
        let worker = Box::new(move || there.context(0).work_loop());
        together(first, [user, worker]);
    });
}

#[test]
fn a_wait_ends_after_the_job() {
    check_with_a_worker(|context, site| {
        let here = site.clone();
        let job = context.schedule(move |_| here.do_something());
        let over = context.wait_until(job.ticket(), Nanos::MAX);
        assert!(matches!(over, Ok(true)), "the wait fails");
        assert_eq!(site.what_was_done(), 1);
    });
}

#[test]
fn a_join_ends_after_both_halves() {
    check_with_a_worker(|context, _| {
        assert_eq!(context.join(|_| 1, |_| 2), (1, 2));
    });
}

#[test]
fn nested_joins_end_after_all_parts() {
    check_with_a_worker(|context, _| {
        let all = context.join(|inner| inner.join(|_| 1, |_| 2), |_| 3);
        assert_eq!(all, ((1, 2), 3));
    });
}
