//! What Bevy's programs expect of pools and scopes, from outside.

use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use bevy_tasks::{
    AsyncComputeTaskPool, ComputeTaskPool, IoTaskPool, ParallelIterator, ParallelSlice,
    ParallelSliceMut, TaskPool, TaskPoolBuilder, ThreadExecutor, block_on, futures,
    tick_global_task_pools_on_main_thread,
};

/// A future that is not ready at its first poll.
async fn later() {
    futures_lite::future::yield_now().await;
}

/// Goal: outputs are in the order of the calls, whatever thread runs the futures, and futures may borrow.
/// Method: many that yield, of all three kinds in turn.
#[test]
fn outputs_are_in_order() {
    let pool = TaskPool::new();
    let numbers: Vec<usize> = (0..300).collect();
    let here = thread::current().id();
    let outputs = pool.scope(|scope| {
        for number in &numbers {
            let future = async move {
                later().await;
                (*number, thread::current().id())
            };
            match number % 3 {
                0 => scope.spawn(future),
                1 => scope.spawn_on_scope(future),
                _ => scope.spawn_on_external(future),
            }
        }
    });
    assert!(outputs.iter().map(|(number, _)| *number).eq(0..300));
    let elsewhere = outputs
        .iter()
        .filter(|(number, thread)| number % 3 != 0 && *thread != here);
    assert_eq!(elsewhere.count(), 0);
}

/// Goal: scopes inside of scopes end, and futures spawn futures. Method: three levels, each of which waits in
/// the middle of a future; a sum.
#[test]
fn scopes_in_scopes() {
    fn level(pool: &TaskPool, depth: usize) -> usize {
        if depth == 0 {
            return 1;
        }
        let outputs = pool.scope(|scope| {
            for _ in 0..4 {
                scope.spawn(async move {
                    later().await;
                    level(pool, depth - 1)
                });
            }
            scope.spawn(async move {
                scope.spawn(async move { level(pool, depth - 1) });
                level(pool, depth - 1)
            });
        });
        outputs.into_iter().sum()
    }
    assert_eq!(level(&TaskPool::new(), 4), 6_usize.pow(4));
}

/// Goal: a panic of a future comes out of its scope when the others have ended; one of the function ends
/// futures that would wait for ever. Method: both; what futures borrow counts how many hold it.
#[test]
fn panics_come_out() {
    let pool = TaskPool::new();
    let held = Arc::new(());
    let ran = AtomicUsize::new(0);
    let of_future = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|scope| {
            for number in 0..20 {
                let (held, ran) = (Arc::clone(&held), &ran);
                scope.spawn(async move {
                    later().await;
                    assert!(number != 7, "seven");
                    ran.fetch_add(1, Ordering::Relaxed);
                    drop(held);
                });
            }
        })
    }));
    let text = of_future
        .unwrap_err()
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    assert_eq!(text.as_deref(), Some("seven"));
    assert_eq!(
        (ran.load(Ordering::Relaxed), Arc::strong_count(&held)),
        (19, 1)
    );
    let of_call = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|scope| {
            let held = Arc::clone(&held);
            scope.spawn(async move {
                futures_lite::future::pending::<()>().await;
                drop(held);
            });
            panic!("call");
        })
    }));
    assert_eq!(of_call.unwrap_err().downcast_ref::<&str>(), Some(&"call"));
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Panics when it is dropped.
struct Fails;

impl Drop for Fails {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("drop");
        }
    }
}

/// Goal: what futures leave behind may panic when it is dropped, and the first panic comes out all the same.
/// Method: outputs and payloads that do, in a scope whose function panics, and in one of which futures do.
#[test]
fn drops_may_panic() {
    let pool = TaskPool::new();
    let message = |scope: Box<dyn std::any::Any + Send>| scope.downcast_ref::<&str>().copied();
    let of_call = catch_unwind(AssertUnwindSafe(|| {
        let outputs = pool.scope(|scope| {
            for _ in 0..8 {
                scope.spawn(async { Fails });
            }
            // Some are over by then.
            thread::sleep(Duration::from_millis(5));
            std::panic::resume_unwind(Box::new("call"));
        });
        std::mem::forget(outputs);
    }));
    assert_eq!(message(of_call.unwrap_err()), Some("call"));
    let of_futures = catch_unwind(AssertUnwindSafe(|| {
        let outputs = pool.scope(|scope| {
            scope.spawn(async { std::panic::resume_unwind(Box::new("first")) });
            for _ in 0..4 {
                scope.spawn(async { std::panic::resume_unwind(Box::new(Fails)) });
                scope.spawn(async { Fails });
            }
        });
        std::mem::forget(outputs);
    }));
    assert_eq!(message(of_futures.unwrap_err()), Some("first"));
}

