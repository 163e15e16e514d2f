//! Goal: jobs and tokio wake each other, whichever thread they are on, and lose nothing.
//!
//! Method: both kinds of runtime and job systems with few workers. Tasks await jobs, jobs await timers and
//! each other; some fail, some are given up. Everything that was begun is counted at the end. A wake-up that
//! is lost is a test that does not end, so each has a limit of a minute.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use paceline::{Builder, JobSystem, WaitError};
use tokio::runtime::{self, Runtime};
use tokio::time::{sleep, timeout};

const MINUTE: Duration = Duration::from_secs(60);

/// Runs the test on each kind of runtime, with each number of workers.
fn on_each<F: Future<Output = ()>>(test: impl Fn(Arc<JobSystem>) -> F) {
    for threads in [0, 2] {
        for workers in [1, 3] {
            let js = Builder::new().workers(workers).build().unwrap();
            let test = test(Arc::new(js));
            let within = runtime_of(threads).block_on(async { timeout(MINUTE, test).await });
            within.unwrap_or_else(|_| panic!("{threads} threads, {workers} workers: it hangs"));
        }
    }
}

/// A runtime of the calling thread, or of so many others.
fn runtime_of(threads: usize) -> Runtime {
    let built = match threads {
        0 => runtime::Builder::new_current_thread().enable_time().build(),
        _ => {
            let mut builder = runtime::Builder::new_multi_thread();
            builder.worker_threads(threads).enable_time().build()
        }
    };
    built.expect("the system has room for it")
}

/// Goal: every task that awaits a job is woken once it has ended, with its value or its error. Method: 300
/// tasks at a time, every seventh job panics, every fifth comes after a timer.
#[test]
fn tasks_await_jobs() {
    on_each(|js| async move {
        let ran = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..300)
            .map(|number| {
                let (js, ran) = (js.clone(), ran.clone());
                tokio::spawn(async move {
                    if number % 5 == 0 {
                        sleep(Duration::from_millis(1)).await;
                    }
                    let job = js.job("job").run(move |_| {
                        ran.fetch_add(1, Relaxed);
                        if number % 7 == 0 {
                            // No message: the panics are on purpose.
                            std::panic::resume_unwind(Box::new("on purpose"));
                        }
                        number
                    });
                    job.outcome().await
                })
            })
            .collect();
        for (number, task) in tasks.into_iter().enumerate() {
            match task.await.expect("no task panics") {
                Ok(value) => assert_eq!((value, number % 7 == 0), (number, false)),
                Err(error) => {
                    assert!(matches!(error, WaitError::Panicked { .. }), "{error}");
                    assert_eq!(number % 7, 0);
                }
            }
        }
        assert_eq!(ran.load(Relaxed), 300);
    });
}

/// Goal: a future of the runtime's can be polled by workers, and its wake-ups reach them. Method: jobs that
/// await timers, tasks and jobs in turn.
#[test]
fn jobs_await_the_runtime() {
    on_each(|js| async move {
        let jobs: Vec<_> = (0..50)
            .map(|number| {
                let (pause, inner) = (sleep(Duration::from_millis(number % 3)), js.clone());
                let task = tokio::spawn(async move {
                    sleep(Duration::from_millis(1)).await;
                    number
                });
                js.spawn_future("job", async move {
                    pause.await;
                    let of_task = task.await.expect("it does not panic");
                    inner.job("inner").run(move |_| of_task * 2).await
                })
            })
            .collect();
        for (number, job) in jobs.into_iter().enumerate() {
            assert_eq!(job.await, 2 * number as u64);
        }
    });
}

/// Goal: a task that gives up leaves the job alone, and a later one finds its end. Method: waits with a limit
/// for jobs that an event holds back, which is completed when all have given up.
#[test]
fn a_task_may_give_up() {
    on_each(|js| async move {
        let gate = js.event("gate");
        let jobs: Vec<_> = (0..20)
            .map(|_| js.job("held").after(&gate).schedule(|_| ()))
            .collect();
        for &job in &jobs {
            let given_up = timeout(Duration::from_millis(1), js.when_done(job)).await;
            assert!(given_up.is_err(), "nothing has released it");
        }
        gate.complete();
        for job in jobs {
            js.when_done(job).await.expect("it ends");
        }
    });
}

/// Goal: a task that awaits what will never be is woken, and told why. Method: the event that a job waits for
/// is dropped, or the job system ends before it.
#[test]
fn what_will_never_be_wakes_tasks() {
    on_each(|js| async move {
        let event = js.event("dropped");
        let held = js.job("held").after(&event).run(|_| ());
        let task = tokio::spawn(held.outcome());
        tokio::task::yield_now().await;
        drop(event);
        let error = task.await.expect("the task does not panic").unwrap_err();
        assert!(matches!(error, WaitError::Cancelled { .. }), "{error}");

        let event = js.event("too late");
        let held = js.job("held").after(&event).run(|_| ());
        let task = tokio::spawn(held.outcome());
        tokio::task::yield_now().await;
        drop(js);
        let error = task.await.expect("the task does not panic").unwrap_err();
        assert!(matches!(error, WaitError::ShutDown), "{error}");
        drop(event);
    });
}
