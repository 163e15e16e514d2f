//! Pools on a job system that the program has made: alone in its process, since the first use decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bevy_tasks::{TaskPool, job_system, use_job_system};
use paceline::{Builder, WaitRule};

/// Goal: pools run on the program's job system, beside its own jobs, and a second one is refused in words.
/// Method: one with three workers; a scope whose futures make jobs of it.
#[test]
fn pools_share_the_programs_job_system() {
    let made = || {
        Arc::new(
            Builder::new()
                .workers(3)
                .wait_rule(WaitRule::Anything)
                .build()
                .unwrap(),
        )
    };
    let js = made();
    use_job_system(Arc::clone(&js)).unwrap();
    assert!(Arc::ptr_eq(&js, job_system()));
    let pool = TaskPool::new();
    assert_eq!(pool.thread_num(), 3);
    let ran = Arc::new(AtomicUsize::new(0));
    let sums = pool.scope(|scope| {
        for number in 0..20_usize {
            let (js, ran) = (&js, &ran);
            scope.spawn(async move {
                let ran = Arc::clone(ran);
                let job = js.job("own").run(move |_| {
                    ran.fetch_add(1, Ordering::Relaxed);
                    number
                });
                job.wait()
            });
        }
    });
    assert!(sums.into_iter().eq(0..20));
    assert_eq!(ran.load(Ordering::Relaxed), 20);
    let error = use_job_system(made()).unwrap_err();
    assert!(error.to_string().contains("call use_job_system before"));
}
