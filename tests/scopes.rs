//! Goal: the jobs of a scope may borrow, and do all else that jobs do: they depend on each other and on jobs
//! outside, have results, loops and successors, are waited for, fail.
//!
//! Method: random scopes on simulated threads under random orders of steps, where a lost job or wake-up is a
//! deadlock. Each job writes to a place that it borrows, and looks whether all it depends on has ended. And
//! single cases of failures, of what a wait reports, and of scopes that could never end.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::task::Poll;

use event::Nanos;
use paceline::{
    Builder, Context, Event, Grain, GraphError, JobId, JobKind, JobSystem, NewJob, Scope, WaitError,
};
use platform::Platform;
use sim::{Sim, SimConfig};

use crate::support::{Random, delays, each_seed, fail, watched};

/// Begins job `number`: those that it comes after have ended.
fn check_order(ended: &[AtomicBool], after: &[usize], number: usize) {
    for &before in after {
        assert!(ended[before].load(Relaxed), "{number} ran before {before}");
    }
}

/// The maker of one scope's jobs, and of jobs beside it.
struct Maker<'m, 'scope, 'env, P: Platform> {
    cx: &'m Context<'m, P>,
    scope: &'scope Scope<'scope, 'env, P>,
    random: &'m mut Random,
    /// Set by each job at its end.
    ended: &'scope Arc<Vec<AtomicBool>>,
    /// The last job of each number.
    ids: Vec<JobId>,
    gate: Option<Event>,
    gate_id: JobId,
    depth: u32,
}

/// Opens a scope of random jobs, each of which writes to its own cell. Returns their number, with those of
/// the scopes inside.
fn program<P: Platform>(cx: &Context<'_, P>, random: &mut Random, depth: u32) -> u64 {
    let count = 1 + random.below(7);
    let mut cells = vec![0_u64; count];
    let ended = Arc::new((0..count).map(|_| AtomicBool::new(false)).collect());
    let gate = cx.event("gate");
    cx.scope(|scope| {
        let mut maker = Maker {
            cx,
            scope,
            random,
            ended: &ended,
            ids: Vec::new(),
            gate_id: gate.id(),
            gate: Some(gate),
            depth,
        };
        for (number, cell) in cells.iter_mut().enumerate() {
            maker.make(number, cell);
            maker.use_the_jobs_so_far(number == count / 2);
        }
        if let Some(gate) = maker.gate.take() {
            gate.complete();
        }
    });
    for (number, cell) in cells.iter().enumerate() {
        assert!(*cell > 0, "job {number} of {count} did not write its cell");
    }
    cells.iter().sum()
}

impl<'scope, P: Platform> Maker<'_, 'scope, '_, P> {
    fn make(&mut self, number: usize, cell: &'scope mut u64) {
        let after: Vec<usize> = (0..number).filter(|_| self.random.chance(35)).collect();
        let befores: Vec<JobId> = after.iter().map(|&before| self.ids[before]).collect();
        if self.random.chance(20) {
            *cell = 1; // The job is not of the scope, so it may not borrow.
            return self.make_outside(number, after, &befores);
        }
        let mut job = self.scope.job("inside").after_all(befores);
        if self.random.chance(15) {
            job = job.after(self.gate_id);
        }
        if self.random.chance(10) {
            job = job.background();
        }
        let (ended, depth, seed) = (self.ended, self.depth, self.random.next());
        let id = match self.random.below(5) {
            0 => self.make_loop(job, number, after, cell),
            1 => self.make_result(job, number, after, cell),
            2 => self.make_future(job, number, after, cell),
            _ => job.schedule(move |cx| {
                check_order(ended, &after, number);
                *cell = match depth {
                    0 => 1,
                    _ => 1 + program(cx, &mut Random::new(seed), depth - 1),
                };
                ended[number].store(true, Relaxed);
            }),
        };
        self.ids.push(id);
    }

    fn make_outside(&mut self, number: usize, after: Vec<usize>, befores: &[JobId]) {
        let ended = self.ended.clone();
        let job = self.cx.job("outside").after_all(befores);
        self.ids.push(job.schedule(move |cx| {
            check_order(&ended, &after, number);
            cx.work(Nanos::from_micros(3));
            ended[number].store(true, Relaxed);
        }));
    }

