//! Goal: a wait of a group runs what it needs and jobs of the group, and no stranger's; a gang whose members
//! wait for each other ends with as many threads as it has members, the one that waits among them; and ids of
//! other job systems, groups that are gone and threads that run each other's jobs are told apart.
//!
//! Method: gangs that are as large as the job system, beside strangers, on simulated threads under random
//! orders of steps, and on the system's: if the thread that waits could not run a member, the others would
//! wait for ever. Random programs of jobs of several groups, of which some wait in their middle, in a group
//! or not: each body notes the waits that its thread is in the middle of.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use event::Nanos;
use paceline::{Builder, Context, Group, JobId, JobSystem, ScheduleError, WaitError};
use platform::{Os, Parker, Platform};
use sim::Sim;

use crate::support::{Random, delays, each_seed, watched};

/// Returns when as many have come as there are to be.
fn meet<P: Platform>(platform: &P, here: &AtomicUsize, all: usize) {
    here.fetch_add(1, SeqCst);
    while here.load(SeqCst) < all {
        platform
            .parker()
            .park(platform.now() + Nanos::from_micros(20));
    }
}

/// Steps of a gang with a member for each thread, beside strangers that the main thread must not run.
fn gangs<P: Platform>(platform: &P, workers: usize, random: &mut Random) {
    let builder = Builder::with_platform(platform.clone()).workers(workers);
    let js = Arc::new(builder.follow_machine(false).build().unwrap());
    let group = Arc::new(js.group("physics"));
    let main = js.enter(|cx| cx.worker());
    for _ in 0..4 {
        let (here, members) = (Arc::new(AtomicUsize::new(0)), workers + 1);
        let strangers: Vec<JobId> = (0..random.below(4))
            .map(|_| {
                let stranger = js.job("stranger");
                stranger
                    .schedule(move |cx| assert!(cx.worker() != main, "under a stranger's frame"))
            })
            .collect();
        let member = |cx_group: &Arc<Group<P>>| {
            let (here, platform) = (here.clone(), platform.clone());
            let job = cx_group.job("member");
            job.schedule(move |_| meet(&platform, &here, members))
        };
        // From outside, or by a job that is none of the group and is over before the wait begins.
        let mut gang: Vec<JobId> = if random.chance(50) {
            (0..members).map(|_| member(&group)).collect()
        } else {
            let (sender, made) = std::sync::mpsc::channel();
            let (group, here, platform) = (group.clone(), here.clone(), platform.clone());
            let make = js.job("make").schedule(move |_| {
                for _ in 0..members {
                    let (here, platform) = (here.clone(), platform.clone());
                    let job = group.job("member");
                    let id = job.schedule(move |_| meet(&platform, &here, members));
                    sender.send(id).unwrap();
                }
            });
            js.wait(make);
            made.iter().collect()
        };
        random.shuffle(&mut gang);
        for &id in &gang {
            group.wait(id);
        }
        assert_eq!(here.load(SeqCst), members);
        for stranger in strangers {
            assert!(
                js.wait_timeout(stranger, std::time::Duration::from_secs(1000))
                    .unwrap()
            );
        }
    }
}

#[test]
fn a_gang_meets() {
    each_seed("groups::a_gang_meets", 800, |seed| {
        let mut random = Random::new(seed ^ 0x6a06);
        let workers = 1 + random.below(4);
        let report = Sim::run(delays(seed), move |sim| gangs(&sim, workers, &mut random));
        report.expect_finished();
    });
}

#[test]
fn a_gang_meets_on_the_system() {
    watched("a gang", || {
        for seed in 0..40 {
            gangs(&Os, 1 + seed as usize % 3, &mut Random::new(seed));
        }
    });
}

/// Goal: a wait in a group, in the middle of a job, runs the jobs of the group that are pinned to its thread:
/// no other thread can. Method: a job of the main thread waits for an event that a pinned job completes; the
/// two know nothing of each other but the group. The worker makes the pinned job, before the wait or after
/// it has begun.
fn pinned_members<P: Platform>(platform: &P) {
    let builder = Builder::with_platform(platform.clone()).workers(1);
    let js = Arc::new(builder.follow_machine(false).build().unwrap());
    let thread = js.pinned_thread();
    let pin = thread.pin();
    let group = Arc::new(js.group("physics"));
    for _ in 0..4 {
        let (event, made) = (js.event("over"), js.event("made"));
        let (over, begin) = (event.id(), made.id());
        let theirs = group.clone();
        let make = js.job("make").after(begin).schedule(move |_| {
            let member = theirs.job("member").pinned_to(pin);
            member.schedule(move |_| event.complete());
        });
        let theirs = group.clone();
        let outer = js.job("outer").pinned_to(pin).schedule(move |_| {
            made.complete();
            theirs.wait(over);
        });
        js.wait(outer);
        js.wait(make);
    }
}

