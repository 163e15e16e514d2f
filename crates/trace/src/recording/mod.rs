//! The known facts of one run.

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

/// The known facts of one run: everything on one clock, in nanoseconds since its origin.
///
/// Lists of events are best in the order of their times; lists that are not are sorted when they are written,
/// equal times in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Its origin.
    pub origin: Origin,
    /// Programs; threads refer to them by position.
    pub processes: Vec<Process>,
    /// Threads. Events may name tasks that are not here; their names are their numbers.
    pub threads: Vec<Thread>,
    /// Facts about the CPUs. Events may name others.
    pub cpus: Vec<CpuFacts>,
    /// The kernel's events.
    pub kernel: Vec<KernelEvent>,
    /// The programs' marks.
    pub marks: Vec<Mark>,
    /// The words in [`marks`](Recording::marks).
    pub names: Names,
    /// The job system's events.
    pub jobs: Vec<Event>,
    /// The thread of each thread slot. Events of a thread slot that is not here are shown on a track of its
    /// own.
    pub slots: BTreeMap<u32, Task>,
    /// Labels of jobs, by the number in [`Created`](event::EventKind::Created).
    pub labels: Vec<String>,
    /// Values over time.
    pub counters: Vec<Counter>,
    /// Findings that were added afterwards.
    pub annotations: Vec<Annotation>,
    /// The missing parts.
    pub losses: Losses,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// The kernel's number for it, if it has one.
    pub pid: Option<u32>,
}

impl Process {
    /// A program of which only the name is known.
    pub fn new(name: impl Into<String>) -> Process {
        Process {
            name: name.into(),
            pid: None,
        }
    }
}

/// Facts about a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuFacts {
    /// The CPU.
    pub cpu: Cpu,
    /// Its capacity: the work it can do at its highest frequency; the fastest CPU of the machine has 1024.
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
    /// The kernel's number for it, if it has one.
    pub tid: Option<u32>,
    /// The CPUs it may run on; none: they are not known.
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
    /// The name of the counter.
    pub name: String,
    /// Its unit; empty for plain numbers.
    pub unit: String,
    /// The position in [`Recording::processes`] of the program that counts; none: it is about the machine.
    pub process: Option<usize>,
    /// The values, each with the time from which it is valid.
    pub values: Vec<(Nanos, i64)>,
}

/// A stretch of time with a name.
///
/// Annotations may overlap each other in any way, even those of one track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The thread that it belongs to; none: it is about the whole run.
    pub on: Option<Task>,
    /// The name of the track, such as "violations".
    pub track: String,
    /// Its text.
    pub name: String,
    /// Its beginning.
    pub begin: Nanos,
    /// Its end; an end before the beginning counts as equal to it.
    pub end: Nanos,
}

impl Annotation {
    /// The beginning of the names of tracks on which an explanation wrote its findings.
    pub const FOUND: &str = "paceline: ";

    /// Whether it is a finding of an explanation: then it is about the run's events and not one of them.
    pub fn is_found(&self) -> bool {
        self.track.starts_with(Annotation::FOUND)
    }
}

impl Recording {
    /// The name of a frame: its label, or "frame", and its number. `end`: what its
    /// [`FrameEnd`](event::EventKind::FrameEnd) says, 0 if that is missing.
    pub(crate) fn frame_name(&self, number: u64, end: u64) -> String {
        let label = usize::try_from(end >> 32)
            .ok()
            .and_then(|it| it.checked_sub(1));
        let label = label.and_then(|label| self.labels.get(label));
        match label {
            Some(label) if !label.is_empty() => format!("{label} {number}"),
            _ => format!("frame {number}"),
        }
    }

    /// From the first event to the last, marks, annotations and counters included; `None` if nothing
    /// happened.
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        self.span_with(
            self.kernel.iter().map(|event| event.time),
            self.jobs.iter().map(|event| event.time),
            self.marks.iter().map(|mark| mark.time),
        )
    }

    /// The same for a recording whose events and marks are in the order of their times.
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
