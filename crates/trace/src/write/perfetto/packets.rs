//! The file: packets one after another, with the words they refer to by number.
//!
//! A file is one message with one repeated field, so packets that are encoded one by one and put one after
//! another *are* the file, and only the current packets are in memory.
//!
//! Words are written when they are first used, in the packet that uses them. Numbers are valid in one
//! sequence, so each sequence of events has its own.
//!
//! The job system's events are in the supplement, exactly, and on tracks, for people. The tracks have a
//! sequence of their own, so that readers of the supplement can leave it out.

use std::collections::HashMap;
use std::io::{self, Write};

use event::Nanos;
use prost::Message;

use super::messages::{
    ClockSnapshot, DebugAnnotation, FtraceEventBundle, InternedData, InternedName, SnapshotClock,
    SystemInfo, Trace, TracePacket, TrackDescriptor, TrackEvent, Type, Utsname,
};
use crate::supplement::Supplement;
use crate::write::Written;

/// Sequences, counted from the file's first one of ours. The sequence of events on tracks:
const EVENTS: u32 = 0;
/// The sequence of kernel events.
const KERNEL: u32 = 1;
/// The sequence of descriptors. It is not that of the events, because a thread that is introduced there
/// becomes the one that all later events without a thread belong to.
const TRACKS: u32 = 2;
/// The sequence of tracks that show contents of the supplement.
const PICTURES: u32 = 3;

/// Sequence flags: earlier words are no longer valid; earlier words are needed.
const CLEARED: u32 = 1;
const NEEDS_WORDS: u32 = 2;

/// Clocks of the format; the second is the default of times.
pub(super) const MONOTONIC: u32 = 3;
pub(super) const BOOTTIME: u32 = 6;

/// Encoded packets are given to the writer in pieces of about this size.
const PIECE: usize = 64 << 10;

/// A time in the format's range: readers take it for a signed number.
pub(super) fn stamp(time: Nanos) -> u64 {
    time.0.min(i64::MAX as u64)
}

/// The words of one table.
#[derive(Default)]
struct Words {
    known: HashMap<String, u64>,
    /// The words that no packet has brought yet.
    fresh: Vec<InternedName>,
}

impl Words {
    fn number(&mut self, word: &str) -> u64 {
        if let Some(&number) = self.known.get(word) {
            return number;
        }
        let number = self.known.len() as u64 + 1;
        self.known.insert(word.to_owned(), number);
        self.fresh.push(InternedName {
            iid: Some(number),
            name: Some(word.to_owned()),
        });
        number
    }
}

/// A note beside a slice or an instant.
pub(super) enum Note<'a> {
    Number(&'static str, u64),
    Text(&'static str, &'a str),
}

/// An event on a track, before its words are numbers.
pub(super) struct TrackMark<'a> {
    pub(super) track: u64,
    pub(super) time: Nanos,
    pub(super) what: Type,
    /// For filters; empty: without.
    pub(super) category: &'static str,
    /// Empty: without.
    pub(super) name: &'a str,
    /// Whether the name will come again.
    pub(super) is_word: bool,
    pub(super) notes: &'a [Note<'a>],
    /// Arrows that begin here.
    pub(super) starts: Vec<u64>,
    /// Arrows that end here.
    pub(super) ends: Vec<u64>,
    /// Whether it only shows contents of the supplement.
    pub(super) is_picture: bool,
}

impl<'a> TrackMark<'a> {
    /// An event without notes.
    pub(super) fn new(track: u64, time: Nanos, what: Type) -> TrackMark<'a> {
        TrackMark {
            track,
            time,
            what,
            category: "",
            name: "",
            is_word: true,
            notes: &[],
            starts: Vec::new(),
            ends: Vec::new(),
            is_picture: false,
        }
    }

    /// An event without notes that only shows contents of the supplement.
    pub(super) fn picture(track: u64, time: Nanos, what: Type) -> TrackMark<'a> {
        TrackMark {
            is_picture: true,
            ..TrackMark::new(track, time, what)
        }
    }
}

/// A sequence of events on tracks, with its words.
#[derive(Default)]
struct WrittenSequence {
    number: u32,
    is_begun: bool,
    categories: Words,
    names: Words,
    notes: Words,
}

/// A file that is being written.
pub(super) struct Packets<'o> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
    /// Always empty or with one packet: it makes a packet a piece of a file.
    piece: Trace,
    /// The number of the first sequence.
    first: u32,
    /// The clock of all times, if it is not the boot clock.
    clock: Option<u32>,
    events: WrittenSequence,
    pictures: WrittenSequence,
    has_kernel: bool,
    pub(super) written: Written,
}

