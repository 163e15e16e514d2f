//! A graph as frames on a job system.
//!
//! One frame: the main thread schedules the jobs in their order, each after the ones it depends on; waits
//! where the graph has a sync point; and waits for the sinks at the end. Results, scratch lists and labels
//! are kept from frame to frame, so that all allocations in a frame are the job system's.
//!
//! Invariant: frames have numbers that only grow, which [`Bodies`] needs to tell a result of this
//! frame from an older one. `&mut self` keeps frames from overlapping.

use std::sync::Arc;

use paceline::{Frame, Grain, JobId, JobSystem, NewJob, WaitError};
use platform::Platform;

use super::{Bodies, JobGraph, Kind};
use crate::busy::Busy;
use crate::scene::{NewJobs, Scene, Watch, WatchBodies, WrongFrame, run_unwatched};

/// The names of jobs in traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Labels {
    /// Each by its own label: for looking at frames.
    #[default]
    OfJobs,
    /// "single" or "parallel", as in a program with few places that schedule: for measuring a
    /// scheduler, which has to look up labels it has not seen lately.
    OfKinds,
}

/// A graph that is run once per frame.
///
/// ```
/// use paceline_workload::busy::Busy;
/// use paceline_workload::graph::{Generator, GraphScene, Labels};
///
/// let js = paceline::JobSystem::new();
/// let graph = Generator { piece: event::Nanos(100), ..Generator::default() }.generate()?;
/// let mut scene = GraphScene::new(graph, Busy::calibrate(js.platform()), Labels::OfJobs);
/// for _ in 0..3 {
///     scene.run(&js);
///     scene.verify()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct GraphScene {
    bodies: Arc<Bodies>,
    grain: Grain,
    labels: Vec<&'static str>,
    sinks: Vec<u32>,
    /// The number of the last frame; 0 before the first.
    frame: u64,
    /// The main thread's observations at the last frame's sync points.
    observed: u64,
    /// Scratch: the jobs of the frame, and the ones that a job or the end waits for.
    jobs: Vec<JobId>,
    after: Vec<JobId>,
}

impl GraphScene {
    /// A scene of this graph whose bodies compute with `busy` ([`Busy::NONE`] on simulated
    /// platforms, where work is charged).
    ///
    /// The labels are kept until the program ends, because those of a job system's jobs must be.
    pub fn new(graph: JobGraph, busy: Busy, labels: Labels) -> GraphScene {
        let name = |node: &super::Node| match (labels, node.kind) {
            (Labels::OfJobs, _) => &*node.label.clone().leak(),
            (Labels::OfKinds, Kind::Single) => "single",
            (Labels::OfKinds, Kind::Parallel { .. }) => "parallel",
        };
        GraphScene {
            labels: graph.jobs().iter().map(name).collect(),
            sinks: graph.sinks(),
            jobs: Vec::with_capacity(graph.jobs().len()),
            after: Vec::new(),
            bodies: Arc::new(Bodies::new(graph, busy)),
            grain: Grain::Auto,
            frame: 0,
            observed: 0,
        }
    }

    /// The same with this grain for parallel jobs; [`Grain::Auto`] without.
    pub fn with_grain(self, grain: Grain) -> GraphScene {
        GraphScene { grain, ..self }
    }

    /// The graph.
    pub fn graph(&self) -> &JobGraph {
        self.bodies.graph()
    }

    /// Runs the next frame and returns when all its jobs are over.
    ///
    /// # Panics
    /// If the job system's table of jobs is full.
    pub fn run<P: Platform>(&mut self, js: &JobSystem<P>) {
        run_unwatched(self, js, js);
    }

    /// As [`run`](GraphScene::run), with the jobs belonging to a frame of the job system.
    ///
    /// # Panics
    /// If the job system's table of jobs is full.
    pub fn run_in<P: Platform>(&mut self, js: &JobSystem<P>, frame: &Frame<'_, P>) {
        run_unwatched(self, js, frame);
    }

