//! Files with mistakes: each is named, and none makes the reader panic.

use event::{Cpu, Random};

use super::tests::{SMALL, own_file};
use super::{Machine, MachineError};

/// Mistakes in the small machine: the replaced text, its replacement, the place that the message must name,
/// and other words that the message must have.
const MISTAKES: &[(&str, &str, &str, &str)] = &[
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
        "rmw = [\"2 ns\", \"assumed\"]\n\
             between = [{ clusters = [\"only\", \"x\"], takes = [\"1 ns\", \"us\"] }]",
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

fn small_with(from: &str, to: &str) -> Result<Machine, MachineError> {
    assert!(SMALL.contains(from), "{from:?} is not in the small machine");
    Machine::from_toml("small.toml", &SMALL.replacen(from, to, 1))
}

/// Goal: each mistake is reported in one line that names file, place and remedy. Method: the small machine
/// with one mistake each, and the words that the message must have.
#[test]
fn each_mistake_is_named() {
    for (from, to, place, remedy) in MISTAKES {
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

/// Goal: no file makes the reader panic, hang, or talk in many lines. Method: from a seed, the built-in files
/// and the small one with lines, bytes and numbers cut, doubled, swapped and replaced; most must be refused,
/// some survive.
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
