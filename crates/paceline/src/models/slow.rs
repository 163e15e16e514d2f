//! Goal: a background job is never forgotten, although two kinds of workers may take it. Each kind has an
//! idle word of its own, and neither looks at the other's. The job runs if a slow worker is idle. If all
//! slow workers are busy and a fast one sleeps, the fast one is woken.
//! Method: a job is scheduled in the background and left to a slow worker that is anywhere between looking
//! for work and being parked, by the real code of `slow` and `context`. Then the two words by themselves,
//! by the real `Slow`, `Idle` and `Injector`: a slow worker ends its search with other work in its hands,
//! and is busy for good; a fast one goes to sleep, or has done so before. And a limit of one: the worker that
//! runs a background job comes to its end while another one goes to sleep.
//! Bounds: two or three threads, one or two jobs, two preemptions (one with two publishers).
//! Planted bugs: the publisher's fence or the worker's too weak; a search that ends with other work and
//! passes nothing on; a publisher that leaves all jobs to slow workers; a publisher that does not look
//! again after it has counted a slow worker that was not there.

use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Memory, Ordering, Parker, Platform};
use testkit::Loom;

use super::{
    Notes, Ordered, Part, Parts, Site, Spoil, Spoiled, check, must_find, parts, site_of, together,
};
use crate::queues::Injector;
use crate::queues::{Fenced, Fences, Idle};
use crate::store::Ticket;
use crate::work::slow::{Called, Slow};
use crate::work::thread_slot::{ThreadKind, ThreadSlot};

/// By the real code: a slow worker, and a thread that schedules a background job and goes away. The job
/// tells the worker to leave.
fn schedule_and_forget<P: Platform>(platform: P, first: usize) {
    let site = Site::new(platform, 4, 2);
    let flag = &site.shared.threads.get(0).flag;
    // Relaxed: there are no threads yet.
    flag.store(ThreadSlot::<P>::IS_SLOW, Ordering::Relaxed);
    let (here, there) = (site.clone(), site.clone());
    let publisher = Box::new(move || {
        let context = there.context(1);
        let job = context.job("saves").background();
        job.schedule(|context| context.shared.signal_stop());
    });
    let worker = Box::new(move || here.context(0).slow_loop());
    together(first, [publisher, worker]);
}

#[test]
fn a_background_job_runs() {
    check(2, 2, |first| {
        schedule_and_forget(Spoiled::by::<Ordered>(), first)
    });
}

/// The fence between queueing a background job and looking for idle workers is too weak.
#[derive(Clone, Copy)]
struct WeakAtPublisher;

impl Spoil for WeakAtPublisher {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["slow/mod.rs"];
    fn fence(_: Ordering) -> Ordering {
        Ordering::AcqRel // Partner: the worker's fence.
    }
}

/// The fence between announcing that a worker sleeps and its last look is too weak.
#[derive(Clone, Copy)]
pub(super) struct WeakAtWorker;

impl Spoil for WeakAtWorker {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["idle/mod.rs"];
    fn fence(_: Ordering) -> Ordering {
        Ordering::AcqRel // Partner: the publisher's fence.
    }
}

#[test]
fn with_a_weaker_fence_at_either_side_it_is_forgotten() {
    must_find("deadlock", 2, || {
        schedule_and_forget(Spoiled::by::<WeakAtPublisher>(), 0);
    });
    must_find("deadlock", 2, || {
        schedule_and_forget(Spoiled::by::<WeakAtWorker>(), 0);
    });
}

/// A job system in which one worker may run background jobs, and the thread with number 1 does.
fn limited_site<P: Platform>(platform: P) -> Site<P> {
    let limited = Parts {
        background_max: Some(1),
        ..parts(platform, 4, 3, 0)
    };
    let site = site_of(limited);
    (0..3).for_each(|_| site.add_slot(ThreadKind::Worker));
    site.shared.workers.pretend_active(4);
    assert!(site.shared.lanes.take_place(), "there is one");
    site
}

/// The worker leaves its place and goes away.
fn leaver<P: Platform>(site: &Site<P>) -> Part {
    let site = site.clone();
    Box::new(move || site.context(1).leave_place())
}

