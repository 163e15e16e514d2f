//! Goal: simulated threads start, end, panic and are joined as the facade says, and facts about the machine
//! are those of the configuration. Method: small programs under every order and some seeds; the effects of a
//! thread are observed through shared words or the report.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as Host};

use event::Nanos;
use paceline_sim::ThreadState;
use paceline_sim::{Machine, Outcome, Sim, SimConfig};
use platform::{
    Atomic, CpuSet, Machine as _, Memory, Ordering, Parker, Platform, Thread, ThreadSpec,
};

use crate::order::{ORDERS, start};

type Word = <Sim as Memory>::AtomicU64;

fn configs() -> impl Iterator<Item = SimConfig> {
    ORDERS
        .into_iter()
        .flat_map(|order| (0..50).map(move |seed| SimConfig::new(seed).with_order(order)))
}

#[test]
fn a_panic_is_handed_out_by_join_and_is_the_outcome() {
    for config in configs() {
        let mut payload = None;
        let report = Sim::run(config, |sim| {
            let bad = start(&sim, || panic!("planted {}", 7));
            let good = start(&sim, || ());
            good.join().unwrap();
            payload = Some(bad.join().unwrap_err());
        });
        assert_eq!(
            paceline_sim::quiet::text_of(&*payload.unwrap()),
            "planted 7"
        );
        let Outcome::Panicked { thread: 1, message } = &report.outcome else {
            panic!("{report}")
        };
        assert!(message.starts_with("planted 7 (at "), "{message}");
        assert_eq!(
            report.threads[1].state,
            ThreadState::Panicked(message.clone())
        );
        assert_eq!(report.threads[2].state, ThreadState::Ended);
    }
}

/// A panic that is caught inside a thread is the program's own business.
#[test]
fn a_caught_panic_is_no_outcome() {
    let report = Sim::run(SimConfig::new(1), |sim| {
        let inner = start(&sim, || {
            let caught = std::panic::catch_unwind(|| panic!("planted"));
            assert!(caught.is_err());
        });
        inner.join().unwrap();
    });
    report.expect_finished();
}

/// Goal: a thread is not switched out while it panics. Method: a destructor on the way writes twice; an
/// observer must never see the state in between, which without the panic it does see.
#[test]
fn a_panicking_thread_is_not_switched_out() {
    struct Twice(Arc<Word>);
    impl Drop for Twice {
        fn drop(&mut self) {
            self.0.store(1, Ordering::Relaxed);
            self.0.store(2, Ordering::Relaxed);
        }
    }
    let between = |panics: bool| {
        let mut between = 0;
        for seed in 0..300 {
            Sim::run(SimConfig::new(seed), |sim| {
                let word = Arc::new(Word::new(0));
                let theirs = word.clone();
                let writer = start(&sim, move || {
                    let _twice = Twice(theirs);
                    assert!(!panics, "planted");
                });
                while word.load(Ordering::Relaxed) == 0 {}
                between += u32::from(word.load(Ordering::Relaxed) == 1);
                let _ = writer.join();
            });
        }
        between
    };
    assert_eq!(between(true), 0);
    assert!(between(false) > 0);
}

#[test]
fn a_panic_goes_before_the_deadlock_it_causes() {
    let report = Sim::run(SimConfig::new(0), |sim| {
        let parker = Arc::new(sim.parker());
        let theirs = parker.clone();
        let waker = start(&sim, move || {
            theirs.unpark();
            panic!("planted");
        });
        parker.park(Nanos::MAX);
        parker.park(Nanos::MAX);
        waker.join().unwrap();
    });
    assert!(
        matches!(report.outcome, Outcome::Panicked { thread: 1, .. }),
        "{report}"
    );
    assert!(
        matches!(report.threads[0].state, ThreadState::Blocked(_)),
        "{report}"
    );
}

