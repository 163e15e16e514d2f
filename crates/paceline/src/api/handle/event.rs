//! [`Event`]: the right to complete a job from outside.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::owner::Owner;
use crate::store::JobId;

/// The right to complete a job from outside, from [`JobSystem::event`](crate::JobSystem::event). Waits and
/// jobs that depend on [`id`](Event::id) go on after [`complete`](Event::complete), which any thread may call
/// at any time.
///
/// An event may have a value ([`JobSystem::event_with`](crate::JobSystem::event_with)). Then it comes with
/// the [`Job`](crate::Job) handle that the value goes to, by way of
/// [`complete_with`](Event::complete_with).
///
/// Dropping an event uncompleted is an error for waits for it ([`WaitError::Abandoned`]), not a hang, and
/// cancels the jobs that depend on it.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let loaded = js.event("loaded");
/// let use_it = js.job("use it").after(loaded.id()).run(|_| "used");
/// assert!(!use_it.is_done());
/// loaded.complete();
/// assert_eq!(use_it.wait(), "used");
/// ```
///
/// [`WaitError::Abandoned`]: crate::WaitError::Abandoned
#[must_use = "dropping an event uncompleted cancels what depends on it"]
pub struct Event<T = ()> {
    owner: Arc<dyn Owner>,
    id: JobId,
    /// It takes a value.
    _value: PhantomData<fn(T)>,
}

impl Event {
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
        self.complete_with(());
    }
}

impl<T> Event<T> {
    pub(crate) fn new(owner: Arc<dyn Owner>, id: JobId) -> Event<T> {
        Event {
            owner,
            id,
            _value: PhantomData,
        }
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

    /// Ends nothing: the caller ends the job itself.
    pub(crate) fn into_id(self) -> JobId {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is never used again; its owner is dropped here instead of in `drop`.
        drop(unsafe { std::ptr::read(&this.owner) });
        this.id
    }

    /// Completes the event with its value, which goes to the handle that the event came with. As
    /// [`complete`](Event::complete), it runs nothing and cannot fail.
    ///
    /// If the handle is gone, the value is dropped by this call, after all that depends on the event has been
    /// told. A value of up to 64 bytes lies in the event's slot; a larger one is boxed.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (read, bytes) = js.event_with::<Vec<u8>>("read");
    /// std::thread::spawn(move || read.complete_with(vec![1, 2, 3])); // Any thread may do that.
    /// assert_eq!(bytes.wait(), [1, 2, 3]);
    /// ```
    pub fn complete_with(self, value: T) {
        let this = ManuallyDrop::new(self);
        this.owner
            .end_event(this.id.ticket(), Some(&mut Some(value)));
        // SAFETY: `this` is never used again; its owner is dropped here instead of in `drop`.
        drop(unsafe { std::ptr::read(&this.owner) });
    }
}

impl<T> From<&Event<T>> for JobId {
    fn from(event: &Event<T>) -> JobId {
        event.id()
    }
}

impl<T> Drop for Event<T> {
    fn drop(&mut self) {
        self.owner.end_event(self.id.ticket(), None);
    }
}

impl<T> fmt::Debug for Event<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({:?})", self.id)
    }
}
