//! Processes that are asked from outside what they do: by a variable of the environment, and by a signal.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::process::{child, is_child};

/// A process that runs one ignored test of this binary, which hangs. It is ended when this is dropped.
struct Hanging {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
}

impl Hanging {
    fn new(test: &str, stuck: &str) -> Hanging {
        let this = std::env::current_exe().expect("this binary has a path");
        let mut command = Command::new(this);
        command
            .args([
                "--exact",
                test,
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env_remove("PACELINE_WAIT")
            .env("PACELINE_WORKERS", "1")
            .env("PACELINE_TEST_CHILD", "1")
            .env("PACELINE_STUCK", stuck)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("this binary can be started");
        let errors = child.stderr.take().expect("it is piped");
        Hanging {
            child,
            errors: BufReader::new(errors),
        }
    }

    /// The next report: from a line that begins with the name of the crate to the line about queues.
    fn report(&mut self) -> String {
        let mut report = String::new();
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.errors.read_line(&mut line).expect("it is text");
            assert!(read > 0, "the process has ended; it said: {report}");
            if line.starts_with("paceline: ") || !report.is_empty() {
                report += &line;
            }
            if line.starts_with("queues: ") {
                return report;
            }
        }
    }

    /// Waits until it says this on its standard output.
    fn until_it_says(&mut self, what: &str) {
        let mut output = self.child.stdout.take().expect("it is piped");
        let (mut said, mut byte) = (String::new(), [0]);
        while !said.contains(what) {
            assert_eq!(output.read(&mut byte).expect("it is read"), 1, "{said}");
            said.push(byte[0].into());
        }
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same for all lengths of time.
fn without_times(text: &str) -> String {
    let mut plain = String::new();
    for line in text.lines() {
        let mut words = line.split(' ').peekable();
        while let Some(word) = words.next() {
            let is_time = word.parse::<f64>().is_ok();
            let is_time = is_time && words.next_if(|unit| ["ms", "s"].contains(unit)).is_some();
            plain += if is_time { "so long" } else { word };
            plain.push(' ');
        }
        plain.push('\n');
    }
    plain
}

/// Goal: a user who sets `PACELINE_STUCK` learns why a program hangs, as the guide says. Method: the guide's
/// program in a process of its own. Its text stands in the guide, and so does what it prints, word for word
/// but for times.
#[test]
fn the_guides_program_says_why_it_hangs() {
    let guide = include_str!("../../docs/guide/hangs.md");
    let program = include_str!("hang.rs");
    let (_, program) = program
        .split_once("hangs.md.\n")
        .expect("the program comes after that line");
    let shown = program.replace("pub(super) fn main", "fn main");
    assert!(
        guide.contains(&shown),
        "the guide shows another program than this:\n{shown}"
    );
    let mut hanging = Hanging::new("report::asked::hangs", "100ms");
    let (_, shown) = guide.split_once("```text\n").expect("there is a text");
    let (shown, _) = shown.split_once("```").expect("it has an end");
    let shown = without_times(shown);
    let mut said = String::new();
    // On a busy machine the first job may not have run yet.
    for _ in 0..6 {
        let report = hanging.report();
        // The guide's program is a file of its own, without the line that says what this file is.
        let report = with_lines_moved(&report.replace("tests/report/hang.rs", "src/main.rs"));
        said = without_times(&report);
        if said == shown {
            return;
        }
    }
    assert_eq!(said, shown);
}

/// Each line number less one.
fn with_lines_moved(text: &str) -> String {
    let mut parts = text.split("main.rs:");
    let mut moved = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(part.len());
        let line: u32 = part[..end].parse().expect("a line number");
        moved += &format!("main.rs:{}{}", line - 1, &part[end..]);
    }
    moved
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn hangs() {
    if is_child() {
        // On a thread of that name, as the first one of a program.
        let main = std::thread::Builder::new().name("main".into());
        let main = main
            .spawn(super::hang::main)
            .expect("a thread can be started");
        main.join().expect("it hangs");
    }
}

/// Goal: a process that is sent the signal reports, as often as it is sent, and goes on. Method: a process
/// that hangs, and `kill`.
#[cfg(unix)]
#[test]
fn a_signal_makes_a_report() {
    let mut hanging = Hanging::new("report::asked::hangs", "usr1");
    hanging.until_it_says("loading");
    let mut ask = || {
        let process = hanging.child.id().to_string();
        let sent = Command::new("kill").args(["-USR1", &process]).status();
        assert!(sent.expect("there is a kill").success());
        let report = hanging.report();
        assert!(report.starts_with("paceline: SIGUSR1\n"), "{report}");
        report
    };
    // The first one may come before the wait.
    while !ask().contains("thread 'main' waits") {}
    for _ in 0..2 {
        let report = ask();
        assert!(
            report.contains("which waits for event 'loaded'"),
            "{report}"
        );
    }
    assert!(
        hanging.child.try_wait().expect("it is ours").is_none(),
        "it goes on"
    );
}

/// Goal: values that cannot be read are errors in words, and a signal that the program handles is refused.
/// Method: a process of its own for each.
#[test]
fn paceline_stuck_is_read_and_checked() {
    let try_with = |value: &str| {
        let said = child("process::builds", &[("PACELINE_STUCK", value.as_ref())]);
        assert!(said.is_success(), "{said}");
        said.line("build: ").unwrap_or_else(|| panic!("{said}"))
    };
    for good in ["5s", "off", "100ms"] {
        assert_eq!(try_with(good), "ran", "{good}");
    }
    if cfg!(unix) {
        assert_eq!(try_with("5s,quit"), "ran");
    }
    assert_eq!(
        try_with("soon"),
        "PACELINE_STUCK: 'soon' says not when to report: use a time such as 500ms or 5s, a signal (quit, \
         usr1, usr2), both such as 5s,quit, or off"
    );
}

/// Goal: in a fork's child a report says that it is one, whatever locks a thread of the parent held; and the
/// signal does there what it does by default. Method: a process with a thread that makes reports all the time
/// forks again and again. Each child asks, and then sends the signal to itself.
#[cfg(unix)]
#[test]
fn a_forks_child_says_what_it_is() {
    let said = child("report::asked::forks", &[]);
    assert!(said.is_success(), "{said}");
    assert_eq!(
        said.line("ended by the signal: ").as_deref(),
        Some("30 of 30"),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
#[ignore = "run by the test above in a process of its own"]
fn forks() {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    if !is_child() {
        return;
    }
    let builder = paceline::Builder::new().workers(1);
    let js = builder
        .report_on(paceline::Signal::Usr2)
        .build()
        .expect("it can be built");
    let gate = js.event("gate");
    let is_over = AtomicBool::new(false);
    let mut ended = 0;
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Relaxed) {
                js.job("job").schedule(|_| ());
                assert!(!js.report().is_forked);
            }
        });
        for _ in 0..30 {
            // SAFETY: the child makes a report and ends.
            let process = unsafe { libc::fork() };
            if process == 0 {
                let report = js.report();
                let is_right =
                    report.is_forked && report.jobs.is_empty() && report.verdict.len() == 1;
                // SAFETY: both end this process, the signal if it does what it does by default.
                unsafe {
                    libc::alarm(20);
                    if is_right {
                        libc::raise(libc::SIGUSR2);
                    }
                    libc::_exit(1)
                }
            }
            let mut status = 0;
            // SAFETY: `status` is writable, and the process is our child.
            let ended_now = unsafe { libc::waitpid(process, &raw mut status, 0) };
            assert_eq!(ended_now, process);
            let by_signal = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGUSR2;
            ended += u32::from(by_signal);
        }
        is_over.store(true, Relaxed);
    });
    println!("ended by the signal: {ended} of 30");
    gate.complete();
}
