//! A frame as a graph of jobs.
//!
//! ```text
//!         ┌─ transform c ── bin c ─┐                ┌─ raster t ── test t ─┐
//!  plan ──┤  (each chunk c)        ├──── gather ────┤  (each tile t)       ├── resolve
//!         └─ boxes (in pieces) ────┘                └──────────────────────┘
//! ```
//!
//! A chunk is binned as soon as it is transformed, and a tile tested as soon as it is drawn, whatever the
//! others do. Two points are for all: a tile cannot begin before the last bin, because every chunk may have
//! something for it, and a box cannot be called hidden before the last tile. The main thread schedules
//! everything at once and waits once, for the end.

use std::sync::Arc;

use paceline::{Frame, Grain, JobId, JobSystem, WaitError};
use platform::Platform;

use super::field::BOXES;
use super::mesh::Mesh;
use super::occlude::Visibility;
use super::stages::{Buffers, Seen, buffers_of};
use super::view::PATH_FRAMES;
use super::{BOX_SHARES, CHUNKS, HEIGHT, TILES, WIDTH, picture};
use crate::scene::{NewJobs, Picture, Scene, Watch, WatchBodies, WrongFrame, run_unwatched};

/// The labels of the jobs.
const LABELS: [&str; 8] = [
    "plan",
    "transform",
    "bin",
    "boxes",
    "gather",
    "raster",
    "test",
    "resolve",
];
const PLAN: u32 = 0;
const TRANSFORM: u32 = 1;
const BIN: u32 = 2;
const SHADOWS: u32 = 3;
const GATHER: u32 = 4;
const RASTER: u32 = 5;
const TEST: u32 = 6;
const RESOLVE: u32 = 7;

/// The number of steps along the way from one serial frame to the next: few serial frames are to show the
/// cost of the whole way. Odd, so that every step is reached.
const SERIAL_STRIDE: u64 = 37;
const _: () = assert!(PATH_FRAMES.is_power_of_two() && SERIAL_STRIDE % 2 == 1);

/// Occlusion culling, once per frame, by a camera that moves on from frame to frame.
///
/// ```
/// use paceline_workload::raster::{Mesh, RasterScene};
///
/// let js = paceline::JobSystem::new();
/// let roof = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";
/// let mesh = Mesh::from_obj(roof, "roof.obj")?;
/// let mut scene = RasterScene::new(mesh);
/// scene.run(&js);
/// let counts = scene.counts();
/// assert_eq!(counts.outside + counts.hidden + counts.visible, counts.boxes);
/// # Ok::<(), paceline_workload::raster::MeshError>(())
/// ```
pub struct RasterScene {
    buffers: Arc<Buffers>,
    /// For serial runs of frames that are to be verified.
    reference: Buffers,
    /// The checksum of each step of the way, as far as known.
    expected: Vec<Option<u64>>,
    /// The number of the last frame, counted from 1; and the step of the way it was seen from.
    frame: u64,
    step: u64,
    /// The steps that come next, on a job system and on one thread.
    next: u64,
    next_serial: u64,
    /// Scratch: the jobs that the end of the two halves of the graph waits for.
    after: Vec<JobId>,
}

/// The results of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Triangles submitted.
    pub triangles: u64,
    /// Statues drawn.
    pub statues: u64,
    /// Boxes in the field: those of the three kinds.
    pub boxes: u64,
    /// Boxes that are not in the picture.
    pub outside: u64,
    /// Boxes in the picture that are hidden.
    pub hidden: u64,
    /// Boxes in the picture that may be seen.
    pub visible: u64,
}

impl RasterScene {
    /// A scene with statues of this mesh, of any size and place.
    pub fn new(mesh: Mesh) -> RasterScene {
        let buffers = buffers_of(mesh);
        RasterScene {
            reference: Buffers::new(Arc::clone(buffers.field())),
            buffers: Arc::new(buffers),
            expected: vec![None; PATH_FRAMES as usize],
            frame: 0,
            step: 0,
            next: 0,
            next_serial: 0,
            after: Vec::new(),
        }
    }

    /// Runs a frame and returns when all its jobs are over.
    ///
    /// # Panics
    /// If the job system's table of jobs is full.
    pub fn run<P: Platform>(&mut self, js: &JobSystem<P>) {
        run_unwatched(self, js, js);
    }

    /// As [`run`](RasterScene::run), with the jobs belonging to a frame of the job system.
    ///
    /// # Panics
    /// If the job system's table of jobs is full.
    pub fn run_in<P: Platform>(&mut self, js: &JobSystem<P>, frame: &Frame<'_, P>) {
        run_unwatched(self, js, frame);
    }

    /// The results of the last frame; nothing before the first.
    pub fn counts(&self) -> Counts {
        counts(&self.buffers.seen())
    }

    /// The verdict of the last frame on each box; nothing before the first.
    pub fn visibility(&self) -> Vec<Visibility> {
        self.buffers.seen().boxes
    }

    /// The depth buffer of the last frame, row by row: 1/w of the nearest surface, 0 where there is none.
    pub fn depth(&self) -> Vec<f32> {
        picture::depth(&self.buffers)
    }

