//! `--what-if` and `--program`: a recording run again.

use serde_json::Value;

use super::common::{fine, paceline};
use super::{json, list, ns};

const PATHFINDER: &str = "local-pathfinder-nopi.ftrace.txt.gz";

/// Goal: the replay of a real trace is near it, and says what a change is worth and what it costs. Method:
/// three threads that a lock ties together on one CPU; without the one in the middle, the long waits for the
/// lock are shorter.
#[test]
fn a_change_has_its_price_and_its_gain() {
    let report = json(
        PATHFINDER,
        &[
            "--what-if",
            "without:mid-comms",
            "--what-if",
            "nice:low-holder=19",
        ],
    );
    let replay = &report["replay"];
    let (long, good) = (
        replay["long_waits"].as_u64(),
        replay["within_10_percent"].as_u64(),
    );
    assert_eq!(long, Some(13));
    assert!(good >= Some(11), "{replay}");
    assert!(replay["share_error"].as_f64().unwrap() < 0.02, "{replay}");
    let waits = list(&report, "waits");
    for wait in waits {
        let error = wait["error"].as_f64().unwrap();
        assert_eq!(wait["refused"].is_null(), error <= 0.10, "{wait}");
        assert_eq!(
            wait["difference"].is_null(),
            wait["refused"].is_null(),
            "{wait}"
        );
    }
    let without = &list(&report, "what_if")[0];
    assert_eq!(without["text"], "without:mid-comms");
    for predicted in list(without, "waits") {
        let wait = &waits[predicted["wait"].as_u64().unwrap() as usize];
        let [recorded, with] = [&wait["recorded_ns"], &predicted["predicted_ns"]["median"]];
        assert!(with.as_u64() < recorded.as_u64(), "{wait}: {predicted}");
    }
    let losers = list(without, "less_cpu_time");
    assert_eq!(losers[0]["thread"], "mid-comms");
}

/// Goal: what cannot be is said in one line with exit code 2. Method: one mistake of each kind.
#[test]
fn what_cannot_be_is_said_in_a_line() {
    let trace = format!("testdata/traces/{PATHFINDER}");
    for (change, part) in [
        (
            "nic:high-bus=5",
            "`nic:high-bus=5` is no change; give one of: inherit",
        ),
        ("nice:high-bus=50", "give a number from -20 to 19"),
        ("nice:nobody=5", "no thread that ran is called \"nobody\""),
        ("mask:high-bus=7", "there is no CPU 7; there are 0 to 1"),
        (
            "park:high-bus",
            "the recording tells of no busy wait of high-bus",
        ),
        ("policy=random", "policy random looks for errors"),
        ("policy=cfs", "no policy is called \"cfs\""),
        (
            "inherit:nothing",
            "in no slice with \"nothing\" in its name",
        ),
    ] {
        let (code, _, error) = paceline(&["diagnose", &trace, "--what-if", change]);
        assert_eq!(code, Some(2), "{change}: {error}");
        assert!(
            error.contains(part) && error.trim_end().lines().count() == 1,
            "{change}: {error}"
        );
    }
    let markers = "testdata/traces/catapult-atrace-6cpu-markers.txt.gz";
    let (code, _, error) = paceline(&["diagnose", markers, "--what-if", "cpus=2"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("no scheduler events"), "{error}");
}

/// Goal: the program that is written is one that `simulate` runs, with the CPU time of the recording. Method:
/// write it, run it, and compare the time of each of the three threads.
#[test]
fn the_program_is_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pf.toml");
    let path = path.to_str().unwrap();
    let trace = format!("testdata/traces/{PATHFINDER}");
    let told = fine(&["diagnose", &trace, "--program", path]);
    assert!(told.contains("paceline simulate"), "{told}");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(
        text.contains("lock low-holder  # cycle 1 > lock bus"),
        "{text}"
    );
    let recorded = json(PATHFINDER, &[]);
    let ran: Value = serde_json::from_str(&fine(&["simulate", path, "--json"])).unwrap();
    for name in ["high-bus", "low-holder", "mid-comms"] {
        let time = |of: &Value, key: &str| {
            let threads = list(of, "threads").iter();
            let mut of_name = threads.filter(|thread| thread["name"] == name);
            of_name.next().unwrap()[key].as_f64().unwrap()
        };
        let [was, is] = [time(&recorded, "running_ns"), time(&ran, "run_ns")];
        assert!((was - is).abs() < was / 25.0, "{name}: {was} and {is}");
    }
}

