//! Goal: a run of a graph allocates nothing, costs at most one read-modify-write an edge and two a job, and
//! wakes as many workers as the graph is wide.
//! Method: as in `budget`: a job system without workers, on which everything is counted exactly, the third of
//! three equal runs. And, for the wake-ups, simulated workers that sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use event::{Event, EventKind, MemorySink, Nanos};
use paceline::{Builder, BuiltGraph, GraphNode, JobSystem, WaitPolicy};
use platform::{Os, Platform};
use sim::{Machine, Sim, SimConfig};
use testkit::{Counted, Counts};

use crate::dag::broken::{FansOutInSilence, broken};
use crate::support::allocations;

const LAYERS: u64 = 20;
const WIDTH: u64 = 10;

/// Layers of nodes, each of which comes after three of the layer before.
fn layers<P: Platform>(js: &JobSystem<P>) -> (BuiltGraph<'static, (), P>, u64) {
    let mut graph = js.graph("layers");
    let mut before: Vec<GraphNode> = Vec::new();
    let mut edges = 0;
    for _ in 0..LAYERS {
        let nodes = (0..WIDTH as usize).map(|place| {
            let after = (0..3).filter_map(|step| before.get((place + step) % WIDTH as usize));
            let after: Vec<_> = after.collect();
            edges += after.len() as u64;
            graph.job("node").after_all(after).run(|_| ())
        });
        before = nodes.collect();
    }
    (graph.build(), edges)
}

fn third_run<P: Platform>(graph: &mut BuiltGraph<'static, (), P>) -> (Counts, u64) {
    graph.run(&mut ());
    graph.run(&mut ());
    let (((), allocated), counts) = Counted::during(|| allocations::during(|| graph.run(&mut ())));
    (counts, allocated)
}

/// Measured: 0.13 a job for its slot (four for each 31), 1 for the claim, and one an edge.
#[test]
fn a_run_costs_its_edges_and_claims() {
    let builder = Builder::with_platform(Counted(Os)).workers(0);
    let js = builder.build().expect("it needs no threads");
    let (mut graph, edges) = layers(&js);
    let (counts, allocated) = third_run(&mut graph);
    let jobs = LAYERS * WIDTH;
    println!("{counts:?} for {jobs} jobs and {edges} edges");
    assert_eq!(allocated, 0);
    assert!(counts.rmws <= edges + 2 * jobs, "{counts:?}");
    assert!(counts.full_fences <= 2 * jobs, "{counts:?}");
    assert_eq!(
        (counts.locks, counts.parks, counts.unparks),
        (0, 0, 0),
        "{counts:?}"
    );
}

/// Goal: nodes that are left out cost nothing but their edges, and no stack. Method: a chain of thousands
/// behind a false condition.
#[test]
fn what_is_left_out_costs_its_edges() {
    const LENGTH: u64 = 10_000;
    let builder = Builder::with_platform(Counted(Os)).workers(0);
    let js = builder.build().expect("it needs no threads");
    let mut graph = js.graph("chain");
    let never = graph.condition("never").run(|_| false);
    let mut last = graph.job("first").only_if(never).run(|_| unreachable!());
    for _ in 0..LENGTH {
        let next = graph.job("next").after(last).only_if(never);
        last = next.run(|_| unreachable!());
    }
    let mut graph = graph.build();
    let (counts, allocated) = third_run(&mut graph);
    println!("{counts:?} for {LENGTH} nodes that are left out");
    assert_eq!(allocated, 0);
    assert!(counts.rmws <= 2 * LENGTH + 100, "{counts:?}");
}

