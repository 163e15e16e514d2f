//! Work that is left to the workers.
//!
//! Goal: published work is never forgotten: ready jobs run although no outside thread waits for them or helps
//! with them.
//!
//! Method: the threads of a random program run and end; the main thread then parks on a bell of its own,
//! outside of the job system, until the last body is gone. A waiter would find a ready job by itself,
//! announced or not; here only the workers can find it. On simulated threads a job that was never announced
//! shows in one of these ways:
//!
//! - as a deadlock, if all workers sleep, or spin on a word that nothing will write (policy `Active`);
//! - as time that passes, if they are [`PATIENT`] and find the job when they look for the last time: the main
//!   thread rests for longer than [`PATIENCE`];
//! - in the log, if a worker had nothing to do while the job was ready (`support::log::check_wakes`), however
//!   the run went on. That is asked of other endings, too.
//!
//! Plans for this ending have workers at all times, and threads end their events before they leave, so that
//! everything can run. Most programs have a [`Theme`], which makes the situations frequent that the oracle
//! looks for. In seven of ten a few steps are late: that holds threads back for as long as others need to go
//! to sleep.

use std::sync::OnceLock;
use std::time::Duration;

use event::Nanos;
use paceline::WaitPolicy;
use platform::{CpuSet, Parker, Platform, Topology};
use sim::{Perturb, SimConfig};

use super::plan::{Plan, Taste};
use super::run::Ending;
use super::simulated::{Shape, run_and_judge, shape_of, world_of};
use super::theme::Theme;
use super::world::World;
use crate::support::{Random, each_seed};

/// Workers that spin for much longer than all of a program takes, and then look around once more.
const PATIENT: WaitPolicy = WaitPolicy::For(Duration::from_secs(1));

/// The simulated time in which the workers must be done with the work that was left to them. Apart from late
/// steps, work is the only thing that takes time there, and a plan has a few milliseconds of it.
const PATIENCE: Nanos = Nanos::from_millis(50);

/// Where the main thread rests while the workers are left alone.
pub(crate) struct Bell<P: Platform> {
    parker: OnceLock<P::Parker>,
    /// For how long it rested.
    took: OnceLock<Nanos>,
}

impl<P: Platform> Default for Bell<P> {
    fn default() -> Self {
        Bell {
            parker: OnceLock::new(),
            took: OnceLock::new(),
        }
    }
}

impl<P: Platform> Bell<P> {
    /// A body has run or was dropped, and is counted.
    pub(super) fn body_is_gone(&self) {
        if let Some(parker) = self.parker.get() {
            parker.unpark();
        }
    }
}

/// Rests until no body is left. All other threads have ended, so only bodies make new ones. Nodes without a
/// body end together with the last of their predecessors.
pub(super) fn leave_to_the_workers<P: Platform>(world: &World<P>, platform: &P) {
    let since = platform.now();
    let parker = world.bell.parker.get_or_init(|| platform.parker());
    // In this order: a body that is gone has made all it makes.
    let all_gone = || {
        let gone = world.bodies_dropped.get();
        gone == world.bodies_made.get()
    };
    while !all_gone() {
        parker.park(Nanos::MAX);
    }
    let took = platform.now() - since;
    world.bell.took.set(took).expect("a world ends once");
}

/// Whether the workers were done with it in time. For simulated time: on a real machine other programs take
/// some.
pub(super) fn judge<P: Platform>(world: &World<P>) {
    let took = world.bell.took.get().copied().unwrap_or_default();
    world.expect(took <= PATIENCE, || {
        format!("the workers took {took} for what was left to them")
    });
}

/// A program for this ending, and the settings of its run.
pub(super) struct Case {
    pub(super) config: SimConfig,
    pub(super) shape: Shape,
    pub(super) plan: Plan,
}

impl Case {
    /// The one with this seed. It has one of these themes.
    pub(super) fn of(seed: u64, themes: &[Theme]) -> Case {
        let mut random = Random::new(seed ^ 0x1ef7_0000);
        let workers = *random.pick(&[1, 2, 3]);
        let theme = *random.pick(themes);
        let taste = Taste {
            nodes: match theme {
                Theme::Batch => 1,
                _ => *random.pick(&[3, 5, 8, 16]),
            },
            has_workers: true,
            waits_by_id: true,
            events: true,
            ranges: true,
            results: true,
            borrowing: true,
            panics: *random.pick(&[0, 0, 10]),
            lanes: *random.pick(&[0, 40]),
            theme,
            items: match theme {
                Theme::Crew => 4,
                _ => *random.pick(&[9, 40]),
            },
        };
        let mut config = world_of(&mut random, seed);
        if random.chance(70) {
            config = with_late_steps(&mut random, config);
        }
        if random.chance(10) {
            config.shown = Some(two_classes());
        }
        let mut shape = shape_of(&mut random, workers, Ending::Left);
        if random.chance(50) {
            shape.policy = *random.pick(&[WaitPolicy::Active, PATIENT]);
        }
        if theme == Theme::Crew {
            // A thread that comes to the range is held back there until another one has done the rest.
            config = with_late_steps(&mut random, config);
            config.perturb.delay_one_in = 16; // More often, and the lateness that is excused would not do.
        }
        if theme == Theme::Batch {
            // Only workers that spin can miss it, and only the log shows it.
            shape.policy = *random.pick(&[WaitPolicy::Active, PATIENT]);
            shape.traced = true;
            shape.workers = 3;
            // The worker that moves tickets is late by as much as another one needs for a job and a look;
            // when all are late all the time, none gets ahead.
            config.perturb.delay_one_in = 64;
            config.perturb.delay_max = Nanos(1_000);
        }
        let plan = Plan::generate(&mut random, taste);
        Case {
            config,
            shape,
            plan,
        }
    }
}

/// The same with late steps: a thread is held back, at any point, for as long as others have steps to take.
pub(super) fn with_late_steps(random: &mut Random, config: SimConfig) -> SimConfig {
    SimConfig {
        perturb: Perturb {
            delay_one_in: *random.pick(&[16, 64, 256]),
            delay_max: *random.pick(&[10, 1_000, 30_000].map(Nanos)),
            ..config.perturb
        },
        ..config
    }
}

/// Two fast CPUs and two slow ones.
fn two_classes() -> Topology {
    let halves = vec![
        (CpuSet::parse("0-1"), Some(300)),
        (CpuSet::parse("2-3"), Some(1024)),
    ];
    Topology::uniform(4).with_classes(halves)
}

#[test]
fn programs_left_to_the_workers() {
    let test = "dag::left::programs_left_to_the_workers";
    each_seed(test, 4000, |seed| {
        let themes = [
            Theme::None,
            Theme::None,
            Theme::Range,
            Theme::Crew,
            Theme::Event,
            Theme::Batch,
        ];
        let case = Case::of(seed, &themes);
        run_and_judge(test, case.config, &case.shape, &case.plan);
    });
}
