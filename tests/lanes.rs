//! Goal: what something urgent waits for goes before all that nothing urgent waits for: over all edges,
//! combinations, events that jobs complete, scopes and waits in between, and however late they come.
//!
//! Method: random graphs with random lanes, on one worker of a simulated machine under random orders of
//! steps. A thread that may run nothing itself waits for one of the jobs. The order in which bodies begin is
//! judged by the edges alone. And single cases, judged by what the report says of the jobs' lanes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use event::Nanos;
use paceline::{Builder, Context, Grain, JobId, JobSystem, Lane, Latch};
use sim::Sim;

use crate::support::{Random, delays, each_seed};

/// Longer than any of these programs: a wait of a thread of the program that has a deadline runs nothing,
/// where there are workers.
const LONG: Duration = Duration::from_secs(3600);

/// The worker takes a job of another kind at most once in so many looks.
const FAIRNESS: usize = 61;

/// A job that keeps the worker busy for a while: returns when it has begun.
fn occupy(sim: &Sim, js: &JobSystem<Sim>) {
    let begun = Arc::new(AtomicBool::new(false));
    let begins = begun.clone();
    js.job("gate").schedule(move |cx| {
        begins.store(true, Relaxed);
        cx.work(Nanos::from_secs(10));
    });
    while !begun.load(Relaxed) {
        sim.sleep_until(sim.time() + Nanos::from_micros(50));
    }
}

/// A node of a random graph.
struct Node {
    /// What it comes after; of an event, the jobs that complete it together.
    after: Vec<usize>,
    lane: Lane,
    kind: NodeKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeKind {
    Body,
    Combination,
    Event,
}

impl Node {
    fn has_body(&self) -> bool {
        self.kind == NodeKind::Body
    }
}

fn graph(random: &mut Random) -> Vec<Node> {
    let lanes = [
        Lane::Background,
        Lane::Background,
        Lane::Share1,
        Lane::Share4,
        Lane::Normal,
        Lane::Frame,
    ];
    let mut nodes: Vec<Node> = Vec::new();
    for number in 0..2 + random.below(40) {
        let after = (0..random.below(4).min(number)).map(|_| random.below(number));
        let mut node = Node {
            after: after.collect(),
            lane: *random.pick(&lanes),
            kind: NodeKind::Body,
        };
        if number > 0 && random.chance(15) {
            node.kind = NodeKind::Combination;
        } else if random.chance(15) {
            // Bodies complete events.
            node.after.retain(|&by| nodes[by].has_body());
            node.after.sort_unstable();
            node.after.dedup();
            if !node.after.is_empty() {
                node.kind = NodeKind::Event;
            }
        }
        nodes.push(node);
    }
    nodes
}

/// The nodes that the target needs, with itself.
fn needed(nodes: &[Node], target: usize) -> Vec<bool> {
    let mut needed = vec![false; nodes.len()];
    needed[target] = true;
    for number in (0..nodes.len()).rev().filter(|&n| n <= target) {
        if needed[number] {
            nodes[number]
                .after
                .iter()
                .for_each(|&pred| needed[pred] = true);
        }
    }
    needed
}

/// How often a job began although a job that the target needs was ready and is in a more urgent lane, now
/// that a thread in the lane `waiter` waits for it. `begun`: the order of the bodies.
fn lost(nodes: &[Node], needed: &[bool], waiter: Lane, begun: &[usize]) -> usize {
    let mut over = vec![false; nodes.len()];
    let mut lost = 0;
    for &number in begun {
        for combined in 0..nodes.len() {
            let node = &nodes[combined];
            over[combined] |= !node.has_body() && node.after.iter().all(|&pred| over[pred]);
        }
        let is_ready = |other: usize| {
            let node = &nodes[other];
            !over[other] && node.has_body() && node.after.iter().all(|&pred| over[pred])
        };
        assert!(
            is_ready(number),
            "{number} began before what it comes after"
        );
        let urgent = (0..nodes.len()).any(|other| needed[other] && is_ready(other));
        let goes_behind = match waiter {
            Lane::Frame => nodes[number].lane != Lane::Frame,
            _ => nodes[number].lane == Lane::Background,
        };
        lost += usize::from(urgent && goes_behind && !needed[number]);
        over[number] = true;
    }
    lost
}

/// Schedules a graph. Each body notes that it begins.
fn schedule(js: &JobSystem<Sim>, nodes: &[Node], begun: &Arc<Mutex<Vec<usize>>>) -> Vec<JobId> {
    let event = |node: &Node| {
        let is_event = node.kind == NodeKind::Event;
        is_event.then(|| js.latch("event", node.after.len()))
    };
    let events: Vec<Option<Latch>> = nodes.iter().map(event).collect();
    let mut ids: Vec<JobId> = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        let after: Vec<JobId> = node.after.iter().map(|&pred| ids[pred]).collect();
        let completes = |of: usize| nodes[of].after.contains(&number);
        let completes = (0..nodes.len()).filter(|&of| events[of].is_some() && completes(of));
        let completes: Vec<Latch> = completes.filter_map(|of| events[of].clone()).collect();
        let completed: Vec<JobId> = completes.iter().map(Latch::id).collect();
        let begun = begun.clone();
        let begins = move |cx: &Context<'_, Sim>| {
            begun.lock().unwrap().push(number);
            cx.work(Nanos::from_micros(10));
            completes.iter().for_each(Latch::complete_one);
        };
        let id = match (&events[number], node.kind) {
            (Some(event), _) => event.id(),
            (None, NodeKind::Combination) => js.combine(&after),
            (None, _) => {
                let job = js.job("node").lane(node.lane).after_all(&after);
                job.schedule(begins)
            }
        };
        for event in completed {
            js.add_completer(event, id).unwrap();
        }
        ids.push(id);
    }
    ids
}

