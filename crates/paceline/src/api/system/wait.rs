//! Waits for jobs, and running ready jobs on the program's own threads.

use std::time::Duration;

use event::Nanos;
use platform::Platform;

use super::JobSystem;
use crate::error::WaitError;
use crate::store::JobId;

impl<P: Platform> JobSystem<P> {
    /// Waits for a job. Meanwhile this thread runs the jobs that it depends on, and the job itself, and no
    /// others, but for jobs that are [pinned](crate::PinnedThread) to this thread. When none of these is
    /// ready, the thread blocks.
    ///
    /// A job sees the thread-locals of the thread that runs it. So the jobs that run here, inside of this
    /// call, see and change those of the caller, and may find what an outer job on the same thread has left
    /// there.
    ///
    /// Jobs that wait nest on the stack: about two kilobytes a level, and what their bodies take. Where less
    /// than 128 KiB are left (of small stacks: a quarter), the thread starts no further job on top of that
    /// and leaves it to the workers. If all of them wait like that, and there can be no further
    /// [spare](crate::Builder::max_spares), the next wait panics, and so do those around it that do not
    /// handle the failures of what they wait for.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let first = js.job("first").schedule(|_| ());
    /// let second = js.job("second").after(first).schedule(|_| ());
    /// js.wait(second);
    /// assert!(js.is_done(first));
    /// ```
    ///
    /// # Panics
    /// With the job's own panic (the first wait for it gets the payload); with the reason if the job was
    /// cancelled, the wait can never end, or the id is foreign; if there is no stack left and no
    /// other worker is free.
    #[track_caller]
    pub fn wait(&self, id: impl Into<JobId>) {
        self.context_or_panic().wait(id);
    }

    /// Waits for a job, as [`wait`](JobSystem::wait).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let job = js.job("load").schedule(|_| panic!("no such file"));
    /// let error = js.try_wait(job).unwrap_err();
    /// assert!(error.to_string().ends_with("panicked: no such file"));
    /// ```
    ///
    /// # Errors
    /// If the job panicked or was cancelled, if the wait can never end, if the id is foreign, or in
    /// a fork's child.
    #[track_caller]
    pub fn try_wait(&self, id: impl Into<JobId>) -> Result<(), WaitError> {
        self.shared.context()?.try_wait(id)
    }

    /// Waits for a job, but not longer than `timeout`. False if it is not over yet.
    ///
    /// An outside thread runs nothing meanwhile if there are workers, because a body that has begun cannot be
    /// cut short. Without workers, and inside a job, this thread runs the jobs that the awaited one needs,
    /// and may be late by as much as the last body takes. So does an outside thread if its last 64 waits with
    /// a timeout were in vain although each could have run something: perhaps a blocked worker keeps the job
    /// from running.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let gate = js.event("gate");
    /// assert!(!js.wait_timeout(gate.id(), Duration::from_millis(1)).unwrap());
    /// # gate.complete();
    /// ```
    ///
    /// # Errors
    /// As [`try_wait`](JobSystem::try_wait).
    #[track_caller]
    pub fn wait_timeout(&self, id: impl Into<JobId>, timeout: Duration) -> Result<bool, WaitError> {
        self.shared.context()?.wait_timeout(id, timeout)
    }

    /// Whether a job is over: it has run, failed or was cancelled. Never blocks, and works from any thread.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let job = js.schedule(|_| ());
    /// js.wait(job);
    /// assert!(js.is_done(job));
    /// ```
    ///
    /// # Panics
    /// If the id is foreign.
    #[track_caller]
    pub fn is_done(&self, id: impl Into<JobId>) -> bool {
        self.shared.is_done(id.into())
    }

    /// Wakes as many workers as there is work for among the jobs that this thread has scheduled so far, and
    /// one if all workers sleep beside quiet jobs of other threads.
    ///
    /// The first job of a batch wakes a worker at once, and waiting flushes. So this is only needed before a
    /// long computation of the thread's own. Without workers it runs all ready jobs.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// for _ in 0..100 {
    ///     js.schedule(|_| ());
    /// }
    /// js.flush();
    /// // A long computation.
    /// ```
    ///
    /// # Panics
    /// As [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn flush(&self) {
        self.context_or_panic().flush();
    }

    /// Runs one ready job on this thread. False if there is none. Never blocks.
    ///
    /// ```
    /// let js = paceline::Builder::new().workers(0).build().unwrap();
    /// js.schedule(|_| ());
    /// assert!(js.poll());
    /// assert!(!js.poll());
    /// ```
    ///
    /// # Panics
    /// As [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn poll(&self) -> bool {
        self.enter(|context| context.run_any())
    }

    /// Runs ready jobs on this thread until there are none or `budget` is used up, and returns their number.
    /// A job that has begun is not cut short. Never blocks.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::Builder::new().workers(0).build().unwrap();
    /// for _ in 0..3 {
    ///     js.schedule(|_| ());
    /// }
    /// assert_eq!(js.pump(Duration::from_secs(60)), 3);
    /// ```
    ///
    /// # Panics
    /// As [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn pump(&self, budget: Duration) -> usize {
        let end = self.shared.platform.now() + Nanos::from(budget);
        let mut ran = 0;
        self.enter(|context| {
            while context.run_any() {
                ran += 1;
                if self.shared.platform.now() >= end {
                    break;
                }
            }
        });
        ran
    }
}
