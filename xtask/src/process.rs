//! Runs one command: reads its output as it comes, counts tests in it, stops it when it falls silent.
//!
//! A command may take as long as it goes on saying things: on a busy machine everything is slow. A command
//! that stands still has no next line.
//!
//! Invariant: a command that hangs ends with everything it started, so that a deadlock in a test
//! costs the time that it may be silent, and not the whole run.

use std::io::{self, BufRead, BufReader, IsTerminal, PipeReader, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::counts::Counts;

/// How long to go on reading when the command has ended but another process holds its output open.
const LINGER: Duration = Duration::from_secs(2);

/// How often a running command is looked at.
const GLANCE: Duration = Duration::from_millis(250);

/// Further options of running a command.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    /// After this long without a line the command is stopped and counts as failed.
    pub(crate) silence: Duration,
    /// Show each line as it comes.
    pub(crate) stream: bool,
    /// Keep standard output and standard error apart. Their order is then approximate.
    pub(crate) apart: bool,
}

/// How a command ended.
pub(crate) struct Outcome {
    /// `None`: it ended with exit code 0.
    pub(crate) failure: Option<String>,
    /// All it printed, in order.
    pub(crate) output: String,
    /// Standard output alone; filled only if kept apart.
    pub(crate) stdout: String,
    /// Tests it reported.
    pub(crate) counts: Counts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Output,
    Errors,
}

/// Runs the command to its end, or until it is silent for too long. Failing to start is an outcome too.
pub(crate) fn run(mut command: Command, manner: Manner) -> Outcome {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut outcome = Outcome {
        failure: None,
        output: String::new(),
        stdout: String::new(),
        counts: Counts::default(),
    };
    let (sender, lines) = mpsc::channel();
    let started = start(&mut command, manner.apart, sender);
    // The command holds the writing ends; without this the readers would never see the end.
    drop(command);
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            outcome.failure = Some(format!("{program} does not start: {error}"));
            return outcome;
        }
    };

    let begin = Instant::now();
    let mut last_line = begin;
    let mut ended: Option<(Instant, ExitStatus)> = None;
    let ticker = Ticker::new(manner.stream);
    loop {
        match lines.recv_timeout(GLANCE) {
            Ok((stream, line)) => {
                last_line = Instant::now();
                outcome.take(stream, &line, manner);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => ticker.show(begin.elapsed()),
        }
        if last_line.elapsed() > manner.silence {
            stop(&mut child);
            ticker.clear();
            outcome.failure = Some(format!(
                "stopped, because it stands still: no output for {} s",
                manner.silence.as_secs()
            ));
            return outcome;
        }
        if ended.is_none()
            && let Ok(Some(status)) = child.try_wait()
        {
            ended = Some((Instant::now(), status));
        }
        if ended.is_some_and(|(since, _)| since.elapsed() > LINGER) {
            break;
        }
    }
    ticker.clear();
    let status = match ended {
        Some((_, status)) => Ok(status),
        None => child.wait(),
    };
    outcome.failure = match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(status.to_string()),
        Err(error) => Some(format!("no exit status: {error}")),
    };
    outcome
}

/// The output of a short command, if it succeeded; `Err` is that and why not, with its `name`.
pub(crate) fn done(command: Command, silence: Duration, name: &str) -> Result<String, String> {
    let manner = Manner {
        silence,
        stream: false,
        apart: false,
    };
    let outcome = run(command, manner);
    match outcome.failure {
        None => Ok(outcome.output),
        Some(why) => Err(format!("{}{name}: {why}", outcome.output)),
    }
}

impl Outcome {
    fn take(&mut self, stream: Stream, line: &str, manner: Manner) {
        if let Some(counts) = Counts::in_line(line) {
            self.counts += counts;
        }
        self.output.push_str(line);
        self.output.push('\n');
        if manner.apart && stream == Stream::Output {
            self.stdout.push_str(line);
            self.stdout.push('\n');
        }
        if manner.stream {
            println!("{line}");
        }
    }
}

