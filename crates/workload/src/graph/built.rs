//! A graph that is built once, as frames on a job system.
//!
//! The nodes are the jobs and the sync points. A sync point is a job that comes after the awaited job and the
//! sync point before it, and what the main thread would schedule later comes after it. So a frame has the
//! same order as one of [`GraphScene`](super::GraphScene), and the same checksum.

use std::sync::Arc;

use paceline::{BuiltGraph, Grain, JobSystem};
use platform::Platform;

use super::{Bodies, JobGraph, Kind};
use crate::busy::Busy;
use crate::scene::WrongFrame;
use crate::words::Words64;

/// A graph that is built once and run once per frame.
///
/// ```
/// use paceline_workload::busy::Busy;
/// use paceline_workload::graph::{BuiltScene, Generator};
///
/// let js = paceline::JobSystem::new();
/// let graph = Generator { piece: event::Nanos(100), ..Generator::default() }.generate()?;
/// let mut scene = BuiltScene::new(&js, graph, Busy::calibrate(js.platform()));
/// for _ in 0..3 {
///     scene.run();
///     scene.verify()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BuiltScene<P: Platform> {
    bodies: Arc<Bodies>,
    now: Arc<Now>,
    built: BuiltGraph<'static, (), P>,
    frame: u64,
}

/// The words of the frame that runs. Bodies read what was written before the run or by a job before them.
struct Now(Words64);

impl Now {
    fn frame(&self) -> u64 {
        self.0.get(0)
    }

    fn observed(&self) -> u64 {
        self.0.get(1)
    }

    fn begin(&self, frame: u64) {
        self.0.set(0, frame);
        self.observe(0);
    }

    fn observe(&self, observed: u64) {
        self.0.set(1, observed);
    }
}

impl<P: Platform> BuiltScene<P> {
    /// Builds the graph for a job system. Its bodies compute with `busy`.
    ///
    /// # Panics
    /// If the calling thread gets no thread slot.
    pub fn new(js: &JobSystem<P>, graph: JobGraph, busy: Busy) -> BuiltScene<P> {
        BuiltScene::of(js, Arc::new(Bodies::new(graph, busy)))
    }

    /// Builds the graph of these bodies. One scene at a time may run them.
    ///
    /// # Panics
    /// As [`new`](BuiltScene::new).
    pub fn of(js: &JobSystem<P>, bodies: Arc<Bodies>) -> BuiltScene<P> {
        let now = Arc::new(Now(Words64::zeros(2)));
        let mut builder = js.graph("graph");
        let mut nodes = Vec::with_capacity(bodies.graph().jobs().len());
        let mut syncs = bodies.graph().syncs().iter().peekable();
        let mut last_sync = None;
        for (job, node) in (0u32..).zip(bodies.graph().jobs()) {
            let name = match node.kind {
                Kind::Single => "single",
                Kind::Parallel { .. } => "parallel",
            };
            let mut new_job = builder.job(name);
            for &dep in &node.deps {
                new_job = new_job.after(nodes[dep as usize]);
            }
            if let Some(sync) = last_sync {
                new_job = new_job.after(sync);
            }
            let (its, then) = (Arc::clone(&bodies), Arc::clone(&now));
            nodes.push(match node.kind {
                Kind::Single => {
                    new_job.run(move |cx| its.run(then.frame(), job, 0..1, |work| cx.work(work)))
                }
                Kind::Parallel { pieces } => new_job.run(move |cx| {
                    let frame = then.frame();
                    cx.parallel_for(0..pieces as usize, Grain::Auto, |part, cx| {
                        let pieces = part.start as u32..part.end as u32;
                        its.run(frame, job, pieces, |work| cx.work(work));
                    });
                }),
            });
            while let Some(sync) = syncs.next_if(|sync| sync.after == job) {
                let mut new_job = builder.job("sync").after(nodes[sync.wait_for as usize]);
                if let Some(before) = last_sync {
                    new_job = new_job.after(before);
                }
                let (its, then, awaited) = (Arc::clone(&bodies), Arc::clone(&now), sync.wait_for);
                last_sync = Some(new_job.run(move |_| {
                    then.observe(its.observe_also(then.observed(), awaited));
                }));
            }
        }
        BuiltScene {
            built: builder.build(),
            bodies,
            now,
            frame: 0,
        }
    }

    /// Whether the jobs of which more hangs go first: see [`BuiltGraph::critical_first`].
    pub fn critical_first(&mut self, on: bool) {
        self.built.critical_first(on);
    }

    /// Runs the next frame and returns when all its jobs are over.
    ///
    /// # Panics
    /// If the job system's table of jobs is full.
    pub fn run(&mut self) {
        self.frame += 1;
        self.now.begin(self.frame);
        self.built.run(&mut ());
    }

    /// Whether the last frame was run correctly; its checksum if it was.
    ///
    /// # Errors
    /// If a job was left out or ran too early.
    pub fn verify(&self) -> Result<u64, WrongFrame> {
        let got = self.bodies.checksum(self.now.observed());
        WrongFrame::check(self.frame, got, self.bodies.expected(self.frame))
    }
}
