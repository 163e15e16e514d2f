//! Single cases: what is told of a graph, nested graphs, graphs in graphs, failures, ends.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex};

use paceline::{Builder, JobSystem, PlanError, StartedGraph, WaitError};

use crate::support::{fail, watched};

struct World {
    positions: Vec<f32>,
    speeds: Vec<f32>,
    sum: f32,
}

paceline::resources! {
    World: Keys { positions: Vec<f32>, speeds: Vec<f32>, sum: f32 }
}

fn world() -> World {
    World {
        positions: vec![0.0; 100],
        speeds: vec![1.0; 100],
        sum: 0.0,
    }
}

/// Goal: a loop and a sum over what was declared; the words of the front page. Method: three runs.
#[test]
fn loops_and_sums_over_declared_fields() {
    let js = JobSystem::new();
    let (mut graph, w) = js.graph_of::<World>("frame");
    graph.job("brake").writes(w.speeds).for_each(|v| *v *= 0.5);
    let travel = graph.job("travel").after("brake");
    travel
        .reads(w.speeds)
        .writes(w.positions)
        .for_each(|(v, x)| *x += v);
    let sum = graph.job("sum").after("travel").reads(w.positions);
    sum.writes(w.sum).run(|cx, (positions, sum)| {
        *sum = cx
            .over(positions)
            .reduce(|x| *x, |a, b| a + b)
            .unwrap_or(0.0);
    });
    let mut graph = graph.build();
    let mut world = world();
    for _ in 0..3 {
        graph.run(&mut world);
    }
    assert_eq!((world.positions[0], world.sum), (0.875, 87.5));
}

/// Goal: a frame of twelve systems that say what they touch takes no more than twenty lines of safe code.
/// Method: the example's lines, from the first system to the graph, as they are printed.
#[test]
fn twelve_systems_are_twenty_lines() {
    let example = include_str!("../../crates/paceline/examples/graph.rs");
    let frame: Vec<&str> = example
        .lines()
        .skip_while(|line| !line.contains("graph.job("))
        .take_while(|line| !line.contains("graph.build()"))
        .collect();
    let systems = frame
        .iter()
        .filter(|line| line.contains("graph.job("))
        .count();
    assert_eq!(systems, 12);
    assert!(frame.len() <= 20, "{} lines", frame.len());
    assert!(frame.iter().all(|line| line.len() <= 110));
    assert!(example.contains("\n#![forbid(unsafe_code)]\n"));
}

/// Goal: a conflict, an unknown name, a name that two have and a node of another graph are errors with the
/// places of both. Method: one of each.
#[test]
fn what_is_wrong_with_a_graph() {
    let js = Builder::new().workers(0).build().unwrap();
    let (mut graph, w) = js.graph_of::<World>("frame");
    graph.job("move").writes(w.positions).run(|_, _| ());
    graph.job("draw").reads(w.positions).run(|_, _| ());
    let error = graph.try_build().expect_err("nothing orders them");
    let text = error.to_string();
    let file = file!();
    assert!(text.starts_with(&format!("'draw' ({file}:")), "{text}");
    assert!(text.contains(&format!("'move' ({file}:")), "{text}");
    assert!(text.contains("nothing orders the two jobs"), "{text}");

    let mut graph = js.graph("frame");
    graph.job("draw").after("move").run(|_| ());
    let error = graph.try_build().err();
    assert!(matches!(
        error,
        Some(PlanError::UnknownName { name: "move", .. })
    ));

    let mut graph = js.graph("frame");
    (0..2).for_each(|_| _ = graph.job("part").run(|_| ()));
    graph.job("draw").after("part").run(|_| ());
    let error = graph.try_build().err();
    assert!(matches!(
        error,
        Some(PlanError::AmbiguousName { name: "part", .. })
    ));

    let mut other = js.graph("other");
    let node = other.job("node").run(|_| ());
    let mut graph = js.graph("frame");
    graph.job("draw").after(node).run(|_| ());
    let error = graph.try_build().err();
    assert!(matches!(error, Some(PlanError::OtherGraph { .. })));

    let mut graph = js.graph("frame");
    graph.sync("all");
    graph.job("late").before("all").run(|_| ());
    let error = graph.try_build().err();
    assert!(matches!(error, Some(PlanError::Cycle { cycle }) if cycle.len() == 2));
}