fn waits_carry_urgency(seed: u64, waiter: Lane) {
    let mut random = Random::new(seed ^ 0x1a9e_0000);
    let nodes = graph(&mut random);
    let target = random.below(nodes.len());
    let needed = needed(&nodes, target);
    let begun: Arc<Mutex<Vec<usize>>> = Arc::default();
    let notes = begun.clone();
    let nodes = Arc::new(nodes);
    let planned = nodes.clone();
    let report = Sim::run(delays(seed), move |sim| {
        let js = Builder::with_platform(sim.clone())
            .workers(1)
            .build()
            .unwrap();
        occupy(&sim, &js);
        let ids = schedule(&js, &planned, &notes);
        let in_time = js.in_lane(waiter, || js.wait_timeout(ids[target], LONG));
        assert!(in_time.unwrap());
        notes.lock().unwrap().push(usize::MAX);
        js.wait(js.combine(&ids));
    });
    report.expect_finished();
    let begun = begun.lock().unwrap();
    let in_wait = begun.split(|&number| number == usize::MAX).next().unwrap();
    let lost = lost(&nodes, &needed, waiter, in_wait);
    let excused = 1 + in_wait.len() / FAIRNESS;
    assert!(
        lost <= excused,
        "{lost} went before what {target} needs: {in_wait:?}"
    );
}

#[test]
fn what_a_frame_waits_for_goes_before_all_else() {
    each_seed(
        "lanes::what_a_frame_waits_for_goes_before_all_else",
        1000,
        |seed| {
            waits_carry_urgency(seed, Lane::Frame);
        },
    );
}

#[test]
fn what_a_thread_waits_for_goes_before_the_background() {
    let test = "lanes::what_a_thread_waits_for_goes_before_the_background";
    each_seed(test, 1000, |seed| waits_carry_urgency(seed, Lane::Normal));
}

/// Goal: without waits the lanes go one after the other, and the front queue in the order of coming. Method:
/// one worker, jobs of each lane, the most urgent last.
#[test]
fn lanes_go_one_after_the_other() {
    const EACH: usize = 8;
    let begun: Arc<Mutex<Vec<Lane>>> = Arc::default();
    let notes = begun.clone();
    let fronts: Arc<Mutex<Vec<usize>>> = Arc::default();
    let in_front = fronts.clone();
    let report = Sim::run(delays(0), move |sim| {
        let js = Builder::with_platform(sim.clone())
            .workers(1)
            .build()
            .unwrap();
        occupy(&sim, &js);
        let mut ids = Vec::new();
        for lane in [Lane::Background, Lane::Normal, Lane::Frame] {
            for number in 0..EACH {
                let (notes, in_front) = (notes.clone(), in_front.clone());
                ids.push(js.job("job").lane(lane).schedule(move |_| {
                    notes.lock().unwrap().push(lane);
                    if lane == Lane::Frame {
                        in_front.lock().unwrap().push(number);
                    }
                }));
            }
        }
        while !ids.iter().all(|&id| js.is_done(id)) {
            sim.sleep_until(sim.time() + Nanos::from_millis(1));
        }
    });
    report.expect_finished();
    let expected = [Lane::Frame, Lane::Normal, Lane::Background].map(|lane| [lane; EACH]);
    assert_eq!(*begun.lock().unwrap(), expected.concat());
    assert_eq!(*fronts.lock().unwrap(), (0..EACH).collect::<Vec<_>>());
}

