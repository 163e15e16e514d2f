//! Hooks, sinks, wakers and payloads that panic, or that wait for the job they are told about.
//!
//! Once a hook that panicked at the start of a worker left a worker that was counted and did not work. One
//! that panicked at its end, or a payload that did so when it was dropped, made the end of the job system
//! panic. A hook that waited for the job it was told about waited for ever.

use super::*;

use std::future::Future;
use std::sync::{OnceLock, Weak};
use std::task::{Context as Task, Poll, Wake, Waker};

use event::{Event, Sink};
use paceline::{Grain, Job, WaitError};

use crate::support::ledger::Ledger;

/// Builds a job system with each of [`FEW`] numbers of workers, and checks that all of them work, before and
/// after workers were sent home and came back, and that it ends.
fn works(what: &str, settings: impl Fn(Builder) -> Builder) {
    for workers in FEW {
        watched(&format!("{what}, {workers} workers"), || {
            for _ in 0..5 {
                let js = settings(small(workers)).build();
                let js = js.expect("threads can be started");
                all_workers_work(&js);
                js.resize(0).expect("fewer is always possible");
                js.resize(workers).expect("as many as before");
                all_workers_work(&js);
                assert_eq!(js.workers(), workers);
                ends_well(js);
            }
        });
    }
}

/// Goal: the hook that is called when a worker starts may panic; the worker works. Method: it always does.
#[test]
fn the_first_hook_of_a_thread_panics() {
    let calls = Count::default();
    works("a hook at the start", |builder| {
        let calls = calls.clone();
        builder.on_thread_start(move |_| {
            calls.up();
            fail("at the start")
        })
    });
    assert!(calls.get() >= 5 * 3, "the hook is called");
}

/// Goal: the hook that is called when a worker ends may panic; another one can have its place, and the job
/// system ends. Method: it always does.
#[test]
fn the_last_hook_of_a_thread_panics() {
    let calls = Count::default();
    works("a hook at the end", |builder| {
        let calls = calls.clone();
        builder.on_thread_stop(move |_| {
            calls.up();
            fail("at the end")
        })
    });
    assert!(calls.get() >= 5 * 3, "the hook is called");
}

/// Goal: the hook that names threads may panic, and the name may have any characters; the worker has the
/// usual name then, or one without what no name can have. Method: workers say their names.
#[test]
fn a_hook_that_gives_no_name() {
    watched("no names", || {
        let js = small(2).thread_name(|_| fail("no name"));
        let js = js.build().expect("threads can be started");
        let named = js.job("named").run(|cx| {
            let name = thread::current().name().map(str::to_owned);
            (name, format!("paceline {}", cx.worker()))
        });
        let_run(&js, &[named.id()]);
        let (name, usual) = named.wait();
        assert_eq!(name.as_deref(), Some(usual.as_str()));
        ends_well(js);
        works("a name with a zero", |builder| {
            builder.thread_name(|slot| format!("a\0b {slot}"))
        });
    });
}

/// The only worker waits for an event that something on a spare worker completes.
fn needs_a_spare(js: &Arc<JobSystem>) {
    let (event, begun) = (js.event("event"), Flag::default());
    let (id, begins, theirs) = (event.id(), begun.clone(), Arc::clone(js));
    let waits = js.schedule(move |_| {
        begins.raise();
        theirs.try_wait(id).expect("it is completed");
    });
    js.flush();
    begun.wait();
    let completes = js.schedule(move |_| event.complete());
    let_run(js, &[waits, completes]);
}

/// Goal: a panic at the end of a spare worker is not raised where the next one is started, which may be in
/// the middle of a wait of a scope. Method: each spare's last hook panics, and spares come and go.
#[test]
fn the_last_hook_of_spares_panics() {
    watched("spares with hooks", || {
        let js = small(1).on_thread_stop(|_| fail("at the end"));
        let js = Arc::new(js.build().expect("threads can be started"));
        for _ in 0..20 {
            needs_a_spare(&js);
            all_workers_work(&js);
        }
        until(|| Arc::strong_count(&js) == 1);
        ends_well(Arc::into_inner(js).expect("no job keeps it"));
    });
}