/// Goal: a graph is listed in an order in which it can run, with what each node comes after, and drawn with
/// all nodes and edges, names escaped. Method: a graph with one of each, and its texts.
#[test]
fn a_graph_is_listed_and_drawn() {
    let js = Builder::new().workers(0).build().unwrap();
    let mut graph = js.graph("frame <1>");
    let input = graph.job("input \"x\"").run(|_| ());
    let pause = graph.condition("runs").after(input).run(|_| true);
    graph.nest("physics").only_if(pause).of(|graph| {
        graph.job("collide").run(|_| ());
        graph.sync("contacts");
        graph.job("solve").run(|_| ());
    });
    graph.job("draw").after("physics").on_main().run(|_| ());
    let mut graph = graph.build();
    let text = graph.to_string();
    let lines: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "input \"x\"",
            "runs?, after input \"x\"",
            "physics begins, only if runs?",
            "collide, only if physics begins",
            "sync contacts, only if physics begins, after collide",
            "solve, only if physics begins, after sync contacts",
            "physics ends, after solve",
            "draw, on the main thread, after physics ends",
        ]
    );
    graph.measure(true);
    graph.run(&mut ());
    let dot = graph.to_dot();
    assert!(dot.contains("label=\"input \\\"x\\\"\\n"), "{dot}");
    assert_eq!(dot.matches(" -> ").count(), 9, "{dot}");
    let svg = graph.to_svg();
    assert!(svg.contains("frame &lt;1&gt;") && svg.contains("input &quot;x&quot;"));
    assert_eq!(svg.matches("<path class").count(), 9, "{svg}");
    assert_eq!(graph.timings().len(), 5);
    assert!(graph.timings().iter().all(|timing| timing.runs == 1));
    let path = graph.critical_path();
    let names: Vec<_> = path.jobs.iter().map(|job| job.name).collect();
    assert_eq!(names, ["input \"x\"", "runs", "collide", "solve", "draw"]);
}

/// Goal: a false condition leaves out all of a nested graph, also what is nested in it, and what comes after
/// goes on. Method: a condition that is true in every second run.
#[test]
fn a_condition_is_for_all_of_a_nested_graph() {
    let js = Builder::new().workers(2).build().unwrap();
    let ran = Mutex::new(Vec::new());
    let note = |what| ran.lock().unwrap().push(what);
    let mut runs = 0;
    let mut graph = js.graph("frame");
    let second = graph.condition("second").run(|_| {
        runs += 1;
        runs % 2 == 0
    });
    graph.nest("outer").only_if(second).of(|outer| {
        outer.job("a").run(|_| note("a"));
        outer.nest("inner").after("a").of(|inner| {
            inner.job("b").run(|_| note("b"));
        });
    });
    graph.job("c").after("outer").run(|_| note("c"));
    let mut graph = graph.build();
    (0..4).for_each(|_| graph.run(&mut ()));
    drop(graph);
    let ran = ran.into_inner().unwrap();
    assert_eq!(ran, ["c", "a", "b", "c", "c", "a", "b", "c"]);
}

