//! Tracks: the threads that they belong to, and their events as marks of threads.
//!
//! A thread's own track holds slices that nest. Events on other tracks, of a process or without an owner,
//! become slices that need not nest: each has the track's number to tell it from others.

use std::collections::HashMap;

use event::Nanos;

use super::track_events::TrackEventKind;
use super::wire::{Fields, Row, Value};
use crate::read::builder::{Builder, Trust};
use crate::{Annotation, Counter, Loss, MarkKind, Name};

/// The tid of events on tracks without an owner. No kernel gives it out.
pub(super) const NOBODY: u32 = u32::MAX - 1;

/// The largest number of tracks above one.
const DEPTH: usize = 16;

/// The descriptor of a track.
#[derive(Clone, Debug, Default)]
struct Track {
    parent: Option<u64>,
    /// Process and thread.
    thread: Option<(u32, u32)>,
    process: Option<u32>,
    name: String,
    counter: Option<Unit>,
}

/// How a counter counts.
#[derive(Clone, Debug, Default)]
struct Unit {
    name: String,
    factor: i64,
    is_steps: bool,
}

/// The owner of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TrackOwner {
    /// The thread that its marks belong to.
    tid: u32,
    /// Whether it is that thread's own track.
    is_threads: bool,
    /// Whether a thread is above it.
    has_thread: bool,
    /// The process, if one is above it; 0: none.
    pid: u32,
}

/// An open slice of a track that belongs to no thread.
enum OpenTrackSlice {
    Slice { name: Name, cookie: u64 },
    Note { name: Name, begin: u64 },
}

/// All tracks of a file.
#[derive(Default)]
pub(super) struct ReadTracks {
    known: HashMap<u64, Track>,
    places: HashMap<u64, TrackOwner>,
    open: HashMap<u64, Vec<OpenTrackSlice>>,
    /// By track: its counter's position, and its current value.
    counters: HashMap<u64, (usize, i64)>,
    /// With the numbers of their processes, 0 for none.
    pub(super) values: Vec<(u32, Counter)>,
    pub(super) notes: Vec<Annotation>,
}

/// The names in a track's descriptor: process, thread and its name, the process's name.
#[derive(Clone, Debug, Default)]
pub(super) struct NamedThread {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) thread: Vec<u8>,
    pub(super) process: Vec<u8>,
}

impl NamedThread {
    pub(super) fn tell(&self, builder: &mut Builder) {
        if self.tid != 0 {
            builder.thread_name(self.tid, &self.thread, Trust::List);
            builder.belongs(self.tid, self.pid, Trust::List);
        }
        if self.pid != 0 && !self.process.is_empty() {
            builder.process_name(self.pid, &self.process, Trust::List);
        }
    }
}

impl ReadTracks {
    /// Learns of a track; `None` if the message is broken.
    pub(super) fn describe(&mut self, message: &[u8]) -> Option<Option<NamedThread>> {
        let mut track = Track::default();
        let mut named = None;
        let mut uuid = 0;
        let mut fields = Fields::of(message);
        for (field, value) in &mut fields {
            match (field, value) {
                (1, value) => uuid = value.number(),
                (2 | 10 | 13, Value::Bytes(name)) => {
                    track.name = String::from_utf8_lossy(name).into_owned();
                }
                (3, Value::Bytes(process)) => {
                    let row = Row::of(process)?;
                    track.process = Some(row.number(1) as u32);
                    let name = match row.bytes(6) {
                        b"" => row.bytes(2),
                        name => name,
                    };
                    named = Some(NamedThread {
                        pid: row.number(1) as u32,
                        process: name.to_vec(),
                        ..NamedThread::default()
                    });
                }
                (4, Value::Bytes(thread)) => {
                    let row = Row::of(thread)?;
                    let (pid, tid) = (row.number(1) as u32, row.number(2) as u32);
                    track.thread = Some((pid, tid));
                    named = Some(NamedThread {
                        pid,
                        tid,
                        thread: row.bytes(5).to_vec(),
                        process: Vec::new(),
                    });
                }
                (5, value) => track.parent = Some(value.number()),
                (8, Value::Bytes(counter)) => {
                    let row = Row::of(counter)?;
                    let unit = match row.number(3) {
                        1 => "ns",
                        3 => "bytes",
                        _ => "",
                    };
                    track.counter = Some(Unit {
                        name: match row.bytes(6) {
                            b"" => unit.to_owned(),
                            name => String::from_utf8_lossy(name).into_owned(),
                        },
                        factor: match row.number(4) as i64 {
                            0 => 1,
                            factor => factor,
                        },
                        is_steps: row.number(5) != 0,
                    });
                }
                _ => {}
            }
        }
        if fields.is_broken() {
            return None;
        }
        self.known.insert(uuid, track);
        Some(named)
    }

    /// The track of a thread that older writers introduce without one.
    pub(super) fn of_thread(&mut self, pid: u32, tid: u32) -> u64 {
        let uuid = 1 << 63 | u64::from(tid);
        let thread = Some((pid, tid));
        self.known.entry(uuid).or_insert(Track {
            thread,
            ..Track::default()
        });
        uuid
    }

