//! The defects that users of other job systems report most, as programs, each with the number of the
//! public report. Here they finish, or say why they cannot.
//!
//! Method: a program sets up the situation with flags that its own jobs raise, so that it does not depend on
//! luck, and then counts the events that must not have happened. A program that hangs is ended by
//! [`watched`].

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use paceline::{Builder, Grain, GraphError, JobId, JobSystem, WaitError};

use crate::support::watched;

fn system(workers: usize) -> JobSystem {
    Builder::new()
        .workers(workers)
        .build()
        .expect("threads can be started")
}

/// Runs a program with each number of workers.
fn with_each(workers: &[usize], what: &str, program: impl Fn(&Arc<JobSystem>)) {
    for &workers in workers {
        watched(&format!("{what}, {workers} workers"), || {
            program(&Arc::new(system(workers)))
        });
    }
}

fn until(flag: impl Fn() -> bool) {
    while !flag() {
        thread::yield_now();
    }
}

thread_local! {
    /// How many of this thread's frames are in the middle of a wait that is watched.
    static WAITING: Cell<usize> = const { Cell::new(0) };
}

/// Waits, and lets [`is_waiting`] know.
fn wait_watched(js: &JobSystem, id: JobId) {
    WAITING.set(WAITING.get() + 1);
    js.wait(id);
    WAITING.set(WAITING.get() - 1);
}

fn is_waiting() -> bool {
    WAITING.get() > 0
}

/// rayon #592, #1205, #1251; oneTBB #1316: a lock is held across a wait, the waiter starts an
/// unrelated job, and that wants the lock.
#[test]
fn rayon_592_a_lock_held_across_a_wait_is_not_asked_for_again() {
    with_each(&[0, 1, 2, 8], "rayon 592", |js| {
        let lock = Mutex::new(0);
        let intruders = AtomicUsize::new(0);
        js.scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|_| {
                    if is_waiting() {
                        // Locking now would be for ever.
                        intruders.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                    let mut count = lock.lock().unwrap();
                    let part = js.schedule(|_| ());
                    let whole = js.job("whole").after(part).schedule(|_| ());
                    wait_watched(js, whole);
                    *count += 1;
                });
            }
        });
        assert_eq!(
            (lock.into_inner().unwrap(), intruders.into_inner()),
            (100, 0)
        );
    });
}

/// The same with every way to wait: scopes, joins and loops under the lock.
#[test]
fn rayon_592_with_scopes_joins_and_loops() {
    with_each(&[0, 1, 2, 8], "rayon 592, nested", |js| {
        let lock = Mutex::new(0);
        let intruders = AtomicUsize::new(0);
        js.scope(|scope| {
            for _ in 0..50 {
                scope.spawn(|cx| {
                    if is_waiting() {
                        intruders.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                    let mut count = lock.lock().unwrap();
                    WAITING.set(1);
                    cx.scope(|inner| (0..4).for_each(|_| inner.spawn(|_| ())));
                    cx.join(
                        |cx| _ = cx.join(|_| (), |_| ()),
                        |cx| _ = cx.join(|_| (), |_| ()),
                    );
                    cx.parallel_for(0..100, Grain::Items(1), |_, _| ());
                    WAITING.set(0);
                    *count += 1;
                });
            }
        });
        assert_eq!(
            (lock.into_inner().unwrap(), intruders.into_inner()),
            (50, 0)
        );
    });
}

/// rayon #957: a thread that waits for a short job picks one that takes hours. Here the long ones
/// last until the wait is over: picking one up would be for ever.
#[test]
fn rayon_957_who_waits_for_a_short_job_starts_no_long_one() {
    with_each(&[0, 1, 2], "rayon 957", |js| {
        let released = Arc::new(AtomicBool::new(false));
        let long: Vec<_> = (0..8)
            .map(|_| {
                let released = Arc::clone(&released);
                js.job("long")
                    .schedule(move |_| until(|| released.load(Ordering::Relaxed)))
            })
            .collect();
        for _ in 0..100 {
            let short = js.job("short").schedule(|_| ());
            js.wait(js.job("after it").after(short).schedule(|_| ()));
        }
        js.scope(|scope| (0..10).for_each(|_| scope.spawn(|_| ())));
        js.parallel_for(0..1000, Grain::Items(10), |_, _| ());
        released.store(true, Ordering::Relaxed);
        for &id in &long {
            js.wait(id);
        }
    });
}

/// Taskflow #649, *contagious delays*: each task runs a graph of its own and waits for it. If waiters
/// start other such tasks, delays pile up on one stack.
#[test]
fn taskflow_649_tasks_that_wait_do_not_pile_up() {
    with_each(&[0, 1, 2, 8], "Taskflow 649", |js| {
        let piled = AtomicUsize::new(0);
        let leaves = AtomicUsize::new(0);
        js.scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|cx| {
                    piled.fetch_add(usize::from(is_waiting()), Ordering::Relaxed);
                    WAITING.set(WAITING.get() + 1);
                    cx.scope(|inner| {
                        for _ in 0..8 {
                            inner.spawn(|_| _ = leaves.fetch_add(1, Ordering::Relaxed));
                        }
                    });
                    WAITING.set(WAITING.get() - 1);
                });
            }
        });
        assert_eq!((leaves.into_inner(), piled.into_inner()), (512, 0));
    });
}