/// Goal: the run raises the first panic, what comes after it is not run, the rest is, and the next run is
/// whole again. Method: a job that panics in the first run.
#[test]
fn a_panic_fails_the_run_and_not_the_graph() {
    let js = Builder::new().workers(1).build().unwrap();
    let (after, beside) = (AtomicU32::new(0), AtomicU32::new(0));
    let mut graph = js.graph("frame");
    let mut is_first = true;
    let fails = graph.job("fails").run(move |_| {
        if std::mem::take(&mut is_first) {
            fail("as planned");
        }
    });
    graph
        .job("next")
        .after(fails)
        .run(|_| _ = after.fetch_add(1, Relaxed));
    graph
        .job("beside")
        .run(|_| _ = beside.fetch_add(1, Relaxed));
    let mut graph = graph.build();
    let error = graph.try_run(&mut ()).expect_err("it panicked");
    assert!(
        matches!(&error, WaitError::Panicked { label, .. } if label.name == "fails"),
        "{error}"
    );
    assert_eq!((after.load(Relaxed), beside.load(Relaxed)), (0, 1));
    graph.run(&mut ());
    assert_eq!((after.load(Relaxed), beside.load(Relaxed)), (1, 2));
    assert_eq!(js.stats().cancelled, 1);
}

/// Goal: two graphs run at the same time. Method: each has a job that waits for the other's, on two threads
/// and two workers.
#[test]
fn graphs_of_their_own_overlap() {
    watched("two graphs", || {
        let js = Builder::new().workers(2).build().unwrap();
        let meet = Arc::new(Barrier::new(2));
        std::thread::scope(|threads| {
            for name in ["left", "right"] {
                let (js, meet) = (&js, meet.clone());
                threads.spawn(move || {
                    let mut graph = js.graph(name);
                    graph.job("meet").run(move |_| _ = meet.wait());
                    graph.build().run(&mut ());
                });
            }
        });
    });
}

/// Goal: a started run owns its graph; dropping it waits; the graph outlives its job system and says so.
/// Method: each once.
#[test]
fn started_and_ended() {
    let ran = Arc::new(AtomicU32::new(0));
    let js = Builder::new().workers(1).build().unwrap();
    let graph = || {
        let ran = ran.clone();
        let mut graph = js.graph("frame");
        let first = graph.job("first").run(|_| ());
        graph
            .job("second")
            .after(first)
            .on_main()
            .run(move |_| _ = ran.fetch_add(1, Relaxed));
        graph.build()
    };
    drop(js.start(graph(), Box::new(())));
    assert_eq!(ran.load(Relaxed), 1);
    let (mut graph, _) = js.start(graph(), Box::new(())).wait();
    assert_eq!(ran.load(Relaxed), 2);
    drop(js);
    let error = graph.try_run(&mut ()).unwrap_err();
    assert!(matches!(error, WaitError::ShutDown), "{error}");
}

/// Goal: a run that is waited for, or dropped, in one of its own jobs does not hang: the wait fails with the
/// jobs' names, the drop lets go, and the job system goes on. Method: a job that is given its own run; one of
/// another graph in the middle of a wait within that job.
#[test]
fn a_run_in_its_own_jobs() {
    watched("a run that is waited for in its own job", || {
        for is_dropped in [false, true] {
            let js: &'static JobSystem =
                Box::leak(Box::new(Builder::new().workers(1).build().unwrap()));
            let (give, take) = std::sync::mpsc::channel::<StartedGraph<'static, ()>>();
            let (say, hear) = std::sync::mpsc::channel();
            let mut graph = js.graph("frame");
            graph.job("own").run(move |_| {
                let started = take.recv().unwrap();
                let say = say.clone();
                let inner = move || {
                    if is_dropped {
                        drop(started);
                        return "dropped".to_owned();
                    }
                    let wait = std::panic::AssertUnwindSafe(|| drop(started.try_wait()));
                    let payload = std::panic::catch_unwind(wait).unwrap_err();
                    payload.downcast_ref::<String>().unwrap().clone()
                };
                // A job of this job, too, is inside of the run.
                js.scope(|s| s.spawn(move |_| say.send(inner()).unwrap()));
            });
            give.send(js.start(graph.build(), Box::new(()))).unwrap();
            let said = hear.recv().unwrap();
            if is_dropped {
                assert_eq!(said, "dropped");
            } else {
                assert!(
                    said.contains("can never end") && said.contains("frame"),
                    "{said}"
                );
            }
            let after = js.job("after").run(|_| 7);
            assert_eq!(after.wait(), 7);
        }
    });
}

