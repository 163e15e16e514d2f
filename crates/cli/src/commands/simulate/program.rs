//! The programs of scenarios: a table `[program]` as types.
//!
//! | `kind` | keys |
//! | --- | --- |
//! | `frames` | `system`: `paceline` or one of source 001's; `workers`; `frames`; `fps`; `scene`; `costs` |
//! | … `scene = "graph"` | `graph`: a name or a file; or what the generator is told: |
//! | | `seed`, `jobs`, `piece`, `parallel`, `pieces`, `dependencies`, `sync-every` |
//! | … `scene = "mandelbrot"` | `width`, `height`, `max-iterations`, `tile` |
//! | … `scene = "raster"` | none |
//! | `barrier` | `threads`, `rounds`, `work`: drawn for each thread, `wait` |
//!
//! Every error in a program is found here, before anything runs.

use std::path::{Path, PathBuf};

use event::{Nanos, Random};
use platform::SchedParams;
use serde::Deserialize;
use sim::scenario::Span;
use workload::Scene;
use workload::baseline::BaselineKind;
use workload::graph::{Generator, JobGraph};
use workload::mandelbrot::{Mandelbrot, MandelbrotScene, Tiles};
use workload::naive::{BarrierLoop, NaiveWait};
use workload::raster::{RasterScene, default_mesh};

use super::costs::DrawnCosts;
use crate::commands::values::{Workers, find_graph, fps};

/// The program beside a scenario's threads.
pub(super) enum Program {
    Frames(FrameProgram),
    Barrier(BarrierLoop),
}

/// Frames of a scene on a job system.
pub(super) struct FrameProgram {
    pub(super) system: JobSystemKind,
    pub(super) scene: FrameScene,
    pub(super) workers: Workers,
    /// The help asked of the kernel for the main thread and the workers.
    pub(super) help: Vec<SchedParams>,
    pub(super) frames: u32,
    /// From one frame's beginning to the next; none: as fast as possible.
    pub(super) period: Option<Nanos>,
    /// Durations of bodies; none: those of the scene.
    pub(super) costs: Option<DrawnCosts>,
}

/// The job system to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobSystemKind {
    Paceline,
    Baseline(BaselineKind),
}

/// The work of a frame.
pub(super) enum FrameScene {
    Graph(JobGraph),
    Mandelbrot(Mandelbrot),
    Raster,
}