/// Goal: a panic that nothing waits for may have a payload that panics when it is dropped: when the job
/// system ends, or when there are too many of them to be remembered. Method: more such panics than that.
#[test]
fn payloads_panic_at_their_end() {
    for workers in FEW {
        watched(&format!("payloads, {workers} workers"), || {
            let (js, ledger) = (system(workers), Arc::new(Ledger::default()));
            for _ in 0..50 {
                let failing: Vec<_> = (0..100)
                    .map(|_| {
                        let bomb = Bomb::new(ledger.token());
                        js.job("fails").schedule(|_| bomb.throw())
                    })
                    .collect();
                let_run(&js, &failing);
            }
            all_workers_work(&js);
            ends_well(js);
            ledger.check_each_dropped_once(5_000);
        });
    }
}

/// A hook that needs the job system it belongs to.
type Home = Arc<OnceLock<Weak<JobSystem>>>;

/// Goal: the hook for panics that nothing waits for may wait for the job that it is told about: that is
/// over, and the wait says how. Method: by its id, which the hook takes from where main left it.
#[test]
fn the_hook_waits_for_the_job_it_is_told_about() {
    for workers in FEW {
        watched(&format!("a hook that waits, {workers} workers"), || {
            let home = Home::default();
            let (failed, heard) = (Arc::new(OnceLock::<JobId>::new()), Count::default());
            let (at_home, told, hears) = (home.clone(), failed.clone(), heard.clone());
            let js = small(workers).on_unwaited_panic(move |panic| {
                assert_eq!(panic.label.name, "fails");
                let js = at_home.get().and_then(Weak::upgrade).expect("it lives");
                let id = *told.get().expect("known before it can run");
                assert!(js.is_done(id), "its job is over");
                match js.try_wait(id) {
                    Err(WaitError::Panicked { .. }) => _ = hears.up(),
                    other => panic!("{other:?}"),
                }
            });
            let js = Arc::new(js.build().expect("threads can be started"));
            home.set(Arc::downgrade(&js)).expect("set once");
            let gate = js.event("gate");
            let id = js.job("fails").after(gate.id()).schedule(|_| fail("boom"));
            failed.set(id).expect("set once");
            gate.complete();
            let_run(&js, &[id]);
            until(|| heard.get() == 1 && Arc::strong_count(&js) == 1);
            all_workers_work(&js);
            ends_well(Arc::into_inner(js).expect("the hook is through"));
            assert_eq!(heard.get(), 1, "the hook is called once");
        });
    }
}

/// Goal: the hook may panic, with any payload; the job is over all the same. Method: a payload that panics
/// when it is dropped.
#[test]
fn the_hook_for_panics_panics() {
    for workers in FEW {
        watched(&format!("a hook that panics, {workers} workers"), || {
            let ledger = Arc::new(Ledger::default());
            let theirs = ledger.clone();
            let js = small(workers);
            let js = js.on_unwaited_panic(move |_| Bomb::new(theirs.token()).throw());
            let js = js.build().expect("threads can be started");
            for _ in 0..10 {
                let fails = js.job("fails").schedule(|_| fail("boom"));
                let next = js.job("next").after(fails).schedule(|_| ());
                let_run(&js, &[fails, next]);
            }
            all_workers_work(&js);
            ends_well(js);
            ledger.check_each_dropped_once(10);
        });
    }
}

/// Panics at each event; now and then with a payload that panics when it is dropped.
struct Full {
    ledger: Arc<Ledger>,
    events: Count,
}

impl Full {
    fn fail(&self) -> ! {
        match self.events.up() % 64 {
            0 => Bomb::new(self.ledger.token()).throw(),
            _ => fail("no room"),
        }
    }
}

impl Sink for Full {
    fn record(&self, _: &Event) {
        self.fail();
    }

    fn slot_taken(&self, _: u32) {
        self.fail();
    }
}

