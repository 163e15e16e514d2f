//! Goal: a job that is pinned to a thread runs there, once, after what it depends on, whatever else goes on;
//! its thread comes for it in all of its waits, and is woken for it; and of those that are left when the
//! thread leaves, everybody hears.
//!
//! Method: random programs of jobs of all kinds on simulated threads under random orders of steps, of which
//! some are pinned to the main thread, some to a second one that waits for the end, and the rest to none.
//! Each body notes its thread. And single cases, with the texts word for word.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use event::Nanos;
use paceline::{
    Builder, CancelToken, Context, Grain, Job, JobId, JobSystem, Lane, ScheduleError, ThreadPin,
    WaitError,
};
use platform::{Platform, Thread, ThreadSpec};
use sim::Sim;

use crate::support::{Random, delays, each_seed};

/// A job of a random program.
struct Planned {
    after: Vec<usize>,
    /// The number of its thread, if it has one.
    home: Option<usize>,
    kind: usize,
    lane: Option<Lane>,
    /// A job that it waits for in its middle.
    waits_for: Option<usize>,
}

const FUTURE: usize = 2;

fn plan(random: &mut Random) -> Vec<Planned> {
    let mut jobs = Vec::new();
    for number in 0..4 + random.below(24) {
        jobs.push(Planned {
            after: (0..random.below(3).min(number))
                .map(|_| random.below(number))
                .collect(),
            home: random.chance(50).then(|| random.below(2)),
            kind: random.below(3),
            lane: random
                .chance(20)
                .then(|| *random.pick(&[Lane::Frame, Lane::Normal, Lane::Background])),
            waits_for: (number > 0 && random.chance(15)).then(|| random.below(number)),
        });
    }
    jobs
}

/// A future that is pending once, and wakes itself.
async fn once_pending() {
    let mut is_first = true;
    std::future::poll_fn(|cx| {
        cx.waker().wake_by_ref();
        if std::mem::replace(&mut is_first, false) {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })
    .await;
}

#[test]
fn a_pinned_job_runs_on_its_thread() {
    each_seed("pinned::a_pinned_job_runs_on_its_thread", 1500, |seed| {
        let mut random = Random::new(seed ^ 0x9133_ed00);
        let workers = random.below(4);
        let planned = plan(&mut random);
        let report = Sim::run(delays(seed), move |sim| {
            let js = Builder::with_platform(sim.clone()).workers(workers);
            let js = Arc::new(js.build().unwrap());
            run_and_check(&sim, &js, &planned, &mut random);
        });
        report.expect_finished();
    });
}

/// A second thread that takes jobs, and is told when to end.
struct SecondThread {
    thread: <Sim as Platform>::Thread,
    closing: paceline::Event,
    pin: ThreadPin,
    slot: usize,
}

fn second_thread(sim: &Sim, js: &Arc<JobSystem<Sim>>) -> SecondThread {
    let closing = js.event("closing");
    let (end, (tell, told)) = (closing.id(), channel());
    let there = js.event("there");
    let (is_there, inner) = (there.id(), js.clone());
    let body = Box::new(move || {
        let here = inner.pinned_thread();
        let slot = inner.enter(|cx| cx.worker());
        tell.send((here.pin(), slot)).unwrap();
        there.complete();
        inner.wait(end);
    });
    let thread = sim.spawn(ThreadSpec::default(), body).unwrap();
    js.wait(is_there);
    let (pin, slot) = told.recv().unwrap();
    SecondThread {
        thread,
        closing,
        pin,
        slot,
    }
}

fn run_and_check(sim: &Sim, js: &Arc<JobSystem<Sim>>, planned: &[Planned], random: &mut Random) {
    let second = second_thread(sim, js);
    let main = js.pinned_thread();
    let pins = [main.pin(), second.pin];
    let slots = [js.enter(|cx| cx.worker()), second.slot];
    let ran: Arc<Vec<AtomicUsize>> =
        Arc::new(planned.iter().map(|_| AtomicUsize::new(0)).collect());
    let mut ids: Vec<JobId> = Vec::new();
    let mut handles: Vec<Job<usize>> = Vec::new();
    for (number, job) in planned.iter().enumerate() {
        let after: Vec<JobId> = job.after.iter().map(|&pred| ids[pred]).collect();
        let mut new = js.job("job").after_all(&after);
        if let Some(home) = job.home {
            new = new.pinned_to(pins[home]);
        }
        if let Some(lane) = job.lane {
            new = new.lane(lane);
        }
        let slot = job.home.map(|home| slots[home]);
        let (ran, before) = (ran.clone(), job.after.clone());
        let note = move |worker: usize| {
            assert!(before.iter().all(|&pred| ran[pred].load(Relaxed) == 1));
            assert!(slot.is_none_or(|slot| slot == worker), "on another thread");
            ran[number].fetch_add(1, Relaxed);
        };
        let awaited = job.waits_for.map(|job| ids[job]);
        let body = move |cx: &Context<'_, Sim>| {
            if let Some(awaited) = awaited {
                cx.wait(awaited);
            }
            cx.work(Nanos::from_micros(10));
            note(cx.worker());
        };
        match job.kind {
            FUTURE => {
                let js = js.clone();
                let future = async move {
                    once_pending().await;
                    js.enter(|cx| body(cx));
                    number
                };
                handles.push(new.run_future(future));
                ids.push(handles.last().unwrap().id());
            }
            1 => {
                handles.push(new.run(move |cx| {
                    body(cx);
                    number
                }));
                ids.push(handles.last().unwrap().id());
            }
            _ => ids.push(new.schedule(body)),
        }
        if random.chance(10) {
            main.run_jobs();
        }
    }
    random.shuffle(&mut ids);
    for id in ids {
        js.wait(id);
    }
    for handle in handles {
        handle.wait();
    }
    assert!(ran.iter().all(|ran| ran.load(Relaxed) == 1));
    assert_eq!(main.run_jobs(), 0);
    second.closing.complete();
    second.thread.join().unwrap();
}