/// Goal: a future for another thread's executor runs there, while that thread ticks it. Method: a scope on a
/// thread beside; the executor's thread ticks until it is told.
#[test]
fn futures_go_to_their_thread() {
    let executor = Arc::new(ThreadExecutor::new());
    let here = thread::current().id();
    let (say, hear) = mpsc::channel();
    let of_other = Arc::clone(&executor);
    let other = thread::spawn(move || {
        assert!(of_other.ticker().is_none());
        let pool = TaskPool::new();
        let outputs = pool.scope_with_executor(false, Some(&of_other), |scope| {
            for _ in 0..10 {
                scope.spawn_on_external(async { thread::current().id() });
                scope.spawn(async { thread::current().id() });
            }
        });
        say.send(outputs).unwrap();
    });
    let ticker = executor.ticker().expect("this thread made it");
    let outputs = loop {
        ticker.try_tick();
        if let Ok(outputs) = hear.try_recv() {
            break outputs;
        }
        thread::yield_now();
    };
    other.join().unwrap();
    assert!(outputs.iter().step_by(2).all(|thread| *thread == here));
}

/// Goal: a future of a pool runs without a wait for it; its output, its panic and its end by `cancel` are
/// those of a task. Method: each once, in all three pools.
#[test]
fn futures_run_by_themselves() {
    let pools: [&TaskPool; 3] = [
        ComputeTaskPool::get_or_init(TaskPool::default),
        AsyncComputeTaskPool::get_or_init(|| TaskPoolBuilder::new().num_threads(3).build()),
        IoTaskPool::get_or_init(TaskPool::new),
    ];
    for pool in pools {
        let (say, hear) = mpsc::channel();
        pool.spawn(async move {
            later().await;
            say.send(7).unwrap();
        })
        .detach();
        let told = hear.recv_timeout(Duration::from_secs(60));
        assert_eq!(told, Ok(7));
        assert_eq!(block_on(pool.spawn(async { 8 })), 8);
        let fails = pool.spawn(async { panic!("as planned") });
        assert!(catch_unwind(AssertUnwindSafe(|| block_on(fails))).is_err());
        let mut endless = pool.spawn(futures_lite::future::pending::<()>());
        assert_eq!(futures::check_ready(&mut endless), None);
        assert_eq!(block_on(endless.cancel()), None);
    }
    let ran = std::rc::Rc::new(std::cell::Cell::new(0));
    for pool in pools {
        let ran = ran.clone();
        pool.spawn_local(async move { ran.set(ran.get() + 1) })
            .detach();
    }
    tick_global_task_pools_on_main_thread();
    assert_eq!(ran.get(), 3);
}

/// Goal: pieces of slices and their outputs are those of `chunks`. Method: lengths about the size of a piece.
#[test]
fn slices_in_pieces() {
    let pool = TaskPool::new();
    for len in [0_usize, 1, 9, 10, 11, 100] {
        let numbers: Vec<usize> = (0..len).collect();
        let sums = numbers.par_chunk_map(&pool, 10, |at, piece| (at, piece.iter().sum::<usize>()));
        let expected = numbers.chunks(10).map(|piece| piece.iter().sum::<usize>());
        assert!(sums.into_iter().eq(expected.enumerate()));
        let mut doubled = numbers.clone();
        let lens = doubled.par_splat_map_mut(&pool, Some(2), |_, piece| {
            for number in piece.iter_mut() {
                *number *= 2;
            }
            piece.len()
        });
        assert_eq!(lens.into_iter().sum::<usize>(), len);
        assert!(
            doubled
                .iter()
                .zip(&numbers)
                .all(|(twice, once)| *twice == 2 * once)
        );
    }
}

/// Batches of numbers.
#[derive(Clone)]
struct Batches(Vec<Vec<i64>>);

impl ParallelIterator<std::vec::IntoIter<i64>> for Batches {
    fn next_batch(&mut self) -> Option<std::vec::IntoIter<i64>> {
        (!self.0.is_empty()).then(|| self.0.remove(0).into_iter())
    }
}