/// Goal: a sink may panic at each event, and nothing else changes. Method: scopes, joins, loops,
/// dependencies, panics, waits and changes of the number of workers, all of which are counted.
#[test]
fn a_sink_that_panics_at_each_event() {
    for workers in FEW {
        watched(&format!("a full sink, {workers} workers"), || {
            let ledger = Arc::new(Ledger::default());
            let sink = Arc::new(Full {
                ledger: ledger.clone(),
                events: Count::default(),
            });
            let js = small(workers).sink(sink.clone()).build();
            let js = js.expect("threads can be started");
            for round in 0..20 {
                with_a_full_sink(&js);
                js.resize((workers + round) % (workers + 1)).expect("few");
            }
            js.resize(workers).expect("few");
            all_workers_work(&js);
            ends_well(js);
            assert!(sink.events.get() > 300, "{} events", sink.events.get());
            drop(sink);
            ledger.check_each_dropped_once(4);
        });
    }
}

fn with_a_full_sink(js: &JobSystem) {
    let ran = Count::default();
    js.scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|cx| {
                cx.join(|_| ran.up(), |_| ran.up());
                cx.parallel_for(0..10, Grain::Items(1), |part, _| {
                    part.for_each(|_| _ = ran.up())
                });
            });
        }
    });
    assert_eq!(ran.get(), 10 * 12);
    let gate = js.event("gate");
    let first = js.job("first").after(gate.id()).run(|_| 1);
    let second = js.job("second").after(first.id());
    let second = second.schedule_for(0..10, Grain::Items(1), |_, _| ());
    gate.complete();
    js.try_wait(second).expect("it ends well");
    assert_eq!(first.wait(), 1);
    let fails = js.job("fails").run(|_| fail("boom"));
    let next = js.job("next").after(fails.id()).run(|_| ());
    assert!(matches!(next.try_wait(), Err(WaitError::Cancelled { .. })));
    assert!(matches!(fails.try_wait(), Err(WaitError::Panicked { .. })));
}

/// A waker that panics when it is called, and its last owner when it is dropped.
struct Grumpy {
    calls: Count,
    _bomb: Bomb,
}

impl Wake for Grumpy {
    fn wake(self: Arc<Grumpy>) {
        self.calls.up();
        // The caller's share goes when this unwinds.
        fail("not now");
    }

    fn wake_by_ref(self: &Arc<Grumpy>) {
        self.calls.up();
        fail("not now");
    }
}

fn is_pending<T>(job: &mut Job<T>, waker: &Waker) -> bool {
    let mut task = Task::from_waker(waker);
    let poll = std::pin::Pin::new(job).poll(&mut task);
    matches!(poll, Poll::Pending)
}

/// Goal: the waker of a future may panic when it is called and when it is dropped; the job is over all the
/// same, and the other ones that wait for it are told. Method: several futures' wakers of that sort at the
/// same job's successors, of which some handles are dropped before.
#[test]
fn wakers_panic() {
    for workers in FEW {
        watched(&format!("wakers, {workers} workers"), || {
            let (js, ledger, calls) = (
                system(workers),
                Arc::new(Ledger::default()),
                Count::default(),
            );
            for _ in 0..5 {
                let gate = js.event("gate");
                let mut jobs: Vec<Job<()>> = (0..6)
                    .map(|_| js.job("awaited").after(gate.id()).run(|_| ()))
                    .collect();
                for job in &mut jobs {
                    let waker = Waker::from(Arc::new(Grumpy {
                        calls: calls.clone(),
                        _bomb: Bomb::new(ledger.token()),
                    }));
                    assert!(is_pending(job, &waker));
                    // The clone that the runtime keeps is the last one from here on.
                }
                let dropped = jobs.split_off(3);
                let gone = catch_unwind(AssertUnwindSafe(|| drop(dropped)));
                _ = gone; // The panic may or may not reach the thread that drops the handle.
                let ids: Vec<_> = jobs.iter().map(Job::id).collect();
                let next = js.job("next").after_all(&ids).schedule(|_| ());
                gate.complete();
                let_run(&js, &[next]);
                jobs.into_iter().for_each(Job::wait);
            }
            all_workers_work(&js);
            ends_well(js);
            assert_eq!(calls.get(), 15, "wakers that were called");
            ledger.check_each_dropped_once(30);
        });
    }
}
