//! Programs that hang, each in its way, and some that do not.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{self, Poll, Waker};
use std::time::Duration;

use event::{Event, Nanos, Sink};
use paceline::{
    Activity, Builder, Grain, Job, JobId, JobKind, JobState, JobSystem, LiveThreadKind, Report,
};
use platform::Thread;

use super::{Site, plain, without_places};

/// Longer than any of these programs.
const LONG: Duration = Duration::from_secs(1_000);

/// Goal: a wait for something that depends on an event says so, with names, lines, and how long it has
/// waited. Method: the whole text; then the facts one by one.
#[test]
fn a_program_that_waits_for_an_event() {
    Site::run(
        |builder| builder.workers(1),
        |site| {
            let loaded = site.js.event("loaded");
            let made_at = line!() + 1;
            let draw = site.js.job("draw").after(&loaded).schedule(|_| ());
            let called_at = line!() + 1;
            let game = site.thread("game", move |js| js.wait(draw));
            site.sleep(5_200);
            let report = site.js.report();
            let wait = "thread 'game' waits 5.2 s for 'draw'";
            assert_eq!(
                plain(&report),
                format!(
                    "{wait}, which waits for event 'loaded', which is not completed\n\
                     2 jobs live:\n  \
                       'loaded': event, not completed\n  \
                       'draw': waits for 'loaded'\n\
                     threads (workers wanted: 1):\n  \
                       {wait}\n  \
                       1 worker sleeps\n  \
                       1 outside thread is in code of the program\n\
                     queues: empty"
                )
            );
            let (thread, wait) = report.waits().next().expect("a thread waits");
            assert_eq!(thread.kind, LiveThreadKind::Outside);
            assert_eq!(wait.job.id, draw);
            assert_eq!(wait.job.label.site.line(), made_at);
            assert_eq!(wait.site.expect("it was called here").line(), called_at);
            assert!(wait.job.label.site.file().ends_with("report/situations.rs"));
            assert_eq!(wait.time_left, None);
            assert_eq!(report.changing, 0);
            loaded.complete();
            game.join().unwrap();
            let verdict = ["nothing is stuck: no job is live, and no thread waits"];
            assert_eq!(site.js.report().verdict, verdict);
        },
    );
}

/// Goal: an event that nothing waits for by a thread is named all the same. Method: jobs behind two events,
/// no waits.
#[test]
fn a_program_that_has_forgotten_an_event() {
    Site::run(
        |builder| builder.workers(1),
        |site| {
            let events = ["loaded", "shown"].map(|name| site.js.event(name));
            let jobs = events
                .each_ref()
                .map(|event| site.js.job("use").after(event).schedule(|_| ()));
            let verdict = &site.js.report().verdict;
            assert_eq!(verdict.len(), 1);
            let said = without_places(&verdict[0]);
            let told = "no job runs and none is ready; event 'loaded' is not completed, nor is 1 more event";
            assert_eq!(said, told);
            for (event, job) in events.into_iter().zip(jobs) {
                event.complete();
                site.js.wait(job);
            }
        },
    );
}

/// What the future of the next test shares with the program.
#[derive(Default)]
struct Reply {
    waker: Option<Waker>,
    /// A job that it awaits, as long as it is not there itself.
    draw: Option<Job<()>>,
    is_there: bool,
}

impl Reply {
    fn poll(&mut self, task: &mut task::Context<'_>) -> Poll<()> {
        self.waker = Some(task.waker().clone());
        if self.is_there {
            return Poll::Ready(());
        }
        if let Some(draw) = &mut self.draw {
            assert!(Pin::new(draw).poll(task).is_pending());
        }
        Poll::Pending
    }

    /// The waker of the last poll. It is called when the lock is free again: to wake is a step of the
    /// simulated machine, behind which another thread may want the lock.
    fn waker(&mut self) -> task::Waker {
        self.waker.take().expect("it was polled")
    }
}

