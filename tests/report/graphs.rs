//! Runs of graphs that are built once.

use paceline::{Builder, JobKind, Report};
use platform::Thread;

use super::{Site, plain};

/// How many nodes of the only run are left.
fn nodes_left(report: &Report) -> usize {
    let mut runs = report.jobs.iter().filter_map(|job| match job.kind {
        JobKind::Graph { nodes_left } => Some(nodes_left),
        _ => None,
    });
    runs.next().expect("there is a run")
}

/// Goal: a report counts the nodes of a run that are not over, though those that something holds back are no
/// jobs yet; it says what the run waits for, and when the rest is for the thread that waits for the run.
/// Method: a chain of three nodes, of which the first waits for an event and the last is for the main thread;
/// a report while the first waits, and one when the last is left.
#[test]
fn a_graph_whose_nodes_are_held_back() {
    Site::run(
        |builder: Builder<_>| builder.workers(1),
        |site| {
            let (gate, go) = (site.js.event("gate"), site.js.event("go"));
            let (gate_id, go_id) = (gate.id(), go.id());
            let game = site.thread("game", move |js| {
                let mut graph = js.graph("frame");
                let load = graph.job("load").run(move |cx| cx.wait(gate_id));
                let cull = graph.job("cull").after(load).run(|_| ());
                graph.job("draw").after(cull).on_main().run(|_| ());
                let started = js.start(graph.build(), Box::new(()));
                js.wait(go_id);
                started.wait();
            });
            site.sleep(1_000);
            let report = site.js.report();
            assert_eq!(nodes_left(&report), 3);
            let text = plain(&report);
            assert!(
                text.contains("'frame': graph, 3 nodes left, waits for 'load'"),
                "{text}"
            );
            gate.complete();
            site.sleep(1_000);
            let report = site.js.report();
            assert_eq!(nodes_left(&report), 1);
            let text = plain(&report);
            let says = "'frame': graph, 1 node left, goes on in the thread that waits for the run";
            assert!(text.contains(says), "{text}");
            go.complete();
            game.join().unwrap();
        },
    );
}
