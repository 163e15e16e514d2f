//! Frames: a label, a deadline, and the jobs in between.

use std::time::Duration;

use event::{EventKind, Nanos};
use platform::{Atomic, Ordering, Platform};

use crate::context::Context;
use crate::job::{JobId, Ticket};
use crate::schedule::NewJob;
use crate::system::JobSystem;

/// One turn of the program's main loop, from [`JobSystem::frame`] until it is dropped.
///
/// Dropping ends the frame and never waits: what the frame needs is waited for explicitly. A frame
/// that ends after its deadline is counted as missed.
///
/// ```
/// use std::time::Duration;
/// let js = paceline::JobSystem::new();
/// {
///     let frame = js.frame("update", Duration::from_millis(16));
///     let physics = frame.job("physics").schedule(|_| ());
///     js.wait(physics);
/// }
/// assert_eq!(js.stats().frames, 1);
/// ```
#[must_use = "a frame ends when it is dropped"]
pub struct Frame<'js, P: Platform> {
    system: &'js JobSystem<P>,
    label: &'static str,
    number: u64,
    start: Nanos,
    deadline: Nanos,
}

impl<'js, P: Platform> Frame<'js, P> {
    pub(crate) fn begin(system: &'js JobSystem<P>, label: &'static str, budget: Duration) -> Self {
        let shared = system.shared();
        // Relaxed: a number.
        let number = shared.frames.fetch_add(1, Ordering::Relaxed);
        let mut start = shared.platform.now();
        let context = shared.context();
        if let Ok(cx) = &context
            && shared.adapt.frame_begins(cx, start)
        {
            // It took some time, which is none of the frame's.
            start = shared.platform.now();
        }
        let deadline = start + Nanos::from(budget);
        if let Ok(cx) = context {
            cx.record(EventKind::FrameBegin, Ticket(number), deadline.0);
        }
        Frame {
            system,
            label,
            number,
            start,
            deadline,
        }
    }

    /// What the frame is called.
    pub fn label(&self) -> &'static str {
        self.label
    }

    /// How many frames this job system had begun before this one.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How long the frame has lasted.
    pub fn elapsed(&self) -> Duration {
        (self.system.shared().platform.now() - self.start).into()
    }

    /// Begins the description of a job of this frame.
    #[track_caller]
    pub fn job(&self, name: &'static str) -> NewJob<'_, P> {
        self.system.job(name)
    }

    /// Schedules a job of this frame.
    #[track_caller]
    pub fn schedule<F>(&self, body: F) -> JobId
    where
        F: FnOnce(&Context<'_, P>) + Send + 'static,
    {
        self.system.job("job").schedule(body)
    }
}

impl<P: Platform> Drop for Frame<'_, P> {
    fn drop(&mut self) {
        let shared = self.system.shared();
        let end = shared.platform.now();
        let missed = end > self.deadline;
        if let Ok(cx) = shared.context() {
            cx.seat.counters.frames.add(1);
            cx.seat.counters.frames_missed.add(u64::from(missed));
            cx.record(EventKind::FrameEnd, Ticket(self.number), u64::from(missed));
            shared.adapt.frame_ended(&cx, self.start, end);
        }
    }
}