    /// A job whose result borrows, which another job takes or none does.
    fn make_result(
        &mut self,
        job: NewJob<'scope, 'scope, P>,
        number: usize,
        after: Vec<usize>,
        cell: &'scope mut u64,
    ) -> JobId {
        let ended = self.ended;
        let result = job.run(move |cx| {
            check_order(ended, &after, number);
            *cell = 1;
            ended[number].store(true, Relaxed);
            cx.work(Nanos::from_micros(2));
            &ended[number]
        });
        let id = result.id();
        if self.random.chance(50) {
            let job = self.scope.job("taker").after(id);
            job.schedule(move |_| assert!(result.wait().load(Relaxed)));
        }
        id
    }

    /// A future that borrows, wakes itself, and awaits some job or other that was made before.
    fn make_future(
        &mut self,
        job: NewJob<'scope, 'scope, P>,
        number: usize,
        after: Vec<usize>,
        cell: &'scope mut u64,
    ) -> JobId {
        let (ended, mut has_yielded) = (self.ended, false);
        let awaits = self.random.chance(50) && number > 0;
        let mut end = awaits.then(|| self.cx.when_done(self.ids[self.random.below(number)]));
        let future = job.run_future(poll_fn(move |task| {
            check_order(ended, &after, number);
            if !std::mem::replace(&mut has_yielded, true) {
                task.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some(end) = &mut end {
                std::task::ready!(Pin::new(end).poll(task)).expect("no job fails");
            }
            *cell = 1;
            ended[number].store(true, Relaxed);
            Poll::Ready(&ended[number])
        }));
        future.id()
    }

    /// A loop, and a job after it that writes the cell.
    fn make_loop(
        &mut self,
        job: NewJob<'scope, 'scope, P>,
        number: usize,
        after: Vec<usize>,
        cell: &'scope mut u64,
    ) -> JobId {
        let (ended, ran) = (self.ended, Arc::new(AtomicU32::new(0)));
        let items = ran.clone();
        let whole = job.schedule_for(0..40, Grain::Items(4), move |part, cx| {
            check_order(ended, &after, number);
            cx.work(Nanos(part.len() as u64 * 300));
            items.fetch_add(part.len() as u32, Relaxed);
        });
        let end = self.scope.job("loop's end").after(whole);
        end.schedule(move |_| {
            assert_eq!(ran.load(Relaxed), 40);
            *cell = 1;
            ended[number].store(true, Relaxed);
        })
    }

    /// Makes jobs that come after them, waits for them, or has the gate opened.
    fn use_the_jobs_so_far(&mut self, opens: bool) {
        if self.random.chance(20) {
            let all = self.scope.combine(&self.ids);
            self.scope.job("after all").after(all).schedule(|_| ());
        }
        if self.gate.is_none() && self.random.chance(20) {
            self.cx.wait(self.scope.combine(&self.ids));
        }
        if opens && let Some(gate) = self.gate.take() {
            match self.random.below(3) {
                0 => gate.complete(),
                1 => _ = self.cx.job("opens").schedule(|_| gate.complete()),
                _ => self.scope.spawn(|_| gate.complete()),
            }
        }
    }
}

/// Goal: every job of a scope runs after those it depends on and before the scope ends; no wake-up is lost.
/// Method: random scopes inside of the jobs of random scopes, no workers to three, opened by a thread of the
/// program and by a job.
#[test]
fn scopes_of_jobs_that_depend() {
    each_seed("scopes::scopes_of_jobs_that_depend", 400, |seed| {
        let config = match seed % 3 {
            0 => delays(seed),
            _ => SimConfig::new(seed),
        };
        let report = Sim::run(config, |sim| {
            let workers = seed as usize % 4;
            let js = Builder::with_platform(sim)
                .workers(workers)
                .build()
                .unwrap();
            let made = js.enter(|cx| program(cx, &mut Random::new(seed), 2));
            assert!(made > 0);
            let inside = js.job("root");
            let made = inside.run(move |cx| program(cx, &mut Random::new(!seed), 1));
            assert!(made.wait() > 0);
        });
        report.expect_finished();
    });
}

/// Goal: as above, on threads. Method: the same programs, one after another, on one job system. (Without
/// workers each wait inside of a job that needs another thread would take a quarter of a second.)
#[test]
fn scopes_on_threads() {
    watched("scopes on threads", || {
        for workers in [1, 3] {
            let js = Builder::new().workers(workers).build().unwrap();
            for seed in 0..if cfg!(miri) { 2 } else { 150 } {
                js.enter(|cx| program(cx, &mut Random::new(seed), 2));
            }
        }
    });
}

/// The text of the panic that comes out of the call.
#[track_caller]
fn panic_of(call: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(call)).expect_err("the call must panic");
    match payload.downcast::<&'static str>() {
        Ok(text) => (*text).to_owned(),
        Err(payload) => *payload.downcast::<String>().expect("a text"),
    }
}