/// Taskflow #756, a dead-lock of `corun_until`; Godot PR 77143, second part: the awaited job lies under the
/// waiter on the same stack, because the wait below has started the waiter.
#[test]
fn taskflow_756_nobody_is_buried_by_who_waits_for_him() {
    with_each(&[0, 1, 2, 8], "Taskflow 756", |js| {
        for _ in 0..50 {
            let below = Arc::new(OnceLock::<JobId>::new());
            let (own, inside) = (Arc::clone(&below), Arc::clone(js));
            let first = js.job("first").schedule(move |cx| {
                until(|| own.get().is_some());
                let needed = cx.schedule(|_| ());
                // The newest job here, and ready: the one that waits for `first`.
                let (own, waits) = (*own.get().unwrap(), Arc::clone(&inside));
                cx.job("second")
                    .schedule(move |_| waits.try_wait(own).unwrap());
                inside.try_wait(needed).unwrap();
            });
            below.set(first).unwrap();
            js.wait(first);
        }
        // The second ones hold the job system: let them end before it does.
        until(|| {
            js.poll();
            Arc::strong_count(js) == 1
        });
    });
}

/// Godot PR 77143, first part: all workers wait for what only a job can bring about that none of them
/// may start.
#[test]
fn godot_77143_a_spare_worker_runs_what_no_waiter_may() {
    with_each(&[1, 2, 4], "Godot 77143", |js| {
        let workers = js.workers();
        let event = js.event("loaded");
        let loaded = event.id();
        let started = Arc::new(AtomicUsize::new(0));
        let waiters: Vec<_> = (0..workers)
            .map(|_| {
                let (inside, started) = (Arc::clone(js), Arc::clone(&started));
                js.job("waits").schedule(move |_| {
                    started.fetch_add(1, Ordering::Relaxed);
                    inside.try_wait(loaded).unwrap();
                })
            })
            .collect();
        until(|| started.load(Ordering::Relaxed) == workers);
        js.job("loads").schedule(move |_| event.complete());
        for id in waiters {
            assert!(
                js.wait_timeout(id, Duration::from_secs(60)).unwrap(),
                "nobody loads"
            );
        }
        assert!(js.stats().spares > 0);
        assert_eq!(js.workers(), workers);
    });
}

