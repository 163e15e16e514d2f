//! The scenes on real job systems: results are those of a serial run, whatever the workers.

use std::sync::Arc;

use event::{Event, MemorySink, Nanos};
use paceline::{Builder, Grain, JobSystem};
use paceline_workload::busy::Busy;
use paceline_workload::graph::{Generator, GraphScene, Labels, named};
use paceline_workload::mandelbrot::{Mandelbrot, MandelbrotScene, Tiles};
use paceline_workload::raster::{Mesh, RasterScene, default_mesh};
use paceline_workload::{Scene, WrongFrame};
use platform::Os;

/// Job systems with no workers at all (the waiting thread runs everything), one, and two.
fn job_systems() -> impl Iterator<Item = JobSystem<Os>> {
    [0, 1, 2]
        .into_iter()
        .map(|workers| Builder::new().workers(workers).build().unwrap())
}

/// Goal: every edge and sync point of source 001's frame is kept, frame after frame. Method: ten
/// frames of pieces that take no time (the harshest for a scheduler), with both grains; each
/// checksum is that of a serial run.
#[test]
fn generated_frames_equal_serial_ones() {
    let graph = Generator {
        piece: Nanos::ZERO,
        ..Generator::default()
    }
    .generate()
    .unwrap();
    for js in job_systems() {
        for grain in [Grain::Auto, Grain::Items(1)] {
            let scene = GraphScene::new(graph.clone(), Busy::NONE, Labels::OfKinds);
            let mut scene = scene.with_grain(grain);
            for _ in 0..10 {
                scene.run(&js);
                scene.verify().unwrap();
            }
        }
    }
}

/// Goal: the measured build runs as frames of a job system, with bodies that compute. Method: the
/// graph of the library at its real length, two frames per job system, counted by it.
#[test]
fn measured_frames_equal_serial_ones() {
    let busy = Busy::calibrate(&Os);
    let mut scene = GraphScene::new(named("gitoxide-build").unwrap(), busy, Labels::OfJobs);
    scene.run_serial(&Os);
    scene.verify().unwrap();
    for js in job_systems() {
        for _ in 0..2 {
            let frame = js.frame("build", std::time::Duration::from_millis(16));
            scene.run_in(&js, &frame);
            drop(frame);
            scene.verify().unwrap();
        }
        assert_eq!(js.stats().frames, 2);
    }
}

/// Goal: a scene moves between job systems and serial runs and stays correct. Method: frames in
/// turn on two systems and on none.
#[test]
fn a_scene_is_not_bound_to_a_job_system() {
    let graph = Generator {
        jobs: 60,
        piece: Nanos::ZERO,
        ..Generator::default()
    }
    .generate()
    .unwrap();
    let mut scene = GraphScene::new(graph, Busy::NONE, Labels::OfKinds);
    let systems: Vec<_> = job_systems().collect();
    for js in systems.iter().cycle().take(9) {
        scene.run(js);
        scene.verify().unwrap();
        scene.run_serial(&Os);
        scene.verify().unwrap();
    }
}

/// Goal: a frame that was not run is not taken for a correct one. Method: verify before the first
/// frame of a scene.
#[test]
fn a_frame_that_was_not_run_is_wrong() {
    let graph = Generator {
        jobs: 9,
        ..Generator::default()
    }
    .generate()
    .unwrap();
    let scene = GraphScene::new(graph, Busy::NONE, Labels::OfKinds);
    let error = scene.verify().unwrap_err().to_string();
    assert!(
        error.contains("frame 0") && !error.contains('\n'),
        "{error}"
    );
}

/// Goal: a grid computed in parallel equals a serial one bit for bit. Method: a small grid with
/// tiles that do not fit evenly, as jobs and as ranges; cleared before each frame, so that a tile
/// that is left out shows.
#[test]
fn parallel_grids_equal_serial_ones() {
    let what = Mandelbrot {
        width: 203,
        height: 150,
        tile: 16,
        ..Mandelbrot::default()
    };
    let mut serial = MandelbrotScene::new(what, Tiles::Jobs).unwrap();
    serial.run_serial(&Os);
    for js in job_systems() {
        for tiles in [
            Tiles::Jobs,
            Tiles::Range(Grain::Auto),
            Tiles::Range(Grain::Items(3)),
        ] {
            let mut scene = MandelbrotScene::new(what, tiles).unwrap();
            for _ in 0..3 {
                scene.grid().clear();
                scene.run(&js);
                assert!(
                    scene.grid().counts().eq(serial.grid().counts()),
                    "{tiles:?}"
                );
                assert_eq!(scene.grid().inside(), serial.grid().inside());
            }
        }
    }
}

