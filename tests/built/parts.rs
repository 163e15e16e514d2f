//! Parts of a slice: what jobs get, which of them need an order, and data that is too short.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use paceline::{Builder, BuiltGraph, JobSystem, PlanError, ScheduleError, WaitError};
use platform::Platform;
use sim::{Sim, SimConfig};

use crate::support::{Random, each_seed, watched};

const ITEMS: usize = 9;

struct World {
    items: Vec<u64>,
    total: u64,
}

paceline::resources! { World: Keys { items: [u64], total: u64 } }

fn world() -> World {
    World {
        items: (0..ITEMS as u64).collect(),
        total: 0,
    }
}

/// A job of a random graph: what it reads, and what it writes.
#[derive(Clone, Debug)]
struct Step {
    reads: Reads,
    writes: std::ops::Range<usize>,
}

#[derive(Clone, Debug)]
enum Reads {
    Nothing,
    One(usize),
    Part(std::ops::Range<usize>),
    Each(Vec<usize>),
}

fn part(random: &mut Random) -> std::ops::Range<usize> {
    let (a, b) = (random.below(ITEMS + 1), random.below(ITEMS + 1));
    a.min(b)..a.max(b)
}

impl Step {
    /// It reads nothing that it writes.
    fn random(random: &mut Random) -> Step {
        let writes = part(random);
        let others = (0..ITEMS).filter(|item| !writes.contains(item));
        let others: Vec<usize> = others.collect();
        let reads = match random.below(4) {
            0 => Reads::Part(if random.chance(50) {
                0..writes.start
            } else {
                writes.end..ITEMS
            }),
            1 if !others.is_empty() => Reads::One(others[random.below(others.len())]),
            2 if !others.is_empty() => {
                let each = (0..random.below(4)).map(|_| others[random.below(others.len())]);
                Reads::Each(each.collect())
            }
            _ => Reads::Nothing,
        };
        Step { reads, writes }
    }

    fn read_items(&self) -> Vec<usize> {
        match &self.reads {
            Reads::Nothing => Vec::new(),
            Reads::One(item) => vec![*item],
            Reads::Part(part) => part.clone().collect(),
            Reads::Each(items) => items.clone(),
        }
    }
}

/// What a job does to each item that it writes.
fn change(number: usize, seen: impl Iterator<Item = u64>, items: &mut [u64]) {
    let seen = seen.fold(number as u64, |all, one| all.wrapping_mul(31) ^ one);
    for item in items {
        *item = item.wrapping_mul(7).wrapping_add(seen);
    }
}

fn build<P: Platform>(js: &JobSystem<P>, steps: &[Step]) -> BuiltGraph<'static, World, P> {
    let (mut graph, w) = js.graph_of::<World>("random");
    graph.auto();
    for (number, step) in steps.iter().enumerate() {
        let job = graph.job("step").writes(w.items.part(step.writes.clone()));
        match step.reads.clone() {
            Reads::Nothing => job.run(move |_, items| change(number, [].into_iter(), items)),
            Reads::One(item) => job.reads(w.items.at(item)).run(move |_, (items, seen)| {
                change(number, [*seen].into_iter(), items);
            }),
            Reads::Part(part) => job
                .reads(w.items.part(part))
                .run(move |_, (items, seen)| change(number, seen.iter().copied(), items)),
            Reads::Each(each) => job
                .reads(w.items.each(each))
                .run(move |_, (items, seen)| change(number, seen.iter().copied(), items)),
        };
    }
    graph.build()
}

fn program<P: Platform>(js: &JobSystem<P>, random: &mut Random) {
    let steps = (0..1 + random.below(12)).map(|_| Step::random(random));
    let steps: Vec<Step> = steps.collect();
    let mut graph = build(js, &steps);
    let (mut parallel, mut serial) = (world(), world());
    for _ in 0..3 {
        graph.run(&mut parallel);
        for (number, step) in steps.iter().enumerate() {
            let seen = step.read_items();
            let seen: Vec<u64> = seen.into_iter().map(|item| serial.items[item]).collect();
            change(
                number,
                seen.into_iter(),
                &mut serial.items[step.writes.clone()],
            );
        }
        assert_eq!(parallel.items, serial.items, "{steps:?}\n{graph}");
    }
}

/// Goal: jobs that touch parts of one slice in parallel leave what they leave one after the other. Method:
/// random parts and items, `auto`; simulated machines.
#[test]
fn random_parts_on_simulated_threads() {
    let name = "built::parts::random_parts_on_simulated_threads";
    each_seed(name, 600, |seed| {
        let report = Sim::run(SimConfig::new(seed), |sim| {
            let builder = Builder::with_platform(sim).workers(1 + seed as usize % 3);
            program(&builder.build().unwrap(), &mut Random::new(seed));
        });
        assert_eq!(report.outcome, sim::Outcome::Finished, "{report}");
    });
}

/// The same on the machine.
#[test]
fn random_parts_on_threads() {
    watched("parts on threads", || {
        let js = Builder::new().workers(2).build().unwrap();
        each_seed("built::parts::random_parts_on_threads", 200, |seed| {
            program(&js, &mut Random::new(seed));
        });
    });
}

