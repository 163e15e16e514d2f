//! The arm on simulated threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use event::{Event, MemorySink, Nanos};
use paceline::{Builder, JobSystem, WaitPolicy};
use platform::Platform;
use sim::{Order, Sim, SimConfig, SimReport};

use super::left;
use super::oracle;
use super::plan::{Plan, Taste};
use super::run::{Ending, run};
use super::theme::Theme;
use super::world::World;
use crate::support::{Random, each_seed, kept, log};

/// How many steps a run may take: far more than any does.
pub(super) const STEPS_MAX: u64 = 3_000_000;

/// This many late steps may lie between a job that is ready and the worker that takes it.
const LATE_STEPS: u64 = 50;

/// The settings of a run besides its plan.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) workers: usize,
    pub(crate) queue_capacity: usize,
    pub(crate) policy: WaitPolicy,
    pub(crate) traced: bool,
    pub(crate) ending: Ending,
}

/// A simulated world and its random stream, by seed.
pub(crate) fn world_of(random: &mut Random, seed: u64) -> SimConfig {
    let order = match random.below(4) {
        0 | 1 => Order::Random,
        2 => Order::Pct { depth: 2 },
        _ => Order::Pct { depth: 4 },
    };
    let config = SimConfig::new(seed)
        .with_order(order)
        .with_cpus_shown(*random.pick(&[1, 2, 4]))
        .with_spurious(random.chance(50));
    SimConfig {
        steps_max: STEPS_MAX,
        ..config
    }
}

pub(crate) fn shape_of(random: &mut Random, workers: usize, ending: Ending) -> Shape {
    let policies = [
        WaitPolicy::Adaptive,
        WaitPolicy::Passive,
        WaitPolicy::Active,
        WaitPolicy::For(Duration::from_nanos(2_000)),
    ];
    Shape {
        workers,
        queue_capacity: *random.pick(&[2, 2, 4, 64]),
        policy: *random.pick(&policies),
        traced: random.chance(75),
        ending,
    }
}

impl Shape {
    /// A job system of this shape whose hook tells the world, recording to the sink if it is to.
    pub(super) fn build<P: Platform>(
        &self,
        builder: Builder<P>,
        sink: MemorySink,
        world: &Arc<World<P>>,
    ) -> JobSystem<P> {
        let unwaited = world.clone();
        let mut builder = builder
            .workers(self.workers)
            .queue_capacity(self.queue_capacity)
            .wait_policy(self.policy)
            .on_unwaited_panic(move |_| unwaited.unwaited_panics.up());
        if self.traced {
            builder = builder.sink(Arc::new(sink));
        }
        builder.build().expect("the settings are in range")
    }
}

/// A run and all that is known of it.
pub(crate) struct Run<P: Platform> {
    pub(crate) report: SimReport,
    pub(crate) world: Arc<World<P>>,
    pub(crate) events: Vec<Event>,
}

/// One run on simulated threads. `platform` may put something between the job system and them.
pub(crate) fn run_once<P: Platform>(
    config: SimConfig,
    shape: &Shape,
    world: Arc<World<P>>,
    platform: impl Fn(Sim) -> P,
) -> Run<P> {
    let (sink, log) = MemorySink::new();
    let report = Sim::run(config, |sim| {
        let builder = Builder::with_platform(platform(sim)).max_threads(8);
        run(&world, shape.build(builder, sink, &world), shape.ending);
    });
    Run {
        report,
        world,
        events: log.drain(),
    }
}

impl<P: Platform> Run<P> {
    /// Everything that is wrong with it.
    pub(crate) fn faults(&self, shape: &Shape) -> Vec<String> {
        let mut faults = self.faults_of_jobs(shape);
        if shape.traced && self.has_equal_cpus() {
            let late = self.report.config.perturb.delay_max;
            let wakes = log::check_wakes(
                &self.events,
                &self.report.threads,
                Nanos(late.0 * self.late_steps_max()),
            );
            faults.extend(wakes.err());
        }
        faults
    }

