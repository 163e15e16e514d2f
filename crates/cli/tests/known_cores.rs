//! The list of machines of `experiment priority-inversion` against the test data that it is made from.

use std::path::Path;

use measure::dump;
use platform::CpuSet;
use platform::topology::detect::{Source as _, Tree, detect};
use serde_json::Value;

/// The list: name, classes, clocks, capacities, what detection takes for fast.
const LIST: &str = include_str!("../src/commands/experiment/priority_inversion/machines.txt");

fn folder(id: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/topology")
        .join(id)
}

fn truth(id: &str) -> Value {
    let text = std::fs::read_to_string(folder(id).join("truth.json")).expect("it can be read");
    serde_json::from_str(&text).expect("it is JSON")
}

/// A number in a file of a CPU.
fn number(tree: &Tree, cpu: u32, file: &str) -> Option<u64> {
    let path = format!("sys/devices/system/cpu/cpu{cpu}/{file}");
    let bytes = tree.read(&path)?;
    let text = std::str::from_utf8(&bytes).ok()?;
    text.trim().parse().ok().filter(|number| *number > 0)
}

/// Numbers of a list by CPU: `0-3=1800000 4=2400000`.
fn listed(text: &str, cpu: u32) -> Option<u64> {
    let parts = text
        .split_whitespace()
        .filter_map(|part| part.split_once('='));
    let mut of = parts.filter(|(cpus, _)| CpuSet::parse(cpus).contains(cpu));
    of.next().and_then(|(_, number)| number.parse().ok())
}

/// Goal: the list is what the test data says and what detection finds, so that neither can change unnoticed.
/// Method: each line against its tree and its truth; every machine whose truth is certain has a line.
#[test]
fn the_list_is_what_the_machines_say() {
    for line in LIST.lines() {
        let parts: Vec<&str> = line.split('|').collect();
        let [id, classes, khz, capacity, fast] = parts[..] else {
            panic!("{line}");
        };
        let truth = truth(id);
        assert_eq!(truth["certain"], true, "{id}");
        let tree = dump::read(&folder(id).join("fs.tar.gz")).expect("it is an archive");
        let classes: Vec<CpuSet> = classes.split_whitespace().map(CpuSet::parse).collect();
        let all = classes
            .iter()
            .fold(CpuSet::new(), |all, class| all.union(class));
        let of_truth = truth["classes"].as_array().expect("it has classes");
        let of_truth = of_truth.iter().map(|class| {
            CpuSet::parse(class["cpus"].as_str().unwrap_or_default()).intersection(&all)
        });
        let of_truth: Vec<CpuSet> = of_truth.filter(|class| !class.is_empty()).collect();
        assert_eq!(classes, of_truth, "{id}");
        for cpu in all.iter() {
            let clock = number(&tree, cpu, "cpufreq/cpuinfo_max_freq");
            assert_eq!(listed(khz, cpu), clock, "{id}: clock of {cpu}");
            let its = number(&tree, cpu, "cpu_capacity");
            assert_eq!(listed(capacity, cpu), its, "{id}: capacity of {cpu}");
        }
        let found = detect(&tree);
        let found = found.fast(&found.limits().usable()).intersection(&all);
        assert_eq!(CpuSet::parse(fast), found, "{id}");
    }
    let folders = std::fs::read_dir(folder("")).expect("the test data is there");
    let ids = folders.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_certain = |id: &String| {
        folder(id).join("truth.json").is_file() && truth(id)["certain"] == Value::Bool(true)
    };
    assert_eq!(LIST.lines().count(), ids.filter(is_certain).count());
}