/// Starts a thread of the program's that goes on with `js`.
fn thread(sim: &Sim, body: impl FnOnce() + Send + 'static) -> <Sim as Platform>::Thread {
    sim.spawn(ThreadSpec::default(), Box::new(body)).unwrap()
}

/// Goal: a thread that sleeps in a wait is woken for its job, in each kind of wait. Method: another thread
/// makes the job ready when all others have come to a rest; the waits are for something that it completes
/// later.
#[test]
fn a_sleeping_thread_is_woken_for_its_job() {
    for workers in [0, 2] {
        for kind in 0..3 {
            for seed in 0..8 {
                let report = Sim::run(delays(seed), move |sim| {
                    let js = Builder::with_platform(sim.clone()).workers(workers);
                    let js = Arc::new(js.build().unwrap());
                    let main = js.pinned_thread();
                    let (pin, end) = (main.pin(), js.event("end"));
                    let (end_id, inner, clock) = (end.id(), js.clone(), sim.clone());
                    let other = thread(&sim, move || {
                        clock.sleep_until(clock.time() + Nanos::from_millis(50));
                        let job = inner.job("title").pinned_to(pin);
                        let job = job.schedule(|cx| cx.work(Nanos::from_micros(10)));
                        // It runs nothing of the job, and blocks until the other thread has run it.
                        inner.wait(job);
                        end.complete();
                    });
                    match kind {
                        0 => js.wait(end_id),
                        1 => js.scope(|s| _ = s.job("waits").after(end_id).schedule(|_| ())),
                        _ => while !js.wait_timeout(end_id, Duration::from_millis(1)).unwrap() {},
                    }
                    other.join().unwrap();
                });
                report.expect_finished();
            }
        }
    }
}

fn plain(error: &WaitError) -> String {
    let text = error.to_string();
    let words = text
        .split_whitespace()
        .filter(|word| !word.contains(".rs:"));
    words.collect::<Vec<_>>().join(" ").replace(" at ", " ")
}

