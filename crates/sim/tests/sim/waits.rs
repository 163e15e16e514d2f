//! Goal: waiting on the simulated platform (tokens, words, locks, time) follows the facade's rules, and a
//! wait that never ends is reported with its object. Method: small programs under many seeds and every order;
//! conditions that hold in each schedule are asserted inside, planted deadlocks are read from the report.

use std::sync::Arc;

use event::Nanos;
use paceline_sim::{On, ThreadState};
use paceline_sim::{Outcome, Sim, SimConfig, SimReport};
use platform::{Atomic, Lock, Machine, Memory, Ordering, Parker, Platform, Poll, Polling, Thread};

use crate::order::{ORDERS, start};

type Word = <Sim as Memory>::AtomicU64;
type SimLock<T> = <Sim as Memory>::Lock<T>;

/// Runs the program under every order and some seeds, without spurious returns.
fn everywhere(program: impl Fn(Sim) + Copy) -> Vec<SimReport> {
    let configs = ORDERS
        .into_iter()
        .flat_map(|order| (0..100).map(move |seed| SimConfig::new(seed).with_order(order)));
    configs.map(|config| Sim::run(config, program)).collect()
}

fn finishes_everywhere(program: impl Fn(Sim) + Copy) -> Vec<SimReport> {
    everywhere(program)
        .into_iter()
        .map(SimReport::expect_finished)
        .collect()
}

#[test]
fn a_parker_holds_one_token() {
    finishes_everywhere(|sim| {
        let parker = Arc::new(sim.parker());
        assert!(!parker.unpark() && !parker.unpark(), "nobody was parked");
        parker.park(Nanos::MAX);
        let (theirs, their_sim) = (parker.clone(), sim.clone());
        let other = start(&sim, move || {
            their_sim.charge(Nanos(50));
            assert!(theirs.unpark(), "the first thread is parked by now");
            assert!(
                !theirs.unpark() || their_sim.now() == Nanos(50),
                "one wake-up is enough"
            );
        });
        parker.park(Nanos(20));
        assert_eq!(sim.now(), Nanos(20), "there was no second token");
        parker.park(Nanos::MAX);
        assert_eq!(sim.now(), Nanos(50));
        other.join().unwrap();
    });
}

#[test]
fn unpark_says_whether_a_thread_had_to_be_woken() {
    let reports = finishes_everywhere(|sim| {
        let (parker, woken) = (Arc::new(sim.parker()), Arc::new(Word::new(0)));
        let (parker2, woken2) = (parker.clone(), woken.clone());
        let other = start(&sim, move || {
            woken2.store(u64::from(parker2.unpark()), Ordering::Relaxed);
        });
        parker.park(Nanos::MAX);
        other.join().unwrap();
        // The report gets it through the clock: 1 if the thread was woken.
        sim.charge(Nanos(woken.load(Ordering::Relaxed)));
    });
    let woken = reports
        .iter()
        .filter(|report| report.now == Nanos(1))
        .count();
    assert!(
        woken > 0 && woken < reports.len(),
        "{woken} of {}",
        reports.len()
    );
}

#[test]
fn spurious_returns_happen_if_they_are_asked_for() {
    let early = |spurious| {
        let mut early = 0;
        for seed in 0..200 {
            let config = SimConfig::new(seed).with_spurious(spurious);
            let report = Sim::run(config, |sim| {
                sim.parker().park(Nanos(10));
                early += u32::from(sim.now() < Nanos(10));
                let word = Word::new(0);
                Sim::spin_until(&word, |value| value == 1, Nanos(20));
                early += u32::from(sim.now() < Nanos(20));
            });
            report.expect_finished();
        }
        early
    };
    assert_eq!(early(false), 0);
    assert!((20..200).contains(&early(true)), "{}", early(true));
}

/// A sleeper that announces itself too late: the waker may look in between. `careful` looks for
/// work once more after the announcement.
fn sleep_and_wake(sim: &Sim, careful: bool) {
    let (work, sleeping) = (Arc::new(Word::new(0)), Arc::new(Word::new(0)));
    let parker = Arc::new(sim.parker());
    let (work2, sleeping2, parker2) = (work.clone(), sleeping.clone(), parker.clone());
    let sleeper = start(sim, move || {
        while work2.load(Ordering::Acquire) == 0 {
            sleeping2.store(1, Ordering::Relaxed);
            if careful && work2.load(Ordering::Acquire) != 0 {
                break;
            }
            parker2.park(Nanos::MAX);
        }
    });
    work.store(1, Ordering::Release);
    if sleeping.load(Ordering::Relaxed) == 1 {
        parker.unpark();
    }
    sleeper.join().unwrap();
}