/// Names of threads are given 64 bits of a seed; programs have another stream.
const BARRIER_STREAM: u64 = 0x00ba_221e_0f5e_ed00;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FramesTable {
    #[serde(rename = "kind")]
    _kind: String,
    scene: Option<String>,
    system: Option<String>,
    workers: Option<WorkersGiven>,
    frames: Option<u32>,
    fps: Option<f64>,
    costs: Option<PathBuf>,
    graph: Option<String>,
    seed: Option<u64>,
    jobs: Option<u32>,
    piece: Option<Span>,
    parallel: Option<f64>,
    pieces: Option<(u32, u32)>,
    dependencies: Option<(u32, u32)>,
    sync_every: Option<u32>,
    width: Option<u32>,
    height: Option<u32>,
    max_iterations: Option<u32>,
    tile: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WorkersGiven {
    Count(u64),
    Word(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BarrierTable {
    #[serde(rename = "kind")]
    _kind: String,
    threads: u32,
    rounds: u32,
    work: Span,
    wait: String,
}

impl Program {
    /// The program of this table. Files that it names are looked for in `folder`.
    pub(super) fn read(table: &toml::Table, folder: &Path, seed: u64) -> Result<Program, String> {
        let kind = table.get("kind").and_then(toml::Value::as_str);
        match kind {
            Some("frames") => {
                let table: FramesTable = table.clone().try_into().map_err(plain)?;
                table.program(folder, seed).map(Program::Frames)
            }
            Some("barrier") => {
                let table: BarrierTable = table.clone().try_into().map_err(plain)?;
                table.program(seed).map(Program::Barrier)
            }
            _ => Err("kind: give \"frames\" or \"barrier\"".into()),
        }
    }
}

fn plain(error: toml::de::Error) -> String {
    error.message().replace('\n', " ")
}

impl FramesTable {
    fn program(self, folder: &Path, seed: u64) -> Result<FrameProgram, String> {
        let (frames, rate) = (self.frames.unwrap_or(60), self.fps.unwrap_or(60.0));
        if !(1..=1_000_000).contains(&frames) {
            return Err(format!("frames = {frames}: give 1 to 1000000"));
        }
        let rate = fps(&rate.to_string()).map_err(|why| format!("fps = {rate}: {why}"))?;
        let system = match self.system.as_deref() {
            None | Some("paceline") => JobSystemKind::Paceline,
            Some(name) => JobSystemKind::Baseline(BaselineKind::named(name).ok_or_else(|| {
                let names = BaselineKind::ALL.map(BaselineKind::name).join(", ");
                format!("system = {name:?}: give paceline, {names}")
            })?),
        };
        let scene = self.what(folder)?;
        if system != JobSystemKind::Paceline {
            let only = |what: &str| format!("{what} is for system = \"paceline\" only");
            match &scene {
                FrameScene::Graph(_) if self.costs.is_some() => return Err(only("costs")),
                FrameScene::Graph(_) => {}
                _ => return Err(only("a scene other than graph")),
            }
        }
        let workers = match &self.workers {
            None => Workers::Auto,
            Some(WorkersGiven::Count(count)) => worker_count(&count.to_string())?,
            Some(WorkersGiven::Word(word)) => worker_count(word)?,
        };
        let costs = match &self.costs {
            Some(path) => {
                let costs = DrawnCosts::read(&folder.join(path), scene.name(), seed);
                let costs = costs.map_err(|why| format!("costs: {why}"))?;
                costs.places(&scene.labels())?;
                Some(costs)
            }
            None => None,
        };
        Ok(FrameProgram {
            system,
            scene,
            workers,
            help: Vec::new(),
            frames,
            period: (rate > 0.0).then(|| Nanos((1e9 / rate).round() as u64)),
            costs,
        })
    }

    fn what(&self, folder: &Path) -> Result<FrameScene, String> {
        let scene = self.scene.as_deref().unwrap_or("graph");
        let generated = [
            ("seed", self.seed.is_some()),
            ("jobs", self.jobs.is_some()),
            ("piece", self.piece.is_some()),
            ("parallel", self.parallel.is_some()),
            ("pieces", self.pieces.is_some()),
            ("dependencies", self.dependencies.is_some()),
            ("sync-every", self.sync_every.is_some()),
        ];
        let drawn = [
            ("width", self.width.is_some()),
            ("height", self.height.is_some()),
            ("max-iterations", self.max_iterations.is_some()),
            ("tile", self.tile.is_some()),
        ];
        let given = |keys: &[(&'static str, bool)]| {
            keys.iter().find(|(_, given)| *given).map(|(name, _)| *name)
        };
        let graph = given(&generated).or(self.graph.as_ref().map(|_| "graph"));
        match (scene, graph, given(&drawn)) {
            ("graph", _, None) => match (&self.graph, given(&generated)) {
                (Some(_), Some(key)) => Err(format!(
                    "{key} is for generated graphs, and graph gives another: leave one of them out"
                )),
                (Some(name), None) => library_or_file(name, folder).map(FrameScene::Graph),
                (None, _) => self.generate().map(FrameScene::Graph),
            },
            ("mandelbrot", None, _) => self.mandelbrot().map(FrameScene::Mandelbrot),
            ("raster", None, None) => Ok(FrameScene::Raster),
            ("graph" | "mandelbrot" | "raster", graph, drawn) => {
                let key = drawn.or(graph).unwrap_or_default();
                Err(format!("{key} is for another scene than {scene}"))
            }
            _ => Err(format!(
                "scene = {scene:?}: give graph, mandelbrot or raster"
            )),
        }
    }

    fn generate(&self) -> Result<JobGraph, String> {
        let default = Generator::default();
        let piece = match &self.piece {
            None => Nanos(500),
            Some(span) if span.least == span.most => span.least,
            Some(_) => return Err("piece: give one length, the same for all".into()),
        };
        let range = |given: Option<(u32, u32)>, default| {
            given.map_or(default, |(least, most)| least..=most)
        };
        let generator = Generator {
            seed: self.seed.unwrap_or(default.seed),
            jobs: self.jobs.unwrap_or(default.jobs),
            parallel_fraction: self.parallel.unwrap_or(default.parallel_fraction),
            pieces: range(self.pieces, default.pieces),
            deps: range(self.dependencies, default.deps),
            sync_every: self.sync_every.unwrap_or(default.sync_every),
            piece,
        };
        generator.generate().map_err(|error| error.to_string())
    }

    fn mandelbrot(&self) -> Result<Mandelbrot, String> {
        // As the command `frames` has it.
        let default = Mandelbrot {
            width: 640,
            height: 480,
            ..Mandelbrot::default()
        };
        let what = Mandelbrot {
            width: self.width.unwrap_or(default.width),
            height: self.height.unwrap_or(default.height),
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            tile: self.tile.unwrap_or(default.tile),
            ..default
        };
        let scene = MandelbrotScene::new(what, Tiles::Jobs);
        scene.map(|_| what).map_err(|error| error.to_string())
    }
}

fn worker_count(given: &str) -> Result<Workers, String> {
    crate::commands::values::workers(given).map_err(|why| format!("workers = {given}: {why}"))
}

/// A graph by its name, or from a file beside the scenario.
fn library_or_file(name: &str, folder: &Path) -> Result<JobGraph, String> {
    let beside = folder.join(name);
    let given = if beside.exists() {
        beside.to_string_lossy().into_owned()
    } else {
        name.to_owned()
    };
    find_graph(&given).map_err(|why| format!("graph: {why}"))
}

impl FrameScene {
    /// As the command `frames` calls it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            FrameScene::Graph(_) => "graph",
            FrameScene::Mandelbrot(_) => "mandelbrot",
            FrameScene::Raster => "raster",
        }
    }

    /// The name of its jobs.
    fn labels(&self) -> Vec<String> {
        let owned = |labels: &[&str]| labels.iter().map(|&label| label.to_owned()).collect();
        match self {
            FrameScene::Graph(graph) => graph.jobs().iter().map(|job| job.label.clone()).collect(),
            FrameScene::Mandelbrot(what) => {
                let scene = MandelbrotScene::new(*what, Tiles::Jobs);
                scene.map_or(Vec::new(), |scene| owned(scene.labels()))
            }
            FrameScene::Raster => owned(RasterScene::new(default_mesh()).labels()),
        }
    }
}

impl BarrierTable {
    fn program(self, seed: u64) -> Result<BarrierLoop, String> {
        if !(1..=1024).contains(&self.threads) || !(1..=1_000_000).contains(&self.rounds) {
            return Err("give 1 to 1024 threads and 1 to 1000000 rounds".into());
        }
        let wait = NaiveWait::named(&self.wait).ok_or_else(|| {
            let names = NaiveWait::ALL.map(NaiveWait::name).join(", ");
            format!("wait = {:?}: give one of {names}", self.wait)
        })?;
        let mut random = Random::new(seed ^ BARRIER_STREAM);
        let work = (0..self.threads).map(|_| self.work.draw(&mut random));
        Ok(BarrierLoop {
            wait,
            work: work.collect(),
            warm_up: 0,
            rounds: self.rounds,
            masks: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Program, String> {
        Program::read(&text.parse().unwrap(), Path::new("."), 1)
    }

    fn refused(text: &str) -> String {
        match read(text) {
            Err(error) => error,
            Ok(_) => panic!("{text} is a program"),
        }
    }

    /// Goal: the defaults are as in source 001, at 60 Hz. Method: the shortest program, and one in which much
    /// is said.
    #[test]
    fn what_is_not_said_has_a_default() {
        let Ok(Program::Frames(frames)) = read("kind = 'frames'") else {
            panic!("it is a program");
        };
        assert_eq!((frames.frames, frames.workers), (60, Workers::Auto));
        assert_eq!(frames.system, JobSystemKind::Paceline);
        assert_eq!(frames.period, Some(Nanos(16_666_667)));
        let FrameScene::Graph(graph) = frames.scene else {
            panic!("it is a graph");
        };
        assert_eq!(
            (graph.jobs().len(), graph.jobs()[0].cost),
            (500, Nanos(500))
        );
        let text = "kind = 'frames'\nsystem = 'unity-2022.2'\nworkers = 31\nfps = 0\njobs = 20\n\
                    piece = '2 us'\nparallel = 1.0\npieces = [2, 3]\nsync-every = 0";
        let Ok(Program::Frames(frames)) = read(text) else {
            panic!("it is a program");
        };
        assert_eq!(
            frames.system,
            JobSystemKind::Baseline(BaselineKind::Unity2022_2)
        );
        assert_eq!((frames.period, frames.workers), (None, Workers::Count(31)));
        let FrameScene::Graph(graph) = frames.scene else {
            panic!("it is a graph");
        };
        assert!(
            graph
                .jobs()
                .iter()
                .all(|job| (2..=3).contains(&job.pieces()))
        );
        assert_eq!((graph.jobs().len(), graph.syncs().len()), (20, 0));
    }

    /// Goal: a barrier's work is drawn for each thread from the seed, within its range. Method: two
    /// programs of one seed and one of another.
    #[test]
    fn a_barriers_work_is_drawn_for_each_thread() {
        let text =
            "kind = 'barrier'\nthreads = 4\nrounds = 5\nwork = ['50 us', '150 us']\nwait = 'park'";
        let work = |seed| match Program::read(&text.parse().unwrap(), Path::new("."), seed) {
            Ok(Program::Barrier(barrier)) => barrier.work,
            _ => panic!("it is a barrier"),
        };
        assert_eq!(work(1), work(1));
        assert_ne!(work(1), work(2));
        assert!(
            work(1)
                .iter()
                .all(|work| (50_000..=150_000).contains(&work.0))
        );
    }

    /// Goal: an entry that makes no sense is refused with its key and the possible values. Method: one of
    /// each.
    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, word) in [
            ("kind = 'dance'", "barrier"),
            ("", "kind"),
            ("kind = 'frames'\nscen = 'graph'", "scen"),
            ("kind = 'frames'\nscene = 'disco'", "mandelbrot"),
            ("kind = 'frames'\nsystem = 'unity'", "unity-2017.3"),
            (
                "kind = 'frames'\nsystem = 'unity-2017.3'\nscene = 'raster'",
                "paceline",
            ),
            ("kind = 'frames'\nworkers = 'many'", "auto"),
            ("kind = 'frames'\nworkers = 1025", "1024"),
            ("kind = 'frames'\nframes = 0", "frames"),
            ("kind = 'frames'\nfps = -1", "fps"),
            ("kind = 'frames'\njobs = 0", "no jobs"),
            ("kind = 'frames'\npiece = 5", "length of time"),
            ("kind = 'frames'\npiece = ['1 us', '2 us']", "one length"),
            ("kind = 'frames'\ngraph = 'nope'", "gitoxide-build"),
            (
                "kind = 'frames'\ngraph = 'gitoxide-build'\njobs = 4",
                "jobs",
            ),
            ("kind = 'frames'\nscene = 'raster'\njobs = 4", "jobs"),
            ("kind = 'frames'\nwidth = 4", "width"),
            ("kind = 'frames'\nscene = 'mandelbrot'\nwidth = 0", "points"),
            ("kind = 'frames'\ncosts = 'no/such.toml'", "costs"),
            ("kind = 'barrier'", "threads"),
            (
                "kind = 'barrier'\nthreads = 0\nrounds = 1\nwork = '1 us'\nwait = 'spin'",
                "threads",
            ),
            (
                "kind = 'barrier'\nthreads = 1\nrounds = 1\nwork = '1 us'\nwait = 'hope'",
                "park",
            ),
        ] {
            let error = refused(text);
            assert!(
                error.contains(word) && !error.contains('\n'),
                "{text}: {error}"
            );
        }
    }
}
