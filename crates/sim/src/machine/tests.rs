//! Tests of the built-in machines, and of reading a file.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

/// The smallest machine file.
pub(super) const SMALL: &str = r#"
name  = "small"
about = "one CPU"

[sources]
us = "made for these tests"

[layout]
caches = [["0"], "us"]
nodes  = [["0"], "us"]

[kernel]
tick        = ["4 ms", "us"]
placement   = ["pack", "us"]
syscall     = ["1 ns", "us"]
switch      = ["2 ns", "us: a detail"]
wake        = ["3 ns", "us"]
ipi-send    = ["4 ns", "us"]
ipi-deliver = ["5 ns", "us"]
tick-cost   = ["6 ns", "us"]
migrate     = ["7 ns", "us"]
clock       = ["8 ns", "us"]
yields      = ["9 ns", "us"]
message     = ["10 ns", "assumed: it has to be something"]

[lines]
hit = ["1 ns", "us"]
rmw = ["2 ns", "assumed"]

[[cluster]]
name     = "only"
cpus     = ["0", "us"]
capacity = [1024, "us"]
points   = ["500 1000 MHz", "us"]
voltage  = ["500 1000 mV", "us"]
power-coefficient = ["1000 uW/MHz/V2", "us"]
governor = ["fixed", "us"]
fixed-at = ["1 GHz", "us"]

[[cluster.idle]]
name      = "light"
residency = ["0 ns", "us"]
exit      = ["1 us", "us"]
power     = ["1 mW", "us"]

[cluster.thermal]
ambient       = ["25 C", "us"]
resistance    = ["1.5 C/W", "us"]
time-constant = ["10 s", "us"]
limit         = ["85 C", "us"]
period        = ["100 ms", "us"]
"#;

pub(super) fn own_file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines");
    std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap()
}

/// Goal: every value is read into its field. Method: the small machine, whose values all differ, field by
/// field.
#[test]
fn values_get_where_they_belong() {
    let small = Machine::from_toml("small.toml", SMALL).unwrap();
    let kernel = KernelSpec {
        tick: Nanos::from_millis(4),
        placement: Placement::Pack,
        syscall: Nanos(1),
        switch: Nanos(2),
        wake: Nanos(3),
        ipi_send: Nanos(4),
        ipi_deliver: Nanos(5),
        tick_cost: Nanos(6),
        migrate: Nanos(7),
        clock: Nanos(8),
        yields: Nanos(9),
        message: Nanos(10),
    };
    assert_eq!(small.kernel, kernel);
    assert_eq!((small.lines.hit, small.lines.rmw), (Nanos(1), Nanos(2)));
    let point = |khz, microwatts| OperatingPoint { khz, microwatts };
    let cluster = &small.clusters[0];
    assert_eq!(
        cluster.points,
        [point(500_000, 125_000), point(1_000_000, 1_000_000)]
    );
    assert_eq!(cluster.governor, Governor::Fixed { point: 1 });
    assert_eq!(cluster.idle_states[0].exit, Nanos(1000));
    assert_eq!(cluster.idle_states[0].microwatts, 1000);
    let thermal = cluster.thermal.unwrap();
    assert_eq!(
        (thermal.ambient_millidegrees, thermal.millidegrees_per_watt),
        (25_000, 1500)
    );
    assert_eq!(
        small.assumed().collect::<Vec<_>>(),
        ["kernel.message", "lines.rmw"]
    );
    let switch = small
        .facts
        .iter()
        .find(|fact| fact.key == "kernel.switch")
        .unwrap();
    assert_eq!(switch.source.to_string(), "us: a detail");
    assert_eq!(small.facts.len(), 31);
}