/// The same the other way round: the jobs that they need are ready before they wait.
#[test]
fn godot_77143_also_when_the_job_was_there_first() {
    with_each(&[1, 2, 4], "Godot 77143, ready first", |js| {
        for _ in 0..20 {
            let workers = js.workers();
            let event = js.event("loaded");
            let loaded = event.id();
            let (all_in, go) = (
                Arc::new(Barrier::new(workers + 1)),
                Arc::new(Barrier::new(workers + 1)),
            );
            let waiters: Vec<_> = (0..workers)
                .map(|_| {
                    let (inside, all_in, go) =
                        (Arc::clone(js), Arc::clone(&all_in), Arc::clone(&go));
                    js.job("waits").schedule(move |_| {
                        all_in.wait();
                        go.wait();
                        inside.try_wait(loaded).unwrap();
                    })
                })
                .collect();
            all_in.wait();
            js.job("loads").schedule(move |_| event.complete());
            go.wait();
            for id in waiters {
                assert!(
                    js.wait_timeout(id, Duration::from_secs(60)).unwrap(),
                    "nobody loads"
                );
            }
        }
        // The workers leave the jobs a little later than these are over.
        assert!(js.stats().spares > 0);
    });
}

/// Box2D 3.0 (its stages live-lock if the last one enqueued is started first): work from outside is
/// started in the order it came.
#[test]
fn box2d_work_from_outside_starts_in_order() {
    for held_up in [false, true] {
        watched("Box2D", || {
            let js = system(1);
            let order = Arc::new(Mutex::new(Vec::new()));
            let gate = Arc::new(AtomicBool::new(!held_up));
            let started = Arc::new(AtomicBool::new(!held_up));
            if held_up {
                let (gate, started) = (Arc::clone(&gate), Arc::clone(&started));
                js.schedule(move |_| {
                    started.store(true, Ordering::Relaxed);
                    until(|| gate.load(Ordering::Relaxed));
                });
            }
            until(|| started.load(Ordering::Relaxed));
            let ids: Vec<_> = (0..100)
                .map(|number| {
                    let order = Arc::clone(&order);
                    js.schedule(move |_| order.lock().unwrap().push(number))
                })
                .collect();
            gate.store(true, Ordering::Relaxed);
            until(|| ids.iter().all(|&id| js.is_done(id)));
            assert_eq!(*order.lock().unwrap(), (0..100).collect::<Vec<_>>());
        });
    }
}

/// Box2D's own shape: each stage job spins until the stages before it are through, which others must
/// have begun.
#[test]
fn box2d_stages_that_spin_for_each_other_make_progress() {
    with_each(&[1, 2], "Box2D stages", |js| {
        let through = Arc::new(AtomicUsize::new(0));
        let ids: Vec<_> = (0..100)
            .map(|stage| {
                let through = Arc::clone(&through);
                js.job("stage").schedule(move |_| {
                    until(|| through.load(Ordering::Relaxed) >= stage);
                    through.fetch_add(1, Ordering::Relaxed);
                })
            })
            .collect();
        until(|| ids.iter().all(|&id| js.is_done(id)));
        assert_eq!(through.load(Ordering::Relaxed), 100);
    });
}

/// Bevy PR 10026: scopes in scopes in jobs dead-lock.
#[test]
fn bevy_10026_scopes_nest() {
    with_each(&[0, 1, 2, 8], "Bevy 10026", |js| {
        let count = Arc::new(AtomicUsize::new(0));
        let jobs: Vec<_> = (0..10)
            .map(|_| {
                let (inside, count) = (Arc::clone(js), Arc::clone(&count));
                js.schedule(move |cx| {
                    let count = &count;
                    cx.scope(|outer| {
                        for _ in 0..5 {
                            let inside = &inside;
                            outer.spawn(move |cx| {
                                cx.scope(|inner| {
                                    for _ in 0..5 {
                                        inner.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed));
                                    }
                                });
                                // Through the door as well.
                                inside.scope(|inner| {
                                    inner.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed));
                                });
                            });
                        }
                    });
                })
            })
            .collect();
        for &id in &jobs {
            js.wait(id);
        }
        assert_eq!(count.load(Ordering::Relaxed), 10 * 5 * 6);
    });
}

/// rayon PR 1311: a gate on stealing broke joins whose halves wait for each other. The first half
/// waits for an event the second completes.
#[test]
fn rayon_1311_halves_of_a_join_may_wait_for_each_other() {
    with_each(&[1, 2, 8], "rayon 1311", |js| {
        for _ in 0..50 {
            let event = js.event("second half");
            let second = event.id();
            js.join(|_| js.try_wait(second).unwrap(), |_| event.complete());
            // And inside a job.
            let inside = Arc::clone(js);
            let job = js.schedule(move |cx| {
                let event = inside.event("second half");
                let second = event.id();
                cx.join(|_| inside.try_wait(second).unwrap(), |_| event.complete());
            });
            js.wait(job);
        }
    });
}

