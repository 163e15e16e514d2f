//! The setting for the order in which the jobs of a frame begin.

use platform::Platform;

use super::Builder;
use crate::work::Shared;

impl<P: Platform> Builder<P> {
    /// Jobs of frames ([`Frame::job`](crate::Frame::job)) begin in the order of what hangs on them: first
    /// the one with the longest way ahead, through all jobs of the frame that come after it. `false` by
    /// default.
    ///
    /// Work-stealing begins jobs in an order that is good for the caches. If a long chain of jobs begins
    /// late, a frame takes up to twice as long as it needs. The order is learnt from the last frames of the
    /// same name. Jobs are known again by their label and by how many of it the frame has made before.
    /// The first four frames of a name are timed, and then one in eight. The order follows when a job takes
    /// an eighth more or less than before. It is that of the normal lane: jobs of other lanes
    /// ([`NewJob::lane`](crate::NewJob::lane)) are not affected, nor are those that jobs make themselves.
    /// A loop that is such a job, or in the body of one, gets helpers before other jobs are begun, if its job
    /// is on the longest way or near it.
    ///
    /// It costs each job of a frame a short lock, two more in frames that are timed, and one for the queue
    /// that such jobs pass through if they hold up the rest; a wait for jobs of frames a look at all
    /// that it waits for, once; and every job of the job system a few nanoseconds for a look. So it is for
    /// jobs of some 10 us and more. A frame that is the same every time is cheaper as a graph that is built
    /// once
    /// ([`BuiltGraph::critical_first`](crate::BuiltGraph::critical_first)).
    ///
    /// The order is that of HEFT (Topcuoglu, Hariri and Wu, 2002).
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::Builder::new().critical_first(true).build().unwrap();
    /// for _ in 0..10 {
    ///     let frame = js.frame("update", Duration::from_millis(16));
    ///     let particles: Vec<_> = (0..100).map(|_| frame.job("particles").schedule(|_| ())).collect();
    ///     let skin = frame.job("skin").schedule(|_| ());
    ///     let shadows = frame.job("shadows").after(skin).schedule(|_| ()); // From the second frame on
    ///     frame.wait(frame.combine(particles.into_iter().chain([shadows]))); // the two begin at once.
    /// }
    /// ```
    pub fn critical_first(mut self, on: bool) -> Self {
        if on && !self.hooks.has_job_hook() {
            // Or the beginnings and ends of bodies are told to nothing.
            self.hooks.set_job(|_, _, _| ());
        }
        self.order = on.then_some(Shared::learn_order);
        self
    }
}