#[test]
fn a_lost_wake_up_is_a_deadlock_that_names_the_parker() {
    finishes_everywhere(|sim| sleep_and_wake(&sim, true));
    let reports = everywhere(|sim| sleep_and_wake(&sim, false));
    let report = reports
        .iter()
        .find(|report| report.outcome != Outcome::Finished);
    let report = report.expect("the planted bug is found");
    let blocked = report.deadlocked().expect("it is a deadlock");
    assert_eq!(blocked.len(), 2);
    assert_eq!(blocked[0].on, On::Join { thread: 1 });
    let On::Parker { made_at, .. } = blocked[1].on else {
        panic!("{report}")
    };
    assert!(made_at.file().ends_with("waits.rs"), "{made_at}");
    assert_eq!(report.threads[1].state, ThreadState::Blocked(blocked[1].on));
    let text = report.to_string();
    assert!(
        text.contains("deadlock") && text.contains("seed "),
        "{text}"
    );
    assert!(text.contains("waits for the token of parker"), "{text}");
}

#[test]
fn locks_in_two_orders_deadlock_and_in_one_order_do_not() {
    let program = |sim: &Sim, one_order: bool| {
        let (a, b) = (Arc::new(SimLock::new(0)), Arc::new(SimLock::new(0)));
        let (a2, b2) = (a.clone(), b.clone());
        let other = start(sim, move || a2.with(|x| b2.with(|y| (*x += 1, *y += 1))).0);
        if one_order {
            a.with(|x| b.with(|y| (*x += 1, *y += 1)));
        } else {
            b.with(|y| a.with(|x| (*x += 1, *y += 1)));
        }
        other.join().unwrap();
        assert_eq!((a.with(|x| *x), b.with(|y| *y)), (2, 2));
    };
    finishes_everywhere(|sim| program(&sim, true));
    let reports = everywhere(|sim| program(&sim, false));
    let report = reports
        .iter()
        .find(|report| report.outcome != Outcome::Finished);
    let report = report.expect("the planted deadlock is found");
    let blocked = report.deadlocked().expect("it is a deadlock");
    let holders: Vec<_> = blocked
        .iter()
        .map(|blocked| match blocked.on {
            On::Lock { held_by, .. } => (blocked.thread, held_by),
            _ => panic!("{report}"),
        })
        .collect();
    assert_eq!(holders, [(0, 1), (1, 0)]);
}

/// Method: the value is taken out, and put back changed a few switch points later; a second thread
/// inside would see it missing.
#[test]
fn a_lock_excludes_although_its_holder_is_switched_out() {
    finishes_everywhere(|sim| {
        let lock = Arc::new(SimLock::new(Some(0)));
        let add = |sim: Sim, lock: Arc<SimLock<Option<u32>>>| {
            for _ in 0..3 {
                lock.with(|slot| {
                    let value = slot.take().expect("nobody else is inside");
                    sim.now();
                    sim.charge(Nanos(1));
                    *slot = Some(value + 1);
                });
            }
        };
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (their_sim, theirs) = (sim.clone(), lock.clone());
                start(&sim, move || add(their_sim, theirs))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(lock.with(|slot| *slot), Some(9));
        assert_eq!(sim.now(), Nanos(9), "the charges inside did not overlap");
    });
}

#[test]
fn taking_a_lock_twice_is_a_panic_and_gives_it_back() {
    let lock = SimLock::new(1);
    let report = Sim::run(SimConfig::new(0), |_| lock.with(|_| lock.with(|_| ())));
    let Outcome::Panicked { thread: 0, message } = report.outcome else {
        panic!("{report}")
    };
    assert!(message.contains("holds already"), "{message}");
    assert_eq!(lock.with(|value| *value), 1, "usable after the run");
}

#[test]
fn a_lock_that_a_stopped_run_holds_is_an_error_and_not_a_hang() {
    let lock = SimLock::new(1);
    let parker_of = |sim: &Sim| sim.parker();
    let report = Sim::run(SimConfig::new(0), |sim| {
        lock.with(|_| parker_of(&sim).park(Nanos::MAX));
    });
    assert!(report.deadlocked().is_some(), "{report}");
    let tried = paceline_sim::quiet::quietly(|| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lock.with(|value| *value)))
    });
    let said = paceline_sim::quiet::text_of(&*tried.unwrap_err());
    assert!(said.contains("a run that was stopped"), "{said}");
}

