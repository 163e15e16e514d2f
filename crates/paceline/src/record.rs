//! What a thread records, if anybody listens.
//!
//! Events go to a [`Sink`]. Without one, recording is a branch that is never taken; with one, it can be
//! switched off and on while everything runs.
//!
//! Reading a clock costs more than keeping an event, so events that follow each other at the boundary of
//! two jobs share one *stamp*: the end of one body is the beginning of the next. A stamp serves for
//! [`STAMP_USES`] events, and not beyond anything that takes time: a body, a look through other threads'
//! queues, a wake-up, a rest.
//!
//! Invariant: the stamps of one thread never run back.

use std::sync::Arc;

use event::{Event, EventKind, Nanos, Sink, Why};
use platform::{Atomic, Ordering, Platform};

use crate::border::{Payload, UserSink};
use crate::context::Context;
use crate::job::Ticket;
use crate::seat::Seat;
use crate::shared::Shared;
use crate::sitting::InSink;

/// So many more events may share the stamp of one.
const STAMP_USES: u32 = 8;

/// Where events go.
pub(crate) struct Tap<P: Platform> {
    sink: UserSink,
    /// The sink calls no job system.
    is_leaf: bool,
    is_on: P::AtomicU32,
    seats: Box<[Heard<P>]>,
}

/// What is kept of a seat for its events' sake.
struct Heard<P: Platform> {
    /// Who woke the thread, the seat plus 1, if it does not know it yet. All accesses are Relaxed: the
    /// waker's store is published by the parker's own edge.
    woken_by: P::AtomicU32,
    /// The platform's name for the thread that sat down last; 0: none.
    thread: P::AtomicU64,
}

/// A seat's last stamp.
#[derive(Default)]
pub(crate) struct Stamp {
    time: Nanos,
    uses_left: u32,
}

impl<P: Platform> Tap<P> {
    pub(crate) fn new(sink: Arc<dyn Sink>, is_on: bool, seats: usize) -> Tap<P> {
        let heard = |_| Heard {
            woken_by: P::AtomicU32::new(0),
            thread: P::AtomicU64::new(0),
        };
        let sink = UserSink::new(sink);
        Tap {
            is_leaf: sink.is_leaf(),
            sink,
            is_on: P::AtomicU32::new(u32::from(is_on)),
            seats: (0..seats).map(heard).collect(),
        }
    }

    /// Relaxed: who sees late that it was switched records a little more or less.
    #[inline]
    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed) != 0
    }

    fn heard(&self, seat: &Seat<P>) -> &Heard<P> {
        &self.seats[seat.index as usize]
    }
}

impl<P: Platform> Shared<P> {
    /// The tap, if events are recorded at this moment.
    #[inline]
    fn open_tap(&self) -> Option<&Tap<P>> {
        self.tap.as_ref().filter(|tap| tap.is_on())
    }

    /// By seat: the platform's name for the thread that sat down there last. Empty if nothing can be
    /// recorded.
    pub(crate) fn threads(&self) -> Vec<(u32, u64)> {
        let seats = self.tap.iter().flat_map(|tap| (0..).zip(&*tap.seats));
        let names = seats.map(|(seat, heard)| (seat, heard.thread.load(Ordering::Relaxed)));
        names.filter(|(_, thread)| *thread != 0).collect()
    }

    /// Switches recording on or off.
    pub(crate) fn set_recording(&self, on: bool) {
        let (Some(tap), Ok(context)) = (&self.tap, self.context()) else {
            return;
        };
        if tap.is_on() != on {
            for heard in tap.seats.iter().filter(|_| on) {
                // Who was woken while nobody listened is not known.
                heard.woken_by.store(0, Ordering::Relaxed);
            }
            // It is recorded while it is on.
            tap.is_on.store(1, Ordering::Relaxed);
            context.record(EventKind::Recording, Ticket::NONE, u64::from(on));
            tap.is_on.store(u32::from(on), Ordering::Relaxed);
        }
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.open_tap().is_some()
    }
}

