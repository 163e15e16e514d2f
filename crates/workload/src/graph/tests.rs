//! Tests of the graph's invariants and measures.

use proptest::prelude::*;

use super::*;
use crate::busy::Busy;
use crate::scene::Scene;
use platform::Os;

fn node(label: &str, pieces: u32, nanos: u64, deps: &[u32]) -> Node {
    let kind = if pieces == 0 {
        Kind::Single
    } else {
        Kind::Parallel { pieces }
    };
    Node {
        label: label.to_owned(),
        kind,
        cost: Nanos(nanos),
        deps: deps.to_vec(),
    }
}

fn graph(jobs: Vec<Node>, syncs: &[(u32, u32)]) -> Result<JobGraph, String> {
    let syncs = syncs
        .iter()
        .map(|&(after, wait_for)| SyncPoint { after, wait_for })
        .collect();
    JobGraph::new(About::default(), jobs, syncs).map_err(|error| error.to_string())
}

/// Goal: a graph that breaks an invariant cannot be made. Method: one of each kind.
#[test]
fn broken_graphs_are_refused() {
    let refuse = |jobs, syncs: &[(u32, u32)], word: &str| {
        let error = graph(jobs, syncs).unwrap_err();
        assert!(error.contains(word), "{error}");
    };
    refuse(vec![], &[], "no jobs");
    refuse(vec![node("a", 0, 1, &[0])], &[], "waits for itself");
    refuse(
        vec![node("a", 0, 1, &[1]), node("b", 0, 1, &[])],
        &[],
        "not an earlier one",
    );
    refuse(
        vec![node("a", 0, 1, &[]), node("a", 0, 1, &[])],
        &[],
        "two jobs",
    );
    refuse(vec![node("a", 0, 1, &[])], &[(1, 0)], "there are 1 jobs");
    refuse(
        vec![node("a", 0, 1, &[]), node("b", 0, 1, &[])],
        &[(0, 1)],
        "for ever",
    );
    refuse(vec![node("a", 0, MAX_COST.0 + 1, &[])], &[], "too long");
    refuse(vec![node("a", u32::MAX, 1, &[])], &[], "too many");
}

/// Goal: the measures of a graph small enough to see. Method: a diamond with a parallel side and
/// a sync point that holds back the last job.
#[test]
fn a_small_graph_is_measured() {
    let jobs = vec![
        node("top", 0, 10, &[]),
        node("left", 8, 5, &[0]),
        node("right", 0, 30, &[0, 0]),
        node("bottom", 0, 7, &[1]),
    ];
    let free = graph(jobs.clone(), &[]).unwrap();
    let measure = free.measure();
    assert_eq!(
        (measure.work, measure.span, measure.width),
        (Nanos(87), Nanos(40), 9)
    );
    assert_eq!((measure.jobs, measure.pieces, measure.edges), (4, 11, 3));
    assert_eq!(free.sinks(), [2, 3]);
    let held = graph(jobs, &[(2, 2)]).unwrap().measure();
    assert_eq!((held.span, held.syncs), (Nanos(47), 1));
}

/// Goal: the bounds are those of the papers at their corners. Method: one thread, and a graph
/// without any parallelism, and one of no work.
#[test]
fn the_bounds_meet_at_their_corners() {
    let chain = graph(vec![node("a", 0, 5, &[]), node("b", 0, 5, &[0])], &[])
        .unwrap()
        .measure();
    let wide = graph(vec![node("a", 8, 5, &[])], &[]).unwrap().measure();
    let nothing = graph(vec![node("a", 8, 0, &[])], &[]).unwrap().measure();
    for threads in [0, 1] {
        assert_eq!(
            (
                wide.speedup_at_least(threads),
                wide.speedup_at_most(threads)
            ),
            (1.0, 1.0)
        );
    }
    assert_eq!(
        (chain.speedup_at_least(64), chain.speedup_at_most(64)),
        (1.0, 1.0)
    );
    assert_eq!(wide.speedup_at_most(64), 8.0);
    assert_eq!(
        (nothing.speedup_at_least(2), nothing.speedup_at_most(2)),
        (1.0, 1.0)
    );
}

/// Small graphs with single and parallel jobs, jobs of no length, and sync points.
fn small_graphs() -> impl Strategy<Value = JobGraph> {
    let parts = prop::collection::vec((0u32..4, 0u64..6, any::<u16>(), any::<u16>()), 1..12);
    parts.prop_map(|parts| {
        let bits = |mask: u16, below: u32| (0..below).filter(move |bit| mask >> bit & 1 == 1);
        let (mut jobs, mut syncs) = (Vec::new(), Vec::new());
        for (index, (pieces, nanos, deps, sync)) in (0u32..).zip(parts) {
            let deps: Vec<u32> = bits(deps, index).collect();
            jobs.push(node(&index.to_string(), pieces, nanos, &deps));
            if sync % 4 == 0 {
                syncs.push((index, u32::from(sync) / 4 % (index + 1)));
            }
        }
        graph(jobs, &syncs).unwrap()
    })
}