/// Goal: the help has every kind of change. Method: each of those that are read.
#[test]
fn the_help_has_every_change() {
    let help = fine(&["diagnose", "--help"]);
    for (kind, about) in replay::Change::PARTS {
        let line = help
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{kind} ")));
        assert!(line.is_some_and(|line| line.ends_with(about)), "{kind}");
    }
}

/// Goal: the guide shows what the program prints. Method: as for `docs/diagnose.md`.
#[test]
fn the_guide_of_what_if_shows_what_is_printed() {
    super::guide::shows_what_is_printed("docs/what-if.md", 2);
}

/// Goal: each remedy that `diagnose` names, and a replay can play, has its gain beside it: in the text, in
/// JSON, and on the page; the one with the most gain comes first. Method: a lock's inversion, whose remedy
/// that is played comes before the one that is not; the sums are those of `--try-remedies`.
#[test]
fn remedies_have_their_gains() {
    let trace = format!("testdata/traces/{PATHFINDER}");
    let text = fine(&["diagnose", &trace]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(
            "remedy: a lock with priority inheritance (by a replay 4.30 ms (4.23 ms to 4.30 ms) instead of \
             57.88 ms in"
        ),
        "{text}"
    );
    let report = json(PATHFINDER, &[]);
    let change = &list(&report, "changes")[0];
    assert_eq!(change["text"], "inherit");
    let tried = json(PATHFINDER, &["--try-remedies", "--seeds", "3"]);
    let waits = list(&list(&tried, "what_if")[0], "waits");
    let predicted = waits.iter().map(|wait| ns(&wait["predicted_ns"], "median"));
    assert_eq!(change["predicted_ns"], predicted.sum::<u64>());
    assert_eq!(change["waits"], waits.len());
    for inversion in list(&report, "inversions") {
        let gain = &list(inversion, "gains")[0];
        assert_eq!(gain["remedy"], "priority_inheritance");
        let wait = waits.iter().find(|wait| {
            list(&tried, "waits")[wait["wait"].as_u64().unwrap() as usize]["start_ns"]
                == list(&report, "waits")[inversion["wait"].as_u64().unwrap() as usize]["start_ns"]
        });
        let predicted = wait.map_or(&Value::Null, |wait| &wait["predicted_ns"]["median"]);
        assert_eq!(&gain["predicted_ns"], predicted, "{inversion}");
    }
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    fine(&["diagnose", &trace, "--report", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("by a replay 4.30 ms (4.23 ms to 4.30 ms) instead of 57.88 ms"));
}

/// Goal: remedies that are named are tried, and the one with the most gain comes first. Method: a trace with
/// a lock's inversion; the gain of each remedy is the sum of those of its waits.
#[test]
fn remedies_are_in_the_order_of_their_gain() {
    let report = json(PATHFINDER, &["--try-remedies", "--seeds", "1"]);
    let tried = list(&report, "what_if");
    assert!(
        tried.iter().any(|tried| tried["text"] == "inherit"),
        "{report}"
    );
    let gain = |tried: &Value| -> i64 {
        let waits = list(tried, "waits").iter();
        waits.filter_map(|wait| wait["gain_ns"].as_i64()).sum()
    };
    let gains: Vec<i64> = tried.iter().map(gain).collect();
    assert!(
        gains.is_sorted_by(|one, next| one >= next) && gains[0] > 40_000_000,
        "{gains:?}"
    );
}
