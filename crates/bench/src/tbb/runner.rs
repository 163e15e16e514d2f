//! The process of a peer: a request is one line, and so is its answer.
//!
//! Between requests the process sleeps in a read, and so does the thread here that reads its answers. So
//! neither uses a CPU while other subjects are measured. Every answer has a deadline. A runner that misses it
//! is ended. After the end of a runner the next request is an error.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time that the runner may take to end.
const FAREWELL: Duration = Duration::from_secs(2);

/// A running process.
pub(super) struct Runner {
    child: Child,
    /// None after the runner was told to end.
    requests: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Runner {
    /// Starts the program. Its first line is read by [`listen`](Runner::listen).
    pub(super) fn start(program: &Path) -> Result<Runner, String> {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Errors are in its answers; a crash is in its exit status.
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("does not start: {error}"))?;
        let requests = child.stdin.take();
        let answers = match child.stdout.take() {
            Some(output) => forward(output)?,
            None => return Err("has no standard output".into()),
        };
        Ok(Runner {
            child,
            requests,
            answers,
        })
    }

    /// The number of the process.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request, which may have several lines, and returns the numbers of the answer.
    pub(super) fn ask(&mut self, request: &str, patience: Duration) -> Result<Vec<u64>, String> {
        let name = request.split_whitespace().next().unwrap_or_default();
        let sent = match &mut self.requests {
            Some(pipe) => writeln!(pipe, "{request}").and_then(|()| pipe.flush()),
            None => return Err("the runner was ended".into()),
        };
        if sent.is_err() {
            return Err(self.has_ended(name));
        }
        numbers(&self.listen(name, patience)?)
    }

    /// Reads its next line, which is about `what`.
    pub(super) fn listen(&mut self, what: &str, patience: Duration) -> Result<String, String> {
        match self.answers.recv_timeout(patience) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Disconnected) => Err(self.has_ended(what)),
            Err(RecvTimeoutError::Timeout) => {
                self.end(Duration::ZERO);
                let seconds = patience.as_secs_f64();
                Err(format!(
                    "the runner gave no answer to {what:?} for {seconds} s"
                ))
            }
        }
    }

    fn has_ended(&mut self, what: &str) -> String {
        let status = self.end(FAREWELL);
        format!("the runner ended instead of answering {what:?} ({status})")
    }

    /// Tells it to end, and kills it if it does not. Returns its exit status.
    fn end(&mut self, patience: Duration) -> String {
        // It ends at the end of its input.
        self.requests = None;
        let begin = Instant::now();
        while begin.elapsed() < patience {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.to_string(),
                Ok(None) => thread::sleep(Duration::from_millis(1)),
                Err(_) => break,
            }
        }
        // This fails if it has ended meanwhile.
        let _ = self.child.kill();
        let status = self.child.wait();
        status.map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.end(FAREWELL);
    }
}

/// Forwards each line to a channel, on a thread that ends with the runner.
fn forward(output: ChildStdout) -> Result<Receiver<String>, String> {
    let (sender, lines) = mpsc::channel();
    let read = move || {
        let output = BufReader::new(output).lines();
        for line in output.map_while(Result::ok) {
            if sender.send(line).is_err() {
                // The receiver is gone for good.
                break;
            }
        }
    };
    let thread = thread::Builder::new()
        .name("peer answers".into())
        .spawn(read);
    thread.map(|_| lines).map_err(|error| error.to_string())
}

/// The numbers of an answer, or the error in the runner's own words.
fn numbers(line: &str) -> Result<Vec<u64>, String> {
    let mut words = line.split_whitespace();
    if words.next() != Some("ok") {
        return Err(format!("the runner says {line:?}"));
    }
    let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
    numbers.map_err(|_| format!("the runner says {line:?}, which is no answer"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    /// A runner that is a script. Another process writes it: a file that this process has open for writing
    /// may be open in the child that another test is just starting, and cannot be run until that is over.
    fn runner(script: &str) -> (Runner, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runner");
        let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\"";
        let mut command = Command::new("sh");
        let status = command.args(["-c", write]).arg(&path).arg(script).status();
        assert!(status.unwrap().success());
        (Runner::start(&path).unwrap(), folder)
    }

    /// Goal: answers belong to their requests, a refusal has the runner's words, and nonsense is no number.
    /// Method: a script that answers each request by its first word.
    #[test]
    fn each_request_has_its_answer() {
        let script = "while read name rest; do case $name in
            add) echo ok 3 $rest;;
            fail) echo failed: no luck;;
            *) echo ok seven;;
        esac; done";
        let (mut runner, _folder) = runner(script);
        assert_eq!(runner.ask("add 4", LONG).unwrap(), [3, 4]);
        assert_eq!(runner.ask("add", LONG).unwrap(), [3]);
        assert!(runner.ask("fail", LONG).unwrap_err().contains("no luck"));
        assert!(runner.ask("odd", LONG).unwrap_err().contains("no answer"));
    }

    /// Goal: the death of a runner is an error with its exit code at once, and an error at the next request.
    /// Method: one that exits with 3 at its second request.
    #[test]
    fn a_runner_that_dies_is_noticed() {
        let (mut runner, _folder) = runner("read first; echo ok; read second; exit 3");
        assert_eq!(runner.ask("first", LONG).unwrap(), [0; 0]);
        let error = runner.ask("second 1 2", LONG).unwrap_err();
        let expected = "the runner ended instead of answering \"second\" (exit status: 3)";
        assert_eq!(error, expected);
        assert_eq!(
            runner.ask("third", LONG).unwrap_err(),
            "the runner was ended"
        );
    }

    /// Goal: a runner that hangs is ended. Method: one that reads and never answers.
    #[test]
    fn a_runner_that_hangs_is_ended() {
        let (mut runner, _folder) = runner("read first; exec sleep 1000");
        let error = runner.ask("first", Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("gave no answer to \"first\""), "{error}");
        assert!(runner.child.try_wait().unwrap().is_some());
    }
}