#[test]
fn spinning_ends_with_the_write_or_with_the_deadline() {
    finishes_everywhere(|sim| {
        let word = Arc::new(Word::new(0));
        let (theirs, their_sim) = (word.clone(), sim.clone());
        let writer = start(&sim, move || {
            for value in 1..=3 {
                their_sim.charge(Nanos(100));
                theirs.store(value, Ordering::Release);
            }
        });
        assert_eq!(Sim::spin_until(&word, |value| value == 2, Nanos::MAX), 2);
        assert_eq!(sim.now(), Nanos(200), "the write of 1 woke it for nothing");
        let seen = Sim::spin_until(&word, |value| value == 9, Nanos(250));
        assert_eq!(
            (seen, sim.now()),
            (2, Nanos(250)),
            "nobody wrote until the deadline"
        );
        assert_eq!(Sim::spin_until(&word, |value| value == 3, Nanos::MAX), 3);
        writer.join().unwrap();
    });
}

#[test]
fn a_spin_that_nobody_ends_is_a_deadlock_that_names_the_word() {
    let report = Sim::run(SimConfig::new(0), |_| {
        let word = Word::new(0);
        Sim::spin_until(&word, |value| value == 1, Nanos::MAX);
    });
    let blocked = report.deadlocked().expect("nobody else is there");
    let On::Word { id: 1, made_at } = blocked[0].on else {
        panic!("{report}")
    };
    assert!(made_at.file().ends_with("waits.rs"), "{made_at}");
}

#[test]
fn charges_of_different_threads_overlap_and_the_clock_jumps() {
    let reports = finishes_everywhere(|sim| {
        let threads: Vec<_> = [300, 100, 200]
            .map(|work| {
                let their_sim = sim.clone();
                start(&sim, move || {
                    their_sim.charge(Nanos(work));
                    assert_eq!(their_sim.now(), Nanos(work));
                    their_sim.charge(Nanos::ZERO);
                    assert_eq!(their_sim.usage().cpu, Some(Nanos(work)));
                })
            })
            .into();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(sim.usage().cpu, Some(Nanos::ZERO));
        assert_eq!(sim.now(), Nanos(300));
        sim.parker().park(Nanos::from_secs(3600));
    });
    for report in reports {
        assert_eq!(
            report.now,
            Nanos::from_secs(3600),
            "an hour passes in no time"
        );
        assert_eq!(report.threads[1].charged, Nanos(300));
    }
}

/// Goal: a naive loop ends with the write it waits for, however it polls, and lets time pass for threads that
/// work. Method: it looks at two words, of which it polls one, so that it can miss a write to the other; the
/// writer works before each.
#[test]
fn a_naive_loop_ends_under_every_order() {
    for kind in [Poll::Spin, Poll::Pause, Poll::Yield] {
        finishes_everywhere(|sim| {
            let (polled, other) = (Arc::new(Word::new(0)), Arc::new(Word::new(0)));
            let (polled2, other2, sim2) = (polled.clone(), other.clone(), sim.clone());
            let writer = start(&sim, move || {
                sim2.charge(Nanos(1_000));
                polled2.store(1, Ordering::Release);
                sim2.charge(Nanos(1_000));
                other2.store(1, Ordering::Release);
            });
            while polled.load(Ordering::Acquire) + other.load(Ordering::Acquire) < 2 {
                sim.poll(kind, &polled);
            }
            assert!(
                (2_000..2_010).contains(&sim.now().0),
                "{kind:?}: {}",
                sim.now()
            );
            writer.join().unwrap();
        });
    }
}

/// Goal: a loop that looks at the word it polls sees each write at the moment of the write. Method: the
/// reader does nothing else, and asks for the time.
#[test]
fn a_naive_loop_misses_no_write_of_the_word_it_polls() {
    finishes_everywhere(|sim| {
        let word = Arc::new(Word::new(0));
        let (word2, sim2) = (word.clone(), sim.clone());
        let writer = start(&sim, move || {
            for value in 1..4 {
                sim2.charge(Nanos(1_000));
                word2.store(value, Ordering::Release);
            }
        });
        for value in 1..4 {
            while word.load(Ordering::Acquire) < value {
                sim.poll(Poll::Spin, &word);
            }
            assert_eq!(sim.now(), Nanos(1_000 * value));
        }
        writer.join().unwrap();
    });
}
