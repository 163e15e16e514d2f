//! Pools on a job system with few jobs: alone in its process, since the first use decides.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use bevy_tasks::{TaskPool, use_job_system};
use paceline::{Builder, WaitRule};

const TASKS: usize = 20_000;

/// Goal: tasks run, once each, although the job table has room for few of them, and a waker that finds no
/// room does not panic. Method: many tasks at once in a table of 256, as a scope's and as their own. Each
/// waits for all wakers to be rung, by a thread of the program.
#[test]
fn tasks_for_which_there_is_no_room_run_later() {
    let builder = Builder::new().workers(2).max_jobs(256);
    let js = builder.wait_rule(WaitRule::Anything).build().unwrap();
    use_job_system(Arc::new(js)).unwrap();
    let pool = TaskPool::new();
    let is_open = AtomicBool::new(false);
    let wakers = Mutex::new(Vec::<Waker>::new());
    let waits = |number: usize| {
        let (is_open, wakers) = (&is_open, &wakers);
        poll_fn(move |cx| {
            // Wakers that are added before the gate opens are rung, as both are under the lock.
            let mut wakers = wakers.lock().unwrap();
            if is_open.load(Ordering::Relaxed) {
                return Poll::Ready(number);
            }
            wakers.push(cx.waker().clone());
            Poll::Pending
        })
    };
    let rings = || {
        while wakers.lock().unwrap().len() < TASKS {
            std::thread::yield_now();
        }
        let mut wakers = wakers.lock().unwrap();
        is_open.store(true, Ordering::Relaxed);
        let all = std::mem::take(&mut *wakers);
        drop(wakers);
        all.into_iter().for_each(Waker::wake);
    };
    let outputs = std::thread::scope(|threads| {
        threads.spawn(rings);
        pool.scope(|scope| (0..TASKS).for_each(|number| scope.spawn(waits(number))))
    });
    assert!(outputs.into_iter().eq(0..TASKS));
    let alone: Vec<_> = (0..TASKS)
        .map(|number| pool.spawn(async move { number }))
        .collect();
    let sum = futures_lite::future::block_on(async {
        let mut sum = 0;
        for task in alone {
            sum += task.await;
        }
        sum
    });
    assert_eq!(sum, TASKS * (TASKS - 1) / 2);
}
