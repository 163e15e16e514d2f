//! The programs' marks, on the tracks of their threads.
//!
//! Slices of one track must nest and ends have no names, as for jobs: an end without a slice is left out, and
//! slices that are open at the end of the recording end with it. Slices that need not nest each have a track
//! below their thread's; tracks that are free are used again. The slices' numbers are noted on them, and the
//! thread that ended them if it was another one.
//!
//! An arrow that passes through a slice where it begins, or through an instant, is written with it; elsewhere
//! it has an instant of its own.

use std::collections::{BTreeMap, HashMap};
use std::io;

use event::{Nanos, Task};

use super::messages::Type;
use super::packets::{self, Note, Packets};
use super::tracks::WrittenTracks;
use crate::{Mark, MarkKind, Name, Recording};

/// Categories. Our reader knows the last two.
const MARK: &str = "mark";
const ASYNC: &str = "async";
const FLOW: &str = "flow";

/// The key of slices that need not nest: the position of the process (or, without one, the thread), the name
/// and the number.
type MarkKey = (Result<usize, Task>, Name, u64);

/// A track with an open slice: its number, the thread it is below, and the number of open slices of this key.
struct OpenTrack {
    track: u64,
    on: Task,
    count: u64,
}

struct Marks<'a, 'r, 'o> {
    recording: &'r Recording,
    tracks: &'a mut WrittenTracks<'r>,
    packets: &'a mut Packets<'o>,
    /// By thread: the number of open slices.
    depths: BTreeMap<Task, u64>,
    open: BTreeMap<MarkKey, OpenTrack>,
    /// Tracks without an open slice, by the tracks that they are shown with.
    free: HashMap<(Task, Name), Vec<u64>>,
}

/// Writes marks that are in the order of their times; `end` is the end of the recording.
pub(super) fn write<'r>(
    marks: &[Mark],
    end: Nanos,
    recording: &'r Recording,
    tracks: &mut WrittenTracks<'r>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let mut writer = Marks {
        recording,
        tracks,
        packets,
        depths: BTreeMap::new(),
        open: BTreeMap::new(),
        free: HashMap::new(),
    };
    let mut rest = marks;
    while let Some((mark, after)) = rest.split_first() {
        let flows = flows(mark, after);
        rest = &after[flows.len()..];
        writer.write(mark, flows)?;
    }
    writer.finish(end)
}

/// The arrows right behind a mark that are written with it: those that go on, then those that end.
fn flows<'m>(mark: &Mark, after: &'m [Mark]) -> &'m [Mark] {
    if !matches!(mark.what, MarkKind::Begin(_) | MarkKind::Instant(_)) {
        return &[];
    }
    let mut has_ended = false;
    let belongs = |next: &Mark| match next.what {
        MarkKind::Flow { ends, .. } if (next.time, next.on) == (mark.time, mark.on) => {
            let is_in_order = ends || !has_ended;
            has_ended |= ends;
            is_in_order
        }
        _ => false,
    };
    let count = after
        .iter()
        .map(belongs)
        .take_while(|belongs| *belongs)
        .count();
    &after[..count]
}

