//! Hogs: threads of another process that only compute, and count it.
//!
//! Another process, so that statements of this one are about its own threads. It is this program again. It
//! says on standard output how much was computed, for each line that it reads, and ends with standard input.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::work;

/// Hogs, until they are ended or this process is.
pub(crate) struct Hogs {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Hogs {
    /// Starts so many.
    pub(crate) fn start(count: u32) -> Result<Hogs, String> {
        let own = env::current_exe().map_err(|error| format!("where is this program: {error}"))?;
        let mut child = Command::new(own)
            .args(["hogs", &count.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start the hogs: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the hogs have no pipes".to_owned());
        };
        let output = BufReader::new(output);
        Ok(Hogs {
            child,
            input,
            output,
        })
    }

    /// How many blocks they have computed so far.
    pub(crate) fn done(&mut self) -> Result<u64, String> {
        let mut line = String::new();
        let asked = writeln!(self.input).and_then(|()| self.output.read_line(&mut line));
        asked.map_err(|error| format!("the hogs do not answer: {error}"))?;
        line.trim()
            .parse()
            .map_err(|_| format!("the hogs say {line:?}"))
    }

    /// Ends them; how many blocks they have computed.
    pub(crate) fn end(mut self) -> Result<u64, String> {
        let done = self.done()?;
        drop(self.input);
        let ended = self.child.wait();
        ended.map_err(|error| format!("the hogs do not end: {error}"))?;
        Ok(done)
    }
}

/// The other process.
pub(crate) fn serve(count: u32) -> Result<(), String> {
    let counters: Vec<Arc<AtomicU64>> = (0..count).map(|_| Arc::default()).collect();
    for (number, counter) in counters.iter().enumerate() {
        let counter = Arc::clone(counter);
        let hog = move || {
            let mut word = 1;
            loop {
                word = work::block(word);
                counter.fetch_add(1, Ordering::Relaxed);
            }
        };
        let thread = thread::Builder::new().name(format!("hog {number}"));
        let started = thread.spawn(hog);
        started.map_err(|error| format!("cannot start a hog: {error}"))?;
    }
    for line in io::stdin().lock().lines() {
        line.map_err(|error| format!("cannot read: {error}"))?;
        let counts = counters
            .iter()
            .map(|counter| counter.load(Ordering::Relaxed));
        println!("{}", counts.sum::<u64>());
    }
    Ok(())
}
