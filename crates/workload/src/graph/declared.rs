//! A graph that is built once and whose jobs say what they touch: the results of the jobs that they depend
//! on, and their own.
//!
//! The order and the checksum are those of [`BuiltScene`](super::BuiltScene). Here the results are plain
//! numbers in one vector, and each job gets references to its parts of it. That its dependencies are enough
//! is checked when the graph is built, before anything runs.

use std::ops::Range;

use paceline::{BuiltGraph, GraphNode, JobSystem, PlanError};
use platform::Platform;

use super::bodies::{Places, checksum, found, sum_of};
use super::{Bodies, JobGraph, Kind};
use crate::busy::Busy;
use crate::scene::WrongFrame;
use event::mix;

/// The data of a frame.
struct GraphWorld {
    /// Its number.
    frame: u64,
    /// Those of all jobs, one after the other.
    results: Vec<u64>,
    /// What the sync points have seen.
    observed: u64,
}

paceline::resources! { GraphWorld: Keys { frame: u64, results: [u64], observed: u64 } }

/// Declares the jobs and builds the graph. `after` is asked for the jobs that a job comes after: those it is
/// given, but for tests.
fn declare<P: Platform>(
    js: &JobSystem<P>,
    graph: &JobGraph,
    busy: Busy,
    mut after: impl FnMut(&[GraphNode]) -> Vec<GraphNode>,
) -> Result<BuiltGraph<'static, GraphWorld, P>, PlanError> {
    let (mut builder, w) = js.graph_of::<GraphWorld>("graph");
    let places = Places::of(graph);
    let mut nodes: Vec<GraphNode> = Vec::with_capacity(graph.jobs().len());
    let mut syncs = graph.syncs().iter().peekable();
    let mut last_sync = None;
    for (job, node) in (0u32..).zip(graph.jobs()) {
        let name = match node.kind {
            Kind::Single => "single",
            Kind::Parallel { .. } => "parallel",
        };
        let deps = node.deps.iter();
        let before: Vec<_> = deps
            .map(|&dep| nodes[dep as usize])
            .chain(last_sync)
            .collect();
        let inputs: Vec<Range<usize>> = node
            .deps
            .iter()
            .map(|&dep| places.results_of(dep))
            .collect();
        let (own, cost) = (places.results_of(job), node.cost);
        let new_job = builder.job(name).after_all(after(&before)).reads(w.frame);
        let new_job = new_job.reads(w.results.each(inputs.iter().cloned().flatten()));
        let new_job = new_job.writes(w.results.part(own.clone()));
        nodes.push(new_job.run(move |cx, (frame, inputs_seen, results)| {
            let mut seen = inputs_seen.iter().copied();
            let sums = inputs
                .iter()
                .map(|input| sum_of(seen.by_ref().take(input.len())));
            let found = found(*frame, sums);
            let pieces = cx.over((results, own.clone()));
            pieces.for_each_with(|cx, (result, index)| {
                let value = mix(found ^ index as u64);
                cx.work(cost);
                busy.spin_for(cost, value);
                *result = value;
            });
        }));
        while let Some(sync) = syncs.next_if(|sync| sync.after == job) {
            let awaited = nodes[sync.wait_for as usize];
            let before: Vec<_> = [awaited].into_iter().chain(last_sync).collect();
            let new_sync = builder.job("sync").after_all(after(&before));
            let new_sync = new_sync.reads(w.results.part(places.results_of(sync.wait_for)));
            last_sync = Some(new_sync.writes(w.observed).run(|_, (results, observed)| {
                *observed = mix(*observed ^ sum_of(results.iter().copied()));
            }));
        }
    }
    builder.try_build()
}

/// A graph that is built once and run once per frame, with declared data.
///
/// ```
/// use paceline_workload::busy::Busy;
/// use paceline_workload::graph::{DeclaredScene, Generator};
///
/// let js = paceline::JobSystem::new();
/// let graph = Generator { piece: event::Nanos(100), ..Generator::default() }.generate()?;
/// let mut scene = DeclaredScene::new(&js, graph, Busy::calibrate(js.platform()));
/// for _ in 0..3 {
///     scene.run();
///     scene.verify()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DeclaredScene<P: Platform> {
    built: BuiltGraph<'static, GraphWorld, P>,
    world: GraphWorld,
    graph: JobGraph,
}

impl<P: Platform> DeclaredScene<P> {
    /// Builds the graph for a job system. Its bodies compute with `busy`.
    ///
    /// # Panics
    /// If the calling thread gets no thread slot.
    pub fn new(js: &JobSystem<P>, graph: JobGraph, busy: Busy) -> DeclaredScene<P> {
        let built = declare(js, &graph, busy, <[GraphNode]>::to_vec);
        DeclaredScene {
            built: built.unwrap_or_else(|error| panic!("{error}")),
            world: GraphWorld {
                frame: 0,
                results: vec![0; Places::of(&graph).len()],
                observed: 0,
            },
            graph,
        }
    }

    /// Runs the next frame and returns when all its jobs are over.
    ///
    /// # Panics
    /// If the job system's table of jobs is full.
    pub fn run(&mut self) {
        self.world.frame += 1;
        self.world.observed = 0;
        self.built.run(&mut self.world);
    }

