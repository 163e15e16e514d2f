//! What is known of one run.

use std::collections::BTreeMap;

use event::{Event, KernelEvent, Nanos, Task};

/// What is known of one run: everything on one clock, in nanoseconds since its origin.
///
/// Lists of events are best in the order of their times; those that are not are sorted when they are
/// written, equal times in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Programs, by name; threads refer to them by position.
    pub processes: Vec<String>,
    /// Threads. Events may name tasks that are not here; these are called by their number.
    pub threads: Vec<Thread>,
    /// What the kernel did.
    pub kernel: Vec<KernelEvent>,
    /// What the job system did.
    pub jobs: Vec<Event>,
    /// Whose seat each is. What happens on a seat that is not here is shown on a track of its own.
    pub seats: BTreeMap<u32, Task>,
    /// Labels of jobs, by the number in [`Created`](event::EventKind::Created).
    pub labels: Vec<String>,
    /// Values over time.
    pub counters: Vec<Counter>,
    /// What was found out afterwards.
    pub annotations: Vec<Annotation>,
    /// How many events came when there was no room for them any more.
    pub lost: u64,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub task: Task,
    /// Its name. Kernels keep 15 bytes of it; here it may be longer.
    pub name: String,
    /// The position of its program in [`Recording::processes`]; none: it is a program by itself.
    pub process: Option<usize>,
    /// Its priority as Linux's kernel counts them, the lowest first: see [`nice`] and [`realtime`].
    pub priority: i32,
}

impl Thread {
    /// A fair thread of nice 0.
    pub fn new(task: Task, name: impl Into<String>, process: Option<usize>) -> Thread {
        Thread {
            task,
            name: name.into(),
            process,
            priority: nice(0),
        }
    }
}

/// The kernel's number for a fair thread of this niceness: 100 to 139.
pub fn nice(nice: i8) -> i32 {
    120 + i32::from(nice)
}

/// The kernel's number for a thread of `SCHED_FIFO` or `SCHED_RR` with this priority, 1 to 99: 98 to 0.
pub fn realtime(priority: u8) -> i32 {
    99 - i32::from(priority)
}

/// A value over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// What is counted.
    pub name: String,
    /// In what; empty for plain numbers.
    pub unit: String,
    /// From when on it is how much.
    pub values: Vec<(Nanos, i64)>,
}

/// A stretch of time with a name.
///
/// Annotations may overlap each other in any way, also those of one track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Whose track it is on; none: it is about the whole run.
    pub on: Option<Task>,
    /// The name of the track, such as "violations".
    pub track: String,
    /// What it says.
    pub name: String,
    /// From when.
    pub begin: Nanos,
    /// Until when; an end before the beginning counts as equal to it.
    pub end: Nanos,
}

impl Recording {
    /// From the first event to the last, annotations and counters included; `None` if nothing
    /// happened.
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        let kernel = self.kernel.iter().map(|event| event.time);
        let jobs = self.jobs.iter().map(|event| event.time);
        let values = self.counters.iter().flat_map(|counter| &counter.values);
        let notes = self.annotations.iter();
        kernel
            .chain(jobs)
            .chain(values.map(|(time, _)| *time))
            .chain(notes.flat_map(|note| [note.begin, note.end.max(note.begin)]))
            .map(|time| (time, time))
            .reduce(|(first, last), (time, _)| (first.min(time), last.max(time)))
    }
}
