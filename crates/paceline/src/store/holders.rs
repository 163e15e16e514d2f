//! The holders word of a job with a handle: which sides still need its slot, and where its value is.
//!
//! The finisher and the handle each have a bit, and the last to leave frees the slot. The value is the result
//! of the job's body, or an event gives it. An event is a third side, whose bits decide which side drops the
//! value. Its job is not over before the event is. So the event needs no bit to keep the slot.
//!
//! ```text
//! event, with a value                          handle, which goes
//! puts the value into the slot
//! sets GIVEN                                   sets TAKEN
//! TAKEN was there: takes the value back        GIVEN was there: drops the value
//! releases the job                             gives up HANDLE
//! ```
//!
//! Both bits are set by read-modify-writes of one word. So exactly one side finds the bit of the other, and
//! drops the value; if the job is over in between, the handle takes it. Either way the value goes while the
//! event or the handle lives. That matters in scopes, which do not wait for events: what the value borrows
//! lives as long as the types of these two say.

use platform::{Atomic, Ordering, Platform, SharedCell};

use super::body::{Body, BodyTable};
use super::slot::Slot;
use crate::border::{Payload, caught};

/// A value on its way into a slot, without its type.
pub(crate) trait SlotValue {
    /// Puts the value into the slot.
    ///
    /// # Safety
    /// The body is empty, and the caller has it to itself.
    unsafe fn put(&mut self, body: *mut Body);

    /// Takes it back.
    ///
    /// # Safety
    /// The caller has just put it there, and has the body to itself.
    unsafe fn take_back(&mut self, body: *mut Body);

    /// Drops the value if it is here.
    fn discard(&mut self) -> Result<(), Payload>;
}

impl<T> SlotValue for Option<T> {
    unsafe fn put(&mut self, body: *mut Body) {
        if let Some(value) = self.take() {
            // SAFETY: the caller's promise.
            unsafe { Body::put(body, value) };
        }
    }

    unsafe fn take_back(&mut self, body: *mut Body) {
        // SAFETY: `put` has put a `T` there (the caller's promise).
        *self = Some(unsafe { Body::take::<T>(body) });
    }

    fn discard(&mut self) -> Result<(), Payload> {
        let value = self.take();
        caught(|| drop(value))
    }
}

impl<P: Platform> Slot<P> {
    /// Bit of `holders`: the thread that finishes the job.
    pub(crate) const FINISHER: u32 = 1;
    /// Bit of `holders`: the handle.
    pub(crate) const HANDLE: u32 = 1 << 1;
    /// Bit of `holders`: the handle has taken the value, or has gone without.
    pub(crate) const TAKEN: u32 = 1 << 2;
    /// Bit of `holders`: an event gives the value.
    pub(crate) const PROMISED: u32 = 1 << 3;
    /// Bit of `holders`: the event has given it.
    pub(crate) const GIVEN: u32 = 1 << 4;
    /// Bit of `holders`: the handle belongs to a successor, as its input. No wait hears of a failure by it.
    pub(crate) const INPUT: u32 = 1 << 5;

    /// Fills in the body of a new job, as [`put_body`](Slot::put_body) does.
    ///
    /// # Safety
    /// The job is new: no other thread knows it. `table` is that of the body's type, and everything that the
    /// body borrows lives until the job has ended.
    pub(crate) unsafe fn put_value(&self, body: &mut dyn SlotValue, table: &'static BodyTable) {
        // SAFETY: the caller's promise: this thread has table and body to itself, and the slot's last body is
        // gone.
        unsafe {
            self.table.with_mut(|place| *place = Some(table));
            self.body.with_mut(|place| body.put(place));
        }
    }

    /// Makes a new job one whose value an event gives.
    ///
    /// # Safety
    /// The job is new: no other thread knows it. `table` is that of the value's type.
    pub(crate) unsafe fn promise(&self, table: &'static BodyTable) {
        // SAFETY: the caller's promise: this thread has the table to itself.
        unsafe { self.table.with_mut(|place| *place = Some(table)) };
        let all = Slot::<P>::FINISHER | Slot::<P>::HANDLE | Slot::<P>::PROMISED;
        // Relaxed: published with the job.
        self.holders.store(all, Ordering::Relaxed);
    }

    /// Gives the value of an event, unless the handle has gone, or there is none. The caller completes the
    /// event, and still holds its job back.
    pub(crate) fn give(&self, value: &mut dyn SlotValue) {
        // Relaxed, both: written before the event was handed out. TAKEN is a hint here.
        let is_held = self.flags.load(Ordering::Relaxed) & Slot::<P>::IS_HELD != 0;
        let holders = self.holders.load(Ordering::Relaxed);
        let is_wanted = holders & (Slot::<P>::PROMISED | Slot::<P>::TAKEN) == Slot::<P>::PROMISED;
        if !is_held || !is_wanted {
            return;
        }
        // SAFETY: no body was put there, and the handle looks only after GIVEN.
        unsafe { self.body.with_mut(|body| value.put(body)) };
        // AcqRel, partner: the same in `forgo`, and the subtraction in `let_go`: the value is visible to the
        // side that drops it.
        let before = self.holders.fetch_or(Slot::<P>::GIVEN, Ordering::AcqRel);
        if before & Slot::<P>::TAKEN != 0 {
            // SAFETY: it was put there above, and the handle has found nothing.
            unsafe { self.body.with_mut(|body| value.take_back(body)) };
        }
    }

    /// The handle goes without the value of its event, if the value is one. Returns whether it is there: then
    /// the caller drops it. The handle still has its bit.
    #[inline]
    pub(crate) fn forgo(&self) -> bool {
        // Relaxed: written before the handle was made.
        if self.holders.load(Ordering::Relaxed) & Slot::<P>::PROMISED == 0 {
            return false;
        }
        // AcqRel, partner: the same in `give`.
        let before = self.holders.fetch_or(Slot::<P>::TAKEN, Ordering::AcqRel);
        before & Slot::<P>::GIVEN != 0
    }
}
