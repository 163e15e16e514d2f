//! Thread slots: one thread at a time on each, and none needed to complete an event or to end.
//!
//! Once a description of a job that was kept in a thread-local outlived the thread slot of its thread, and
//! scheduled its job on a thread slot that another thread had. A worker was started a second time while the
//! job system ended. Events could not be completed while all thread slots were taken. And each thread whose
//! thread-locals used the job system after the runtime's own had gone took a thread slot with it for ever.

use super::*;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread::ThreadId;

use event::{Nanos, Sink};
use paceline::{Job, NewJob, WaitError};
use platform::{Os, Platform, Quota};
use sim::{Order, Sim, SimConfig};

use crate::support::{Random, each_seed};

/// Counts events of one thread slot that come from another thread than the one that has it.
#[derive(Default)]
struct Usher {
    holding: Mutex<Option<(u32, ThreadId)>>,
    intruders: Count,
}

impl Sink for Usher {
    fn record(&self, event: &event::Event) {
        let holding = *self.holding.lock().expect("nothing panics inside");
        let here = thread::current().id();
        if holding.is_some_and(|(slot, thread)| slot == event.slot && thread != here) {
            self.intruders.up();
        }
    }
}

/// Schedules a job when its thread ends.
struct Late {
    job: Option<NewJob<'static, 'static, Os>>,
    ending: Flag,
    go: Flag,
    ran: Count,
}

impl Drop for Late {
    fn drop(&mut self) {
        self.ending.raise();
        self.go.wait();
        let ran = self.ran.clone();
        let job = self.job.take().expect("it is dropped once");
        job.schedule(move |_| _ = ran.up());
    }
}

thread_local! {
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
}

/// Goal: a description of a job may outlive the thread slot of its thread; the job is scheduled all the same,
/// on a thread slot that no other thread has. Method: a thread-local that comes into being before the
/// thread's first call is dropped after the thread's thread slot was given back. At that moment another
/// thread has got a slot. A sink sees from which thread each event of that one's thread slot comes. (Miri and
/// ThreadSanitizer see the race itself.) On Windows no thread can begin while another one drops its
/// thread-locals.
#[cfg(not(windows))]
#[test]
fn a_described_job_outlives_its_slot() {
    watched("a described job", || {
        for _ in 0..20 {
            let usher = Arc::new(Usher::default());
            let js = small(0).sink(usher.clone()).build();
            // A description that lives in a thread-local borrows for ever.
            let js: &'static JobSystem = Box::leak(Box::new(js.expect("it needs no threads")));
            let (ending, go, ran) = (Flag::default(), Flag::default(), Count::default());
            let (ends, goes, runs) = (ending.clone(), go.clone(), ran.clone());
            let first = thread::spawn(move || {
                LATE.with_borrow_mut(|late| {
                    *late = Some(Late {
                        job: Some(js.job("late")),
                        ending: ends,
                        go: goes,
                        ran: runs,
                    });
                });
            });
            ending.wait();
            let second = thread::spawn(move || {
                let slot = js.enter(|cx| cx.worker()) as u32;
                *usher.holding.lock().unwrap() = Some((slot, thread::current().id()));
                go.raise();
                while ran.get() == 0 {
                    js.schedule(|_| ());
                    js.poll();
                }
                *usher.holding.lock().unwrap() = None;
                usher.intruders.get()
            });
            first.join().expect("it does not panic");
            let intruders = second.join().expect("it does not panic");
            assert_eq!(intruders, 0, "events of another thread on a taken slot");
        }
    });
}

/// Takes all thread slots for outside threads. Each of these threads then calls `then`, while the calling
/// thread, which has no thread slot, calls `last`.
fn with_all_slots_taken(js: &JobSystem, slots: usize, then: impl Fn() + Sync, last: impl FnOnce()) {
    let entered = Count::default();
    thread::scope(|threads| {
        for _ in 0..slots {
            threads.spawn(|| {
                js.enter(|_| ());
                entered.up();
                until(|| entered.get() == slots);
                then();
            });
        }
        until(|| entered.get() == slots);
        last();
    });
}