    /// Runs the next frame on this thread alone: the cost of the frame without a job system.
    pub fn run_serial<P: Platform>(&mut self, platform: &P) {
        self.frame += 1;
        self.observed = self
            .bodies
            .run_serial(self.frame, |work| platform.charge(work));
    }

    /// Whether the last frame was run correctly; its checksum if it was. Costs about as much as
    /// scheduling it.
    ///
    /// # Errors
    /// If a job was left out or ran too early.
    pub fn verify(&self) -> Result<u64, WrongFrame> {
        let got = self.bodies.checksum(self.observed);
        WrongFrame::check(self.frame, got, self.bodies.expected(self.frame))
    }

    #[inline(always)]
    fn schedule<P: Platform>(
        &self,
        new_job: NewJob<'_, 'static, P>,
        job: u32,
        watch: impl WatchBodies,
    ) -> JobId {
        let (bodies, frame) = (Arc::clone(&self.bodies), self.frame);
        match bodies.graph().jobs()[job as usize].kind {
            Kind::Single => new_job.schedule(move |cx| {
                watch.body(job, 1, || {
                    bodies.run(frame, job, 0..1, |work| cx.work(watch.worth(job, work)));
                });
            }),
            Kind::Parallel { pieces } => {
                new_job.schedule_for(0..pieces as usize, self.grain, move |part, cx| {
                    let pieces = part.start as u32..part.end as u32;
                    watch.body(job, part.len() as u64, || {
                        bodies.run(frame, job, pieces, |work| cx.work(watch.worth(job, work)));
                    });
                })
            }
        }
    }
}

impl Scene for GraphScene {
    fn name(&self) -> &'static str {
        "graph"
    }

    fn title(&self) -> String {
        let measure = self.graph().measure();
        format!(
            "graph {}: {} jobs, {} bodies, {} dependencies, {} sync points",
            self.graph().about().name,
            measure.jobs,
            measure.pieces,
            measure.edges,
            measure.syncs
        )
    }

    fn work(&self) -> String {
        let measure = self.graph().measure();
        format!("{} in all, longest chain {}", measure.work, measure.span)
    }

    fn graph_name(&self) -> Option<&str> {
        Some(&self.graph().about().name)
    }

    fn labels(&self) -> &[&'static str] {
        &self.labels
    }

    fn jobs(&self) -> u64 {
        self.labels.len() as u64
    }

    fn skip_to(&mut self, frame: u64) {
        self.frame = self.frame.max(frame.saturating_sub(1));
    }

    fn run_watched<P: Platform>(
        &mut self,
        js: &JobSystem<P>,
        jobs: &impl NewJobs<P>,
        watch: &mut impl Watch<P>,
    ) -> Result<(), WaitError> {
        self.frame += 1;
        self.observed = 0;
        self.jobs.clear();
        let (bodies, watch_bodies) = (Arc::clone(&self.bodies), watch.bodies());
        let mut syncs = bodies.graph().syncs().iter().peekable();
        for (job, &label) in (0u32..).zip(&self.labels) {
            let deps = &bodies.graph().jobs()[job as usize].deps;
            self.after.clear();
            self.after
                .extend(deps.iter().map(|&dep| self.jobs[dep as usize]));
            let new_job = jobs.job(label).after_all(&self.after);
            self.jobs.push(self.schedule(new_job, job, watch_bodies));
            while let Some(sync) = syncs.next_if(|sync| sync.after == job) {
                let target = sync.wait_for as usize;
                watch.wait(js, self.jobs[target], self.labels[target])?;
                self.observed = bodies.observe_also(self.observed, sync.wait_for);
            }
        }
        self.after.clear();
        self.after
            .extend(self.sinks.iter().map(|&sink| self.jobs[sink as usize]));
        watch.wait(js, js.combine(&self.after), "end of frame")
    }

    fn run_serial<P: Platform>(&mut self, platform: &P) {
        GraphScene::run_serial(self, platform);
    }

    fn verify(&mut self) -> Result<u64, WrongFrame> {
        GraphScene::verify(self)
    }
}
