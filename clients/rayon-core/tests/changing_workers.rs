//! Broadcasts while the workers of the program's job system come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use paceline::Builder;

/// Goal: a part of a broadcast whose worker has left is left out, whether its job was refused or called off,
/// and what it borrows lives until then. Method: broadcasts, with and without waiting, and in scopes, while
/// another thread has two workers leave and come.
#[test]
fn parts_for_workers_that_left_are_left_out() {
    let builder = Builder::new().workers(3).follow_machine(false);
    let system = Arc::new(builder.build().unwrap());
    rayon_core::use_job_system(Arc::clone(&system)).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for workers in [1, 2, 3].into_iter().cycle() {
                if is_over.load(SeqCst) {
                    break;
                }
                system.resize(workers).unwrap();
            }
        });
        let owned = Arc::new(AtomicUsize::new(0));
        for _ in 0..3000 {
            let ran = AtomicUsize::new(0);
            let returned = rayon_core::broadcast(|_| ran.fetch_add(1, SeqCst)).len();
            assert_eq!(ran.load(SeqCst), returned);
            rayon_core::scope(|scope| scope.spawn_broadcast(|_, _| _ = ran.fetch_add(1, SeqCst)));
            rayon_core::in_place_scope(|scope| {
                scope.spawn_broadcast(|_, _| _ = ran.fetch_add(1, SeqCst));
            });
            let counted = Arc::clone(&owned);
            rayon_core::spawn_broadcast(move |_| _ = counted.fetch_add(1, SeqCst));
        }
        is_over.store(true, SeqCst);
        // Each part has run, or was dropped.
        while Arc::strong_count(&owned) > 1 {
            std::thread::yield_now();
        }
    });
}
