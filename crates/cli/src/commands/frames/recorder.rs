//! `--trace`: the events of the job system and the kernel, kept while the frames run and written afterwards.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use console::{Failure, output};
use event::{Cpu, Event, EventKind, Nanos, Sink, Task};
use paceline::{JobSystem, RingReader, Rings};
use platform::{Machine, Os};
use serde::Serialize;
use trace::write::settle_order;
use trace::{Loss, Process, Recording, Thread};

use super::clocks::Clocks;
use crate::kernel::{Recorded, Tracer};

/// How many events of the job system are kept: 256 MB. The rest is counted.
pub(super) const LIMIT: usize = 8_000_000;

/// Events that each thread has room for until the next frame ends: 2 MB.
const RING: usize = 1 << 16;

/// The recorder of a run.
pub(super) struct FrameRecorder {
    rings: Arc<Rings>,
    reader: RingReader,
    limit: usize,
    jobs: Vec<Event>,
    /// Events beyond the limit.
    beyond: u64,
    clocks: Clocks,
    kernel: Option<Tracer>,
    /// Where a copy of the kernel's text goes.
    text: Option<PathBuf>,
}

impl FrameRecorder {
    /// One that keeps the first `limit` events of the job system, and those of the kernel if that may be
    /// asked.
    pub(super) fn start(limit: usize, text: Option<PathBuf>) -> FrameRecorder {
        let (rings, reader) = Rings::new(RING);
        let kernel = Tracer::start(None);
        if let Err(refused) = &kernel {
            output::note(format!("note: the trace has only jobs: {refused}"));
        }
        let mut recorder = FrameRecorder {
            rings,
            reader,
            limit,
            jobs: Vec::new(),
            beyond: 0,
            clocks: Clocks::default(),
            kernel: kernel.ok(),
            text,
        };
        recorder.clocks.look();
        recorder
    }

    /// Where the job system's events go.
    pub(super) fn sink(&self) -> Arc<dyn Sink> {
        Arc::<Rings>::clone(&self.rings)
    }

    /// Makes room in the rings.
    pub(super) fn drain(&mut self) {
        self.clocks.look();
        let (jobs, beyond) = (&mut self.jobs, &mut self.beyond);
        self.reader.drain(|event| {
            if jobs.len() < self.limit {
                jobs.push(event)
            } else {
                *beyond += 1
            }
        });
    }

    /// Ends the job system and gives the recording.
    ///
    /// # Errors
    /// If the kernel's half cannot be read although it was recorded.
    pub(super) fn finish(mut self, js: JobSystem<Os>) -> Result<Recording, Failure> {
        let labels = js.labels();
        let threads = js.threads();
        // Workers record until they have ended.
        drop(js);
        self.drain();
        let kernel = self.kernel.take();
        let kernel = kernel.map(|tracer| tracer.finish(self.text.as_deref()));
        let kernel = kernel.transpose()?.and_then(joinable);
        let mut jobs = self.jobs;
        for event in &mut jobs {
            event.time = self.clocks.by_system(event.time);
            // Its deadline; one at the end of time stays there.
            if event.kind == EventKind::FrameBegin && event.arg < u64::MAX / 2 {
                event.arg = self.clocks.by_system(Nanos(event.arg)).0;
            }
        }
        jobs.sort_by_key(|event| event.time);
        let mut recording = join(kernel.unwrap_or_default(), jobs, &threads);
        if !recording.kernel.is_empty() {
            say_where(&mut recording);
        }
        recording.labels = labels.iter().map(|label| label.name.to_owned()).collect();
        let lost = self.beyond + self.reader.lost();
        recording.losses.add(Loss::JobEvents, lost);
        Ok(recording)
    }
}

/// The kernel's half, if its threads can be told to be ours.
fn joinable(kernel: Recorded) -> Option<Recording> {
    if !kernel.knows_threads {
        output::note(
            "note: the trace has only jobs: the kernel's numbers of threads are not those that this \
             process sees (a container?), or its buffer was too small",
        );
    }
    kernel.knows_threads.then_some(kernel.recording)
}

/// The thread slot of the thread that begins frames.
pub(in crate::commands) fn slot_of_main(jobs: &[Event]) -> Option<u32> {
    let mut frames = jobs
        .iter()
        .filter(|event| event.kind == EventKind::FrameBegin);
    frames.next().map(|event| event.slot)
}

