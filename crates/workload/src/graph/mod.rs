//! A frame as a graph: jobs, what each waits for, and where the main thread waits in between.
//!
//! A [`JobGraph`] says what is to be done, but not how: the same value is measured ([`JobGraph::measure`]),
//! written to and read from files, and run on any platform ([`GraphScene`]).
//!
//! Invariants, checked by [`JobGraph::new`] and relied upon everywhere else:
//! - jobs stand in an order in which they can be scheduled: each depends on earlier ones only, so
//!   there is no cycle;
//! - dependencies are sorted and without repetition, labels are unique;
//! - the limits below hold, so sums of times fit into `u64` with room to spare.

mod bodies;
mod built;
mod declared;
mod generate;
mod library;
mod load;
mod measure;
mod run;
mod tree;

use std::collections::HashSet;
use std::fmt;

use event::Nanos;

pub use crate::scene::WrongFrame;
pub use bodies::Bodies;
pub use built::BuiltScene;
pub use declared::DeclaredScene;
pub use generate::Generator;
pub use library::{library, named};
pub use load::MAX_FILE;
pub use measure::Measure;
pub use run::{GraphScene, Labels};
pub use tree::TreeScene;

/// The most jobs of a graph. With them a frame stays far below the job system's own limit.
pub const MAX_JOBS: usize = 1 << 16;
/// The most pieces of all jobs together; each has a result of 8 bytes.
pub const MAX_PIECES: u64 = 1 << 22;
/// The most dependencies of all jobs together.
pub const MAX_EDGES: usize = 1 << 20;
/// The most time a piece may take. Longer ones are mistaken units rather than frames.
pub const MAX_COST: Nanos = Nanos::from_secs(60);
/// The longest label, in bytes: a label is for a line in a trace.
pub const MAX_LABEL: usize = 200;

const _: () = assert!(
    MAX_PIECES < u64::MAX / MAX_COST.0,
    "the work of a graph fits into u64"
);

/// Jobs with dependencies, in an order in which they can be scheduled, and sync points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobGraph {
    about: About,
    jobs: Vec<Node>,
    syncs: Vec<SyncPoint>,
}

/// Where a graph comes from, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Where its shape and its times come from.
    pub source: String,
    /// The meaning of one of its jobs in the source.
    pub unit: String,
    /// How its times relate to those of the source.
    pub scale: String,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name in traces and messages; unique in the graph.
    pub label: String,
    /// One body, or many pieces.
    pub kind: Kind,
    /// The time of its body, or of each of its pieces.
    pub cost: Nanos,
    /// The jobs that must have ended before it starts, by index; all are earlier.
    pub deps: Vec<u32>,
}

impl Node {
    /// How many pieces it has; a single job has one.
    pub fn pieces(&self) -> u32 {
        match self.kind {
            Kind::Single => 1,
            Kind::Parallel { pieces } => pieces,
        }
    }

    /// The time of all pieces together.
    pub fn work(&self) -> Nanos {
        Nanos(self.cost.0.saturating_mul(u64::from(self.pieces())))
    }
}

/// Whether a job's body is one or many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One body.
    Single,
    /// This many bodies that may run at the same time; the job ends with the last of them.
    Parallel {
        /// How many.
        pieces: u32,
    },
}

/// A place where the main thread waits before it schedules on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPoint {
    /// It has just scheduled this job …
    pub after: u32,
    /// … and now waits for this one, which is the same or an earlier one.
    pub wait_for: u32,
}

/// Why a graph cannot be used: one line that says where and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphError(String);

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GraphError {}

