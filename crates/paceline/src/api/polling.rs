//! What a job in the middle of its work may run on top of itself.

use platform::Platform;

use crate::work::Context;

impl<P: Platform> Context<'_, P> {
    /// Runs one ready job on top of the one that calls it, whichever it is, as
    /// [`JobSystem::poll`](crate::JobSystem::poll). False if there is none, or too little stack for it. Never
    /// blocks.
    ///
    /// A job on top may take long, and must not wait for the one underneath.
    ///
    /// ```
    /// let js = paceline::Builder::new().workers(0).build().unwrap();
    /// js.enter(|cx| {
    ///     cx.schedule(|_| ());
    ///     assert!(cx.poll());
    ///     assert!(!cx.poll());
    /// });
    /// ```
    pub fn poll(&self) -> bool {
        self.run_any()
    }

    /// The same for the newest of the jobs that are queued on this thread: those that it made last, mostly.
    ///
    /// ```
    /// let js = paceline::Builder::new().workers(0).build().unwrap();
    /// let answer = js.job("outer").run(|cx| {
    ///     let inner = cx.job("inner").run(|_| 42);
    ///     assert!(cx.has_own_ready() && cx.poll_own());
    ///     inner.wait()
    /// });
    /// assert_eq!(answer.wait(), 42);
    /// ```
    pub fn poll_own(&self) -> bool {
        self.run_own()
    }

    /// Whether a job may be queued on this thread. It costs two loads. True is a hint: another thread may
    /// just have taken the job.
    ///
    /// ```
    /// let js = paceline::Builder::new().workers(0).build().unwrap();
    /// js.job("outer").run(|cx| {
    ///     assert!(!cx.has_own_ready());
    ///     cx.schedule(|_| ());
    ///     assert!(cx.has_own_ready());
    /// });
    /// ```
    pub fn has_own_ready(&self) -> bool {
        self.thread.deque.len() > 0
    }
}
