//! The frame loop on a simulated machine: the real job system, or one of those it is compared with.
//!
//! Everything here runs in the simulated thread "main". It reports its findings as it goes: a run that ends
//! in a deadlock leaves all findings up to then.
//!
//! Bodies compute on the host, which takes no simulated time; they charge the time that they should take.
//! Each frame's result is compared with that of a serial run, which takes none either.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use console::help::Answer;
use event::{Event, Nanos, Task};
use paceline::{BuildError, Builder, Interference, JobId, JobSystem, Role, Stats, WaitError};
use platform::{Machine, Platform, SchedParams};
use sim::Sim;
use workload::baseline::{BaselineKind, BaselineScene};
use workload::busy::Busy;
use workload::graph::{GraphScene, JobGraph, Labels};
use workload::mandelbrot::{MandelbrotScene, Tiles};
use workload::pace::{Pace, Pause};
use workload::raster::{RasterScene, default_mesh};
use workload::{Scene, Watch, WatchBodies};

use super::costs::DrawnCosts;
use super::kept::{BoundedRecorder, LIMIT};
use super::program::{FrameProgram, FrameScene, JobSystemKind};
use crate::commands::frames::recorder::slot_of_main;
use crate::commands::values::Workers;

/// The findings of a program so far.
#[derive(Default)]
pub(super) struct ProgramFindings {
    /// Figures for people: a name and a value.
    pub(super) about: Vec<(&'static str, String)>,
    /// When each frame began and ended.
    pub(super) frames: Vec<(Nanos, Nanos)>,
    /// From when to when threads met at a barrier.
    pub(super) rounds: Option<(Nanos, Nanos)>,
    /// How many results were compared and right.
    pub(super) right: u64,
    /// The failure, if there was one.
    pub(super) error: Option<String>,
    /// Whether it is through.
    pub(super) is_over: bool,
    /// The kernel's answer to each wish for help.
    pub(super) help: Vec<Answer>,
    /// The job system's counters.
    pub(super) stats: Option<Stats>,
    /// The effect of other threads on it, as far as it noticed.
    pub(super) interference: Option<Interference>,
    /// The job system's recording, if it was asked for.
    pub(super) jobs: Option<Jobs>,
}

/// The recording of a job system.
pub(super) struct Jobs {
    pub(super) events: Vec<Event>,
    pub(super) lost: u64,
    pub(super) labels: Vec<String>,
    pub(super) slots: BTreeMap<u32, Task>,
}

/// The number of workers of a job system that was given none: as many as the machine and a quota leave room
/// for.
fn default_workers(sim: &Sim) -> usize {
    let parallelism = sim.limits().effective_parallelism();
    parallelism.saturating_sub(1).max(1)
}

/// Runs the frames. `traced`: keep the job system's events.
pub(super) fn run(sim: &Sim, what: FrameProgram, traced: bool, told: &RefCell<ProgramFindings>) {
    let workers = match what.workers {
        Workers::Auto => default_workers(sim),
        Workers::Count(count) => count,
    };
    let loop_ = Loop {
        sim,
        frames: what.frames,
        period: what.period,
        workers,
        help: what.help,
        traced,
        told,
    };
    let done = match (what.system, what.scene) {
        (JobSystemKind::Baseline(kind), FrameScene::Graph(graph)) => loop_.on_baseline(kind, graph),
        (_, FrameScene::Graph(graph)) => {
            let scene = GraphScene::new(graph, Busy::NONE, Labels::OfJobs);
            loop_.on_paceline(scene, what.costs)
        }
        (_, FrameScene::Mandelbrot(grid)) => {
            let scene = MandelbrotScene::new(grid, Tiles::Jobs).map_err(|error| error.to_string());
            scene.and_then(|scene| loop_.on_paceline(scene, what.costs))
        }
        (_, FrameScene::Raster) => loop_.on_paceline(RasterScene::new(default_mesh()), what.costs),
    };
    let mut told = told.borrow_mut();
    told.error = told.error.take().or(done.err());
    told.is_over = true;
}

struct Loop<'a> {
    sim: &'a Sim,
    frames: u32,
    period: Option<Nanos>,
    workers: usize,
    help: Vec<SchedParams>,
    traced: bool,
    told: &'a RefCell<ProgramFindings>,
}

