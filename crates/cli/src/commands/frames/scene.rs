//! What a frame does, with a look at every wait and every body.
//!
//! The graphs, the bodies and the check of their results are the `workload` crate's; here they are
//! run so that each wait of the main thread is timed, each body passes the [`Probe`], and a job that
//! panics is an error with its name and not a panic.
//!
//! What jobs use is made once and kept until the process ends: no job has to count references.

use paceline::{Frame, Grain, JobId, JobSystem, WaitError};
use platform::Os;
use workload::busy::Busy;
use workload::graph::{Bodies, JobGraph, Kind};
use workload::mandelbrot::{Grid, Mandelbrot};

use super::image::Image;
use super::probe::Probe;
use super::waits::Waits;
use crate::failure::Failure;

/// One frame being run.
pub(super) struct Turn<'a> {
    pub(super) js: &'a JobSystem<Os>,
    pub(super) frame: &'a Frame<'a, Os>,
    pub(super) probe: &'static Probe,
    pub(super) waits: &'a mut Waits,
}

impl Turn<'_> {
    fn wait(&mut self, job: JobId, name: &'static str) -> Result<(), WaitError> {
        let js = self.js;
        self.waits.time(name, || js.try_wait(job))
    }
}

/// Something that is done once per frame.
pub(super) trait Scene {
    /// What it is, for people.
    fn title(&self) -> String;
    /// What there is to do, for people.
    fn work(&self) -> String;
    /// What it is called.
    fn name(&self) -> &'static str;
    /// The name of its graph, if it is one.
    fn graph(&self) -> Option<&str>;
    /// What its jobs are called; a job's label is a position in this list.
    fn labels(&self) -> &[&'static str];
    /// How many jobs a frame has.
    fn jobs(&self) -> u64;
    /// Forgets the last frame.
    fn clear(&mut self);
    /// Runs the next frame on the calling thread alone.
    fn run_serial(&mut self);
    /// Runs the next frame on the job system.
    fn run(&mut self, turn: Turn<'_>) -> Result<(), WaitError>;
    /// The checksum of the last frame; as an error if it should be another.
    fn verify(&self) -> Result<u64, WrongResult>;
    /// The last frame as a picture.
    fn image(&self) -> Option<Image>;
}

/// A frame's result is not that of a serial run.
#[derive(Debug)]
pub(super) struct WrongResult {
    pub(super) got: u64,
    pub(super) expected: u64,
}

/// Jobs with dependencies.
pub(super) struct GraphScene {
    bodies: &'static Bodies,
    labels: Vec<&'static str>,
    sinks: Vec<u32>,
    /// The number of the last frame. Frames on the job system and serial ones share the numbers, so
    /// that no result of an earlier frame looks like one of this.
    number: u64,
    observed: u64,
    /// Scratch.
    ids: Vec<JobId>,
    after: Vec<JobId>,
}

impl GraphScene {
    pub(super) fn new(graph: JobGraph, busy: Busy) -> GraphScene {
        let label = |label: &String| &*label.clone().leak();
        GraphScene {
            labels: graph.jobs().iter().map(|node| label(&node.label)).collect(),
            sinks: graph.sinks(),
            bodies: Box::leak(Box::new(Bodies::new(graph, busy))),
            number: 0,
            observed: 0,
            ids: Vec::new(),
            after: Vec::new(),
        }
    }

    fn schedule(&self, turn: &Turn<'_>, job: u32) -> JobId {
        let (bodies, number, probe) = (self.bodies, self.number, turn.probe);
        let new_job = turn
            .frame
            .job(self.labels[job as usize])
            .after_all(&self.after);
        match bodies.graph().jobs()[job as usize].kind {
            Kind::Single => new_job.schedule(move |_| {
                probe.body(job, 1, || bodies.run(number, job, 0..1, |_| ()));
            }),
            Kind::Parallel { pieces } => {
                new_job.schedule_for(0..pieces as usize, Grain::Auto, move |part, _| {
                    let pieces = part.start as u32..part.end as u32;
                    probe.body(job, part.len() as u64, || {
                        bodies.run(number, job, pieces.clone(), |_| ());
                    });
                })
            }
        }
    }
}

impl Scene for GraphScene {
    fn title(&self) -> String {
        let graph = self.bodies.graph();
        let measure = graph.measure();
        format!(
            "graph {}: {} jobs, {} bodies, {} dependencies, {} sync points",
            graph.about().name,
            measure.jobs,
            measure.pieces,
            measure.edges,
            measure.syncs
        )
    }

    fn work(&self) -> String {
        let measure = self.bodies.graph().measure();
        format!("{} in all, longest chain {}", measure.work, measure.span)
    }

    fn name(&self) -> &'static str {
        "graph"
    }

    fn graph(&self) -> Option<&str> {
        Some(&self.bodies.graph().about().name)
    }

    fn labels(&self) -> &[&'static str] {
        &self.labels
    }

    fn jobs(&self) -> u64 {
        self.labels.len() as u64
    }

    /// Nothing: results know their frame.
    fn clear(&mut self) {}

    fn run_serial(&mut self) {
        self.number += 1;
        self.observed = self.bodies.run_serial(self.number, |_| ());
    }

    fn run(&mut self, mut turn: Turn<'_>) -> Result<(), WaitError> {
        self.number += 1;
        self.observed = 0;
        self.ids.clear();
        let graph = self.bodies.graph();
        let mut syncs = graph.syncs().iter().peekable();
        for (job, node) in (0u32..).zip(graph.jobs()) {
            self.after.clear();
            let deps = node.deps.iter().map(|&dep| self.ids[dep as usize]);
            self.after.extend(deps);
            self.ids.push(self.schedule(&turn, job));
            while let Some(sync) = syncs.next_if(|sync| sync.after == job) {
                let target = sync.wait_for as usize;
                turn.wait(self.ids[target], self.labels[target])?;
                self.observed = self.bodies.observe_also(self.observed, sync.wait_for);
            }
        }
        self.after.clear();
        let sinks = self.sinks.iter().map(|&sink| self.ids[sink as usize]);
        self.after.extend(sinks);
        turn.wait(turn.js.combine(&self.after), "end of frame")
    }

    fn verify(&self) -> Result<u64, WrongResult> {
        let got = self.bodies.checksum(self.observed);
        let expected = self.bodies.expected(self.number);
        match got == expected {
            true => Ok(got),
            false => Err(WrongResult { got, expected }),
        }
    }

    fn image(&self) -> Option<Image> {
        None
    }
}

/// A picture, tile by tile.
pub(super) struct MandelbrotScene {
    grid: &'static Grid,
    /// The checksum of a serial run.
    expected: u64,
    tiles: Vec<JobId>,
}

impl MandelbrotScene {
    pub(super) fn new(what: Mandelbrot) -> Result<MandelbrotScene, Failure> {
        let grid: &Grid = Box::leak(Box::new(Grid::new(what).map_err(Failure::usage)?));
        grid.run_serial(|_| ());
        Ok(MandelbrotScene {
            grid,
            expected: checksum(grid),
            tiles: Vec::new(),
        })
    }
}

impl Scene for MandelbrotScene {
    fn title(&self) -> String {
        let what = self.grid.what();
        format!(
            "Mandelbrot set of {}x{} points: {} tiles",
            what.width,
            what.height,
            self.grid.tiles()
        )
    }