/// Goal: a future that nothing wakes is told as what holds the program up, with what it awaits; and a circle
/// through it is not told as one that never ends, since the future may leave it. Method: a future that is
/// woken by hand; then it awaits a job that comes after it.
#[test]
fn a_future_that_is_not_woken() {
    Site::run(
        |builder| builder.workers(1),
        |site| {
            let state = Arc::<Mutex<Reply>>::default();
            let shared = state.clone();
            let poll = move |task: &mut task::Context<'_>| shared.lock().unwrap().poll(task);
            let reply = site.js.spawn_future("reply", poll_fn(poll));
            let id = reply.id();
            let game = site.thread("game", move |js| js.wait(id));
            site.sleep(2_000);
            let report = site.js.report();
            let wait = "thread 'game' waits 2.0 s for future 'reply', which has not been woken";
            let text = plain(&report);
            let told = format!("{wait}\n1 job live:\n  'reply': future, not woken\n");
            assert!(text.starts_with(&told), "{text}");
            assert_eq!(report.jobs[0].kind, JobKind::Future);
            assert!(report.jobs[0].is_pending);

            let draw = site.js.job("draw").after(id).run(|_| ());
            state.lock().unwrap().draw = Some(draw);
            let waker = state.lock().unwrap().waker();
            waker.wake();
            site.sleep(2_000);
            let text = plain(&site.js.report());
            let wait = "thread 'game' waits 4.0 s for future 'reply', which has not been woken, \
                        and awaits 'draw'";
            assert!(
                text.starts_with(&format!("{wait}\n2 jobs live:\n")),
                "{text}"
            );
            for job in [
                "'reply': future, not woken, and awaits 'draw'",
                "'draw': waits for 'reply'",
            ] {
                assert!(text.contains(&format!("\n  {job}\n")), "{text}");
            }
            state.lock().unwrap().is_there = true;
            let waker = state.lock().unwrap().waker();
            waker.wake();
            game.join().unwrap();
            state
                .lock()
                .unwrap()
                .draw
                .take()
                .expect("it is kept")
                .wait();
            assert!(site.js.report().jobs.is_empty());
        },
    );
}

/// Two jobs that wait for each other, each on a worker of its own, until their time is up.
fn wait_for_each_other(site: &Site) -> [JobId; 2] {
    let ids: Arc<OnceLock<[JobId; 2]>> = Arc::default();
    let begun = Arc::<AtomicU32>::default();
    let gate = site.js.event("gate");
    let jobs = [0, 1].map(|me| {
        let (ids, begun) = (ids.clone(), begun.clone());
        let job = site.js.job(["physics", "audio"][me]).after(&gate);
        job.schedule(move |cx| {
            begun.fetch_add(1, Relaxed);
            while begun.load(Relaxed) < 2 {
                cx.work(Nanos::from_micros(10));
            }
            let other = ids.get().expect("they are set before the gate opens")[1 - me];
            assert!(!cx.wait_timeout(other, Duration::from_secs(60)).unwrap());
        })
    });
    ids.set(jobs).expect("they are set once");
    gate.complete();
    site.js.flush();
    jobs
}

/// Goal: waits that form a circle are told as a circle. Method: two jobs wait for each other, and a third
/// thread for one of them. (Their waits have timeouts: without, each is an error of its own.) Then a job that
/// waits for itself.
#[test]
fn a_program_that_waits_in_a_circle() {
    Site::run(
        |builder| builder.workers(2),
        |site| {
            let [physics, audio] = wait_for_each_other(&site);
            let game = site.thread("game", move |js| {
                assert!(!js.wait_timeout(physics, Duration::from_secs(30)).unwrap());
            });
            site.sleep(1_500);
            let report = site.js.report();
            let verdict = report.verdict.iter().map(|line| without_places(line));
            let verdict: Vec<String> = verdict.collect();
            let begin = "these waits end only when one of them gives up: ";
            let circles = [
                "'physics' waits for 'audio' waits for 'physics'",
                "'audio' waits for 'physics' waits for 'audio'",
            ];
            let told = circles
                .iter()
                .any(|circle| verdict[0] == format!("{begin}{circle}"));
            assert!(told, "{verdict:#?}");
            let line = verdict
                .iter()
                .find(|line| line.starts_with("thread 'game'"));
            let line = line.expect("its wait is told, too");
            // The other job's thread waits for it, too, and a little longer or shorter.
            let told = line.contains(" 1.5 s for 'physics', which waits on worker ");
            assert!(told && line.ends_with(" for 'physics' again"), "{line}");
            for job in &report.jobs {
                let other = if job.id == physics { audio } else { physics };
                assert!(job.has_deadline && job.waits_for.len() == 1, "{job:?}");
                assert_eq!(job.waits_for[0].id, other);
            }
            game.join().unwrap();
            site.sleep(60_000);
            let me: Arc<OnceLock<JobId>> = Arc::default();
            let own = me.clone();
            let gate = site.js.event("gate");
            let job = site.js.job("narcissus").after(&gate).schedule(move |cx| {
                let id = *own.get().expect("it is set before the gate opens");
                assert!(!cx.wait_timeout(id, Duration::from_secs(1)).unwrap());
            });
            me.set(job).expect("it is set once");
            gate.complete();
            site.sleep(500);
            let told = without_places(&site.js.report().verdict[0]);
            let end = "one of them gives up: 'narcissus' waits for itself";
            assert!(told.ends_with(end), "{told}");
            site.sleep(1_000);
        },
    );
}