/// The same below other joins, as deep as forks are kept on offer.
#[test]
fn rayon_1311_below_other_joins() {
    with_each(&[1, 2, 8], "rayon 1311, nested", |js| {
        for _ in 0..50 {
            let event = js.event("second half");
            let second = event.id();
            js.join(
                |cx| {
                    cx.join(
                        |cx| cx.join(|_| js.try_wait(second).unwrap(), |_| event.complete()),
                        |_| (),
                    )
                },
                |_| (),
            );
        }
    });
}

/// Godot #77131, PR 109151: with no threads nothing ever runs. Here waits, `poll`, `pump` and `flush`
/// do it, on the calling thread.
#[test]
fn godot_77131_no_workers_at_all() {
    watched("Godot 77131", || {
        let js = system(0);
        assert_eq!(js.workers(), 0);
        let here = thread::current().id();
        let ran = Arc::new(AtomicUsize::new(0));
        let schedule = |after: &[JobId]| {
            let ran = Arc::clone(&ran);
            js.job("job").after_all(after).schedule(move |_| {
                assert_eq!(thread::current().id(), here);
                ran.fetch_add(1, Ordering::Relaxed);
            })
        };
        let ran = || ran.load(Ordering::Relaxed);
        let a = schedule(&[]);
        let b = schedule(&[a]);
        let _unrelated = schedule(&[]);
        assert_eq!(ran(), 0, "nothing runs inside `schedule`");
        js.wait(b);
        assert_eq!(ran(), 2, "what is waited for, and nothing else");
        assert!(js.poll());
        assert_eq!(ran(), 3);
        assert!(!js.poll(), "there is none");
        let chain = (0..10).fold(schedule(&[]), |last, _| schedule(&[last]));
        assert_eq!(js.pump(Duration::from_secs(60)), 11);
        assert!(js.is_done(chain));
        assert_eq!(js.pump(Duration::from_secs(60)), 0);
        schedule(&[chain]);
        assert_eq!(ran(), 14);
        js.flush();
        assert_eq!(ran(), 15);
        schedule(&[]);
        assert_eq!(js.pump(Duration::ZERO), 1, "one at least");
        let wide: Vec<_> = (0..1000).map(|_| schedule(&[])).collect();
        js.wait(js.combine(&wide));
        assert_eq!(ran(), 1016);
        // Another thread's wait runs them too; and the rest is run at the end.
        let elsewhere = js.job("elsewhere").run(|_| thread::current().id());
        let other = thread::scope(|threads| {
            let other = threads
                .spawn(|| (elsewhere.wait(), thread::current().id()))
                .join()
                .unwrap();
            assert_eq!(other.0, other.1);
            other.0
        });
        assert_ne!(other, here);
    });
}

/// enkiTS #51, #128: waiting for everything at shutdown hangs, or forgets something.
#[test]
fn enkits_51_shutdown_waits_for_all_that_can_run() {
    for workers in [0, 1, 2, 8] {
        watched(&format!("enkiTS 51, {workers} workers"), || {
            for _ in 0..20 {
                let js = system(workers);
                let ran = Arc::new(AtomicUsize::new(0));
                // Scheduled by a thread that has gone, and by jobs that make jobs three levels deep.
                thread::scope(|threads| {
                    let (js, ran) = (&js, &ran);
                    threads.spawn(move || (0..20).for_each(|_| grow(js, ran)));
                });
                let ranges = Arc::clone(&ran);
                js.job("loop")
                    .schedule_for(0..1000, Grain::Items(10), move |part, _| {
                        ranges.fetch_add(part.len(), Ordering::Relaxed);
                    });
                drop(js);
                assert_eq!(ran.load(Ordering::Relaxed), 20 * (1 + 3 + 9) + 1000);
            }
        });
    }
}

