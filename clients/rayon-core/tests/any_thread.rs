//! What threads of a program may do that are not threads of a pool, or are one of it at times.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rayon_core::{ThreadPool, ThreadPoolBuilder};

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap()
}

/// A pool whose first thread is the one that calls.
fn with_this_thread(threads: usize) -> ThreadPool {
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    builder.use_current_thread().build().unwrap()
}

/// On a thread of its own, since a thread cannot leave a pool.
fn on_a_thread(test: impl FnOnce() + Send) {
    std::thread::scope(|threads| threads.spawn(test).join().unwrap());
}

/// Goal: a pool's first thread, which is the program's, does its part while it waits for the others. Method:
/// a broadcast between jobs, of one thread and of three, and inside of a job.
#[test]
fn a_broadcast_reaches_the_thread_that_calls_it() {
    for threads in [1, 3] {
        on_a_thread(|| {
            let pool = with_this_thread(threads);
            let all: Vec<usize> = (0..threads).collect();
            assert_eq!(pool.broadcast(|of| of.index()), all);
            assert_eq!(pool.install(|| pool.broadcast(|of| of.index())), all);
        });
    }
}

/// Goal: the same in the middle of a job that runs on that thread. Method: broadcasts in the jobs of a scope,
/// one and four at a time, and in both halves of a join.
#[test]
fn a_broadcast_in_a_job_reaches_its_own_thread() {
    for threads in [1, 2] {
        on_a_thread(|| {
            let pool = with_this_thread(threads);
            let call = || assert_eq!(pool.broadcast(|of| of.index()).len(), threads);
            for _ in 0..100 {
                pool.scope(|scope| scope.spawn(|_| call()));
                pool.scope(|scope| (0..4).for_each(|_| scope.spawn(|_| call())));
                pool.join(call, call);
            }
        });
    }
}

/// Calls `f` further down the stack, by so many kilobytes.
#[inline(never)]
fn further_down(kilobytes: usize, f: &mut dyn FnMut()) {
    let frame = [1_u8; 1024];
    std::hint::black_box(&frame);
    match kilobytes {
        0 => f(),
        left => further_down(left - 1, f),
    }
    std::hint::black_box(&frame);
}

/// Goal: what another pool was handed borrows from the caller, so a call ends when that has ended, however
/// little stack the caller has left. Method: calls of another pool by a pool's own first thread, where the
/// job system refuses its waits; what they run says whether the call was still there.
#[test]
fn calls_with_little_stack_wait_to_the_end() {
    let other = pool(1);
    let test = || {
        let mine = with_this_thread(1);
        mine.install(|| {
            further_down(420, &mut || {
                let (began, ended) = (Barrier::new(2), AtomicUsize::new(0));
                let slowly = || {
                    began.wait();
                    std::thread::sleep(Duration::from_millis(20));
                    ended.fetch_add(1, Ordering::SeqCst);
                };
                std::thread::scope(|threads| {
                    threads.spawn(|| (0..3).for_each(|_| _ = began.wait()));
                    other.install(slowly);
                    assert_eq!(ended.load(Ordering::SeqCst), 1);
                    other.broadcast(|_| slowly());
                    assert_eq!(ended.load(Ordering::SeqCst), 2);
                    other.in_place_scope(|scope| scope.spawn(|_| slowly()));
                    assert_eq!(ended.load(Ordering::SeqCst), 3);
                });
            });
        });
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10);
    std::thread::scope(|threads| {
        let thread = thread.spawn_scoped(threads, test).unwrap();
        thread.join().unwrap();
    });
}

/// Goal: what another pool asks of such a thread is done while it waits for that pool. Method: from a pool
/// back to its own, as a call, as a spawned job and to all.
#[test]
fn a_thread_that_waits_for_another_pool_works_for_its_own() {
    for threads in [1, 2] {
        on_a_thread(|| {
            let (mine, other) = (with_this_thread(threads), pool(2));
            for _ in 0..20 {
                assert_eq!(other.install(|| mine.install(|| 5)), 5);
                let count = other.install(|| mine.broadcast(|_| ()).len());
                assert_eq!(count, threads);
                other.install(|| mine.scope(|scope| scope.spawn(|_| ())));
            }
        });
    }
}

/// Goal: threads that have called a pool and live on do not use it up. Method: more than a job system has
/// room for by default, all alive at the end.
#[test]
fn three_hundred_threads_call() {
    let pool = pool(2);
    let all = Barrier::new(300);
    std::thread::scope(|threads| {
        for _ in 0..300 {
            threads.spawn(|| {
                let both = pool.join(|| 1, || 2);
                all.wait();
                assert_eq!(both, (1, 2));
            });
        }
    });
}

fn nested(depth: u32) -> u32 {
    if depth == 0 {
        return 0;
    }
    let mut below = 0;
    rayon_core::scope(|scope| scope.spawn(|_| below = nested(depth - 1)));
    below + 1
}

/// Goal: scopes nest as deep as on rayon's own threads, whose stacks are smaller. Method: 5000 scopes
/// with one thread and with two; without optimizations they take more of the stack on either, and fewer do.
#[test]
fn scopes_nest() {
    let depth = if cfg!(debug_assertions) { 1_000 } else { 5_000 };
    for threads in [1, 2] {
        assert_eq!(pool(threads).install(|| nested(depth)), depth);
    }
}

/// Goal: scopes that are nested too deep for all threads of a pool end in a panic that says so, and the pool
/// goes on; they waited for ever. Method: a hundred thousand scopes on threads with small stacks, with one
/// thread and with two, twice; then a few.
#[test]
fn scopes_nested_too_deep_panic() {
    for threads in [1, 2] {
        let pool = ThreadPoolBuilder::new();
        let pool = pool.num_threads(threads).stack_size(512 << 10).build();
        let pool = pool.expect("it can be made");
        for _ in 0..2 {
            let deep = || pool.install(|| nested(100_000));
            let panic = catch_unwind(AssertUnwindSafe(deep)).expect_err("there is no such stack");
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
            assert!(said.is_some_and(|text| text.contains("stack")), "{said:?}");
        }
        assert_eq!(pool.install(|| nested(20)), 20);
    }
}