/// Goal: jobs that are left when their thread leaves are called off, and all that depends on them says so;
/// bodies are dropped. It is all the same whether they were ready, and whether the thread drops its guard or
/// ends with a guard that it has forgotten. Method: each of these.
#[test]
fn jobs_of_a_thread_that_has_left_are_called_off() {
    for forgets in [false, true] {
        let js = Arc::new(JobSystem::new());
        let gate = js.event("gate");
        let (owned, inner, open) = (Arc::new(()), js.clone(), gate.id());
        let kept = owned.clone();
        let left = std::thread::spawn(move || {
            let here = inner.pinned_thread();
            let [first, second] = [kept.clone(), kept];
            let new = |name| inner.job(name).pinned_to(here.pin());
            let ready = new("ready").schedule(move |_| drop(first));
            let later = new("later").after(open).schedule(move |_| drop(second));
            if forgets {
                std::mem::forget(here);
            }
            (ready, later)
        });
        let (ready, later) = left.join().unwrap();
        let after = js.job("after").after(later).schedule(|_| ());
        gate.complete();
        let errors = [ready, later, after].map(|job| plain(&js.try_wait(job).unwrap_err()));
        assert_eq!(errors[0], "job 'ready' was called off");
        assert_eq!(errors[1], "job 'later' was called off");
        assert_eq!(
            errors[2],
            "job 'after' was cancelled, because job 'later' was called off"
        );
        assert_eq!(Arc::strong_count(&owned), 1);
    }
}

/// Goal: no thread gets the jobs of one that had its thread slot before. Method: threads one after the other
/// that leave jobs behind.
#[test]
fn nobody_inherits_jobs() {
    let js = Arc::new(Builder::new().workers(1).build().unwrap());
    let mut pins = Vec::new();
    for _ in 0..4 {
        let inner = js.clone();
        let thread = std::thread::spawn(move || {
            let here = inner.pinned_thread();
            assert_eq!(here.run_jobs(), 0);
            let pin = here.pin();
            inner
                .job("left")
                .pinned_to(pin)
                .schedule(|_| unreachable!());
            std::mem::forget(here);
            pin
        });
        pins.push(thread.join().unwrap());
    }
    pins.dedup();
    assert_eq!(pins.len(), 4, "numbers are not used again");
    for pin in pins {
        let refused = js.job("late").pinned_to(pin).try_schedule(|_| ());
        assert_eq!(refused, Err(ScheduleError::NoSuchThread));
    }
}

/// Goal: what cannot be pinned is refused, with the reason, and nothing of it is left. Method: a loop; a
/// thread that has left; one of another job system.
#[test]
fn what_cannot_be_pinned_is_refused() {
    let (js, other) = (JobSystem::new(), JobSystem::new());
    let owned = Arc::new(());
    let (main, foreign) = (js.pinned_thread(), other.pinned_thread());
    let left = {
        let gone = std::thread::scope(|threads| {
            let thread = threads.spawn(|| js.pinned_thread().pin());
            thread.join().unwrap()
        });
        let kept = owned.clone();
        js.job("left")
            .pinned_to(gone)
            .try_schedule(move |_| drop(kept))
    };
    let kept = owned.clone();
    let elsewhere = js
        .job("elsewhere")
        .pinned_to(foreign.pin())
        .try_schedule(move |_| drop(kept));
    let kept = owned.clone();
    let loop_ =
        js.job("loop")
            .pinned_to(main.pin())
            .try_schedule_for(0..10, Grain::Auto, move |_, _| _ = &kept);
    for refused in [&left, &elsewhere] {
        assert_eq!(*refused, Err(ScheduleError::NoSuchThread));
    }
    assert_eq!(loop_, Err(ScheduleError::PinnedLoop));
    let texts = [left, loop_].map(|refused| refused.unwrap_err().to_string());
    assert_eq!(
        texts,
        [
            "the thread that the job is pinned to has dropped its PinnedThread, or is of another job system",
            "a loop cannot be pinned to a thread; pin a job that goes through the items itself",
        ]
    );
    assert_eq!(Arc::strong_count(&owned), 1);
    assert!(js.report().jobs.is_empty());
}

/// Goal: of pinned jobs the most urgent one goes first, also one that was raised by a wait, and within a lane
/// the oldest. Method: jobs of all lanes, in an order that is none, while the thread does something else; one
/// of them is waited for by a frame job.
#[test]
fn urgent_jobs_go_first() {
    let js = Builder::new().workers(0).build().unwrap();
    let main = js.pinned_thread();
    let order = Arc::new(Mutex::new(Vec::new()));
    let make = |name: &'static str, lane| {
        let order = order.clone();
        let new = js.job(name).lane(lane).pinned_to(main.pin());
        new.schedule(move |_| order.lock().unwrap().push(name))
    };
    make("late", Lane::Background);
    make("tile", Lane::Share1);
    make("normal", Lane::Normal);
    let raised = make("raised", Lane::Background);
    make("frame", Lane::Frame);
    make("next", Lane::Normal);
    js.in_lane(Lane::Frame, || js.wait(raised));
    assert_eq!(*order.lock().unwrap(), ["raised"]);
    assert_eq!(main.run_jobs(), 5);
    assert_eq!(
        *order.lock().unwrap(),
        ["raised", "frame", "normal", "next", "tile", "late"]
    );
}