/// Goal: `at_exit` runs once, on its thread, after the body, before `join` returns, also after a
/// panic. Method: the word points to a counter; the destructor uses the facade like any code.
#[test]
fn a_word_s_destructor_runs_at_the_end_of_its_thread() {
    struct Tally {
        sim: Sim,
        ended: Word,
    }
    /// # Safety
    /// As `Platform::set_local` demands: once for each word that was set, which is a reference count.
    unsafe fn at_exit(word: *const ()) {
        // SAFETY: each thread below leaks one reference count for this call.
        let tally = unsafe { Arc::from_raw(word.cast::<Tally>()) };
        assert!(tally.sim.local().is_null(), "the word is taken out first");
        tally.sim.charge(Nanos(5));
        tally.ended.fetch_add(1, Ordering::Relaxed);
    }
    for config in configs() {
        let report = Sim::run(config, |sim| {
            let tally = Arc::new(Tally {
                sim: sim.clone(),
                ended: Word::new(0),
            });
            let spawn = |panics: bool| {
                let theirs = tally.clone();
                start(&sim, move || {
                    let sim = theirs.sim.clone();
                    assert!(sim.local().is_null());
                    let pointer = Arc::into_raw(theirs).cast();
                    sim.set_local(pointer, at_exit);
                    assert_eq!(sim.local(), pointer);
                    assert!(!panics, "planted");
                })
            };
            let threads = [spawn(false), spawn(true), spawn(false)];
            let results = threads.map(|thread| thread.join().is_ok());
            assert_eq!(results, [true, false, true]);
            assert_eq!(tally.ended.load(Ordering::Relaxed), 3);
            assert_eq!(Arc::strong_count(&tally), 1);
            assert!(sim.local().is_null(), "every thread has its own word");
        });
        assert!(
            matches!(report.outcome, Outcome::Panicked { thread: 2, .. }),
            "{report}"
        );
        assert_eq!(report.now, Nanos(5));
    }
}

#[test]
fn threads_that_nobody_joins_are_waited_for() {
    let ended = Arc::new(AtomicUsize::new(0));
    let report = Sim::run(SimConfig::new(9), |sim| {
        for _ in 0..10 {
            let (their_sim, ended) = (sim.clone(), ended.clone());
            start(&sim, move || {
                their_sim.charge(Nanos(1));
                ended.fetch_add(1, Host::Relaxed);
            });
        }
    });
    assert_eq!(report.expect_finished().threads.len(), 11);
    assert_eq!(ended.load(Host::Relaxed), 10);
}

#[test]
fn the_thread_limit_is_a_refusal() {
    let config = SimConfig {
        threads_max: 3,
        ..SimConfig::new(0)
    };
    let report = Sim::run(config, |sim| {
        let spawn = || sim.spawn(ThreadSpec::default(), Box::new(|| ()));
        let started = [spawn().unwrap(), spawn().unwrap()];
        let refused = spawn().unwrap_err();
        assert!(refused.to_string().contains("threads_max"), "{refused}");
        for thread in started {
            thread.join().unwrap();
        }
    });
    report.expect_finished();
}

