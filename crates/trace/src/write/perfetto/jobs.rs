//! The job system's events, on the tracks of its threads: bodies and waits as slices, the rest as instants,
//! dependencies and wake-ups as arrows, and the number of ready jobs.
//!
//! Slices of one track must nest, and the format's ends have no names: each ends the innermost. So every
//! track has a stack here. An end of an outer slice ends the ones inside of it, too; a span of the program's
//! own whose end is still to come goes on as another slice. An end without a slice is left out. Slices that
//! are open at the end of the recording end with it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use event::{Event, EventKind, Interfered, Nanos, Resized, Steered, Withheld};

use super::arrows::Arrows;
use super::messages::Type;
use super::packets::{Note, Packets, TrackMark};
use super::tracks::WrittenTracks;
use crate::{Annotation, Recording};

/// Categories, for filters.
const JOB: &str = "job";
const WAIT: &str = "wait";
const WORKER: &str = "worker";
const SPAN: &str = "span";

/// An open slice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenSlice {
    Body(u64),
    Wait(u64),
    /// Of the program's own; the number of its label.
    Span(u64),
    /// A rest in the middle of a background job.
    MakesWay,
}

/// The state of the tracks while events are written.
struct JobWriter<'a, 'r, 'o> {
    recording: &'r Recording,
    tracks: &'a mut WrittenTracks<'r>,
    packets: &'a mut Packets<'o>,
    arrows: Arrows,
    /// By job: the number of its label.
    labels: HashMap<u64, u64>,
    /// By track: its open slices, the innermost last.
    open: BTreeMap<u64, Vec<OpenSlice>>,
    /// By thread slot and label: how many ends of spans are still to come.
    span_ends: HashMap<(u32, u64), u64>,
    ready: HashSet<u64>,
    /// By label: the track of the program's values.
    counters: BTreeMap<u64, u64>,
    /// The track of the number of ready jobs.
    ready_track: Option<u64>,
}

/// Writes events that are in the order of their times; `end` is the end of the recording.
pub(super) fn write<'r>(
    events: &[Event],
    end: Nanos,
    recording: &'r Recording,
    tracks: &mut WrittenTracks<'r>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let mut jobs = JobWriter {
        recording,
        tracks,
        packets,
        arrows: Arrows::find(events),
        labels: HashMap::new(),
        open: BTreeMap::new(),
        span_ends: HashMap::new(),
        ready: HashSet::new(),
        counters: BTreeMap::new(),
        ready_track: None,
    };
    for event in events.iter().filter(|it| it.kind == EventKind::SpanEnd) {
        *jobs.span_ends.entry((event.slot, event.arg)).or_default() += 1;
    }
    for (at, event) in events.iter().enumerate() {
        jobs.write(at, event)?;
    }
    for (track, open) in std::mem::take(&mut jobs.open) {
        for _ in open {
            jobs.packets
                .mark(TrackMark::picture(track, end, Type::SliceEnd))?;
            jobs.packets.written.unfinished += 1;
        }
    }
    Ok(())
}

/// How a job ended, by the number in its events.
fn outcome(code: u64) -> &'static str {
    match code {
        0 => "done",
        1 => "panicked",
        2 => "cancelled",
        3 => "timed out",
        4 => "deadlock",
        _ => "unknown",
    }
}

/// Why no worker was woken, by the number in the event.
fn withheld(number: u64) -> &'static str {
    match Withheld::from_code(number) {
        Some(Withheld::Searched) => "a worker is looking for work",
        Some(Withheld::NobodySleeps) => "no worker sleeps",
        Some(Withheld::Batch) => "more of the batch will come",
        _ => "unknown",
    }
}

/// Why a worker changed its CPUs, by the number in the event.
fn steered(number: u64) -> &'static str {
    match Steered::from_code(number) {
        Some(Steered::InTheWay) => "in its waker's way",
        Some(Steered::Over) => "that is over",
        Some(Steered::Late) => "it started late",
        _ => "unknown",
    }
}

/// Why the number of workers was changed, by the number in the event.
fn resized(number: u64) -> &'static str {
    match Resized::from_code(number) {
        Some(Resized::Asked) => "asked for",
        Some(Resized::Narrower) => "fewer CPUs may be used",
        Some(Resized::Wider) => "more CPUs may be used",
        Some(Resized::Interference) => "other threads want the CPUs",
        _ => "unknown",
    }
}

/// The decision about threads that others keep from running, by the number in the event.
fn interfered(number: u64) -> &'static str {
    match Interfered::from_code(number) {
        Some(Interfered::Noticed) => "threads wait for CPUs",
        Some(Interfered::Fewer) => "fewer workers, as a trial",
        Some(Interfered::Kept) => "fewer workers are undisturbed and get as much CPU time",
        Some(Interfered::Restored) => "fewer workers are no better off: all are back",
        Some(Interfered::Probed) => "all are back, to see whether CPUs are free",
        Some(Interfered::Over) => "it is over",
        _ => "unknown",
    }
}