/// By the real code: a place is left just when another worker goes to sleep beside the backlog.
fn leave_the_place<P: Platform>(platform: P, first: usize) {
    let site = limited_site(platform);
    let job = site.context(2);
    let job = job.job("saves").background();
    job.schedule(|context| context.shared.signal_stop());
    let worker = {
        let site = site.clone();
        Box::new(move || site.context(0).work_loop())
    };
    together(first, [worker, leaver(&site)]);
}

/// The same just when a thread schedules a background job, while the other worker sleeps.
fn leave_the_place_to_a_new_job<P: Platform>(platform: P, first: usize) {
    const SLEEPER: usize = 0;
    let site = limited_site(platform);
    let idle = &site.shared.idle;
    idle.begin_search::<Fenced>();
    idle.begin_sleep::<Fenced>(SLEEPER);
    let publisher = {
        let site = site.clone();
        Box::new(move || {
            let context = site.context(2);
            _ = context.job("saves").background().schedule(|_| ());
        })
    };
    together(first, [publisher, leaver(&site)]);
    assert!(!idle.is_asleep(SLEEPER), "{FORGOTTEN}");
}

#[test]
fn a_place_that_is_left_is_taken() {
    check(2, 2, |first| {
        leave_the_place(Spoiled::by::<Ordered>(), first)
    });
    check(2, 2, |first| {
        leave_the_place_to_a_new_job(Spoiled::by::<Ordered>(), first);
    });
}

/// The fence behind leaving a place is too weak.
#[derive(Clone, Copy)]
struct WeakAtPlace;

impl Spoil for WeakAtPlace {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["lanes/places.rs"];
    fn fence(_: Ordering) -> Ordering {
        Ordering::AcqRel // Partner: the publisher's fence.
    }
}

#[test]
fn with_a_weaker_fence_a_place_that_is_left_stays_empty() {
    must_find("deadlock", 2, || {
        leave_the_place(Spoiled::by::<WeakAtWorker>(), 0);
    });
    must_find(FORGOTTEN, 2, || {
        leave_the_place_to_a_new_job(Spoiled::by::<WeakAtPlace>(), 0);
    });
    must_find(FORGOTTEN, 2, || {
        leave_the_place_to_a_new_job(Spoiled::by::<WeakAtPublisher>(), 0);
    });
}

/// One slow worker, one fast one, and the backlog.
struct Den {
    slow: Slow<Loom>,
    fast: Idle<Loom>,
    backlog: Injector<Loom>,
    /// The slow worker's parker.
    parker: <Loom as Platform>::Parker,
}

/// The workers' thread slots.
const SLOW: usize = 0;
const FAST: usize = 1;

impl Den {
    fn new() -> Arc<Den> {
        Arc::new(Den {
            slow: Slow::new(2, true),
            fast: Idle::new(2),
            backlog: Injector::new(),
            parker: Loom.parker(),
        })
    }

    fn part(self: &Arc<Self>, act: impl FnOnce(&Den) + Send + 'static) -> Part {
        let den = self.clone();
        Box::new(move || act(&den))
    }

    /// As `Context::enqueue_in_backlog`.
    fn publisher<F: Fences<Loom> + 'static>(self: &Arc<Self>, call: fn(&Den)) -> Part {
        self.part(move |den| {
            den.backlog.push(&[Ticket(1)], &|_| false);
            F::publish();
            call(den);
        })
    }

    /// As `Context::wake_for_slow_work`. A fast worker that is woken has its bit cleared, and the model
    /// needs no more.
    fn call<F: Fences<Loom>>(&self) {
        if self.slow.call_for::<F>(&self.backlog, &self.fast) == Called::Worker(SLOW) {
            self.parker.unpark();
        }
    }

    /// As `Context::end_slow_search`.
    fn end_search<F: Fences<Loom>>(&self, call: fn(&Den)) {
        if self.slow.idle.end_search::<F>() && !self.backlog.is_empty() {
            call(self);
        }
    }

    /// As `worker.rs`: the fast worker finds nothing and goes to sleep. True if it parks.
    fn doze_off(&self) -> bool {
        self.fast.begin_search::<Fenced>();
        let has_found = !self.backlog.is_empty();
        if !has_found {
            self.fast.begin_sleep::<Fenced>(FAST);
        }
        !has_found && self.backlog.is_empty()
    }
}