/// A job that makes three that make three.
fn grow(js: &JobSystem, ran: &Arc<AtomicUsize>) {
    let ran = Arc::clone(ran);
    js.schedule(move |cx| {
        ran.fetch_add(1, Ordering::Relaxed);
        for _ in 0..3 {
            let ran = Arc::clone(&ran);
            cx.schedule(move |cx| {
                ran.fetch_add(1, Ordering::Relaxed);
                for _ in 0..3 {
                    let ran = Arc::clone(&ran);
                    cx.schedule(move |_| _ = ran.fetch_add(1, Ordering::Relaxed));
                }
            });
        }
    });
}

/// Checks that an error reports a deadlock among these jobs. Of two both are named. Of more, a job
/// may be left out that a waiter below it has started: the thread of both is named once.
#[track_caller]
fn check_report(error: &WaitError, names: &[&str]) {
    let text = error.to_string();
    let WaitError::Deadlock { cycle } = error else {
        panic!("{text}")
    };
    let named = names.iter().filter(|name| text.contains(*name)).count();
    assert!(named >= names.len().min(2), "{text}");
    assert!(
        cycle.iter().all(|label| names.contains(&label.name)),
        "{text}"
    );
}

/// The errors of waits that could never end.
type Said = Arc<Mutex<Vec<WaitError>>>;

