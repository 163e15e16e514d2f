//! The arm on the operating system: the same programs, fewer of them, in whatever order it likes.

use event::MemorySink;
use paceline::Builder;

use super::oracle;
use super::plan::{Plan, Taste};
use super::run::{Ending, run};
use super::simulated::{Shape, shape_of};
use super::theme::Theme;
use super::world::World;
use crate::support::{Random, each_seed, log, watched};

fn run_and_judge(shape: &Shape, plan: &Plan) {
    let world = World::new(plan.clone());
    let (sink, log) = MemorySink::new();
    run(
        &world,
        shape.build(Builder::new(), sink, &world),
        shape.ending,
    );
    let lives = shape
        .traced
        .then(|| log::check(&log.drain()).unwrap_or_else(|why| panic!("{why}")));
    oracle::judge(&world, shape.ending, lives.as_ref());
    let wrong = world.wrong.lock().unwrap();
    assert!(wrong.is_empty(), "{shape:?}\n{}", wrong.join("\n"));
}

fn programs(test: &str, seeds: u64, workers: &[usize], ending: Ending) {
    each_seed(test, seeds, |seed| {
        let mut random = Random::new(seed ^ 0x0ea1_0000);
        let workers = *random.pick(workers);
        let taste = Taste {
            nodes: *random.pick(&[8, 40, 200]),
            has_workers: workers > 0,
            waits_by_id: ending != Ending::Abrupt,
            events: true,
            ranges: true,
            results: true,
            borrowing: true,
            panics: *random.pick(&[0, 10]),
            lanes: 0,
            theme: Theme::None,
            items: 40,
        };
        let shape = shape_of(&mut random, workers, ending);
        let plan = Plan::generate(&mut random, taste);
        let what = format!("{test}, seed {seed}, {shape:?}");
        watched(&what, || run_and_judge(&shape, &plan));
    });
}

#[test]
fn programs_on_threads() {
    programs(
        "dag::real::programs_on_threads",
        300,
        &[0, 1, 2, 8, 32],
        Ending::Settled,
    );
}

#[test]
fn programs_on_threads_left_to_the_workers() {
    programs(
        "dag::real::programs_on_threads_left_to_the_workers",
        200,
        &[1, 2, 8],
        Ending::Left,
    );
}

#[test]
fn programs_on_threads_dropped_with_work_in_flight() {
    programs(
        "dag::real::programs_on_threads_dropped_with_work_in_flight",
        200,
        &[0, 1, 2, 8, 32],
        Ending::Abrupt,
    );
}