/// Goal: a call runs what was ready when it came, and no more. Method: a job that makes the next one.
#[test]
fn a_job_that_makes_the_next_one_does_not_keep_the_thread() {
    let js = JobSystem::new();
    let main = js.pinned_thread();
    fn again(cx: &Context<'_>, pin: ThreadPin, left: usize) {
        if left > 0 {
            let next = cx.job("again").pinned_to(pin);
            next.schedule(move |cx| again(cx, pin, left - 1));
        }
    }
    let pin = main.pin();
    js.enter(|cx| again(cx, pin, 10));
    for _ in 0..10 {
        assert_eq!(main.run_jobs(), 1);
    }
    assert_eq!(main.run_jobs(), 0);
}

/// Goal: the hook is called once for each job that becomes ready, a panic of it is counted and hurts nobody,
/// and it is dropped with the last guard. Method: jobs that are ready at once and later, from here and from
/// workers; a hook that panics.
#[test]
fn the_hook_is_called_for_each_ready_job() {
    let js = JobSystem::new();
    let (calls, owned) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
    let (count, kept) = (calls.clone(), owned.clone());
    let main = js.pinned_thread().on_ready(move || {
        let _kept = &kept;
        if count.fetch_add(1, Relaxed) % 2 == 0 {
            crate::support::fail("on purpose");
        }
    });
    let before = js.schedule(|_| ());
    let jobs: Vec<JobId> = (0..10)
        .map(|_| js.job("job").after(before).pinned_to(main.pin()))
        .map(|new| new.schedule(|_| ()))
        .collect();
    js.wait(js.combine(jobs));
    assert_eq!(calls.load(Relaxed), 10);
    assert_eq!(js.stats().hook_panics, 5);
    let again = js.pinned_thread();
    drop(main);
    assert_eq!(Arc::strong_count(&owned), 2, "it has another guard");
    drop(again);
    assert_eq!(Arc::strong_count(&owned), 1);
}

/// Goal: a job and its drop may panic, and its token may call it off. Method: each.
#[test]
fn pinned_jobs_fail_as_others_do() {
    struct Fails;
    impl Drop for Fails {
        fn drop(&mut self) {
            crate::support::fail("its drop");
        }
    }
    let js = JobSystem::new();
    let main = js.pinned_thread();
    let new = |name| js.job(name).pinned_to(main.pin());
    let panics = new("panics").schedule(|_| crate::support::fail("on purpose"));
    let drops = new("drops").run(|_| Fails);
    let closing = CancelToken::new();
    let called_off = new("called off").cancelled_by(&closing);
    let called_off = called_off.schedule(|_| unreachable!());
    closing.cancel();
    let fine = new("fine").schedule(|_| ());
    drop(drops);
    let error = js.try_wait(panics).unwrap_err();
    assert_eq!(plain(&error), "job 'panics' panicked: on purpose");
    js.wait(fine);
    let error = js.try_wait(called_off).unwrap_err();
    assert_eq!(plain(&error), "job 'called off' was called off");
}

/// Goal: the end of a job system runs what is pinned to its thread, drops what is pinned to others, and does
/// no harm to threads that are still there. Method: one of each; the other thread's guard outlives the job
/// system.
#[test]
fn the_end_runs_the_jobs_of_its_thread() {
    let js = Arc::new(JobSystem::new());
    let (inner, (tell, told), (go, gone)) = (js.clone(), channel(), channel::<()>());
    let there = std::thread::spawn(move || {
        let here = inner.pinned_thread();
        drop(inner);
        tell.send(here.pin()).unwrap();
        gone.recv().unwrap();
        assert_eq!(here.run_jobs(), 0);
        drop(here.on_ready(|| unreachable!()));
    });
    let (main, pin) = (js.pinned_thread(), told.recv().unwrap());
    let ran = Arc::new(AtomicBool::new(false));
    let runs = ran.clone();
    js.job("here")
        .pinned_to(main.pin())
        .schedule(move |_| runs.store(true, Relaxed));
    let left = js.job("there").pinned_to(pin).run(|_| unreachable!());
    drop(js);
    assert!(ran.load(Relaxed));
    let ended: Result<(), WaitError> = left.try_wait();
    assert!(matches!(ended, Err(WaitError::ShutDown)), "{ended:?}");
    go.send(()).unwrap();
    there.join().unwrap();
    drop(main);
}

