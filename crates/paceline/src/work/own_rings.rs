//! The recorder of a trace: made when the first trace begins, switched on and off by each.

use platform::Platform;

use super::shared::Shared;
use crate::record::{NoReader, Recorder, RingReader};

impl<P: Platform> Shared<P> {
    /// Ends the recording of a trace, also where the calling thread has no way in.
    pub(crate) fn stop_recording(&self) {
        self.set_recording(false);
        if let Some(recorder) = self.recorder.get() {
            recorder.switch(false);
        }
    }

    /// Takes the reader of the job system's own rings, which are made if nothing has been recorded yet.
    /// `capacity`: of each.
    pub(crate) fn take_reader(&self, capacity: usize) -> Result<RingReader<P>, NoReader> {
        if self.recorder.get().is_none() {
            // Another thread may have been faster, and made the same.
            let _ = self
                .recorder
                .set(Recorder::with_rings(capacity, self.threads.limit()));
        }
        let recorder = self.recorder.get();
        recorder.map_or(Err(NoReader::ProgramsSink), Recorder::take_reader)
    }

    pub(crate) fn give_reader_back(&self, reader: RingReader<P>) {
        if let Some(recorder) = self.recorder.get() {
            recorder.give_reader_back(reader);
        }
    }
}