#[test]
fn a_wait_in_a_group_runs_pinned_members() {
    each_seed(
        "groups::a_wait_in_a_group_runs_pinned_members",
        400,
        |seed| {
            let report = Sim::run(delays(seed), |sim| pinned_members(&sim));
            report.expect_finished();
        },
    );
    watched("pinned members", || {
        (0..40).for_each(|_| pinned_members(&Os))
    });
}

/// Jobs of a group that wait in the group for two others, and those in turn. Counts how deep waits nest.
fn split(group: &Arc<Group>, left: usize, nested: &Arc<[AtomicUsize; 2]>) -> JobId {
    let (theirs, counts) = (group.clone(), nested.clone());
    group.job("split").schedule(move |_| {
        let depth = counts[0].fetch_add(1, SeqCst) + 1;
        counts[1].fetch_max(depth, SeqCst);
        let halves =
            [1, 2].map(|less| (less <= left).then(|| split(&theirs, left - less, &counts)));
        for half in halves.into_iter().flatten() {
            theirs.wait(half);
        }
        counts[0].fetch_sub(1, SeqCst);
    })
}

/// Goal: a wait in a group that is over runs no further job of the group: waits nest as deep as jobs are
/// inside of jobs, and not as there are jobs. Method: a tree of jobs of one group on one thread.
#[test]
fn a_wait_in_a_group_ends_when_it_is_over() {
    const LEVELS: usize = 14;
    let js = Builder::new().workers(0).build().unwrap();
    let group = Arc::new(js.group("tree"));
    let nested = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let root = split(&group, LEVELS, &nested);
    group.wait(root);
    let depth = nested[1].load(SeqCst);
    assert!(depth <= 2 * LEVELS, "{depth} levels");
}

/// Goal: the same if the group's jobs have ranks, which go before a thread's own jobs. Method: jobs of the
/// earlier one of two frames on one thread, which has called for jobs of its own; a wait for the first one.
#[test]
fn a_wait_in_a_group_ends_with_ranks_too() {
    let js = Builder::new().workers(0).build().unwrap();
    let _here = js.pinned_thread();
    let group = js.group("ranked");
    let later = js.frame("later", Duration::from_millis(500));
    let sooner = js.frame("sooner", Duration::from_millis(5));
    let ran = Arc::new(AtomicUsize::new(0));
    let ids = [(); 6].map(|()| {
        let ran = Arc::clone(&ran);
        let job = sooner.job("ranked").in_group(&group);
        job.schedule(move |_| _ = ran.fetch_add(1, SeqCst))
    });
    group.wait(ids[0]);
    assert_eq!(ran.load(SeqCst), 1);
    drop((sooner, later));
}

/// A job of a random program.
#[derive(Clone, Debug)]
struct Planned {
    group: Option<usize>,
    after: Vec<usize>,
    /// An earlier job that it waits for in its middle, and the group of that wait.
    waits: Option<OpenWait>,
}

fn plan(random: &mut Random) -> Vec<Planned> {
    let mut jobs: Vec<Planned> = Vec::new();
    for number in 0..4 + random.below(20) {
        let earlier = |random: &mut Random| random.below(number.max(1));
        jobs.push(Planned {
            group: random.chance(70).then(|| random.below(2)),
            after: (0..random.below(3).min(number))
                .map(|_| earlier(random))
                .collect(),
            waits: (number > 0 && random.chance(25))
                .then(|| (earlier(random), random.chance(60).then(|| random.below(2)))),
        });
    }
    jobs
}

/// All that a job needs: what it comes after and what that comes after, itself included.
fn needs(planned: &[Planned], job: usize) -> HashSet<usize> {
    let (mut all, mut stack) = (HashSet::new(), vec![job]);
    while let Some(job) = stack.pop() {
        if all.insert(job) {
            stack.extend(&planned[job].after);
        }
    }
    all
}

/// The job that a thread waits for, and the group of the wait.
type OpenWait = (usize, Option<usize>);

/// What the bodies of a random program share.
struct Program<P: Platform> {
    planned: Vec<Planned>,
    groups: Vec<Group<P>>,
    ids: Mutex<Vec<JobId>>,
    ran: Vec<AtomicUsize>,
    /// For each thread slot the waits that its thread is in the middle of: the job, and the group.
    waits: Vec<Mutex<Vec<OpenWait>>>,
    workers: usize,
}

impl<P: Platform> Program<P> {
    fn wait(&self, cx: &Context<'_, P>, job: usize, group: Option<usize>) {
        let id = self.ids.lock().unwrap()[job];
        let here = &self.waits[cx.worker()];
        here.lock().unwrap().push((job, group));
        let waited = match group {
            Some(group) => self.groups[group].try_wait(id),
            None => cx.try_wait(id),
        };
        here.lock().unwrap().pop();
        // A job of the group that this thread has begun on top of one that it waits for.
        assert!(
            matches!(waited, Ok(()) | Err(WaitError::Deadlock { .. })),
            "{waited:?}"
        );
    }

