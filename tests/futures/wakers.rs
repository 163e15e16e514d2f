//! Wakers, called by any thread at any time.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Wake;
use std::thread;

use super::*;
use crate::support::ledger::Ledger;

/// Goal: a future of another thread, as a timer of a runtime is one, is polled when that thread wakes it;
/// meanwhile its job holds no thread.
#[test]
fn a_thread_wakes_a_future() {
    each_system("a thread wakes a future", |js| {
        for _ in 0..if cfg!(miri) { 3 } else { 100 } {
            let signal = Signal::new();
            let doubled = js.spawn_future("double", {
                let signal = signal.clone();
                async move { 2 * signal.taken().await }
            });
            js.flush();
            js.wait(js.schedule(|_| ())); // The only worker is free.
            thread::scope(|threads| {
                threads.spawn(|| signal.give(21));
                assert_eq!(doubled.wait(), 42);
            });
        }
    });
}

/// Goal: a wake-up inside of the poll is followed by one more poll, and by one only however many they are.
/// Method: a future that wakes itself, once or three times a poll; polls and jobs are counted.
#[test]
fn a_future_wakes_itself() {
    each_system("a future wakes itself", |js| {
        for wake_ups in [1, 3] {
            let (polls, mut left) = (Arc::new(AtomicU32::new(0)), 10);
            let counted = polls.clone();
            let before = js.stats().jobs;
            let job = js.spawn_future(
                "yields",
                poll_fn(move |task| {
                    counted.fetch_add(1, Relaxed);
                    if left == 0 {
                        return Poll::Ready(());
                    }
                    left -= 1;
                    (0..wake_ups).for_each(|_| task.waker().wake_by_ref());
                    Poll::Pending
                }),
            );
            job.wait();
            assert_eq!(polls.load(Relaxed), 11);
            assert_eq!(js.stats().jobs - before, 11, "a poll counts as a job");
        }
    });
}

/// Goal: a waker does nothing after the end of its future, nor after that of the job system, although the
/// slot of the job is used again. Method: clones of wakers of futures that are over, called while other jobs
/// in the same slots wait for a gate.
#[test]
fn a_late_wake_up_changes_nothing() {
    for workers in 0..3 {
        watched(&format!("late wake-ups, {workers} workers"), || {
            let js = Builder::new().workers(workers).build().unwrap();
            let mut wakers = Vec::new();
            for round in 0..if cfg!(miri) { 3 } else { 50 } {
                let signal = Signal::new();
                let job = js.spawn_future("future", signal.clone().taken());
                js.flush();
                until(|| signal.waker().is_some());
                wakers.extend(signal.waker());
                signal.give(round);
                assert_eq!(job.wait(), round);
                let gate = js.event("gate");
                let held: Vec<_> = (0..4)
                    .map(|_| js.job("held").after(&gate).schedule(|_| ()))
                    .collect();
                wakers.iter().for_each(Waker::wake_by_ref);
                js.flush();
                assert!(held.iter().all(|&id| !js.is_done(id)));
                gate.complete();
                js.wait(js.combine(held));
            }
            let never = Signal::<()>::new();
            let pending = js.spawn_future("pending", never.clone().taken());
            js.flush();
            until(|| never.waker().is_some());
            wakers.extend(never.waker());
            drop(js);
            wakers.iter().for_each(Waker::wake_by_ref);
            assert!(pending.try_wait().is_err());
            wakers.into_iter().for_each(Waker::wake);
        });
    }
}

/// Goal: many threads may wake one future at the same time, and many futures one another. Method: rings of
/// futures that pass a number on; threads that wake all of them without a reason.
#[test]
fn many_threads_wake_many_futures() {
    each_system("many wake-ups", |js| {
        let (ring, rounds) = (8, if cfg!(miri) { 2 } else { 200 });
        let signals: Vec<_> = (0..ring).map(|_| Signal::new()).collect();
        let futures: Vec<_> = (0..ring)
            .map(|at| {
                let (here, next) = (signals[at].clone(), signals[(at + 1) % ring].clone());
                js.spawn_future("ring", async move {
                    for _ in 0..rounds {
                        let number: u32 = here.clone().taken().await;
                        next.give(number + 1);
                    }
                })
            })
            .collect();
        let all = js.combine(&futures);
        thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    while !js.is_done(all) {
                        for waker in signals.iter().filter_map(Signal::waker) {
                            waker.wake();
                        }
                        thread::yield_now();
                    }
                });
            }
            signals[0].give(0);
            js.wait(all);
        });
        let last = signals[0].0.lock().expect("nothing panics inside").0;
        assert_eq!(last, Some(ring as u32 * rounds as u32));
    });
}

/// Goal: the waker keeps nothing of the future or its captures. Method: a token that the future owns is gone
/// when the job is over, although a waker is left.
#[test]
fn a_waker_keeps_nothing() {
    each_system("a waker keeps nothing", |js| {
        let (ledger, signal) = (Arc::new(Ledger::default()), Signal::new());
        let (token, kept) = (ledger.token(), signal.clone());
        let job = js.spawn_future("future", async move {
            let _token = token;
            kept.taken().await
        });
        js.flush();
        until(|| signal.waker().is_some());
        let waker = signal.waker();
        signal.give(7);
        let id = job.id();
        assert_eq!(job.wait(), 7);
        assert!(js.is_done(id));
        ledger.check_each_dropped_once(1);
        drop(waker);
    });
}

/// Goal: a future may keep the last owner of its job system, and wake others while it ends. Method: a future
/// that owns it is dropped by a waker's wake-up, in another future's poll.
#[test]
fn futures_own_their_job_system() {
    for workers in 0..3 {
        watched(&format!("futures that own, {workers} workers"), || {
            let ledger = Arc::new(Ledger::default());
            let js = Arc::new(Builder::new().workers(workers).build().unwrap());
            let signal = Signal::new();
            let (owner, token) = (js.clone(), ledger.token());
            let here = signal.clone();
            let first = js.spawn_future("first", async move {
                let _token = token;
                here.taken().await;
                let inner = owner.spawn_future("inner", async { 7 });
                drop(owner);
                inner.outcome().await.is_ok()
            });
            js.flush();
            until(|| signal.waker().is_some());
            drop(js);
            signal.give(());
            // Without workers this thread runs it here.
            let ended = first.try_wait();
            assert!(
                matches!(ended, Ok(true) | Err(paceline::WaitError::ShutDown)),
                "{ended:?}"
            );
            until(|| ledger.kept() == 0);
            ledger.check_each_dropped_once(1);
        });
    }
}

/// A waker of another executor: it counts.
struct CountingWaker(AtomicU32);

impl Wake for CountingWaker {
    fn wake(self: Arc<CountingWaker>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Goal: the value of a future may be awaited by another executor, whose waker is called once. Method: a
/// waker that counts.
#[test]
fn another_executor_awaits_a_future() {
    each_system("another executor", |js| {
        let signal = Signal::new();
        let mut job = js.spawn_future("future", signal.clone().taken());
        let counting = Arc::new(CountingWaker(AtomicU32::new(0)));
        let waker = Waker::from(counting.clone());
        let mut task = std::task::Context::from_waker(&waker);
        let mut poll = || std::pin::Pin::new(&mut job).poll(&mut task);
        assert!(poll().is_pending());
        signal.give(7);
        while js.workers() == 0 && js.poll() {}
        until(|| counting.0.load(Relaxed) == 1);
        assert_eq!(poll(), Poll::Ready(7));
        assert_eq!(counting.0.load(Relaxed), 1);
    });
}