/// Makes an event on a thread that gives its thread slot back.
fn event_from_elsewhere(js: &JobSystem) -> paceline::Event {
    thread::scope(|threads| threads.spawn(|| js.event("loaded")).join()).expect("no panic")
}

const SLOTS: usize = 4;

fn crowded(workers: usize) -> JobSystem {
    let js = small(workers).max_threads(SLOTS).build();
    js.expect("threads can be started")
}

/// Goal: an event can be completed, or dropped, by a thread for which there is no thread slot. Method: all
/// thread slots are taken by threads that wait for it.
#[test]
fn an_event_that_all_seats_wait_for() {
    for (workers, drops) in FEW.into_iter().flat_map(|few| [(few, false), (few, true)]) {
        let what = format!("all slots wait, {workers} workers, dropped: {drops}");
        watched(&what, || {
            let js = crowded(workers);
            let event = event_from_elsewhere(&js);
            let id = event.id();
            let wait = || match js.try_wait(id) {
                Ok(()) => assert!(!drops),
                Err(WaitError::Abandoned { .. }) => assert!(drops),
                Err(error) => panic!("{error}"),
            };
            with_all_slots_taken(&js, SLOTS, wait, || {
                if drops { drop(event) } else { event.complete() }
            });
            ends_well(js);
        });
    }
}

/// Goal: as above where the threads that have the thread slots do something else. The job that depends on the
/// event is run: by the workers, or else by the first thread that waits for it. Method: the threads rest
/// until the event has been completed.
#[test]
fn an_event_while_all_seats_rest() {
    for workers in FEW {
        watched(&format!("all slots rest, {workers} workers"), || {
            let js = crowded(workers);
            let event = event_from_elsewhere(&js);
            let (ran, runs) = (Count::default(), Count::default());
            let ran_too = runs.clone();
            let id = event.id();
            let next = thread::scope(|threads| {
                let schedule = || js.job("next").after(id).schedule(move |_| _ = ran_too.up());
                threads.spawn(schedule).join().expect("no panic")
            });
            let completed = Flag::default();
            let rest = || {
                completed.wait();
                if workers == 0 {
                    js.try_wait(next).expect("it ends well");
                }
                ran.up();
            };
            with_all_slots_taken(&js, SLOTS, rest, || {
                event.complete();
                completed.raise();
            });
            until(|| runs.get() == 1);
            assert_eq!(ran.get(), SLOTS);
            ends_well(js);
        });
    }
}

/// A thread-local's use of the job system when its thread ends.
enum AtTheEnd {
    DropsAnEvent(Option<paceline::Event>),
    WaitsForAJob(Option<Job<usize>>),
    Schedules(Arc<JobSystem>, Count),
}

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        match self {
            AtTheEnd::DropsAnEvent(event) => drop(event.take()),
            AtTheEnd::WaitsForAJob(job) => {
                let job = job.take().expect("it is dropped once");
                assert_eq!(job.wait(), 7);
            }
            AtTheEnd::Schedules(js, ran) => {
                let ran = ran.clone();
                js.schedule(move |_| _ = ran.up());
            }
        }
    }
}