    fn work(&self) -> String {
        let inside = self.grid.inside();
        let most = self.grid.what().max_iterations;
        format!("{inside} points take all of {most} iterations, the others fewer")
    }

    fn name(&self) -> &'static str {
        "mandelbrot"
    }

    fn graph(&self) -> Option<&str> {
        None
    }

    fn labels(&self) -> &[&'static str] {
        &["tile"]
    }

    fn jobs(&self) -> u64 {
        u64::from(self.grid.tiles())
    }

    fn clear(&mut self) {
        self.grid.clear();
    }

    fn run_serial(&mut self) {
        self.grid.run_serial(|_| ());
    }

    fn run(&mut self, mut turn: Turn<'_>) -> Result<(), WaitError> {
        let (grid, probe) = (self.grid, turn.probe);
        self.tiles.clear();
        for tile in 0..grid.tiles() {
            let body = move || grid.run_tile(tile, |_| ());
            let new_job = turn.frame.job("tile");
            self.tiles
                .push(new_job.schedule(move |_| probe.body(0, 1, body)));
        }
        turn.wait(turn.js.combine(&self.tiles), "end of frame")
    }

    fn verify(&self) -> Result<u64, WrongResult> {
        let (got, expected) = (checksum(self.grid), self.expected);
        match got == expected {
            true => Ok(got),
            false => Err(WrongResult { got, expected }),
        }
    }

    fn image(&self) -> Option<Image> {
        Some(Image {
            width: self.grid.what().width,
            height: self.grid.what().height,
            rgb: self.grid.pixels(),
        })
    }
}

/// FNV-1a over the counts.
fn checksum(grid: &Grid) -> u64 {
    grid.counts().fold(0xcbf2_9ce4_8422_2325, |hash, count| {
        (hash ^ u64::from(count)).wrapping_mul(0x0100_0000_01b3)
    })
}
