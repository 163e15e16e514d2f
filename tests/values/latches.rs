//! Latches: over after as many completions as they count, from any threads, and not before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use paceline::{Latch, WaitError};

use super::*;

/// Goal: as above. Method: completions by jobs and by threads; a job that comes after the latch counts them.
#[test]
fn a_latch_is_over_after_its_last_completion() {
    each_system("a latch", |js| {
        for count in [1, 2, 7, 100] {
            let (latch, done) = (js.latch("latch", count), Arc::new(AtomicUsize::new(0)));
            let seen = done.clone();
            let after = js.job("after").after(&latch);
            let after = after.run(move |_| seen.load(Relaxed));
            thread::scope(|threads| {
                for number in 0..count {
                    let (latch, done) = (latch.clone(), done.clone());
                    let complete = move || {
                        done.fetch_add(1, Relaxed);
                        latch.complete_one();
                    };
                    match number % 7 {
                        0 => _ = threads.spawn(complete),
                        _ => _ = js.job("part").schedule(move |_| complete()),
                    }
                }
            });
            assert_eq!(after.wait(), count);
            assert!(js.is_done(latch.id()));
        }
    });
}

/// Goal: a latch that counts to zero is over at once; one that grows is over later.
#[test]
fn a_latch_grows() {
    each_system("a latch that grows", |js| {
        js.wait(js.latch("nothing", 0).id());
        let latch = js.latch("latch", 1);
        for _ in 0..50 {
            latch.add(2);
            latch.complete_one();
        }
        latch.add(usize::MAX); // As good as never.
        for _ in 0..10 {
            assert!(!js.is_done(latch.id()));
            latch.complete_one();
        }
        let latch = js.latch("latch", usize::MAX);
        latch.complete_one();
        assert!(!js.is_done(&latch));
    });
}

/// Goal: the last clone that is dropped too early is an error for waits, and cancels what depends on it.
#[test]
fn a_latch_is_abandoned() {
    each_system("an abandoned latch", |js| {
        let latch = js.latch("latch", 3);
        let (id, clone) = (latch.id(), latch.clone());
        let after = js.job("after").after(id).schedule(|_| ());
        latch.complete_one();
        drop(latch);
        assert!(!js.is_done(id));
        clone.complete_one();
        drop(clone);
        assert!(
            matches!(js.try_wait(id), Err(WaitError::Abandoned { label }) if label.name == "latch")
        );
        assert!(matches!(
            js.try_wait(after),
            Err(WaitError::Cancelled { .. })
        ));
    });
}

/// The text of the panic.
#[track_caller]
fn panic_of(call: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(call)).expect_err("the call must panic");
    *payload.downcast::<String>().expect("a text")
}

/// Goal: to complete a latch too often, or to count more when it is over, is a panic that names the latch;
/// also after the end of the job system. The latch stays over.
#[test]
fn a_latch_that_is_over_stays_over() {
    let misuse = |latch: &Latch| {
        for _ in 0..3 {
            let text = panic_of(|| latch.complete_one());
            let (name, why) = ("latch 'parts' (", "completed more often than it counts");
            assert!(text.starts_with(name) && text.contains(why), "{text}");
            let text = panic_of(|| latch.add(1));
            assert!(
                text.contains("is over: it can count more only before"),
                "{text}"
            );
        }
    };
    for workers in 0..3 {
        watched("a latch that is over", || {
            let js = Builder::new().workers(workers).build().unwrap();
            let [over, empty] = [2, 0].map(|count| js.latch("parts", count));
            over.complete_one();
            over.complete_one();
            misuse(&over);
            misuse(&empty);
            js.wait(&over);
            let late = js.latch("parts", 1);
            drop(js);
            late.complete_one();
            [over, empty, late].iter().for_each(misuse);
        });
    }
}

/// Goal: a latch waits for its dependencies, too, and works in the words of frames, contexts and scopes.
#[test]
fn latches_are_made_everywhere() {
    each_system("latches everywhere", |js| {
        let gate = js.event("gate");
        let latch = js.job("latch").after(&gate).try_latch(1).unwrap();
        latch.complete_one();
        assert!(!js.is_done(&latch));
        gate.complete();
        js.wait(&latch);

        let frame = js.frame("frame", std::time::Duration::from_secs(1));
        let (in_frame, inside) = (
            frame.latch("in a frame", 1),
            js.enter(|cx| cx.latch("inside", 1)),
        );
        let mut ran = 0;
        js.scope(|scope| {
            let latch = scope.latch("in a scope", 2);
            scope.job("after").after(&latch).schedule(|_| ran += 1);
            for _ in 0..2 {
                let latch = latch.clone();
                scope.spawn(move |_| latch.complete_one());
            }
        });
        in_frame.complete_one();
        inside.complete_one();
        js.wait(js.combine([in_frame.id(), inside.id()]));
        assert_eq!(ran, 1);
    });
}
