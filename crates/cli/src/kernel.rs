//! The kernel's record of an interval: runs, wake-ups with their wakers, speed of the CPUs.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use platform::os::tracefs::{Instance, Tracefs};
use platform::os::{Kept, Refused};
use trace::{Clock, Loss, Recording};

use console::Failure;

use crate::family::Forks;

/// The recorded events; some kernels lack some of them.
const EVENTS: [&str; 11] = [
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_wakeup_new",
    "sched/sched_migrate_task",
    "sched/sched_pi_setprio",
    "sched/sched_process_fork",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "power/cpu_frequency",
    "power/cpu_idle",
];

/// Without this one nothing is known of what ran.
const NEEDED: &str = EVENTS[0];

/// Room for each CPU's events in kB, by default: about a quarter of a million events, and less on machines
/// with so many CPUs that it would be more than [`ALL_BUFFERS_KB`].
const BUFFER_KB: u32 = 16_384;
const ALL_BUFFERS_KB: u32 = 512 * 1_024;

/// The mark with which the kernel is asked for its name of this thread.
const WHO_AM_I: &str = "paceline: who am I";

/// The kernel records, until this is stopped or dropped.
pub(crate) struct Tracer {
    instance: Instance,
    me: u64,
    buffer_kb: u32,
}

/// The kernel's recording.
pub(crate) struct Recorded {
    pub(crate) recording: Recording,
    /// Whether its numbers of this process's threads are the ones that the process sees: not in a container
    /// with numbers of its own.
    pub(crate) knows_threads: bool,
    /// The room that each CPU's events had.
    pub(crate) buffer_kb: u32,
    /// The kernel's number for the thread that recorded.
    pub(crate) me: Option<u32>,
    pub(crate) forks: Forks,
}

impl Recorded {
    /// From now on the recording is of the program that this process started as `child`.
    pub(crate) fn is_of(&mut self, child: u32) {
        let threads = &self.recording.threads;
        let processes = &self.recording.processes;
        let process = |tid: u32| {
            let thread = threads.iter().find(|thread| thread.tid == Some(tid))?;
            processes.get(thread.process?)?.pid
        };
        let mut recorded = self.me.map(|me| self.forks.of(me)).unwrap_or_default();
        // The fork may have been overwritten.
        if self.knows_threads {
            recorded.extend(self.forks.of(child));
            recorded.insert(child);
        }
        let recorder = self.me.map(|me| process(me).unwrap_or(me));
        // Threads of this process are no part of the program.
        recorded.retain(|tid| recorder.is_none() || process(*tid) != recorder);
        self.recording.origin.recorder = recorder;
        self.recording.origin.recorded = recorded;
    }
}

impl Tracer {
    /// Begins. Each CPU keeps the last events that fit `buffer_kb`, or a size that seems to be enough.
    ///
    /// The clock is the kernel's CLOCK_MONOTONIC, with which events of ours are compared by way of
    /// [`platform::Os::now_and_monotonic`].
    ///
    /// # Errors
    /// If tracefs cannot be used, and what could be done about that.
    pub(crate) fn start(buffer_kb: Option<u32>) -> Result<Tracer, Refused> {
        let instance = Tracefs::find()?.instance()?;
        instance.set("trace_clock", "mono")?;
        let buffer_kb = buffer_kb.unwrap_or_else(|| usual_buffer_kb(&instance));
        instance.set("buffer_size_kb", &buffer_kb.to_string())?;
        // Kernels before 4.14 cannot say which process a thread belongs to.
        let _ = instance.set("options/record-tgid", "1");
        for event in EVENTS {
            if !instance.enable(event, None)? && event == NEEDED {
                return Err(Refused(format!("this kernel does not record {NEEDED}")));
            }
        }
        instance.start()?;
        instance.mark(WHO_AM_I)?;
        let me = platform::Platform::thread_id(&platform::Os);
        Ok(Tracer {
            instance,
            me,
            buffer_kb,
        })
    }

