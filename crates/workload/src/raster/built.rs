//! The frame of [`super::run`] as a graph that is built once, and whose jobs say what they touch.
//!
//! The order is the same. Nothing is moved from job to job: a body gets references to what its job declares,
//! and a graph in which two of them could meet is not built.

use std::sync::Arc;

use paceline::{BuiltGraph, GraphNode, JobSystem, PlanError};
use platform::Platform;

use super::bins::{Binned, Triangle};
use super::field::Field;
use super::mesh::Mesh;
use super::occlude::{Shadows, Visibility};
use super::plan::Plan;
use super::run::{Counts, counts};
use super::stages::{Buffers, Seen};
use super::steps::{self, Checksum, Resolve};
use super::tile::Tile;
use super::transform::Points;
use super::view::PATH_FRAMES;
use super::{BOX_SHARES, CHUNKS, TILES};
use crate::scene::WrongFrame;

/// The data of a frame.
struct RasterWorld {
    field: Arc<Field>,
    /// Where the camera is.
    camera: Camera,
    plan: Plan,
    /// By chunk.
    points: Vec<Points>,
    bins: Vec<Binned<Triangle>>,
    /// By share of the boxes.
    shadows: Vec<Shadows>,
    /// By tile.
    tiles: Vec<Tile>,
    seen: Vec<Vec<u32>>,
    result: Seen,
}

/// The number of a frame, counted from 1, and the step of the way that it is seen from.
#[derive(Clone, Copy, Default)]
struct Camera {
    frame: u64,
    step: u64,
}

paceline::resources! {
    RasterWorld: Keys {
        field: Arc<Field>, camera: Camera, plan: Plan, points: [Points], bins: [Binned<Triangle>],
        shadows: [Shadows], tiles: [Tile], seen: [Vec<u32>], result: Seen,
    }
}

/// Declares the frame and builds it. `after` is asked for the jobs that a job comes after: those it is given,
/// but for tests.
fn frame<P: Platform>(
    js: &JobSystem<P>,
    mut after: impl FnMut(&[GraphNode]) -> Vec<GraphNode>,
) -> Result<BuiltGraph<'static, RasterWorld, P>, PlanError> {
    let (mut graph, w) = js.graph_of::<RasterWorld>("raster");
    let plan = graph.job("plan").reads(w.field).reads(w.camera);
    let plan = plan.writes(w.plan).run(|cx, (field, camera, plan)| {
        cx.work(steps::plan(field, camera.frame, camera.step, plan));
    });

    let mut scenery = Vec::new();
    for chunk in 0..CHUNKS {
        let points = graph.job("transform").after_all(after(&[plan]));
        let points = points
            .reads(w.field)
            .reads(w.plan)
            .writes(w.points.at(chunk));
        let points = points.run(move |cx, (field, plan, points)| {
            cx.work(steps::transform(field, plan, chunk, points));
        });
        let bin = graph.job("bin").after_all(after(&[points]));
        let bin = bin
            .reads(w.field)
            .reads(w.points.at(chunk))
            .writes(w.bins.at(chunk));
        scenery.push(bin.run(|cx, (field, points, bins)| cx.work(steps::bin(field, points, bins))));
    }
    let boxes = graph.job("boxes").after_all(after(&[plan]));
    let boxes = boxes.reads(w.field).reads(w.plan).writes(w.shadows);
    scenery.push(boxes.run(|cx, (field, plan, shadows)| {
        let shares = cx.over((shadows, 0..BOX_SHARES));
        shares.for_each_with(|cx, (shadows, share)| {
            cx.work(steps::shadows(field, plan, share, shadows));
        });
    }));
    let gather = graph.job("gather").after_all(after(&scenery)).run(|_| ());

    let mut tests = Vec::new();
    for tile in 0..TILES {
        let raster = graph.job("raster").after_all(after(&[gather]));
        let raster = raster.reads(w.plan).reads(w.bins).writes(w.tiles.at(tile));
        let raster = raster.run(move |cx, (plan, bins, drawn)| {
            cx.work(steps::raster(plan.frame, tile, bins, drawn));
        });
        let test = graph.job("test").after_all(after(&[raster]));
        let test = test
            .reads(w.shadows)
            .reads(w.tiles.at(tile))
            .writes(w.seen.at(tile));
        tests.push(test.run(move |cx, (shadows, drawn, seen)| {
            cx.work(steps::test(tile, shadows, drawn, seen));
        }));
    }
    let resolve = graph.job("resolve").after_all(after(&tests));
    let resolve = resolve
        .reads(w.plan)
        .reads(w.shadows)
        .reads(w.seen)
        .writes(w.result);
    resolve.run(|cx, (plan, shadows, seen, result)| {
        let mut resolve = Resolve::begin(shadows, result);
        for seen in seen.iter() {
            resolve.add(seen);
        }
        cx.work(resolve.end(plan, plan.frame));
    });
    graph.try_build()
}

/// Occlusion culling, as [`RasterScene`](super::RasterScene) does it, with a graph that is built once.
///
/// ```
/// use paceline_workload::raster::{BuiltRaster, Mesh};
///
/// let js = paceline::JobSystem::new();
/// let roof = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";
/// let mut scene = BuiltRaster::new(&js, Mesh::from_obj(roof, "roof.obj")?);
/// scene.run();
/// scene.verify()?;
/// let counts = scene.counts();
/// assert_eq!(counts.outside + counts.hidden + counts.visible, counts.boxes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BuiltRaster<P: Platform> {
    graph: BuiltGraph<'static, RasterWorld, P>,
    world: RasterWorld,
}

