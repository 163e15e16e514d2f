//! A failed simulated run as a trace that can be looked at: the events of kernel and job system, in
//! Perfetto's format, which `paceline diagnose` and ui.perfetto.dev read.

use std::fs::File;
use std::path::{Path, PathBuf};

use event::{Event, Task};
use sim::SimReport;
use trace::write::{perfetto, settle_order};
use trace::{Annotation, Clock, Origin, Process, Recording, Thread, Wakers};

/// Writes it into the folder. The run must have kept its events. The error stands at its end.
pub(crate) fn keep(
    folder: &Path,
    test: &str,
    report: &SimReport,
    events: &[Event],
    faults: &[String],
) -> PathBuf {
    let threads = report
        .threads
        .iter()
        .zip(0..)
        .map(|(thread, number)| Thread {
            tid: Some(number + 1),
            ..Thread::new(Task(number), thread.name.clone(), Some(0))
        });
    let fault = |what: &String| Annotation {
        on: None,
        track: "faults".into(),
        name: what.clone(),
        begin: report.now,
        end: report.now,
    };
    let mut recording = Recording {
        origin: Origin {
            clock: Clock::Virtual,
            wakers: Wakers::Decided,
            ..Origin::default()
        },
        processes: vec![Process::new(test)],
        threads: threads.collect(),
        kernel: report.trace.clone(),
        jobs: events.to_vec(),
        annotations: faults.iter().map(fault).collect(),
        ..Recording::default()
    };
    settle_order(&mut recording);
    let (seed, process) = (report.config.seed, std::process::id());
    let test = test.replace("::", "-");
    let path = folder.join(format!("paceline-{test}-seed-{seed}-{process}.pftrace"));
    let file = File::create(&path).expect("a file can be made there");
    perfetto(&recording, file).expect("it can be written");
    path
}
