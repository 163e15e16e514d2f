//! Frames: each has a label, a deadline, and the jobs in between.

use std::ops::Deref;
use std::panic::Location;
use std::time::Duration;

use event::{EventKind, Nanos};
use platform::{Atomic, Ordering, Os, Platform};

use super::schedule::NewJob;
use super::system::JobSystem;
use crate::store::{JobId, Label, LaneFlags, Name, Slot, Ticket};
use crate::work::{Context, Shared};

/// One turn of the program's main loop, from [`JobSystem::frame`](crate::JobSystem::frame) until it is
/// dropped.
///
/// A frame counts a missed deadline ([`Stats::frames_missed`](crate::Stats::frames_missed)), feeds the
/// adaptation to the machine, and names the trace's frame. It does not pace or cancel, and dropping it waits
/// for nothing: a job that is not waited for runs on into the next frame.
///
/// **Several frames in flight.** A frame is in flight until it is dropped, on whatever thread. Of any two,
/// the one with the earlier deadline goes first: while an earlier one is in flight, the jobs that a frame
/// makes ([`job`](Frame::job), [`schedule`](Frame::schedule), [`start`](Frame::start)) are one lane lower,
/// and so are the jobs that these make. A frame that begins with an earlier deadline than one that is in
/// flight already, as that of a sound buffer does beside a picture's, has its jobs one lane higher. Among
/// those that are lowered, and among those that are raised, the order is that of the deadlines. Waits raise
/// jobs as ever: what a thread waits for, a scope's and a loop's jobs among them, is in the lane of the
/// waiter. Jobs that are lowered or raised by their frame go through a queue that all threads share; each
/// costs a lock. Where frames do not overlap nothing of this happens. A job that names its lane
/// ([`NewJob::lane`](crate::NewJob::lane)), [`Lane::Frame`](crate::Lane::Frame) in a lowered frame or
/// [`Lane::Normal`](crate::Lane::Normal) in a raised one, is one lane lower or higher than that one; so is a
/// job of a graph. Lanes with a share and the background stay as they are.
///
/// A frame may make the job system look at the machine again, and change the number of workers if other
/// programs are in its way ([`JobSystem::interference`](crate::JobSystem::interference)).
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
pub struct Frame<'js, P: Platform = Os> {
    shared: &'js Shared<P>,
    js: JobSystem<P>,
    label: Label,
    number: u64,
    start: Nanos,
    budget: Duration,
    deadline: Nanos,
}

impl<'js, P: Platform> Frame<'js, P> {
    #[track_caller]
    pub(super) fn begin(shared: &'js Shared<P>, name: &'static str, budget: Duration) -> Self {
        let label = Label {
            name,
            site: Location::caller(),
        };
        // Relaxed: a number.
        let number = shared.frames.fetch_add(1, Ordering::Relaxed);
        let mut start = shared.platform.now();
        let context = shared.context();
        if let Ok(cx) = &context
            && shared.adapt.frame_begins(cx, start)
        {
            // The time that it took is not part of the frame.
            start = shared.platform.now();
        }
        let deadline = start + Nanos::from(budget);
        shared.frame_begins(number, deadline);
        if let Ok(cx) = context {
            if let Some(order) = shared.order.get() {
                order.frame_begins(&cx, number, &label);
            }
            cx.record(EventKind::FrameBegin, Ticket(number), deadline.0);
        }
        Frame {
            shared,
            js: JobSystem::view(shared),
            label,
            number,
            start,
            budget,
            deadline,
        }
    }

    /// Begins the description of a job of this frame; as [`JobSystem::job`]. If several frames are in flight,
    /// the deadline of this one decides how urgent the job is; then it takes a short lock more.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let picture = js.frame("picture", Duration::from_millis(16));
    /// let draw = picture.job("draw").run(|_| "a picture");
    /// let sound = js.frame("sound", Duration::from_millis(5));
    /// let mix = sound.job("mix").run(|_| "a buffer"); // It goes before further jobs of the picture.
    /// assert_eq!((mix.wait(), draw.wait()), ("a buffer", "a picture"));
    /// ```
    #[track_caller]
    pub fn job(&self, name: impl Into<Name>) -> NewJob<'js, 'static, P> {
        let lane = self.lane();
        let job = NewJob::outside(self.shared, name.into().as_str());
        job.in_frame(lane).in_order_of(self.number)
    }

    /// The lane of a normal job of this frame that is going to be made.
    pub(super) fn lane(&self) -> LaneFlags {
        self.shared.lane_of_frame(self.number)
    }