    /// Whether the last frame was run correctly; its checksum if it was.
    ///
    /// # Errors
    /// If a job was left out or ran too early.
    pub fn verify(&self) -> Result<u64, WrongFrame> {
        let GraphWorld {
            frame,
            ref results,
            observed,
        } = self.world;
        let got = checksum(observed, results.iter().copied());
        let expected = Bodies::new(self.graph.clone(), Busy::NONE).expected(frame);
        WrongFrame::check(frame, got, expected)
    }
}

#[cfg(test)]
mod tests {
    use paceline::{Builder, PlanError};

    use super::*;
    use crate::graph::Generator;

    fn generated(seed: u64, jobs: u32, deps: u32) -> JobGraph {
        let generator = Generator {
            seed,
            jobs,
            deps: 0..=deps,
            pieces: 1..=5,
            sync_every: 6,
            ..Generator::default()
        };
        generator.generate().unwrap()
    }

    /// Goal: frames have the checksums that the graph demands. Method: generated graphs, three frames each,
    /// with workers and without.
    #[test]
    fn frames_have_the_expected_checksums() {
        for workers in [0, 2] {
            let js = Builder::new().workers(workers).build().unwrap();
            for seed in 0..if cfg!(miri) { 1 } else { 10 } {
                let mut scene = DeclaredScene::new(&js, generated(seed, 40, 4), Busy::NONE);
                for _ in 0..3 {
                    scene.run();
                    assert!(scene.verify().is_ok(), "seed {seed}");
                }
            }
        }
    }

    /// A dependency, by the nodes in the order of the declaration (jobs and sync points), and whether the
    /// later one reads or writes what the earlier one writes.
    struct Edge {
        from: usize,
        to: usize,
        collides: bool,
    }

    /// The dependencies in the order in which they are declared: from the graph alone.
    fn edges_of(graph: &JobGraph) -> Vec<Edge> {
        let (mut edges, mut nodes, mut next) = (Vec::new(), Vec::new(), 0);
        let mut syncs = graph.syncs().iter().peekable();
        let mut last_sync = None;
        let mut add = |from, to, collides| edges.push(Edge { from, to, collides });
        for (job, node) in (0u32..).zip(graph.jobs()) {
            let deps = node.deps.iter().map(|&dep| nodes[dep as usize]);
            deps.for_each(|dep| add(dep, next, true));
            if let Some(sync) = last_sync {
                add(sync, next, false);
            }
            nodes.push(next);
            next += 1;
            while let Some(sync) = syncs.next_if(|sync| sync.after == job) {
                add(nodes[sync.wait_for as usize], next, true);
                if let Some(sync) = last_sync {
                    add(sync, next, true);
                }
                last_sync = Some(next);
                next += 1;
            }
        }
        edges
    }

    /// Whether there is a way between two nodes along these edges, which lead on.
    fn leads<'e>(edges: impl Iterator<Item = &'e Edge> + Clone, from: usize, to: usize) -> bool {
        let mut reached = vec![false; to + 1];
        reached[from] = true;
        for node in from + 1..=to {
            let mut into = edges.clone().filter(|edge| edge.to == node);
            reached[node] = into.any(|edge| reached[edge.from]);
        }
        reached[to]
    }

    /// Goal: with all dependencies no alarm. Without one of them there is an alarm exactly if two jobs of
    /// which one writes what the other touches are in no order any more. Method: each dependency of generated
    /// graphs is left out once; which pairs collide, and what is in order, is worked out from the graph. Of
    /// both kinds there have to be many.
    #[test]
    fn a_dependency_that_is_left_out_is_an_alarm_where_data_collides() {
        let js = Builder::new().workers(0).build().unwrap();
        let mut found = [0; 2];
        for seed in 0..if cfg!(miri) { 1 } else { 8 } {
            let graph = generated(seed, 30, 4);
            let edges = edges_of(&graph);
            assert!(declare(&js, &graph, Busy::NONE, <[GraphNode]>::to_vec).is_ok());
            for left_out in 0..edges.len() {
                let mut next = 0;
                let without = |nodes: &[GraphNode]| {
                    let numbers = next..;
                    next += nodes.len();
                    let kept = numbers.zip(nodes).filter(|&(number, _)| number != left_out);
                    kept.map(|(_, &node)| node).collect()
                };
                let rest = edges.iter().enumerate();
                let rest = rest
                    .filter(|&(number, _)| number != left_out)
                    .map(|(_, edge)| edge);
                let mut collisions = edges.iter().filter(|edge| edge.collides);
                let is_missed = collisions.any(|edge| !leads(rest.clone(), edge.from, edge.to));
                let built = declare(&js, &graph, Busy::NONE, without);
                let is_alarm = matches!(built, Err(PlanError::Conflict(_)));
                assert_eq!(is_alarm, is_missed, "seed {seed}, dependency {left_out}");
                assert_eq!(next, edges.len());
                found[usize::from(is_alarm)] += 1;
            }
        }
        assert!(
            cfg!(miri) || found.iter().all(|&count| count > 50),
            "{found:?}"
        );
    }
}