/// The lane of a job that is not over, by its name.
fn lane_of(js: &JobSystem<Sim>, name: &str) -> Lane {
    let report = js.report();
    let mut jobs = report.jobs.iter();
    let job = jobs.find(|job| job.label.name == name);
    job.unwrap_or_else(|| panic!("'{name}' is over:\n{report}"))
        .lane
}

/// Runs a program on two workers, with a thread beside it that waits for the job that `begin` returns, in the
/// frame lane. `then` is called when the thread waits.
fn beside_a_waiter<T: Send + 'static>(
    begin: impl FnOnce(&Sim, &JobSystem<Sim>) -> (JobId, T) + Send + 'static,
    then: impl FnOnce(&Sim, &JobSystem<Sim>, T) + Send + 'static,
) {
    let report = Sim::run(delays(0), move |sim| {
        let js = Arc::new(
            Builder::with_platform(sim.clone())
                .workers(2)
                .build()
                .unwrap(),
        );
        let (job, kept) = begin(&sim, &js);
        let there = js.clone();
        let waiter = platform::Platform::spawn(
            &sim,
            platform::ThreadSpec::default(),
            Box::new(move || {
                let in_time = there.in_lane(Lane::Frame, || there.wait_timeout(job, LONG));
                assert!(in_time.unwrap());
            }),
        );
        sim.sleep_until(sim.time() + Nanos::from_millis(1));
        then(&sim, &js, kept);
        platform::Thread::join(waiter.unwrap()).unwrap();
    });
    report.expect_finished();
}

/// Goal: what comes later is raised, too. Method: an edge that is added to a job that a frame waits for, with
/// a chain behind it.
#[test]
fn an_edge_that_comes_later_is_raised() {
    beside_a_waiter(
        |_, js| {
            let gate = js.event("gate");
            let job = js.job("awaited").background().after(&gate).schedule(|_| ());
            (job, (job, gate))
        },
        |_, js, (job, gate)| {
            assert_eq!(lane_of(js, "awaited"), Lane::Frame);
            let first = js.job("first").background().after(&gate).schedule(|_| ());
            let second = js.job("second").background().after(first).schedule(|_| ());
            assert_eq!(lane_of(js, "first"), Lane::Background);
            js.add_dependency(job, second).unwrap();
            assert_eq!(
                [lane_of(js, "first"), lane_of(js, "second")],
                [Lane::Frame; 2]
            );
            gate.complete();
        },
    );
}

/// Goal: what a running job waits for is raised with it, whether it waits already or does so later, but not
/// what it makes. Method: a background job on a worker that is waited for by a frame.
#[test]
fn what_a_running_job_waits_for_is_raised() {
    for waits_first in [true, false] {
        let begun = Arc::new(AtomicBool::new(false));
        let begins = begun.clone();
        beside_a_waiter(
            move |sim, js| {
                let gate = js.event("gate");
                let inner = js.job("inner").background().after(&gate).schedule(|_| ());
                let gate_id = gate.id();
                let outer = js.job("outer").background().schedule(move |cx| {
                    begins.store(true, Relaxed);
                    if !waits_first {
                        cx.work(Nanos::from_millis(2));
                    }
                    cx.job("made").after(gate_id).schedule(|_| ());
                    cx.wait(inner);
                });
                while !begun.load(Relaxed) {
                    sim.sleep_until(sim.time() + Nanos::from_micros(50));
                }
                if waits_first {
                    sim.sleep_until(sim.time() + Nanos::from_millis(1));
                    assert_eq!(lane_of(js, "inner"), Lane::Background);
                }
                (outer, gate)
            },
            move |sim, js, gate| {
                sim.sleep_until(sim.time() + Nanos::from_millis(5));
                assert_eq!(
                    [lane_of(js, "outer"), lane_of(js, "inner")],
                    [Lane::Frame; 2]
                );
                assert_eq!(lane_of(js, "made"), Lane::Background);
                gate.complete();
            },
        );
    }
}