/// The events of workers that are instants, and their notes.
fn of_worker(event: &Event) -> Option<(&'static str, Vec<Note<'static>>)> {
    let Event { job, arg, .. } = *event;
    let (high, low) = (arg >> 32, arg & u64::from(u32::MAX));
    let number = |key| vec![Note::Number(key, arg)];
    Some(match event.kind {
        EventKind::Split => (
            "split",
            vec![
                Note::Number("job", job),
                Note::Number("first", high),
                Note::Number("items", low),
            ],
        ),
        EventKind::Steal => ("steal", number("from_slot")),
        EventKind::Wake => ("wake", number("slot")),
        EventKind::Park => ("park", vec![]),
        EventKind::Unpark => ("unpark", vec![]),
        EventKind::Promoted => ("promoted", vec![Note::Number("job", job)]),
        EventKind::Spare => ("spare", number("slot")),
        EventKind::Resized => (
            "resized",
            vec![
                Note::Text("why", resized(high)),
                Note::Number("workers", low),
            ],
        ),
        EventKind::Interference => (
            "interference",
            vec![
                Note::Text("decided", interfered(high)),
                Note::Number("workers", low),
                Note::Number("waited_thousandths", job >> 32),
                Note::Number("switches_per_1000_frames", job & u64::from(u32::MAX)),
            ],
        ),
        EventKind::WakeWithheld => (
            "wakes no worker",
            vec![
                Note::Text("why", withheld(high)),
                Note::Number("tickets", low),
            ],
        ),
        EventKind::Steered => {
            let mut notes = vec![Note::Text("why", steered(high))];
            if let Some(cpu) = low.checked_sub(1) {
                notes.push(Note::Number("cpu", cpu));
            }
            ("steered", notes)
        }
        EventKind::MaskRestored => ("all CPUs given back", number("slot")),
        EventKind::Nudged => ("kernel asked to look again", number("slot")),
        EventKind::Recording if arg == 0 => ("recording off", vec![]),
        EventKind::Recording => ("recording on", vec![]),
        _ => return None,
    })
}