/// With no workers, and with one.
fn each_system(check: impl Fn(&JobSystem)) {
    watched("a scope", || {
        for workers in [0, 1] {
            check(&Builder::new().workers(workers).build().unwrap());
        }
    });
}

/// Goal: a scope raises the first failure of its jobs, with the job's own payload, and the jobs after it do
/// not run.
#[test]
fn a_scope_raises_what_no_wait_has_reported() {
    each_system(|js| {
        let mut ran = [false; 3];
        let [first, second, third] = &mut ran;
        let text = panic_of(|| {
            js.scope(|scope| {
                let a = scope.job("a").schedule(|_| *first = true);
                let b = scope.job("b").after(a).schedule(|_| fail("b failed"));
                let c = scope.job("c").after(b).schedule(|_| *second = true);
                scope.job("d").after(a).after(c).schedule(|_| *third = true);
            });
        });
        assert_eq!((text.as_str(), ran), ("b failed", [true, false, false]));
    });
}

/// Goal: a failure that a wait has reported is not raised again; another one is. Method: two jobs fail, and
/// one of them or both are waited for, by id or by handle.
#[test]
fn a_failure_is_reported_once() {
    each_system(|js| {
        for (by_handle, both) in [(false, false), (false, true), (true, false), (true, true)] {
            let scope = || {
                js.scope(|scope| {
                    let a = scope.job("a").run(|_| fail("a failed"));
                    let b = scope.job("b").schedule(|_| fail("b failed"));
                    let error = if by_handle {
                        a.try_wait().unwrap_err()
                    } else {
                        js.try_wait(a.id()).unwrap_err()
                    };
                    assert!(matches!(error, WaitError::Panicked { .. }), "{error}");
                    if both {
                        js.try_wait(b).unwrap_err();
                    }
                });
            };
            if both {
                scope();
            } else {
                assert_eq!(panic_of(scope), "b failed");
            }
        }
    });
}

/// Goal: a job of a scope that depends on one outside does not run if that one fails, and the scope says so.
/// The scope waits for the job outside, and runs it where there is no other thread. Method: the job outside
/// fails before the scope, or while it is open.
#[test]
fn failures_outside_of_a_scope() {
    each_system(|js| {
        for late in [false, true] {
            let gate = js.event("gate");
            let job = js.job("outside").after(&gate);
            let outside = job.schedule(|_| fail("outside failed"));
            let mut gate = Some(gate);
            if !late && let Some(gate) = gate.take() {
                gate.complete();
                assert!(js.try_wait(outside).is_err());
            }
            let mut ran = false;
            let text = panic_of(|| {
                js.scope(|scope| {
                    scope.job("inside").after(outside).schedule(|_| ran = true);
                    if let Some(gate) = gate.take() {
                        gate.complete();
                    }
                });
            });
            assert!(!ran);
            let cancelled = "was cancelled, because 'outside' (";
            assert!(
                text.starts_with("job 'inside' (") && text.contains(cancelled),
                "{text}"
            );
        }
    });
}