    /// Ends, and reads the recording. A copy of the kernel's own text goes to `text`, if there is one.
    pub(crate) fn finish(self, text: Option<&Path>) -> Result<Recorded, Failure> {
        // The first one may be overwritten by now.
        self.instance.mark(WHO_AM_I).map_err(Failure::failed)?;
        self.instance.stop().map_err(Failure::failed)?;
        let kept: Kept = self.instance.kept().map_err(Failure::failed)?;
        let source = self.instance.text().map_err(Failure::failed)?;
        let copy = text.map(std::fs::File::create).transpose();
        let copy = copy.map_err(|error| Failure::failed(format!("--trace-text: {error}")))?;
        let mut source = Listening {
            source: BufReader::with_capacity(1 << 20, source),
            copy: copy.map(io::BufWriter::new),
            seen: Vec::new(),
            me: None,
            forks: Forks::default(),
        };
        let mut recording = trace::read::read(&mut source, "the kernel's trace")
            .map_err(|error| Failure::failed(error.to_string()))?;
        recording.origin.clock = Clock::Monotonic;
        // The text says how many were overwritten, too, if the reader looked: the kernel's count is exact.
        let told = recording.losses.get(Loss::KernelEvents);
        let more = kept.lost.saturating_sub(told);
        recording.losses.add(Loss::KernelEvents, more);
        Ok(Recorded {
            recording,
            knows_threads: source.me.map(u64::from) == Some(self.me),
            buffer_kb: self.buffer_kb,
            me: source.me,
            forks: source.forks,
        })
    }
}

fn usual_buffer_kb(instance: &Instance) -> u32 {
    let cpus = std::fs::read_dir(instance.path().join("per_cpu"));
    let cpus = cpus.map_or(1, Iterator::count).max(1);
    BUFFER_KB.min(ALL_BUFFERS_KB / u32::try_from(cpus).unwrap_or(ALL_BUFFERS_KB))
}

/// The kernel's text on its way to the reader: copied, if wanted, and searched for the line that identifies
/// this thread, and for forks.
struct Listening<R> {
    source: R,
    copy: Option<io::BufWriter<std::fs::File>>,
    /// The line that was begun.
    seen: Vec<u8>,
    me: Option<u32>,
    forks: Forks,
}

impl<R> Listening<R> {
    fn listen(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.seen.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&self.seen);
                self.me = self.me.or_else(|| marked_by(&line));
                self.forks.line(&line);
                self.seen.clear();
            }
        }
    }
}

impl<R: Read> Read for Listening<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        if let Some(copy) = &mut self.copy {
            copy.write_all(&buffer[..count])?;
            if count == 0 {
                copy.flush()?;
            }
        }
        self.listen(&buffer[..count]);
        Ok(count)
    }
}

/// The kernel's number for the thread that made our mark, if a line of the kernel's text is that mark.
fn marked_by(line: &str) -> Option<u32> {
    let (head, _) = line.split_once(WHO_AM_I)?;
    // `comm-TID (TGID) [CPU] …`: a name may hold anything, so the number ends where the bracket begins.
    let (task, _) = head.rsplit_once('[')?;
    let task = task.rsplit_once('(').map_or(task, |(task, _)| task);
    task.trim_end().rsplit('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: our own mark identifies this thread, whatever its name; another line does not. Method: lines as
    /// Linux 6.18 prints them, with and without process numbers.
    #[test]
    fn the_mark_says_who_we_are() {
        let line = |task: &str| {
            format!("            {task} [000] ...1. 48443.193763: tracing_mark_write: {WHO_AM_I}\n")
        };
        for task in [
            "paceline-9802    (   9800)",
            "a-b (1)-9802  (-------)",
            "x-9802",
        ] {
            assert_eq!(marked_by(&line(task)), Some(9802), "{task}");
        }
        let other = "paceline-9802 [000] ..... 1.0: sched_switch: x";
        assert_eq!(marked_by(other), None);
    }

    /// Goal: the text arrives as it was, wherever pieces end. Method: pieces of 1 to 40 bytes.
    #[test]
    fn listening_changes_nothing() {
        let text = format!("# a\n  x-7 [001] ..... 1.0: print: {WHO_AM_I}\nlast");
        for piece in 1..40 {
            let mut source = Listening {
                source: BufReader::with_capacity(piece, text.as_bytes()),
                copy: None,
                seen: Vec::new(),
                me: None,
                forks: Forks::default(),
            };
            let mut got = String::new();
            let mut buffer = vec![0; piece];
            loop {
                match source.read(&mut buffer).unwrap() {
                    0 => break,
                    count => got += std::str::from_utf8(&buffer[..count]).unwrap(),
                }
            }
            assert_eq!((got.as_str(), source.me), (text.as_str(), Some(7)));
        }
    }
}
