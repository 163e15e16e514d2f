//! The broker, the scheduler's side and programs, each in a process of its own where that matters.
//!
//! Nothing is asserted about time. What takes a moment is asked for again until it is so.

#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{self, Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use event::{Nanos, Task};
use paceline_hint::{
    Broker, ConnectErrorKind, LINE_WORDS, Page, Run, Segment, Shape, Skipped, connect, is_thread_of,
};
use platform::{Atomic, Lane, Ordering, Os, Parker, Platform, Thread, ThreadSpec};

/// A scheduler's memory, and a broker that serves on a thread of this process.
struct Listening {
    hints: Segment,
    path: PathBuf,
    stop: Option<UnixStream>,
    broker: Option<<Os as Platform>::Thread>,
    _folder: tempfile::TempDir,
}

impl Listening {
    fn new(pages: usize, slots: u32) -> Listening {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hints.sock");
        let (hints, mut broker) = Segment::new(Shape { pages, slots }, &path).unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let serve = move || broker.serve(stopped.as_fd()).unwrap();
        let broker = Os.spawn(ThreadSpec::default(), Box::new(serve)).unwrap();
        Listening {
            hints,
            path,
            stop: Some(stop),
            broker: Some(broker),
            _folder: folder,
        }
    }

    fn connect(&self) -> Arc<Page<Os>> {
        connect(&self.path).unwrap()
    }

    fn read(&self) -> (Vec<Said>, Skipped) {
        let mut said = Vec::new();
        let skipped = self.hints.read(&mut |entry| {
            let waits_for = entry.waits_for.iter().map(|other| other.0).collect();
            said.push((entry.process, entry.thread.0, entry.runs, waits_for));
        });
        (said, skipped)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.broker.take().unwrap().join().unwrap();
        assert!(!self.path.exists(), "the socket is left behind");
    }
}

/// Process, thread, what it runs and waits for.
type Said = (u32, u32, Option<Run>, Vec<u32>);

/// Returns once `is_so` holds.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let parker = Os.parker();
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        parker.park(Os.now() + Nanos::from_millis(1));
    }
    panic!("never: {what}");
}

fn here() -> Task {
    // SAFETY: no memory is passed.
    Task(unsafe { libc::gettid() } as u32)
}

/// A program that takes part: this binary again, in a role of [`program`].
struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

const ROLE: &str = "PACELINE_TEST_ROLE";
const SOCKET: &str = "PACELINE_TEST_SOCKET";

impl Program {
    fn start(role: &str, path: &Path) -> Program {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "program", "--ignored", "--nocapture"]);
        command.env(ROLE, role).env(SOCKET, path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Program { child, output }
    }

    /// Numbers that it has printed after `said: `.
    fn hears(&mut self) -> Vec<u32> {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended");
            if let Some((_, numbers)) = line.split_once("said: ") {
                return numbers
                    .split_whitespace()
                    .map(|n| n.parse().unwrap())
                    .collect();
            }
        }
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The program of the tests below.
#[test]
#[ignore = "part of other tests"]
fn program() {
    let (Some(role), Some(path)) = (env::var_os(ROLE), env::var_os(SOCKET)) else {
        return;
    };
    let page = connect(path.as_ref()).unwrap();
    let me = here();
    let mut slot = page.slot(me).unwrap();
    match role.to_str().unwrap() {
        "waits" => {
            let (say, heard) = UnixStream::pair().unwrap();
            let other = move || {
                (&say).write_all(&here().0.to_ne_bytes()).unwrap();
                sleep();
            };
            Os.spawn(ThreadSpec::default(), Box::new(other)).unwrap();
            let mut number = [0; 4];
            (&heard).read_exact(&mut number).unwrap();
            let other = Task(u32::from_ne_bytes(number));
            let parent = Task(std::os::unix::process::parent_id());
            slot.publish_wait(&[parent, other, Task(1)]);
            println!("said: {} {}", me.0, other.0);
        }
        "is killed in the middle" => {
            slot.publish_wait(&[Task(1)]);
            let mut second = page.slot(me).unwrap();
            second.publish_run(run());
            // As `write` leaves it before its last store.
            page.words()[LINE_WORDS].fetch_add(1, Ordering::Relaxed);
            println!("said: {}", me.0);
            sleep();
        }
        "writes on and on" => {
            println!("said: {}", me.0);
            loop {
                slot.publish_run(run());
                // Something between, as a job is: a slot that is always being written is never read.
                (0..300).for_each(|step| _ = std::hint::black_box(step));
                slot.clear_run();
            }
        }
        "has a child" => {
            // SAFETY: the child only sleeps, and is killed.
            let child = unsafe { libc::fork() };
            if child > 0 {
                println!("said: {child}");
                // SAFETY: the child is not to be waited for, and nothing else is left to do.
                unsafe { libc::_exit(0) };
            }
        }
        role => panic!("{role}"),
    }
    sleep();
}