/// Adds the events of jobs to the kernel's recording. Its threads are matched by number with `threads`, by
/// thread slot.
fn join(mut recording: Recording, jobs: Vec<Event>, threads: &[(u32, u64)]) -> Recording {
    let main = slot_of_main(&jobs);
    let process = our_process(&mut recording);
    let mut next = recording
        .threads
        .iter()
        .map(|thread| thread.task.0 + 1)
        .max();
    for &(slot, thread) in threads {
        let tid = u32::try_from(thread).ok();
        // The last of those with this number: ours are alive at the end.
        let known = recording.threads.iter_mut().rfind(|it| it.tid == tid);
        let task = match known {
            Some(known) => {
                known.process = Some(process);
                if Some(slot) == main {
                    known.name = "main".to_owned();
                }
                known.task
            }
            None => {
                let name = if Some(slot) == main {
                    "main".to_owned()
                } else {
                    format!("paceline {slot}")
                };
                let task = Task(next.unwrap_or(0));
                next = Some(task.0 + 1);
                recording.threads.push(Thread {
                    tid,
                    ..Thread::new(task, name, Some(process))
                });
                task
            }
        };
        recording.slots.insert(slot, task);
    }
    recording.jobs = jobs;
    settle_order(&mut recording);
    recording
}

/// Marks where our threads may run: where the process may, but for workers that left out a CPU.
fn say_where(recording: &mut Recording) {
    let cpus: Vec<Cpu> = Os.topology().allowed().iter().map(Cpu).collect();
    let moved = recording.jobs.iter();
    let moved = moved.filter(|event| event.kind == EventKind::Steered);
    let moved: BTreeSet<u32> = moved.map(|event| event.slot).collect();
    let slots = recording.slots.iter();
    let settled = slots.filter(|(slot, _)| !moved.contains(slot));
    let settled: BTreeSet<Task> = settled.map(|(_, task)| *task).collect();
    let threads = recording.threads.iter_mut();
    for thread in threads.filter(|thread| settled.contains(&thread.task)) {
        thread.allowed = Some(cpus.clone());
    }
}

/// The position of this process.
fn our_process(recording: &mut Recording) -> usize {
    let pid = Some(std::process::id());
    let processes = &mut recording.processes;
    let known = processes.iter().position(|process| process.pid == pid);
    let process = known.unwrap_or(processes.len());
    if known.is_none() {
        processes.push(Process {
            pid,
            ..Process::new("")
        });
    }
    processes[process].name = "paceline frames".to_owned();
    process
}

/// When the first frame began.
pub(super) fn first_frame(recording: &Recording) -> Nanos {
    let jobs = recording.jobs.iter();
    let mut frames = jobs.filter(|event| event.kind == EventKind::FrameBegin);
    frames.next().map_or(Nanos::ZERO, |event| event.time)
}

/// The part of `--json` about the trace.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct TracedFrames {
    /// Of the job system.
    pub(super) events: u64,
    pub(super) lost: u64,
    /// None: it was not recorded.
    pub(super) kernel: Option<OfKernel>,
    pub(super) bytes: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct OfKernel {
    pub(super) events: u64,
    pub(super) lost: u64,
}

/// Writes the file, and reports missing events.
pub(super) fn write(path: &Path, recording: &Recording) -> Result<TracedFrames, Failure> {
    let shown = path.display();
    let written = File::create(path).and_then(|file| trace::write::perfetto(recording, file));
    let written = written
        .map_err(|error| Failure::failed(format!("--trace: cannot write {shown}: {error}")))?;
    let events = recording.jobs.len() as u64;
    let lost = recording.losses.get(Loss::JobEvents);
    if lost > 0 {
        output::note(format!(
            "note: {shown} holds {events} events of jobs; {lost} more came and were not kept; use fewer \
             --frames to see all"
        ));
    }
    let of_kernel = OfKernel {
        events: recording.kernel.len() as u64,
        lost: recording.losses.get(Loss::KernelEvents),
    };
    if of_kernel.lost > 0 {
        output::note(format!(
            "note: {shown} holds the last {} events of the kernel; {} came before; use fewer --frames to \
             see all",
            of_kernel.events, of_kernel.lost
        ));
    }
    Ok(TracedFrames {
        events,
        lost,
        kernel: (!recording.kernel.is_empty()).then_some(of_kernel),
        bytes: written.bytes,
    })
}

#[cfg(test)]
mod tests;