    fn body(&self, cx: &Context<'_, P>, number: usize) {
        self.ran[number].fetch_add(1, SeqCst);
        let around = self.waits[cx.worker()].lock().unwrap().last().copied();
        let planned = &self.planned[number];
        if let Some((awaited, group)) = around
            && self.workers > 0
        {
            let is_needed = needs(&self.planned, awaited).contains(&number);
            let is_of_group = group.is_some() && planned.group == group;
            assert!(
                is_needed || is_of_group,
                "a stranger's job {number} in the wait {around:?} of {:?}",
                self.planned
            );
        }
        cx.shared_work(Nanos::from_micros(3));
        if let Some((awaited, group)) = planned.waits {
            self.wait(cx, awaited, group);
        }
    }
}

/// Work that takes time on a simulated machine.
trait Works {
    fn shared_work(&self, time: Nanos);
}

impl<P: Platform> Works for Context<'_, P> {
    fn shared_work(&self, time: Nanos) {
        self.platform().charge(time);
    }
}

#[test]
fn a_wait_of_a_group_runs_no_stranger() {
    each_seed("groups::a_wait_of_a_group_runs_no_stranger", 1500, |seed| {
        let mut random = Random::new(seed ^ 0x9007);
        let workers = random.below(4);
        let planned = plan(&mut random);
        let report = Sim::run(delays(seed), move |sim| {
            let builder = Builder::with_platform(sim.clone()).workers(workers);
            let js = builder.build().unwrap();
            run_program(&js, workers, planned, &mut random);
        });
        report.expect_finished();
    });
}

fn run_program(js: &JobSystem<Sim>, workers: usize, planned: Vec<Planned>, random: &mut Random) {
    let count = planned.len();
    let program = Arc::new(Program {
        groups: ["one", "two"].map(|name| js.group(name)).into(),
        ids: Mutex::new(Vec::new()),
        ran: planned.iter().map(|_| AtomicUsize::new(0)).collect(),
        waits: (0..512).map(|_| Mutex::default()).collect(),
        planned,
        workers,
    });
    let gate = js.event("gate");
    for number in 0..count {
        let planned = &program.planned[number];
        let mut job = js.job("job").after(&gate);
        for &before in &planned.after {
            job = job.after(program.ids.lock().unwrap()[before]);
        }
        if let Some(group) = planned.group {
            job = job.in_group(&program.groups[group]);
        }
        let inner = program.clone();
        let id = job.schedule(move |cx| inner.body(cx, number));
        program.ids.lock().unwrap().push(id);
    }
    gate.complete();
    let mut order: Vec<usize> = (0..count).collect();
    random.shuffle(&mut order);
    for job in order {
        let group = random.chance(50).then(|| random.below(2));
        js.enter(|cx| program.wait(cx, job, group));
    }
    assert!(program.ran.iter().all(|ran| ran.load(SeqCst) == 1));
}

/// Goal: what is wrong is said. Method: a group of another job system; a group that is gone; a wait on top of
/// the job that it waits for.
#[test]
fn what_is_wrong_is_said() {
    let [js, other] = [(); 2].map(|()| Builder::new().workers(0).build().unwrap());
    let (group, theirs) = (Arc::new(js.group("ours")), other.group("theirs"));
    let refused = js.job("job").in_group(&theirs).try_schedule(|_| ());
    assert!(matches!(refused, Err(ScheduleError::Foreign { .. })));
    let foreign = other.schedule(|_| ());
    assert!(matches!(
        group.try_wait(foreign),
        Err(WaitError::Foreign { .. })
    ));

    let left = theirs.job("left").run(|_| 7);
    drop(theirs);
    assert_eq!(left.wait(), 7, "jobs outlive their group");

    let outer = Arc::new(Mutex::new(None));
    let (inner_group, awaited) = (group.clone(), outer.clone());
    let id = group.job("outer").schedule(move |_| {
        let group = inner_group.clone();
        let on_top = inner_group.job("on top").run(move |cx| {
            let below: JobId = awaited.lock().unwrap().unwrap();
            let error = cx.try_wait(below).unwrap_err();
            assert!(matches!(error, WaitError::Deadlock { .. }), "{error}");
            drop(group);
            "told"
        });
        inner_group.wait(&on_top);
        assert_eq!(on_top.wait(), "told");
    });
    *outer.lock().unwrap() = Some(id);
    group.wait(id);
    let held = js.event("held");
    drop(js);
    let late = group.job("late").try_schedule(|_| ());
    assert!(late.is_ok() || late.is_err(), "it returns");
    drop((held, group));
}