fn sleep() -> ! {
    loop {
        Os.parker().park(Nanos::MAX);
    }
}

fn run() -> Run {
    Run {
        lane: Lane::Frame,
        deadline: Some(Nanos(77)),
    }
}

/// Goal: a scheduler sees what a program says about its own threads, not what it says about others', and
/// nothing of it once the program has ended. Method: a program that waits for its second thread, this process
/// and init, and is killed; then the same page for this process.
#[test]
fn a_program_is_heard_about_its_own_threads_until_it_ends() {
    let listening = Listening::new(1, 10);
    let mut program = Program::start("waits", &listening.path);
    let [thread, other] = program.hears()[..] else {
        panic!("two threads");
    };
    let (said, skipped) = listening.read();
    assert_eq!(said, [(program.id(), thread, None, vec![other])]);
    assert_eq!((skipped.foreign, skipped.changing), (2, 0));
    assert!(is_thread_of(Task(other), program.id()));
    assert!(!is_thread_of(Task(other), process::id()));
    let kind = connect(&listening.path).unwrap_err();
    assert!(matches!(kind.kind(), ConnectErrorKind::NoPage), "{kind}");
    program.kill();
    until("the page is taken back", || {
        listening.hints.processes().next().is_none()
    });
    assert_eq!(listening.read(), (vec![], Skipped::default()));
    let page = listening.connect();
    assert_eq!(
        listening.read(),
        (vec![], Skipped::default()),
        "it is clear"
    );
    let mut slot = page.slot(here()).unwrap();
    slot.publish_run(run());
    let expected = [(process::id(), here().0, Some(run()), vec![])];
    assert_eq!(listening.read().0, expected);
    drop((slot, page));
    until("the page is given back", || {
        listening.hints.processes().next().is_none()
    });
}

/// Goal: a writer that stops in the middle costs its entry and no other, alive or dead. Method: a program
/// that stands there, and is killed.
#[test]
fn a_writer_that_is_killed_in_the_middle_is_passed_over() {
    let listening = Listening::new(2, 10);
    let mut program = Program::start("is killed in the middle", &listening.path);
    let thread = program.hears()[0];
    let (said, skipped) = listening.read();
    assert_eq!(said, [(program.id(), thread, Some(run()), vec![])]);
    assert_eq!((skipped.changing, skipped.foreign), (1, 0));
    program.kill();
    until("the page is taken back", || {
        listening.read().1.changing == 0
    });
}

/// Goal: a reader sees entries whole while a program writes them and is killed at any moment. Method:
/// programs that write on and on, read meanwhile until some entries were seen.
#[test]
fn entries_are_whole_whenever_a_program_is_killed() {
    const ENTRIES: usize = 2_000;
    const LOOKS_AT_ONCE: usize = 100;
    let listening = Listening::new(2, 10);
    for _ in 0..4 {
        let mut program = Program::start("writes on and on", &listening.path);
        let thread = program.hears()[0];
        let mut seen = 0;
        until("enough was seen", || {
            for _ in 0..LOOKS_AT_ONCE {
                let (said, skipped) = listening.read();
                assert!(said.len() as u64 + skipped.changing <= 1);
                seen += said.len();
                if let [entry] = &said[..] {
                    assert_eq!(*entry, (program.id(), thread, Some(run()), vec![]));
                }
            }
            seen >= ENTRIES
        });
        program.kill();
        until("the page is taken back", || {
            listening.read() == (vec![], Skipped::default())
        });
    }
}

/// Goal: a page is not handed out while a process that is left over can write to it. Method: a program that
/// leaves a child, and one page.
#[test]
fn a_page_that_a_child_still_has_is_not_handed_out() {
    let listening = Listening::new(1, 10);
    let mut program = Program::start("has a child", &listening.path);
    let left = program.hears()[0];
    program.child.wait().unwrap();
    until("the page is taken back", || {
        listening.hints.processes().next().is_none()
    });
    let error = connect(&listening.path).unwrap_err();
    assert!(matches!(error.kind(), ConnectErrorKind::NoPage), "{error}");
    // SAFETY: no memory is passed. The process is the one that the program has left.
    assert_eq!(unsafe { libc::kill(left as libc::pid_t, libc::SIGKILL) }, 0);
    until("the page is free", || connect(&listening.path).is_ok());
}

