//! Trees of jobs, in which each job schedules its children.

use event::Nanos;
use paceline::{JobSystem, Scope};
use platform::Platform;

use super::{About, Bodies, JobGraph, Kind, Node};
use crate::busy::Busy;
use crate::scene::WrongFrame;

impl JobGraph {
    /// A tree of so many single jobs that compute for `piece`, level by level: each but the last ones has
    /// `children` jobs that depend on it.
    ///
    /// # Errors
    /// If there are too many of them.
    ///
    /// # Panics
    /// If `children` is 0.
    pub fn tree(jobs: u32, children: u32, piece: Nanos) -> Result<JobGraph, super::GraphError> {
        let node = |job: u32| Node {
            label: format!("job {job}"),
            kind: Kind::Single,
            cost: piece,
            deps: job
                .checked_sub(1)
                .map(|before| before / children)
                .into_iter()
                .collect(),
        };
        let about = About {
            name: format!("tree-{jobs}-{children}"),
            source: "computed: jobs that schedule jobs, which source 001 describes".to_owned(),
            unit: "a job that schedules others".to_owned(),
            scale: format!("every job takes {piece}"),
        };
        JobGraph::new(about, (0..jobs).map(node).collect(), Vec::new())
    }
}

/// A tree of jobs that is run once per frame by the job system: the main thread schedules the root in a scope
/// and waits for the scope; each job schedules its children into the scope when its own work is done.
///
/// ```
/// use paceline_workload::busy::Busy;
/// use paceline_workload::graph::{JobGraph, TreeScene};
///
/// let js = paceline::JobSystem::new();
/// let tree = JobGraph::tree(100, 2, event::Nanos(100))?;
/// let mut scene = TreeScene::new(tree, Busy::calibrate(js.platform()));
/// for _ in 0..3 {
///     scene.run(&js);
///     scene.verify()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TreeScene {
    bodies: Bodies,
    children: Vec<Vec<u32>>,
    /// The number of the last frame; 0 before the first.
    frame: u64,
}

impl TreeScene {
    /// A scene of this tree whose bodies compute with `busy` ([`Busy::NONE`] on simulated platforms).
    pub fn new(tree: JobGraph, busy: Busy) -> TreeScene {
        let mut children = vec![Vec::new(); tree.jobs().len()];
        for (job, node) in (0u32..).zip(tree.jobs()) {
            for &parent in &node.deps {
                children[parent as usize].push(job);
            }
        }
        TreeScene {
            bodies: Bodies::new(tree, busy),
            children,
            frame: 0,
        }
    }

    /// Runs the next frame and returns when all its jobs are over.
    ///
    /// # Panics
    /// If the job system's table of jobs is full.
    pub fn run<P: Platform>(&mut self, js: &JobSystem<P>) {
        self.frame += 1;
        let scene = &*self;
        js.scope(|scope| scene.spawn(scope, 0));
    }

    fn spawn<'scope, P: Platform>(&'scope self, scope: &'scope Scope<'scope, '_, P>, job: u32) {
        scope.spawn(move |cx| {
            self.bodies.run(self.frame, job, 0..1, |work| cx.work(work));
            for &child in &self.children[job as usize] {
                self.spawn(scope, child);
            }
        });
    }

    /// Whether the last frame was run correctly; its checksum if it was.
    ///
    /// # Errors
    /// If a job was left out or ran too early.
    pub fn verify(&self) -> Result<u64, WrongFrame> {
        let got = self.bodies.checksum(0);
        WrongFrame::check(self.frame, got, self.bodies.expected(self.frame))
    }
}

#[cfg(test)]
mod tests {
    use paceline::Builder;
    use sim::{Sim, SimConfig};

    use super::*;

    /// Goal: a tree has the jobs and edges that were asked for. Method: one of ten with three children each.
    #[test]
    fn a_tree_is_a_tree() {
        let tree = JobGraph::tree(10, 3, Nanos(7)).unwrap();
        let deps: Vec<_> = tree.jobs().iter().map(|node| node.deps.to_vec()).collect();
        let parents = [0, 0, 0, 1, 1, 1, 2, 2, 2].map(|parent| vec![parent]);
        assert_eq!((deps[0].len(), &deps[1..]), (0, &parents[..]));
        assert_eq!(tree.measure().work, Nanos(70));
    }

    /// Goal: a scene runs every job of its tree, and a frame that was not run is wrong. Method: trees on
    /// simulated threads in many orders, and on one machine without workers.
    #[test]
    fn a_scene_runs_its_tree() {
        for seed in 0..60 {
            let report = Sim::run(SimConfig::new(seed), |sim| {
                let js = Builder::with_platform(sim).workers(seed as usize % 4);
                let js = js.build().unwrap();
                let tree = JobGraph::tree(40, 1 + seed as u32 % 5, Nanos(seed % 2 * 300));
                let mut scene = TreeScene::new(tree.unwrap(), Busy::NONE);
                assert!(scene.verify().is_err());
                for _ in 0..3 {
                    scene.run(&js);
                    scene.verify().unwrap();
                }
            });
            report.expect_finished();
        }
    }
}
