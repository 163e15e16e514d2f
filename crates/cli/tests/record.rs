//! Goal: `paceline record` and the kernel's half of `frames --trace`, as users meet them; and that nothing
//! of them stays behind in the kernel, however they end. Method: the built program. Where the kernel may not
//! be asked, it must say so in one line, and the rest is skipped with a word.

#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
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

/// Goal: the recording says which program it is of, and an account of it names no wait of the recorder, and
/// none of other programs first. Method: a shell that starts a program which computes, beside a process of
/// ours that sleeps and is woken all the time.
#[test]
fn the_recorder_is_no_finding() {
    if !is_allowed() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("t.pftrace");
    let shown = trace.to_str().unwrap();
    let mut other = Command::new("sh");
    other.args(["-c", "while :; do sleep 0.002; done"]);
    let mut other = other.spawn().unwrap();
    let program = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; true";
    let run = paceline(&["record", "-o", shown, "--", "sh", "-c", program]);
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(run.status.success(), "{}", text(&run.stderr));
    let recording = trace::read::read(fs::File::open(&trace).unwrap(), "t").unwrap();
    let origin = &recording.origin;
    assert!(origin.recorder.is_some() && !origin.recorded.is_empty());
    let run = paceline(&["diagnose", "--json", shown]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    let waits = report["waits"].as_array().unwrap();
    let tid = |wait: &Value| wait["tid"].as_u64().unwrap_or(0) as u32;
    for wait in waits {
        assert_ne!(Some(tid(wait)), origin.recorder, "{wait}");
    }
    let first = waits.first().expect("the program ran");
    assert!(origin.recorded.contains(&tid(first)), "{first}");
}

/// Goal: the front page's example is one. Method: the line is there, and runs, its output in another folder.
#[test]
fn the_readmes_example_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let line = "record -o list.pftrace -- ls -R crates";
    let readme = fs::read_to_string(root.join("docs/lab.md")).unwrap();
    assert!(readme.contains(&format!("cargo run --release -- {line}\n")));
    if !is_allowed() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("list.pftrace");
    let words = line.split(' ').map(|word| match word {
        "list.pftrace" => trace.to_str().unwrap(),
        word => word,
    });
    let words: Vec<&str> = words.collect();
    let run = command(&words).current_dir(&root).output().unwrap();
    assert!(run.status.success(), "{}", text(&run.stderr));
    let recording = trace::read::read(fs::File::open(&trace).unwrap(), "t").unwrap();
    assert!(recording.threads.iter().any(|thread| thread.name == "ls"));
}

/// Goal: a command that fails, or does not exist, is one line and its exit code; a small buffer loses events
/// and says so. Method: one of each.
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

/// Sends a signal to these: a process, or a group of them with a '-' before its number.
fn signal(name: &str, to: &str) {
    let sent = Command::new("kill").args([name, "--", to]).status();
    assert!(sent.unwrap().success());
}

/// A run that is to be interrupted.
struct Interruption {
    /// Whether Ctrl-C does nothing to the process that starts it: the shell's rule for commands that a script
    /// starts with '&'.
    ignores_int: bool,
    /// One after the other.
    signals: &'static [&'static str],
    /// "-": to its process group, as a terminal sends them; "": to the recorder alone.
    group: &'static str,
    /// How the command ends, in the recorder's words; none if the recorder can say nothing any more.
    ended_by: &'static str,
}

