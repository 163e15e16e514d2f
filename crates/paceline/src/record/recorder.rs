//! The recorder: passes events on to a [`Sink`], and gives each its time.
//!
//! Without a recorder, recording is a branch that is never taken. A recorder is made with the job system, if
//! the program has a sink, or by a trace that begins later. Recording can then be switched off and on.
//!
//! To read a clock costs more than to keep an event. So events that follow each other at the boundary of two
//! jobs share one *stamp*: the end of one body is the beginning of the next. A stamp serves for
//! [`STAMP_USES`] events, but not beyond anything that takes time: a body, a look through other threads'
//! queues, a wake-up, a rest.
//!
//! Invariant: the stamps of one thread never run back.

use std::sync::Arc;

use event::{EventKind, Nanos, Sink, Why};
use platform::{Atomic, Lock, Memory, Ordering};

use super::rings::RingReader;
use crate::hooks::UserSink;

/// How many more events may share the stamp of one.
const STAMP_USES: u32 = 8;

/// The sink, and what recording needs to know of each thread slot.
pub(crate) struct Recorder<M: Memory> {
    pub(crate) sink: UserSink,
    /// The sink calls no job system.
    pub(crate) is_leaf: bool,
    is_on: M::AtomicU32,
    /// The reader of the job system's own rings, while no trace has it. None: the sink is the program's.
    pub(super) reader: Option<M::Lock<Option<RingReader<M>>>>,
    pub(crate) slots: Box<[ThreadNotes<M>]>,
    /// The names of threads that got a slot while a trace was recorded, beside the platform's numbers for
    /// them.
    newcomers: M::Lock<Vec<(u64, String)>>,
}

/// Facts about a thread slot that are kept for its events only.
pub(crate) struct ThreadNotes<M: Memory> {
    /// The thread slot of the waker plus 1, until the woken thread has recorded it; 0: none. All accesses are
    /// Relaxed: the waker's store is published by the parker's own edge.
    pub(crate) woken_by: M::AtomicU32,
    /// The platform's name for the thread that has the slot, or had it last. 0: none.
    pub(crate) thread: M::AtomicU64,
}

/// Data of a thread that is kept for its events only.
pub(crate) struct RecordLocal {
    /// The last stamp. `uses_left`: how many more events may share it.
    time: Nanos,
    uses_left: u32,
    /// The reason for the next claim; see [`Why`].
    pub(crate) why: Why,
    /// The recorder knows which thread has this slot.
    pub(crate) is_introduced: bool,
}

impl RecordLocal {
    pub(crate) fn new() -> RecordLocal {
        RecordLocal {
            time: Nanos::ZERO,
            uses_left: 0,
            why: Why::Next,
            is_introduced: false,
        }
    }

    /// The stamp that an event of this kind may share with the one before.
    #[inline]
    pub(crate) fn shared_stamp(&mut self, kind: EventKind) -> Option<Nanos> {
        use EventKind as Kind;
        let shares = matches!(
            kind,
            Kind::Edge
                | Kind::Ready
                | Kind::Claimed
                | Kind::Begin
                | Kind::Completed
                | Kind::Raised
                | Kind::WakeWithheld
        );
        let usable = shares && self.uses_left > 0;
        usable.then(|| {
            self.uses_left -= 1;
            self.time
        })
    }

    /// Notes that an event of this kind was given this stamp. `is_shared`: it was the stamp of the event
    /// before.
    #[inline]
    pub(crate) fn stamped(&mut self, kind: EventKind, time: Nanos, is_shared: bool) {
        use EventKind as Kind;
        self.uses_left = match kind {
            // After such an event something takes time.
            Kind::Begin | Kind::Park | Kind::Wake => 0,
            Kind::SpanBegin | Kind::SpanEnd | Kind::Counter => 0,
            _ if is_shared => self.uses_left,
            _ => STAMP_USES,
        };
        self.time = time;
    }

    /// Time passes from here on: the next event needs a stamp of its own.
    #[inline]
    pub(crate) fn forget_stamp(&mut self) {
        self.uses_left = 0;
    }
}

impl<M: Memory> Recorder<M> {
    pub(crate) fn new(sink: Arc<dyn Sink>, is_on: bool, slots: usize) -> Recorder<M> {
        let notes = |_| ThreadNotes {
            woken_by: M::AtomicU32::new(0),
            thread: M::AtomicU64::new(0),
        };
        let sink = UserSink::new(sink);
        Recorder {
            is_leaf: sink.is_leaf(),
            sink,
            is_on: M::AtomicU32::new(u32::from(is_on)),
            reader: None,
            slots: (0..slots).map(notes).collect(),
            newcomers: M::Lock::new(Vec::new()),
        }
    }

    /// Relaxed: a thread that sees the switch late records a little more or less.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed) != 0
    }

    /// Relaxed: as above.
    pub(crate) fn switch(&self, on: bool) {
        self.is_on.store(u32::from(on), Ordering::Relaxed);
    }

    /// Whether a trace is recorded: it has a use for the names of threads.
    pub(crate) fn is_traced(&self) -> bool {
        self.reader.is_some() && self.is_on()
    }

    /// A thread with this name gets a slot.
    pub(crate) fn note_newcomer(&self, thread: u64, name: String) {
        self.newcomers
            .with(|newcomers| newcomers.push((thread, name)));
    }

    /// The newcomers since the last call.
    #[cfg_attr(not(feature = "trace"), expect(dead_code, reason = "traces ask"))]
    pub(crate) fn take_newcomers(&self) -> Vec<(u64, String)> {
        self.newcomers.with(std::mem::take)
    }

    pub(crate) fn notes(&self, slot: u32) -> &ThreadNotes<M> {
        &self.slots[slot as usize]
    }
}
