//! Track events: marks of programs, on tracks that may be introduced before or after.
//!
//! Both the track of an event and the offset of its clock may be told later than the event. So events are
//! kept as they are, in a small form, and are assigned to threads and converted to one clock at the end of
//! the file (`tracks.rs`).

use super::clocks::ClockId;
use super::sequences::{Category, ReadSequence};
use super::wire::{Fields, Packed, Row, Value};
use crate::Name;

/// An event on a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadTrackEvent {
    pub(super) time: u64,
    pub(super) clock: ClockId,
    pub(super) track: u64,
    pub(super) what: TrackEventKind,
}

/// The kind of the event.
#[derive(Clone, Copy, Debug)]
pub(super) enum TrackEventKind {
    /// A slice begins.
    Begin(Name),
    /// A slice of ours begins that has a number of its own.
    BeginAsync(Name, u64),
    /// The innermost slice ends.
    End,
    /// It ends, by an event of the thread with this number.
    EndOn(u32),
    Instant(Name),
    /// An arrow passes through the innermost slice.
    Flow {
        id: u64,
        ends: bool,
    },
    /// A finding of ours begins.
    Note(Name),
    /// A counter's new value, or its change.
    Value(i64),
}

/// Types of track events.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// The fields of a track event that are read.
#[derive(Default)]
struct EventFields<'a> {
    kind: u64,
    track: Option<u64>,
    name_id: Option<u64>,
    name: Option<&'a [u8]>,
    category: Category,
    value: Option<i64>,
    has_flows: bool,
    is_legacy: bool,
    has_more_values: bool,
}

/// What became of a track event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Kept,
    /// The message is broken.
    Broken,
    /// It lacks a field that its type needs, or has no type.
    Bad,
    /// It is of a kind of older versions that is not read, or has more contents than are read.
    Unsupported,
}

/// Reads a track event and appends its contents to the others.
pub(super) fn read(
    message: &[u8],
    (time, clock): (u64, ClockId),
    sequence: &ReadSequence,
    mut number: impl FnMut(&[u8]) -> Name,
    said: &mut Vec<ReadTrackEvent>,
) -> Outcome {
    let Some(event) = fields(message, sequence) else {
        return Outcome::Broken;
    };
    let track = event.track.or(sequence.track).unwrap_or(0);
    let mut say = |what| {
        said.push(ReadTrackEvent {
            time,
            clock,
            track,
            what,
        });
    };
    let mut name = || match (event.name, event.name_id) {
        (Some(name), _) => Some(number(name)),
        (None, Some(id)) => sequence.names.get(&id).copied(),
        (None, None) => Some(number(b"")),
    };
    let what = match what(&event, message, sequence, &mut name) {
        Ok(what) => what,
        Err(outcome) => return outcome,
    };
    // Arrows pass through the slice that has them: after it begins and before it ends.
    let (before, after) = match event.kind {
        END => (None, what),
        _ => (what, None),
    };
    if let Some(what) = before {
        say(what);
    }
    if event.has_flows {
        flows(message, &mut say);
    }
    if let Some(what) = after {
        say(what);
    }
    if event.has_more_values {
        Outcome::Unsupported
    } else {
        Outcome::Kept
    }
}

/// The contents of an event by its type: nothing for one that only carries arrows; or why it is not read.
fn what(
    event: &EventFields<'_>,
    message: &[u8],
    sequence: &ReadSequence,
    name: &mut dyn FnMut() -> Option<Name>,
) -> Result<Option<TrackEventKind>, Outcome> {
    Ok(Some(match event.kind {
        BEGIN => {
            let name = name().ok_or(Outcome::Bad)?;
            match event.category {
                Category::Annotation => TrackEventKind::Note(name),
                Category::Async => {
                    TrackEventKind::BeginAsync(name, noted(message, sequence.cookie).unwrap_or(0))
                }
                _ => TrackEventKind::Begin(name),
            }
        }
        END => {
            let by = match event.category {
                Category::Async => noted(message, sequence.tid),
                _ => None,
            };
            let by = by.and_then(|tid| u32::try_from(tid).ok());
            by.map_or(TrackEventKind::End, TrackEventKind::EndOn)
        }
        INSTANT if event.category == Category::Flow => return Ok(None),
        INSTANT => TrackEventKind::Instant(name().ok_or(Outcome::Bad)?),
        COUNTER => TrackEventKind::Value(event.value.ok_or(Outcome::Bad)?),
        _ if event.is_legacy => return Err(Outcome::Unsupported),
        _ => return Err(Outcome::Bad),
    }))
}