/// Gives the command the usual signals, or has SIGINT ignored, whatever this process was started with: `&`
/// of a script has SIGINT ignored, nohup SIGHUP.
fn start_with(command: &mut Command, ignores_int: bool) {
    let of_int = if ignores_int {
        libc::SIG_IGN
    } else {
        libc::SIG_DFL
    };
    let set = move || {
        for (number, disposition) in [
            (libc::SIGINT, of_int),
            (libc::SIGHUP, libc::SIG_DFL),
            (libc::SIGTERM, libc::SIG_DFL),
        ] {
            // SAFETY: signal() may be called between fork and exec, and neither disposition runs anything.
            if unsafe { libc::signal(number, disposition) } == libc::SIG_ERR {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure calls signal() alone and allocates nothing.
    unsafe { command.pre_exec(set) };
}

/// Goal: the kernel's instance is gone, and the trace there, when Ctrl-C ends the command, or TERM or HUP,
/// whether the command gets it from outside or not; after KILL at least the instance is gone. Started with
/// Ctrl-C ignored, that ends nothing, and TERM does. Method: a long sleep, signals to its process group, as
/// a terminal sends them, and to the recorder alone, too; what it inherits is set, whatever these tests
/// inherited.
#[test]
fn nothing_stays_behind_when_it_is_interrupted() {
    if !is_allowed() {
        return;
    }
    for (ignores_int, signals, group, ended_by) in [
        (false, &["-INT"][..], "-", "(signal: 2"),
        (false, &["-TERM"], "-", "(signal: 15"),
        (false, &["-TERM"], "", "(signal: 15"),
        (true, &["-INT", "-TERM"], "-", "(signal: 15"),
        (true, &["-INT", "-TERM"], "", "(signal: 15"),
        (false, &["-INT"], "", "(signal: 2"),
        (false, &["-HUP"], "", "(signal: 1"),
        (false, &["-HUP"], "-", "(signal: 1"),
        (false, &["-KILL"], "-", ""),
    ] {
        let is_seen = interrupted(&Interruption {
            ignores_int,
            signals,
            group,
            ended_by,
        });
        if !is_seen {
            eprintln!("skipped: tracefs is not where it can be seen");
            return;
        }
    }
}

/// One such run; false if the kernel's instance cannot be seen here.
fn interrupted(how: &Interruption) -> bool {
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("t.pftrace");
    let path = trace.to_str().unwrap();
    let mut command = command(&["record", "-o", path, "--", "sleep", "100"]);
    command.process_group(0).stderr(Stdio::piped());
    start_with(&mut command, how.ignores_int);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let to = format!("{}{}", how.group, child.id());
    let Some(instance) = instance_of(child.id()) else {
        signal("-TERM", &format!("-{}", child.id()));
        child.wait().unwrap();
        return false;
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
    for name in how.signals {
        assert!(child.try_wait().unwrap().is_none(), "before {name}");
        signal(name, &to);
    }
    let run = child.wait_with_output().unwrap();
    becomes("the instance goes", || !instance.exists());
    let said = text(&run.stderr);
    let case = format!("{:?} {to}, ignored: {}", how.signals, how.ignores_int);
    assert_eq!(trace.exists(), !how.ended_by.is_empty(), "{case}: {said}");
    if trace.exists() {
        assert_eq!(run.status.code(), Some(1), "{said}");
        let ended = format!("sleep failed {}", how.ended_by);
        assert!(said.contains(&ended), "{case}: {said}");
        let recording = trace::read::read(fs::File::open(&trace).unwrap(), "t").unwrap();
        let mut threads = recording.threads.iter();
        assert!(threads.any(|thread| thread.name == "sleep"), "{case}");
    }
    true
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

/// A line of the kernel's about a switch: its time, its CPU, the thread that left, whether that one could
/// have gone on, and the thread that came.
struct Switch {
    time_ns: u64,
    cpu: u32,
    prev: u64,
    is_runnable: bool,
    next: u64,
}

/// The switches in the kernel's own text, by nothing but the words of its lines.
fn switches(text: &str) -> Vec<Switch> {
    let lines = text.lines();
    let lines = lines.filter_map(|line| line.split_once(": sched_switch: "));
    let switch = |(head, rest): (&str, &str)| {
        let (head, time) = head.rsplit_once(' ').unwrap();
        let (seconds, micros) = time.split_once('.').unwrap();
        assert_eq!(micros.len(), 6, "{head}");
        let (_, cpu) = head.rsplit_once('[').unwrap();
        let (cpu, _) = cpu.split_once(']').unwrap();
        let number = |text: &str| text.parse::<u64>().unwrap();
        // Names may hold anything, so the numbers are looked for from the right.
        let (prev, next) = rest.rsplit_once(" ==> ").unwrap();
        let word = |text: &str, key: &str| {
            let (_, value) = text.rsplit_once(key).unwrap();
            value.split(' ').next().unwrap().to_owned()
        };
        Switch {
            time_ns: (number(seconds) * 1_000_000 + number(micros)) * 1_000,
            cpu: number(cpu) as u32,
            prev: number(&word(prev, " prev_pid=")),
            is_runnable: word(prev, " prev_state=").starts_with('R'),
            next: number(&word(next, " next_pid=")),
        }
    };
    lines.map(switch).collect()
}

/// Gives the switches the times that they have in the file. The text has whole microseconds, and the file
/// tells the order of events of one microsecond by some nanoseconds. On each CPU they are in the same order.
fn set_to_the_file(switches: &mut [Switch], trace: &str) {
    let recording = trace::read::read(fs::File::open(trace).unwrap(), "t").unwrap();
    let mut times: BTreeMap<u32, VecDeque<u64>> = BTreeMap::new();
    for event in &recording.kernel {
        if let event::KernelEventKind::Switch { .. } = event.what {
            times
                .entry(event.cpu.0)
                .or_default()
                .push_back(event.time.0);
        }
    }
    for switch in &mut *switches {
        let in_file = times.get_mut(&switch.cpu).and_then(VecDeque::pop_front);
        let in_file = in_file.expect("the file has each switch");
        assert_eq!(
            in_file / 1_000,
            switch.time_ns / 1_000,
            "CPU {}",
            switch.cpu
        );
        switch.time_ns = in_file;
    }
    assert!(
        times.values().all(VecDeque::is_empty),
        "the text has each switch"
    );
    switches.sort_by_key(|switch| switch.time_ns);
}

/// How often a thread lost its CPU from one time until just before the other although it could have gone on,
/// and how long it then had none.
fn preempted(switches: &[Switch], tid: u64, begin: u64, end: u64) -> (u64, u64) {
    let (mut count, mut ns) = (0, 0);
    let mut since = None;
    for switch in switches.iter().take_while(|switch| switch.time_ns < end) {
        if switch.next == tid {
            let from = since.take().unwrap_or(switch.time_ns).max(begin);
            ns += switch.time_ns.saturating_sub(from);
        }
        if switch.prev == tid && switch.is_runnable {
            since = Some(switch.time_ns);
            count += u64::from(switch.time_ns >= begin);
        }
    }
    (count, ns + since.map_or(0, |since| end - since.max(begin)))
}

/// Goal: beside hogs, the causes of each wait and frame sum to its length, and the preemptions found are
/// those of the kernel's own text: in all, of each thread, and in each wait. `diagnose` reports of the file
/// what `frames` reports of its run, with the kernel's half or without. Method: an independent count over the
/// lines of the text, with the file's nanoseconds within its microseconds.
#[test]
fn preemptions_are_the_kernels() {
    let allowed = is_allowed();
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (trace, kernel) = (path("t.pftrace"), path("t.txt"));
    let line = ["frames", "--json", "--frames", "30", "--load", "4"];
    let run = paceline(&[&line[..], &["--trace", &trace, "--trace-text", &kernel]].concat());
    assert!(run.status.success(), "{}", text(&run.stderr));
    let told: Value = serde_json::from_slice(&run.stdout).unwrap();
    let diagnosed = paceline(&["diagnose", "--json", &trace]);
    assert!(diagnosed.status.success(), "{}", text(&diagnosed.stderr));
    let diagnosed: Value = serde_json::from_slice(&diagnosed.stdout).unwrap();
    let waits = list(&diagnosed, "waits");
    assert!(waits.len() > 30, "{waits:?}");

    // The file's times are the kernel's.
    let mut same = list(&told, "waits").to_vec();
    let first = ns(&waits[0], "start_ns") - ns(&same[0], "start_ns");
    for wait in &mut same {
        wait["start_ns"] = (ns(wait, "start_ns") + first).into();
    }
    assert_eq!(same, waits);
    for wait in waits {
        let causes = list(wait, "causes").iter();
        let sum: u64 = causes.map(|cause| ns(cause, "ns")).sum();
        assert_eq!((sum, ns(wait, "sum_ns")), (ns(wait, "duration_ns"), sum));
    }
    if allowed {
        let kernel = fs::read_to_string(kernel).unwrap();
        let lists = ["threads", "who"].map(|key| list(&told, key));
        let mut switches = switches(&kernel);
        set_to_the_file(&mut switches, &trace);
        are_the_kernels(lists, waits, &switches);
    } else {
        assert_eq!(
            (&told["threads"], &waits[0]["preemptions"]),
            (&Value::Null, &Value::Null)
        );
    }
}

/// Compares the account of threads and waits with the switches.
fn are_the_kernels([threads, who]: [&[Value]; 2], waits: &[Value], switches: &[Switch]) {
    let index = |cause: &Value| cause["who"].as_u64().unwrap() as usize;
    let mut all = 0;
    for thread in threads {
        let (count, _) = preempted(switches, ns(thread, "tid"), 0, u64::MAX);
        assert_eq!(ns(&thread["switches"], "involuntary"), count, "{thread}");
        all += count;
    }
    assert!(threads.len() >= 2 && all > 0, "{threads:?}");
    let mut in_waits = 0;
    for wait in waits {
        let (tid, begin) = (ns(wait, "tid"), ns(wait, "start_ns"));
        let (count, time) = preempted(switches, tid, begin, begin + ns(wait, "duration_ns"));
        assert_eq!(ns(wait, "preemptions"), count, "{wait}");
        in_waits += count;
        // Time lost so is in the account only where it was what held the thread itself up.
        let own = list(wait, "causes").iter();
        let own =
            own.filter(|cause| cause["kind"] == "preempted" && who[index(cause)]["tid"] == tid);
        let own: u64 = own.map(|cause| ns(cause, "ns")).sum();
        assert!(own <= time, "{own} of {time}: {wait}");
    }
    assert!(in_waits > 0);
}

fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of[key].as_array().unwrap()
}

fn ns(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap()
}
