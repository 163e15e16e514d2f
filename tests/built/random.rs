//! Goal: each run of a graph keeps the order of all edges, runs each node once or not at all, as conditions
//! and failures say, and leaves what a serial run would leave; whichever call begins it. Method: random
//! graphs with declared accesses, missing edges added, conditions, sync points, loops, steps for the main
//! thread, panics, and the order of what hangs on a node switched on and off; several runs of each, on
//! simulated threads under random orders of steps, where a lost job or wake-up is a deadlock and no worker
//! idles beside work, and on the machine; against the oracle.

use std::sync::Arc;

use event::{MemorySink, Nanos};
use paceline::{
    Builder, BuiltGraph, Condition, Context, GraphBuilder, GraphNode, JobSystem, NodeRef, Res,
};
use platform::Platform;
use sim::{Sim, SimConfig};

use super::oracle::{End, FIELDS, Kind, Node, Notes, Plan};
use crate::support::{Random, delays, each_seed, fail, log, watched};

/// Items of a field.
const ITEMS: usize = 12;
/// This many late steps may lie between a job that is ready and the worker that takes it.
const LATE_STEPS: u64 = 50;
/// Runs of a graph.
const RUNS: usize = 4;

#[derive(Clone)]
struct World {
    a: Vec<u64>,
    b: Vec<u64>,
    c: Vec<u64>,
    d: Vec<u64>,
}

paceline::resources! {
    World: Keys { a: Vec<u64>, b: Vec<u64>, c: Vec<u64>, d: Vec<u64> }
}

type Field = Res<World, Vec<u64>>;

impl World {
    fn new() -> World {
        let column = |seed: u64| (0..ITEMS as u64).map(|item| item * seed).collect();
        World {
            a: column(1),
            b: column(2),
            c: column(3),
            d: column(5),
        }
    }

    fn fields(self) -> [Vec<u64>; FIELDS] {
        [self.a, self.b, self.c, self.d]
    }
}

/// What a body does around its own work.
struct Act {
    notes: Arc<Notes>,
    node: usize,
}

impl Act {
    fn around<P: Platform>(&self, cx: &Context<'_, P>, work: impl FnOnce()) -> bool {
        let end = self.notes.begins(self.node);
        cx.work(Nanos::from_micros(1 + self.node as u64 % 5));
        if end != End::Panicked {
            work();
        }
        self.notes.ends(self.node);
        match end {
            End::Panicked => fail("planned"),
            End::Ran(is_true) => is_true,
            _ => false,
        }
    }
}

/// What was declared so far: what later nodes can name.
enum Made {
    Node(GraphNode),
    Condition(Condition),
}

impl From<&Made> for NodeRef {
    fn from(made: &Made) -> NodeRef {
        match made {
            Made::Node(node) => (*node).into(),
            Made::Condition(condition) => (*condition).into(),
        }
    }
}

/// Describes a node as far as it does not depend on what it touches.
macro_rules! described {
    ($job:expr, $node:expr, $made:expr) => {{
        let mut job = $job.after_all($node.after.iter().map(|&before| &$made[before]));
        for &condition in &$node.only_if {
            if let Made::Condition(condition) = $made[condition] {
                job = job.only_if(condition);
            }
        }
        if $node.is_on_main {
            job = job.on_main();
        }
        if $node.is_background {
            job = job.background();
        }
        job
    }};
}

fn declare<P: Platform>(
    graph: &mut GraphBuilder<'static, World, P>,
    fields: [Field; FIELDS],
    (number, node): (usize, &Node),
    made: &[Made],
    notes: &Arc<Notes>,
) -> Made {
    let act = Act {
        notes: notes.clone(),
        node: number,
    };
    let name = format!("n{number}");
    match node.kind {
        Kind::Sync => return Made::Node(graph.sync(name)),
        Kind::Condition => {
            let condition = described!(graph.condition(name), node, made);
            return Made::Condition(condition.run(move |cx| act.around(cx, || ())));
        }
        Kind::Job => {}
    }
    let job = described!(graph.job(name), node, made);
    let (reads, writes) = (
        node.reads.map(|field| fields[field]),
        node.writes.map(|field| fields[field]),
    );
    let is_loop = node.is_loop;
    Made::Node(match (reads, writes) {
        (None, None) => job.run(move |cx| _ = act.around(cx, || ())),
        (Some(read), None) => job.reads(read).run(move |cx, read| {
            act.around(cx, || assert_eq!(read.len(), ITEMS));
        }),
        (None, Some(write)) => job.writes(write).run(move |cx, write| {
            act.around(cx, || {
                for item in write {
                    Notes::step(number, 7, item);
                }
            });
        }),
        (Some(read), Some(write)) => job.reads(read).writes(write).run(move |cx, (read, write)| {
            act.around(cx, || {
                if is_loop {
                    let both = cx.over((read, write)).grain(paceline::Grain::Items(3));
                    both.for_each(|(read, item)| Notes::step(number, *read, item));
                } else {
                    let both = write.iter_mut().zip(read);
                    both.for_each(|(item, read)| Notes::step(number, *read, item));
                }
            });
        }),
    })
}