/// Goal: while a run goes on, the calling thread's closure runs, too; its panic comes out when all is over.
/// Method: a closure that panics beside a job.
#[test]
fn a_panic_beside_a_run() {
    let js = Builder::new().workers(1).build().unwrap();
    let ran = AtomicU32::new(0);
    let mut graph = js.graph("frame");
    graph.job("job").run(|_| _ = ran.fetch_add(1, Relaxed));
    let mut graph = graph.build();
    let beside = || graph.run_beside(&mut (), || fail("beside"));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(beside));
    assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"beside"));
    assert_eq!(ran.load(Relaxed), 1);
}

/// Goal: a run goes on to its end although the job system is dropped meanwhile, by a thread that unwinds, and
/// has no workers to run it. Method: the first of two jobs waits until the drop has begun for a while; the
/// drop waits for the run.
#[test]
fn a_run_outlasts_the_drop_of_its_job_system() {
    watched("a run while its job system is dropped", || {
        let js = Builder::new().workers(0).build().unwrap();
        let (begun, gate) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let ran = Arc::new(AtomicU32::new(0));
        let mut graph = js.graph("frame");
        let (at_begin, at_gate) = (begun.clone(), gate.clone());
        let first = graph.job("first").run(move |_| {
            at_begin.wait();
            at_gate.wait();
        });
        let noted = ran.clone();
        let second = graph.job("second").after(first);
        second.run(move |_| _ = noted.fetch_add(1, Relaxed));
        let mut graph = graph.build();
        let runner = std::thread::spawn(move || graph.try_run(&mut ()));
        begun.wait();
        let opener = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            gate.wait();
        });
        let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _js = js;
            fail("the owner unwinds");
        }));
        assert!(dropped.is_err());
        opener.join().unwrap();
        assert!(runner.join().unwrap().is_ok());
        assert_eq!(ran.load(Relaxed), 1);
    });
}

/// Goal: keys that do not fit the data are refused before a body could see the wrong type. Method: an
/// implementation by hand whose keys change from call to call, and one whose data has another order.
#[test]
fn keys_that_do_not_fit_are_refused() {
    struct Odd {
        number: u32,
        text: String,
    }
    #[derive(Clone, Copy)]
    struct OddKeys(
        Option<paceline::Res<Odd, u32>>,
        Option<paceline::Res<Odd, String>>,
    );
    static CALLS: AtomicU32 = AtomicU32::new(0);
    impl paceline::Resources for Odd {
        type Keys = OddKeys;
        fn keys(maker: &mut paceline::KeyMaker<Self>) -> OddKeys {
            if CALLS.fetch_add(1, Relaxed) == 0 {
                OddKeys(Some(maker.key("number")), None)
            } else {
                OddKeys(None, Some(maker.key("text")))
            }
        }
        fn split<'a>(&'a mut self, into: &mut paceline::Fields<'_, 'a>) {
            into.add(&mut self.number);
            into.add(&mut self.text);
        }
    }
    let js = Builder::new().workers(0).build().unwrap();
    let message = |run: &mut dyn FnMut()| {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        let payload = caught.expect_err("it is refused");
        let text = payload.downcast_ref::<&str>().map(|&text| text.to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap()
    };
    let (_, first) = js.graph_of::<Odd>("first");
    let declares = message(&mut || {
        let (mut graph, _) = js.graph_of::<Odd>("second");
        graph
            .job("reads")
            .reads(first.0.unwrap())
            .run(|_, number| _ = *number + 1);
    });
    assert!(
        declares.contains("the keys of a graph differ"),
        "{declares}"
    );
    let runs = message(&mut || {
        let (mut graph, keys) = js.graph_of::<Odd>("third");
        graph
            .job("reads")
            .reads(keys.1.unwrap())
            .run(|_, text| _ = text.len());
        let mut odd = Odd {
            number: 1,
            text: String::new(),
        };
        graph.build().run(&mut odd);
    });
    assert!(runs.contains("has other fields than its keys"), "{runs}");
}