/// Goal: a program learns that its scheduler has ended. Method: a page, asked before and after its broker's
/// end.
#[test]
fn a_page_says_that_its_scheduler_has_ended() {
    let listening = Listening::new(1, 10);
    let page = listening.connect();
    assert!(page.is_heard());
    assert!(page.explain().contains("can hear what 63 threads run"));
    let slots: Vec<_> = (0..65).filter_map(|_| page.slot(here())).collect();
    assert!(page.explain().contains("; 2 came that found no place"));
    drop(listening);
    // A process that another test has forked just then has the socket, too, until it ends.
    until("the end is seen", || !page.is_heard());
    let text = page.explain();
    assert!(
        text.contains("the scheduler has ended") && !text.contains('\n'),
        "{text}"
    );
    assert_eq!(slots.len(), 63, "what is said harms nothing");
}

/// Goal: a process has a bounded number of pages, threads beyond the slots are counted, and neither fails.
/// Method: five pages, and a thousand slots.
#[test]
fn what_is_too_much_is_counted() {
    let listening = Listening::new(8, 255);
    let pages: Vec<_> = (0..4).map(|_| listening.connect()).collect();
    let error = connect(&listening.path).unwrap_err();
    assert!(
        matches!(error.kind(), ConnectErrorKind::EnoughPages),
        "{error}"
    );
    let slots: Vec<_> = (0..1000).map(|_| pages[0].slot(here())).collect();
    assert_eq!(pages[0].slots(), 255);
    assert_eq!(slots.iter().flatten().count(), 255);
    assert_eq!(listening.read().1.refused, 745);
}

/// Goal: a broker in a process of its own serves as one on a thread does, and ends with its handle. Method: a
/// page from it, and its socket afterwards.
#[test]
fn a_broker_can_be_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hints.sock");
    let (hints, broker) = Segment::new(Shape::default(), &path).unwrap();
    let broker = broker.fork().unwrap();
    let page = connect(broker.path()).unwrap();
    assert_eq!(hints.processes().collect::<Vec<_>>(), [process::id()]);
    let mut slot = page.slot(here()).unwrap();
    slot.publish_run(run());
    let mut entries = 0;
    hints.read_knowing(&|_| Some(process::id()), &mut |_| entries += 1);
    assert_eq!(entries, 1);
    drop(broker);
    assert!(!path.exists());
    assert_eq!(hints.processes().count(), 0);
    slot.clear_run();
}

/// Goal: two brokers do not share a path, what a dead one left is replaced, what else is there stays, a typo
/// makes no folder, and the reason is one line. Method: each of them, and paths that can be none.
#[test]
fn a_path_has_one_broker() {
    let listening = Listening::new(1, 10);
    let shape = Shape { pages: 1, slots: 1 };
    let make = |path: &Path| -> std::io::Result<(Segment, Broker)> { Segment::new(shape, path) };
    let error = make(&listening.path).unwrap_err().to_string();
    assert!(error.contains("another broker listens there"), "{error}");
    let left = listening.path.with_file_name("left.sock");
    drop(UnixListener::bind(&left).unwrap());
    assert!(left.exists());
    // A process that another test has forked just then has the socket, too, until it ends.
    while UnixStream::connect(&left).is_ok() {
        Os.parker().park(Os.now() + Nanos::from_millis(1));
    }
    drop(make(&left).unwrap());
    let file = listening.path.with_file_name("file");
    std::fs::write(&file, "text").unwrap();
    let refused = |path: &Path, part: &str| {
        let why = make(path).unwrap_err().to_string();
        assert!(why.starts_with("hints: ") && why.contains(part), "{why}");
        let shown = format!("{}: ", path.display());
        assert!(
            !why.contains('\n') && why.matches(&shown).count() <= 1,
            "{why}"
        );
    };
    refused(&file, "what is there is no socket; choose another path");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "text");
    refused(
        &file.with_file_name("typo/hints.sock"),
        "there is no folder",
    );
    assert!(!file.with_file_name("typo").exists(), "a folder was made");
    refused(&file.with_file_name("x".repeat(200)), "107 at most");
    let datagrams = file.with_file_name("datagrams");
    let _other = std::os::unix::net::UnixDatagram::bind(&datagrams).unwrap();
    refused(&datagrams, "the socket of another program is there");
    assert!(
        make(Path::new(""))
            .unwrap_err()
            .to_string()
            .contains("is empty")
    );
    for (pages, slots) in [(0, 1), (1, 0), (1 << 20, 1), (1, 1 << 20)] {
        assert!(Segment::new(Shape { pages, slots }, &left).is_err());
    }
}