/// Goal: parallel iterators do what iterators do. Method: std's methods on the same numbers, with empty
/// batches among them.
#[test]
fn iterators_are_those_of_std() {
    let pool = &TaskPool::new();
    for batches in [
        vec![],
        vec![vec![]],
        vec![vec![3, -1, 4], vec![], vec![1, 5, -9, 2], vec![6]],
    ] {
        let flat = || batches.iter().flatten().copied();
        let made = || Batches(batches.clone());
        assert_eq!(made().count(pool), flat().count());
        assert_eq!(
            made().last(pool),
            batches.last().and_then(|batch| batch.last().copied())
        );
        assert_eq!(made().nth(pool, 4), flat().nth(4));
        assert_eq!(made().sum::<i64, i64>(pool), flat().sum());
        assert_eq!(made().product::<i64, i64>(pool), flat().product());
        assert_eq!(
            (made().min(pool), made().max(pool)),
            (flat().min(), flat().max())
        );
        let by = |number: &i64| number.abs();
        assert_eq!(made().max_by_key(pool, by), flat().max_by_key(by));
        assert_eq!(
            made().min_by(pool, |a, b| b.cmp(a)),
            flat().min_by(|a, b| b.cmp(a))
        );
        let is_five = |number: i64| number == 5;
        assert_eq!(made().position(pool, is_five), flat().position(is_five));
        assert_eq!(made().any(pool, is_five), flat().any(is_five));
        assert_eq!(made().all(pool, is_five), flat().all(is_five));
        let is_odd = |number: &i64| number % 2 != 0;
        let kept: Vec<i64> = made()
            .chain(made())
            .filter(is_odd)
            .map(|number| number * 2)
            .collect(pool);
        let expected: Vec<i64> = flat()
            .chain(flat())
            .filter(is_odd)
            .map(|number| number * 2)
            .collect();
        assert_eq!(kept, expected);
        let parts: (Vec<i64>, Vec<i64>) = made().partition(pool, is_odd);
        assert_eq!(parts, flat().partition::<Vec<i64>, _>(is_odd));
        let pairs: Vec<i64> = made().flat_map(|number| [number, 0]).fuse().collect(pool);
        assert_eq!(
            pairs,
            flat().flat_map(|number| [number, 0]).collect::<Vec<_>>()
        );
        let folded: i64 = made()
            .fold::<_, _, ()>(pool, 0, |sum, number| sum + number)
            .into_iter()
            .sum();
        assert_eq!(folded, flat().sum::<i64>());
        let seen = Mutex::new(Vec::new());
        made().for_each(pool, |number| seen.lock().unwrap().push(number));
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        let mut sorted: Vec<i64> = flat().collect();
        sorted.sort_unstable();
        assert_eq!(seen, sorted);
        let mut cycle = made().cycle();
        assert_eq!(cycle.next_batch().is_some(), !batches.is_empty());
    }
}

/// Goal: a task that blocks its worker for a future of the background does not hang, although the waiting
/// thread runs no such futures. Method: as many of them as there are workers, and more.
#[test]
fn blocked_workers_lend_their_cores() {
    let background = AsyncComputeTaskPool::get_or_init(TaskPool::new);
    let sums = TaskPool::new().scope(|scope| {
        for number in 0..8_u64 {
            scope.spawn(async move { block_on(background.spawn(async move { number * 2 })) });
        }
    });
    assert_eq!(sums, [0, 2, 4, 6, 8, 10, 12, 14]);
}

/// Rings when it is dropped.
struct RingsAtEnd(RefCell<Option<Waker>>);

impl Drop for RingsAtEnd {
    fn drop(&mut self) {
        if let Some(waker) = self.0.take() {
            waker.wake();
        }
    }
}

/// Goal: a waker may be rung while its thread ends. Method: a value of a thread rings when it is dropped. It
/// is made before the thread's first task, or after it: in one of both it is the last of the thread's values.
#[test]
fn wakers_are_rung_by_threads_that_end() {
    thread_local! {
        static RINGS: RingsAtEnd = const { RingsAtEnd(RefCell::new(None)) };
    }
    let pool = TaskPool::new();
    for before in [true, false] {
        let (sender, receiver) = mpsc::channel();
        let polled = Arc::new(AtomicUsize::new(0));
        let waits = Arc::clone(&polled);
        let task = pool.spawn(poll_fn(move |cx| {
            let polls = waits.fetch_add(1, Ordering::Relaxed);
            if polls == 0 {
                sender.send(cx.waker().clone()).unwrap();
                return Poll::Pending;
            }
            Poll::Ready(polls)
        }));
        let waker = receiver.recv().unwrap();
        thread::scope(|threads| {
            threads.spawn(|| {
                if before {
                    RINGS.with(|_| ());
                }
                assert_eq!(block_on(pool.spawn(async { 1 })), 1);
                RINGS.with(|rings| rings.0.replace(Some(waker)));
            });
        });
        assert_eq!(block_on(task), 1);
    }
}
