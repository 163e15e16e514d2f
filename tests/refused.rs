//! Goal: where the system refuses threads there are as many workers as it starts, a program can see how many
//! and why, and jobs run all the same. A number of workers that was asked for is an error.
//! Method: simulated systems that start so many threads and no more, and whose limit is raised later; and the
//! machine at hand, which has no room for the stacks that it is asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use event::Nanos;
use paceline::{BuildError, Builder, Grain, JobSystem};
use platform::{Memory, Ordering, Platform, RefusalKind, SpawnError, ThreadSpec};
use sim::{Sim, SimConfig};

/// A simulated system that has a limit of threads.
#[derive(Clone)]
struct Limited {
    sim: Sim,
    limit: Arc<Limit>,
}

struct Limit {
    kind: RefusalKind,
    left: AtomicUsize,
    /// How often a thread was refused.
    refused: AtomicUsize,
}

impl Limited {
    fn new(sim: &Sim, kind: RefusalKind, left: usize) -> Limited {
        let limit = Limit {
            kind,
            left: AtomicUsize::new(left),
            refused: AtomicUsize::new(0),
        };
        Limited {
            sim: sim.clone(),
            limit: Arc::new(limit),
        }
    }

    /// How often a thread was refused since this was asked last.
    fn refused(&self) -> usize {
        self.limit.refused.swap(0, Relaxed)
    }

    fn raise(&self, threads: usize) {
        self.limit.left.store(threads, Relaxed);
    }
}

// SAFETY: all of it is the simulated platform's own.
unsafe impl Memory for Limited {
    type AtomicU32 = <Sim as Memory>::AtomicU32;
    type AtomicU64 = <Sim as Memory>::AtomicU64;
    type Cell<T> = <Sim as Memory>::Cell<T>;
    type Lock<T: Send> = <Sim as Memory>::Lock<T>;

    const UNWINDS: bool = Sim::UNWINDS;

    fn fence(order: Ordering) {
        Sim::fence(order);
    }
    fn spin_until(word: &Self::AtomicU64, wanted: impl Fn(u64) -> bool, deadline: Nanos) -> u64 {
        Sim::spin_until(word, wanted, deadline)
    }
}

// SAFETY: all of it is the simulated platform's own; a thread that is refused does not run.
unsafe impl Platform for Limited {
    type Thread = <Sim as Platform>::Thread;

