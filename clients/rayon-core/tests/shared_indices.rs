//! Indices of threads where rayon runs on a job system of the program's.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use paceline::{Builder, JobSystem};
use rayon::prelude::*;

const WORKERS: usize = 2;
const CALLERS: usize = 6;

/// Goal: however many threads have called, a table with a place for each of `current_num_threads` has one
/// for each that runs something, and no two use one at the same time. Method: six threads of the program
/// call, one at a time, and live on; then jobs of the job system call, on its workers; each item is noted in
/// the place of the thread that runs it, which must be empty, and is taken out again.
#[test]
fn an_index_is_less_than_the_number_of_threads() {
    // Spares would be more threads.
    let js: JobSystem = Builder::new()
        .workers(WORKERS)
        .max_spares(0)
        .build()
        .unwrap();
    let js = Arc::new(js);
    rayon_core::use_job_system(Arc::clone(&js)).unwrap();
    assert_eq!(rayon::current_num_threads(), WORKERS + 1);
    let places: Vec<AtomicUsize> = (0..=WORKERS).map(|_| AtomicUsize::new(0)).collect();
    let work = || {
        let sum: usize = (0..200_usize)
            .into_par_iter()
            .with_max_len(1)
            .map(|item| {
                let index = rayon::current_thread_index().unwrap();
                assert_eq!(places[index].swap(1, Ordering::Relaxed), 0);
                let value = std::hint::black_box(item);
                places[index].store(0, Ordering::Relaxed);
                value
            })
            .sum();
        assert_eq!(sum, 199 * 100);
    };
    let (all, turn) = (Barrier::new(CALLERS), Mutex::new(()));
    let in_turn = || {
        let _turn = turn.lock().unwrap();
        work();
        rayon::scope(|scope| scope.spawn(|_| work()));
    };
    std::thread::scope(|threads| {
        for _ in 0..CALLERS {
            threads.spawn(|| {
                let first = catch_unwind(AssertUnwindSafe(in_turn));
                // All threads that have called are alive.
                all.wait();
                first.unwrap();
                (0..50).for_each(|_| in_turn());
            });
        }
    });
    for _ in 0..50 {
        js.scope(|scope| {
            for _ in 0..WORKERS + 1 {
                scope.spawn(|_| work());
            }
        });
    }
}
