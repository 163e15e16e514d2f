//! Calls of rayon's in jobs of a job system of the program's, and while its workers come and go.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use paceline::{Builder, JobSystem};

const WORKERS: usize = 2;

/// The job system of all tests here: a process has one for rayon.
fn system() -> &'static Arc<JobSystem> {
    static SYSTEM: OnceLock<Arc<JobSystem>> = OnceLock::new();
    SYSTEM.get_or_init(|| {
        let builder = Builder::new().workers(WORKERS).follow_machine(false);
        let system = Arc::new(builder.build().unwrap());
        rayon_core::use_job_system(Arc::clone(&system)).unwrap();
        system
    })
}

fn broadcast() -> usize {
    rayon_core::broadcast(|context| context.index()).len()
}

/// Goal: a broadcast in the middle of a job runs the part of the job's own thread, too. Method: in a job of
/// the program's, in one of rayon's, in both halves of a join, in a scope; and calls in place, on all workers
/// at once.
#[test]
fn calls_in_jobs_wait_as_jobs_do() {
    let system = system();
    for _ in 0..100 {
        let job = system.job("job").run(|_| broadcast());
        assert_eq!(job.wait(), WORKERS);
        let (send, receive) = std::sync::mpsc::channel();
        rayon_core::spawn(move || send.send(broadcast()).unwrap());
        assert_eq!(receive.recv(), Ok(WORKERS));
        assert_eq!(rayon_core::join(broadcast, broadcast), (WORKERS, WORKERS));
        let both = [(); 2].map(|()| system.job("both").run(|_| broadcast()));
        assert_eq!(both.map(|job| job.wait()), [WORKERS; 2]);
        let parts = Arc::new(AtomicUsize::new(0));
        let in_scope = Arc::clone(&parts);
        system.wait(system.job("scope").schedule(move |_| {
            let count = |_: rayon_core::BroadcastContext<'_>| _ = in_scope.fetch_add(1, SeqCst);
            rayon_core::scope(|scope| scope.spawn_broadcast(|_, context| count(context)));
        }));
        assert_eq!(parts.load(SeqCst), WORKERS);
        let ran = Arc::new(AtomicUsize::new(0));
        let jobs = [(); 2 * WORKERS].map(|()| {
            let ran = Arc::clone(&ran);
            system.job("in place").schedule(move |_| {
                rayon_core::in_place_scope(|scope| {
                    scope.spawn(|_| _ = ran.fetch_add(1, SeqCst));
                });
            })
        });
        // Not by a wait, which would run them here.
        system.flush();
        while !jobs.iter().all(|&job| system.is_done(job)) {
            std::thread::yield_now();
        }
        assert_eq!(ran.load(SeqCst), 2 * WORKERS);
    }
}
