//! Goal: `paceline record` and the kernel's half of `frames --trace`, as users meet them; and that nothing
//! of them stays behind in the kernel, however they end. Method: the built program. Where the kernel may not
//! be asked, it must say so in one line, and the rest is skipped with a word.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

fn paceline(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.args(arguments).env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether the kernel may be asked here. If not, the program must say so in one line, and run nothing.
fn is_allowed() -> bool {
    let folder = TempDir::new().unwrap();
    let [trace, made] = ["t", "made"].map(|name| folder.path().join(name));
    let [shown, touched] = [&trace, &made].map(|path| path.to_str().unwrap());
    let run = paceline(&["record", "-o", shown, "--", "touch", touched]);
    if run.status.success() {
        assert!(trace.exists() && made.exists());
        return true;
    }
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("tracefs"), "{said}");
    assert!(run.stdout.is_empty() && !trace.exists() && !made.exists());
    eprintln!("skipped: {said}");
    false
}

/// Goal: a command is recorded, and the report agrees with the file. Method: a sleep, whose thread the
/// kernel must have switched away from; the kernel's own text, too.
#[test]
fn a_command_is_recorded() {
    if !is_allowed() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (trace, kernel) = (path("t.pftrace"), path("t.txt"));
    let line = ["record", "--json", "-o", &trace, "--text", &kernel, "--"];
    let run = paceline(&[&line[..], &["sh", "-c", "echo hello; sleep 0.05"]].concat());
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(text(&run.stderr).contains("hello"));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["path"], trace.as_str());
    assert_eq!((&report["lost"], &report["status"]), (&0.into(), &0.into()));
    assert_eq!(report["bytes"], fs::metadata(&trace).unwrap().len());
    let kernel = fs::read_to_string(kernel).unwrap();
    let switches = kernel.matches(": sched_switch: ").count();
    assert!(kernel.contains("prev_comm=sleep"), "{kernel}");
    let recording = trace::read::read(fs::File::open(&trace).unwrap(), "t").unwrap();
    let is_switch =
        |event: &&event::KernelEvent| matches!(event.what, event::KernelEventKind::Switch { .. });
    assert_eq!(recording.kernel.iter().filter(is_switch).count(), switches);
    assert!(
        recording
            .threads
            .iter()
            .any(|thread| thread.name == "sleep")
    );
    assert!(report["events"].as_u64().unwrap() >= switches as u64);
}

/// Goal: a command that fails, or is none, is one line and its exit code; a small buffer loses events and
/// says so. Method: one of each.
#[test]
fn failures_are_one_line() {
    if !is_allowed() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("t.pftrace");
    let shown = trace.to_str().unwrap();
    let run = paceline(&["record", "-o", shown, "--", "sh", "-c", "exit 3"]);
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("exit status: 3") && trace.exists(), "{said}");
    let run = paceline(&["record", "-o", shown, "--", "no-such-program-of-ours"]);
    let said = text(&run.stderr);
    assert_eq!((run.status.code(), said.lines().count()), (Some(2), 1));
    assert!(said.contains("no-such-program-of-ours"), "{said}");
    let busy = "i=0; while [ $i -lt 3000 ]; do (true); i=$((i+1)); done";
    let small = ["record", "--json", "--buffer-kb", "64", "-o", shown, "--"];
    let run = paceline(&[&small[..], &["sh", "-c", busy]].concat());
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!(report["lost"].as_u64().unwrap() > 0, "{report}");
    assert!(text(&run.stderr).contains("--buffer-kb"));
}

/// Where the instances of a process are, if tracefs is mounted where it usually is.
fn instance_of(process: u32) -> Option<PathBuf> {
    let roots = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(Path::new);
    let root = roots.iter().find(|root| root.join("instances").is_dir())?;
    Some(root.join(format!("instances/paceline-{process}")))
}

fn becomes(what: &str, is_so: impl Fn() -> bool) {
    const TRIES: u32 = 3_000;
    const PAUSE: Duration = Duration::from_millis(10);
    let came = (0..TRIES).any(|_| {
        is_so() || {
            std::thread::sleep(PAUSE);
            false
        }
    });
    assert!(came, "{what}");
}

/// Sends a signal to a program and what it has started.
fn signal(child: &Child, name: &str) {
    let group = format!("-{}", child.id());
    let sent = Command::new("kill").args([name, "--", &group]).status();
    assert!(sent.unwrap().success());
}

/// Goal: the kernel's instance is gone, and the trace there, when Ctrl-C ends the command; after TERM and
/// KILL at least the instance is gone. Method: a long sleep, signals to its process group, as a terminal
/// sends them.
#[test]
fn nothing_stays_behind_when_it_is_interrupted() {
    if !is_allowed() {
        return;
    }
    for (name, writes) in [("-INT", true), ("-TERM", false), ("-KILL", false)] {
        let folder = TempDir::new().unwrap();
        let trace = folder.path().join("t.pftrace");
        let line = [
            "record",
            "-o",
            trace.to_str().unwrap(),
            "--",
            "sleep",
            "100",
        ];
        let mut command = command(&line);
        command.process_group(0).stderr(Stdio::piped());
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let Some(instance) = instance_of(child.id()) else {
            signal(&child, "-INT");
            child.wait().unwrap();
            eprintln!("skipped: tracefs is not where it can be seen");
            return;
        };
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let runs = || {
            // The guardian is one, the command the other.
            let children = fs::read_to_string(&children).unwrap_or_default();
            instance.exists() && children.split_whitespace().count() >= 2
        };
        becomes("it records", runs);
        // The command is started; now it must be told to ignore Ctrl-C.
        std::thread::sleep(Duration::from_millis(200));
        signal(&child, name);
        let run = child.wait_with_output().unwrap();
        becomes("the instance goes", || !instance.exists());
        let said = text(&run.stderr);
        assert_eq!(trace.exists(), writes, "{name}: {said}");
        if writes {
            assert_eq!(run.status.code(), Some(1), "{said}");
            assert!(said.contains("sleep failed (signal: 2"), "{said}");
        }
    }
}

/// Goal: frames have the kernel's half of the same interval: as many switches as the kernel's own text has,
/// and all threads by their names. Method: frames beside hogs, the trace read again, the text counted. (That
/// threads and clocks are the same is tested beside the recorder.)
#[test]
fn frames_have_the_kernels_half() {
    let allowed = is_allowed();
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (trace, kernel) = (path("t.pftrace"), path("t.txt"));
    let line = [
        "frames",
        "--json",
        "--frames",
        "20",
        "--load",
        "2",
        "--workers",
        "1",
    ];
    let run = paceline(&[&line[..], &["--trace", &trace, "--trace-text", &kernel]].concat());
    let said = text(&run.stderr);
    assert!(run.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    let half = &report["trace"]["kernel"];
    if !allowed {
        assert_eq!(*half, Value::Null);
        assert!(
            said.contains("only jobs") && said.contains("tracefs"),
            "{said}"
        );
        return;
    }
    assert_eq!(half["lost"], 0);
    let text = fs::read_to_string(kernel).unwrap();
    let recording = trace::read::read(fs::File::open(&trace).unwrap(), "t").unwrap();
    let is_switch =
        |event: &&event::KernelEvent| matches!(event.what, event::KernelEventKind::Switch { .. });
    let switches = recording.kernel.iter().filter(is_switch).count();
    assert_eq!(switches, text.matches(": sched_switch: ").count());
    let names = ["main", "paceline 0", "hog 0", "hog 1"];
    for name in names {
        let known = recording.threads.iter().any(|thread| thread.name == name);
        assert!(known, "{name}: {:?}", recording.threads);
    }
}
