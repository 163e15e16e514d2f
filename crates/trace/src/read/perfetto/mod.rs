//! Perfetto's protobuf traces, as Android, Chrome, its own recorders and [`write`](mod@crate::write) make
//! them.
//!
//! A file is a list of packets. Each belongs to a sequence, which has the packets of one writer in their
//! order; sequences are in no order among themselves. So packets are read one by one and forgotten, and their
//! contents are kept in a small form. At the end of the file they are told to the builder in the order of
//! their times: kernel events (`bundles.rs`, `ftrace.rs`, `compact.rs`, `merge.rs`, `telling.rs`) and events
//! of programs (`track_events.rs`, `tracks.rs`), on one clock (`clocks.rs`).
//!
//! Files have millions of kernel events, so reading these is fast: those of the usual kinds are read in the
//! usual order of their fields (`hot.rs`), an event waits in 16 bytes (`raw.rs`, `lists.rs`), and a task that
//! is named as before is known by a number (`parties.rs`).
//!
//! Field numbers are those of `protos/perfetto/trace` of Perfetto's repository.
//!
//! Invariants
//! - Nothing is allocated for an event but its place in a list, and no length that a file promises is
//!   believed.
//! - Parts that are not read are counted.

mod bundles;
mod clocks;
mod compact;
#[cfg(test)]
mod divided;
mod facts;
mod finish;
mod frames;
mod ftrace;
mod hot;
mod lists;
mod merge;
mod packet;
mod parties;
mod raw;
mod sequences;
mod source;
mod supplement;
mod telling;
#[cfg(test)]
mod tests;
mod track_events;
mod tracks;
mod wire;
#[cfg(test)]
mod wire_test;
mod words;

use std::collections::HashMap;
use std::io::{self, Read};

use flate2::bufread::ZlibDecoder;

use self::bundles::{Bundles, Waiting};
use self::clocks::{ClockId, Clocks};
use self::facts::FileFacts;
use self::frames::Frames;
use self::packet::Packet;
use self::sequences::ReadSequence;
use self::source::{PIECE, Source};
use self::supplement::PartialSupplement;
use self::track_events::{Outcome, ReadTrackEvent};
use self::tracks::ReadTracks;
use super::builder::Builder;
use super::{Format, Input};
use crate::{Executor, Loss};

/// Sequence flags: earlier words are no longer valid; earlier words are needed.
const CLEARED: u64 = 1;
const NEEDS_WORDS: u64 = 2;

/// The contents of a file so far.
struct PerfettoFile<'b> {
    builder: &'b mut Builder,
    executor: &'b dyn Executor,
    clocks: Clocks,
    bundles: Bundles,
    sequences: HashMap<u32, ReadSequence>,
    said: Vec<ReadTrackEvent>,
    tracks: ReadTracks,
    frames: Frames,
    facts: FileFacts,
    told: PartialSupplement,
}

/// Reads a file into a recording in the making.
///
/// # Errors
/// Those of the input. The part before the error is in the builder.
pub(super) fn read(
    input: &mut Input<'_>,
    builder: &mut Builder,
    executor: &dyn Executor,
) -> io::Result<()> {
    builder.set_format(Format::Perfetto.word());
    let mut file = PerfettoFile {
        builder,
        executor,
        clocks: Clocks::default(),
        bundles: Bundles::new(executor.width()),
        sequences: HashMap::new(),
        said: Vec::new(),
        tracks: ReadTracks::default(),
        frames: Frames::default(),
        facts: FileFacts::default(),
        told: PartialSupplement::default(),
    };
    let mut source = Source::new(input, file.bundles.piece());
    let read = file.packets(&mut source, true);
    if source.is_broken() {
        file.builder.lose(Loss::Malformed, 1);
    }
    let rest = read.and_then(|()| source.rest());
    file.finish();
    builder.lose(Loss::Truncated, rest?);
    Ok(())
}

/// The length of the field that a file begins with, and the number of its sequence if it is a packet; `None`
/// if it is not whole, or no field.
pub(crate) fn first_packet(bytes: &[u8]) -> Option<(usize, u32)> {
    let (length, packet) = source::first(bytes)?;
    let packet = packet.and_then(Packet::of);
    Some((length, packet.map_or(0, |packet| packet.sequence)))
}

