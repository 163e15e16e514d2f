//! The frame loop.

use std::time::{Duration, Instant};

use console::help::Answer;
use console::{Failure, Progress};
use event::Nanos;
use measure::{Hogs, Machine, Noise, Times, Watch, process_cpu, thread_cpu};
use paceline::{BuildError, Builder, Interference, JobSystem, Role, Stats, WaitError};
use platform::{Os, Platform};
use trace::Recording;
use workload::busy::Busy;
use workload::graph::{GraphScene, Labels};
use workload::mandelbrot::{MandelbrotScene, Tiles};
use workload::pace::{Pace, Pause};
use workload::raster::RasterScene;
use workload::{Picture, Scene};

use super::background::Background;
use super::costs::{CostsHead, RecordedCosts};
use super::plan::{FrameContent, Options};
use super::probe::Probe;
use super::recorder::{FrameRecorder, LIMIT, TracedFrames};
use super::waits::{TimedWait, TimedWaits};
use super::watch::FrameWatch;
use crate::commands::accounts::Account;
use crate::commands::values::Workers;

/// Everything there is to say about a run.
pub(super) struct FramesOutcome {
    pub(super) scene: &'static str,
    /// The graph's name.
    pub(super) graph: Option<String>,
    pub(super) title: String,
    pub(super) work: String,
    pub(super) machine: Machine,
    pub(super) noise: Noise,
    pub(super) workers: usize,
    pub(super) frames: u64,
    pub(super) times: Times,
    /// When each frame began, since the first one, and its length.
    pub(super) timed: Vec<(Nanos, Nanos)>,
    /// A frame on one thread; zero if none was measured.
    pub(super) serial: Nanos,
    pub(super) missed: u64,
    pub(super) period: Option<Duration>,
    /// CPU time per frame: load, background and checks left out.
    pub(super) cpu: Option<Nanos>,
    /// Jobs per frame.
    pub(super) jobs: u64,
    pub(super) stats: Stats,
    pub(super) waits: Vec<TimedWait>,
    pub(super) checksum: u64,
    pub(super) image: Option<Picture>,
    pub(super) costs: Option<&'static RecordedCosts>,
    /// The job system's recording, if it was asked for.
    pub(super) recording: Option<Recording>,
    /// The file of it, once it is written.
    pub(super) traced: Option<TracedFrames>,
    /// Where the time of its waits went, if it was recorded.
    pub(super) account: Option<Account>,
    /// The help asked of the kernel, and its answers.
    pub(super) help: Vec<Answer>,
    /// The effect of other threads of the machine on the run.
    pub(super) interference: Interference,
}

impl FramesOutcome {
    /// The run was recorded. Tables, pictures and sentences have one source for the lengths of frames: the
    /// recording if it has them all.
    pub(super) fn set_account(&mut self, account: Account) {
        if let Some(lengths) = account.frame_lengths(self.frames) {
            self.times = times_of(&lengths);
            self.timed = lengths;
        }
        self.account = Some(account);
    }

    /// The run, for the head of a file with the costs of its bodies.
    pub(super) fn costs_head(&self) -> CostsHead<'_> {
        CostsHead {
            scene: self.scene,
            graph: self.graph.as_deref(),
            machine: &self.machine,
            workers: self.workers,
            frames: self.frames,
            quiet: self.noise.is_quiet(),
        }
    }
}

/// The lengths of frames, summed up.
fn times_of(timed: &[(Nanos, Nanos)]) -> Times {
    let lengths: Vec<u64> = timed.iter().map(|(_, length)| length.0).collect();
    Times::of(&lengths)
}

/// What the loop itself measures.
struct LoopMeasures {
    timed: Vec<(Nanos, Nanos)>,
    waits: TimedWaits,
    checksum: u64,
    /// CPU time that the main thread has spent on checking results.
    checks: Nanos,
}

