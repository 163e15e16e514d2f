//! Tests of the three job systems: every frame equals a serial one, on the machine at hand and on
//! simulated threads in thousands of orders, which also finds a wake-up that is lost; and of their
//! parts.

use std::collections::VecDeque;

use event::Nanos;
use platform::{Lock, Memory, Os, Poll, Polling};
use proptest::prelude::*;
use sim::machine::{KernelSpec, LineCosts};
use sim::{Machine, Order, Sim, SimConfig, SimReport};

use super::*;
use crate::graph::{About, Generator, Kind, Node};
use ring::Ring;
use semaphore::Semaphore;
use stack::Stack;

const ORDERS: [Order; 3] = [
    Order::Random,
    Order::Pct { depth: 2 },
    Order::Pct { depth: 4 },
];

fn generated(seed: u64, jobs: u32, pieces: u32, piece: Nanos) -> JobGraph {
    let generator = Generator {
        seed,
        jobs,
        pieces: 1..=pieces,
        deps: 0..=4,
        sync_every: 7,
        piece,
        ..Generator::default()
    };
    generator.generate().unwrap()
}

/// Goal: names on the command line mean the job systems. Method: there and back.
#[test]
fn names_are_those_of_the_issue() {
    let names = BaselineKind::ALL.map(BaselineKind::name);
    assert_eq!(names, ["unity-2017.3", "unity-2021.3", "unity-2022.2"]);
    for kind in BaselineKind::ALL {
        assert_eq!(BaselineKind::named(&kind.to_string()), Some(kind));
    }
    assert_eq!(BaselineKind::named("unity-2018.1"), None);
}

/// Goal: every edge and sync point is kept on real threads, frame after frame. Method: source 001's
/// frame at full size with pieces that take no time (the harshest), several seeds and numbers of
/// workers, more than there are CPUs included; each checksum is that of a serial run.
#[test]
fn frames_on_the_machine_at_hand_equal_serial_ones() {
    for kind in BaselineKind::ALL {
        for workers in [0, 1, 2, 4] {
            for seed in 1..4 {
                let graph = Generator {
                    seed,
                    piece: Nanos::ZERO,
                    ..Generator::default()
                };
                let graph = graph.generate().unwrap();
                let mut scene = BaselineScene::new(kind, graph, Os, workers, Busy::NONE).unwrap();
                for _ in 0..4 {
                    scene.run();
                    scene.verify().unwrap();
                }
            }
        }
    }
}

/// Goal: however the source is read, every job is run. Method: each reading of each job system, on simulated
/// threads and at hand, with and without workers; checksums are those of a serial run.
#[test]
fn every_reading_runs_every_job() {
    for kind in BaselineKind::ALL {
        for (batched, by_piece) in [(false, true), (true, false), (true, true)] {
            let reading = BaselineReading {
                batched,
                by_piece,
                ..BaselineReading::default()
            };
            for (seed, workers) in [(1, 0), (2, 1), (3, 3), (4, 7)] {
                let graph = || generated(seed, 60, 40, Nanos(100));
                let simulated = SimConfig::new(seed);
                let report = Sim::run(simulated, |sim| {
                    let scene =
                        BaselineScene::with(reading, kind, graph(), sim, workers, Busy::NONE);
                    let mut scene = scene.unwrap();
                    for _ in 0..2 {
                        scene.run();
                        scene.verify().unwrap();
                    }
                });
                report.expect_finished();
                let scene = BaselineScene::with(reading, kind, graph(), Os, workers, Busy::NONE);
                let mut scene = scene.unwrap();
                scene.run();
                scene.verify().unwrap();
            }
        }
    }
}

/// Goal: bodies compute and the measured graph of a build, with its long chains, runs. Method: two frames
/// of it per job system.
#[test]
fn a_measured_graph_runs() {
    for kind in BaselineKind::ALL {
        let graph = crate::graph::named("gitoxide-build").unwrap();
        let mut scene = BaselineScene::new(kind, graph, Os, 2, Busy::calibrate(&Os)).unwrap();
        assert_eq!(scene.kind(), kind);
        for _ in 0..2 {
            scene.run();
            scene.verify().unwrap();
        }
    }
}

