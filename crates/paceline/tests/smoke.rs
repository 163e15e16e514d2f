//! Goal: the public API does what it says on the OS. Method: small programs with known answers, over
//! several numbers of workers.
use paceline::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn each_size(f: impl Fn(&JobSystem)) {
    for workers in [0, 1, 2, 8] {
        let js = Builder::new().workers(workers).build().unwrap();
        f(&js);
    }
}

#[test]
fn jobs_run_once_and_in_order_of_dependencies() {
    each_size(|js| {
        let log = Arc::new(AtomicU64::new(0));
        for _ in 0..200 {
            let a = js.schedule({
                let log = log.clone();
                move |_| {
                    log.fetch_add(1, Ordering::Relaxed);
                }
            });
            let b = js.job("b").after(a).schedule({
                let log = log.clone();
                move |_| {
                    log.fetch_add(1000, Ordering::Relaxed);
                }
            });
            js.wait(b);
        }
        assert_eq!(log.load(Ordering::Relaxed), 200 * 1001);
    });
}

#[test]
fn scopes_joins_and_loops() {
    each_size(|js| {
        let mut values = vec![0u64; 10_000];
        js.scope(|s| {
            for v in values.iter_mut() {
                s.spawn(move |_| *v += 1);
            }
        });
        assert!(values.iter().all(|&v| v == 1));
        fn fib(cx: &Context<'_, platform::Os>, n: u64) -> u64 {
            if n < 2 {
                return n;
            }
            let (a, b) = cx.join(|cx| fib(cx, n - 1), |cx| fib(cx, n - 2));
            a + b
        }
        assert_eq!(js.enter(|cx| fib(cx, 22)), 17711);
        let sum = AtomicU64::new(0);
        js.parallel_for(5..100_005, Grain::Auto, |part, _| {
            sum.fetch_add(part.map(|i| i as u64).sum(), Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), (5..100_005u64).sum());
    });
}

#[test]
fn results_panics_and_cancellation() {
    each_size(|js| {
        let bad = js.job("bad").schedule(|_| panic!("oh no"));
        let after = js.job("after").after(bad).run(|_| 5);
        let id = after.id();
        match after.try_wait() {
            Err(WaitError::Cancelled { label, cause }) => {
                assert_eq!((label.name, cause.name), ("after", "bad"));
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(js.try_wait(id), Err(WaitError::Cancelled { .. })));
        assert!(matches!(
            js.try_wait(bad),
            Err(WaitError::Panicked {
                payload: Some(_),
                ..
            })
        ));
        assert!(matches!(
            js.try_wait(bad),
            Err(WaitError::Panicked { payload: None, .. })
        ));
        let e = js.event("e");
        let c = js.combine(&[e.id()]);
        assert!(
            !js.wait_timeout(c, std::time::Duration::from_millis(2))
                .unwrap()
        );
        e.complete();
        js.wait(c);
    });
}
