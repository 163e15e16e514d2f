//! A trace that a program made of its own, without the kernel.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::fine;
use crate::{by, list, ns, who};

/// How long a job of a program's own takes here.
const TAKES: Duration = Duration::from_millis(2);

/// Goal: of a trace that a program made of its own, each frame and the waits in it are told by name, and
/// nothing is claimed about CPUs, of which only the kernel knows. Method: what the job system's example
/// `trace` does, with jobs that take a while; the text and the JSON.
#[test]
fn a_programs_own_trace_says_what_is_not_known() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("own.pftrace");
    // Without workers the main thread runs it all, whatever else the machine does.
    let js = paceline::Builder::new().workers(0).build().unwrap();
    let trace = js.start_trace(&path).unwrap();
    for _ in 0..3 {
        let frame = js.frame("update", Duration::from_millis(16));
        let physics = frame.job("physics").schedule(|_| sleep(TAKES));
        js.wait(frame.job("draw").after(physics).schedule(|_| sleep(TAKES)));
    }
    assert_eq!(trace.finish().unwrap().lost, 0);

    let path = path.to_str().unwrap();
    let text = fine(&["diagnose", path]);
    for said in [
        "it is not known whether main itself",
        "main itself: not known",
        "0 scheduler events",
        "no scheduler events: it is not known which threads ran",
    ] {
        assert!(text.contains(said), "{said}:\n{text}");
    }
    let report: Value = serde_json::from_str(&fine(&["diagnose", path, "--json"])).unwrap();
    let waits = list(&report, "waits");
    for number in 0..3 {
        let name = format!("update {number}");
        let is_frame = |wait: &&Value| wait["name"] == name.as_str();
        let frame = waits.iter().find(is_frame).unwrap();
        assert!(
            ns(frame, "duration_ns") >= 2 * TAKES.as_nanos() as u64,
            "{frame}"
        );
        let causes = list(frame, "causes");
        let all: u64 = causes.iter().map(|cause| ns(cause, "ns")).sum();
        assert_eq!(all, ns(frame, "duration_ns"), "{frame}");
        for cause in causes {
            let is_of_cpus = ["ran", "preempted", "busy_wait_stolen", "no_core"];
            let kind = cause["kind"].as_str().unwrap();
            assert!(
                !is_of_cpus.contains(&kind),
                "{kind} is not recorded: {frame}"
            );
            let is_unknown = |share: &Value| who(&report, &share["who"])["who"] == "unknown";
            assert!(by(cause).iter().all(is_unknown), "{frame}");
        }
        assert!(
            causes.iter().any(|cause| cause["kind"] == "awake"),
            "{frame}"
        );
    }
}