/// Schedules jobs each of which waits for the next, and the last for the first.
fn ring(js: &Arc<JobSystem>, names: &[&'static str]) -> (Vec<JobId>, Said) {
    let said = Said::default();
    let ids = Arc::new(OnceLock::<Vec<JobId>>::new());
    let jobs = (0..names.len()).map(|at| {
        let (inside, ids, said) = (Arc::clone(js), Arc::clone(&ids), Arc::clone(&said));
        js.job(names[at]).schedule(move |_| {
            until(|| ids.get().is_some());
            let ids = ids.get().unwrap();
            if let Err(error) = inside.try_wait(ids[(at + 1) % ids.len()]) {
                said.lock().unwrap().push(error);
            }
        })
    });
    let jobs: Vec<_> = jobs.collect();
    ids.set(jobs.clone()).unwrap();
    (jobs, said)
}

/// Godot PR 86587 gives up on these and refuses too much instead; here exactly the waits that can
/// never end are reported. A job that waits for itself.
#[test]
fn a_job_that_waits_for_itself_is_told() {
    with_each(&[0, 1, 2, 8], "waits for itself", |js| {
        let (ids, said) = ring(js, &["ouroboros"]);
        js.wait(ids[0]);
        let said = said.lock().unwrap();
        assert_eq!(said.len(), 1);
        check_report(&said[0], &["ouroboros"]);
    });
}

#[test]
fn jobs_that_wait_for_each_other_are_told() {
    for names in [&["alpha", "beta"][..], &["alpha", "beta", "gamma"]] {
        with_each(&[0, 1, 2, 3, 8], "wait for each other", |js| {
            for _ in 0..20 {
                let (ids, said) = ring(js, names);
                for &id in &ids {
                    js.wait(id);
                }
                let said = said.lock().unwrap();
                assert!(!said.is_empty(), "one has to give in");
                for error in said.iter() {
                    check_report(error, names);
                }
            }
        });
    }
}

/// A wait that has a deadline ends: a wait for that is in no deadlock. (The one with the deadline may be told
/// at once that it waits in vain.)
#[test]
fn who_waits_for_a_wait_with_a_deadline_is_in_no_deadlock() {
    // Each on a thread of its own: a job that is run inside the patient one's wait is buried by it.
    with_each(&[2, 8], "a deadline", |js| {
        let both = Arc::new(Barrier::new(3));
        let (started, inside) = (Arc::clone(&both), Arc::clone(js));
        let other = Arc::new(OnceLock::<JobId>::new());
        let known = Arc::clone(&other);
        let patient = js.job("patient").run(move |_| {
            started.wait();
            until(|| known.get().is_some());
            // For a job that waits for this one.
            inside.wait_timeout(*known.get().unwrap(), Duration::from_millis(20))
        });
        let (started, inside, first) = (Arc::clone(&both), Arc::clone(js), patient.id());
        let waits = js.job("waits").run(move |_| {
            started.wait();
            inside.try_wait(first)
        });
        other.set(waits.id()).unwrap();
        both.wait();
        match patient.wait() {
            Ok(over) => assert!(!over, "it cannot be over before this one is"),
            Err(error) => check_report(&error, &["patient", "waits"]),
        }
        waits.wait().expect("the patient one has ended");
    });
}

/// A job of a scope waits for the job that cannot leave the scope without it.
#[test]
fn a_wait_for_what_waits_for_the_scope_is_told() {
    with_each(&[0, 1, 2, 8], "inside a scope", |js| {
        let (own, inside) = (Arc::new(OnceLock::<JobId>::new()), Arc::clone(js));
        let known = Arc::clone(&own);
        let outer = js.job("outer").run(move |cx| {
            until(|| known.get().is_some());
            let said = Mutex::new(None);
            cx.scope(|scope| {
                let spawned = scope.try_spawn("inner", |_| {
                    *said.lock().unwrap() = Some(inside.try_wait(*known.get().unwrap()));
                });
                spawned.unwrap();
            });
            said.into_inner().unwrap().expect("the inner one ran")
        });
        own.set(outer.id()).unwrap();
        let error = outer.wait().expect_err("it can never end");
        let text = error.to_string();
        assert!(matches!(error, WaitError::Deadlock { .. }), "{text}");
        assert!(text.contains("outer") && text.contains("inner"), "{text}");
    });
}

#[test]
fn an_edge_that_closes_a_cycle_is_refused() {
    with_each(&[0, 1, 2, 8], "edges", |js| {
        let gate = js.event("gate");
        let first = js.job("first").after(gate.id()).schedule(|_| ());
        let second = js.job("second").after(first).schedule(|_| ());
        let third = js.job("third").after(second).schedule(|_| ());
        for (job, after, names) in [
            (first, first, &["first"][..]),
            (first, second, &["first", "second"]),
            (first, third, &["first", "second", "third"]),
            (gate.id(), third, &["gate", "first", "second", "third"]),
        ] {
            let error = js
                .add_dependency(job, after)
                .expect_err("it closes a cycle");
            let GraphError::Cycle { cycle } = &error else {
                panic!("{error}")
            };
            assert_eq!(cycle.len(), names.len(), "{error}");
            for name in names {
                assert!(error.to_string().contains(name), "{error}");
            }
        }
        // The refused edges are not there.
        gate.complete();
        js.wait(third);
        assert!(matches!(
            js.add_dependency(third, first),
            Err(GraphError::TooLate { .. })
        ));
    });
}

/// Two edges that close a cycle together, added at the same time: one is refused, or the waiter is told.
#[test]
fn edges_added_at_the_same_time_are_refused_or_reported() {
    with_each(&[0, 1, 2], "two edges", |js| {
        for _ in 0..100 {
            let gate = js.event("gate");
            let left = js.job("left").after(gate.id()).schedule(|_| ());
            let right = js.job("right").after(gate.id()).schedule(|_| ());
            let both = &Barrier::new(2);
            let add = |job, after| {
                move || {
                    both.wait();
                    js.add_dependency(job, after)
                }
            };
            let added = thread::scope(|threads| {
                let one = threads.spawn(add(left, right));
                let other = threads.spawn(add(right, left));
                [one.join().unwrap(), other.join().unwrap()]
            });
            gate.complete();
            if added.iter().all(Result::is_ok) {
                for id in [left, right] {
                    let error = js.try_wait(id).expect_err("they wait for each other");
                    check_report(&error, &["left", "right"]);
                }
                continue;
            }
            for error in added.into_iter().filter_map(Result::err) {
                assert!(matches!(&error, GraphError::Cycle { .. }), "{error}");
                let text = error.to_string();
                assert!(text.contains("left") && text.contains("right"), "{text}");
            }
            for id in [left, right] {
                js.wait(id);
            }
        }
    });
}
