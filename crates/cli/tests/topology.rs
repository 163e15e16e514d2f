//! `paceline topology` as its users meet it, on machines with known facts.

mod common;
#[path = "common/guide.rs"]
mod guide;

use common::{fine, paceline};
use serde_json::{Value, json};

fn topology(arguments: &[&str]) -> (Option<i32>, String, String) {
    paceline(&[&["topology"], arguments].concat())
}

fn shown(arguments: &[&str]) -> String {
    fine(&[&["topology"], arguments].concat())
}

fn json_of(machine: &str) -> Value {
    let archive = format!("testdata/topology/{machine}/fs.tar.gz");
    serde_json::from_str(&shown(&["--sysroot", &archive, "--json"])).unwrap()
}

/// Goal: the JSON has the keys of the contract and describes the phone. Method: a Galaxy S22.
#[test]
fn json_says_what_a_phone_is() {
    let phone = json_of("asm-galaxy-s22-sm8450");
    assert_eq!(phone["cpus"], 8);
    assert_eq!(phone["online"], json!([0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(phone["allowed"], phone["online"]);
    assert_eq!(phone["isolated"], json!([]));
    let classes = phone["classes"].as_array().unwrap();
    let names: Vec<&Value> = classes.iter().map(|class| &class["name"]).collect();
    assert_eq!(names, ["little", "mid", "big"]);
    assert_eq!(classes[2]["cpus"], json!([7]));
    assert_eq!(classes[2]["capacity"], 1024);
    assert_eq!(phone["smt"].as_array().map(Vec::len), Some(8));
    assert!(phone["llc"].is_array() && phone["numa"].is_array() && phone["notes"].is_array());
    assert_eq!(phone["quota_cpus"], Value::Null);
    assert_eq!(phone["effective_parallelism"], 8);
    assert_eq!(phone["fast"], json!([4, 5, 6, 7]));
    let workers = phone["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 7);
    let first = json!({"cpus": [4, 5, 6, 7], "class": "mid+big", "lanes": ["frame", "normal", "background"]});
    assert_eq!(workers[0], first);
    assert_eq!(workers[6]["lanes"], json!(["background"]));
    assert_eq!(phone["os_help"], json!([]), "its kernel cannot be asked");
}

/// Goal: the help that the kernel would give this process is shown, each with a reason if it is refused, and
/// is not taken. Method: the machine at hand, as JSON and as text, asked twice.
#[test]
fn help_of_the_kernel_is_tried() {
    let help = || serde_json::from_str::<Value>(&shown(&["--json"])).unwrap()["os_help"].clone();
    let told = help();
    assert_eq!(told, help());
    let told = told.as_array().unwrap();
    let asked: Vec<&str> = told
        .iter()
        .filter_map(|one| one["asked"].as_str())
        .collect();
    assert_eq!(asked[..2], ["nice -10", "SCHED_RR 1"]);
    let text = shown(&[]);
    for one in told {
        let (granted, why) = (&one["granted"], one["why"].as_str().unwrap());
        assert_eq!(*granted, why.is_empty(), "{one}");
        assert!(
            text.contains(one["asked"].as_str().unwrap()) && text.contains(why),
            "{text}"
        );
    }
}

/// Goal: quotas are exact, and fractions round up. Method: a child group of four CPUs below one of 1.5.
#[test]
fn quotas_of_ancestors_count() {
    let machine = json_of("limit-v2-parent-lower");
    assert_eq!(machine["quota_cpus"], 1.5);
    assert_eq!(machine["effective_parallelism"], 2);
}

/// Goal: the machine at hand is shown, and its archive is the same machine. Method: written, read again.
#[test]
fn this_machine_can_be_dumped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("machine.tar.gz");
    let path = file.to_str().unwrap();
    let (code, out, err) = topology(&["--dump", path]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    let here: Value = serde_json::from_str(&shown(&["--json"])).unwrap();
    let there: Value = serde_json::from_str(&shown(&["--json", "--sysroot", path])).unwrap();
    // The mask is that of the process which wrote it: a child of the same parent.
    for key in ["online", "classes", "smt", "llc", "numa", "quota_cpus"] {
        assert_eq!(here[key], there[key], "{key}");
    }
}

/// Goal: an input that is no machine is refused with one line and exit code 2. Method: nothing, a folder and
/// a file of something else, two options that exclude each other.
#[test]
fn bad_machines_are_one_line() {
    for (arguments, parts) in [
        (&["--sysroot", "nowhere"][..], ["nowhere", "sys and proc"]),
        (
            &["--sysroot", "testdata/graphs"],
            ["testdata/graphs", "neither sys nor proc"],
        ),
        (&["--sysroot", "README.md"], ["README.md", "sys and proc"]),
        (&["--json", "--dump", "x"], ["--json", "--help"]),
    ] {
        let (code, out, err) = topology(arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        for part in parts {
            assert!(err.contains(part), "{arguments:?}: {part}: {err}");
        }
    }
}

/// Goal: the guide shows what the program prints. Method: each command of `docs/topology.md` that begins with
/// `$ paceline` is run and compared with the text below it.
#[test]
fn the_guide_shows_what_is_printed() {
    guide::shows_what_is_printed("docs/topology.md", 3);
}