/// Goal: a scope whose jobs wait for the job that opened it ends, and names the cycle; what the jobs borrow
/// was dropped by then. The job system goes on. Method: by an edge to that job, directly, through a
/// combination, and by a late edge.
#[test]
fn a_scope_that_waits_for_itself() {
    each_system(|js| {
        for way in 0..3 {
            let me = Arc::new(std::sync::OnceLock::new());
            let whose = me.clone();
            let start = js.event("start");
            let borrowed = Arc::new(());
            let kept = borrowed.clone();
            let opener = js.job("opener").after(&start).schedule(move |cx| {
                let me: JobId = *whose.get().expect("it was set before the start");
                cx.scope(|scope| {
                    let held = &kept;
                    let hold = move |_: &Context<'_>| drop(held.clone());
                    let job = scope.job("inside");
                    match way {
                        0 => _ = job.after(me).schedule(hold),
                        1 => _ = job.after(scope.combine([me])).schedule(hold),
                        _ => {
                            let gate = scope.event("gate");
                            let late = job.after(&gate).schedule(hold);
                            cx.add_dependency(late, me).expect("it has not started");
                            gate.complete();
                        }
                    }
                });
            });
            me.set(opener).expect("it is set once");
            start.complete();
            let error = js.try_wait(opener).unwrap_err().to_string();
            let cycle = "this wait can never end: 'opener' (";
            assert!(error.contains(cycle), "{error}");
            assert_eq!(
                Arc::strong_count(&borrowed),
                1,
                "the body of the opener is gone"
            );
            let after = js.job("after it").run(|cx| {
                let mut sum = 0;
                cx.scope(|scope| _ = scope.job("more").schedule(|_| sum += 1));
                sum
            });
            assert_eq!(after.wait(), 1);
        }
    });
}

/// Goal: a scope ends when its last job was ended by a thread that runs nothing and goes away. Method: such a
/// thread drops the event that a job of the scope waits for, or adds an edge from a job that has failed.
#[test]
fn jobs_of_a_scope_that_end_elsewhere() {
    each_system(|js| {
        let failed = js.schedule(|_| fail("failed before"));
        assert!(js.try_wait(failed).is_err());
        for by_edge in [false, true] {
            let text = panic_of(|| {
                std::thread::scope(|threads| {
                    js.scope(|scope| {
                        let gate = scope.event("gate");
                        let job = scope.job("inside").after(&gate).schedule(|_| ());
                        threads.spawn(move || {
                            if by_edge {
                                js.add_dependency(job, failed).expect("the gate is shut");
                                gate.complete();
                            } else {
                                drop(gate);
                            }
                        });
                    });
                });
            });
            assert!(text.contains("was cancelled, because "), "{text}");
        }
    });
}

/// Goal: jobs that are cancelled by a failure in their scope that a wait has reported are no reason for the
/// scope to fail.
#[test]
fn what_follows_from_a_reported_failure_is_reported() {
    each_system(|js| {
        let mut ran = false;
        js.scope(|scope| {
            let load = scope.job("load").run(|_| fail("no such file"));
            scope.job("show").after(&load).schedule(|_| ran = true);
            assert!(load.try_wait().is_err());
        });
        assert!(!ran);
    });
}

/// Goal: results that nothing takes are dropped before the scope ends. Method: results that count their
/// drops in a borrowed place; handles that are dropped before, kept to the end, or used.
#[test]
fn results_that_borrow() {
    struct Counts<'a>(&'a AtomicU32);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    each_system(|js| {
        for round in 0..100 {
            let dropped = AtomicU32::new(0);
            js.scope(|scope| {
                let make = || scope.job("make").run(|_| Counts(&dropped));
                drop(make());
                let (kept, used) = (make(), make());
                if round % 2 == 0 {
                    drop(used.wait());
                }
                scope.spawn(move |_| drop(kept));
            });
            assert_eq!(dropped.load(Relaxed), 3);
        }
    });
}

/// Goal: jobs outside of a scope may depend on its jobs, and their ids are names for ever.
#[test]
fn jobs_after_a_scope() {
    each_system(|js| {
        let mut number = 0;
        let (inside, after) = js.scope(|scope| {
            let inside = scope.job("inside").schedule(|_| number = 1);
            (inside, js.job("after").after(inside).run(|_| 2))
        });
        assert_eq!((number, after.wait()), (1, 2));
        assert!(js.is_done(inside));
        js.wait(js.job("later").after(inside).schedule(|_| ()));
    });
}

