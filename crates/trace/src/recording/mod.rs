//! What is known of one run.

mod losses;
mod marks;
mod names;
mod origin;

use std::collections::BTreeMap;

use event::{Cpu, Event, KernelEvent, Nanos, Task};

pub use losses::{Loss, Losses};
pub use marks::{Mark, MarkKind};
pub use names::{Name, Names};
pub use origin::{Clock, Origin, Wakers};

/// What is known of one run: everything on one clock, in nanoseconds since its origin.
///
/// Lists of events are best in the order of their times; those that are not are sorted when they are
/// written, equal times in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Where it comes from.
    pub origin: Origin,
    /// Programs; threads refer to them by position.
    pub processes: Vec<Process>,
    /// Threads. Events may name tasks that are not here; these are called by their number.
    pub threads: Vec<Thread>,
    /// What is known of the CPUs. Events may name others.
    pub cpus: Vec<CpuFacts>,
    /// What the kernel did.
    pub kernel: Vec<KernelEvent>,
    /// What programs said about themselves.
    pub marks: Vec<Mark>,
    /// The words in [`marks`](Recording::marks).
    pub names: Names,
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
    /// What is missing.
    pub losses: Losses,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// The kernel's number for it, where it has one.
    pub pid: Option<u32>,
}

impl Process {
    /// One of which only the name is known.
    pub fn new(name: impl Into<String>) -> Process {
        Process {
            name: name.into(),
            pid: None,
        }
    }
}

/// What is known of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuFacts {
    /// Which one.
    pub cpu: Cpu,
    /// What it can do at its highest frequency; the fastest CPU of the machine has 1024.
    pub capacity: Option<u32>,
    /// Its highest frequency in kHz.
    pub max_khz: Option<u32>,
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
    /// Its priority at the beginning, as Linux's kernel counts them, the lowest first: see [`nice`] and
    /// [`realtime`].
    pub priority: i32,
    /// The kernel's number for it, where it has one.
    pub tid: Option<u32>,
    /// The CPUs it may run on, where that is known; none: it is not.
    pub allowed: Option<Vec<Cpu>>,
}

impl Thread {
    /// A fair thread of nice 0.
    pub fn new(task: Task, name: impl Into<String>, process: Option<usize>) -> Thread {
        Thread {
            task,
            name: name.into(),
            process,
            priority: nice(0),
            tid: None,
            allowed: None,
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
    /// The position in [`Recording::processes`] of the program that counts; none: it is about the machine.
    pub process: Option<usize>,
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

impl Annotation {
    /// What the names of tracks begin with on which an explanation wrote what it found.
    pub const FOUND: &str = "paceline: ";

    /// Whether it was found by an explanation: then it is about what happened and no part of it.
    pub fn is_found(&self) -> bool {
        self.track.starts_with(Annotation::FOUND)
    }
}

impl Recording {
    /// From the first event to the last, marks, annotations and counters included; `None` if nothing
    /// happened.
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        self.span_with(
            self.kernel.iter().map(|event| event.time),
            self.jobs.iter().map(|event| event.time),
            self.marks.iter().map(|mark| mark.time),
        )
    }

    /// The same of one whose events and marks are in the order of their times.
    pub(crate) fn span_in_order(&self) -> Option<(Nanos, Nanos)> {
        fn ends<T>(list: &[T]) -> impl Iterator<Item = &T> {
            list.first().into_iter().chain(list.last())
        }
        self.span_with(
            ends(&self.kernel).map(|event| event.time),
            ends(&self.jobs).map(|event| event.time),
            ends(&self.marks).map(|mark| mark.time),
        )
    }

    fn span_with(
        &self,
        kernel: impl Iterator<Item = Nanos>,
        jobs: impl Iterator<Item = Nanos>,
        marks: impl Iterator<Item = Nanos>,
    ) -> Option<(Nanos, Nanos)> {
        let values = self.counters.iter().flat_map(|counter| &counter.values);
        let notes = self.annotations.iter();
        kernel
            .chain(jobs)
            .chain(marks)
            .chain(values.map(|(time, _)| *time))
            .chain(notes.flat_map(|note| [note.begin, note.end.max(note.begin)]))
            .map(|time| (time, time))
            .reduce(|(first, last), (time, _)| (first.min(time), last.max(time)))
    }
}