fn start(
    command: &mut Command,
    apart: bool,
    sender: Sender<(Stream, String)>,
) -> io::Result<Child> {
    let (reader, writer) = io::pipe()?;
    if apart {
        let (error_reader, error_writer) = io::pipe()?;
        command.stderr(error_writer);
        forward(error_reader, Stream::Errors, sender.clone());
    } else {
        command.stderr(writer.try_clone()?);
    }
    command.stdout(writer);
    forward(reader, Stream::Output, sender);
    command.spawn()
}

/// Sends each line of `reader` on, from a thread of its own.
fn forward(reader: PipeReader, stream: Stream, sender: Sender<(Stream, String)>) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            match reader.read_until(b'\n', &mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = String::from_utf8_lossy(&bytes)
                .trim_end_matches(['\n', '\r'])
                .to_owned();
            if sender.send((stream, line)).is_err() {
                return;
            }
        }
    });
}

/// Ends the command and all that it started: cargo does not take its test binary with it.
fn stop(child: &mut Child) {
    for id in descendants(child.id()) {
        // By its id alone; one that has just ended by itself is no loss.
        let _ = Command::new("kill").args(["-9", &id.to_string()]).output();
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Processes that descend from `ancestor`, from `/proc`; none on systems without it.
fn descendants(ancestor: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let parents: Vec<(u32, u32)> = entries
        .flatten()
        .filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((id, parent_in_stat(&stat)?))
        })
        .collect();
    let mut found = vec![ancestor];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(
            parents
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(id, _)| *id),
        );
        next += 1;
    }
    found.remove(0);
    found
}

/// The parent in a line of `/proc/ID/stat`: `id (name) state parent …`; a name may hold anything.
fn parent_in_stat(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// On a terminal: how long the command has been running, on a line that goes away.
struct Ticker(bool);

impl Ticker {
    fn new(streaming: bool) -> Ticker {
        Ticker(!streaming && io::stderr().is_terminal())
    }

    fn show(&self, elapsed: Duration) {
        if self.0 {
            eprint!("\r\u{1b}[K… {} s", elapsed.as_secs());
            let _ = io::stderr().flush();
        }
    }

    fn clear(&self) {
        if self.0 {
            eprint!("\r\u{1b}[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, silence: Duration) -> Outcome {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(
            command,
            Manner {
                silence,
                stream: false,
                apart: true,
            },
        )
    }

    /// Output is kept, tests in it are counted, the exit code decides.
    #[test]
    fn output_is_read_and_counted() {
        let line = "test result: FAILED. 3 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out";
        let outcome = shell(&format!("echo '{line}'; echo talk >&2; exit 3"), LINGER);
        assert_eq!(
            outcome.counts,
            Counts {
                passed: 3,
                failed: 2,
                skipped: 1
            }
        );
        assert_eq!(outcome.stdout, format!("{line}\n"));
        assert!(outcome.output.contains("talk"));
        assert!(outcome.failure.is_some_and(|why| why.contains('3')));
    }

    /// A command that hangs in a child of its own is stopped with that child.
    #[test]
    fn a_hanging_command_is_stopped_with_its_children() {
        let begin = Instant::now();
        let outcome = shell(
            "echo first; sleep 60; echo second",
            Duration::from_millis(300),
        );
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert_eq!(
            outcome.failure.as_deref(),
            Some("stopped, because it stands still: no output for 0 s")
        );
        assert_eq!(outcome.output, "first\n");
    }

    /// A command that goes on saying things may take longer than it may be silent.
    #[test]
    fn a_slow_command_is_not_stopped() {
        let script = "for i in 1 2 3 4 5 6; do sleep 0.5; echo $i; done";
        let outcome = shell(script, LINGER);
        assert_eq!(outcome.failure, None);
        assert_eq!(outcome.output.lines().count(), 6);
    }

    #[test]
    fn a_program_that_is_not_there_is_a_failure() {
        let command = Command::new("no-such-program-anywhere");
        let outcome = run(
            command,
            Manner {
                silence: LINGER,
                stream: false,
                apart: false,
            },
        );
        assert!(
            outcome
                .failure
                .is_some_and(|why| why.contains("does not start"))
        );
    }

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent_in_stat("7 (odd) name) S 42 7 7 0"), Some(42));
        assert_eq!(parent_in_stat("7 (cut"), None);
    }
}
