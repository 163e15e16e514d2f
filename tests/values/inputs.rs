//! Jobs that get the values of others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context as Task, Poll, Waker};
use std::{future::Future, thread};

use paceline::{Job, ScheduleError, WaitError};

use super::*;
use crate::support::fail;

/// Goal: a successor gets the values of one job to four, of an array and of a vector, whether these are over
/// or not; results in the slot and boxed ones, and values of events. Each value is dropped once.
#[test]
fn a_successor_gets_all_values() {
    each_system("inputs", |js| {
        let ledger = Arc::new(Ledger::default());
        for late in [false, true] {
            let (gate, mut open) = (js.event("gate"), None);
            let gate_id = gate.id();
            if late {
                open = Some(gate);
            } else {
                gate.complete();
            }
            let small = |number| {
                let value = Small::new(&ledger, number);
                js.job("small").after(gate_id).run(move |_| value)
            };
            let large = |number| {
                let value = Large::new(&ledger, number);
                js.job("large").after(gate_id).run(move |_| value)
            };
            let (event, given) = js.event_with::<Small>("given");
            let one = js.job("one").with(small(1)).run(|_, a| a.number);
            let two = js.job("two").with((small(1), large(2)));
            let two = two.run(|_, (a, b)| a.number + 10 * b.number);
            let three = js
                .job("three")
                .background()
                .with((large(1), given, small(3)));
            let three = three.run(|_, (a, b, c)| a.number + 10 * b.number + 100 * c.number);
            let four = js
                .job("four")
                .with((small(1), small(2), small(3), large(4)));
            let four = four.run(|cx, (a, b, c, d)| {
                assert!(cx.worker() < cx.thread_slots());
                (
                    a.number * 1000 + b.number * 100 + c.number * 10 + d.number,
                    d,
                )
            });
            let array = js.job("array").with([large(1), large(2), large(3)]);
            let array = array.run(|_, values| values.map(|value| value.number));
            let vector: Vec<_> = (0..40).map(small).collect();
            let vector = js.job("vector").with(vector);
            let vector =
                vector.run(|_, values| values.iter().map(|value| value.number).sum::<u64>());
            let then = large(5).then(|a| a.number).then(|five| five * 2);
            event.complete_with(Small::new(&ledger, 2));
            if let Some(gate) = open {
                gate.complete();
            }
            assert_eq!((one.wait(), two.wait(), three.wait()), (1, 21, 321));
            assert_eq!((four.wait().0, array.wait()), (1234, [1, 2, 3]));
            assert_eq!((vector.wait(), then.wait()), (40 * 39 / 2, 10));
        }
        ledger.check_each_dropped_once(2 * 54);
    });
}

/// Goal: a failed input cancels the successor, which names it, and the values of the other inputs are
/// dropped. Method: each of three inputs fails; before or after the successor is made; by `with` and `then`.
#[test]
fn a_failed_input_cancels_its_successor() {
    each_system("failed inputs", |js| {
        let ledger = Arc::new(Ledger::default());
        for (bad, late) in [
            (0, true),
            (1, true),
            (2, true),
            (0, false),
            (1, false),
            (2, false),
        ] {
            let gate = js.event("gate");
            let make = |number| {
                let value = Small::new(&ledger, number);
                js.job("input").after(&gate).run(move |_| {
                    if number == bad {
                        fail("a bad input")
                    } else {
                        value
                    }
                })
            };
            let inputs = [make(0), make(1), make(2)];
            let ids: Vec<_> = inputs.iter().map(Job::id).collect();
            let then = make(bad).then(|value| value.number);
            let mut gate = Some(gate);
            let open = |gate: &mut Option<paceline::Event>| {
                gate.take().into_iter().for_each(paceline::Event::complete);
                for &id in &ids {
                    _ = js.try_wait(id);
                }
            };
            if !late {
                open(&mut gate);
            }
            let kept = ledger.token();
            let never = js.job("never").with(inputs).run(move |_, _| drop(kept));
            open(&mut gate);
            for error in [never.try_wait().unwrap_err(), then.try_wait().unwrap_err()] {
                assert!(
                    matches!(&error, WaitError::Cancelled { cause, message, .. }
                        if cause.name == "input" && message.as_deref() == Some("a bad input")),
                    "{error}"
                );
            }
        }
        while js.workers() == 0 && js.poll() {}
        until(|| ledger.kept() == 0);
        ledger.check_each_dropped_once(6 * 5);
    });
}

/// Goal: a panic of an input that no wait hears of reaches the hook, once: the successor that holds the
/// handle does not wait. If a wait hears of the successor, the hook is silent.
#[test]
fn the_hook_hears_of_inputs_that_panic() {
    for workers in 0..3 {
        for (waits, by_then) in [(false, false), (true, false), (false, true), (true, true)] {
            watched("the hook hears of inputs", || {
                let heard = Arc::new(AtomicUsize::new(0));
                let hook = heard.clone();
                let js = Builder::new().workers(workers).on_unwaited_panic(move |_| {
                    hook.fetch_add(1, Relaxed);
                });
                let js = js.build().unwrap();
                let gate = js.event("gate");
                let input = js
                    .job("input")
                    .after(&gate)
                    .run(|_| -> u8 { fail("unheard") });
                let last = if by_then {
                    input.then(|_| ())
                } else {
                    js.job("last").with(input).run(|_, _| ())
                };
                if waits {
                    gate.complete();
                    assert!(last.try_wait().is_err());
                } else {
                    drop(last);
                    gate.complete();
                }
                drop(js);
                assert_eq!(heard.load(Relaxed), usize::from(!waits));
            });
        }
    }
}

