//! The calling thread as other layers see it: the graph calls it through [`Driver`], and adaptation through
//! [`Caller`].

use event::EventKind;
use platform::{Atomic, Ordering, Platform};

use super::context::Context;
use super::shared::Shared;
use crate::adapt::{AdaptLocal, Caller};
use crate::border::{Payload, UserValue};
use crate::graph::{Driver, Graph, GraphLocal};
use crate::hooks::Hooks;
use crate::queues::Queue;
use crate::stats::Counters;
use crate::store::{Slot, Ticket};

impl<P: Platform> Driver<P> for Context<'_, P> {
    #[inline(always)]
    fn jobs(&self) -> &Graph<P> {
        &self.shared.graph
    }

    #[inline]
    fn index(&self) -> u32 {
        self.thread.index
    }

    #[inline(always)]
    fn local<R>(&self, f: impl FnOnce(&mut GraphLocal) -> R) -> R {
        self.own(|own| f(&mut own.graph))
    }

    #[inline]
    fn counters(&self) -> &Counters<P> {
        &self.thread.counters
    }

    fn hooks(&self) -> &Hooks {
        &self.shared.hooks
    }

    #[inline]
    fn record(&self, kind: EventKind, job: Ticket, arg: u64) {
        Context::record(self, kind, job, arg);
    }

    #[inline(always)]
    fn enqueue(&self, job: Ticket, queue: Queue) {
        Context::enqueue(self, job, queue);
    }

    fn enqueue_in_lane(&self, job: Ticket, queue: Queue) {
        Context::enqueue_in_lane(self, job, queue);
    }

    fn hand_to_thread(&self, job: Ticket) {
        if let Some(pinned) = self.shared.pinned.get() {
            pinned.hand_over(self, job);
        }
    }

    fn gets_rank(&self, job: Ticket, slot: &Slot<P>) {
        if let Some(order) = self.shared.order.get() {
            order.is_about_to_be_ready(job, slot);
        }
    }

    #[inline]
    fn publish(&self, queue: Queue) {
        Context::publish(self, queue, false);
    }

    fn wake_listener(&self, thread: u32) {
        // The waiter may be spinning on the epoch, or may be parked.
        self.shared.idle.bump();
        self.unpark(self.shared.threads.get(thread as usize));
    }

    fn has_new_predecessor(&self, job: Ticket) {
        // SeqCst, partner: the fence of a waiter before its last look.
        P::fence(Ordering::SeqCst);
        if self.shared.lanes.are_used() {
            self.raise_new_predecessor(job);
        }
        if let Some(pinned) = self.shared.pinned.get() {
            pinned.waits_have_changed(self);
        }
        if self.shared.idle.load().watching > 0 {
            self.shared.idle.bump();
            self.alert_watcher_of(job);
        }
    }

    /// Whether a thread waits for the job without being a listener: this thread, in whose wait the job has
    /// just been run, or another thread that is about to look. (A thread that helps with something else
    /// meanwhile is overlooked.)
    fn is_awaited(&self, job: Ticket) -> bool {
        let here = self.own(|own| own.wait.awaited.contains(&job));
        let mut threads = self.shared.threads.iter();
        here || threads.any(|thread| thread.waits_for.load(Ordering::Relaxed) == job.0)
    }

    #[cold]
    #[inline(never)]
    fn forget_extras(&self, job: Ticket) {
        if let Some(tokens) = self.shared.tokens.get() {
            tokens.forget(job);
        }
        if let Some(pinned) = self.shared.pinned.get() {
            pinned.forget(job);
        }
    }

    fn discard_held(&self, job: Ticket, drop_it: impl FnOnce() -> Result<(), Payload>) {
        Context::discard_held(self, job, drop_it);
    }

    fn discard<T>(&self, value: UserValue<T>) {
        self.in_frame(Ticket::NONE, || self.shared.panics.discard(value));
    }

    fn call_hook<R>(&self, call: impl FnOnce() -> Result<R, Payload>) -> Option<R> {
        Context::call_hook(self, call)
    }
}

impl<P: Platform> Caller<P> for Context<'_, P> {
    type Workers = Shared<P>;

    fn workers(&self) -> &Shared<P> {
        self.shared
    }

    fn index(&self) -> usize {
        self.thread.index as usize
    }

    #[inline(always)]
    fn local<R>(&self, f: impl FnOnce(&mut AdaptLocal) -> R) -> R {
        self.own(|own| f(&mut own.adapt))
    }

    fn counters(&self) -> &Counters<P> {
        &self.thread.counters
    }

    fn note(&self, kind: EventKind, job: u64, arg: u64) {
        self.record(kind, Ticket(job), arg);
    }

    fn wake_one(&self) {
        let sleeper = self.shared.slow.idle.wake_one();
        if let Some(thread) = sleeper.or_else(|| self.shared.idle.wake_one()) {
            self.wake_worker(thread);
        }
    }
}
