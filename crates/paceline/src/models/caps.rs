//! Goal: a job of a lane with a share and a limit is never forgotten: when a worker leaves the last place in
//! the lane, another one that could take the job and sleeps, or is about to, is woken. Nor is one left for
//! good beside a place that is free. Method: the real code. A limit of one, and a worker that has the place
//! comes to its end, while another worker goes to sleep beside a job, or while a thread schedules one beside
//! a worker that sleeps. Bounds: two threads, two preemptions. Planted bugs: the fence of the thread that
//! leaves the place or schedules the job, or that of the worker that goes to sleep, is too weak.

use platform::{Lane, Ordering, Platform};

use super::slow::WeakAtWorker;
use super::{
    Ordered, Part, Parts, Site, Spoil, Spoiled, check, must_find, parts, site_of, together,
};
use crate::queues::Fenced;
use crate::work::ShareSetting;
use crate::work::thread_slot::ThreadKind;

const FORGOTTEN: &str = "the job is forgotten";

/// A job system in which one worker may work for a lane, and the thread with number 1 does.
fn limited_site<P: Platform>(platform: P) -> Site<P> {
    let limited = Parts {
        shares: [ShareSetting::UNSET.of(10).at_most(1); 5],
        ..parts(platform, 4, 3, 0)
    };
    let site = site_of(limited);
    (0..3).for_each(|_| site.add_slot(ThreadKind::Worker));
    site.shared.workers.pretend_active(4);
    let (maker, worker) = (site.context(2), site.context(1));
    _ = maker.job("tile").lane(Lane::Share1).schedule(|_| ());
    let ticket = worker.next().expect("it is ready");
    worker.run_one(ticket);
    site
}

/// The worker turns to something else and goes away.
fn leaver<P: Platform>(site: &Site<P>) -> Part {
    let site = site.clone();
    Box::new(move || site.context(1).works_for_normal_lane())
}

/// The place is left just when another worker goes to sleep beside a job.
fn leave_the_place<P: Platform>(platform: P, first: usize) {
    let site = limited_site(platform);
    let maker = site.context(2);
    let job = maker.job("tile").lane(Lane::Share1);
    job.schedule(|context| context.shared.signal_stop());
    let worker = {
        let site = site.clone();
        Box::new(move || site.context(0).work_loop())
    };
    together(first, [worker, leaver(&site)]);
}

/// The same just when a thread schedules a job, while the other worker sleeps.
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
            _ = context.job("tile").lane(Lane::Share1).schedule(|_| ());
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

/// The fence behind leaving a place, and behind queueing a job, is too weak.
#[derive(Clone, Copy)]
struct WeakAtPlace;

impl Spoil for WeakAtPlace {
    const ORDERED: bool = true;
    const FILES: &'static [&'static str] = &["lanes/caps.rs"];
    fn fence(_: Ordering) -> Ordering {
        Ordering::AcqRel // Partner: the worker's fence.
    }
}

#[test]
fn with_a_weaker_fence_a_place_stays_empty() {
    must_find("deadlock", 2, || {
        leave_the_place(Spoiled::by::<WeakAtWorker>(), 0);
    });
    must_find("deadlock", 2, || {
        leave_the_place(Spoiled::by::<WeakAtPlace>(), 0);
    });
    must_find(FORGOTTEN, 2, || {
        leave_the_place_to_a_new_job(Spoiled::by::<WeakAtPlace>(), 0);
    });
}