impl<P: Platform> Context<'_, P> {
    /// Records an event, if anybody listens.
    #[inline]
    pub(crate) fn record(&self, kind: EventKind, job: Ticket, arg: u64) {
        if let Some(tap) = &self.shared.tap {
            self.record_into(tap, kind, job, arg);
        }
    }

    #[cold]
    fn record_into(&self, tap: &Tap<P>, kind: EventKind, job: Ticket, arg: u64) {
        if tap.is_on() {
            let time = self.stamp(kind);
            self.put(tap, time, kind, job, arg);
        }
    }

    #[inline]
    fn put(&self, tap: &Tap<P>, time: Nanos, kind: EventKind, job: Ticket, arg: u64) {
        let event = Event {
            time,
            job: job.0,
            arg,
            seat: self.seat.index,
            kind,
        };
        match tap.is_leaf {
            true => self.note_sink(tap.sink.record(&event)),
            false => self.call_sink(|| tap.sink.record(&event)),
        }
    }

    /// Calls a sink that may call back: what it calls of this job system is refused.
    fn call_sink(&self, call: impl FnOnce() -> Result<(), Payload>) {
        let called = self.in_frame(Ticket::NONE, || {
            let _in_sink = InSink::new(&self.shared.platform, self.shared.id.get());
            call()
        });
        self.note_sink(called);
    }

    /// A sink that panicked is counted.
    #[inline]
    fn note_sink(&self, called: Result<(), Payload>) {
        if called.is_err() {
            self.call_hook(|| called);
        }
    }

    /// The time of an event that happens now.
    #[inline]
    fn stamp(&self, kind: EventKind) -> Nanos {
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
        let shared = self.own(|own| {
            let usable = shares && own.stamp.uses_left > 0;
            usable.then(|| {
                own.stamp.uses_left -= 1;
                own.stamp.time
            })
        });
        let time = shared.unwrap_or_else(|| self.shared.platform.now());
        self.own(|own| {
            let uses_left = match (kind, shared) {
                // What comes next takes its time.
                (Kind::Begin | Kind::Park | Kind::Wake, _) => 0,
                (_, Some(_)) => own.stamp.uses_left,
                (_, None) => STAMP_USES,
            };
            own.stamp = Stamp { time, uses_left };
        });
        time
    }

    /// Time passes from here on: the next event needs a stamp of its own.
    #[inline]
    pub(crate) fn forget_stamp(&self) {
        self.own(|own| own.stamp.uses_left = 0);
    }

    /// The time, if events are recorded: for those that are recorded only when it is known what became of
    /// them.
    pub(crate) fn time_to_record(&self) -> Option<Nanos> {
        let tap = self.shared.open_tap();
        tap.map(|_| self.shared.platform.now())
    }

    /// Records an event of a moment ago; see [`time_to_record`](Context::time_to_record).
    pub(crate) fn record_at(&self, time: Option<Nanos>, kind: EventKind, arg: u64) {
        if let (Some(time), Some(tap)) = (time, &self.shared.tap) {
            self.forget_stamp();
            self.put(tap, time, kind, Ticket::NONE, arg);
        }
    }

    /// This thread has just sat down.
    #[cold]
    pub(crate) fn record_seated(&self) {
        if let Some(tap) = &self.shared.tap {
            let thread = self.shared.platform.thread_id();
            tap.heard(self.seat).thread.store(thread, Ordering::Relaxed);
            self.call_sink(|| tap.sink.seat_taken(self.seat.index));
            self.record(EventKind::Seated, Ticket::NONE, thread);
        }
    }

    /// This thread is about to wake the one on `seat`.
    #[inline]
    pub(crate) fn sign_wake_up(&self, seat: &Seat<P>) {
        if let Some(tap) = self.shared.open_tap() {
            let me = self.seat.index + 1;
            tap.heard(seat).woken_by.store(me, Ordering::Relaxed);
        }
    }

    /// This thread is awake again.
    pub(crate) fn record_unpark(&self, job: Ticket) {
        if let Some(tap) = self.shared.open_tap() {
            let woken_by = &tap.heard(self.seat).woken_by;
            let waker = woken_by.load(Ordering::Relaxed);
            // What is written in between is lost: the waker of a thread that was awake.
            woken_by.store(0, Ordering::Relaxed);
            self.record(EventKind::Unpark, job, u64::from(waker));
        }
    }

    /// Why the job that is claimed next is: forgotten when it is.
    pub(crate) fn set_why(&self, why: impl FnOnce() -> Why) {
        if self.shared.is_recording() {
            let why = why();
            self.own(|own| own.why = why);
        }
    }

    /// This thread has claimed the job.
    #[inline]
    pub(crate) fn record_claimed(&self, job: Ticket) {
        if let Some(tap) = &self.shared.tap {
            let why = self.own(|own| std::mem::replace(&mut own.why, Why::Next));
            self.record_into(tap, EventKind::Claimed, job, why as u64);
        }
    }
}