/// Goal: the jobs of a scope in a job that is raised go first, those that are ready and those that become so.
/// Method: a background job opens a scope, and does not come to its end before its jobs have run; the other
/// worker has other background jobs to do, which came before.
#[test]
fn jobs_of_a_scope_are_raised_with_the_job_that_opened_it() {
    const OTHERS: usize = 30;
    let begun: Arc<Mutex<Vec<&str>>> = Arc::default();
    let notes = begun.clone();
    beside_a_waiter(
        move |sim, js| {
            let note =
                move |notes: &Mutex<Vec<&'static str>>, name| notes.lock().unwrap().push(name);
            let is_open = Arc::new(AtomicBool::new(false));
            let opens = is_open.clone();
            let parts = notes.clone();
            let opener = js.job("opener").background().schedule(move |cx| {
                cx.scope(|scope| {
                    opens.store(true, Relaxed);
                    cx.work(Nanos::from_millis(5));
                    for _ in 0..3 {
                        let first = scope.job("part").schedule(|_| note(&parts, "part"));
                        scope
                            .job("part")
                            .after(first)
                            .schedule(|_| note(&parts, "part"));
                    }
                    // The other worker runs them.
                    while parts
                        .lock()
                        .unwrap()
                        .iter()
                        .filter(|&&name| name == "part")
                        .count()
                        < 6
                    {
                        cx.work(Nanos::from_micros(10));
                    }
                });
            });
            while !is_open.load(Relaxed) {
                sim.sleep_until(sim.time() + Nanos::from_micros(50));
            }
            for _ in 0..OTHERS {
                let notes = notes.clone();
                js.job("other").background().schedule(move |cx| {
                    note(&notes, "other");
                    cx.work(Nanos::from_millis(1));
                });
            }
            (opener, ())
        },
        |_, _, ()| (),
    );
    let begun = begun.lock().unwrap();
    let last = begun.iter().rposition(|&name| name == "part").unwrap();
    // In the order of their coming they would be the last.
    assert!(begun[last..].len() > 5, "{begun:?}");
}

/// Goal: what a job of a scope waits for is raised with the job that has opened the scope, also if it waits
/// already and on another thread; so is what a thread waits for in the middle of a loop. Method: a frame
/// waits for a background job that is at the end of a scope, or of a loop; a part of it, on the other worker,
/// waits for a background job behind a gate. And once more through a second scope behind the first one's job.
#[test]
fn what_parts_on_other_threads_wait_for_is_raised() {
    for part in ["a job", "a part of a loop", "a job of a scope in a job"] {
        let waits = Arc::new(AtomicBool::new(false));
        let begins = waits.clone();
        let begun = waits.clone();
        beside_a_waiter(
            move |sim, js| {
                let gate = js.event("gate");
                let inner = js.job("inner").background().after(&gate).schedule(|_| ());
                let wait = move |cx: &Context<'_, Sim>| {
                    begins.store(true, Relaxed);
                    cx.wait(inner);
                };
                let opener = js
                    .job("opener")
                    .background()
                    .schedule(move |cx| match part {
                        "a part of a loop" => {
                            // The part of the thread that has not opened the loop waits.
                            let opener = cx.worker();
                            cx.parallel_for(0..2, Grain::Items(1), |_, cx| {
                                if cx.worker() == opener {
                                    while !begun.load(Relaxed) {
                                        cx.work(Nanos::from_micros(10));
                                    }
                                    cx.work(Nanos::from_millis(2));
                                } else {
                                    wait(cx);
                                }
                            });
                        }
                        "a job" => cx.scope(|scope| {
                            scope.job("part").schedule(&wait);
                            cx.work(Nanos::from_millis(2));
                        }),
                        _ => cx.scope(|scope| {
                            scope.job("part").schedule(|cx| {
                                cx.scope(|scope| {
                                    scope.job("part of a part").schedule(&wait);
                                    cx.work(Nanos::from_millis(1));
                                });
                            });
                            cx.work(Nanos::from_millis(2));
                        }),
                    });
                while !waits.load(Relaxed) {
                    sim.sleep_until(sim.time() + Nanos::from_micros(50));
                }
                sim.sleep_until(sim.time() + Nanos::from_micros(100));
                assert_eq!(lane_of(js, "inner"), Lane::Background, "{part}");
                (opener, gate)
            },
            move |sim, js, gate| {
                // The waiter may be delayed.
                let late = sim.time() + Nanos::from_millis(20);
                while lane_of(js, "inner") != Lane::Frame {
                    assert!(sim.time() < late, "{part}");
                    sim.sleep_until(sim.time() + Nanos::from_micros(50));
                }
                gate.complete();
            },
        );
    }
}