/// Goal: a handle of another job system is refused, and its job goes on; a handle that has given its value
/// says so. Nothing is lost of the other inputs.
#[test]
fn handles_that_are_no_inputs() {
    each_system("bad handles", |js| {
        let ledger = Arc::new(Ledger::default());
        let other = Builder::new().workers(0).build().unwrap();
        let own = Small::new(&ledger, 1);
        let own = js.job("own").run(move |_| own);
        let foreign = Small::new(&ledger, 2);
        let foreign = other.job("foreign").run(move |_| foreign);
        let id = foreign.id();
        let refused = js.job("never").with((own, foreign)).try_run(|_, _| ());
        assert_eq!(refused.unwrap_err(), ScheduleError::Foreign { id });
        other.wait(id);

        let mut spent = js.job("spent").run(|_| 7);
        js.wait(spent.id());
        let polled = Pin::new(&mut spent).poll(&mut Task::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(7));
        let own = Small::new(&ledger, 3);
        let own = js.job("own").run(move |_| own);
        let again = js.job("never").with((own, spent));
        let panicked = catch_unwind(AssertUnwindSafe(|| _ = again.try_run(|_, _| ())));
        let text = panicked
            .expect_err("it was spent")
            .downcast::<&str>()
            .unwrap();
        assert!(text.contains("asked for again"), "{text}");

        let mut spent = js.job("spent").run(|_| 7);
        js.wait(spent.id());
        assert!(
            Pin::new(&mut spent)
                .poll(&mut Task::from_waker(Waker::noop()))
                .is_ready()
        );
        assert!(catch_unwind(AssertUnwindSafe(|| _ = spent.then(|_| ()))).is_err());
        while js.workers() == 0 && js.poll() {}
        until(|| ledger.kept() == 0);
        ledger.check_each_dropped_once(3);
    });
}

/// Goal: if there is no room for the successor, the values are dropped and the calls say why.
#[test]
fn there_is_no_room_for_a_successor() {
    watched("no room", || {
        let ledger = Arc::new(Ledger::default());
        let js = Builder::new().workers(0).max_jobs(1).build().unwrap();
        let make = || {
            let value = Small::new(&ledger, 1);
            js.job("input").run(move |_| value)
        };
        let inputs = [make(), make(), make()];
        while js.poll() {}
        while js.job("one more").try_event().map(std::mem::forget).is_ok() {}
        let [first, second, third] = inputs;
        let full = ScheduleError::Full { max_jobs: 1 };
        let refused = js.job("next").with((first, second)).try_schedule(|_, _| ());
        assert_eq!(refused, Err(full.clone()));
        assert_eq!(ledger.kept(), 1);
        // The slots of both inputs are free now.
        while js.job("one more").try_event().map(std::mem::forget).is_ok() {}
        assert_eq!(third.try_then(|_| ()).unwrap_err(), full);
        ledger.check_each_dropped_once(3);
    });
}

/// Goal: handles outlive the job system. `then` says that it has ended, and never makes a job that is lost.
/// Method: after the end; and by another thread while the job system ends, many times.
#[test]
fn a_successor_is_made_while_the_job_system_ends() {
    for workers in 0..3 {
        watched("a successor at the end", || {
            for round in 0..if cfg!(miri) { 5 } else { 300 } {
                let ledger = Arc::new(Ledger::default());
                let js = Builder::new().workers(workers).build().unwrap();
                let input = js.job("input").run(|_| 20);
                let token = ledger.token();
                let ran = thread::scope(|threads| {
                    let ends = threads.spawn(move || {
                        if round % 2 == 0 {
                            js.flush();
                        }
                        drop(js);
                    });
                    let next = input.try_then(move |number| {
                        drop(token);
                        number + 1
                    });
                    ends.join().expect("it ends");
                    next.map(|next| next.try_wait())
                });
                match ran {
                    Ok(next) => assert_eq!(next.expect("it could run"), 21),
                    Err(error) => assert_eq!(error, ScheduleError::ShutDown),
                }
                ledger.check_each_dropped_once(1);
            }
        });
    }
}

/// Goal: jobs of a scope pass on values that borrow; the values are gone when the scope is.
#[test]
fn inputs_that_borrow() {
    each_system("inputs that borrow", |js| {
        let text = "one two three".to_owned();
        for fails in [false, true] {
            let drops = AtomicUsize::new(0);
            let borrowed = || CountsDrops(&drops);
            let scope = catch_unwind(AssertUnwindSafe(|| {
                js.scope(|scope| {
                    let words = scope
                        .job("split")
                        .run(|_| text.split(' ').collect::<Vec<_>>());
                    let counted = scope.job("counted").run(|_| borrowed());
                    let (found, word) = scope.event_with::<&str>("found");
                    let longest = scope.job("longest").with((words, counted));
                    longest.schedule(move |_, (words, _counted)| {
                        if fails {
                            drop(found)
                        } else {
                            found.complete_with(words[2])
                        }
                    });
                    let last = scope
                        .job("last")
                        .with((word, scope.job("more").run(|_| borrowed())));
                    last.schedule(|_, (word, _more)| assert_eq!(word, "three"));
                });
            }));
            assert_eq!((scope.is_err(), drops.load(Relaxed)), (fails, 2));
        }
    });
}

struct CountsDrops<'a>(&'a AtomicUsize);

impl Drop for CountsDrops<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}
