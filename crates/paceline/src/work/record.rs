//! Recording events on a thread, by way of its job system's [`Recorder`].

use event::{Event, EventKind, Nanos, Why};
use platform::{Atomic, Ordering, Platform};

use super::context::Context;
use super::shared::Shared;
use super::thread_record::InSink;
use super::thread_slot::ThreadSlot;
use crate::border::Payload;
use crate::record::Recorder;
use crate::store::Ticket;

impl<P: Platform> Shared<P> {
    /// The recorder, if events are recorded at this moment.
    #[inline]
    fn active_recorder(&self) -> Option<&Recorder<P>> {
        self.recorder.get().filter(|recorder| recorder.is_on())
    }

    /// For each thread slot: the platform's name for the thread that has it, or had it last. Empty if nothing
    /// can be recorded.
    pub(crate) fn threads(&self) -> Vec<(u32, u64)> {
        let recorder = self.recorder.get();
        let slots = recorder
            .iter()
            .flat_map(|recorder| (0..).zip(&*recorder.slots));
        let names = slots.map(|(slot, notes)| (slot, notes.thread.load(Ordering::Relaxed)));
        names.filter(|(_, thread)| *thread != 0).collect()
    }

    /// Switches recording on or off.
    pub(crate) fn set_recording(&self, on: bool) {
        let (Some(recorder), Ok(context)) = (self.recorder.get(), self.context()) else {
            return;
        };
        if recorder.is_on() != on {
            for notes in recorder.slots.iter().filter(|_| on) {
                // Threads that were woken while recording was off have no known waker.
                notes.woken_by.store(0, Ordering::Relaxed);
            }
            // The switch itself is recorded while recording is on.
            recorder.switch(true);
            context.record(EventKind::Recording, Ticket::NONE, u64::from(on));
            recorder.switch(on);
        }
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.active_recorder().is_some()
    }
}

impl<P: Platform> Context<'_, P> {
    /// Records an event, if the job system records.
    #[inline]
    pub(crate) fn record(&self, kind: EventKind, job: Ticket, arg: u64) {
        if let Some(recorder) = self.shared.recorder.get() {
            self.record_into(recorder, kind, job, arg);
        }
    }

    #[cold]
    fn record_into(&self, recorder: &Recorder<P>, kind: EventKind, job: Ticket, arg: u64) {
        if recorder.is_on() {
            self.introduce_thread();
            let time = self.stamp(kind);
            self.put(recorder, time, kind, job, arg);
        }
    }

    #[inline]
    fn put(&self, recorder: &Recorder<P>, time: Nanos, kind: EventKind, job: Ticket, arg: u64) {
        let event = Event {
            time,
            job: job.0,
            arg,
            slot: self.thread.index,
            kind,
        };
        if recorder.is_leaf {
            self.note_sink(recorder.sink.record(&event))
        } else {
            self.call_sink(|| recorder.sink.record(&event))
        }
    }

    /// Calls a sink that may call back. Its calls into this job system are refused.
    fn call_sink(&self, call: impl FnOnce() -> Result<(), Payload>) {
        let called = self.in_frame(Ticket::NONE, || {
            let _in_sink = InSink::new(&self.shared.platform, self.shared.id.get());
            call()
        });
        self.note_sink(called);
    }

    /// Counts the panic if the sink has panicked.
    #[inline]
    fn note_sink(&self, called: Result<(), Payload>) {
        if called.is_err() {
            self.call_hook(|| called);
        }
    }

    /// The time of an event that happens now.
    #[inline]
    fn stamp(&self, kind: EventKind) -> Nanos {
        let shared = self.own(|own| own.record.shared_stamp(kind));
        let time = shared.unwrap_or_else(|| self.shared.platform.now());
        self.own(|own| own.record.stamped(kind, time, shared.is_some()));
        time
    }

    /// Time passes from here on: the next event needs a stamp of its own.
    #[inline]
    pub(crate) fn forget_stamp(&self) {
        self.own(|own| own.record.forget_stamp());
    }

    /// The time, if events are recorded. For events that are recorded only when their outcome is known.
    pub(crate) fn time_to_record(&self) -> Option<Nanos> {
        let recorder = self.shared.active_recorder();
        recorder.map(|_| {
            self.introduce_thread();
            self.shared.platform.now()
        })
    }

    /// Records an event of a moment ago; see [`time_to_record`](Context::time_to_record).
    pub(crate) fn record_at(&self, time: Option<Nanos>, kind: EventKind, arg: u64) {
        if let (Some(time), Some(recorder)) = (time, self.shared.recorder.get()) {
            self.forget_stamp();
            self.put(recorder, time, kind, Ticket::NONE, arg);
        }
    }

    /// Records that this thread has its slot, if it got the slot before there was a recorder.
    #[inline]
    fn introduce_thread(&self) {
        if !self.own(|own| own.record.is_introduced) {
            self.record_thread();
        }
    }

    /// Records that this thread has just got its slot.
    #[cold]
    pub(crate) fn record_thread(&self) {
        let is_introduced = self.shared.recorder.get().is_some();
        self.own(|own| own.record.is_introduced = is_introduced);
        if let Some(recorder) = self.shared.recorder.get() {
            let thread = self.shared.platform.thread_id();
            recorder
                .notes(self.thread.index)
                .thread
                .store(thread, Ordering::Relaxed);
            if recorder.is_traced()
                && let Some(name) = self.thread.posted.name()
            {
                recorder.note_newcomer(thread, name);
            }
            self.call_sink(|| recorder.sink.slot_taken(self.thread.index));
            self.record(EventKind::SlotTaken, Ticket::NONE, thread);
        }
    }

    /// Notes, for the thread on `slot`, that this thread is about to wake it.
    #[inline]
    pub(crate) fn sign_wake_up(&self, slot: &ThreadSlot<P>) {
        if let Some(recorder) = self.shared.active_recorder() {
            let me = self.thread.index + 1;
            recorder
                .notes(slot.index)
                .woken_by
                .store(me, Ordering::Relaxed);
        }
    }

    /// Records that this thread is awake again.
    pub(crate) fn record_unpark(&self, job: Ticket) {
        if let Some(recorder) = self.shared.active_recorder() {
            let woken_by = &recorder.notes(self.thread.index).woken_by;
            let waker = woken_by.load(Ordering::Relaxed);
            // A note written in between is lost: that waker found the thread awake.
            woken_by.store(0, Ordering::Relaxed);
            self.record(EventKind::Unpark, job, u64::from(waker));
        }
    }

    /// Sets the reason for the next claim. The claim takes it.
    pub(crate) fn set_why(&self, why: impl FnOnce() -> Why) {
        if self.shared.is_recording() {
            let why = why();
            self.own(|own| own.record.why = why);
        }
    }

    /// Records that this thread has claimed the job.
    #[inline]
    pub(crate) fn record_claimed(&self, job: Ticket) {
        if let Some(recorder) = self.shared.recorder.get() {
            let why = self.own(|own| std::mem::replace(&mut own.record.why, Why::Next));
            self.record_into(recorder, EventKind::Claimed, job, why as u64);
        }
    }
}