/// Goal: a frame that was not run is not taken for a correct one, and a scene without frames ends its
/// threads. Method: verify before the first frame.
#[test]
fn a_frame_that_was_not_run_is_wrong() {
    for kind in BaselineKind::ALL {
        let graph = generated(1, 9, 3, Nanos::ZERO);
        let scene = BaselineScene::new(kind, graph, Os, 2, Busy::NONE).unwrap();
        assert_eq!(scene.verify().unwrap_err().frame, 0);
    }
}

/// Two frames of a small graph on simulated threads.
fn simulate(kind: BaselineKind, config: SimConfig, workers: usize) -> SimReport {
    let seed = config.seed;
    // Every other graph has bodies that take time, so that others run meanwhile.
    let graph = generated(seed, 22, 5, Nanos((seed % 2) * 700));
    let work = graph.measure().work;
    let report = Sim::run(config, |sim| {
        let mut scene = BaselineScene::new(kind, graph, sim, workers, Busy::NONE).unwrap();
        for _ in 0..2 {
            scene.run();
            scene.verify().unwrap();
        }
    });
    let report = report.expect_finished();
    let charged: u64 = report.threads.iter().map(|thread| thread.charged.0).sum();
    assert_eq!((report.threads.len(), charged), (workers + 1, 2 * work.0));
    report
}

/// Runs a job system under every order and many seeds, each a graph of its own.
fn explore(kind: BaselineKind) {
    let mut schedules = std::collections::BTreeSet::new();
    let mut runs = 0;
    for order in ORDERS {
        for workers in [0, 1, 2, 4] {
            for seed in 0..300 {
                let config = SimConfig::new(seed)
                    .with_order(order)
                    .with_spurious(seed % 3 == 0);
                let report = simulate(kind, config.clone(), workers);
                if seed < 5 {
                    assert_eq!(report, simulate(kind, config, workers), "not repeatable");
                }
                runs += 1;
                schedules.insert(report.schedule_hash);
            }
        }
    }
    assert!(
        schedules.len() * 10 > runs * 7,
        "{} of {runs}",
        schedules.len()
    );
}

/// Goal: no order of steps breaks an edge, loses a wake-up, hangs or leaves a thread behind. Method: random
/// and PCT orders, 0 to 4 workers, 300 graphs each; checksums, the end of all threads, and the charges; some
/// seeds twice.
#[test]
fn no_order_of_steps_breaks_2017_3() {
    explore(BaselineKind::Unity2017_3);
}

/// As for 2017.3.
#[test]
fn no_order_of_steps_breaks_2021_3() {
    explore(BaselineKind::Unity2021_3);
}

/// As for 2017.3.
#[test]
fn no_order_of_steps_breaks_2022_2() {
    explore(BaselineKind::Unity2022_2);
}

fn node(label: &str, pieces: u32, deps: &[u32]) -> Node {
    Node {
        label: label.to_owned(),
        kind: match pieces {
            0 => Kind::Single,
            pieces => Kind::Parallel { pieces },
        },
        cost: Nanos(1_000),
        deps: deps.to_vec(),
    }
}

/// Goal: jobs that jobs schedule are all run, each after the one that schedules it; no wake-up is lost and no
/// frame runs into the next, in any order of steps. Method: trees of every number of children, on simulated
/// threads and at hand; three frames, whose checksums are those of a serial run.
#[test]
fn jobs_that_jobs_schedule_are_run() {
    let ways = [JobsBySystem::ByJobs, JobsBySystem::ByJobsToMain];
    for (kind, scheduled) in BaselineKind::ALL
        .into_iter()
        .flat_map(|kind| ways.map(|way| (kind, way)))
    {
        let reading = BaselineReading {
            scheduled,
            ..BaselineReading::default()
        };
        for seed in 0..150 {
            let (children, workers) = (1 + seed as u32 % 5, seed as usize % 4);
            let tree = || JobGraph::tree(24, children, Nanos(seed % 2 * 300)).unwrap();
            for order in ORDERS {
                let config = SimConfig::new(seed)
                    .with_order(order)
                    .with_spurious(seed % 3 == 0);
                let report = Sim::run(config, |sim| {
                    let scene =
                        BaselineScene::with(reading, kind, tree(), sim, workers, Busy::NONE);
                    let mut scene = scene.unwrap();
                    for _ in 0..3 {
                        scene.run();
                        scene.verify().unwrap();
                    }
                });
                report.expect_finished();
            }
            if seed < 8 {
                let scene = BaselineScene::with(reading, kind, tree(), Os, workers, Busy::NONE);
                let mut scene = scene.unwrap();
                for _ in 0..20 {
                    scene.run();
                    scene.verify().unwrap();
                }
            }
        }
    }
}

