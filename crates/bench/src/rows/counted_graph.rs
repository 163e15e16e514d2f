//! A graph of jobs on pools without dependencies (rayon, bevy_tasks), written as well as their users could.
//!
//! Each job has a counter of the jobs that it still waits for. The thread that counts it down to zero spawns
//! the job. (So does Bevy with its own systems.) A parallel job splits its range of pieces adaptively on
//! rayon. On bevy_tasks it is a task per thread, and the last of them ends the job.
//!
//! The main thread's schedule is a chain of *segments*. Up to a sync point, a segment counts down the jobs
//! that it reaches. The part after the sync point is a node like a job, which waits for the awaited job and
//! for the segment before. So no thread of the pool ever blocks, and nothing spins.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bevy_tasks::TaskPool;
use rayon::iter::{ParallelIterator, split};
use workload::busy::Busy;
use workload::graph::{Bodies, JobGraph, Kind};

use crate::row;

/// A pool on which the graph can run.
pub(super) trait Scopes {
    /// Runs a frame of `graph` from its beginning, and returns when all spawned tasks are over.
    fn run_from_start(&self, graph: &CountedGraph);
}

/// A scope of such a pool, while it is open.
trait Spawner<'s>: Copy {
    /// Runs the node as a task of its own.
    fn spawn(self, graph: &'s CountedGraph, node: u32);
    /// Runs all pieces of a parallel job, then [`CountedGraph::ended`].
    fn run_parallel(self, graph: &'s CountedGraph, job: u32, pieces: u32);
}

/// A graph that is run once per frame.
pub(super) struct CountedGraph {
    bodies: Bodies,
    /// For each job the nodes that wait for it. The nodes are the jobs, then the sync points.
    successors: Vec<Vec<u32>>,
    /// For each node the number of nodes that it still waits for; each frame sets it anew.
    pending: Vec<AtomicU32>,
    /// For each node the number of nodes that it waits for.
    waits_for: Vec<u32>,
    /// For each job the number of its tasks that have not ended, if it is split into a task per thread.
    tasks_left: Vec<AtomicU32>,
    threads: u32,
    /// The main thread's checksum at the sync points of this frame.
    observed: AtomicU64,
    frame: u64,
}

impl CountedGraph {
    pub(super) fn new(graph: JobGraph, busy: Busy, threads: usize) -> CountedGraph {
        let jobs = graph.jobs().len();
        let mut successors = vec![Vec::new(); jobs];
        // One more than its dependencies: the main thread has to reach it, too.
        let mut waits_for: Vec<u32> = Vec::with_capacity(jobs + graph.syncs().len());
        for (job, node) in (0u32..).zip(graph.jobs()) {
            for &dep in &node.deps {
                successors[dep as usize].push(job);
            }
            waits_for.push(node.deps.len() as u32 + 1);
        }
        for (node, sync) in (jobs as u32..).zip(graph.syncs()) {
            successors[sync.wait_for as usize].push(node);
            waits_for.push(2);
        }
        CountedGraph {
            bodies: Bodies::new(graph, busy),
            pending: waits_for.iter().map(|_| AtomicU32::new(0)).collect(),
            tasks_left: (0..jobs).map(|_| AtomicU32::new(0)).collect(),
            threads: threads as u32,
            successors,
            waits_for,
            observed: AtomicU64::new(0),
            frame: 0,
        }
    }

    /// Runs the next frame and returns when all its jobs are over.
    pub(super) fn run(&mut self, pool: &impl Scopes) {
        self.frame += 1;
        *self.observed.get_mut() = 0;
        for (pending, &waits_for) in self.pending.iter_mut().zip(&self.waits_for) {
            *pending.get_mut() = waits_for;
        }
        pool.run_from_start(self);
    }

    /// Whether the last frame was run correctly.
    pub(super) fn verify(&self) -> Result<(), String> {
        let got = self.bodies.checksum(self.observed.load(Ordering::Relaxed));
        row::check(got, self.bodies.expected(self.frame))
    }

    /// The main thread's part from the sync point before `sync` on.
    fn schedule_from<'s>(&'s self, scope: impl Spawner<'s>, mut sync: usize) {
        let jobs = self.bodies.graph().jobs().len() as u32;
        let syncs = self.bodies.graph().syncs();
        let reached = |sync: usize| syncs.get(sync).map_or(jobs, |sync| sync.after + 1);
        loop {
            let from = if sync == 0 { 0 } else { reached(sync - 1) };
            for job in from..reached(sync) {
                self.arrive(scope, job);
            }
            if sync == syncs.len() || !self.count_down(jobs + sync as u32) {
                return;
            }
            self.observe(sync);
            sync += 1;
        }
    }

    /// Counts down a node's counter; true if that is zero now.
    fn count_down(&self, node: u32) -> bool {
        // AcqRel: the last one sees the writes of all others before their counts.
        self.pending[node as usize].fetch_sub(1, Ordering::AcqRel) == 1
    }

    fn arrive<'s>(&'s self, scope: impl Spawner<'s>, node: u32) {
        if self.count_down(node) {
            scope.spawn(self, node);
        }
    }

    fn run_node<'s>(&'s self, scope: impl Spawner<'s>, node: u32) {
        let jobs = self.bodies.graph().jobs();
        match (node as usize).checked_sub(jobs.len()) {
            Some(sync) => {
                self.observe(sync);
                self.schedule_from(scope, sync + 1);
            }
            None => match jobs[node as usize].kind {
                Kind::Single => {
                    self.run_pieces(node, 0..1);
                    self.ended(scope, node);
                }
                Kind::Parallel { pieces } => scope.run_parallel(self, node, pieces),
            },
        }
    }

    fn run_pieces(&self, job: u32, pieces: Range<u32>) {
        self.bodies.run(self.frame, job, pieces, |_| ());
    }

    /// All pieces of the job are over.
    fn ended<'s>(&'s self, scope: impl Spawner<'s>, job: u32) {
        for &next in &self.successors[job as usize] {
            self.arrive(scope, next);
        }
    }

    /// The main thread passes a sync point. It is at one place at a time, so a load and a store are enough.
    fn observe(&self, sync: usize) {
        let job = self.bodies.graph().syncs()[sync].wait_for;
        let observed = self.observed.load(Ordering::Relaxed);
        let observed = self.bodies.observe_also(observed, job);
        self.observed.store(observed, Ordering::Relaxed);
    }
}

