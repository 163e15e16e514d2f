//! The program's own code for certain moments: closures given to the builder, and the sink of events.

use std::sync::Arc;

use event::{Event, Sink};

use crate::border::{Payload, UserValue};
use crate::error::{Stuck, UnwaitedPanic};

type Hook<F> = Option<UserValue<Arc<F>>>;

/// The hooks of a job system. Each method calls one of them and returns `None` if the program gave none.
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

    /// The name for the worker on this thread slot.
    pub(crate) fn thread_name(&self, thread: usize) -> Option<Result<String, Payload>> {
        let hook = self.name.as_ref()?;
        Some(hook.call(|name| name(thread)))
    }

    /// Tells the program that the worker on this thread slot starts.
    pub(crate) fn thread_starts(&self, thread: usize) -> Option<Result<(), Payload>> {
        let hook = self.start.as_ref()?;
        Some(hook.call(|start| start(thread)))
    }

    /// Tells the program that the worker on this thread slot stops.
    pub(crate) fn thread_stops(&self, thread: usize) -> Option<Result<(), Payload>> {
        let hook = self.stop.as_ref()?;
        Some(hook.call(|stop| stop(thread)))
    }

    /// Whether the program wants to know of panics that no wait reports.
    pub(crate) fn has_unwaited_hook(&self) -> bool {
        self.unwaited.is_some()
    }

    /// Reports such a panic.
    pub(crate) fn unwaited_panic(&self, panic: &UnwaitedPanic) -> Option<Result<(), Payload>> {
        let hook = self.unwaited.as_ref()?;
        Some(hook.call(|unwaited| unwaited(panic)))
    }

    /// Whether the program wants to know that ready work has no thread to run it.
    pub(crate) fn has_stuck_hook(&self) -> bool {
        self.stuck.is_some()
    }

    /// Reports that.
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

    /// Whether the sink calls no job system: the program promises that.
    pub(crate) fn is_leaf(&self) -> bool {
        self.0.call(|sink| sink.is_leaf()).unwrap_or(false)
    }

    #[inline]
    pub(crate) fn record(&self, event: &Event) -> Result<(), Payload> {
        self.0.call(|sink| sink.record(event))
    }

    pub(crate) fn slot_taken(&self, thread: u32) -> Result<(), Payload> {
        self.0.call(|sink| sink.slot_taken(thread))
    }
}