/// Goal: a wait for a scope runs what the scope's jobs depend on outside of it, also if that becomes ready
/// while the thread is parked. Method: the only worker is busy until the scope is over. The jobs outside are
/// ready before, or are released by another thread once main waits; the edge is there from the start, or
/// comes late.
#[test]
fn a_wait_for_a_scope_helps_outside_of_it() {
    watched("a wait for a scope helps outside of it", || {
        let js = Builder::new().workers(1).build().unwrap();
        for (parked, late) in [(false, false), (false, true), (true, false), (true, true)] {
            let is_over = Arc::new(AtomicBool::new(false));
            let (begun, ends) = (js.event("begun"), is_over.clone());
            let begins = begun.id();
            let busy = js.schedule(move |_| {
                begun.complete();
                until(|| ends.load(Relaxed));
            });
            js.wait(begins);
            let start = js.event("start");
            let outside = js.job("outside").after(&start).schedule(|_| ());
            let mut ran = false;
            std::thread::scope(|threads| {
                js.scope(|scope| {
                    let gate = scope.event("gate");
                    let job = scope.job("inside").after(&gate);
                    if late {
                        let inside = job.schedule(|_| ran = true);
                        let added = js.add_dependency(inside, outside);
                        added.expect("it waits for the gate");
                    } else {
                        job.after(outside).schedule(|_| ran = true);
                    }
                    gate.complete();
                    let (js, before) = (&js, js.stats().parks);
                    let release = move || {
                        until(|| !parked || js.stats().parks > before);
                        start.complete();
                    };
                    if parked {
                        threads.spawn(release);
                    } else {
                        release();
                    }
                });
            });
            assert!(ran);
            is_over.store(true, Relaxed);
            js.wait(busy);
        }
    });
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

/// Goal: a scope may stay open for ever, whatever its jobs depend on. Method: many rounds of jobs after jobs
/// outside, in one scope; the memory for links does not grow after the first rounds.
#[test]
fn an_open_scope_does_not_grow() {
    let js = Builder::new().workers(0).max_jobs(256).build().unwrap();
    let sum = AtomicU32::new(0);
    js.scope(|scope| {
        for _ in 0..20_000 {
            let befores: Vec<JobId> = (0..20)
                .map(|_| js.job("outside").schedule(|_| ()))
                .collect();
            for pair in befores.chunks(2) {
                let job = scope.job("inside").after_all(pair);
                let job = job.schedule(|_| _ = sum.fetch_add(1, Relaxed));
                js.wait(job);
            }
        }
    });
    assert_eq!(sum.into_inner(), 200_000);
}

/// Goal: a scope cannot be made to wait for what waits for it, by an id that a report names; it would never
/// end. Method: from inside of a job that opens a scope, a dependency of the scope's on a job after that one;
/// the same outside of jobs.
#[test]
fn a_scope_has_begun_when_its_id_is_known() {
    let js = Builder::new().workers(1).build().unwrap();
    let refuse = |js: &JobSystem, after: JobId| {
        let jobs = js.report().jobs;
        let mut scopes = jobs.iter().filter(|job| job.kind == JobKind::Scope);
        let scope = scopes.next().expect("one is open").id;
        let refused = js.add_dependency(scope, after);
        assert!(
            matches!(refused, Err(GraphError::TooLate { .. })),
            "{refused:?}"
        );
    };
    watched("scopes wait for nothing", || {
        let gate = js.event("gate");
        let (opened, is_open) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel();
        let outer = js.job("outer").schedule(move |cx| {
            cx.scope(|scope| {
                scope.spawn(|_| ());
                opened.send(()).expect("main waits");
                goes_on.recv().expect("main says so");
            });
        });
        let after = js.job("after").after(outer).after(&gate).schedule(|_| ());
        js.flush();
        is_open.recv().expect("the job opens a scope");
        refuse(&js, after);
        go_on.send(()).expect("the job waits");
        js.wait(outer);
        js.scope(|scope| {
            scope.spawn(|_| ());
            refuse(&js, after);
        });
        gate.complete();
        js.wait(after);
    });
}