impl Scopes for rayon::ThreadPool {
    fn run_from_start(&self, graph: &CountedGraph) {
        self.scope(|scope| graph.schedule_from(scope, 0));
    }
}

impl<'s> Spawner<'s> for &rayon::Scope<'s> {
    fn spawn(self, graph: &'s CountedGraph, node: u32) {
        rayon::Scope::spawn(self, move |scope| graph.run_node(scope, node));
    }

    fn run_parallel(self, graph: &'s CountedGraph, job: u32, pieces: u32) {
        split(0..pieces, halves).for_each(|pieces| graph.run_pieces(job, pieces));
        graph.ended(self, job);
    }
}

fn halves(range: Range<u32>) -> (Range<u32>, Option<Range<u32>>) {
    let middle = range.start.midpoint(range.end);
    match range.len() {
        0 | 1 => (range, None),
        _ => (range.start..middle, Some(middle..range.end)),
    }
}

impl Scopes for TaskPool {
    fn run_from_start(&self, graph: &CountedGraph) {
        self.scope(|scope| graph.schedule_from(scope, 0));
    }
}

impl<'s> Spawner<'s> for &'s bevy_tasks::Scope<'s, '_, ()> {
    fn spawn(self, graph: &'s CountedGraph, node: u32) {
        bevy_tasks::Scope::spawn(self, async move { graph.run_node(self, node) });
    }

    fn run_parallel(self, graph: &'s CountedGraph, job: u32, pieces: u32) {
        let left = &graph.tasks_left[job as usize];
        let tasks = graph.threads.min(pieces);
        let run = move |task: u32| {
            graph.run_pieces(job, pieces * task / tasks..pieces * (task + 1) / tasks);
            // AcqRel: the last one sees the writes of all others before their counts.
            if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                graph.ended(self, job);
            }
        };
        left.store(tasks, Ordering::Relaxed);
        for task in 1..tasks {
            bevy_tasks::Scope::spawn(self, async move { run(task) });
        }
        run(0);
    }
}

#[cfg(test)]
mod tests {
    use event::Nanos;
    use workload::graph::Generator;

    use super::*;
    use crate::pools;

    /// Goal: every edge and sync point is kept. Method: frames of pieces that take no time, on one and three
    /// threads of each pool, with several sync points at the same place.
    #[test]
    fn frames_equal_serial_ones() {
        for sync_every in [1, 7, 0] {
            let generator = Generator {
                jobs: 200,
                sync_every,
                piece: Nanos::ZERO,
                ..Generator::default()
            };
            let graph = generator.generate().unwrap();
            for threads in [1, 3] {
                frames(&pools::rayon(threads).unwrap(), &graph, threads);
                frames(&pools::bevy(threads), &graph, threads);
            }
        }
    }

    fn frames(pool: &impl Scopes, graph: &JobGraph, threads: usize) {
        let mut graph = CountedGraph::new(graph.clone(), Busy::NONE, threads);
        for _ in 0..20 {
            graph.run(pool);
            graph.verify().unwrap();
        }
    }
}