impl PerfettoFile<'_> {
    /// Reads all packets, up to the end or to bytes that are none. `may_unpack`: whether they may hold packed
    /// ones.
    fn packets<R: Read>(&mut self, source: &mut Source<R>, may_unpack: bool) -> io::Result<()> {
        while source.more()? {
            let mut waiting = self.bundles.waiting();
            for packet in source.here() {
                self.packet(packet, may_unpack, &mut waiting);
            }
            self.decode(&mut waiting);
        }
        Ok(())
    }

    /// Decodes the bundles that wait.
    fn decode(&mut self, waiting: &mut Waiting<'_>) {
        for (clock, there, boot) in self.bundles.decode(waiting, self.executor) {
            self.clocks.ftrace_pair(clock, there, boot);
        }
    }

    /// Reads a packet. Its bundle waits with the others.
    fn packet<'a>(&mut self, bytes: &'a [u8], may_unpack: bool, waiting: &mut Waiting<'a>) {
        let Some(packet) = Packet::of(bytes) else {
            return self.builder.lose(Loss::Malformed, 1);
        };
        self.builder
            .lose(Loss::Unsupported, u64::from(packet.is_unknown));
        if packet.is_about_bundles() {
            self.decode(waiting);
        }
        if let Some(deflated) = packet.deflated {
            self.unpack(ZlibDecoder::new(deflated), may_unpack);
        }
        if let Some(zstd) = packet.zstd {
            match ruzstd::decoding::StreamingDecoder::new(zstd) {
                Ok(decoder) => self.unpack(decoder, may_unpack),
                Err(_) => self.builder.lose(Loss::Malformed, 1),
            }
        }
        if let Some(supplement) = packet.supplement {
            let is_whole = self.told.learn(supplement).is_some();
            self.builder.lose(Loss::Malformed, u64::from(!is_whole));
        }
        if let Some(snapshot) = packet.clock_snapshot {
            self.check(|file| file.clocks.snapshot(packet.sequence, snapshot));
        }
        if let Some(info) = packet.system_info {
            self.check(|file| file.facts.system(info, &mut file.bundles));
        }
        if let Some(info) = packet.cpu_info {
            self.check(|file| file.facts.cpus(info));
        }
        if let Some(tree) = packet.process_tree {
            self.check(|file| file.facts.tree(tree));
        }
        if let Some(bundle) = packet.ftrace {
            self.bundles.wait(bundle, waiting);
        }
        if let Some(stats) = packet.ftrace_stats {
            self.check(|file| file.bundles.stats(stats));
        }
        self.sequence(&packet);
    }

    fn check(&mut self, learn: impl FnOnce(&mut PerfettoFile<'_>) -> Option<()>) {
        if learn(self).is_none() {
            self.builder.lose(Loss::Malformed, 1);
        }
    }

    /// Packets that are packed into one.
    fn unpack(&mut self, packed: impl Read, may_unpack: bool) {
        if !may_unpack {
            return self.builder.lose(Loss::Malformed, 1);
        }
        let mut source = Source::new(packed, PIECE);
        let is_broken = self.packets(&mut source, false).is_err() || source.is_broken();
        match source.rest() {
            Ok(rest) if !is_broken => self.builder.lose(Loss::Truncated, rest),
            _ => self.builder.lose(Loss::Malformed, 1),
        }
    }

    /// Reads the parts of a packet that depend on its sequence.
    fn sequence(&mut self, packet: &Packet<'_>) {
        let sequence = self.sequences.entry(packet.sequence).or_default();
        if packet.flags & CLEARED != 0 {
            sequence.clear();
        } else if packet.is_after_loss {
            // It is also set on a sequence's first packet, whether or not one was lost.
            let is_first = !std::mem::replace(&mut sequence.is_begun, true);
            sequence.is_incomplete = true;
            self.builder.lose(Loss::Gaps, u64::from(!is_first));
        }
        sequence.is_begun = true;
        let mut is_whole = true;
        if let Some(defaults) = packet.defaults {
            is_whole &= sequence.defaults(defaults).is_some();
        }
        for words in packet.words.into_iter().flatten() {
            is_whole &= sequence
                .learn(words, |word| self.builder.word(word))
                .is_some();
        }
        if let Some(thread) = packet.thread {
            match self.facts.thread(thread) {
                Some((pid, tid)) => sequence.track = Some(self.tracks.of_thread(pid, tid)),
                None => is_whole = false,
            }
        }
        if let Some(track) = packet.track {
            match self.tracks.describe(track) {
                Some(named) => self.facts.people.extend(named),
                None => is_whole = false,
            }
        }
        self.builder.lose(Loss::Malformed, u64::from(!is_whole));
        let is_nothing = packet.event.is_none() && packet.frame.is_none();
        if is_nothing || self.told.is_picture(packet.sequence) {
            return;
        }
        if packet.flags & NEEDS_WORDS != 0 && sequence.is_incomplete {
            return self.builder.lose(Loss::BadFields, 1);
        }
        let clock = packet.clock.or(sequence.clock);
        let clock = clock.map_or(clocks::BOOT, |number| ClockId::of(packet.sequence, number));
        let Some(time) = packet.time else {
            return self.builder.lose(Loss::BadFields, 1);
        };
        let when = (self.clocks.nanos(clock, time), clock);
        if let Some(frame) = packet.frame {
            self.check(|file| file.frames.take(frame, when));
        }
        let Some(event) = packet.event else { return };
        let sequence = self.sequences.entry(packet.sequence).or_default();
        let word = |word: &[u8]| self.builder.word(word);
        let loss = match track_events::read(event, when, sequence, word, &mut self.said) {
            Outcome::Kept => return,
            Outcome::Broken => Loss::Malformed,
            Outcome::Bad => Loss::BadFields,
            Outcome::Unsupported => Loss::Unsupported,
        };
        self.builder.lose(loss, 1);
    }
}