/// Goal: occlusion culling by any number of workers equals that by none, bit for bit: depth buffer and
/// boxes. Method: the same frames along the way on four systems, and each checksum against a serial
/// run.
#[test]
fn raster_frames_are_equal_at_any_number_of_workers() {
    let mut of_none: Vec<(Vec<u32>, Vec<_>)> = Vec::new();
    for workers in [0, 1, 2, 8] {
        let js = Builder::new().workers(workers).build().unwrap();
        let mut scene = RasterScene::new(default_mesh());
        for frame in 0..4 {
            scene.run(&js);
            scene.verify().unwrap();
            let depth: Vec<u32> = scene.depth().iter().map(|depth| depth.to_bits()).collect();
            let found = (depth, scene.visibility());
            let counts = scene.counts();
            assert!(
                counts.hidden > counts.visible && counts.visible > 50,
                "{counts:?}"
            );
            match of_none.get(frame) {
                None => of_none.push(found),
                Some(expected) => {
                    assert!(*expected == found, "frame {frame}, {workers} workers");
                }
            }
        }
    }
    assert!(of_none[0] != of_none[1], "the camera moves");
}

/// A pyramid with a square base.
fn pyramid() -> Mesh {
    let obj = b"v -1 0 -1\nv 1 0 -1\nv 1 0 1\nv -1 0 1\nv 0 2 0\n\
        f 1 2 3 4\nf 2 1 5\nf 3 2 5\nf 4 3 5\nf 1 4 5\n";
    Mesh::from_obj(obj, "pyramid").unwrap()
}

/// Goal: frames of one scene do not disturb each other, whatever runs them. Method: one scene in turn on
/// several systems, in frames of them, and on none.
#[test]
fn a_raster_scene_is_not_bound_to_a_job_system() {
    let mut scene = RasterScene::new(pyramid());
    let systems: Vec<_> = job_systems().collect();
    for js in systems.iter().cycle().take(9) {
        let frame = js.frame("cull", std::time::Duration::from_millis(16));
        scene.run_in(js, &frame);
        drop(frame);
        scene.verify().unwrap();
        scene.run_serial(&Os);
        scene.verify().unwrap();
    }
}

/// Goal: every edge of the graph is kept, and every body charges its worth. Method: simulated threads under
/// several seeds; checksums against serial runs, frame after frame; each seed done twice with equal events.
#[test]
fn raster_frames_hold_on_simulated_threads() {
    use sim::{Order, Sim, SimConfig};
    let run = |seed: u64, order: Order| {
        let mut sums: Vec<Result<u64, WrongFrame>> = Vec::new();
        let config = SimConfig {
            steps_max: 20_000_000,
            ..SimConfig::new(seed).with_order(order)
        };
        let (sink, log) = MemorySink::new();
        let report = Sim::run(config, |sim| {
            let builder = Builder::with_platform(sim).workers(2);
            let js = builder.sink(Arc::new(sink)).build().unwrap();
            let mut scene = RasterScene::new(pyramid());
            for _ in 0..2 {
                scene.run(&js);
                sums.push(scene.verify());
            }
        });
        assert!(
            sums.len() == 2 && sums.iter().all(Result::is_ok),
            "{seed}: {sums:?} {report:?}"
        );
        let events: Vec<u8> = log.drain().iter().flat_map(Event::to_bytes).collect();
        assert!(!events.is_empty(), "{seed}: no events");
        (sums, report, events)
    };
    for seed in 0..3 {
        for order in [Order::Random, Order::Pct { depth: 3 }] {
            let (first, second) = (run(seed, order), run(seed, order));
            assert_eq!((&first.0, &first.1), (&second.0, &second.1));
            assert!(
                first.2 == second.2,
                "{seed}: two runs recorded different events"
            );
        }
    }
}

/// Goal: a raster frame that was not run is not taken for a correct one. Method: verify before the
/// first frame.
#[test]
fn a_raster_frame_that_was_not_run_is_wrong() {
    let error = RasterScene::new(pyramid()).verify().unwrap_err();
    assert_eq!(error.frame, 0);
}