/// The jobs that have ended before this one starts: its dependencies, and the jobs that the main thread
/// waited for before it scheduled it.
fn before(graph: &JobGraph, job: u32) -> Vec<u32> {
    let syncs = graph
        .syncs()
        .iter()
        .filter(|sync| sync.after < job)
        .map(|sync| sync.wait_for);
    graph.jobs()[job as usize]
        .deps
        .iter()
        .copied()
        .chain(syncs)
        .collect()
}

/// The length of the longest path that ends with this job, by trying all paths.
fn longest_path(graph: &JobGraph, job: u32) -> u64 {
    let before = before(graph, job)
        .into_iter()
        .map(|dep| longest_path(graph, dep));
    before.max().unwrap_or(0) + graph.jobs()[job as usize].cost.0
}

/// The time that `threads` threads need which always run ready bodies, first jobs first, one step
/// of a nanosecond after the other; and the most bodies that ran in one step.
fn simulate(graph: &JobGraph, threads: u64) -> (u64, u64) {
    let jobs = graph.jobs();
    // Per job: when its last body so far ends, and how many bodies have not been started.
    let mut left: Vec<u32> = jobs.iter().map(Node::pieces).collect();
    let mut ends: Vec<Vec<u64>> = vec![Vec::new(); jobs.len()];
    let (mut now, mut most) = (0, 0);
    loop {
        let done = |job: u32, left: &[u32], ends: &[Vec<u64>]| {
            left[job as usize] == 0 && ends[job as usize].iter().all(|&end| end <= now)
        };
        let mut running = ends.iter().flatten().filter(|&&end| end > now).count() as u64;
        for job in 0..jobs.len() as u32 {
            let index = job as usize;
            if before(graph, job)
                .iter()
                .all(|&dep| done(dep, &left, &ends))
            {
                while left[index] > 0 && (running < threads || jobs[index].cost.0 == 0) {
                    left[index] -= 1;
                    ends[index].push(now + jobs[index].cost.0);
                    running += u64::from(jobs[index].cost.0 > 0);
                }
            }
        }
        most = most.max(running);
        if (0..jobs.len() as u32).all(|job| done(job, &left, &ends)) {
            return (now, most);
        }
        now += 1;
    }
}

proptest! {
    /// Goal: span and width are right. Method: the longest of all paths, and the most bodies at
    /// once in a simulation with unlimited threads, which takes exactly the span.
    #[test]
    fn span_and_width_are_those_of_brute_force(graph in small_graphs()) {
        let measure = graph.measure();
        let longest = (0..graph.jobs().len() as u32).map(|job| longest_path(&graph, job)).max();
        prop_assert_eq!(Some(measure.span.0), longest);
        prop_assert_eq!((measure.span.0, measure.width), simulate(&graph, u64::MAX));
    }

    /// Goal: the two bounds hold around what greedy threads really reach. Method: simulations with
    /// 1 to 5 threads.
    #[test]
    fn greedy_threads_stay_between_the_bounds(graph in small_graphs(), threads in 1u32..6) {
        let measure = graph.measure();
        let (time, _) = simulate(&graph, u64::from(threads));
        if time > 0 {
            let speedup = measure.work.0 as f64 / time as f64;
            let least = measure.speedup_at_least(threads);
            let most = measure.speedup_at_most(threads);
            prop_assert!(speedup <= most * (1.0 + 1e-9), "{} > {}", speedup, most);
            prop_assert!(speedup >= least * (1.0 - 1e-9), "{} < {}", speedup, least);
        }
    }

    /// Goal: when the sinks are over, all jobs are. Method: everything that is before a sink,
    /// directly or not, is every job.
    #[test]
    fn sinks_come_after_everything(graph in small_graphs()) {
        let mut seen = vec![false; graph.jobs().len()];
        let mut todo = graph.sinks();
        while let Some(job) = todo.pop() {
            if !std::mem::replace(&mut seen[job as usize], true) {
                todo.extend(&graph.jobs()[job as usize].deps);
            }
        }
        prop_assert!(seen.into_iter().all(|seen| seen));
    }
}

/// Goal: what a frame computes does not depend on how many were run before it. Method: the frame of one
/// number, after 1 to 5 frames of this thread; another number's is different, and no number comes twice.
#[test]
fn frames_are_told_apart_by_their_number() {
    let graph = || graph(vec![node("a", 3, 1, &[]), node("b", 0, 1, &[0])], &[]).unwrap();
    let after = |frames: u64, number: u64| {
        let mut scene = GraphScene::new(graph(), Busy::NONE, Labels::OfJobs);
        for _ in 0..frames {
            scene.run_serial(&Os);
        }
        scene.skip_to(number);
        scene.run_serial(&Os);
        scene.verify().unwrap()
    };
    let expected = after(1, 9);
    for frames in 2..=5 {
        assert_eq!(after(frames, 9), expected);
    }
    assert_ne!(after(1, 8), expected);
    assert_eq!(after(5, 2), after(5, 0));
    assert_eq!(after(5, 0), after(1, 6));
}