/// Goal: a wait in the middle of a job runs what it needs of its thread's jobs, whatever leads to them, and
/// nothing else, which might wait for that job. Method: a job of this thread waits for a job that a worker
/// runs; that one waits, in its middle, in a scope, a loop or a job further on, for another job of this
/// thread. One that waits for the first one stands before it in the list.
#[test]
fn a_wait_inside_of_a_job_runs_what_it_needs() {
    for kind in 0..5 {
        for seed in 0..16 {
            let report = Sim::run(delays(seed), move |sim| {
                let js = Builder::with_platform(sim.clone()).workers(2);
                let js = js.build().unwrap();
                let main = js.pinned_thread();
                let pin = main.pin();
                let outer = js.job("outer").pinned_to(pin).schedule(move |cx| {
                    let needed = cx.event("go");
                    let inner = cx.job("inner").after(&needed).pinned_to(pin);
                    let inner = inner.schedule(|cx| cx.work(Nanos::from_micros(1)));
                    let middle = cx.job("middle").schedule(move |cx| {
                        cx.work(Nanos::from_micros(50));
                        needed.complete();
                        match kind {
                            0 => cx.wait(inner),
                            1 => cx.scope(|s| s.spawn(move |cx| cx.wait(inner))),
                            2 => cx.parallel_for(0..4, Grain::Items(1), |_, cx| cx.wait(inner)),
                            3 => cx.wait(cx.job("after").after(inner).schedule(|_| ())),
                            _ => {
                                let waits = cx.job("waits").schedule(move |cx| cx.wait(inner));
                                cx.wait(cx.combine([waits]));
                            }
                        }
                    });
                    cx.wait(middle);
                });
                let waits = js.job("waits for outer").pinned_to(pin);
                let waits = waits.schedule(move |cx| cx.wait(outer));
                js.wait(js.combine([outer, waits]));
            });
            report.expect_finished();
        }
    }
}

/// Goal: pinned jobs that wait for each other for ever are reported, as others are. Method: two of them, each
/// of which waits for the other in its middle.
#[test]
fn a_circle_of_pinned_jobs_is_reported() {
    let js = Arc::new(JobSystem::new());
    let main = js.pinned_thread();
    let pin = main.pin();
    let (tell, told) = channel::<JobId>();
    let first = js.job("first").pinned_to(pin).schedule(move |cx| {
        let me = told.recv().expect("it was sent before the wait");
        let second = cx.job("second").pinned_to(pin);
        cx.wait(second.schedule(move |cx| cx.wait(me)));
    });
    tell.send(first).unwrap();
    let error = js.try_wait(first).unwrap_err().to_string();
    assert!(error.contains("this wait can never end"), "{error}");
}

/// Goal: a report says for which thread a job is ready, and why that does not come. Method: the thread sleeps
/// in code of its own while a worker waits for its job; the texts without places.
#[test]
fn a_report_says_which_thread_has_to_come() {
    let report = Sim::run(delays(0), |sim| {
        let js = Builder::with_platform(sim.clone()).workers(1);
        let js = Arc::new(js.build().unwrap());
        let main = js.pinned_thread();
        let show = js.job("show").pinned_to(main.pin()).schedule(|_| ());
        let waits = js.job("waits").schedule(move |cx| cx.wait(show));
        sim.sleep_until(sim.time() + Nanos::from_millis(5));
        let text = js.report().to_string();
        let text: String = text
            .lines()
            .map(|line| format!("{}\n", line.trim()))
            .collect();
        assert!(text.contains("ready, for thread 'main' alone"), "{text}");
        assert!(
            text.contains(
                "which is ready for thread 'main' alone, and that is in code of the program: it neither \
                 waits nor runs its jobs"
            ),
            "{text}"
        );
        js.wait(waits);
    });
    report.expect_finished();
}