    fn place(&mut self, uuid: u64) -> TrackOwner {
        if let Some(&place) = self.places.get(&uuid) {
            return place;
        }
        let mut place = TrackOwner {
            tid: NOBODY,
            is_threads: false,
            has_thread: false,
            pid: 0,
        };
        let mut at = Some(uuid);
        for depth in 0..DEPTH {
            let Some(track) = at.and_then(|uuid| self.known.get(&uuid)) else {
                break;
            };
            match (track.thread, track.process) {
                (Some((pid, tid)), _) if tid != 0 => {
                    place = TrackOwner {
                        tid,
                        is_threads: depth == 0 && track.counter.is_none(),
                        has_thread: true,
                        pid,
                    };
                    break;
                }
                (_, Some(pid)) if pid != 0 => {
                    place.tid = pid;
                    place.pid = pid;
                    break;
                }
                _ => at = track.parent.filter(|parent| Some(*parent) != at),
            }
        }
        self.places.insert(uuid, place);
        place
    }

    /// Tells the builder an event of a track. Events must come in the order of their times.
    pub(super) fn tell(
        &mut self,
        builder: &mut Builder,
        uuid: u64,
        time: u64,
        what: TrackEventKind,
    ) {
        let place = self.place(uuid);
        if let TrackEventKind::Value(value) = what {
            return self.count(builder, uuid, place, time, value);
        }
        let may_be_note =
            !place.is_threads && matches!(what, TrackEventKind::Note(_) | TrackEventKind::End);
        if may_be_note && self.tell_note(builder, uuid, time, what) {
            return;
        }
        // No track is the idle tasks'.
        let Some(on) = builder.task(place.tid) else {
            return builder.lose(Loss::BadFields, 1);
        };
        let by = match what {
            TrackEventKind::EndOn(tid) => builder.task(tid),
            _ => None,
        };
        let open = self.open.entry(uuid).or_default();
        let depth = open.len() as u64;
        let kind = match what {
            TrackEventKind::Instant(name) => MarkKind::Instant(name),
            TrackEventKind::Flow { id, ends } => MarkKind::Flow { id, ends },
            TrackEventKind::Begin(name) | TrackEventKind::BeginAsync(name, _)
                if place.is_threads =>
            {
                MarkKind::Begin(name)
            }
            TrackEventKind::End | TrackEventKind::EndOn(_) if place.is_threads => MarkKind::End,
            TrackEventKind::Begin(name) => {
                let cookie = uuid.wrapping_add(depth);
                open.push(OpenTrackSlice::Slice { name, cookie });
                MarkKind::AsyncBegin { name, cookie }
            }
            TrackEventKind::BeginAsync(name, cookie) => {
                open.push(OpenTrackSlice::Slice { name, cookie });
                MarkKind::AsyncBegin { name, cookie }
            }
            _ => match open.pop() {
                Some(OpenTrackSlice::Slice { name, cookie }) => MarkKind::AsyncEnd { name, cookie },
                _ => return builder.lose(Loss::Unbegun, 1),
            },
        };
        builder.mark(Nanos(time), by.unwrap_or(on), kind);
    }

    /// Tells a finding. Returns whether it was one.
    fn tell_note(
        &mut self,
        builder: &mut Builder,
        uuid: u64,
        time: u64,
        what: TrackEventKind,
    ) -> bool {
        let open = self.open.entry(uuid).or_default();
        match (what, open.last()) {
            (TrackEventKind::Note(name), _) => {
                open.push(OpenTrackSlice::Note { name, begin: time });
            }
            (_, Some(&OpenTrackSlice::Note { name, begin })) => {
                open.pop();
                self.note(builder, uuid, name, (begin, time));
            }
            _ => return false,
        }
        true
    }

    fn note(&mut self, builder: &mut Builder, uuid: u64, name: Name, span: (u64, u64)) {
        let place = self.place(uuid);
        let on = if place.has_thread {
            builder.task(place.tid)
        } else {
            None
        };
        let track = self.known.get(&uuid).map_or("", |track| &track.name);
        self.notes.push(Annotation {
            on,
            track: track.to_owned(),
            name: builder.word_of(name).to_owned(),
            begin: Nanos(span.0),
            end: Nanos(span.1),
        });
    }

    fn count(
        &mut self,
        builder: &mut Builder,
        uuid: u64,
        place: TrackOwner,
        time: u64,
        value: i64,
    ) {
        let Some(track) = self.known.get(&uuid) else {
            return builder.lose(Loss::BadFields, 1);
        };
        let values = &mut self.values;
        let (at, stand) = self.counters.entry(uuid).or_insert_with(|| {
            let unit = track.counter.as_ref().map_or("", |unit| &unit.name);
            let counter = Counter {
                name: track.name.clone(),
                unit: unit.to_owned(),
                process: None,
                values: Vec::new(),
            };
            values.push((place.pid, counter));
            (values.len() - 1, 0)
        });
        let unit = track.counter.as_ref();
        *stand = if unit.is_some_and(|unit| unit.is_steps) {
            stand.saturating_add(value)
        } else {
            value
        };
        let factor = unit.map_or(1, |unit| unit.factor);
        values[*at]
            .1
            .values
            .push((Nanos(time), stand.saturating_mul(factor)));
    }

    /// Findings without an end end with the file.
    pub(super) fn finish(&mut self, builder: &mut Builder, end: u64) {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        open.sort_unstable_by_key(|(uuid, _)| *uuid);
        for (uuid, slices) in open {
            for slice in slices {
                if let OpenTrackSlice::Note { name, begin } = slice {
                    self.note(builder, uuid, name, (begin, end));
                    builder.lose(Loss::Unfinished, 1);
                }
            }
        }
    }
}