fn fields<'a>(message: &'a [u8], sequence: &ReadSequence) -> Option<EventFields<'a>> {
    let mut event = EventFields::default();
    let mut is_first_category = true;
    let mut categorize = |event: &mut EventFields<'_>, category| {
        if std::mem::take(&mut is_first_category) {
            event.category = category;
        }
    };
    let mut all = Fields::of(message);
    for (field, value) in &mut all {
        match (field, value) {
            (9, value) => event.kind = value.number(),
            (11, value) => event.track = Some(value.number()),
            (10, value) => event.name_id = Some(value.number()),
            (23, value) => event.name = Some(value.bytes()),
            (3, value) => {
                let id = match value {
                    Value::Number(id) => Some(id),
                    Value::Bytes(packed) => Packed(packed).next(),
                };
                let known = id.and_then(|id| sequence.categories.get(&id));
                categorize(&mut event, known.copied().unwrap_or_default());
            }
            (22, value) => categorize(&mut event, Category::named(value.bytes())),
            (30, value) => event.value = Some(value.number() as i64),
            // Rounded to the next whole number; numbers beyond the ends become the ends.
            (44, value) => event.value = Some(f64::from_bits(value.number()).round() as i64),
            (36 | 42 | 47 | 48, _) => event.has_flows = true,
            (6, _) => {
                event.is_legacy = true;
                event.has_flows = true;
            }
            (12 | 46, _) => event.has_more_values = true,
            _ => {}
        }
    }
    (!all.is_broken()).then_some(event)
}

/// The arrows of an event, from all generations of fields.
fn flows(message: &[u8], say: &mut impl FnMut(TrackEventKind)) {
    for (field, value) in Fields::of(message) {
        let ends = match field {
            6 => {
                // The form of Chrome's JSON: a number, and whether the arrow comes in (1), goes out (2), or
                // passes (3).
                let legacy = Row::of(value.bytes()).filter(|legacy| legacy.has(8));
                if let Some(legacy) = legacy.filter(|legacy| (1..=3).contains(&legacy.number(13))) {
                    let ends = legacy.number(13) == 1;
                    say(TrackEventKind::Flow {
                        id: legacy.number(8),
                        ends,
                    });
                }
                continue;
            }
            36 | 47 => false,
            42 | 48 => true,
            _ => continue,
        };
        match value {
            Value::Number(id) => say(TrackEventKind::Flow { id, ends }),
            Value::Bytes(packed) if field < 47 => {
                for id in Packed(packed) {
                    say(TrackEventKind::Flow { id, ends });
                }
            }
            Value::Bytes(packed) => {
                let (ids, _) = packed.as_chunks::<8>();
                for id in ids {
                    let id = u64::from_le_bytes(*id);
                    say(TrackEventKind::Flow { id, ends });
                }
            }
        }
    }
}

/// The number in the annotation of this name.
fn noted(message: &[u8], name: Option<u64>) -> Option<u64> {
    let name = name?;
    Fields::of(message)
        .filter(|(field, _)| *field == 4)
        .filter_map(|(_, note)| Row::of(note.bytes()))
        .find(|note| note.number(1) == name)
        .map(|note| note.number(3))
}

#[cfg(test)]
mod tests {
    use super::super::wire_test::{file, message, number};
    use crate::MarkKind;

    /// Goal: arrows in the form of Chrome's JSON pass through their slices. Method: a slice from which one
    /// goes out, one into which it comes, and one with a number and no direction, which is no arrow.
    #[test]
    fn arrows_of_the_older_form() {
        let slice = |time: u64, legacy: &[Vec<u8>]| {
            let event = [
                number(9, 1),
                number(11, 5),
                message(23, b"slice"),
                message(6, &legacy.concat()),
            ];
            let end = [number(9, 2), number(11, 5)].concat();
            let packet =
                |time, event: &[u8]| [number(8, time), number(10, 1), message(11, event)].concat();
            [packet(time, &event.concat()), packet(time + 1, &end)]
        };
        let thread = [number(1, 7), number(2, 7)].concat();
        let track = [number(1, 5), message(4, &thread)].concat();
        let mut packets = vec![[number(10, 1), message(60, &track)].concat()];
        packets.extend(slice(10, &[number(8, 99), number(13, 2)]));
        packets.extend(slice(20, &[number(8, 99), number(13, 1)]));
        packets.extend(slice(30, &[number(8, 99)]));
        let recording = crate::read::read(&file(&packets)[..], "arrows").unwrap();
        let flows = recording.marks.iter().filter_map(|mark| match mark.what {
            MarkKind::Flow { id, ends } => Some((mark.time.0, id, ends)),
            _ => None,
        });
        assert_eq!(flows.collect::<Vec<_>>(), [(10, 99, false), (20, 99, true)]);
        assert!(recording.losses.is_empty(), "{:?}", recording.losses);
    }
}