thread_local! {
    static AT_THE_END: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

/// How many threads come and end in each of the two orders: far more than there are thread slots.
const THREADS: usize = 60;

/// Threads come and end, one after the other, and each leaves something to its thread-local. In the second
/// order that comes into being before the thread's first call, and goes after the runtime's own.
fn threads_come_and_end(js: &Arc<JobSystem>, make: impl Fn(Arc<JobSystem>) -> AtTheEnd + Sync) {
    for is_early in [false, true] {
        for number in 0..THREADS {
            let make = &make;
            let theirs = Arc::clone(js);
            let come = move || {
                if is_early {
                    AT_THE_END.set(None);
                }
                let tried = theirs.job("first").try_schedule(|_| ());
                tried.unwrap_or_else(|error| panic!("thread {number}: {error}"));
                AT_THE_END.set(Some(make(theirs)));
            };
            // Joined, and not only known to be through: its thread-locals are gone then.
            let ended = thread::scope(|threads| threads.spawn(come).join());
            assert!(ended.is_ok(), "thread {number}");
        }
    }
}

/// Goal: thread-locals may use the job system when their thread ends, whichever goes first; the thread slots
/// come back. Method: [`THREADS`], each with an event that it drops at its end.
#[test]
fn thread_locals_that_drop_events() {
    watched("thread-locals with events", || {
        let js = Arc::new(crowded(1));
        threads_come_and_end(&js, |js| {
            AtTheEnd::DropsAnEvent(Some(js.event("at the end")))
        });
        all_workers_work(&js);
    });
}

/// Goal and method: as above, with a job that the thread-local waits for.
#[test]
fn thread_locals_that_wait() {
    for workers in FEW {
        watched(
            &format!("thread-locals that wait, {workers} workers"),
            || {
                let js = Arc::new(crowded(workers));
                threads_come_and_end(&js, |js| {
                    let job = js.job("at the end").run(|_| 7);
                    AtTheEnd::WaitsForAJob(Some(job))
                });
                all_workers_work(&js);
            },
        );
    }
}

/// Goal and method: as above, with a job that the thread-local schedules. Each of them runs.
#[test]
fn thread_locals_that_schedule() {
    for workers in FEW {
        watched(&format!("thread-locals that schedule, {workers}"), || {
            let (js, ran) = (Arc::new(crowded(workers)), Count::default());
            threads_come_and_end(&js, |js| AtTheEnd::Schedules(js, ran.clone()));
            while ran.get() < 2 * THREADS {
                js.flush();
                thread::yield_now();
            }
            all_workers_work(&js);
            let js = Arc::into_inner(js).expect("all threads have ended");
            ends_well(js);
        });
    }
}

/// Goal: no worker is started once the job system ends: there would be two threads on its thread slot.
/// Method: a simulated machine of four CPUs, of which the ration allows one, and then all. A worker sees that
/// in its look at the machine, which a flush asks for. The job system is dropped before that look, in the
/// middle of it, or after it, in many orders. Hooks count the threads on each thread slot.
#[test]
fn no_worker_is_started_while_the_job_system_ends() {
    let test = "defects::slots::no_worker_is_started_while_the_job_system_ends";
    each_seed(test, 300, |seed| {
        let mut random = Random::new(seed ^ 0x5ea7);
        let order = if random.chance(50) {
            Order::Random
        } else {
            Order::Pct { depth: 4 }
        };
        let config = SimConfig::new(seed).with_order(order).with_cpus_shown(4);
        let (started, twice) = (Count::default(), Count::default());
        let report = Sim::run(config, |sim| wider_at_the_end(&sim, &started, &twice));
        report.expect_finished();
        assert!(started.get() > 0, "workers are started");
        assert_eq!(twice.get(), 0, "threads on a slot that is taken");
    });
}

fn wider_at_the_end(sim: &Sim, started: &Count, twice: &Count) {
    let there = Arc::new(Mutex::new(BTreeSet::new()));
    let (left, starts, notice) = (there.clone(), started.clone(), twice.clone());
    sim.set_quota(Quota::new(10_000, 100_000));
    let builder = Builder::with_platform(sim.clone()).reserve(0);
    let js = builder
        .max_jobs(64)
        .max_threads(4)
        .on_thread_start(move |slot| {
            starts.up();
            if !there.lock().expect("no panics inside").insert(slot) {
                notice.up();
            }
        })
        .on_thread_stop(move |slot| _ = left.lock().expect("no panics inside").remove(&slot));
    let js = js.build().expect("threads can be started");
    assert!(js.workers() < 4, "{} workers", js.workers());
    sim.set_quota(None);
    // A look at the machine is due once a second.
    sim.charge(Nanos::from_millis(1_010));
    js.flush();
    drop(js);
}
