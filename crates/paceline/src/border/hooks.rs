//! What the program wants to be told or asked: closures given to the builder, and the sink of events.

use std::sync::Arc;

use event::{Event, Sink};

use super::{Payload, UserValue};
use crate::error::{Stuck, UnwaitedPanic};

type Hook<F> = Option<UserValue<Arc<F>>>;

/// The hooks of a job system. Each method calls one of them; `None` where the program gave none.
#[derive(Default)]
pub(crate) struct Hooks {
    name: Hook<dyn Fn(usize) -> String + Send + Sync>,
    start: Hook<dyn Fn(usize) + Send + Sync>,
    stop: Hook<dyn Fn(usize) + Send + Sync>,
    unwaited: Hook<dyn Fn(&UnwaitedPanic) + Send + Sync>,
    stuck: Hook<dyn Fn(&Stuck) + Send + Sync>,
}

impl Hooks {
    pub(crate) fn set_name(&mut self, hook: impl Fn(usize) -> String + Send + Sync + 'static) {
        self.name = Some(UserValue::new(Arc::new(hook)));
    }

    pub(crate) fn set_start(&mut self, hook: impl Fn(usize) + Send + Sync + 'static) {
        self.start = Some(UserValue::new(Arc::new(hook)));
    }

    pub(crate) fn set_stop(&mut self, hook: impl Fn(usize) + Send + Sync + 'static) {
        self.stop = Some(UserValue::new(Arc::new(hook)));
    }

    pub(crate) fn set_unwaited(&mut self, hook: impl Fn(&UnwaitedPanic) + Send + Sync + 'static) {
        self.unwaited = Some(UserValue::new(Arc::new(hook)));
    }

    pub(crate) fn set_stuck(&mut self, hook: impl Fn(&Stuck) + Send + Sync + 'static) {
        self.stuck = Some(UserValue::new(Arc::new(hook)));
    }

    /// What the worker on this seat is to be called.
    pub(crate) fn thread_name(&self, seat: usize) -> Option<Result<String, Payload>> {
        let hook = self.name.as_ref()?;
        Some(hook.call(|name| name(seat)))
    }

    /// The worker on this seat starts.
    pub(crate) fn thread_starts(&self, seat: usize) -> Option<Result<(), Payload>> {
        let hook = self.start.as_ref()?;
        Some(hook.call(|start| start(seat)))
    }

    /// The worker on this seat stops.
    pub(crate) fn thread_stops(&self, seat: usize) -> Option<Result<(), Payload>> {
        let hook = self.stop.as_ref()?;
        Some(hook.call(|stop| stop(seat)))
    }

    /// Whether panics that no wait hears of are to be told.
    pub(crate) fn hears_of_panics(&self) -> bool {
        self.unwaited.is_some()
    }

    /// Tells one.
    pub(crate) fn unwaited_panic(&self, panic: &UnwaitedPanic) -> Option<Result<(), Payload>> {
        let hook = self.unwaited.as_ref()?;
        Some(hook.call(|unwaited| unwaited(panic)))
    }

    /// Whether to be told that ready work has no thread to run it.
    pub(crate) fn hears_of_stuck(&self) -> bool {
        self.stuck.is_some()
    }

    /// Tells it.
    pub(crate) fn stuck(&self, stuck: &Stuck) -> Option<Result<(), Payload>> {
        let hook = self.stuck.as_ref()?;
        Some(hook.call(|hook| hook(stuck)))
    }
}

/// The sink of a recording.
pub(crate) struct UserSink(UserValue<Arc<dyn Sink>>);

impl UserSink {
    pub(crate) fn new(sink: Arc<dyn Sink>) -> UserSink {
        UserSink(UserValue::new(sink))
    }

    /// Whether it calls no job system: the program's promise.
    pub(crate) fn is_leaf(&self) -> bool {
        self.0.call(|sink| sink.is_leaf()).unwrap_or(false)
    }

    #[inline]
    pub(crate) fn record(&self, event: &Event) -> Result<(), Payload> {
        self.0.call(|sink| sink.record(event))
    }

    pub(crate) fn seat_taken(&self, seat: u32) -> Result<(), Payload> {
        self.0.call(|sink| sink.seat_taken(seat))
    }
}