impl Marks<'_, '_, '_> {
    fn write(&mut self, mark: &Mark, flows: &[Mark]) -> io::Result<()> {
        let track = self.tracks.thread(mark.on);
        match mark.what {
            MarkKind::Begin(name) => {
                *self.depths.entry(mark.on).or_default() += 1;
                self.put(mark, track, Type::SliceBegin, (MARK, name), flows)
            }
            MarkKind::Instant(name) => self.put(mark, track, Type::Instant, (MARK, name), flows),
            MarkKind::End => {
                let depth = self.depths.entry(mark.on).or_default();
                match depth.checked_sub(1) {
                    Some(less) => {
                        *depth = less;
                        self.packets
                            .mark(packets::TrackMark::new(track, mark.time, Type::SliceEnd))
                    }
                    None => {
                        self.packets.written.unbegun += 1;
                        Ok(())
                    }
                }
            }
            MarkKind::AsyncBegin { name, cookie } => self.begin(mark, name, cookie),
            MarkKind::AsyncEnd { name, cookie } => self.end(mark, name, cookie),
            MarkKind::Flow { .. } => {
                let flow = [*mark];
                let (starts, ends) = ids(&flow);
                self.packets.mark(packets::TrackMark {
                    category: FLOW,
                    name: FLOW,
                    starts,
                    ends,
                    ..packets::TrackMark::new(track, mark.time, Type::Instant)
                })
            }
        }
    }

    fn put(
        &mut self,
        mark: &Mark,
        track: u64,
        what: Type,
        (category, name): (&'static str, Name),
        flows: &[Mark],
    ) -> io::Result<()> {
        let (starts, ends) = ids(flows);
        self.packets.mark(packets::TrackMark {
            category,
            name: self.recording.names.word(name),
            starts,
            ends,
            ..packets::TrackMark::new(track, mark.time, what)
        })
    }

    fn key(&self, on: Task, name: Name, cookie: u64) -> MarkKey {
        (self.tracks.people.process(on).ok_or(on), name, cookie)
    }

    fn begin(&mut self, mark: &Mark, name: Name, cookie: u64) -> io::Result<()> {
        let key = self.key(mark.on, name, cookie);
        let word = self.recording.names.word(name);
        let track = match self.open.get_mut(&key) {
            // Numbers may be used again before their time: then one is inside of the other.
            Some(open) => {
                open.count += 1;
                open.track
            }
            None => {
                let free = self.free.get_mut(&(mark.on, name)).and_then(Vec::pop);
                let track = match free {
                    Some(track) => track,
                    None => self.tracks.named(word, Some(mark.on), self.packets)?,
                };
                let (on, count) = (mark.on, 1);
                self.open.insert(key, OpenTrack { track, on, count });
                track
            }
        };
        self.packets.mark(packets::TrackMark {
            category: ASYNC,
            name: word,
            notes: &[Note::Number("cookie", cookie)],
            ..packets::TrackMark::new(track, mark.time, Type::SliceBegin)
        })
    }

    fn end(&mut self, mark: &Mark, name: Name, cookie: u64) -> io::Result<()> {
        let key = self.key(mark.on, name, cookie);
        let Some(open) = self.open.get_mut(&key) else {
            self.packets.written.unbegun += 1;
            return Ok(());
        };
        let (track, on) = (open.track, open.on);
        open.count -= 1;
        if open.count == 0 {
            self.open.remove(&key);
            self.free.entry((on, name)).or_default().push(track);
        }
        let by = [Note::Number("tid", self.tracks.tid(mark.on) as u64)];
        self.packets.mark(packets::TrackMark {
            category: if on == mark.on { "" } else { ASYNC },
            notes: if on == mark.on { &[] } else { &by },
            ..packets::TrackMark::new(track, mark.time, Type::SliceEnd)
        })
    }

    /// Ends the open slices with the recording.
    fn finish(self, end: Nanos) -> io::Result<()> {
        let threads = self
            .depths
            .iter()
            .map(|(task, depth)| (self.tracks.thread(*task), *depth));
        let others = self.open.values().map(|open| (open.track, open.count));
        for (track, depth) in threads.chain(others) {
            for _ in 0..depth {
                self.packets
                    .mark(packets::TrackMark::new(track, end, Type::SliceEnd))?;
                self.packets.written.unfinished += 1;
            }
        }
        Ok(())
    }
}

/// The arrows that go on, and those that end.
fn ids(flows: &[Mark]) -> (Vec<u64>, Vec<u64>) {
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for flow in flows {
        if let MarkKind::Flow { id, ends: it_ends } = flow.what {
            if it_ends {
                ends.push(id);
            } else {
                starts.push(id);
            }
        }
    }
    (starts, ends)
}