/// Goal: jobs that write different items run at the same time, and an empty part holds up nobody. Method: two
/// jobs that meet, and one with an empty part in the midst of theirs.
#[test]
fn different_parts_overlap() {
    watched("different parts", || {
        let js = Builder::new().workers(3).build().unwrap();
        let meet = Barrier::new(3);
        let (mut graph, w) = js.graph_of::<World>("frame");
        let mut job = |part| {
            let job = graph.job("part").writes(w.items.part(part));
            job.run(|_, items| {
                meet.wait();
                items.fill(50);
            });
        };
        job(0..4);
        job(2..2);
        job(4..ITEMS);
        let mut world = world();
        graph.build().run(&mut world);
        assert_eq!(world.items, [50; ITEMS]);
    });
}

/// Goal: parts that meet are an error that names the items; a part that ends before it begins is one, and so
/// is an item that no slice has. Method: one of each.
#[test]
fn what_is_wrong_with_parts() {
    let js = Builder::new().workers(0).build().unwrap();
    let (mut graph, w) = js.graph_of::<World>("frame");
    graph.job("left").writes(w.items.part(0..5)).run(|_, _| ());
    graph.job("right").reads(w.items.at(4)).run(|_, _| ());
    let error = graph.try_build().expect_err("both touch item 4");
    let text = error.to_string();
    assert!(text.contains("reads items 4..5 of 'items'"), "{text}");
    assert!(text.contains("writes items 0..5 of it"), "{text}");

    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let backwards = w.items.part(5..3);
    let (mut graph, _) = js.graph_of::<World>("frame");
    graph.job("backwards").reads(backwards).run(|_, _| ());
    let error = graph.try_build().expect_err("5..3");
    assert!(matches!(
        error,
        PlanError::Backwards {
            resource: "items",
            ..
        }
    ));

    for each in [true, false] {
        let (mut graph, w) = js.graph_of::<World>("frame");
        let job = graph.job("last");
        if each {
            job.reads(w.items.each([1, usize::MAX])).run(|_, _| ());
        } else {
            job.writes(w.items.at(usize::MAX)).run(|_, _| ());
        }
        let error = graph.try_build().expect_err("no slice has it");
        assert!(matches!(error, PlanError::Backwards { .. }), "{error}");
    }
}

/// Goal: a run whose data is too short is an error that names the job, its place and the items; nothing runs,
/// the data is given back, and a run with longer data is whole. Method: each way to run, with data of another
/// length.
#[test]
fn data_that_is_too_short() {
    let js = Builder::new().workers(1).build().unwrap();
    let ran = AtomicU32::new(0);
    let (mut graph, w) = js.graph_of::<World>("frame");
    graph.job("any").run(|_| _ = ran.fetch_add(1, Relaxed));
    let line = line!() + 1;
    let last = graph.job("last").reads(w.items.each([3, 1]));
    last.writes(w.items.at(ITEMS - 1)).run(|_, (seen, last)| {
        assert_eq!(
            (seen.len(), seen[1], format!("{seen:?}")),
            (2, 1, "[3, 1]".to_owned())
        );
        *last = seen[0];
    });
    let mut graph = graph.build();
    let mut short = World {
        items: vec![0; ITEMS - 1],
        total: 0,
    };
    let expected = format!(
        "'last' ({}:{line}:22) writes items 8..9 of 'items', which has 8 in this run: give the run longer \
         data, or build a graph for this length",
        file!()
    );
    let inside = js.enter(|cx| graph.try_run_in(cx, &mut short));
    for result in [graph.try_run(&mut short), inside] {
        let error = result.expect_err("item 8 is missing");
        assert_eq!(error.to_string(), expected);
        let WaitError::Refused(ScheduleError::MissingItems(missing)) = error else {
            unreachable!("that is its text");
        };
        assert_eq!((missing.items.clone(), missing.len), (8..9, 8));
    }
    let raised = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| graph.run(&mut short)));
    let raised = raised.expect_err("it is refused");
    assert_eq!(raised.downcast_ref(), Some(&expected));
    assert_eq!(ran.load(Relaxed), 0);
    let mut world = world();
    graph.run(&mut world);
    assert_eq!(
        (ran.load(Relaxed), world.items[ITEMS - 1], world.total),
        (1, 3, 0)
    );
}

/// Goal: data that a start refuses is dropped, and not lost. Method: data that counts its drop.
#[test]
fn a_start_that_is_refused_drops_the_data() {
    struct Counted {
        items: Vec<u8>,
        _alive: std::sync::Arc<()>,
    }
    paceline::resources! { Counted: CountedKeys { items: [u8] } }
    let js = Builder::new().workers(0).build().unwrap();
    let (mut graph, w) = js.graph_of::<Counted>("frame");
    graph
        .job("first")
        .writes(w.items.at(0))
        .run(|_, first| *first = 1);
    let graph = graph.build();
    let alive = std::sync::Arc::new(());
    let data = Box::new(Counted {
        items: Vec::new(),
        _alive: alive.clone(),
    });
    let start = std::panic::AssertUnwindSafe(|| drop(js.start(graph, data)));
    assert!(std::panic::catch_unwind(start).is_err());
    assert_eq!(std::sync::Arc::strong_count(&alive), 1);
}