/// Runs the frames.
pub(super) fn run(options: &Options) -> Result<FramesOutcome, Failure> {
    let busy = Busy::calibrate(&Os);
    match &options.scene {
        FrameContent::Graph(graph) => run_scene(
            options,
            busy,
            GraphScene::new(graph.clone(), busy, Labels::OfJobs),
        ),
        FrameContent::Raster(mesh) => run_scene(options, busy, RasterScene::new(mesh.clone())),
        FrameContent::Mandelbrot(what) => {
            let scene = MandelbrotScene::new(*what, Tiles::Jobs).map_err(Failure::usage)?;
            run_scene(options, busy, scene)
        }
    }
}

fn run_scene(
    options: &Options,
    busy: Busy,
    mut scene: impl Scene,
) -> Result<FramesOutcome, Failure> {
    let probe = make_probe(options, scene.labels())?;
    let mut watch = Watch::start(busy);
    let serial = if options.compares {
        serial_time(&mut scene, options.period)?
    } else {
        Nanos::ZERO
    };
    scene.skip_to(SERIAL_RUNS + 1);
    prepare(options, &mut scene);
    watch.look();

    let text = || options.trace_text.clone();
    let mut recorder = options.records.then(|| FrameRecorder::start(LIMIT, text()));
    let js = build(options, recorder.as_ref())?;
    let (stats, cpu) = (js.stats(), process_cpu());
    let background = Background::start(&js, options.background, busy);
    let hogs = Hogs::start(options.load).map_err(Failure::failed)?;
    let main = (!options.help.is_empty()).then(|| js.adopt(Role::Main));
    let help = js.os_help().iter().map(Answer::told).collect();
    let measured = frames(options, &js, &mut scene, probe, recorder.as_mut())?;
    drop(main);
    let interference = js.interference();
    let stats = js.stats().since(&stats);
    let not_ours = background.stop() + hogs.stop() + measured.checks;
    let cpu = cpu
        .zip(process_cpu())
        .map(|(before, after)| after - before - not_ours);
    let workers = js.workers();
    let recording = match recorder {
        Some(recorder) => Some(recorder.finish(js)?),
        None => {
            drop(js);
            None
        }
    };

    let frames = u64::from(options.frames);
    Ok(FramesOutcome {
        scene: scene.name(),
        graph: scene.graph_name().map(str::to_owned),
        title: scene.title(),
        work: scene.work(),
        machine: Machine::read(),
        noise: watch.finish(),
        workers,
        frames,
        times: times_of(&measured.timed),
        timed: measured.timed,
        serial,
        missed: stats.frames_missed,
        period: options.period,
        cpu: cpu.map(|cpu| Nanos(cpu.0 / frames)),
        jobs: scene.jobs(),
        stats,
        waits: measured.waits.worst(),
        checksum: measured.checksum,
        image: scene.picture(),
        costs: probe.costs(),
        recording,
        traced: None,
        account: None,
        help,
        interference,
    })
}

/// The checksums of the frames to come, from serial runs, as far as the scene wants to know them early.
fn prepare(options: &Options, scene: &mut impl Scene) {
    let mut progress = None;
    scene.prepare(options.frames.into(), &mut |_, of| {
        let progress = progress.get_or_insert_with(|| Progress::new("serial runs", of));
        progress.step();
    });
}