    fn spawn(
        &self,
        spec: ThreadSpec,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Self::Thread, SpawnError> {
        let limit = &*self.limit;
        let may = limit
            .left
            .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        if may.is_ok() {
            return self.sim.spawn(spec, body);
        }
        limit.refused.fetch_add(1, Relaxed);
        Err(SpawnError::new(limit.kind, "this system has no more"))
    }
    testkit::forward_platform!(Sim: |this| this.sim, now parker);
}

/// Runs `test` on a simulated machine of four CPUs.
fn on_four_cpus(test: impl FnOnce(&Sim)) {
    let report = Sim::run(SimConfig::new(1).with_cpus_shown(4), |sim| test(&sim));
    report.expect_finished();
}

/// Some of everything, with results. Three CPUs and more make nothing of it faster or slower.
fn work<P: Platform>(js: &JobSystem<P>) {
    let event = js.event("event");
    let a = js.job("a").after(event.id()).run(|_| 20);
    let b = js.job("b").after(&a).run(|_| 1);
    js.schedule(|_| event.complete());
    assert_eq!(a.wait() + 2 * b.wait(), 22);
    let sum = AtomicUsize::new(0);
    js.parallel_for(0..100, Grain::Items(8), |part, _| {
        sum.fetch_add(part.sum::<usize>(), Relaxed);
    });
    assert_eq!(sum.into_inner(), 4950);
    let (left, right) = js.join(|_| 1, |_| 2);
    assert_eq!((left, right), (1, 2));
}

/// Lets a look at the machine become due, and has it.
fn look(sim: &Sim, js: &JobSystem<Limited>) {
    let before = js.stats().looks;
    sim.charge(Nanos::from_millis(1_010));
    js.flush();
    while js.stats().looks == before {
        sim.sleep_until(sim.time() + Nanos::from_millis(1));
    }
}

/// Goal: a usual job system is made with what there is, works, and says so. Method: limits from none to more
/// than are wanted.
#[test]
fn there_are_as_many_workers_as_can_be_started() {
    for limit in 0..5 {
        on_four_cpus(|sim| {
            let platform = Limited::new(sim, RefusalKind::Exhausted, limit);
            let js = Builder::with_platform(platform.clone()).build().unwrap();
            assert_eq!(js.workers(), limit.min(3));
            work(&js);
            let why = js.explain().join(" ");
            let words = "cannot start a thread: this system has no more.";
            assert_eq!(why.contains(words), limit < 3, "{why}");
            assert_eq!(why.starts_with("No workers: "), limit == 0, "{why}");
            assert_eq!(platform.refused() > 0, limit < 3);
        });
    }
}

/// Goal: workers that were refused come when the system has threads again, one look at the machine later,
/// also where there was no worker. Method: a limit that is raised by one, by nothing, and by all that are
/// missing.
#[test]
fn refused_workers_come_when_they_can() {
    on_four_cpus(|sim| {
        let platform = Limited::new(sim, RefusalKind::Exhausted, 0);
        let js = Builder::with_platform(platform.clone()).build().unwrap();
        for (raised, workers) in [(1, 1), (0, 1), (7, 3), (0, 3)] {
            platform.raise(raised);
            look(sim, &js);
            assert_eq!(js.workers(), workers);
            work(&js);
        }
        assert!(js.explain()[0].starts_with("3 workers: "));
        assert!(platform.refused() > 0);
        look(sim, &js);
        assert_eq!(platform.refused(), 0, "none is missing");
    });
}

/// Goal: a system without threads is asked once and not each second. Method: looks at the machine.
#[test]
fn a_system_without_threads_is_not_asked_again() {
    on_four_cpus(|sim| {
        let platform = Limited::new(sim, RefusalKind::Unsupported, 0);
        let js = Builder::with_platform(platform.clone()).build().unwrap();
        assert_eq!((js.workers(), platform.refused()), (0, 1));
        for _ in 0..3 {
            look(sim, &js);
            work(&js);
        }
        assert_eq!((js.workers(), platform.refused()), (0, 0));
        let frame = js.frame("frame", Duration::from_millis(16));
        js.wait(frame.schedule(|_| ()));
    });
}

/// Goal: a number that was asked for is an error if it cannot be had, when building and when resizing; after
/// that the job system has what was started, and says so. Method: a limit of two, and three and more asked
/// for.
#[test]
fn a_number_that_was_asked_for_is_an_error() {
    on_four_cpus(|sim| {
        let platform = Limited::new(sim, RefusalKind::Exhausted, 2);
        let refused = Builder::with_platform(platform.clone()).workers(3).build();
        let Err(BuildError::Thread(error)) = refused else {
            panic!("three were started");
        };
        assert_eq!(error.kind(), RefusalKind::Exhausted);
        platform.raise(2);
        let js = Builder::with_platform(platform.clone()).workers(2).build();
        let js = js.unwrap();
        assert!(matches!(js.resize(5), Err(BuildError::Thread(_))));
        assert_eq!(js.workers(), 2);
        work(&js);
        let why = js.explain().join(" ");
        assert!(
            why.contains("2 of them at this moment: cannot start"),
            "{why}"
        );
        js.resize(1).unwrap();
        assert_eq!(js.workers(), 1);
        work(&js);
    });
}

/// Goal: settings that no system takes are an error, although no number was asked for: fewer workers would
/// hide the mistake. Method: a system that says so.
#[test]
fn settings_that_are_not_taken_are_an_error() {
    on_four_cpus(|sim| {
        let platform = Limited::new(sim, RefusalKind::Invalid, 0);
        let refused = Builder::with_platform(platform).build();
        assert!(matches!(refused, Err(BuildError::Thread(_))));
    });
}

/// Goal: the same on the machine at hand. Method: workers whose stacks are larger than all its addresses.
#[test]
fn without_room_for_stacks_there_are_no_workers() {
    let huge = || Builder::new().stack_bytes(isize::MAX as usize / 2);
    let js = huge().build().unwrap();
    assert_eq!(js.workers(), 0);
    work(&js);
    let why = js.explain();
    assert!(
        why[0].starts_with("No workers: cannot start a thread: "),
        "{why:?}"
    );
    assert!(matches!(
        huge().workers(1).build(),
        Err(BuildError::Thread(_))
    ));
}