impl JobWriter<'_, '_, '_> {
    fn write(&mut self, at: usize, event: &Event) -> io::Result<()> {
        self.count_ready(event)?;
        let Event { job, arg, .. } = *event;
        match event.kind {
            EventKind::Created => drop(self.labels.insert(job, arg)),
            EventKind::Begin => self.begin(at, event, OpenSlice::Body(job))?,
            EventKind::End => self.end(at, event, OpenSlice::Body(job), &[])?,
            EventKind::WaitBegin => self.begin(at, event, OpenSlice::Wait(job))?,
            EventKind::WaitEnd => {
                let notes = [Note::Text("outcome", outcome(arg))];
                self.end(at, event, OpenSlice::Wait(job), &notes)?;
            }
            EventKind::SpanBegin => self.begin(at, event, OpenSlice::Span(arg))?,
            EventKind::SpanEnd => {
                if let Some(ends) = self.span_ends.get_mut(&(event.slot, arg)) {
                    *ends -= 1;
                }
                self.end(at, event, OpenSlice::Span(arg), &[])?;
            }
            EventKind::Counter => self.value(event)?,
            EventKind::MakesWay => self.begin(at, event, OpenSlice::MakesWay)?,
            EventKind::GoesOn => self.end(at, event, OpenSlice::MakesWay, &[])?,
            EventKind::Completed if arg != 0 => {
                let name = format!("{} {}", self.label(job), outcome(arg));
                self.instant(at, event, JOB, &name, &[Note::Number("job", job)])?;
            }
            EventKind::Raised => {
                let notes = [Note::Number("job", job), Note::Number("for", arg)];
                self.instant(at, event, WAIT, "raised", &notes)?;
            }
            _ => {
                if let Some((name, notes)) = of_worker(event) {
                    let notes = notes.as_slice();
                    self.instant(at, event, WORKER, name, notes)?;
                }
            }
        }
        Ok(())
    }

    fn track_of(&mut self, event: &Event) -> io::Result<u64> {
        self.tracks.slot(self.recording, event.slot, self.packets)
    }

    /// The label of a job.
    fn label(&self, job: u64) -> String {
        let Some(&number) = self.labels.get(&job) else {
            return "job".to_owned();
        };
        self.label_of(number)
    }

    /// The label with this number.
    fn label_of(&self, number: u64) -> String {
        let known = usize::try_from(number).ok();
        match known.and_then(|number| self.recording.labels.get(number)) {
            Some(label) if !label.is_empty() => label.clone(),
            _ => format!("label {number}"),
        }
    }

    /// A value of the program's, on a track of its own.
    fn value(&mut self, event: &Event) -> io::Result<()> {
        let label = event.job;
        let track = match self.counters.get(&label) {
            Some(&track) => track,
            None => {
                let name = self.label_of(label);
                self.tracks.counter(&name, "", None, self.packets)?
            }
        };
        self.counters.insert(label, track);
        self.packets
            .value(track, event.time, event.arg as i64, true)
    }

    fn begin(&mut self, at: usize, event: &Event, slice: OpenSlice) -> io::Result<()> {
        let track = self.track_of(event)?;
        let (category, name) = match slice {
            OpenSlice::Body(job) => (JOB, self.label(job)),
            OpenSlice::Wait(job) => (WAIT, format!("wait for {}", self.label(job))),
            OpenSlice::Span(label) => (SPAN, self.label_of(label)),
            OpenSlice::MakesWay => (WORKER, "makes way".to_owned()),
        };
        let of_job = [Note::Number("job", event.job)];
        let notes = match slice {
            OpenSlice::Span(_) | OpenSlice::MakesWay => &[][..],
            _ => &of_job,
        };
        self.open.entry(track).or_default().push(slice);
        self.packets.mark(TrackMark {
            category,
            name: &name,
            notes,
            ends: self.arrows.ends_at(at),
            ..TrackMark::picture(track, event.time, Type::SliceBegin)
        })
    }

    fn end(
        &mut self,
        at: usize,
        event: &Event,
        slice: OpenSlice,
        notes: &[Note<'_>],
    ) -> io::Result<()> {
        let track = self.track_of(event)?;
        let stack = self.open.entry(track).or_default();
        let Some(depth) = stack.iter().rposition(|open| *open == slice) else {
            self.packets.written.unbegun += 1;
            return Ok(());
        };
        let inner = stack.split_off(depth + 1);
        stack.pop();
        for _ in &inner {
            self.packets
                .mark(TrackMark::picture(track, event.time, Type::SliceEnd))?;
        }
        self.packets.mark(TrackMark {
            notes,
            starts: self.arrows.starts_at(at),
            ..TrackMark::picture(track, event.time, Type::SliceEnd)
        })?;
        for slice in inner {
            self.go_on(event, track, slice)?;
        }
        Ok(())
    }

    /// A slice inside of the one that ends with this event has been ended, too. If it is a span that ends
    /// later, the rest of it is a slice of its own.
    fn go_on(&mut self, event: &Event, track: u64, slice: OpenSlice) -> io::Result<()> {
        let OpenSlice::Span(label) = slice else {
            self.packets.written.unfinished += 1;
            return Ok(());
        };
        let ends = self.span_ends.get(&(event.slot, label));
        if ends.is_none_or(|&ends| ends == 0) {
            self.packets.written.unfinished += 1;
            return Ok(());
        }
        self.packets.written.split += 1;
        self.open.entry(track).or_default().push(slice);
        let name = self.label_of(label);
        self.packets.mark(TrackMark {
            category: SPAN,
            name: &name,
            ..TrackMark::picture(track, event.time, Type::SliceBegin)
        })
    }

    fn instant(
        &mut self,
        at: usize,
        event: &Event,
        category: &'static str,
        name: &str,
        notes: &[Note<'_>],
    ) -> io::Result<()> {
        let track = self.track_of(event)?;
        self.packets.mark(TrackMark {
            category,
            name,
            notes,
            starts: self.arrows.starts_at(at),
            ends: self.arrows.ends_at(at),
            ..TrackMark::picture(track, event.time, Type::Instant)
        })
    }

    /// A job is ready until it begins, or ends without a body.
    fn count_ready(&mut self, event: &Event) -> io::Result<()> {
        let has_changed = match event.kind {
            EventKind::Ready => self.ready.insert(event.job),
            EventKind::Claimed | EventKind::Begin | EventKind::Completed => {
                self.ready.remove(&event.job)
            }
            _ => false,
        };
        if !has_changed {
            return Ok(());
        }
        let track = match self.ready_track {
            Some(track) => track,
            None => self.tracks.counter("ready jobs", "", None, self.packets)?,
        };
        self.ready_track = Some(track);
        let ready = self.ready.len() as i64;
        self.packets.value(track, event.time, ready, true)
    }
}

/// The frames of a recording, and how many of them have no end, or no beginning.
///
/// They are not slices of the thread they began on: frames may overlap each other and the bodies of jobs.
pub(super) fn frames(
    events: &[Event],
    end: Nanos,
    recording: &Recording,
) -> (Vec<Annotation>, u64, u64) {
    let mut frames = Vec::new();
    let mut unbegun = 0;
    let mut open: BTreeMap<u64, Nanos> = BTreeMap::new();
    let frame = |name: String, outcome: &str, begin: Nanos, end: Nanos| Annotation {
        on: None,
        track: "frames".to_owned(),
        name: format!("{name}{outcome}"),
        begin,
        end,
    };
    for event in events {
        match event.kind {
            EventKind::FrameBegin => drop(open.insert(event.job, event.time)),
            EventKind::FrameEnd => match open.remove(&event.job) {
                Some(begin) => {
                    let has_missed = event.arg & u64::from(u32::MAX) == 1;
                    let missed = if has_missed { ", missed" } else { "" };
                    let name = recording.frame_name(event.job, event.arg);
                    frames.push(frame(name, missed, begin, event.time));
                }
                None => unbegun += 1,
            },
            _ => {}
        }
    }
    let unfinished = open.len() as u64;
    let rest = open.into_iter();
    frames.extend(
        rest.map(|(number, begin)| {
            frame(recording.frame_name(number, 0), ", unfinished", begin, end)
        }),
    );
    (frames, unfinished, unbegun)
}
