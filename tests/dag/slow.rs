//! Work that a slow worker makes ready by ending a range.
//!
//! Goal: a slow worker that is the last to leave a range announces the work that the range held back, since
//! it goes on with work for slow workers only.
//!
//! Method: a range, a job after it, and a background job after it that parks until that job has run. The
//! main thread parks, too. On a machine that is shown as one with a slow CPU, the range is offered to its
//! worker, under random orders of steps and with steps that are late; a job that lies there is a deadlock.
//! (If that announcement alone is left out, none of 1000 orders is a deadlock: while the backlog holds a job
//! for the slow worker, a worker that takes both kinds of work is on its way.)

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use event::Nanos;
use paceline::{Builder, Grain, Placement};
use platform::{CpuSet, Parker, Platform, Topology};
use sim::{Perturb, Sim, SimConfig, SimReport};

use crate::support::each_seed;

/// Rings once, for two.
struct Bell<P: Platform> {
    rung: AtomicBool,
    parkers: [P::Parker; 2],
}

impl<P: Platform> Bell<P> {
    fn new(platform: &P) -> Arc<Bell<P>> {
        Arc::new(Bell {
            rung: AtomicBool::new(false),
            parkers: [platform.parker(), platform.parker()],
        })
    }

    fn ring(&self) {
        // Release, partner: the load in `wait`.
        self.rung.store(true, Release);
        self.parkers.iter().for_each(|parker| _ = parker.unpark());
    }

    fn wait(&self, place: usize) {
        // Acquire, partner: the store in `ring`.
        while !self.rung.load(Acquire) {
            self.parkers[place].park(Nanos::MAX);
        }
    }
}

/// A few ranges and the jobs after them. Returns how many pieces slow workers ran.
fn program<P: Platform>(platform: P) -> u64 {
    let builder = Builder::with_platform(platform.clone()).workers(4);
    let js = builder.placement(Placement::LittleCoresInLoops).build();
    let js = js.expect("the settings are in range");
    for _ in 0..4 {
        let bell = Bell::new(&platform);
        let range = js
            .job("range")
            .schedule_for(0..200, Grain::Items(1), |part, cx| {
                cx.work(Nanos(5_000 * part.len() as u64));
            });
        let waits = bell.clone();
        let background = js.job("background").after(range).background();
        background.schedule(move |_| waits.wait(1));
        let rope = bell.clone();
        js.job("next").after(range).schedule(move |_| rope.ring());
        bell.wait(0);
    }
    js.stats().slow_pieces
}

fn run(seed: u64) -> (SimReport, u64) {
    let classes = vec![
        (CpuSet::parse("0"), Some(300)),
        (CpuSet::parse("1-3"), Some(1024)),
    ];
    let config = SimConfig {
        shown: Some(Topology::uniform(4).with_classes(classes)),
        perturb: Perturb {
            delay_one_in: 64,
            delay_max: Nanos(20_000),
            ..Perturb::default()
        },
        ..SimConfig::new(seed)
    };
    let mut pieces = 0;
    let report = Sim::run(config, |sim| pieces = program(sim));
    (report, pieces)
}

#[test]
fn what_a_slow_worker_makes_ready_is_announced() {
    let test = "dag::slow::what_a_slow_worker_makes_ready_is_announced";
    let pieces = Cell::new(0);
    each_seed(test, 300, |seed| {
        let (report, ran) = run(seed);
        report.expect_finished();
        pieces.set(pieces.get() + ran);
    });
    assert!(
        pieces.get() > 0,
        "the slow worker had no share of any range"
    );
}
