//! The threads of the program that use the job system: what they need before, and values of their own.

use platform::Platform;

use super::JobSystem;
use crate::api::per_worker::PerWorker;

impl<P: Platform> JobSystem<P> {
    /// Readies the calling thread for calls that must not be held up, such as those of an audio callback:
    /// gives it its thread slot, and makes the memory for `jobs` live jobs and their edges. What a call costs
    /// after that:
    ///
    /// | call | allocates | lock | wakes (system call) | bounded |
    /// |---|---|---|---|---|
    /// | `job(…).quiet().schedule(…)`, `quiet().run(…)` | no (1) | no (2) | no | yes |
    /// | `job(…).schedule(…)`, `run(…)` | no (1) | no (2) | one thread, if one sleeps | yes |
    /// | `schedule_for(…)`, `combine(…)`, `event(…)` | no (1) | no (2) | one thread, if one sleeps | yes |
    /// | `after(…)`, for each job | from the ninth on | no | no | yes |
    /// | `background()` | no | a short one | one thread, if one sleeps | yes |
    /// | `is_done(…)`, `Job::is_done()` | no | no | no | yes |
    /// | `Event::complete()` | no | no | as many as it makes jobs ready | by its successors |
    /// | `flush()` | no | no | as many as there are jobs for | by the number of workers |
    /// | `stats()` | no | no | no | yes |
    /// | `frame(…)`, and its end | now and then | a short one | a worker, once a second | yes |
    /// | `wait_timeout(…)` | no | no | as `flush` | by the timeout (3) |
    /// | `wait(…)`, `scope(…)`, `join(…)`, loops | no | no | as `flush` | by the jobs that they need |
    ///
    /// 1. A closure, or a result, of more than 64 bytes is boxed.
    /// 2. The first use of a name at a line takes a short lock in each thread: call the function once before
    ///    it matters.
    /// 3. Without workers, and inside of a job, it may be late by one body.
    ///
    /// No lock is held while code of the program runs. That quiet calls make no system call is tested on a
    /// thread to which Linux allows none.
    ///
    /// This call allocates, and takes locks.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// std::thread::scope(|threads| {
    ///     threads.spawn(|| {
    ///         js.warm_up(256);
    ///         let callback = || js.job("meter").quiet().schedule(|_| ());
    ///         callback(); // Registers the name.
    ///         for _ in 0..100 {
    ///             callback();
    ///         }
    ///     });
    /// });
    /// ```
    ///
    /// # Panics
    /// As [`enter`](JobSystem::enter).
    #[track_caller]
    pub fn warm_up(&self, jobs: usize) {
        let jobs = u32::try_from(jobs).unwrap_or(u32::MAX);
        self.context_or_panic().graph().reserve(jobs);
    }

    /// A value for each thread that takes part, made by `make` when the thread first needs it. `make` gets
    /// the number of values before it. Allocates a table with a pointer for each of
    /// [`thread_slots`](JobSystem::thread_slots).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut found = js.per_worker(|_| Vec::new());
    /// js.over(0..100).for_each_with(|cx, n| {
    ///     if n % 40 == 0 {
    ///         found.with(cx, |list| list.push(n));
    ///     }
    /// });
    /// let mut all: Vec<usize> = found.iter_mut().flat_map(|list| list.drain(..)).collect();
    /// all.sort();
    /// assert_eq!(all, [0, 40, 80]);
    /// ```
    pub fn per_worker<T>(
        &self,
        make: impl Fn(usize) -> T + Send + Sync + 'static,
    ) -> PerWorker<T, P> {
        PerWorker::new(&self.shared, make)
    }
}