impl Loop<'_> {
    fn tell(&self, name: &'static str, value: String) {
        self.told.borrow_mut().about.push((name, value));
    }

    fn tell_pace(&self) {
        let pace = match self.period {
            Some(period) => format!("one every {period}"),
            None => "as fast as possible".to_owned(),
        };
        self.tell("frames", format!("{}, {pace}", self.frames));
        let workers = match self.workers {
            1 => "1 worker".to_owned(),
            count => format!("{count} workers"),
        };
        self.tell("threads", format!("{workers} and the main thread"));
    }

    /// Runs each frame when it is due. `frame` gets the time it has.
    fn each_frame(
        &self,
        mut frame: impl FnMut(Duration) -> Result<(), String>,
    ) -> Result<(), String> {
        let period = self.period.map(Duration::from);
        let mut pace = Pace::new(self.sim.clone(), period, Pause::Sleep);
        for number in 0..self.frames {
            let budget = pace.next_frame();
            let begin = self.sim.time();
            let done = frame(budget);
            let end = self.sim.time();
            done.map_err(|why| format!("frame {number}: {why}"))?;
            let mut told = self.told.borrow_mut();
            told.frames.push((begin, end));
            told.right += 1;
        }
        Ok(())
    }

    fn on_baseline(&self, kind: BaselineKind, graph: JobGraph) -> Result<(), String> {
        self.tell("job system", kind.to_string());
        let (sim, workers) = (self.sim.clone(), self.workers);
        let scene = BaselineScene::new(kind, graph, sim, workers, Busy::NONE);
        let mut scene = scene.map_err(|error| error.to_string())?;
        self.tell_pace();
        self.each_frame(|_| {
            scene.run();
            scene
                .verify()
                .map(|_| ())
                .map_err(|wrong| wrong.to_string())
        })
    }

    fn on_paceline(&self, mut scene: impl Scene, costs: Option<DrawnCosts>) -> Result<(), String> {
        self.tell("job system", "paceline".to_owned());
        self.tell("scene", scene.title());
        self.tell(
            "times of bodies",
            match &costs {
                None => "what the scene charges".to_owned(),
                Some(costs) => format!(
                    "recorded on {}{}",
                    costs.machine,
                    if costs.quiet {
                        ""
                    } else {
                        ", which was not quiet"
                    }
                ),
            },
        );
        let ledger = Ledger::new(self.sim, scene.labels(), costs)?;
        // It lives as long as the process, so that bodies need not count references to it.
        let ledger: &'static Ledger = Box::leak(Box::new(ledger));
        scene.prepare(self.frames.into(), &mut |_, _| ());
        let recorder = self.traced.then(|| BoundedRecorder::new(LIMIT));
        let slots = Arc::new(Mutex::new(BTreeMap::new()));
        let js = self.build(recorder.as_ref(), &slots)?;
        self.tell_pace();
        let main = (!self.help.is_empty()).then(|| js.adopt(Role::Main));
        self.told.borrow_mut().help = js.os_help().iter().map(Answer::told).collect();
        let mut look = SimWatch { ledger };
        let done = self.each_frame(|budget| {
            scene.clear();
            ledger.begin_frame();
            let frame = js.frame("frame", budget);
            let done = scene.run_watched(&js, &frame, &mut look);
            drop(frame);
            done.map_err(|error| error.to_string())?;
            scene
                .verify()
                .map(|_| ())
                .map_err(|wrong| wrong.to_string())
        });
        drop(main);
        let mut told = self.told.borrow_mut();
        told.stats = Some(js.stats());
        told.interference = Some(js.interference());
        drop(told);
        let labels = js.labels();
        // Workers record until they have ended.
        drop(js);
        if let Some(recorder) = recorder {
            let (events, lost) = recorder.recorded();
            let mut slots = std::mem::take(&mut *held(&slots));
            if let Some(slot) = slot_of_main(&events) {
                slots.insert(slot, me(self.sim));
            }
            self.told.borrow_mut().jobs = Some(Jobs {
                events,
                lost,
                labels: labels.iter().map(|label| label.name.to_owned()).collect(),
                slots,
            });
        }
        done
    }

    fn build(
        &self,
        recorder: Option<&BoundedRecorder>,
        slots: &Arc<Mutex<BTreeMap<u32, Task>>>,
    ) -> Result<JobSystem<Sim>, String> {
        let (sim, slots) = (self.sim.clone(), slots.clone());
        let mut builder = Builder::with_platform(self.sim.clone())
            .workers(self.workers)
            .on_thread_start(move |slot| {
                held(&slots).insert(slot as u32, me(&sim));
            });
        for wish in &self.help {
            builder = builder.os_help(wish.clone());
        }
        if let Some(recorder) = recorder {
            builder = builder.sink(recorder.sink());
        }
        builder
            .build()
            .map_err(|error: BuildError| error.to_string())
    }
}