/// Goal: when several jobs become ready at once, as many workers are woken as can run them. Method: seven
/// simulated workers that sleep; a graph of one job, then a number of long ones, then one. The widest moment
/// is counted.
#[test]
fn as_many_are_woken_as_the_graph_is_wide() {
    for width in [2_usize, 4, 8] {
        let machine = Machine::named("ryzen-5800x").expect("it is in the library");
        let config = SimConfig::on(machine, "eevdf-6.18", width as u64);
        let widest = Arc::new(AtomicUsize::new(0));
        let seen = widest.clone();
        let report = Sim::run(config, move |sim| {
            let builder = Builder::with_platform(sim).workers(7);
            let js = builder.wait_policy(WaitPolicy::Passive).build().unwrap();
            let running = Arc::new(AtomicUsize::new(0));
            let mut graph = js.graph("fan");
            let first = graph.job("first").run(|cx| cx.work(Nanos::from_micros(50)));
            let fan: Vec<_> = (0..width)
                .map(|_| {
                    let (running, widest) = (running.clone(), seen.clone());
                    graph.job("wide").after(first).run(move |cx| {
                        widest.fetch_max(running.fetch_add(1, Relaxed) + 1, Relaxed);
                        cx.work(Nanos::from_millis(2));
                        running.fetch_sub(1, Relaxed);
                    })
                })
                .collect();
            graph.job("last").after_all(fan).run(|_| ());
            let mut graph = graph.build();
            for _ in 0..3 {
                graph.run(&mut ());
            }
        });
        report.expect_finished();
        assert_eq!(widest.load(Relaxed), width);
    }
}

/// The workers that the thread which ended the job before a fan woke, before it began another job.
fn woken_by_the_first<P: Platform>(width: usize, platform: fn(Sim) -> P) -> usize {
    let machine = Machine::named("ryzen-5800x").expect("it is in the library");
    let config = SimConfig::on(machine, "eevdf-6.18", width as u64);
    let (sink, log) = MemorySink::new();
    let sink = Arc::new(sink);
    let label = Arc::new(AtomicUsize::new(0));
    let found = label.clone();
    let report = Sim::run(config, move |sim| {
        let builder = Builder::with_platform(platform(sim.clone())).workers(7);
        let builder = builder.wait_policy(WaitPolicy::Passive).sink(sink.clone());
        let js = builder.build().unwrap();
        let mut graph = js.graph("fan");
        let first = graph.job("first").run(|cx| cx.work(Nanos::from_micros(50)));
        for _ in 0..width {
            let wide = graph.job("wide").after(first);
            wide.run(|cx| cx.work(Nanos::from_millis(2)));
        }
        let mut graph = graph.build();
        for _ in 0..3 {
            // All workers sleep.
            sim.sleep_until(sim.time() + Nanos::from_millis(5));
            graph.run(&mut ());
        }
        let labels = js.labels();
        let first = labels.iter().position(|label| label.name == "first");
        found.store(first.expect("it has run"), Relaxed);
    });
    report.expect_finished();
    let (events, label) = (log.drain(), label.load(Relaxed) as u64);
    let is_first = |event: &&Event| event.kind == EventKind::Created && event.arg == label;
    let first = events.iter().rfind(is_first).expect("it was made").job;
    let is_end = |event: &Event| event.kind == EventKind::End && event.job == first;
    let end = events.iter().position(is_end).expect("it ended");
    let here = events[end..]
        .iter()
        .filter(|event| event.slot == events[end].slot);
    let until_next = here.take_while(|event| event.kind != EventKind::Begin);
    until_next
        .filter(|event| event.kind == EventKind::Wake)
        .count()
}

/// Goal: the thread that ends the job before a fan wakes as many workers as the fan can use, at once, and
/// does not leave it to those that it wakes. Method: seven simulated workers that sleep, a job, and a number
/// of long ones after it; the wake-ups of the thread that ran the first one, before it runs another. Planted
/// bug: it announces what it made ready only when it next looks for work.
#[test]
fn the_end_of_a_job_wakes_all_that_can_go_on() {
    for width in [4, 8] {
        let (sound, silent) = (
            woken_by_the_first(width, |sim| sim),
            woken_by_the_first(width, broken::<FansOutInSilence>),
        );
        println!("{width} jobs: {sound} workers were woken, and {silent} with the defect");
        assert!(sound >= width - 1, "{sound} of {width}");
        assert!(
            silent < width - 1,
            "the defect is not found: {silent} of {width}"
        );
    }
}
