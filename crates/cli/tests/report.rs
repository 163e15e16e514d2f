//! The pages that `--report` writes: that they are there, hold all they show, and agree with the terminal.

mod common;

use std::fs;

use common::{fine, paceline};
use serde_json::Value;

const NOPI: &str = "testdata/traces/local-pathfinder-nopi.ftrace.txt.gz";

/// A page as a text: it must need nothing from anywhere, have no script, and every link must lead somewhere
/// in it.
fn whole(path: &str) -> String {
    let page = fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    for foreign in ["http:", "https:", "src=", "@import", "<script", "<link"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let after = |start: &'static str| {
        let parts = page.split(start).skip(1);
        parts.filter_map(|rest| rest.split('"').next())
    };
    let ids: Vec<&str> = after(" id=\"").collect();
    for link in after("href=\"#") {
        assert!(ids.contains(&link), "{link}");
    }
    page
}

/// Goal: the page of a trace agrees with the terminal, shows which thread ran where, and its bytes depend on
/// the trace alone. Method: the mutex of the Pathfinder, twice, as text and as JSON; its known figures.
#[test]
fn a_trace_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [first, second] = ["first.html", "second.html"].map(path);
    let said = fine(&["diagnose", NOPI, "--report", &first]);
    assert_eq!(said, fine(&["diagnose", NOPI]));
    let page = whole(&first);
    for part in [
        "high-bus waited 10.59 ms in `lock bus` at 2177.558534 s: mid-comms ran 8.47 ms of it while low",
        "lock: mid-comms ran while low-holder held what high-bus waited for: 59.53 ms in 12 waits",
        "Remedy: a lock with priority inheritance",
        "low-holder preempted: ",
        "CPU 0: mid-comms, ",
        "low holds bus",
        "Not known: which CPUs a thread may use is inferred",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<svg class=\"lanes\"").count(), 10);
    let report = fine(&["diagnose", NOPI, "--report", &second, "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["report"], second.as_str());
    assert_eq!(page, whole(&second));
}

/// Goal: a page stays small and whole whatever the trace is like. Method: the one with the most waits and
/// threads, one without anything to explain, and one without scheduler events.
#[test]
fn any_trace_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let path = path.to_str().unwrap();
    for (trace, part) in [
        ("ms-android12-emulator-a.pftrace.gz", "The next longest"),
        ("catapult-chrome-flow.json.gz", "No wait was found"),
        ("catapult-atrace-6cpu-markers.txt.gz", "nothing says where"),
    ] {
        let trace = format!("testdata/traces/{trace}");
        let (code, _, err) = paceline(&["diagnose", &trace, "--report", path]);
        assert_eq!(code, Some(0), "{trace}: {err}");
        let page = whole(path);
        assert!(page.contains(part), "{trace}");
        assert!(page.len() < 10_000_000, "{trace}: {}", page.len());
    }
}

/// Goal: a page takes no other file's place, and a page that cannot be made is refused before anything is
/// read. Method: the trace itself, by another name of it, the file of --annotate, a folder, a folder that is
/// not there.
#[test]
fn pages_take_no_others_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let trace = path("trace.txt.gz");
    fs::copy(common::root().join(NOPI), &trace).unwrap();
    let before = fs::read(&trace).unwrap();
    let (other_name, new) = (path("./trace.txt.gz"), path("new"));
    for (arguments, part) in [
        (&["--report", &trace][..], "--report"),
        (&["--report", &other_name], "the trace itself"),
        (&["--annotate", &other_name], "the trace itself"),
        (
            &["--annotate", &new, "--report", &new],
            "the file of --annotate",
        ),
        (&["--report", folder.path().to_str().unwrap()], "folder"),
        (&["--report", &path("no/page.html")], "make it first"),
    ] {
        let (code, out, err) = paceline(&[&["diagnose", &trace], arguments].concat());
        assert_eq!(
            (code, out.as_str(), err.lines().count()),
            (Some(2), "", 1),
            "{err}"
        );
        assert!(err.contains(part), "{arguments:?}: {err}");
    }
    let both = ["--report", &new, "--trace", &new];
    for arguments in [
        &["convert", &trace, &other_name][..],
        &[&["frames"], &both[..]].concat(),
        &[&["simulate", "barrier"], &both[..]].concat(),
    ] {
        let (code, out, err) = paceline(arguments);
        assert_eq!(
            (code, out.as_str(), err.lines().count()),
            (Some(2), "", 1),
            "{err}"
        );
        assert!(err.contains("give another file"), "{arguments:?}: {err}");
    }
    // A device that keeps nothing may be given as often as one likes.
    if cfg!(unix) {
        fine(&[
            "simulate",
            "barrier",
            "--trace",
            "/dev/null",
            "--report",
            "/dev/null",
        ]);
    }
    assert_eq!(fs::read(&trace).unwrap(), before);
    assert!(!folder.path().join("new").exists());
}

/// Goal: a run of frames has a page with all frames, and it is explained without --trace as well. Method:
/// twelve frames; the numbers of the page are those of the JSON.
#[test]
fn frames_have_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let path = path.to_str().unwrap();
    let line = [
        "frames", "--frames", "12", "--fps", "0", "--json", "--report", path,
    ];
    let (code, out, err) = paceline(&line);
    assert_eq!(code, Some(0), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert!(report["trace"].is_null() && !report["inversions"].is_null());
    let page = whole(path);
    let dots = page.split("<svg class=\"dots\"").nth(1).unwrap();
    let dots = dots.split("</svg>").next().unwrap();
    assert_eq!(dots.matches("<circle").count(), 12);
    let checksum = report["checksum"].as_str().unwrap();
    for part in [
        checksum,
        "The longest wait",
        "<h2>Counted</h2>",
        "steals",
        "frame 11: ",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let worst = &report["waits"][0];
    let cause = worst["causes"][0]["kind"].as_str().unwrap();
    assert!(page.contains(cause), "{worst}");
    let (code, _, err) = paceline(&["frames", "--report", "no/such/folder/page.html"]);
    assert!(code == Some(2) && err.contains("make it first"), "{err}");
}

/// Goal: a simulated run has a page, whose bytes follow from the seed. Method: the inversion of source 000,
/// twice; a frame of the job system, with the names of its jobs; a file that cannot be made.
#[test]
fn simulated_runs_have_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let path = path.to_str().unwrap();
    let page_of = |scenario: &str| {
        fine(&["simulate", scenario, "--report", path]);
        whole(path)
    };
    let page = page_of("galaxy-s22-inversion");
    for part in [
        "busy_wait: UnityMain burnt the CPU that Job worker 3 needed",
        "modelled, not measured",
        "RasterizeJob",
        "CPU 4: offline",
        "<h2>What must hold</h2>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page, page_of("galaxy-s22-inversion"));
    let page = page_of("job-graph");
    assert!(
        page.contains("<h2>Frames</h2>") && page.contains("<title>parallel "),
        "{}",
        page.len()
    );
    let (code, _, err) = paceline(&["simulate", "barrier", "--report", "no/such/page.html"]);
    assert!(code == Some(2) && err.contains("make it first"), "{err}");
}