/// Goal: where all workers wait inside jobs, the report says so and how much is left undone. Method: two
/// workers, no spares, two jobs that wait for an event, three that nothing waits for.
#[test]
fn a_program_whose_workers_are_all_blocked() {
    Site::run(
        |builder| builder.workers(2).max_spares(0).on_stuck(|_| ()),
        |site| {
            let gate = site.js.event("gate");
            let id = gate.id();
            let blocked = [0, 1].map(|_| site.js.job("blocks").schedule(move |cx| cx.wait(id)));
            site.js.flush();
            site.sleep(1);
            let left: Vec<JobId> = (0..3)
                .map(|_| site.js.job("left").schedule(|_| ()))
                .collect();
            site.sleep(1);
            let report = site.js.report();
            let told = "all 2 workers wait inside jobs while 3 jobs are ready";
            assert_eq!(report.verdict[0], told, "{report}");
            let text = plain(&report);
            assert!(text.contains("3 × 'left': ready"), "{text}");
            assert!(text.contains("queues: 3 tickets in inboxes"), "{text}");
            let workers = report.threads.iter();
            let workers = workers.filter(|thread| thread.kind == LiveThreadKind::Worker);
            for worker in workers {
                assert_eq!(worker.activity, Activity::Waits);
                assert!(blocked.contains(&worker.runs[0].id));
            }
            gate.complete();
            blocked
                .iter()
                .chain(&left)
                .for_each(|job| site.js.wait(*job));
        },
    );
}

/// Goal: a loop is shown with its participants, and with what they wait for if all of them do. Method: a loop
/// over two items, each of which asks for a report, and then waits for an event.
#[test]
fn a_loop_that_is_open() {
    Site::run(
        |builder| builder.workers(2),
        |site| {
            let gate = site.js.event("gate");
            let id = gate.id();
            let seen: Arc<Mutex<Vec<Report>>> = Arc::default();
            let noted = seen.clone();
            let range = site
                .js
                .job("loop")
                .schedule_for(0..2, Grain::Items(1), move |_, cx| {
                    cx.work(Nanos::from_micros(100));
                    // In this order: no lock is held while the job system takes steps.
                    let report = cx.report();
                    noted.lock().unwrap().push(report);
                    cx.wait(id);
                });
            site.js.flush();
            site.sleep(1_000);
            let report = site.js.report();
            let shared = report
                .jobs
                .iter()
                .find(|job| job.id == range)
                .expect("it is live");
            let JobState::Open { participants } = shared.state else {
                panic!("{report}");
            };
            assert_eq!(shared.kind, JobKind::Loop);
            assert!((1..=2).contains(&participants));
            assert_eq!(shared.waits_for.len(), participants, "{report}");
            assert!(shared.waits_for.iter().all(|job| job.id == id));
            let inside = report.threads.iter();
            let inside = inside.filter(|thread| thread.runs.iter().any(|job| job.id == range));
            assert_eq!(inside.count(), participants, "{report}");
            for report in seen.lock().unwrap().drain(..) {
                // The thread that asks is in the middle of the loop and does not wait.
                let shared = report
                    .jobs
                    .iter()
                    .find(|job| job.id == range)
                    .expect("it is live");
                assert!(shared.waits_for.is_empty(), "{report}");
                let runs = |line: &String| line.starts_with("nothing is stuck: 1 job runs");
                assert!(report.verdict.iter().any(runs), "{report}");
            }
            gate.complete();
            site.js.wait(range);
        },
    );
}

