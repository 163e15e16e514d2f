//! A graph of jobs on rayon, as well as a user of rayon could write it.
//!
//! rayon has no dependencies between jobs. Each job has a counter of what it still waits for; whoever
//! counts it down to zero spawns it. A parallel job splits its range of pieces adaptively.
//!
//! The main thread's schedule is a chain of *segments*: up to a sync point, a segment counts down the
//! jobs it reaches; what comes after the sync point is a node like a job, which waits for the awaited
//! job and for the segment before. So no thread of the pool ever blocks, and nothing spins.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rayon::Scope;
use rayon::iter::{ParallelIterator, split};
use workload::busy::Busy;
use workload::graph::{Bodies, JobGraph, Kind};

/// A graph that is run once per frame.
pub(super) struct RayonGraph {
    bodies: Bodies,
    /// For each job the nodes that wait for it. Nodes are the jobs, then the sync points.
    successors: Vec<Vec<u32>>,
    /// For each node what it still waits for: set anew by each frame.
    pending: Vec<AtomicU32>,
    /// How many each node waits for.
    waits_for: Vec<u32>,
    /// What the main thread has found at the sync points of this frame.
    observed: AtomicU64,
    frame: u64,
}

impl RayonGraph {
    pub(super) fn new(graph: JobGraph, busy: Busy) -> RayonGraph {
        let jobs = graph.jobs().len();
        let mut successors = vec![Vec::new(); jobs];
        // One more than its dependencies: the main thread has to reach it.
        let mut waits_for: Vec<u32> = Vec::with_capacity(jobs + graph.syncs().len());
        for (job, node) in (0u32..).zip(graph.jobs()) {
            node.deps
                .iter()
                .for_each(|&dep| successors[dep as usize].push(job));
            waits_for.push(node.deps.len() as u32 + 1);
        }
        for (node, sync) in (jobs as u32..).zip(graph.syncs()) {
            successors[sync.wait_for as usize].push(node);
            waits_for.push(2);
        }
        RayonGraph {
            bodies: Bodies::new(graph, busy),
            pending: waits_for.iter().map(|_| AtomicU32::new(0)).collect(),
            successors,
            waits_for,
            observed: AtomicU64::new(0),
            frame: 0,
        }
    }

    /// Runs the next frame and returns when all its jobs are over.
    pub(super) fn run(&mut self, pool: &rayon::ThreadPool) {
        self.frame += 1;
        *self.observed.get_mut() = 0;
        for (pending, &waits_for) in self.pending.iter_mut().zip(&self.waits_for) {
            *pending.get_mut() = waits_for;
        }
        let this = &*self;
        pool.scope(|scope| this.schedule_from(scope, 0));
    }

    /// Whether the last frame was run correctly.
    pub(super) fn verify(&self) -> Result<(), String> {
        let got = self.bodies.checksum(self.observed.load(Ordering::Relaxed));
        super::check(got, self.bodies.expected(self.frame))
    }

    /// The main thread's part from the sync point before `sync` on.
    fn schedule_from<'s>(&'s self, scope: &Scope<'s>, mut sync: usize) {
        let jobs = self.bodies.graph().jobs().len() as u32;
        let syncs = self.bodies.graph().syncs();
        let reached = |sync: usize| syncs.get(sync).map_or(jobs, |sync| sync.after + 1);
        loop {
            let from = if sync == 0 { 0 } else { reached(sync - 1) };
            (from..reached(sync)).for_each(|job| self.arrive(scope, job));
            if sync == syncs.len() || !self.count_down(jobs + sync as u32) {
                return;
            }
            self.observe(sync);
            sync += 1;
        }
    }

    /// Counts down what a node waits for; true if that was the last.
    fn count_down(&self, node: u32) -> bool {
        // AcqRel: the last one sees what all others did before they counted.
        self.pending[node as usize].fetch_sub(1, Ordering::AcqRel) == 1
    }

    fn arrive<'s>(&'s self, scope: &Scope<'s>, node: u32) {
        if self.count_down(node) {
            scope.spawn(move |scope| self.run_node(scope, node));
        }
    }

    fn run_node<'s>(&'s self, scope: &Scope<'s>, node: u32) {
        let jobs = self.bodies.graph().jobs();
        match (node as usize).checked_sub(jobs.len()) {
            Some(sync) => {
                self.observe(sync);
                self.schedule_from(scope, sync + 1);
            }
            None => {
                self.run_job(node);
                let successors = &self.successors[node as usize];
                successors.iter().for_each(|&next| self.arrive(scope, next));
            }
        }
    }

    fn run_job(&self, job: u32) {
        let run = |pieces| self.bodies.run(self.frame, job, pieces, |_| ());
        match self.bodies.graph().jobs()[job as usize].kind {
            Kind::Single => run(0..1),
            Kind::Parallel { pieces } => split(0..pieces, halves).for_each(run),
        }
    }

    /// The main thread passes a sync point. It is at one place at a time, so a load and a store do.
    fn observe(&self, sync: usize) {
        let job = self.bodies.graph().syncs()[sync].wait_for;
        let observed = self.observed.load(Ordering::Relaxed);
        let observed = self.bodies.observe_also(observed, job);
        self.observed.store(observed, Ordering::Relaxed);
    }
}

fn halves(range: Range<u32>) -> (Range<u32>, Option<Range<u32>>) {
    let middle = range.start.midpoint(range.end);
    match range.len() {
        0 | 1 => (range, None),
        _ => (range.start..middle, Some(middle..range.end)),
    }
}

#[cfg(test)]
mod tests {
    use event::Nanos;
    use workload::graph::Generator;

    use super::*;
    use crate::commands::bench::pools;

    /// Goal: rayon's version keeps every edge and sync point. Method: frames of pieces that take no
    /// time, on one and three threads, several sync points at the same place included.
    #[test]
    fn frames_equal_serial_ones() {
        for sync_every in [1, 7, 0] {
            let generator = Generator {
                jobs: 200,
                sync_every,
                piece: Nanos::ZERO,
                ..Generator::default()
            };
            let mut graph = RayonGraph::new(generator.generate().unwrap(), Busy::NONE);
            for threads in [1, 3] {
                let pool = pools::rayon(threads).unwrap();
                for _ in 0..20 {
                    graph.run(&pool);
                    graph.verify().unwrap();
                }
            }
        }
    }
}
