//! `paceline frames`: real frames on the job system, and where their time went.
//!
//! This file declares the options and turns them into a plan. It finds everything that can be wrong with
//! them, before anything runs.

mod background;
mod clocks;
pub(super) mod costs;
mod image;
pub(super) mod interference;
pub(super) mod loaded;
mod page;
mod plan;
mod probe;
pub(super) mod recorder;
mod report;
mod run;
mod waits;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use console::{Failure, help, output};
use event::Nanos;
use paceline::WaitPolicy;
use platform::SchedParams;
use workload::graph::{Generator, JobGraph};
use workload::mandelbrot::Mandelbrot;
use workload::raster::{Mesh, default_mesh};

use self::plan::{FrameContent, Options};
use super::accounts::Account;
use super::values::{Workers, find_graph, fps, micros, workers};

/// Run real frames on the job system and show where the time went
///
/// A frame begins every 1/fps seconds. A frame that is not over when the next
/// should begin is missed, and the next begins on time again. Each frame's result
/// is compared with that of a serial run; a difference ends the command with exit
/// code 1.
///
/// Examples:
///   paceline frames --load 2
///   paceline frames --scene raster --image frame.png
///   paceline frames --report frames.html
#[derive(Args)]
#[command(after_long_help = JSON)]
#[command(verbatim_doc_comment)]
pub(crate) struct FramesArguments {
    /// The work of a frame [default: graph]
    #[arg(long, value_enum)]
    scene: Option<SceneName>,
    /// A graph by its name or file, instead of the generated 500 jobs of source 001
    ///
    /// A file looks like {"jobs": [{"label": "a", "us": 10}, {"label": "b", "pieces": 64, "us": 5,
    /// "after": ["a"]}], "syncs": [{"after": "b", "wait_for": "a"}]}. Known names:
    /// gitoxide-build, late-chain.
    #[arg(long, value_name = "F.json|NAME")]
    graph: Option<String>,
    /// A Wavefront OBJ file for the statues of scene raster, instead of the head of Suzanne
    ///
    /// Points and faces are read; any size and place will do. A mesh of more than 15 000 triangles is
    /// made coarser.
    #[arg(long, value_name = "F.obj")]
    mesh: Option<PathBuf>,
    /// How many frames
    #[arg(long, value_name = "N", default_value_t = 300, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    frames: u32,
    /// How many frames a second should begin; 0: each as soon as the last is over
    #[arg(long, value_name = "F", default_value_t = 60.0, value_parser = fps, allow_negative_numbers = true)]
    fps: f64,
    /// Worker threads; the main thread helps while it waits [default: auto]
    #[arg(long, value_name = "auto|N", value_parser = workers, allow_negative_numbers = true)]
    workers: Option<Workers>,
    /// Run N more threads that only burn CPU time
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(0..=1_024))]
    load: u32,
    /// Keep N endless background jobs on the same job system, in slices of 1 ms
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(0..=4_096))]
    background: u32,
    /// Length of each job and piece of the generated graph [default: 0.5]
    #[arg(long, value_name = "X", value_parser = micros, allow_negative_numbers = true)]
    piece_us: Option<Nanos>,
    /// Seed of the generated graph [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write the last frame as a picture (scenes raster and mandelbrot)
    ///
    /// Of scene raster: the depth buffer in relief, boxes that may be seen in green, culled ones in
    /// red, through what hides them.
    #[arg(long, value_name = "F.png")]
    image: Option<PathBuf>,
    /// Write how long the jobs of each label took, for simulated runs
    ///
    /// TOML: format, scene, graph, machine, workers, frames, quiet; then for each label a table
    /// label with name, count, mean_ns, p50_ns, p99_ns, max_ns, first_log2 and the histogram counts,
    /// whose entry number n (from 0) counts bodies that took 2^(first_log2+n) ns or more and less
    /// than twice that. The pieces of one call of a parallel job's body count as equally long.
    #[arg(long, value_name = "F.toml")]
    record_costs: Option<PathBuf>,
    /// Write what the jobs of all frames did as a Perfetto trace, for ui.perfetto.dev
    ///
    /// On the track of each thread: the bodies of jobs, waits, steals, sleeps; arrows for dependencies and
    /// wake-ups, the number of ready jobs, and all frames. The first 8 million events are kept, later ones
    /// are counted. Where the kernel's tracefs may be used (as root), the trace also has what the kernel did
    /// meanwhile: which thread ran on which CPU, wake-ups with their wakers, frequencies; otherwise a note
    /// says why not. Recording takes time: compare the frames' times only with those of other traced runs.
    #[arg(long, value_name = "F.pftrace")]
    trace: Option<PathBuf>,
    /// Write a page for a browser: all frames over time, and where the time of the longest ones went
    ///
    /// One file that holds all it shows, so that it can be kept, sent and opened offline. The run is
    /// recorded for it as for --trace, with or without that.
    #[arg(long, value_name = "F.html")]
    report: Option<PathBuf>,
    /// For testing: copy the kernel's own text for --trace to this file
    #[arg(long, value_name = "F.txt", hide = true, requires = "trace")]
    trace_text: Option<PathBuf>,
    /// How a thread without work passes the time before it sleeps: active, passive, adaptive, or a time such
    /// as 20us [default: adaptive]
    ///
    /// This applies to workers, and to the main thread when it waits and nothing that it waits for is left to
    /// run. active: it never sleeps, which is a busy wait; passive: it sleeps at once.
    #[arg(long, value_name = "POLICY")]
    wait: Option<WaitPolicy>,
    /// Ask the kernel for help, for the main thread and the workers together: nice, rr, uclamp, slice, or
    /// several
    ///
    /// Each may have a value instead of the usual one: nice=-10 (a larger share), rr=1 (SCHED_RR: before all
    /// that share), uclamp=1024 (taken to be that large, of 1024), slice=100us (its turns). The report lists
    /// refusals, mostly for want of a privilege, and the frames run without that help.
    #[arg(long, value_name = "HELP", value_delimiter = ',', value_parser = help::sched_params)]
    os_help: Vec<SchedParams>,
    /// Write one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// For testing: the first job with this label panics
    #[arg(long, value_name = "LABEL", hide = true)]
    panic_at: Option<String>,
}