    /// The same without workers that idle beside work: for runs in which a thread that is no worker takes
    /// many late steps, and keeps workers from theirs.
    pub(super) fn faults_of_jobs(&self, shape: &Shape) -> Vec<String> {
        let mut faults = Vec::new();
        if self.report.outcome != sim::Outcome::Finished {
            faults.push(self.report.to_string());
        } else if shape.traced {
            match log::check(&self.events) {
                Ok(lives) => oracle::judge(&self.world, shape.ending, Some(&lives)),
                Err(why) => faults.push(why),
            }
            if shape.ending != Ending::Abrupt {
                let no_workers = shape.workers == 0;
                let part = |label| self.world.part(label);
                let helping = log::check_helping(&self.events, no_workers, part);
                faults.extend(helping.err());
            }
        } else {
            oracle::judge(&self.world, shape.ending, None);
        }
        left::judge(&self.world);
        faults.extend(self.world.wrong.lock().unwrap().drain(..));
        faults
    }

    /// How many late steps may lie between a job that is ready and the worker that takes it. Under strict
    /// priorities those of threads that go before the worker count, too.
    fn late_steps_max(&self) -> u64 {
        if self.report.config.policy.starts_with("pct-") {
            2 * LATE_STEPS
        } else {
            LATE_STEPS
        }
    }

    /// Whether each worker takes all work.
    fn has_equal_cpus(&self) -> bool {
        let shown = self.report.config.shown.as_ref();
        shown.is_none_or(|shown| shown.classes().len() < 2)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.events.iter().flat_map(Event::to_bytes).collect()
    }
}

/// The run once more, which is the same, and what happened in it as a trace in this folder.
pub(super) fn traced<P: Platform>(
    (test, folder): (&str, &Path),
    config: SimConfig,
    shape: &Shape,
    world: Arc<World<P>>,
    platform: impl Fn(Sim) -> P,
) -> PathBuf {
    let config = SimConfig {
        trace: true,
        ..config
    };
    let run = run_once(config, shape, world, platform);
    let faults = run.faults(shape);
    kept::keep(folder, test, &run.report, &run.events, &faults)
}

/// Runs a plan twice and judges it.
pub(super) fn run_and_judge(test: &str, config: SimConfig, shape: &Shape, plan: &Plan) {
    let first = run_once(config.clone(), shape, World::new(plan.clone()), |sim| sim);
    let faults = first.faults(shape);
    if !faults.is_empty() {
        if std::env::var_os("PACELINE_SEED").is_some() {
            plan.show();
            first.events.iter().for_each(|event| eprintln!("{event:?}"));
        }
        let place = (test, &*std::env::temp_dir());
        let again = World::new(plan.clone());
        let trace = traced(place, config.clone(), shape, again, |sim| sim);
        eprintln!("its trace is {}", trace.display());
        panic!("{shape:?}\n{config:?}\n{}", faults.join("\n"));
    }
    let second = run_once(config, shape, World::new(plan.clone()), |sim| sim);
    assert_eq!(first.report, second.report, "two runs of one seed differ");
    assert!(
        first.bytes() == second.bytes(),
        "two runs of one seed recorded different events"
    );
}

fn programs(test: &str, seeds: u64, workers: &[usize], ending: Ending) {
    each_seed(test, seeds, |seed| {
        let mut random = Random::new(seed ^ 0x0da6_0000);
        let workers = *random.pick(workers);
        let taste = Taste {
            nodes: *random.pick(&[3, 8, 16, 40]),
            has_workers: workers > 0,
            waits_by_id: ending != Ending::Abrupt,
            events: true,
            ranges: true,
            results: true,
            borrowing: true,
            panics: *random.pick(&[0, 10]),
            lanes: *random.pick(&[0, 0, 40]),
            theme: Theme::None,
            items: 40,
        };
        let config = world_of(&mut random, seed);
        let shape = shape_of(&mut random, workers, ending);
        let plan = Plan::generate(&mut random, taste);
        run_and_judge(test, config, &shape, &plan);
    });
}

#[test]
fn programs_without_workers() {
    programs(
        "dag::simulated::programs_without_workers",
        3000,
        &[0],
        Ending::Settled,
    );
}

#[test]
fn programs_with_a_worker_or_two() {
    programs(
        "dag::simulated::programs_with_a_worker_or_two",
        3000,
        &[1, 2],
        Ending::Settled,
    );
}

#[test]
fn programs_with_several_workers() {
    programs(
        "dag::simulated::programs_with_several_workers",
        3000,
        &[3, 4],
        Ending::Settled,
    );
}

#[test]
fn programs_whose_job_system_is_dropped_with_work_in_flight() {
    let test = "dag::simulated::programs_whose_job_system_is_dropped_with_work_in_flight";
    programs(test, 3000, &[0, 1, 2, 4], Ending::Abrupt);
}
