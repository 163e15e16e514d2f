//! The job system's events of a simulated run, kept up to a bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use event::{Event, MemoryLog, MemorySink, Sink};

/// How many events are kept: about 160 MB, and as much in the file. The rest is counted.
pub(super) const LIMIT: u64 = 4_000_000;

/// A sink for a limited number of events.
struct Bounded {
    sink: MemorySink,
    limit: u64,
    came: AtomicU64,
}

impl Sink for Bounded {
    fn record(&self, event: &Event) {
        if self.came.fetch_add(1, Ordering::Relaxed) < self.limit {
            self.sink.record(event);
        }
    }
}

/// The recorder of a run.
pub(super) struct BoundedRecorder {
    sink: Arc<Bounded>,
    log: MemoryLog,
}

impl BoundedRecorder {
    /// One that keeps the first `limit` events.
    pub(super) fn new(limit: u64) -> BoundedRecorder {
        let (sink, log) = MemorySink::new();
        let came = AtomicU64::new(0);
        let sink = Arc::new(Bounded { sink, limit, came });
        BoundedRecorder { sink, log }
    }

    /// Where the job system's events go.
    pub(super) fn sink(&self) -> Arc<dyn Sink> {
        Arc::<Bounded>::clone(&self.sink)
    }

    /// The events recorded up to now, and how many were not kept.
    pub(super) fn recorded(&self) -> (Vec<Event>, u64) {
        let came = self.sink.came.load(Ordering::Relaxed);
        (self.log.drain(), came.saturating_sub(self.sink.limit))
    }
}

#[cfg(test)]
mod tests {
    use event::{EventKind, Nanos};

    use super::*;

    /// Goal: a recording has a bound, and events after it are counted. Method: a sink for three gets five.
    #[test]
    fn more_events_than_fit_are_counted() {
        let recorder = BoundedRecorder::new(3);
        let sink = recorder.sink();
        for slot in 0..5 {
            sink.record(&Event {
                time: Nanos(1),
                job: 0,
                arg: 0,
                slot,
                kind: EventKind::Park,
            });
        }
        let (events, lost) = recorder.recorded();
        let slots: Vec<u32> = events.iter().map(|event| event.slot).collect();
        assert_eq!((slots, lost), (vec![0, 1, 2], 2));
    }
}
