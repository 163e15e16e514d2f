//! The pages that `--report` writes: that they are there, hold all they show, and agree with the terminal.

mod common;

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{fine, paceline};
use flate2::read::GzDecoder;
use serde_json::Value;

const NOPI: &str = "testdata/traces/local-pathfinder-nopi.ftrace.txt.gz";

/// A page as a text: it must need nothing from anywhere, have no script and no style but its own, and every
/// link must lead somewhere in it.
fn whole(path: &str) -> String {
    let page = fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    for foreign in [
        "http:",
        "https:",
        "src=",
        "@import",
        "<link",
        " style=",
        "javascript:",
    ] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let scripts: Vec<&str> = page.split("<script").skip(1).collect();
    assert_eq!(scripts.len(), 2);
    assert!(scripts[0].starts_with(" id=\"data\" type=\"application/octet-stream\">"));
    assert!(scripts[1].starts_with(">(() => {\n\"use strict\";\n"));
    let policy = "content=\"default-src 'none'; style-src 'sha256-";
    assert!(page.contains(policy) && !page.contains("unsafe"));
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

/// The data of a page, which its script draws.
fn data(page: &str) -> Value {
    let packed = page.split("octet-stream\">").nth(1).unwrap();
    let packed = STANDARD.decode(packed.split('<').next().unwrap()).unwrap();
    serde_json::from_reader(GzDecoder::new(&packed[..])).unwrap()
}

/// Goal: the page of a trace agrees with the terminal and with `--json`, shows which thread ran where, and
/// its bytes depend on the trace alone. Method: the mutex of the Pathfinder, twice, as text and as JSON; its
/// known figures.
#[test]
fn a_trace_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [first, second] = ["first.html", "second.html"].map(path);
    let said = fine(&["diagnose", NOPI, "--report", &first]);
    assert_eq!(said, fine(&["diagnose", NOPI]));
    let page = whole(&first);
    for part in [
        "<p class=\"lead\">29 waits were found; the longest: high-bus waited 10.59 ms in `lock bus`.</p>",
        "<p class=\"lead\">What took most of that time: mid-comms ran 8.47 ms of it while low-holder",
        "lock: mid-comms ran while low-holder held what high-bus waited for: 59.53 ms in 12 waits",
        "Remedy: a lock with priority inheritance",
        "Not known: which CPUs a thread may use is inferred",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let report = fine(&["diagnose", NOPI, "--report", &second, "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["report"], second.as_str());
    assert_eq!(page, whole(&second));
    let data = data(&page);
    for list in ["waits", "inversions"] {
        assert_eq!(data[list], report[list]);
    }
    let told = data["told"][0]["sentence"].as_str().unwrap();
    assert!(told.starts_with("high-bus waited 10.59 ms in `lock bus` at 2177.558534 s: "));
    let threads = data["happened"]["threads"].to_string();
    assert!(threads.contains("low-holder") && threads.contains("mid-comms"));
    assert_eq!(data["happened"]["cpus"].as_array().unwrap().len(), 2);
    let words = data["happened"]["words"].to_string();
    assert!(words.contains("low holds bus"), "{words}");
}

/// Goal: a page stays small and whole whatever the trace is like. Method: the one with the most waits and
/// threads, one without anything to explain, and one without scheduler events.
#[test]
fn any_trace_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let path = path.to_str().unwrap();
    for (trace, part) in [
        (
            "ms-android12-emulator-a.pftrace.gz",
            "frames were late; the worst: ",
        ),
        ("catapult-chrome-flow.json.gz", "No wait was found"),
        (
            "catapult-atrace-6cpu-markers.txt.gz",
            "nothing says whether",
        ),
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
    let data = data(&page);
    let bars = data["chart"]["bars"].as_array().unwrap();
    assert_eq!(bars.len(), 12);
    let longest = bars
        .iter()
        .map(|bar| bar["duration_ns"].as_u64().unwrap())
        .max();
    assert_eq!(longest, report["frame_ns"]["max"].as_u64());
    assert_eq!(
        (&data["waits"], &data["inversions"]),
        (&report["waits"], &report["inversions"])
    );
    for bar in bars {
        let wait = bar["wait"].as_u64().unwrap() as usize;
        assert_eq!(data["waits"][wait]["name"], bar["name"]);
    }
    let checksum = report["checksum"].as_str().unwrap();
    for part in [
        checksum,
        "<p class=\"lead\">12 frames were found; the longest: frame ",
        "<p class=\"lead\">What took most of that time: ",
        "<h2>Counted</h2>",
        "steals",
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
        "<h2>What must hold</h2>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let cpus = &data(&page)["happened"]["cpus"];
    let is_off = |cpu: &Value| cpu["cpu"] == 4 && !cpu["offline"].as_array().unwrap().is_empty();
    assert!(cpus.as_array().unwrap().iter().any(is_off), "{cpus}");
    assert_eq!(page, page_of("galaxy-s22-inversion"));
    let page = page_of("job-graph");
    let words = data(&page)["happened"]["words"].to_string();
    assert!(
        page.contains("<h2>Frames</h2>") && words.contains("\"parallel "),
        "{words}"
    );
    let (code, _, err) = paceline(&["simulate", "barrier", "--report", "no/such/page.html"]);
    assert!(code == Some(2) && err.contains("make it first"), "{err}");
}