impl<'o> Packets<'o> {
    /// Begins a file.
    ///
    /// # Errors
    /// Those of the writer, here and below.
    pub(super) fn begin(
        out: &'o mut dyn Write,
        begin: Nanos,
        mut supplement: Supplement,
    ) -> io::Result<Packets<'o>> {
        const FIRST: u32 = 1;
        if let Some(head) = &mut supplement.head {
            head.pictures = vec![FIRST + PICTURES];
        }
        let mut packets = Packets::append(out, FIRST, None);
        // All times are on one clock; these two are said to be the same.
        let clock = |id| SnapshotClock {
            clock_id: Some(id),
            timestamp: Some(stamp(begin)),
        };
        packets.put(TracePacket {
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![clock(BOOTTIME), clock(MONOTONIC)],
                primary_trace_clock: Some(BOOTTIME),
            }),
            trusted_packet_sequence_id: Some(FIRST + EVENTS),
            sequence_flags: Some(CLEARED),
            first_packet_on_sequence: Some(true),
            supplement: Some(supplement),
            ..TracePacket::default()
        })?;
        packets.events.is_begun = true;
        Ok(packets)
    }

    /// Continues a file in which `first` and the next ones are no sequences yet. Times are on this clock, or
    /// else on the boot clock.
    pub(super) fn append(out: &'o mut dyn Write, first: u32, clock: Option<u32>) -> Packets<'o> {
        let sequence = |number| WrittenSequence {
            number,
            ..WrittenSequence::default()
        };
        Packets {
            out,
            buffer: Vec::with_capacity(2 * PIECE),
            piece: Trace::default(),
            first,
            clock,
            events: sequence(first + EVENTS),
            pictures: sequence(first + PICTURES),
            has_kernel: false,
            written: Written::default(),
        }
    }

    fn put(&mut self, packet: TracePacket) -> io::Result<()> {
        self.piece.packet.push(packet);
        // A vector has room for everything.
        let _ = self.piece.encode(&mut self.buffer);
        self.piece.packet.clear();
        self.written.packets += 1;
        if self.buffer.len() < PIECE {
            Ok(())
        } else {
            self.pass_on()
        }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.written.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Introduces a track. Its events come later.
    pub(super) fn track(&mut self, track: TrackDescriptor) -> io::Result<()> {
        self.put(TracePacket {
            trusted_packet_sequence_id: Some(self.first + TRACKS),
            track_descriptor: Some(track),
            ..TracePacket::default()
        })
    }

    /// Writes a part of the supplement.
    pub(super) fn supplement(&mut self, supplement: Supplement) -> io::Result<()> {
        self.put(TracePacket {
            trusted_packet_sequence_id: Some(self.first + TRACKS),
            supplement: Some(supplement),
            ..TracePacket::default()
        })
    }

    /// Writes the kernel's release.
    pub(super) fn release(&mut self, release: &str) -> io::Result<()> {
        let utsname = Utsname {
            // Perfetto looks at the release of no other system.
            sysname: Some("Linux".to_owned()),
            release: Some(release.to_owned()),
        };
        self.put(TracePacket {
            trusted_packet_sequence_id: Some(self.first + TRACKS),
            system_info: Some(SystemInfo {
                utsname: Some(utsname),
            }),
            ..TracePacket::default()
        })
    }

    /// Writes kernel events of one CPU.
    pub(super) fn kernel(&mut self, bundle: FtraceEventBundle) -> io::Result<()> {
        let is_first = !std::mem::replace(&mut self.has_kernel, true);
        self.put(TracePacket {
            ftrace_events: Some(bundle),
            trusted_packet_sequence_id: Some(self.first + KERNEL),
            first_packet_on_sequence: is_first.then_some(true),
            ..TracePacket::default()
        })
    }

    fn sequence(&mut self, is_picture: bool) -> &mut WrittenSequence {
        if is_picture {
            &mut self.pictures
        } else {
            &mut self.events
        }
    }

    /// Writes a beginning, an end or an instant.
    pub(super) fn mark(&mut self, mark: TrackMark<'_>) -> io::Result<()> {
        let sequence = self.sequence(mark.is_picture);
        let notes = mark.notes.iter().map(|note| {
            let (name, number, text) = match *note {
                Note::Number(name, number) => (name, Some(number), None),
                Note::Text(name, text) => (name, None, Some(text.to_owned())),
            };
            DebugAnnotation {
                name_iid: Some(sequence.notes.number(name)),
                uint_value: number,
                string_value: text,
            }
        });
        let debug_annotations = notes.collect();
        let has_category = !mark.category.is_empty();
        let category = has_category.then(|| sequence.categories.number(mark.category));
        let has_name = !mark.name.is_empty();
        let event = TrackEvent {
            category_iids: Vec::from_iter(category),
            debug_annotations,
            r#type: Some(mark.what as i32),
            name_iid: (has_name && mark.is_word).then(|| sequence.names.number(mark.name)),
            name: (has_name && !mark.is_word).then(|| mark.name.to_owned()),
            track_uuid: Some(mark.track),
            flow_ids: mark.starts,
            terminating_flow_ids: mark.ends,
            ..TrackEvent::default()
        };
        self.track_event(mark.time, event, mark.is_picture)
    }

    /// Writes a new value of a counter.
    pub(super) fn value(
        &mut self,
        track: u64,
        time: Nanos,
        value: i64,
        is_picture: bool,
    ) -> io::Result<()> {
        let event = TrackEvent {
            r#type: Some(Type::Counter as i32),
            track_uuid: Some(track),
            counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.track_event(time, event, is_picture)
    }

    fn track_event(&mut self, time: Nanos, event: TrackEvent, is_picture: bool) -> io::Result<()> {
        let clock = self.clock;
        let sequence = self.sequence(is_picture);
        let fresh = InternedData {
            event_categories: std::mem::take(&mut sequence.categories.fresh),
            event_names: std::mem::take(&mut sequence.names.fresh),
            debug_annotation_names: std::mem::take(&mut sequence.notes.fresh),
        };
        let is_first = !std::mem::replace(&mut sequence.is_begun, true);
        let flags = if is_first {
            CLEARED | NEEDS_WORDS
        } else {
            NEEDS_WORDS
        };
        let number = sequence.number;
        self.put(TracePacket {
            timestamp: Some(stamp(time)),
            timestamp_clock_id: clock,
            trusted_packet_sequence_id: Some(number),
            track_event: Some(event),
            interned_data: (fresh != InternedData::default()).then_some(fresh),
            sequence_flags: Some(flags),
            first_packet_on_sequence: is_first.then_some(true),
            ..TracePacket::default()
        })
    }

    /// Ends the file.
    pub(super) fn finish(mut self) -> io::Result<Written> {
        self.pass_on()?;
        self.out.flush()?;
        Ok(self.written)
    }
}
