//! Rings that a job system has for itself, for traces.

use platform::{Lock, Memory};

use super::Recorder;
use super::rings::{RingReader, Rings};

/// Why there is no reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoReader {
    /// The events go to the program's sink.
    ProgramsSink,
    /// A trace has it.
    InUse,
}

impl<M: Memory> Recorder<M> {
    /// A recorder with rings of the job system's own, which is off.
    pub(crate) fn with_rings(capacity: usize, slots: usize) -> Recorder<M> {
        let (rings, reader) = Rings::for_slots(capacity, slots);
        let mut recorder = Recorder::new(rings, false, slots);
        recorder.reader = Some(M::Lock::new(Some(reader)));
        recorder
    }

    pub(crate) fn take_reader(&self) -> Result<RingReader<M>, NoReader> {
        let reader = self.reader.as_ref().ok_or(NoReader::ProgramsSink)?;
        reader.with(Option::take).ok_or(NoReader::InUse)
    }

    pub(crate) fn give_reader_back(&self, reader: RingReader<M>) {
        if let Some(place) = &self.reader {
            place.with(|place| *place = Some(reader));
        }
    }
}