/// The keys of `--json`, at the end of the help.
const JSON: &str = "\
JSON (--json), one object:
  scene, workers, frames, missed, jobs_per_frame, quiet, noise{}, machine{},
  stats{}
  frame_ns{mean, p50, p99, max}
                      with --trace or --report those of the recording, else by
                      a stopwatch
  cpu_ns_per_frame    without hogs, background jobs and the checks of results
  serial_ns           the median frame on one thread at the same pace,
                      measured before any load
  speedup             serial_ns / frame_ns.p50
  checksum            of the last frame
  waits[], inversions[]
                      with --trace or --report those that `diagnose` finds in
                      the recording, times since the first frame; else waits
                      are the ten longest of the main thread by a stopwatch
                      (thread, name, frame, start_ns since the first frame,
                      duration_ns, causes null), and inversions is null
  threads[]{name, tid, run_ns, runnable_ns, sleep_ns,
            switches{voluntary, involuntary}}
                      of the job system, while it was recorded; null without
                      the kernel's half
  trace{events, lost, kernel{events, lost}, bytes}
                      null without --trace; kernel is null where it may not be
                      recorded
  os_help[]{asked, granted, why}
  interference{noticed, most_workers, decisions[]{frame, decided, workers,
               waited, switches_per_frame}}
                      what other threads of the machine did to this run, and
                      what was decided; waited: for a CPU, as a part of the
                      time that threads ran or waited";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SceneName {
    /// The jobs of a graph: of source 001, or of --graph
    Graph,
    /// Software occlusion culling: up to 146 800 triangles, 4096 boxes, depth 640x360
    Raster,
    /// The tiles of a Mandelbrot set
    Mandelbrot,
}

/// A picture that two threads can finish in a 60th of a second (source 002's has 1000x1000 points).
const PICTURE: (u32, u32) = (640, 480);

pub(crate) fn run(arguments: FramesArguments) -> Result<(), Failure> {
    let json = arguments.json;
    let options = arguments.options()?;
    if options.wait.is_some() && std::env::var_os("PACELINE_WAIT").is_some() {
        output::note("note: PACELINE_WAIT is set and wins over --wait");
    }
    let counts = matches!(options.workers, Workers::Count(_));
    if counts && std::env::var_os("PACELINE_WORKERS").is_some() {
        output::note("note: PACELINE_WORKERS is set and wins over --workers");
    }
    let mut outcome = run::run(&options)?;
    if let (Some(path), Some(image)) = (&options.image, &outcome.image) {
        output::write_file(path, &image::to_png(image)?)?;
    }
    if let (Some(path), Some(costs)) = (&options.costs, outcome.costs) {
        output::write_file(path, costs.to_toml(&outcome.costs_head())?.as_bytes())?;
    }
    if let Some(recording) = outcome.recording.take() {
        if let Some(path) = &options.trace {
            outcome.traced = Some(recorder::write(path, &recording)?);
        }
        let origin = recorder::first_frame(&recording);
        outcome.set_account(Account::of(recording, origin));
    }
    if let Some(path) = &options.report {
        page::write(path, &outcome)?;
    }
    if json {
        output::print_json(&report::json(&outcome))
    } else {
        output::print(report::table(&outcome))
    }
}

