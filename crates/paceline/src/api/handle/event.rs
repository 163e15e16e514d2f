//! [`Event`]: the right to complete a job from outside.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::owner::Owner;
use crate::store::JobId;

/// The right to complete a job from outside, from [`JobSystem::event`](crate::JobSystem::event). Waits and
/// jobs that depend on [`id`](Event::id) go on after [`complete`](Event::complete), which any thread may call
/// at any time.
///
/// Dropping an event uncompleted is an error for waits for it
/// ([`WaitError::Abandoned`](crate::WaitError::Abandoned)), not a hang, and cancels the jobs that depend on
/// it.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let loaded = js.event("loaded");
/// let use_it = js.job("use it").after(loaded.id()).run(|_| "used");
/// assert!(!use_it.is_done());
/// loaded.complete();
/// assert_eq!(use_it.wait(), "used");
/// ```
#[must_use = "dropping an event uncompleted cancels what depends on it"]
pub struct Event {
    owner: Arc<dyn Owner>,
    id: JobId,
}

impl Event {
    pub(crate) fn new(owner: Arc<dyn Owner>, id: JobId) -> Event {
        Event { owner, id }
    }

    /// The job that is over when the event is completed.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let loaded = js.event("loaded");
    /// let id = loaded.id();
    /// assert!(!js.is_done(id));
    /// loaded.complete();
    /// assert!(js.is_done(id));
    /// ```
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Completes the event. Jobs that depended on nothing else are ready then, and workers are woken for
    /// them. Runs nothing, and cannot fail: a thread without a slot is lent one for the call, for which it
    /// may have to wait. In a fork's child nothing happens.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let loaded = js.event("loaded");
    /// let shown = js.job("show").after(loaded.id()).run(|_| "shown");
    /// std::thread::spawn(move || loaded.complete()); // Any thread may do that.
    /// assert_eq!(shown.wait(), "shown");
    /// ```
    pub fn complete(self) {
        let this = ManuallyDrop::new(self);
        this.owner.complete_event(this.id.ticket(), false);
        // SAFETY: `this` is never used again; its owner is dropped here instead of in `drop`.
        drop(unsafe { std::ptr::read(&this.owner) });
    }
}

impl From<&Event> for JobId {
    fn from(event: &Event) -> JobId {
        event.id()
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.owner.complete_event(self.id.ticket(), true);
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({:?})", self.id)
    }
}