/// The calling simulated thread.
fn me(sim: &Sim) -> Task {
    Task(sim.thread_id().saturating_sub(1) as u32)
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at bodies: charges the time of each, and checks that each charges something.
struct Ledger {
    sim: Sim,
    labels: Vec<&'static str>,
    /// With the place of each label in it.
    costs: Option<(DrawnCosts, Vec<usize>)>,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    frame: u64,
    /// How many bodies of each label have been drawn in this frame.
    drawn: Vec<u64>,
    /// How often each thread has charged something, by its number.
    charges: BTreeMap<u64, u64>,
}

impl Ledger {
    fn new(
        sim: &Sim,
        labels: &[&'static str],
        costs: Option<DrawnCosts>,
    ) -> Result<Ledger, String> {
        let costs = match costs {
            None => None,
            Some(costs) => {
                let places = costs.places(labels)?;
                Some((costs, places))
            }
        };
        Ok(Ledger {
            sim: sim.clone(),
            labels: labels.to_vec(),
            costs,
            counts: Mutex::new(Counts::default()),
        })
    }

    fn begin_frame(&self) {
        let mut counts = held(&self.counts);
        counts.frame += 1;
        counts.drawn = vec![0; self.labels.len()];
    }

    /// How often the calling thread has charged something.
    fn charges(&self) -> u64 {
        let me = self.sim.thread_id();
        held(&self.counts).charges.get(&me).copied().unwrap_or(0)
    }
}

impl WatchBodies for &'static Ledger {
    fn body(&self, label: u32, _: u64, run: impl FnOnce()) {
        let before = self.charges();
        run();
        let label = self.labels[label as usize];
        assert!(
            self.charges() > before,
            "the body of '{label}' ended without a charge: on a simulated machine it has to say what it \
             takes (cx.work)"
        );
    }

    fn worth(&self, label: u32, own: Nanos) -> Nanos {
        let mut counts = held(&self.counts);
        *counts.charges.entry(self.sim.thread_id()).or_insert(0) += 1;
        let Some((costs, places)) = &self.costs else {
            return own;
        };
        let n = counts.drawn[label as usize];
        counts.drawn[label as usize] += 1;
        costs.draw(counts.frame, places[label as usize], n)
    }
}

/// Waits of the main thread need no stopwatch here: the kernel's events tell all.
struct SimWatch {
    ledger: &'static Ledger,
}

impl Watch<Sim> for SimWatch {
    type Bodies = &'static Ledger;

    fn bodies(&self) -> &'static Ledger {
        self.ledger
    }

    fn wait(&mut self, js: &JobSystem<Sim>, job: JobId, _: &'static str) -> Result<(), WaitError> {
        js.try_wait(job)
    }
}

#[cfg(test)]
mod tests {
    use sim::SimConfig;

    use super::*;

    /// Goal: a body that ends without a charge is an error that names it. Method: a body that charges
    /// nothing, beside one that does.
    #[test]
    fn a_body_without_a_charge_is_an_error() {
        let report = Sim::run(SimConfig::new(1), |sim| {
            let ledger = Ledger::new(&sim, &["pays", "forgets"], None).unwrap();
            let ledger: &'static Ledger = Box::leak(Box::new(ledger));
            ledger.begin_frame();
            ledger.body(0, 1, || sim.charge(ledger.worth(0, Nanos(5))));
            ledger.body(1, 1, || ());
        });
        let sim::Outcome::Panicked { message, .. } = &report.outcome else {
            panic!("{report}");
        };
        assert!(
            message.contains("'forgets'") && message.contains("cx.work"),
            "{message}"
        );
    }
}