    /// The job system, for longer than the frame.
    pub(super) fn shared(&self) -> &'js Shared<P> {
        self.shared
    }

    /// Schedules a job of this frame that depends on nothing; its name is "job". As [`JobSystem::schedule`]
    /// and [`job`](Frame::job).
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let frame = js.frame("update", Duration::from_millis(16));
    /// frame.wait(frame.schedule(|_| println!("in this frame")));
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_schedule`] gives an error.
    #[track_caller]
    pub fn schedule<F>(&self, body: F) -> JobId
    where
        F: FnOnce(&Context<'_, P>) + Send + 'static,
    {
        self.job("job").schedule(body)
    }

    /// The label given to [`JobSystem::frame`](crate::JobSystem::frame).
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let frame = js.frame("update", Duration::from_millis(16));
    /// assert_eq!((frame.label(), frame.number()), ("update", 0));
    /// assert!(frame.elapsed() < Duration::from_secs(60));
    /// ```
    pub fn label(&self) -> &'static str {
        self.label.name
    }

    /// The number of frames that this job system had begun before this one.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// for number in 0..3 {
    ///     assert_eq!(js.frame("update", Duration::from_millis(16)).number(), number);
    /// }
    /// ```
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The time since the frame began. Reads a clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let frame = js.frame("update", Duration::from_millis(16));
    /// let before = frame.elapsed();
    /// js.wait(frame.schedule(|_| ()));
    /// assert!(frame.elapsed() >= before);
    /// ```
    pub fn elapsed(&self) -> Duration {
        (self.shared.platform.now() - self.start).into()
    }

    /// The time that the frame was given when it began.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let frame = js.frame("update", Duration::from_millis(16));
    /// assert_eq!(frame.budget(), Duration::from_millis(16));
    /// ```
    pub fn budget(&self) -> Duration {
        self.budget
    }

    /// The time until the frame's deadline; zero when that has passed. Reads a clock. It is for work that can
    /// be put off: the frame itself ends no job.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let frame = js.frame("update", Duration::from_secs(3600));
    /// let mut particles = vec![0.0; 100];
    /// if frame.remaining() > Duration::from_millis(2) {
    ///     frame.over(&mut particles).for_each(|particle| *particle += 1.0);
    /// }
    /// assert_eq!(particles[99], 1.0);
    ///
    /// let late = js.frame("update", Duration::ZERO);
    /// assert_eq!(late.remaining(), Duration::ZERO);
    /// ```
    pub fn remaining(&self) -> Duration {
        (self.deadline - self.shared.platform.now()).into()
    }
}

impl<P: Platform> NewJob<'_, '_, P> {
    /// The job begins in the order of what hangs on it in the frame with this number, if that is learnt.
    fn in_order_of(mut self, frame: u64) -> Self {
        if self.shared().order.get().is_some() {
            self.flags |= Slot::<P>::IS_RANKED;
            self.frame_number = frame;
        }
        self
    }
}

/// A frame says all that its job system says: [`job`](JobSystem::job), [`schedule`](JobSystem::schedule),
/// [`event`](JobSystem::event), [`scope`](JobSystem::scope), [`over`](JobSystem::over),
/// [`wait`](JobSystem::wait). The frame's end does not wait for its jobs.
///
/// ```
/// use std::time::Duration;
/// let js = paceline::JobSystem::new();
/// let (mut positions, mut drawn) = (vec![0.0; 100], 0.0);
/// let frame = js.frame("update", Duration::from_millis(16));
/// frame.over(&mut positions).for_each(|x| *x += 1.0);
/// frame.scope(|scope| {
///     let sum = scope.job("sum").run(|cx| cx.over(&positions).reduce(|x| *x, |a, b| a + b));
///     scope.job("draw").after(&sum).schedule(|_| drawn = sum.wait().unwrap_or(0.0));
/// });
/// assert_eq!(drawn, 100.0);
/// ```
impl<P: Platform> Deref for Frame<'_, P> {
    type Target = JobSystem<P>;

    fn deref(&self) -> &JobSystem<P> {
        &self.js
    }
}

impl<P: Platform> Drop for Frame<'_, P> {
    fn drop(&mut self) {
        let shared = self.shared;
        let end = shared.platform.now();
        let missed = end > self.deadline;
        let context = shared.context();
        shared.frame_ends(context.as_ref().ok(), self.number);
        if let Ok(cx) = context {
            if let Some(order) = shared.order.get() {
                order.frame_ends(&cx, self.number);
            }
            cx.thread.counters.frames.add(1);
            cx.thread.counters.frames_missed.add(u64::from(missed));
            if shared.is_recording() {
                let label = u64::from(cx.graph().label_number(&self.label)) + 1;
                let arg = label << 32 | u64::from(missed);
                cx.record(EventKind::FrameEnd, Ticket(self.number), arg);
            }
            shared.adapt.frame_ended(&cx, self.start, end);
        }
    }
}
