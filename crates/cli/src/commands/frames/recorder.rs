//! `--trace`: what the job system did, kept while the frames run and written afterwards.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use event::{Event, EventKind, MemoryLog, MemorySink, Sink, Task};
use paceline::{JobSystem, Label};
use platform::Os;
use serde::Serialize;
use trace::{Loss, Losses, Process, Recording, Thread};

use crate::failure::Failure;
use crate::output;

/// How many events are kept: about 160 MB, and as much in the file. The rest is counted.
pub(in crate::commands) const LIMIT: u64 = 4_000_000;

/// A sink for so many events and no more.
struct Bounded {
    sink: MemorySink,
    limit: u64,
    came: AtomicU64,
}

impl Sink for Bounded {
    fn record(&self, event: &Event) {
        if self.came.fetch_add(1, Ordering::Relaxed) < self.limit {
            self.sink.record(event);
        }
    }
}

/// The recorder of a run.
pub(in crate::commands) struct Recorder {
    sink: Arc<Bounded>,
    log: MemoryLog,
}

impl Recorder {
    /// One that keeps the first `limit` events.
    pub(in crate::commands) fn new(limit: u64) -> Recorder {
        let (sink, log) = MemorySink::new();
        let came = AtomicU64::new(0);
        let sink = Arc::new(Bounded { sink, limit, came });
        Recorder { sink, log }
    }

    /// Where the job system's events go.
    pub(in crate::commands) fn sink(&self) -> Arc<dyn Sink> {
        Arc::<Bounded>::clone(&self.sink)
    }

    /// Ends the job system and gives what was recorded. This thread is the only one outside of it that
    /// used it.
    pub(super) fn finish(self, js: JobSystem<Os>) -> Recording {
        let labels = js.labels();
        // Workers record until they have ended.
        drop(js);
        let (jobs, lost) = self.recorded();
        recording(jobs, &labels, lost)
    }

    /// What was recorded up to now, and how many events were not kept.
    pub(in crate::commands) fn recorded(&self) -> (Vec<Event>, u64) {
        let came = self.sink.came.load(Ordering::Relaxed);
        (self.log.drain(), came.saturating_sub(self.sink.limit))
    }
}

/// The seat of the thread that begins frames.
pub(in crate::commands) fn seat_of_main(jobs: &[Event]) -> Option<u32> {
    let mut frames = jobs
        .iter()
        .filter(|event| event.kind == EventKind::FrameBegin);
    frames.next().map(|event| event.seat)
}

/// Gives events their threads and names.
fn recording(jobs: Vec<Event>, labels: &[Label], lost: u64) -> Recording {
    // Only this thread begins frames.
    let main = seat_of_main(&jobs);
    let mut seats: BTreeMap<u32, Task> = BTreeMap::new();
    for event in &jobs {
        let task = if Some(event.seat) == main {
            0
        } else {
            event.seat.saturating_add(1)
        };
        seats.insert(event.seat, Task(task));
    }
    let thread = |(&seat, &task): (&u32, &Task)| {
        let name = match task {
            Task(0) => "main".to_owned(),
            _ => format!("paceline {seat}"),
        };
        Thread::new(task, name, Some(0))
    };
    Recording {
        processes: vec![Process::new("paceline frames")],
        threads: seats.iter().map(thread).collect(),
        jobs,
        seats,
        labels: labels.iter().map(|label| label.name.to_owned()).collect(),
        losses: Losses::from_iter([(Loss::JobEvents, lost)]),
        ..Recording::default()
    }
}

/// What `--json` says about the trace.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Traced {
    pub(super) events: u64,
    pub(super) lost: u64,
    pub(super) bytes: u64,
}

/// Writes the file, and says so if events are missing from it.
pub(super) fn write(path: &Path, recording: &Recording) -> Result<Traced, Failure> {
    let shown = path.display();
    let written = File::create(path).and_then(|file| trace::write::perfetto(recording, file));
    let written = written
        .map_err(|error| Failure::failed(format!("--trace: cannot write {shown}: {error}")))?;
    let events = recording.jobs.len() as u64;
    let lost = recording.losses.get(Loss::JobEvents);
    if lost > 0 {
        output::note(format!(
            "note: {shown} holds the first {events} events; {lost} more came and were not kept; use \
             fewer --frames to see all"
        ));
    }
    let bytes = written.bytes;
    Ok(Traced {
        events,
        lost,
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use event::Nanos;

    use super::*;

    fn event(seat: u32, kind: EventKind) -> Event {
        let (time, job, arg) = (Nanos(u64::from(seat)), 1, 0);
        Event {
            time,
            job,
            arg,
            seat,
            kind,
        }
    }

    /// Goal: a recording has a bound, and what came after it is counted. Method: a sink for three gets
    /// five.
    #[test]
    fn more_events_than_fit_are_counted() {
        let recorder = Recorder::new(3);
        let sink = recorder.sink();
        (0..5).for_each(|seat| sink.record(&event(seat, EventKind::Park)));
        let js = paceline::Builder::new().workers(0).build().unwrap();
        let recording = recorder.finish(js);
        let seats: Vec<u32> = recording.jobs.iter().map(|event| event.seat).collect();
        let lost = recording.losses.get(Loss::JobEvents);
        assert_eq!((seats, lost), (vec![0, 1, 2], 2));
    }

    /// Goal: the thread that begins frames is "main", the others are workers. Method: a frame on seat 2.
    #[test]
    fn whoever_begins_frames_is_the_main_thread() {
        let events = [event(0, EventKind::Park), event(2, EventKind::FrameBegin)];
        let recording = recording(events.to_vec(), &[], 0);
        let names: Vec<_> = recording
            .threads
            .iter()
            .map(|t| (t.task.0, &t.name[..]))
            .collect();
        assert_eq!(names, [(1, "paceline 0"), (0, "main")]);
        assert_eq!(
            recording.seats,
            BTreeMap::from([(0, Task(1)), (2, Task(0))])
        );
    }
}