/// The probe lives as long as the process, so that bodies need not count references to it.
fn make_probe(options: &Options, labels: &[&'static str]) -> Result<&'static Probe, Failure> {
    let find = |wanted: &String| {
        let position = labels.iter().position(|label| label == wanted);
        let missing = format!("--panic-at {wanted:?}: this scene has no job of that name");
        let position = position.ok_or(Failure::Usage(missing));
        position.map(|position| position as u32)
    };
    let panic_at = options.panic_at.as_ref().map(find).transpose()?;
    let costs = options.costs.as_ref().map(|_| RecordedCosts::new(labels));
    Ok(Box::leak(Box::new(Probe::new(costs, panic_at))))
}

fn build(options: &Options, recorder: Option<&FrameRecorder>) -> Result<JobSystem<Os>, Failure> {
    let mut builder = Builder::new();
    if let Some(recorder) = recorder {
        builder = builder.sink(recorder.sink());
    }
    if let Workers::Count(workers) = options.workers {
        builder = builder.workers(workers);
    }
    if let Some(policy) = options.wait {
        builder = builder.wait_policy(policy);
    }
    for help in &options.help {
        builder = builder.os_help(help.clone());
    }
    builder.build().map_err(|error| match error {
        BuildError::Thread(_) => Failure::failed(error),
        _ => Failure::usage(error),
    })
}

/// How many frames are run on one thread alone, at most; the first one is not measured.
const SERIAL_RUNS: u64 = 31;

/// The median time of a frame on this thread alone, at the same pace as the frames it will be
/// compared with: a CPU that was idle until then finds its caches cold.
fn serial_time(scene: &mut impl Scene, period: Option<Duration>) -> Result<Nanos, Failure> {
    const TIME: Duration = Duration::from_millis(600);
    let began = Instant::now();
    let mut pace = Pace::new(Os, period, Pause::Sleep);
    let mut times = Vec::new();
    for run in 0..SERIAL_RUNS {
        scene.clear();
        pace.next_frame();
        let begin = Os.now();
        scene.run_serial(&Os);
        let took = Os.now() - begin;
        scene.verify().map_err(|wrong| {
            Failure::failed(format!(
                "the serial run has the checksum {:016x}, not {:016x}; please report this",
                wrong.got, wrong.expected
            ))
        })?;
        // The first one finds memory that was never touched.
        if run > 0 {
            times.push(took.0);
        }
        if times.len() >= 3 && began.elapsed() > TIME {
            break;
        }
    }
    Ok(Nanos(Times::of(&times).p50))
}

fn frames(
    options: &Options,
    js: &JobSystem<Os>,
    scene: &mut impl Scene,
    probe: &'static Probe,
    mut recorder: Option<&mut FrameRecorder>,
) -> Result<LoopMeasures, Failure> {
    let mut pace = Pace::new(Os, options.period, Pause::Sleep);
    let mut progress = Progress::new("frames", options.frames.into());
    let mut measured = LoopMeasures {
        timed: Vec::with_capacity(options.frames as usize),
        waits: TimedWaits::new(Os.now()),
        checksum: 0,
        checks: Nanos::ZERO,
    };
    for number in 0..u64::from(options.frames) {
        scene.clear();
        let budget = pace.next_frame();
        measured.waits.begin_frame(number);
        let begin = Os.now();
        let frame = js.frame("frame", budget);
        let mut look = FrameWatch {
            probe,
            waits: &mut measured.waits,
        };
        let done = scene.run_watched(js, &frame, &mut look);
        drop(frame);
        let took = Os.now() - begin;
        let since_first = begin - measured.waits.origin();
        measured.timed.push((since_first, took));
        done.map_err(|error| Failure::Failed(format!("frame {number}: {}", why(&error))))?;
        let before = thread_cpu();
        measured.checksum = scene.verify().map_err(|wrong| {
            Failure::failed(format!(
                "frame {number} has the checksum {:016x}, a serial run has {:016x}: a job was left \
                 out or ran too early; please report this",
                wrong.got, wrong.expected
            ))
        })?;
        let spent = before
            .zip(thread_cpu())
            .map(|(before, after)| after - before);
        measured.checks += spent.unwrap_or_default();
        if let Some(recorder) = &mut recorder {
            recorder.drain();
        }
        progress.step();
    }
    Ok(measured)
}

/// Why a frame could not be finished.
fn why(error: &WaitError) -> String {
    match error {
        WaitError::Panicked { label, message, .. } => {
            format!("the job '{}' panicked: {message}", label.name)
        }
        WaitError::Cancelled {
            label,
            cause,
            message: Some(message),
            ..
        } => format!(
            "the job '{}' panicked: {message}; so '{}' could not be run",
            cause.name, label.name
        ),
        other => other.to_string(),
    }
}