/// Goal: a scope waits for its jobs, and before that for its closure. Method: a report from the closure, and
/// one from beside when the closure has spawned a job that waits for an event, and has returned.
#[test]
fn a_scope_that_does_not_end() {
    Site::run(
        |builder| builder.workers(1),
        |site| {
            let gate = site.js.event("gate");
            let id = gate.id();
            let game = site.thread("game", move |js| {
                js.scope(|scope| {
                    let text = plain(&js.report());
                    assert!(
                        text.contains("'scope': scope, its closure has not returned"),
                        "{text}"
                    );
                    scope.spawn(move |cx| cx.wait(id));
                });
            });
            site.sleep(1_000);
            let report = site.js.report();
            let scope = report.jobs.iter().find(|job| job.kind == JobKind::Scope);
            let scope = scope.expect("it is open");
            let job = report.jobs.iter().find(|job| job.scope == Some(scope.id));
            let job = job.expect("it has a job");
            assert_eq!(scope.waits_for, [job.named()]);
            // The job may run on the worker, or inside of the wait for its scope.
            let text = without_places(&report.verdict.join("\n"));
            assert!(
                text.contains("for event 'gate', which is not completed"),
                "{text}"
            );
            gate.complete();
            game.join().unwrap();
        },
    );
}

/// Goal: the text of a report has an end, whatever there is. Method: ten thousand live jobs of forty names,
/// some in a chain, some equal, on the machine at hand.
#[test]
fn ten_thousand_jobs_fit_a_page() {
    const NAMES: [&str; 4] = ["cull", "skin", "pose", "step"];
    let js = Builder::new().workers(0).max_jobs(20_000).build().unwrap();
    let gate = js.event("gate");
    let mut last = gate.id();
    for _ in 0..1_000 {
        last = js.job("link").after(last).schedule(|_| ());
    }
    for number in 0..8_000 {
        js.job(NAMES[number % 4]).schedule(|_| ());
    }
    for _ in 0..999 {
        js.job("late").after(last).after(&gate).schedule(|_| ());
    }
    let report = js.report();
    assert_eq!(report.jobs.len(), 10_000);
    let text = plain(&report);
    assert!(text.lines().count() <= 40 && text.len() < 4_000, "{text}");
    assert!(text.contains("\n10000 jobs live:\n"), "{text}");
    assert!(text.contains("  2000 × 'pose': ready\n"), "{text}");
    assert!(
        text.contains("  999 × 'link': waits for 'link'\n"),
        "{text}"
    );
    assert!(
        text.contains("  999 × 'late': waits for 2 jobs: 'link' and 'gate'\n"),
        "{text}"
    );
    let queues = "queues: 3904 tickets in inboxes, 4096 tickets in the injector";
    assert!(text.ends_with(queues), "{text}");
    let wait = std::thread::scope(|threads| {
        threads.spawn(|| js.wait_timeout(last, LONG).unwrap());
        let wait = loop {
            let report = js.report();
            let waits = |line: &&String| line.contains("for 'link'");
            if let Some(line) = report.verdict.iter().find(waits) {
                break without_places(line);
            }
        };
        gate.complete();
        wait
    });
    let end = "for 'link', which waits for 'link', which waits for 'link', which waits for 'link', \
               which waits, through 996 more jobs, for event 'gate', which is not completed";
    assert!(wait.ends_with(end), "{wait}");
    js.flush();
}

/// Goal: a thread that gets no thread slot gets a report. Method: room for one outside thread, and a second
/// one asks.
#[test]
fn a_thread_without_a_slot_may_ask() {
    let js = Builder::new().workers(0).max_threads(1).build().unwrap();
    let gate = js.event("gate");
    let report = std::thread::scope(|threads| {
        let ask = threads.spawn(|| {
            assert!(js.job("refused").try_schedule(|_| ()).is_err());
            js.report()
        });
        ask.join().unwrap()
    });
    assert_eq!(report.jobs.len(), 1);
    assert_eq!(report.threads.len(), 1, "{report}");
    gate.complete();
}

/// Asks for a report at each event.
#[derive(Default)]
struct AskingSink {
    js: OnceLock<std::sync::Weak<JobSystem>>,
    has_asked: AtomicBool,
}

impl Sink for AskingSink {
    fn record(&self, _: &Event) {
        if let Some(js) = self.js.get().and_then(std::sync::Weak::upgrade) {
            assert!(!js.report().is_forked);
            self.has_asked.store(true, Relaxed);
        }
    }
}

/// Goal: a sink, whose other calls are refused, gets a report. Method: one that asks at each event.
#[test]
fn a_sink_may_ask() {
    let sink = Arc::<AskingSink>::default();
    let js = Builder::new()
        .workers(1)
        .sink(sink.clone())
        .build()
        .unwrap();
    let js = Arc::new(js);
    sink.js.set(Arc::downgrade(&js)).expect("it is set once");
    js.wait(js.job("job").schedule(|_| ()));
    assert!(sink.has_asked.load(Relaxed));
    assert_eq!(js.stats().hook_panics, 0);
}