/// Goal: in 2022.2 a worker's jobs go into its own queue, or into the main thread's if it is asked for.
/// Method: the job system without threads: worker 1 runs the root of a tree.
#[test]
fn a_worker_schedules_into_its_own_queue() {
    let queues = |scheduled| {
        let graph = JobGraph::tree(3, 2, Nanos::ZERO).unwrap();
        let bodies = Arc::new(Bodies::new(graph, Busy::NONE));
        let system = Stealing::new(Common::new(Os, bodies, 2, scheduled), false);
        system.begin(1);
        system.schedule(0);
        assert_eq!(
            system.full(),
            [false, false, true],
            "the root is the main thread's"
        );
        assert!(system.step(1, &mut false));
        system.full()
    };
    assert_eq!(queues(JobsBySystem::ByJobs), [false, true, false]);
    assert_eq!(queues(JobsBySystem::ByJobsToMain), [false, false, true]);
}

/// Goal: jobs that are not ready never hide for ever the jobs that they wait for. Method: one slow parallel
/// job and more jobs behind it than there are workers, so that the stack fills up with them, above its
/// pieces.
#[test]
fn jobs_that_are_not_ready_do_not_block_the_stack() {
    for kind in BaselineKind::ALL {
        for order in ORDERS {
            for seed in 0..200 {
                let mut jobs = vec![node("first", 0, &[]), node("wide", 9, &[0])];
                jobs.extend((2..12).map(|job| node(&job.to_string(), 0, &[1])));
                jobs.push(node("last", 3, &(2..12).collect::<Vec<_>>()));
                let graph = JobGraph::new(About::default(), jobs, vec![]).unwrap();
                let report = Sim::run(SimConfig::new(seed).with_order(order), |sim| {
                    let mut scene = BaselineScene::new(kind, graph, sim, 2, Busy::NONE).unwrap();
                    scene.run();
                    scene.verify().unwrap();
                });
                report.expect_finished();
            }
        }
    }
}

/// Goal: the thread that ends a job has left it when the frame is over, however slow: the next frame uses the
/// same words. Method: two jobs in a row, or three, frame after frame, on CPUs that now and then stand still
/// for longer than a frame takes, anywhere.
#[test]
fn a_late_thread_leaves_the_next_frame_alone() {
    for kind in BaselineKind::ALL {
        for seed in 0..300 {
            let chain = [node("a", 0, &[]), node("b", 2, &[0]), node("c", 0, &[1])];
            let jobs = chain[..2 + seed as usize % 2].to_vec();
            let graph = JobGraph::new(About::default(), jobs, vec![]).unwrap();
            let mut config = SimConfig::on(Machine::ideal(3), "eevdf-6.6", seed);
            config.perturb.delay_one_in = 20;
            config.perturb.delay_max = Nanos::from_micros(20);
            config.until = Nanos::from_millis(20);
            let report = Sim::run(config, |sim| {
                let mut scene = BaselineScene::new(kind, graph, sim, 2, Busy::NONE).unwrap();
                for _ in 0..10 {
                    scene.run();
                    scene.verify().unwrap();
                }
            });
            report.expect_finished();
        }
    }
}

