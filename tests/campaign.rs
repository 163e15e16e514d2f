//! Goal: the program behind `cargo xtask hostile` finds nothing wrong with the job system, and finds planted
//! defects.
//!
//! Method: the program itself, as a process, with a fixed number of programs for each combination. Nothing
//! is timed; a hang is ended by the program's own watchdog. Each defect that is planted must be named in
//! one line, with a command that repeats it.

use std::process::{Command, Output};

/// Runs it; its exit code, standard output and standard error.
fn hostile(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hostile"));
    // The suite's other tests have the CPUs, too.
    command.args(["--patience", "120", "--seed", "1"]);
    let output = command.args(arguments).output();
    let Output {
        status,
        stdout,
        stderr,
    } = output.expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}

#[track_caller]
fn finds_nothing(arguments: &[&str]) {
    let (code, table, faults) = hostile(arguments);
    assert_eq!(code, Some(0), "{faults}\n{table}");
    println!("{table}");
}

/// The line of a planted defect begins with this word.
#[track_caller]
fn finds(plant: &str, arguments: &[&str], word: &str) {
    let (code, table, faults) = hostile(&[&["--plant", plant], arguments].concat());
    assert_eq!(code, Some(1), "{faults}\n{table}");
    let line = faults.lines().find(|line| line.starts_with(word));
    let line = line.unwrap_or_else(|| panic!("no {word}: {faults}"));
    assert!(line.contains("; again: cargo xtask hostile"), "{line}");
}

#[test]
fn random_programs_give_what_a_serial_evaluation_gives() {
    finds_nothing(&["--only", "programs", "--programs", "20"]);
}

#[test]
fn no_job_of_a_random_graph_is_forgotten() {
    finds_nothing(&["--only", "liveness", "--programs", "100"]);
}

#[test]
fn mistakes_get_their_errors() {
    finds_nothing(&[
        "--only",
        "misuse",
        "--programs",
        "1",
        "--workers",
        "0,2",
        "--policy",
        "adaptive",
    ]);
}

/// One combination on which nothing but the planted defect happens.
const ONE: [&str; 4] = ["--workers", "2", "--policy", "passive"];

/// Parts that may fail for other reasons are left out: these tests are about the campaign.
const PLAIN: [&str; 2] = [
    "--without",
    "sink,hooks,owner,capture-bomb,result-bomb,range-bomb,payload-bomb,waker-bomb",
];

#[test]
fn a_planted_wrong_result_is_named() {
    let programs = ["--only", "programs", "--programs", "50"];
    finds(
        "wrong",
        &[&programs[..], &ONE, &PLAIN].concat(),
        "WRONG: programs, workers 2, passive, seed 1: program ",
    );
}

#[test]
fn a_planted_lost_job_is_named() {
    let graphs = ["--only", "liveness", "--programs", "10"];
    finds(
        "lost",
        &[&graphs[..], &ONE].concat(),
        "LOST: liveness, workers 2, passive, seed 1: graph 3 (",
    );
}

#[test]
fn a_planted_hang_is_ended() {
    let programs = ["--only", "programs", "--programs", "1"];
    finds(
        "stuck",
        &[&programs[..], &ONE].concat(),
        "STUCK: programs, workers 2, passive, seed 1: no progress for ",
    );
}

#[test]
fn a_planted_crash_is_named() {
    let programs = ["--only", "programs", "--programs", "1"];
    finds(
        "crash",
        &[&programs[..], &ONE].concat(),
        "CRASHED: programs, workers 2, passive, seed 1: the process ended",
    );
}

/// Two combinations, so that one of them is after the first tenth.
#[cfg(target_os = "linux")]
#[test]
fn planted_growth_is_named() {
    let programs = [
        "--only",
        "programs",
        "--jobs",
        "50000",
        "--workers",
        "1,2",
        "--policy",
        "passive",
    ];
    finds(
        "growth",
        &[&programs[..], &PLAIN].concat(),
        "GROWTH: programs, workers 1, passive, seed 1: the resident set grows",
    );
}
