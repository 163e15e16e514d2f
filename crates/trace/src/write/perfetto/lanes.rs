//! Annotations, on tracks of their own.
//!
//! Slices of one track must nest and annotations need not, so overlapping ones go to different tracks of the
//! same name, which viewers show as one. Each goes to the track that has been free for longest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;

use event::{Nanos, Task};

use super::messages::Type;
use super::packets::{Packets, TrackMark};
use super::tracks::WrittenTracks;
use crate::Annotation;

const ANNOTATION: &str = "annotation";

/// Writes annotations in any order. `is_picture`: whether they only show contents of the supplement.
pub(super) fn write<'n>(
    annotations: impl Iterator<Item = &'n Annotation>,
    is_picture: bool,
    tracks: &mut WrittenTracks<'_>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let mut groups: BTreeMap<(Option<Task>, &str), Vec<&Annotation>> = BTreeMap::new();
    for note in annotations {
        groups.entry((note.on, &note.track)).or_default().push(note);
    }
    for ((on, name), mut notes) in groups {
        notes.sort_by_key(|note| note.begin);
        // The time until which each track is taken.
        let mut lanes: BinaryHeap<Reverse<(Nanos, u64)>> = BinaryHeap::new();
        for note in notes {
            let free = lanes.peek().is_some_and(|lane| lane.0.0 <= note.begin);
            let track = match free.then(|| lanes.pop()).flatten() {
                Some(Reverse((_, track))) => track,
                None => tracks.named(name, on, packets)?,
            };
            let end = note.end.max(note.begin);
            packets.mark(TrackMark {
                category: ANNOTATION,
                name: &note.name,
                is_word: false,
                is_picture,
                ..TrackMark::new(track, note.begin, Type::SliceBegin)
            })?;
            packets.mark(TrackMark {
                is_picture,
                ..TrackMark::new(track, end, Type::SliceEnd)
            })?;
            lanes.push(Reverse((end, track)));
        }
    }
    Ok(())
}