fn build<P: Platform>(js: &JobSystem<P>, notes: &Arc<Notes>) -> BuiltGraph<'static, World, P> {
    let (mut graph, w) = js.graph_of::<World>("random");
    let fields = [w.a, w.b, w.c, w.d];
    graph.auto();
    let mut made = Vec::new();
    for node in notes.plan.nodes.iter().enumerate() {
        let next = declare(&mut graph, fields, node, &made, notes);
        made.push(next);
    }
    graph.build()
}

/// Runs the graph some times, in several ways, and judges each run.
fn program<P: Platform>(js: &JobSystem<P>, random: &mut Random, panics: u64) {
    let notes = Arc::new(Notes::new(Plan::generate(random, panics)));
    let mut graph = build(js, &notes);
    let toggles = *random.pick(&[0, 0, 100, 30]);
    let (mut world, mut serial) = (Box::new(World::new()), World::new().fields());
    for _ in 0..RUNS {
        notes.run_serially(&mut serial);
        if toggles > 0 {
            graph.critical_first(random.chance(toggles));
        }
        let result = match random.below(4) {
            0 => graph.try_run(&mut world),
            1 => js.enter(|cx| graph.try_run_in(cx, &mut world)),
            2 => {
                let (mut inner, mut data) = (graph, world);
                let job = js.job("runs it").run(move |cx| {
                    let result = inner.try_run_in(cx, &mut data);
                    (inner, data, result)
                });
                let result;
                (graph, world, result) = job.wait();
                result
            }
            _ => {
                let started = js.start(graph, world);
                js.enter(|cx| cx.work(Nanos::from_micros(3)));
                let result;
                (graph, world, result) = started.try_wait();
                result
            }
        };
        notes.judge(result.is_err());
        // After a panic the node's own writes are left out, as in the serial run.
        assert_eq!((*world).clone().fields(), serial, "{graph}");
    }
}

#[test]
fn graphs_on_simulated_threads() {
    each_seed("built::random::graphs_on_simulated_threads", 1500, |seed| {
        let config = match seed % 3 {
            0 => delays(seed),
            _ => SimConfig::new(seed),
        };
        let (sink, events) = MemorySink::new();
        let report = Sim::run(config, |sim| {
            let builder = Builder::with_platform(sim).workers(seed as usize % 4);
            let js = builder.sink(Arc::new(sink)).build().unwrap();
            let mut random = Random::new(seed);
            for panics in [0, 50] {
                program(&js, &mut random, panics);
            }
        });
        assert_eq!(report.outcome, sim::Outcome::Finished, "{report}");
        let events = events.drain();
        log::check(&events).unwrap_or_else(|why| panic!("{why}"));
        let late = Nanos(report.config.perturb.delay_max.0 * LATE_STEPS);
        let wakes = log::check_wakes(&events, &report.threads, late);
        wakes.unwrap_or_else(|why| panic!("{why}"));
    });
}

#[test]
fn graphs_on_threads() {
    watched("graphs on threads", || {
        for workers in [0, 1, 3] {
            let js = Builder::new().workers(workers).build().unwrap();
            each_seed("built::random::graphs_on_threads", 200, |seed| {
                let mut random = Random::new(seed);
                program(&js, &mut random, if seed % 2 == 0 { 0 } else { 50 });
            });
        }
    });
}

/// Goal: a job table with hardly any room does not stop a run. Method: the same programs, with room for two
/// jobs to eight.
#[test]
fn graphs_in_a_full_job_table() {
    watched("graphs in a full job table", || {
        for workers in [0, 2] {
            each_seed("built::random::graphs_in_a_full_job_table", 60, |seed| {
                let mut random = Random::new(seed);
                let builder = Builder::new().workers(workers);
                let js = builder.max_jobs(2 + seed as u32 % 7).build().unwrap();
                program(&js, &mut random, 20);
            });
        }
    });
}