const FORGOTTEN: &str = "a background job is forgotten";

/// The slow worker, which searches, takes another job and is busy with it. A background job is published.
/// The fast worker goes to sleep.
fn take_another_job<F: Fences<Loom> + 'static>(first: usize, pass_on: fn(&Den), publish: fn(&Den)) {
    let den = Den::new();
    den.slow.idle.begin_search::<Fenced>();
    let parked = Notes::new();
    let noted = parked.clone();
    let busy = den.part(move |den| den.end_search::<F>(pass_on));
    let fast = den.part(move |den| noted.add(den.doze_off()));
    together(first, [den.publisher::<F>(publish), busy, fast]);
    let forgotten = parked.take() == [true] && den.fast.is_asleep(FAST);
    assert!(!forgotten, "{FORGOTTEN}");
}

#[test]
fn a_job_that_was_left_to_a_slow_worker_with_other_work_is_passed_on() {
    check(2, 3, |first| {
        take_another_job::<Fenced>(first, Den::call::<Fenced>, Den::call::<Fenced>);
    });
}

#[test]
fn a_search_that_ends_without_passing_on_forgets_a_job() {
    must_find(FORGOTTEN, 2, || {
        take_another_job::<Fenced>(0, |_| (), Den::call::<Fenced>);
    });
}

/// As if there were one idle word.
fn call_slow_only(den: &Den) {
    if den.slow.idle.wake_one().is_some() {
        den.parker.unpark();
    }
}

#[test]
fn a_publisher_that_calls_slow_workers_only_forgets_a_job() {
    must_find(FORGOTTEN, 2, || {
        take_another_job::<Fenced>(0, Den::call::<Fenced>, call_slow_only);
    });
}

/// The look at the end of a search is not fenced, and neither is the look after no worker to wake was
/// found.
struct NoFenceAtLook;

impl<M: Memory> Fences<M> for NoFenceAtLook {
    fn look() {}
}

#[test]
fn without_the_fence_at_the_end_of_a_search_a_job_is_forgotten() {
    must_find(FORGOTTEN, 2, || {
        take_another_job::<NoFenceAtLook>(0, Den::call::<Fenced>, Den::call::<Fenced>);
    });
}

/// Two publishers with a job each, and a slow worker. It wakes up by itself for one of the jobs and is busy
/// with it, just when a publisher has counted it as woken. The fast worker sleeps, and should get the
/// second job.
fn call_a_phantom<F: Fences<Loom> + 'static>(first: usize) {
    let den = Den::new();
    den.slow.idle.begin_search::<Fenced>();
    den.slow.idle.begin_sleep::<Fenced>(SLOW);
    den.fast.begin_search::<Fenced>();
    den.fast.begin_sleep::<Fenced>(FAST);
    let riser = den.part(|den| {
        while den.slow.idle.is_asleep(SLOW) && den.backlog.is_empty() {
            den.parker.park(Nanos::MAX);
        }
        den.slow.idle.cancel_sleep(SLOW);
        den.end_search::<Fenced>(Den::call::<Fenced>);
        assert!(!den.backlog.take(1).is_empty(), "no other thread takes any");
    });
    let publisher = || den.publisher::<Fenced>(Den::call::<F>);
    together(first, [publisher(), publisher(), riser]);
    assert!(!den.fast.is_asleep(FAST), "{FORGOTTEN}");
}

#[test]
fn a_job_that_is_left_to_an_absent_slow_worker_is_found() {
    check(1, 3, call_a_phantom::<Fenced>);
}

#[test]
fn without_a_second_look_after_waking_no_worker_a_job_is_forgotten() {
    must_find(FORGOTTEN, 1, || call_a_phantom::<NoFenceAtLook>(0));
}