/// Goal: a thread that the policy refuses is not started: `spawn` returns an error with the reason, which is
/// also in the report, and all other threads continue. Method: under unique priorities, a child like its
/// parent, one with a priority of its own, and another one with that, twice; a class that is not asked would
/// run all four.
#[test]
fn what_the_policy_refuses_is_a_refusal() {
    use policy::Attr;

    let config = || SimConfig::on(Machine::ideal(1), "rtos-unique", 1);
    let (started, texts) = (AtomicUsize::new(0), std::sync::Mutex::new(Vec::new()));
    let report = Sim::run(config(), |sim| {
        let named = |name: &str| ThreadSpec {
            name: name.into(),
            ..ThreadSpec::default()
        };
        let of = |priority| Attr {
            priority,
            ..Attr::default()
        };
        let asked = [
            sim.spawn(named("like its parent"), Box::new(|| ())),
            sim.spawn_with(named("first"), of(4), Box::new(|| ())),
            sim.spawn_with(named("second"), of(4), Box::new(|| ())),
            sim.spawn_with(named("third"), of(5), Box::new(|| ())),
        ];
        for answer in asked {
            match answer {
                Ok(thread) => {
                    thread.join().unwrap();
                    started.fetch_add(1, Host::Relaxed);
                }
                Err(refused) => texts.lock().unwrap().push(refused.to_string()),
            }
        }
    });
    let report = report.expect_finished();
    let texts = texts.into_inner().unwrap();
    let why = |name, priority| {
        format!(
            "policy rtos-unique refuses thread \"{name}\": priority {priority} is taken: at most 1 thread \
             may have it, choose another one"
        )
    };
    let expected = [why("like its parent", 0), why("second", 4)];
    assert_eq!(
        texts,
        expected
            .clone()
            .map(|why| format!("cannot start a thread: {why}"))
    );
    assert_eq!(started.into_inner(), 2);
    assert_eq!(report.threads.len(), 3);
    assert_eq!(report.refused.as_ref(), Some(&expected[0]));
    assert!(report.to_string().contains(&expected[0]), "{report}");
    assert_eq!(Sim::run(config(), |_| ()).refused, None);
}

/// Goal: a thread that the policy refuses is known before the scenario runs. Method: two copies of a thread
/// under unique priorities; a program beside threads of its priority; and scenarios without a refusal.
#[test]
fn a_scenario_says_before_whom_the_policy_refuses() {
    let asks = |policy: &str, rest: &str| {
        let head = "about = \"x\"\nmachine = \"ideal-1\"\npolicy = \"any\"\n";
        let text = format!("{head}{rest}");
        let scenario =
            paceline_sim::scenario::Scenario::parse("test", &text).expect("it is a scenario");
        let config = SimConfig::on(Machine::ideal(1), policy, 1);
        scenario.is_admitted(&config).map_err(|why| why.to_string())
    };
    let thread =
        |rest: &str| format!("[[thread]]\nname = \"t\"\n{rest}phases = [{{ work = \"1 ms\" }}]\n");
    let twice = thread("count = 2\npriority = 3\n");
    assert_eq!(asks("rtos", &twice), Ok(()));
    let refused = asks("rtos-unique", &twice).unwrap_err();
    let line = "scenario test: policy rtos-unique refuses thread \"t 1\": priority 3 is taken";
    assert!(refused.starts_with(line), "{refused}");
    assert_eq!(asks("rtos-unique", &thread("priority = 3\n")), Ok(()));
    let refused = asks("rtos-unique", &format!("{}[program]\n", thread(""))).unwrap_err();
    assert!(refused.contains("thread \"main\""), "{refused}");
}

#[test]
fn stacks_are_as_large_as_asked_for() {
    const DEEP: usize = 4 * 1024 * 1024;
    let report = Sim::run(SimConfig::new(0), |sim| {
        let spec = ThreadSpec {
            name: "deep".into(),
            stack_bytes: Some(2 * DEEP),
            ..ThreadSpec::default()
        };
        let body = || {
            let block = [1u8; DEEP];
            assert_eq!(
                std::hint::black_box(block)
                    .iter()
                    .map(|&b| b as usize)
                    .sum::<usize>(),
                DEEP
            );
        };
        sim.spawn(spec, Box::new(body)).unwrap().join().unwrap();
    });
    assert_eq!(report.expect_finished().threads[1].name, "deep");
}

#[test]
fn facts_are_what_the_configuration_says() {
    let config = SimConfig::on(Machine::ideal(3), "random", 0);
    let report = Sim::run(config, |sim| {
        assert_eq!(sim.topology().effective_parallelism(), 3);
        assert_eq!(sim.topology().allowed().len(), 3);
        assert_eq!(sim.current_cpu(), Some(0));
        assert_eq!(sim.thread_id(), 1);
        sim.set_mask(1, &CpuSet::parse("1")).unwrap();
        assert_eq!(sim.current_cpu(), Some(1), "the caller moves at once");
        assert!(sim.set_mask(1, &CpuSet::parse("7")).is_err());
        assert!(sim.set_mask(9, &CpuSet::parse("1")).is_err());
        assert_eq!(sim.fork_epoch(), 0);
        sim.set_fork_epoch(2);
        assert_eq!(sim.clone().fork_epoch(), 2);
    });
    report.expect_finished();
}