    /// The checksum that a frame seen from this step must have.
    fn expect(&mut self, step: u64) -> u64 {
        *self.expected[step as usize].get_or_insert_with(|| {
            self.reference.run_serial(0, step, |_| ());
            self.reference.checksum(0)
        })
    }

    fn begin(&mut self, step: u64) {
        self.frame += 1;
        self.step = step;
    }
}

pub(super) fn counts(seen: &Seen) -> Counts {
    let count = |kind| seen.boxes.iter().filter(|&&found| found == kind).count() as u64;
    Counts {
        triangles: seen.triangles,
        statues: seen.statues,
        boxes: seen.boxes.len() as u64,
        outside: count(Visibility::Outside),
        hidden: count(Visibility::Hidden),
        visible: count(Visibility::Visible),
    }
}

impl Scene for RasterScene {
    fn name(&self) -> &'static str {
        "raster"
    }

    fn title(&self) -> String {
        format!(
            "occlusion culling: {BOXES} boxes behind statues, depth {WIDTH}x{HEIGHT} in {TILES} tiles"
        )
    }

    fn work(&self) -> String {
        let Counts {
            triangles,
            statues,
            hidden,
            visible,
            ..
        } = self.counts();
        let inside = hidden + visible;
        let share = hidden as f64 * 100.0 / inside.max(1) as f64;
        format!(
            "last frame: {triangles} triangles of {statues} statues; {hidden} of {inside} boxes in \
             the picture culled ({share:.0} %)"
        )
    }

    fn labels(&self) -> &[&'static str] {
        &LABELS
    }

    fn jobs(&self) -> u64 {
        // A plan, the boxes, a gathering and a resolution beside chunks and tiles.
        4 + 2 * (CHUNKS + TILES) as u64
    }

    fn prepare(&mut self, frames: u64, step: &mut dyn FnMut(u64, u64)) {
        let count = frames.min(PATH_FRAMES);
        for done in 0..count {
            self.expect((self.next + done) % PATH_FRAMES);
            step(done + 1, count);
        }
    }

    fn run_watched<P: Platform>(
        &mut self,
        js: &JobSystem<P>,
        jobs: &impl NewJobs<P>,
        watch: &mut impl Watch<P>,
    ) -> Result<(), WaitError> {
        self.begin(self.next);
        self.next = (self.next + 1) % PATH_FRAMES;
        let (frame, step, bodies) = (self.frame, self.step, watch.bodies());
        // One step of the frame as a job, after these.
        let add =
            |label: u32, after: &[JobId], run: fn(&Buffers, usize) -> event::Nanos, of: usize| {
                let buffers = Arc::clone(&self.buffers);
                let job = jobs.job(LABELS[label as usize]).after_all(after);
                job.schedule(move |cx| {
                    bodies.body(label, 1, || cx.work(bodies.worth(label, run(&buffers, of))));
                })
            };
        let buffers = Arc::clone(&self.buffers);
        let plan = jobs.job(LABELS[PLAN as usize]).schedule(move |cx| {
            bodies.body(PLAN, 1, || {
                cx.work(bodies.worth(PLAN, buffers.plan(frame, step)));
            });
        });
        self.after.clear();
        for chunk in 0..CHUNKS {
            let points = add(TRANSFORM, &[plan], Buffers::transform, chunk);
            self.after.push(add(BIN, &[points], Buffers::bin, chunk));
        }
        let buffers = Arc::clone(&self.buffers);
        let shadows = jobs.job(LABELS[SHADOWS as usize]).after(plan);
        self.after.push(
            shadows.schedule_for(0..BOX_SHARES, Grain::Auto, move |part, cx| {
                bodies.body(SHADOWS, part.len() as u64, || {
                    part.clone().for_each(|share| {
                        cx.work(bodies.worth(SHADOWS, buffers.shadows(share)));
                    });
                });
            }),
        );
        let gather = add(GATHER, &self.after, |buffers, _| buffers.gather(), 0);
        self.after.clear();
        for tile in 0..TILES {
            let drawn = add(RASTER, &[gather], Buffers::raster, tile);
            self.after.push(add(TEST, &[drawn], Buffers::test, tile));
        }
        let end = add(RESOLVE, &self.after, |buffers, _| buffers.resolve(), 0);
        watch.wait(js, end, "end of frame")
    }

    fn run_serial<P: Platform>(&mut self, platform: &P) {
        self.begin(self.next_serial);
        self.next_serial = (self.next_serial + SERIAL_STRIDE) % PATH_FRAMES;
        let (frame, step) = (self.frame, self.step);
        let charge = |work| platform.charge(work);
        self.buffers.run_serial(frame, step, charge);
    }

    fn verify(&mut self) -> Result<u64, WrongFrame> {
        let got = self.buffers.checksum(self.frame);
        WrongFrame::check(self.frame, got, self.expect(self.step))
    }

    fn picture(&self) -> Option<Picture> {
        Some(picture::draw(&self.buffers))
    }
}
