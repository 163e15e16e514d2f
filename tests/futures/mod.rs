//! Goal: a future runs as jobs. It is polled after each wake-up, whatever calls the waker and whenever; its
//! value, its panic or the end of the job system reaches its handle; and it is dropped once. Ends of jobs can
//! be awaited, by any executor.
//!
//! Method: random programs of futures on simulated threads under random orders of steps, where a lost wake-up
//! is a deadlock (`programs`); wakers in wrong hands (`wakers`); how futures end (`ends`); handles, outcomes
//! and ids on a hand-written executor (`awaited`). Nothing here is of another crate.

mod awaited;
mod ends;
mod programs;
mod wakers;

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use paceline::{Builder, JobSystem};

use crate::support::watched;

/// A value that a future waits for, and the waker of its last poll.
struct Signal<T>(Arc<Mutex<(Option<T>, Option<Waker>)>>);

impl<T> Clone for Signal<T> {
    fn clone(&self) -> Self {
        Signal(self.0.clone())
    }
}

impl<T> Signal<T> {
    fn new() -> Signal<T> {
        Signal(Arc::new(Mutex::new((None, None))))
    }

    /// Gives the value, and calls the waker if the future has been polled.
    fn give(&self, value: T) {
        let waker = {
            let mut inside = self.0.lock().expect("nothing panics inside");
            inside.0 = Some(value);
            inside.1.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// The waker of the last poll, left there.
    fn waker(&self) -> Option<Waker> {
        self.0.lock().expect("nothing panics inside").1.clone()
    }

    async fn taken(self) -> T {
        poll_fn(|task| {
            let mut inside = self.0.lock().expect("nothing panics inside");
            match inside.0.take() {
                Some(value) => Poll::Ready(value),
                None => {
                    inside.1 = Some(task.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// Pending this many times, each of which wakes itself.
fn yields(times: u32) -> impl Future<Output = ()> + Send {
    let mut left = times;
    poll_fn(move |task| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        task.waker().wake_by_ref();
        Poll::Pending
    })
}

/// With no workers to two.
fn each_system(what: &str, check: impl Fn(&JobSystem)) {
    for workers in 0..3 {
        watched(&format!("{what}, {workers} workers"), || {
            let js = Builder::new().workers(workers).max_jobs(1 << 10);
            check(&js.build().expect("threads can be started"));
        });
    }
}

fn until(flag: impl Fn() -> bool) {
    while !flag() {
        std::thread::yield_now();
    }
}