/// Goal: before and after a run everything works without a machine. Method: use each sort of object before,
/// inside and after.
#[test]
fn outside_a_run_accesses_are_plain() {
    let word = Arc::new(Word::new(1));
    assert_eq!(word.fetch_add(1, Ordering::AcqRel), 1);
    assert_eq!(
        Sim::spin_until(&word, |value| value == 9, Nanos::MAX),
        2,
        "nobody to wait for"
    );
    let mut kept = None;
    let theirs = word.clone();
    let report = Sim::run(SimConfig::new(0), |sim| {
        theirs.store(3, Ordering::Release);
        let handle = start(&sim, || ());
        let parker = sim.parker();
        parker.unpark();
        sim.charge(Nanos(4));
        kept = Some((sim, handle, parker));
    });
    report.expect_finished();
    let (sim, handle, parker) = kept.unwrap();
    assert_eq!(word.load(Ordering::Acquire), 3);
    assert_eq!(
        (sim.now(), sim.current_cpu(), sim.local()),
        (Nanos(4), None, std::ptr::null())
    );
    parker.park(Nanos::MAX);
    parker.park(Nanos(1));
    assert!(!parker.unpark());
    handle.join().unwrap();
    let refused = sim
        .spawn(ThreadSpec::default(), Box::new(|| ()))
        .unwrap_err();
    assert!(
        refused.to_string().contains("no simulated machine"),
        "{refused}"
    );
}

#[test]
fn a_run_inside_a_run_is_refused() {
    let report = Sim::run(SimConfig::new(0), |_| {
        Sim::run(SimConfig::new(1), |_| ());
    });
    let Outcome::Panicked { thread: 0, message } = &report.outcome else {
        panic!("{report}")
    };
    assert!(message.contains("a run inside a run"), "{message}");
}

/// Goal: objects that a deadlocked run leaves behind are never touched again. Method: a destructor on a
/// stopped stack would be seen.
#[test]
fn stopped_stacks_are_not_unwound() {
    struct Seen(Arc<AtomicUsize>);
    impl Drop for Seen {
        fn drop(&mut self) {
            self.0.fetch_add(1, Host::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let mut handle = None;
    let report = Sim::run(SimConfig::new(0), |sim| {
        let seen = Seen(dropped.clone());
        let parker = sim.parker();
        handle = Some(start(&sim, move || {
            let _seen = seen;
            parker.park(Nanos::MAX);
        }));
    });
    assert_eq!(report.deadlocked().expect("it is a deadlock").len(), 1);
    assert_eq!(dropped.load(Host::Relaxed), 0);
    let left_behind = handle.unwrap().join().unwrap_err();
    assert!(paceline_sim::quiet::text_of(&*left_behind).contains("left behind"));
}

/// Goal: waiting for ever while panicking, where no other thread may run, is reported and ends the process.
/// Method: this test binary again, as a child that does it.
#[test]
fn parking_for_ever_while_panicking_ends_the_process() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "threads::parks_while_panicking",
            "--ignored",
            "--nocapture",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success());
    assert!(said.contains("a panicking thread parks for ever"), "{said}");
}

#[test]
#[ignore = "ends the process; started by the test above"]
fn parks_while_panicking() {
    struct Parks(<Sim as Platform>::Parker);
    impl Drop for Parks {
        fn drop(&mut self) {
            self.0.unpark();
            self.0.park(Nanos::MAX);
            self.0.park(Nanos(1));
            self.0.park(Nanos::MAX);
        }
    }
    Sim::run(SimConfig::new(0), |sim| {
        let _parks = Parks(sim.parker());
        panic!("planted");
    });
}
