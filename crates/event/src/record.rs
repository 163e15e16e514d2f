//! One event, its bytes, and where events go.

use std::sync::mpsc;

use crate::{EventKind, Nanos};

/// Length of one encoded event in bytes.
pub const EVENT_BYTES: usize = 32;

/// Something that happened, on one thread, at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Event {
    /// When, on the platform's clock.
    pub time: Nanos,
    /// The job (its ticket: index and generation) or frame it happened to; 0 if none.
    pub job: u64,
    /// The argument, as the kind defines it.
    pub arg: u64,
    /// The thread slot (a worker's, or one an outside thread holds) it happened on.
    pub slot: u32,
    /// What happened.
    pub kind: EventKind,
}

impl Event {
    /// The event's only encoding: little-endian fields in the order time, job, arg, thread slot, kind,
    /// and zeros up to [`EVENT_BYTES`].
    pub fn to_bytes(&self) -> [u8; EVENT_BYTES] {
        let mut bytes = [0; EVENT_BYTES];
        for (eight, word) in bytes.chunks_exact_mut(8).zip(self.to_words()) {
            eight.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The same as four words: time, job, arg, and thread slot (low half) with kind.
    #[inline]
    pub fn to_words(&self) -> [u64; 4] {
        let last = u64::from(self.slot) | (self.kind as u64) << 32;
        [self.time.0, self.job, self.arg, last]
    }

    /// The event of these words; `None` if the kind is not one of ours.
    pub fn from_words([time, job, arg, last]: [u64; 4]) -> Option<Event> {
        Some(Event {
            time: Nanos(time),
            job,
            arg,
            slot: last as u32,
            kind: EventKind::from_code((last >> 32) as u8)?,
        })
    }

    /// The event these bytes encode; `None` if the kind is not one of ours.
    pub fn from_bytes(bytes: &[u8; EVENT_BYTES]) -> Option<Event> {
        let word = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        Event::from_words([word(0), word(8), word(16), word(24)])
    }
}

/// Where a running job system sends its events.
///
/// Called on the thread the event happened on, often between two jobs: an implementation must not block. It
/// cannot call back into the job system: calls are refused while one records. A thread slot has one thread at
/// a time.
pub trait Sink: Send + Sync {
    /// Takes one event. If it panics the event is lost, the panic is counted
    /// (`paceline::Stats::hook_panics`), and the next event is recorded as usual.
    fn record(&self, event: &Event);

    /// A thread gets this slot; its events come next. The time to make room for them.
    fn slot_taken(&self, slot: u32) {
        let _ = slot;
    }

    /// Whether neither method ever calls a job system. `false` by default: then a job system refuses such
    /// calls while it records, which costs a few nanoseconds an event. Asked once.
    fn is_leaf(&self) -> bool {
        false
    }
}

/// A sink that keeps everything in memory, for tests and short recordings.
///
/// It uses a channel and no lock of ours: a thread that records is never blocked by one that reads. Its code,
/// and the channel's, is compiled where it is used.
///
/// ```
/// # use paceline_event::{Event, EventKind, MemorySink, Nanos, Sink};
/// let (sink, log) = MemorySink::new();
/// sink.record(&Event { time: Nanos(5), job: 7, arg: 0, slot: 1, kind: EventKind::Ready });
/// let events = log.drain();
/// assert_eq!(events[0].kind.word(), "ready");
/// assert_eq!(Event::from_bytes(&events[0].to_bytes()), Some(events[0]));
/// ```
pub struct MemorySink {
    sender: mpsc::Sender<Event>,
}

/// The reading end of a [`MemorySink`].
pub struct MemoryLog {
    receiver: mpsc::Receiver<Event>,
}

impl MemorySink {
    /// A sink and the log it writes to.
    #[inline]
    pub fn new() -> (MemorySink, MemoryLog) {
        let (sender, receiver) = mpsc::channel();
        (MemorySink { sender }, MemoryLog { receiver })
    }
}

impl Sink for MemorySink {
    #[inline]
    fn record(&self, event: &Event) {
        // A closed log means that the events are no longer wanted, which is not the recorder's concern.
        let _ = self.sender.send(*event);
    }

    fn is_leaf(&self) -> bool {
        true
    }
}

impl MemoryLog {
    /// All events recorded so far and not yet taken, in the order of recording.
    #[inline]
    pub fn drain(&self) -> Vec<Event> {
        self.receiver.try_iter().collect()
    }
}
