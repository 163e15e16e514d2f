//! The machines that come along, and files that are broken.

use std::collections::BTreeSet;
use std::path::Path;

use event::Random;

use super::*;

/// The smallest machine file.
const SMALL: &str = r#"
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

fn small_with(from: &str, to: &str) -> Result<Machine, MachineError> {
    assert!(SMALL.contains(from), "{from:?} is not in the small machine");
    Machine::from_toml("small.toml", &SMALL.replacen(from, to, 1))
}

fn own_file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap()
}

/// Goal: every value gets where it belongs. Method: the small machine, whose values all differ, field by
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

/// Goal: what is wrong is said in one line that names file, place and remedy. Method: the small machine
/// with one mistake each, and what the message must say.
#[test]
fn each_mistake_is_named() {
    let mistakes = [
        (
            r#"["2 ns", "us: a detail"]"#,
            r#""2 ns""#,
            "small.toml:16: switch",
            r#"[value, "source"]"#,
        ),
        (
            r#"["2 ns", "us: a detail"]"#,
            r#"["2 ns"]"#,
            "small.toml:16: switch",
            r#"[value, "source"]"#,
        ),
        (
            r#"["2 ns", "us: a detail"]"#,
            r#"["2 ns", ""]"#,
            "kernel.switch",
            "[sources]",
        ),
        (
            r#""us: a detail""#,
            r#""hearsay""#,
            "kernel.switch",
            "`assumed`",
        ),
        (
            r#"["2 ns", "us: a detail"]"#,
            r#"[2, "us"]"#,
            "small.toml:16",
            "a time with its unit",
        ),
        (
            r#""2 ns", "us: a"#,
            r#""2.5 ns", "us: a"#,
            "small.toml:16",
            "round it",
        ),
        (
            "switch ",
            "swich ",
            "small.toml:16",
            "unknown field `swich`",
        ),
        (
            "switch      = [\"2 ns\", \"us: a detail\"]\n",
            "",
            "small.toml",
            "missing field `switch`",
        ),
        (
            "us = \"made for these tests\"",
            "us = \"a\"\nidle = \"b\"",
            "sources.idle",
            "leave it out",
        ),
        (
            "us = \"made for these tests\"",
            "us = \"  \"",
            "sources.us",
            "say what it is",
        ),
        ("\"small\"", "\"Small One\"", "name", "small letters"),
        (
            "[1024, \"us\"]",
            "[1023, \"us\"]",
            "cluster.*.capacity",
            "1024",
        ),
        (
            "[1024, \"us\"]",
            "[0, \"us\"]",
            "cluster.only.capacity",
            "from 1",
        ),
        (
            "\"500 1000 MHz\"",
            "\"1000 500 MHz\"",
            "cluster.only.points",
            "slow to fast",
        ),
        (
            "\"500 1000 MHz\"",
            "\"1000 MHz\"",
            "cluster.only.voltage",
            "one for each",
        ),
        (
            "\"1 GHz\"",
            "\"2 GHz\"",
            "cluster.only.fixed-at",
            "none of the points",
        ),
        (
            "\"fixed\"",
            "\"schedutil\"",
            "cluster.only.governor",
            "rate-limit and half-life",
        ),
        ("\"fixed\"", "\"ondemand\"", "small.toml", "`fixed`"),
        (
            "voltage  = [\"500 1000 mV\", \"us\"]\n",
            "",
            "cluster.only.power",
            "both",
        ),
        (
            "[\"0 ns\", \"us\"]",
            "[\"1 ns\", \"us\"]",
            "cluster.only.idle.light",
            "residency 0",
        ),
        (
            "[\"85 C\", \"us\"]",
            "[\"25 C\", \"us\"]",
            "cluster.only.thermal.limit",
            "above",
        ),
        (
            "[\"10 s\", \"us\"]",
            "[\"0 s\", \"us\"]",
            "time-constant",
            "longer",
        ),
        (
            "cpus     = [\"0\"",
            "cpus     = [\"1\"",
            "cluster.*.cpus",
            "CPU 0 is in none",
        ),
        (
            "cpus     = [\"0\"",
            "cpus     = [\"0,0\"",
            "cluster.*.cpus",
            "twice",
        ),
        (
            "cpus     = [\"0\"",
            "cpus     = [\"0-1024\"",
            "cluster.*.cpus",
            "from 0 to 1023",
        ),
        (
            "cpus     = [\"0\"",
            "cpus     = [\"0-1\"",
            "layout.caches",
            "CPU 1",
        ),
        (
            "caches = [[\"0\"]",
            "caches = [[\"0\", \"1\"]",
            "layout.caches",
            "CPU 1 is in no cluster",
        ),
        (
            "nodes  = [[\"0\"]",
            "nodes  = [[]",
            "layout.nodes",
            "CPU 0 is in none",
        ),
        (
            "[lines]",
            "[lines]\n[[lines.between]]\nclusters = [\"only\", \"x\"]\ntakes = [\"1 ns\", \"us\"]\n[lines]",
            "small.toml",
            "duplicate key",
        ),
        (
            "rmw = [\"2 ns\", \"assumed\"]",
            "rmw = [\"2 ns\", \"assumed\"]\nbetween = [{ clusters = [\"only\", \"x\"], takes = [\"1 ns\", \"us\"] }]",
            "lines.between.only.x",
            "two of the clusters: only",
        ),
        (
            "governor =",
            "threads = [2, \"us\"]\ngovernor =",
            "cluster.only.siblings",
            "adjacent",
        ),
        (
            "governor =",
            "smt-share = [\"60 %\", \"us\"]\ngovernor =",
            "cluster.only.smt-share",
            "more than one",
        ),
    ];
    for (from, to, place, remedy) in mistakes {
        let error = small_with(from, to)
            .map(|machine| machine.name)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("small.toml"), "{error}");
        assert!(
            error.contains(place) && error.contains(remedy),
            "{from} → {to}: {error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
}

/// Goal: all machines that come along can be had by name, and the library knows all files. Method: each
/// name against its file and the folder's list; names that are none.
#[test]
fn the_library_has_every_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
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

/// Goal: the machines are what their makers say. Method: CPUs, capacities, and who shares what, by hand.
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

/// Goal: no file makes the reader panic, hang, or talk in many lines. Method: from a seed, the files of the
/// library and the small one with lines, bytes and numbers cut, doubled, swapped and replaced; most must be
/// refused, some survive.
#[test]
fn mutilated_files_are_read_or_refused() {
    let mut random = Random::new(7);
    let files: Vec<String> = Machine::library()
        .map(own_file)
        .chain([SMALL.to_owned()])
        .collect();
    let (mut read, mut refused) = (0, 0);
    for round in 0..3000 {
        let mut text = files[random.below(files.len() as u64) as usize].clone();
        for _ in 0..=random.below(3) {
            text = mutilated(&text, &mut random);
        }
        match Machine::from_toml("broken.toml", &text) {
            Ok(machine) => {
                read += 1;
                let speeds = crate::speeds::Speeds::new(&machine);
                assert!(speeds.speed(Cpu(0)) > 0, "round {round}");
            }
            Err(error) => {
                refused += 1;
                let error = error.to_string();
                assert!(
                    !error.contains('\n') && error.starts_with("broken.toml"),
                    "{error}"
                );
            }
        }
    }
    assert!(
        read > 100 && refused > 1000,
        "{read} read, {refused} refused"
    );
}

/// The text with one thing broken.
fn mutilated(text: &str, random: &mut Random) -> String {
    const WORDS: &[&str] = &[
        "0",
        "-1",
        "99999999999999999999",
        "1e9",
        "\"",
        "[",
        "]",
        "=",
        "\n",
        "0-1023",
        "1024",
        "assumed",
        "0 ns",
        "4 ms",
        "%",
        "é",
        "[[cluster]]",
        "name = \"a\"",
        "nan",
        "{",
        "1979-05-27",
        "true",
        "\u{0}",
    ];
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    if lines.is_empty() {
        return text.to_owned();
    }
    let at = random.below(lines.len() as u64) as usize;
    let other = random.below(lines.len() as u64) as usize;
    let word = WORDS[random.below(WORDS.len() as u64) as usize];
    let mut chars: Vec<char> = lines[at].chars().collect();
    let place = random.below(chars.len() as u64 + 1) as usize;
    match random.below(7) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(other, lines[at].clone()),
        2 => lines.swap(at, other),
        3 => lines.truncate(at),
        4 => {
            chars.truncate(place);
            lines[at] = chars.into_iter().collect();
        }
        5 => {
            chars.splice(place..place, word.chars());
            lines[at] = chars.into_iter().collect();
        }
        _ => {
            let digit = |c: char| match c {
                '0'..='9' => char::from(b'0' + random.below(10) as u8),
                other => other,
            };
            lines[at] = chars.into_iter().map(digit).collect();
        }
    }
    lines.join("\n")
}
