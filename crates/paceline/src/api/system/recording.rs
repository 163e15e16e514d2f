//! What a program records, and asks about its recordings.

use platform::Platform;

use super::JobSystem;
use crate::store::Label;

impl<P: Platform> JobSystem<P> {
    /// All labels used so far; [`EventKind::Created`] refers to them by position. None in a fork's child.
    /// Takes a lock and allocates.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.wait(js.job("load").schedule(|_| ()));
    /// assert_eq!(js.labels()[0].name, "load");
    /// ```
    pub fn labels(&self) -> Vec<Label> {
        if self.shared.is_forked() {
            Vec::new()
        } else {
            self.shared.graph.labels.all()
        }
    }

    /// Switches recording on or off while everything runs; nothing happens without a
    /// [`sink`](crate::Builder::sink). Other threads see it a moment later.
    ///
    /// ```
    /// let (rings, _reader) = paceline::Rings::new(64);
    /// let js = paceline::Builder::new().sink(rings).recording(false).build().unwrap();
    /// js.set_recording(true);
    /// assert!(js.is_recording());
    /// ```
    pub fn set_recording(&self, on: bool) {
        self.shared.set_recording(on);
    }

    /// Whether events are recorded at this moment.
    ///
    /// ```
    /// assert!(!paceline::JobSystem::new().is_recording(), "there is no sink");
    /// ```
    pub fn is_recording(&self) -> bool {
        self.shared.is_recording()
    }

    /// The thread slots that events may be on, in order, each with the platform's name for the thread that
    /// had it last ([`Platform::thread_id`]; on Linux the kernel's number for it). Empty without a
    /// [`sink`](crate::Builder::sink).
    ///
    /// ```
    /// assert!(paceline::JobSystem::new().threads().is_empty(), "there is no sink");
    /// ```
    pub fn threads(&self) -> Vec<(u32, u64)> {
        self.shared.threads()
    }
}