/// Goal: in 2017.3 the main thread signals every worker that can help, later one at a time, and in
/// 2022.2 none for a job that cannot run. Method: the job systems without their threads, so that
/// signals stay where they are, for 4 workers: a single job, one of 3 pieces, one of 9, and one that
/// waits for these.
#[test]
fn the_main_thread_signals_as_the_source_says() {
    let jobs = vec![
        node("a", 0, &[]),
        node("b", 3, &[]),
        node("c", 9, &[]),
        node("d", 0, &[0, 1, 2]),
    ];
    let graph = JobGraph::new(About::default(), jobs, vec![]).unwrap();
    let common = || {
        let bodies = Arc::new(Bodies::new(graph.clone(), Busy::NONE));
        Common::new(Os, bodies, 4, JobsBySystem::ByMain)
    };
    let signals = |system: &dyn Baseline, semaphore: &Semaphore<Os>| {
        system.begin(1);
        [0, 1, 2, 3].map(|job| {
            let before = semaphore.signals();
            // As if a worker had taken the earlier signals.
            semaphore.clear();
            system.schedule(job);
            system.signal(graph.jobs()[job as usize].pieces());
            (before, semaphore.signals())
        })
    };
    let after = |counts: [u32; 4]| {
        let mut before = 0;
        counts.map(|count| (std::mem::replace(&mut before, count), count))
    };
    let by_main = Global::new(common(), Signals::ByMain);
    assert_eq!(signals(&by_main, &by_main.semaphore), after([1, 3, 4, 1]));
    let chained = Global::new(common(), Signals::Chained);
    assert_eq!(signals(&chained, &chained.semaphore), after([1, 1, 1, 1]));
    let stealing = Stealing::new(common(), false);
    assert_eq!(signals(&stealing, &stealing.sleepers), after([1, 1, 1, 0]));
}

/// Goal: no wake-up is lost: workers do everything that is scheduled, without help. Method: on simulated
/// threads the main thread only schedules, in some runs with pauses in which workers fall asleep, and then
/// lets time pass until no thread can run. A forgotten job shows in the checksum; the help of the main thread
/// would hide it.
#[test]
fn workers_finish_without_help() {
    for kind in BaselineKind::ALL {
        for order in ORDERS {
            for seed in 0..300 {
                let config = SimConfig::new(seed)
                    .with_order(order)
                    .with_spurious(seed % 3 == 0);
                let report = Sim::run(config, |sim| schedule_only(kind, seed, &sim));
                report.expect_finished();
            }
        }
    }
}