/// Goal: all built-in machines can be had by name, and the library knows all files. Method: each name against
/// its file and the folder's list; names that are none.
#[test]
fn the_library_has_every_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name());
    let files = files.filter_map(|file| Some(file.to_str()?.strip_suffix(".toml")?.to_owned()));
    let names: BTreeSet<String> = Machine::library().map(String::from).collect();
    assert_eq!(names, files.collect());
    for name in Machine::library() {
        let machine = Machine::named(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine.name, name);
        assert!(machine.facts.len() > 20, "{name}");
        assert_eq!(
            Machine::from_toml(name, &own_file(name)).as_ref(),
            Ok(&machine)
        );
    }
    let error = Machine::named("pdp-11").unwrap_err().to_string();
    assert!(
        error.contains("pdp-11") && error.contains("vm-2"),
        "{error}"
    );
    let error = Machine::load(Path::new("there/is/none.toml"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("none.toml: cannot be read"), "{error}");
}

/// Goal: the machines are as their makers describe them. Method: CPUs, capacities, and which CPUs share
/// caches and cores, by hand.
#[test]
fn the_machines_are_what_they_stand_for() {
    let table: [(&str, usize, &[u32]); 9] = [
        ("apple-m1", 8, &[460, 1024]),
        ("core-i9-12900k", 24, &[1024, 590]),
        ("galaxy-s22-exynos", 8, &[355, 715, 1024]),
        ("galaxy-s22-snapdragon", 8, &[262, 806, 1024]),
        ("mcu", 1, &[1024]),
        ("ryzen-3950x", 32, &[1024]),
        ("ryzen-5800x", 16, &[1024]),
        ("thunderx2", 256, &[1024]),
        ("vm-2", 2, &[1024]),
    ];
    for (name, cpus, capacities) in table {
        let machine = Machine::named(name).unwrap();
        let found: Vec<u32> = machine
            .clusters
            .iter()
            .map(|cluster| cluster.capacity)
            .collect();
        assert_eq!(
            (machine.cpus.len(), found.as_slice()),
            (cpus, capacities),
            "{name}"
        );
    }
    let transfer = |name: &str, a: u32, b: u32| {
        let (machine, a, b) = (Machine::named(name).unwrap(), Cpu(a), Cpu(b));
        assert_eq!(machine.transfer(a, b), machine.transfer(b, a));
        machine.transfer(a, b).0
    };
    let ryzen = [(0, 1), (16, 13), (1, 30), (19, 30), (4, 96), (31, 96)];
    for (other, nanos) in ryzen {
        assert_eq!(
            transfer("ryzen-3950x", 0, other),
            nanos,
            "CPUs 0 and {other}"
        );
    }
    let hybrid = [
        ((0, 1), 4),
        ((0, 2), 35),
        ((0, 16), 39),
        ((16, 17), 50),
        ((16, 20), 44),
    ];
    for ((a, b), nanos) in hybrid {
        assert_eq!(transfer("core-i9-12900k", a, b), nanos, "CPUs {a} and {b}");
    }
    let server = [(64, 10), (192, 10), (1, 60), (223, 60), (32, 250)];
    for (other, nanos) in server {
        assert_eq!(transfer("thunderx2", 0, other), nanos, "CPUs 0 and {other}");
    }
    assert_eq!(
        [transfer("apple-m1", 0, 3), transfer("apple-m1", 0, 4)],
        [53, 145]
    );
    assert_eq!(transfer("galaxy-s22-snapdragon", 0, 1), 30);
    assert_eq!(transfer("galaxy-s22-snapdragon", 0, 7), 70);
}

/// Goal: the microcontroller's costs make source 003's cycles. Method: 9 messages and 4 or 18 switches, in
/// tics: 1034 and 1875.
#[test]
fn the_microcontroller_has_the_articles_cycles() {
    let mcu = Machine::named("mcu").unwrap();
    let message = 2 * mcu.kernel.message.0;
    assert_eq!(message, 514);
    let cycle = |switches: u64| {
        let time = Nanos(9 * message + switches * mcu.kernel.switch.0);
        mcu.tic.unwrap().thousandths(time) / 1000
    };
    assert_eq!((cycle(4), cycle(18)), (1034, 1875));
}
