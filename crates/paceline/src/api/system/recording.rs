//! What a program records, and asks about its recordings.

use platform::Platform;

use super::JobSystem;
use crate::api::span::{self, Span};
use crate::store::{Label, Name};

impl<P: Platform> JobSystem<P> {
    /// Begins a span of the program's own on the calling thread's track of a recording; it ends when the
    /// guard is dropped. Spans nest with jobs and waits. Where nothing is recorded this is a branch.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let _span = js.span("load level");
    /// js.wait(js.job("textures").schedule(|_| ()));
    /// ```
    #[inline]
    #[track_caller]
    pub fn span(&self, name: impl Into<Name>) -> Span<'_, P> {
        Span::outside(self.shared(), name)
    }

    /// Records a value of the program's: a curve over time in a recording. Where nothing is recorded this is
    /// a branch.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.counter("draw calls", 1742);
    /// ```
    #[inline]
    #[track_caller]
    pub fn counter(&self, name: impl Into<Name>, value: i64) {
        if self.is_recording()
            && let Ok(context) = self.shared().context()
        {
            span::count(&context, span::label(name), value);
        }
    }

    /// All labels used so far; [`Created`](crate::record::EventKind::Created) refers to them by position.
    /// None in a fork's child. Takes a lock and allocates.
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
