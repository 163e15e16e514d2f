//! Perfetto's protobuf traces, which `ui.perfetto.dev` and its trace processor read.
//!
//! Kernel events are written as Linux's tracer records them, so that Perfetto makes its own scheduler view,
//! thread states and wake-ups of them. The job system's events are on the tracks of the same threads.
//!
//! Field numbers are from `protos/perfetto/trace` of Perfetto's repository.
//!
//! Invariants
//! - The file is written in pieces; in memory are the recording, the state of its jobs and threads, and one
//!   piece of the file.
//! - The events of one track are in the order of their times, and every slice that begins ends.
//! - Equal recordings give equal bytes: nothing is iterated in hash order.

#[cfg(feature = "read")]
mod annotate;
mod arrows;
mod facts;
mod jobs;
mod kernel;
mod lanes;
mod marks;
mod messages;
mod numbers;
mod packets;
mod throttled;
mod tracks;

use std::borrow::Cow;
use std::io::{self, Write};

use event::Nanos;

#[cfg(feature = "read")]
pub use self::annotate::annotate;
use self::packets::Packets;
use self::tracks::WrittenTracks;
use super::Written;
use crate::layout::Layout;
use crate::{Annotation, Loss, Recording};

/// Writes a recording as a Perfetto trace.
///
/// Threads and processes have the kernel's numbers where it gave some; else a thread has its task's number
/// plus one, and a process that of its first thread. A dependency is an arrow from where the predecessor ends
/// to where the successor begins. If events were lost, a mark on the track "recording" says how many.
///
/// [`read`](crate::read::read) gets the recording back: its events in the order of their times, kernel events
/// up to a nanosecond apart (see [`Written::delayed`]), priorities with the events that show them, gaps
/// without the number of what is missing, and slices with an end each.
///
/// The writer gets pieces of about 64 KiB and needs no buffer of its own.
///
/// # Errors
/// Those of the writer; the file up to then is a shorter trace.
///
/// ```
/// use event::{Event, EventKind, Nanos, Task};
///
/// let mut recording = paceline_trace::Recording {
///     processes: vec![paceline_trace::Process::new("game")],
///     threads: vec![paceline_trace::Thread::new(Task(0), "main", Some(0))],
///     labels: vec!["physics".into()],
///     ..paceline_trace::Recording::default()
/// };
/// recording.slots.insert(0, Task(0));
/// for (time, kind) in [(1_000, EventKind::Created), (2_000, EventKind::Begin), (9_000, EventKind::End)] {
///     let (job, arg, slot) = (77, 0, 0);
///     recording.jobs.push(Event { time: Nanos(time), job, arg, slot, kind });
/// }
/// let mut file = Vec::new();
/// let written = paceline_trace::write::perfetto(&recording, &mut file)?;
/// assert_eq!(written.bytes, file.len() as u64);
/// assert_eq!(written.unfinished, 0);
/// assert!(file.windows(7).any(|word| word == b"physics"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn perfetto(recording: &Recording, mut out: impl Write) -> io::Result<Written> {
    // Compiled once, not for each kind of writer.
    write_file(recording, &mut out)
}

fn write_file(recording: &Recording, out: &mut dyn Write) -> io::Result<Written> {
    let (begin, end) = recording.span().unwrap_or_default();
    let kernel = in_order(&recording.kernel, |event| event.time);
    let events = in_order(&recording.jobs, |event| event.time);
    let mut packets = Packets::begin(out, begin, facts::head(recording, &kernel))?;
    let mut layout = Layout::Unknown;
    if let Some(release) = &recording.origin.kernel {
        packets.release(release)?;
        layout = Layout::of(release);
    }
    let mut tracks = WrittenTracks::introduce(recording, &mut packets)?;
    facts::write(recording, &events, &tracks, &mut packets)?;

    kernel::write(&kernel, (begin, layout), &mut tracks, &mut packets)?;
    throttled::write(&kernel, end, &mut tracks, &mut packets)?;

    let marks = in_order(&recording.marks, |mark| mark.time);
    marks::write(&marks, end, recording, &mut tracks, &mut packets)?;

    jobs::write(&events, end, recording, &mut tracks, &mut packets)?;

    let (frames, unfinished, unbegun) = jobs::frames(&events, end, recording);
    packets.written.unfinished += unfinished;
    packets.written.unbegun += unbegun;
    let lost = recording.losses.get(Loss::JobEvents);
    let lost = (lost > 0).then(|| mark_lost(lost, end));
    lanes::write(frames.iter().chain(&lost), true, &mut tracks, &mut packets)?;
    lanes::write(
        recording.annotations.iter(),
        false,
        &mut tracks,
        &mut packets,
    )?;

    for counter in &recording.counters {
        let (name, unit, process) = (&counter.name, &counter.unit, counter.process);
        let track = tracks.counter(name, unit, process, &mut packets)?;
        for &(time, value) in in_order(&counter.values, |value| value.0).iter() {
            packets.value(track, time, value, false)?;
        }
    }
    packets.finish()
}

/// The items in the order of their times, those of one time as they were.
fn in_order<T: Clone>(items: &[T], time: impl Fn(&T) -> Nanos) -> Cow<'_, [T]> {
    if items.is_sorted_by_key(&time) {
        return Cow::Borrowed(items);
    }
    let mut sorted = items.to_vec();
    sorted.sort_by_key(time);
    Cow::Owned(sorted)
}

fn mark_lost(events: u64, end: Nanos) -> Annotation {
    Annotation {
        on: None,
        track: "recording".to_owned(),
        name: format!("from here on {events} events are not recorded"),
        begin: end,
        end,
    }
}

#[cfg(all(test, feature = "read"))]
mod asked;
#[cfg(all(test, feature = "read"))]
mod round_trip;
#[cfg(all(test, feature = "read"))]
mod tests;