impl FramesArguments {
    fn options(self) -> Result<Options, Failure> {
        self.check()?;
        Ok(Options {
            scene: self.what()?,
            frames: self.frames,
            period: (self.fps > 0.0).then(|| Duration::from_secs_f64(1.0 / self.fps)),
            workers: self.workers.unwrap_or(Workers::Auto),
            load: self.load,
            background: self.background,
            wait: self.wait,
            image: self.image,
            costs: self.record_costs,
            compares: true,
            records: self.trace.is_some() || self.report.is_some(),
            trace: self.trace,
            trace_text: self.trace_text,
            report: self.report,
            panic_at: self.panic_at,
            help: self.os_help,
        })
    }

    /// Options that contradict each other, and files that cannot be made.
    fn check(&self) -> Result<(), Failure> {
        let scene = self.scene();
        // Each option of one scene with that scene.
        let special = [
            (SceneName::Graph, "--graph", self.graph.is_some()),
            (SceneName::Graph, "--piece-us", self.piece_us.is_some()),
            (SceneName::Graph, "--seed", self.seed.is_some()),
            (SceneName::Raster, "--mesh", self.mesh.is_some()),
        ];
        let of_another = special.iter().find(|(of, _, given)| *given && *of != scene);
        let generated = special[1..3].iter().find(|(.., given)| *given);
        let contradiction = match (of_another, &self.graph, generated) {
            (Some((of, option, _)), ..) => {
                let name = of.to_possible_value().expect("no scene is skipped");
                let name = name.get_name();
                Some(format!(
                    "{option} is for --scene {name}; leave it out, or use that scene"
                ))
            }
            (None, Some(_), Some((_, option, _))) => Some(format!(
                "{option} is for the generated graph, --graph gives another; leave one of them out"
            )),
            _ if scene == SceneName::Graph && self.image.is_some() => Some(
                "--image: a graph has no picture; use --scene raster or --scene mandelbrot".into(),
            ),
            _ if self.background > 0 && self.workers == Some(Workers::Count(0)) => {
                Some("--background needs a worker; use --workers 1 or more".into())
            }
            _ => None,
        };
        if let Some(what) = contradiction {
            return Err(Failure::Usage(what));
        }
        let reads = [
            ("the file of --graph", self.graph.as_ref().map(Path::new)),
            ("the file of --mesh", self.mesh.as_deref()),
        ];
        let reads = reads
            .into_iter()
            .filter_map(|(what, path)| Some((what, path?)));
        output::check_files(
            &reads.collect::<Vec<_>>(),
            &[
                ("--image", self.image.as_deref()),
                ("--record-costs", self.record_costs.as_deref()),
                ("--trace", self.trace.as_deref()),
                ("--trace-text", self.trace_text.as_deref()),
                ("--report", self.report.as_deref()),
            ],
        )
    }

    fn scene(&self) -> SceneName {
        self.scene.unwrap_or(SceneName::Graph)
    }

    fn what(&self) -> Result<FrameContent, Failure> {
        Ok(match self.scene() {
            SceneName::Graph => FrameContent::Graph(self.job_graph()?),
            SceneName::Raster => FrameContent::Raster(match &self.mesh {
                Some(path) => {
                    Mesh::load(path).map_err(|error| Failure::usage(format!("--mesh {error}")))?
                }
                None => default_mesh(),
            }),
            SceneName::Mandelbrot => {
                let (width, height) = PICTURE;
                FrameContent::Mandelbrot(Mandelbrot {
                    width,
                    height,
                    ..Mandelbrot::default()
                })
            }
        })
    }

    fn job_graph(&self) -> Result<JobGraph, Failure> {
        match &self.graph {
            Some(given) => {
                find_graph(given).map_err(|error| Failure::usage(format!("--graph {error}")))
            }
            None => {
                let generator = Generator {
                    seed: self.seed.unwrap_or(1),
                    piece: self.piece_us.unwrap_or(Nanos(500)),
                    ..Generator::default()
                };
                generator.generate().map_err(Failure::usage)
            }
        }
    }
}

#[cfg(test)]
mod tests;
