//! The limits that a graph sets: its work, its span, its width, and the speed-ups they bound.
//!
//! Times are those of the bodies alone: a scheduler that costs nothing. The main thread's sync
//! points count as edges, because a job that comes after one is not scheduled before it is passed.

use event::Nanos;

use super::JobGraph;

/// The measures of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// How many jobs.
    pub jobs: usize,
    /// How many bodies: pieces of parallel jobs, and one per single job.
    pub pieces: u64,
    /// How many dependencies.
    pub edges: usize,
    /// How many sync points.
    pub syncs: usize,
    /// All bodies one after the other: the time on one thread.
    pub work: Nanos,
    /// The longest chain of jobs that wait for each other: the time on unlimited threads.
    pub span: Nanos,
    /// The most bodies that run at one instant on unlimited threads, if each starts as early as it
    /// can: more threads than this are of no use.
    pub width: u64,
}

impl JobGraph {
    /// Measures the graph, in time proportional to its size (and a sort).
    pub fn measure(&self) -> Measure {
        let times = self.earliest();
        Measure {
            jobs: self.jobs().len(),
            pieces: self
                .jobs()
                .iter()
                .map(|node| u64::from(node.pieces()))
                .sum(),
            edges: self.jobs().iter().map(|node| node.deps.len()).sum(),
            syncs: self.syncs().len(),
            work: self
                .jobs()
                .iter()
                .fold(Nanos::ZERO, |sum, node| sum + node.work()),
            span: times.iter().map(|&(_, end)| end).max().unwrap_or_default(),
            width: self.width(&times),
        }
    }

    /// When each job begins and ends on unlimited threads.
    fn earliest(&self) -> Vec<(Nanos, Nanos)> {
        let mut times: Vec<(Nanos, Nanos)> = Vec::with_capacity(self.jobs().len());
        let mut syncs = self.syncs().iter().peekable();
        // When the main thread schedules: it has passed every earlier sync point.
        let mut main = Nanos::ZERO;
        for (index, node) in (0..).zip(self.jobs()) {
            let end_of = |times: &[(Nanos, Nanos)], job: u32| times[job as usize].1;
            let begin = node
                .deps
                .iter()
                .map(|&dep| end_of(&times, dep))
                .fold(main, Nanos::max);
            times.push((begin, begin + node.cost));
            while let Some(sync) = syncs.next_if(|sync| sync.after == index) {
                main = main.max(end_of(&times, sync.wait_for));
            }
        }
        times
    }

    fn width(&self, times: &[(Nanos, Nanos)]) -> u64 {
        // At one instant ends come before beginnings (false < true): bodies that touch do not
        // overlap, and those of no length never count.
        let mut changes = Vec::with_capacity(2 * times.len());
        for (node, &(begin, end)) in self.jobs().iter().zip(times).filter(|(n, _)| n.cost.0 > 0) {
            changes.push((begin, true, u64::from(node.pieces())));
            changes.push((end, false, u64::from(node.pieces())));
        }
        changes.sort_unstable();
        let (mut now, mut most) = (0, 0);
        for (_, begins, pieces) in changes {
            now = if begins { now + pieces } else { now - pieces };
            most = most.max(now);
        }
        most
    }
}

impl Measure {
    /// The best speed-up over one thread that `threads` threads can reach: no more than the
    /// threads, and no more than work over span.
    pub fn speedup_at_most(&self, threads: u32) -> f64 {
        let (work, span) = (self.work.0 as f64, self.span.0 as f64);
        let threads = f64::from(threads.max(1));
        if span == 0.0 {
            1.0
        } else {
            threads.min(work / span)
        }
    }

    /// The speed-up that is reached as long as no thread is idle while a body is ready: the time is then at
    /// most work/n + span·(n−1)/n (R. L. Graham, "Bounds on multiprocessing timing anomalies", 1969). A lower
    /// speed-up is the scheduler's fault, not the graph's.
    pub fn speedup_at_least(&self, threads: u32) -> f64 {
        let (work, span) = (self.work.0 as f64, self.span.0 as f64);
        let threads = f64::from(threads.max(1));
        if span == 0.0 {
            1.0
        } else {
            work / (work / threads + span * (threads - 1.0) / threads)
        }
    }
}