impl JobGraph {
    /// A graph of these jobs and sync points. Dependencies are sorted and repetitions dropped; sync
    /// points are sorted by when they come.
    ///
    /// # Errors
    /// If an invariant at the top of this module does not hold.
    pub fn new(
        about: About,
        jobs: Vec<Node>,
        syncs: Vec<SyncPoint>,
    ) -> Result<JobGraph, GraphError> {
        let mut graph = JobGraph { about, jobs, syncs };
        for node in &mut graph.jobs {
            node.deps.sort_unstable();
            node.deps.dedup();
        }
        graph.syncs.sort_by_key(|sync| (sync.after, sync.wait_for));
        graph.check_size()?;
        let mut labels = HashSet::new();
        for (index, node) in graph.jobs.iter().enumerate() {
            check_node(index, node)?;
            if !labels.insert(node.label.as_str()) {
                return Err(GraphError(format!(
                    "two jobs are called {:?}: give each its own label",
                    node.label
                )));
            }
        }
        graph.check_syncs()?;
        Ok(graph)
    }

    /// Where the graph comes from.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The jobs, in the order in which they are scheduled.
    pub fn jobs(&self) -> &[Node] {
        &self.jobs
    }

    /// The sync points, in the order in which they come.
    pub fn syncs(&self) -> &[SyncPoint] {
        &self.syncs
    }

    /// The jobs that no other job waits for, in order: when they are over, all are.
    pub fn sinks(&self) -> Vec<u32> {
        let mut is_sink = vec![true; self.jobs.len()];
        for &dep in self.jobs.iter().flat_map(|node| &node.deps) {
            is_sink[dep as usize] = false;
        }
        (0..)
            .zip(is_sink)
            .filter(|&(_, sink)| sink)
            .map(|(index, _)| index)
            .collect()
    }

    fn check_size(&self) -> Result<(), GraphError> {
        let pieces: u64 = self.jobs.iter().map(|node| u64::from(node.pieces())).sum();
        let edges: usize = self.jobs.iter().map(|node| node.deps.len()).sum();
        let too_many = |what: &str, count: u64, limit: u64| {
            Err(GraphError(format!(
                "{count} {what} are too many: at most {limit} are supported"
            )))
        };
        match self.jobs.len() {
            0 => Err(GraphError(
                "there are no jobs: give at least one".to_owned(),
            )),
            n if n > MAX_JOBS => too_many("jobs", n as u64, MAX_JOBS as u64),
            _ if edges > MAX_EDGES => too_many("dependencies", edges as u64, MAX_EDGES as u64),
            _ if pieces > MAX_PIECES => too_many("pieces", pieces, MAX_PIECES),
            _ if self.syncs.len() > MAX_JOBS => {
                too_many("sync points", self.syncs.len() as u64, MAX_JOBS as u64)
            }
            _ => Ok(()),
        }
    }

    fn check_syncs(&self) -> Result<(), GraphError> {
        for sync in &self.syncs {
            if sync.after as usize >= self.jobs.len() {
                return Err(GraphError(format!(
                    "a sync point comes after job {}, but there are {} jobs",
                    sync.after,
                    self.jobs.len()
                )));
            }
            if sync.wait_for > sync.after {
                let label = |index: u32| self.jobs.get(index as usize).map_or("?", |n| &n.label);
                return Err(GraphError(format!(
                    "the sync point after {:?} waits for {:?}, which is scheduled later: the main \
                     thread would wait for ever",
                    label(sync.after),
                    label(sync.wait_for)
                )));
            }
        }
        Ok(())
    }
}

/// Checks a job by itself.
fn check_node(index: usize, node: &Node) -> Result<(), GraphError> {
    let label = &node.label;
    let fail = |what: String| Err(GraphError(format!("job {label:?}: {what}")));
    if label.is_empty() || label.len() > MAX_LABEL || label.contains(char::is_control) {
        return Err(GraphError(format!(
            "job {index}: a label has 1 to {MAX_LABEL} bytes and no control characters"
        )));
    }
    if node.kind == (Kind::Parallel { pieces: 0 }) {
        return fail("it has no pieces: give at least 1, or leave them out".to_owned());
    }
    if node.cost > MAX_COST {
        return fail(format!(
            "{} is too long: a piece takes at most {MAX_COST}",
            node.cost
        ));
    }
    match node.deps.last() {
        Some(&last) if last as usize == index => fail("it waits for itself".to_owned()),
        Some(&last) if last as usize > index => fail(format!(
            "it waits for job {last}, which is not an earlier one"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
