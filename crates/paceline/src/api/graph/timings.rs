//! How long the jobs of a graph took, and which of them hold up the rest.

use std::time::Duration;

use event::Nanos;
use platform::Platform;

use super::built::BuiltGraph;
use super::resources::Resources;
use crate::store::Label;
use crate::work::built::Timing;

/// How long a job of a graph took, in the runs that were measured; from
/// [`BuiltGraph::timings`](crate::BuiltGraph::timings).
///
/// ```
/// let js = paceline::JobSystem::new();
/// let mut graph = js.graph("frame");
/// graph.job("draw").run(|_| ());
/// let mut graph = graph.build();
/// graph.measure(true);
/// (0..10).for_each(|_| graph.run(&mut ()));
/// let timing: paceline::NodeTiming = graph.timings()[0].clone();
/// assert_eq!((timing.label.name, timing.runs), ("draw", 10));
/// assert!(timing.worst >= timing.mean);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeTiming {
    /// The job.
    pub label: Label,
    /// How often it ran. (Not if it was left out.)
    pub runs: u64,
    /// The time that its body took the last time.
    pub last: Duration,
    /// The mean of these times.
    pub mean: Duration,
    /// The longest of them.
    pub worst: Duration,
}

/// The jobs that a run cannot be faster than; from
/// [`BuiltGraph::critical_path`](crate::BuiltGraph::critical_path).
///
/// ```
/// let js = paceline::JobSystem::new();
/// let mut graph = js.graph("frame");
/// graph.job("input").run(|_| ());
/// graph.job("draw").after("input").run(|_| ());
/// graph.job("sound").run(|_| ());
/// let path: paceline::CriticalPath = graph.build().critical_path();
/// assert_eq!(path.jobs.iter().map(|job| job.name).collect::<Vec<_>>(), ["input", "draw"]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CriticalPath {
    /// The jobs, each after the one before it.
    pub jobs: Vec<Label>,
    /// The sum of their mean times. Zero if nothing was measured.
    pub time: Duration,
}

impl<D: Resources + ?Sized, P: Platform> BuiltGraph<'_, D, P> {
    /// Whether the bodies of further runs are timed: the clock is read twice a body.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("draw").run(|_| ());
    /// let mut graph = graph.build();
    /// graph.measure(true);
    /// graph.run(&mut ());
    /// graph.measure(false);
    /// graph.run(&mut ());
    /// assert_eq!(graph.timings()[0].runs, 1);
    /// ```
    pub fn measure(&mut self, on: bool) {
        self.built.set_timed(on);
    }

    /// The times of all jobs, in the order in which they were declared. Allocates.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("input").run(|_| ());
    /// graph.job("draw").after("input").run(|_| ());
    /// let mut graph = graph.build();
    /// graph.measure(true);
    /// graph.run(&mut ());
    /// for timing in graph.timings() {
    ///     println!("{}: {:?} at most {:?}", timing.label, timing.mean, timing.worst);
    /// }
    /// ```
    pub fn timings(&self) -> Vec<NodeTiming> {
        let jobs = (0..self.shape.nodes.len()).filter(|&node| self.shape.nodes[node].is_job());
        let timing = |node| {
            let timing = self.timing(node);
            NodeTiming {
                label: self.shape.nodes[node].label,
                runs: timing.runs,
                last: duration(timing.last),
                mean: duration(timing.mean()),
                worst: duration(timing.worst),
            }
        };
        jobs.map(timing).collect()
    }

    /// The longest way through the graph, by the mean times of its jobs, or by their number if nothing was
    /// measured. Only to make one of these jobs shorter can make runs shorter, however many threads there
    /// are. Allocates.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// graph.job("think").run(|_| ());
    /// graph.job("move").after("think").run(|_| ());
    /// graph.job("sound").run(|_| ());
    /// let mut graph = graph.build();
    /// assert_eq!(graph.critical_path().jobs.len(), 2);
    /// graph.measure(true);
    /// graph.run(&mut ());
    /// println!("no faster than {:?}", graph.critical_path().time);
    /// ```
    pub fn critical_path(&self) -> CriticalPath {
        let nodes = self.critical_nodes();
        let time = nodes.iter().map(|&node| self.timing(node).mean());
        let time = time.fold(Nanos::ZERO, |sum, time| sum + time);
        let jobs = nodes.iter().map(|&node| self.shape.nodes[node]);
        let jobs = jobs.filter(|node| node.is_job());
        CriticalPath {
            jobs: jobs.map(|node| node.label).collect(),
            time: duration(time),
        }
    }

    /// Whether a job that is ready goes before others if more hangs on it: if the jobs that can only come
    /// after it, one after the other, take longer. It is off at first.
    ///
    /// Work-stealing begins jobs in an order that is good for the caches. If few threads can run, and a long
    /// chain of jobs begins late, the run takes up to twice as long as it needs. With this, threads take the
    /// job with the longest way ahead, by the times of the last runs: the first four runs are timed, and then
    /// one in eight, which reads the clock twice a job. The order follows when a job takes an eighth more or
    /// less than before. It is that of the normal lane: jobs [of other lanes](crate::GraphJob::lane) are not
    /// affected.
    ///
    /// Such a job passes through a queue that all threads share, before other jobs of that lane, whatever
    /// they belong to. (A worker takes one job in 61 from elsewhere, so nothing waits for ever.) The queue is
    /// worth it for jobs of some microseconds and more. In a graph of shorter ones only those that hold up
    /// the run pass through it.
    ///
    /// Allocates now; runs do not. (The order is that of HEFT: Topcuoglu, Hariri and Wu, 2002.)
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut graph = js.graph("frame");
    /// for _ in 0..100 {
    ///     graph.job("particles").run(|_| ());
    /// }
    /// let skin = graph.job("skin").run(|_| ());
    /// graph.job("shadows").after(skin).run(|_| ()); // These two are begun at once, when they were timed.
    /// let mut graph = graph.build();
    /// graph.critical_first(true);
    /// for _frame in 0..10 {
    ///     graph.run(&mut ());
    /// }
    /// ```
    pub fn critical_first(&mut self, on: bool) {
        let order = on.then_some(&*self.shape.checked.order);
        self.built.set_ranked(order);
    }

    /// All nodes on that way.
    pub(super) fn critical_nodes(&self) -> Vec<usize> {
        let checked = &self.shape.checked;
        let nodes = self.shape.nodes.len();
        let is_measured = (0..nodes).any(|node| self.timing(node).runs > 0);
        let cost = |node: usize| {
            if is_measured {
                self.timing(node).mean().0
            } else {
                u64::from(self.shape.nodes[node].is_job())
            }
        };
        let mut longest = vec![(0_u64, None); nodes];
        for &node in checked.order.iter().rev() {
            let next = checked.successors[node].iter().map(|&(next, _)| next);
            let next = next.max_by_key(|&next| longest[next].0);
            let behind = next.map_or(0, |next| longest[next].0);
            longest[node] = (behind + cost(node), next);
        }
        let first = (0..nodes).rev().max_by_key(|&node| longest[node].0);
        std::iter::successors(first, |&node| longest[node].1).collect()
    }

    pub(super) fn timing(&self, node: usize) -> Timing {
        // SAFETY: a run has the graph to itself, so none is in progress.
        unsafe { self.built.timing(node) }
    }
}

#[inline]
pub(super) fn duration(time: Nanos) -> Duration {
    Duration::from_nanos(time.0)
}