impl<P: Platform> BuiltRaster<P> {
    /// A scene with statues of this mesh, of any size and place.
    ///
    /// # Panics
    /// If the calling thread gets no thread slot.
    pub fn new(js: &JobSystem<P>, mesh: Mesh) -> BuiltRaster<P> {
        let graph = frame(js, <[GraphNode]>::to_vec);
        BuiltRaster {
            graph: graph.unwrap_or_else(|error| panic!("{error}")),
            world: RasterWorld::new(Arc::new(Field::new(mesh))),
        }
    }

    /// Runs the next frame and returns when all its jobs are over.
    ///
    /// # Panics
    /// If the job system's table of jobs is full.
    pub fn run(&mut self) {
        let camera = &mut self.world.camera;
        *camera = Camera {
            frame: camera.frame + 1,
            step: camera.frame % PATH_FRAMES,
        };
        self.graph.run(&mut self.world);
    }

    /// The results of the last frame; nothing before the first.
    pub fn counts(&self) -> Counts {
        counts(&self.world.result)
    }

    /// The verdict of the last frame on each box; nothing before the first.
    pub fn visibility(&self) -> &[Visibility] {
        &self.world.result.boxes
    }

    /// Whether the last frame was run correctly; its checksum if it was. Runs it once more, on this thread.
    ///
    /// # Errors
    /// If its result is not that of a serial run.
    pub fn verify(&self) -> Result<u64, WrongFrame> {
        let RasterWorld { field, camera, .. } = &self.world;
        let serial = Buffers::new(Arc::clone(field));
        serial.run_serial(camera.frame, camera.step, |_| ());
        let expected = serial.checksum(camera.frame);
        WrongFrame::check(camera.frame, self.world.checksum(), expected)
    }
}

impl RasterWorld {
    fn new(field: Arc<Field>) -> RasterWorld {
        fn buffers<T: Default>(count: usize) -> Vec<T> {
            (0..count).map(|_| T::default()).collect()
        }
        RasterWorld {
            field,
            camera: Camera::default(),
            plan: Plan::default(),
            points: buffers(CHUNKS),
            bins: buffers(CHUNKS),
            shadows: buffers(BOX_SHARES),
            tiles: buffers(TILES),
            seen: buffers(TILES),
            result: Seen::default(),
        }
    }

    fn checksum(&self) -> u64 {
        let mut checksum = Checksum::of(self.camera.frame);
        for (number, tile) in self.tiles.iter().enumerate() {
            checksum.add(number, tile);
        }
        checksum.end(&self.result)
    }
}

#[cfg(test)]
mod tests {
    use paceline::{Builder, PlanError};

    use super::super::default_mesh;
    use super::*;

    /// Goal: frames of the graph are those of a serial run, bit for bit, and the scene's own checksums.
    /// Method: three frames, on workers and without; the first one's is compared with that of `RasterScene`.
    #[cfg_attr(miri, ignore = "minutes")]
    #[test]
    fn frames_are_those_of_a_serial_run() {
        for workers in [0, 2] {
            let js = Builder::new().workers(workers).build().unwrap();
            let mut scene = BuiltRaster::new(&js, default_mesh());
            let mut anew = super::super::RasterScene::new(default_mesh());
            for _ in 0..3 {
                scene.run();
                anew.run(&js);
                let checksum = scene.verify();
                assert_eq!(checksum, crate::Scene::verify(&mut anew));
                assert_eq!(scene.counts(), anew.counts());
                assert_eq!(scene.visibility(), anew.visibility());
            }
        }
    }

    /// Goal: with all dependencies no alarm; without any one of them an alarm that names the two jobs and
    /// what both touch. Method: each dependency is left out once. All of this scene's are between jobs of
    /// which one reads what the other writes, or all behind the gathering, what all before it write; and none
    /// follows from others.
    #[cfg_attr(miri, ignore = "minutes")]
    #[test]
    fn each_dependency_that_is_left_out_is_an_alarm() {
        let js = Builder::new().workers(0).build().unwrap();
        let mut count = 0;
        let counted = |nodes: &[GraphNode]| {
            count += nodes.len();
            nodes.to_vec()
        };
        assert!(frame(&js, counted).is_ok());
        // A chunk's points, its bin and the gathering; the boxes likewise; a tile's depth, its test, the end.
        assert_eq!(count, 3 * CHUNKS + 2 + 3 * TILES);
        for left_out in 0..count {
            let mut next = 0;
            let without = |nodes: &[GraphNode]| {
                let numbers = next..;
                next += nodes.len();
                let kept = numbers.zip(nodes).filter(|&(number, _)| number != left_out);
                kept.map(|(_, &node)| node).collect()
            };
            let Err(PlanError::Conflict(conflict)) = frame(&js, without) else {
                panic!("dependency {left_out} is not missed");
            };
            let expected: &[_] = match (conflict.earlier.label.name, conflict.later.label.name) {
                ("plan", "transform" | "boxes") => &["plan"],
                ("transform", "bin") => &["points"],
                ("bin", "raster") => &["bins"],
                ("plan", "raster") => &["plan"],
                ("boxes", "test") => &["shadows"],
                ("raster", "test") => &["tiles"],
                ("test", "resolve") => &["seen"],
                other => panic!("{left_out}: {other:?}, {conflict}"),
            };
            assert!(expected.contains(&conflict.resource), "{conflict}");
        }
    }
}
