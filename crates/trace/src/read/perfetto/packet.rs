//! The fields of a packet that are read.

use super::wire::{Fields, Value};
use crate::supplement;

/// A packet, its messages still as bytes.
#[derive(Debug, Default)]
pub(super) struct Packet<'a> {
    pub(super) sequence: u32,
    pub(super) flags: u64,
    pub(super) time: Option<u64>,
    /// The clock's number.
    pub(super) clock: Option<u32>,
    /// Packets of this sequence before this one are lost.
    pub(super) is_after_loss: bool,
    pub(super) ftrace: Option<&'a [u8]>,
    pub(super) process_tree: Option<&'a [u8]>,
    pub(super) clock_snapshot: Option<&'a [u8]>,
    pub(super) event: Option<&'a [u8]>,
    /// Words; the second only if the message comes in two parts.
    pub(super) words: [Option<&'a [u8]>; 2],
    pub(super) defaults: Option<&'a [u8]>,
    pub(super) track: Option<&'a [u8]>,
    /// Older writers' way to introduce their thread.
    pub(super) thread: Option<&'a [u8]>,
    pub(super) system_info: Option<&'a [u8]>,
    pub(super) cpu_info: Option<&'a [u8]>,
    pub(super) deflated: Option<&'a [u8]>,
    pub(super) zstd: Option<&'a [u8]>,
    pub(super) supplement: Option<&'a [u8]>,
    /// The counts of the kernel's buffers.
    pub(super) ftrace_stats: Option<&'a [u8]>,
    /// An event of Android's frame timeline.
    pub(super) frame: Option<&'a [u8]>,
    /// Whether it holds data that are not read.
    pub(super) is_unknown: bool,
}

impl<'a> Packet<'a> {
    /// `None` if it is broken.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Packet<'a>> {
        let mut packet = Packet::default();
        let mut fields = Fields::of(bytes);
        for (field, value) in &mut fields {
            match value {
                Value::Number(number) => packet.number(field, number),
                Value::Bytes(bytes) => packet.message(field, bytes),
            }
        }
        (!fields.is_broken()).then_some(packet)
    }

    /// Whether it changes the meaning of bundles, or has some inside: those before it must be decoded first.
    pub(super) fn is_about_bundles(&self) -> bool {
        let parts = [
            self.deflated,
            self.zstd,
            self.clock_snapshot,
            self.system_info,
        ];
        parts.iter().any(Option::is_some)
    }

    fn number(&mut self, field: u32, number: u64) {
        match field {
            8 => self.time = Some(number),
            10 => self.sequence = number as u32,
            13 => self.flags |= number,
            // The form of this before there were flags.
            41 => self.flags |= u64::from(number != 0),
            42 => self.is_after_loss = number != 0,
            58 => self.clock = u32::try_from(number).ok(),
            _ => {}
        }
    }

    fn message(&mut self, field: u32, bytes: &'a [u8]) {
        let place = match field {
            1 => &mut self.ftrace,
            2 => &mut self.process_tree,
            6 => &mut self.clock_snapshot,
            11 => &mut self.event,
            12 if self.words[0].is_none() => &mut self.words[0],
            12 => &mut self.words[1],
            34 => &mut self.ftrace_stats,
            44 => &mut self.thread,
            45 => &mut self.system_info,
            50 => &mut self.deflated,
            59 => &mut self.defaults,
            60 => &mut self.track,
            67 => &mut self.cpu_info,
            76 => &mut self.frame,
            133 => &mut self.zstd,
            supplement::FIELD => &mut self.supplement,
            // About the recording, the machine and the programs on it: the old name of a process, the
            // configuration, statistics, marks between pieces, triggers, lists of packages, notes of the
            // recorder, what the viewer showed, the file's name.
            33
            | 35
            | 36
            | 43
            | 46..=48
            | 51
            | 69
            | 70
            | 72
            | 78
            | 82
            | 83
            | 86
            | 89
            | 107
            | 109
            | 113
            | 123..=128
            | 130
            | 138 => return,
            _ => {
                self.is_unknown = true;
                return;
            }
        };
        *place = Some(bytes);
    }
}