/// One frame of workers alone.
fn schedule_only(kind: BaselineKind, seed: u64, sim: &Sim) {
    let generator = Generator {
        seed,
        jobs: 18,
        pieces: 1..=6,
        deps: 0..=3,
        sync_every: 0,
        piece: Nanos((seed % 2) * 300),
        ..Generator::default()
    };
    let bodies = Arc::new(Bodies::new(generator.generate().unwrap(), Busy::NONE));
    let workers = 1 + (seed % 3) as usize;
    let by_main = JobsBySystem::ByMain;
    let common = Common::new(sim.clone(), Arc::clone(&bodies), workers, by_main);
    let reading = BaselineReading {
        batched: false,
        by_piece: seed.is_multiple_of(2),
        scheduled: by_main,
    };
    let system = system(kind, reading, common);
    let start = |worker: usize| {
        let system = Arc::clone(&system);
        let body = Box::new(move || system.work(worker));
        sim.spawn(ThreadSpec::default(), body).unwrap()
    };
    let threads: Vec<_> = (0..workers).map(start).collect();
    system.begin(1);
    for job in 0..bodies.graph().jobs().len() as u32 {
        if (seed + u64::from(job)).is_multiple_of(5) {
            sim.charge(Nanos(200 * (seed % 4)));
        }
        system.schedule(job);
        system.signal(bodies.graph().jobs()[job as usize].pieces());
    }
    sim.charge(Nanos::from_millis(1));
    assert_eq!(
        bodies.checksum(0),
        bodies.expected(1),
        "{kind} forgot something"
    );
    system.quit();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Goal: the job systems run on a simulated machine with costs, and their costs are a function of the seed.
/// Method: 8 CPUs under Linux's scheduler on which lines, switches and wake-ups take time; each run twice
/// with equal reports. With 7 workers all are faster than one thread, 2022.2 most of all, as in the source.
#[test]
fn they_run_on_a_machine_with_costs() {
    let lines = LineCosts {
        hit: Nanos(1),
        rmw: Nanos(5),
        core: Nanos(25),
        cache: Nanos(25),
        module: Nanos(25),
        node: Nanos(85),
        remote: Nanos(85),
        ..LineCosts::default()
    };
    let kernel = KernelSpec {
        tick: Nanos::from_millis(4),
        syscall: Nanos(100),
        switch: Nanos(1_000),
        wake: Nanos(800),
        ipi_deliver: Nanos(1_000),
        ..KernelSpec::default()
    };
    let ideal = Machine::ideal(8);
    let machine = Arc::new(Machine {
        lines,
        kernel,
        ..ideal
    });
    let frame = |kind, workers| {
        let config = SimConfig::on(Arc::clone(&machine), "eevdf-6.18", 1);
        let mut time = Nanos::ZERO;
        let report = Sim::run(config, |sim| {
            let graph = Generator {
                piece: Nanos(1_000),
                ..Generator::default()
            };
            let graph = graph.generate().unwrap();
            let clock = sim.clone();
            let mut scene = BaselineScene::new(kind, graph, sim, workers, Busy::NONE).unwrap();
            for _ in 0..2 {
                let begin = clock.time();
                scene.run();
                time = clock.time() - begin;
                scene.verify().unwrap();
            }
        });
        (time, report.expect_finished())
    };
    let times = BaselineKind::ALL.map(|kind| {
        let (alone, with_workers) = (frame(kind, 0), frame(kind, 7));
        assert_eq!(with_workers, frame(kind, 7), "{kind}: not repeatable");
        assert!(
            with_workers.0.0 * 3 < alone.0.0,
            "{kind}: {} and {}",
            with_workers.0,
            alone.0
        );
        with_workers.0
    });
    assert!(times[2] < times[0].min(times[1]), "{times:?}");
}

/// Goal: in 2021.3 and 2022.2 one signal of the main thread is enough for all workers. Method: on
/// simulated threads, a parallel job with a long piece for each worker; if all workers are woken the
/// frame takes the time of one piece. The main thread may help with one, and schedules nothing else
/// that could wake them.
#[test]
fn workers_wake_each_other() {
    for kind in [BaselineKind::Unity2021_3, BaselineKind::Unity2022_2] {
        for order in ORDERS {
            for seed in 0..100 {
                let jobs = vec![node("wide", 4, &[])];
                let graph = JobGraph::new(About::default(), jobs, vec![]).unwrap();
                let report = Sim::run(SimConfig::new(seed).with_order(order), |sim| {
                    let its_sim = sim.clone();
                    let mut scene = BaselineScene::new(kind, graph, sim, 4, Busy::NONE).unwrap();
                    // All workers fall asleep: time goes on when no thread can run.
                    its_sim.charge(Nanos(1));
                    scene.run();
                    scene.verify().unwrap();
                });
                let now = report.expect_finished().now;
                // The main thread may look again a few nanoseconds late.
                assert!(
                    (1_001..1_100).contains(&now.0),
                    "{kind}, seed {seed}: {now}"
                );
            }
        }
    }
}

/// Two simulated threads put ten entries each and two take them, each in a loop; gives the entries that were
/// taken, sorted.
fn exchange(
    config: SimConfig,
    put: impl Fn(u32) -> bool + Send + Sync + 'static,
    take: impl Fn() -> Option<u32> + Send + Sync + 'static,
) -> Vec<u32> {
    let taken = Arc::new(<Os as Memory>::Lock::<Vec<u32>>::new(Vec::new()));
    let results = Arc::clone(&taken);
    let (put, take) = (Arc::new(put), Arc::new(take));
    let report = Sim::run(config, |sim| {
        let start = |body: Box<dyn FnOnce() + Send>| sim.spawn(ThreadSpec::default(), body);
        let mut threads = Vec::new();
        for number in 0..2 {
            let (put, its_sim) = (Arc::clone(&put), sim.clone());
            threads.push(start(Box::new(move || {
                let looked_at = <Sim as Memory>::AtomicU64::new(0);
                for entry in 10 * number..10 * number + 10 {
                    while !put(entry) {
                        its_sim.poll(Poll::Spin, &looked_at);
                    }
                }
            })));
            let (take, results, its_sim) = (Arc::clone(&take), Arc::clone(&results), sim.clone());
            threads.push(start(Box::new(move || {
                let looked_at = <Sim as Memory>::AtomicU64::new(0);
                for _ in 0..10 {
                    let entry = loop {
                        match take() {
                            Some(entry) => break entry,
                            None => its_sim.poll(Poll::Spin, &looked_at),
                        }
                    };
                    results.with(|results| results.push(entry));
                }
            })));
        }
        for thread in threads {
            thread.unwrap().join().unwrap();
        }
    });
    report.expect_finished();
    let mut taken = taken.with(std::mem::take);
    taken.sort_unstable();
    taken
}

/// Goal: each entry put into the queue or onto the stack is taken once, whatever comes in between. Method: a
/// queue that is too small to hold them, and a stack whose nodes are put back as soon as they were taken
/// once, which is when a head looks like an earlier one; every order.
#[test]
fn entries_are_taken_once() {
    let all: Vec<u32> = (0..20).collect();
    for order in ORDERS {
        for seed in 0..300 {
            let config = SimConfig::new(seed).with_order(order);
            let ring = Arc::new(Ring::<Sim>::new(4));
            let theirs = Arc::clone(&ring);
            let put = move |entry| ring.enqueue(entry);
            let taken = exchange(config.clone(), put, move || theirs.dequeue());
            assert_eq!(taken, all, "queue, {order:?}, seed {seed}");

            let stack = Arc::new(Stack::<Sim>::new(20));
            let theirs = Arc::clone(&stack);
            let put = move |node| {
                // By ones and threes: 0, then 1 to 3 together, and so on.
                match node % 10 % 4 {
                    0 => stack.push(node),
                    1 => stack.push_all(node..(node + 3).min(node / 10 * 10 + 10)),
                    _ => {}
                }
                true
            };
            let take = move || {
                let node = theirs.pop()?;
                theirs.push(node);
                theirs.pop()
            };
            let taken = exchange(config, put, take);
            assert_eq!(taken, all, "stack, {order:?}, seed {seed}");
        }
    }
}

proptest! {
    /// Goal: the queue is first in, first out, and full when it is full; the stack last in, first out.
    /// Method: any sequence of puts and takes, compared with the standard library's.
    #[test]
    fn queue_and_stack_keep_their_order(puts in prop::collection::vec(any::<bool>(), 0..200)) {
        let (ring, stack) = (Ring::<Os>::new(8), Stack::<Os>::new(200));
        let (mut queue, mut pile) = (VecDeque::new(), Vec::new());
        for (entry, put) in (0..).zip(puts) {
            if put {
                let fits = queue.len() < 8;
                prop_assert_eq!(ring.enqueue(entry), fits);
                queue.extend(fits.then_some(entry));
                stack.push(entry);
                pile.push(entry);
            } else {
                prop_assert_eq!(ring.dequeue(), queue.pop_front());
                prop_assert_eq!(stack.pop(), pile.pop());
            }
            prop_assert_eq!((ring.is_empty(), stack.is_empty()), (queue.is_empty(), pile.is_empty()));
        }
    }
}

/// Goal: a counted signal lets exactly one wait return, whether it comes before or after. Method: on
/// simulated threads, three workers wait four times in all for four signals; with one signal less the
/// run ends in a deadlock, so a signal that counted twice would be found.
#[test]
fn each_signal_ends_one_wait() {
    let run = |config: SimConfig, signals: u32| {
        Sim::run(config, |sim| {
            let semaphore = Arc::new(Semaphore::<Sim>::new(&sim, 3));
            let waits = |worker: usize| if worker == 0 { 2 } else { 1 };
            let start = |worker: usize| {
                let semaphore = Arc::clone(&semaphore);
                let body = move || (0..waits(worker)).for_each(|_| semaphore.wait(worker));
                sim.spawn(ThreadSpec::default(), Box::new(body)).unwrap()
            };
            let threads = [0, 1, 2].map(start);
            (0..signals).for_each(|_| semaphore.signal());
            for thread in threads {
                thread.join().unwrap();
            }
        })
    };
    for order in ORDERS {
        for seed in 0..200 {
            let config = SimConfig::new(seed)
                .with_order(order)
                .with_spurious(seed % 2 == 0);
            run(config.clone(), 4).expect_finished();
            let report = run(config, 3);
            assert!(
                matches!(report.outcome, sim::Outcome::Deadlock(_)),
                "{report:?}"
            );
        }
    }
}
