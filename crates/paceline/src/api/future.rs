//! Futures that run on the job system, and ends of jobs that are awaited.

use std::future::Future;

use platform::Platform;

use super::handle::{Job, WhenDone};
use super::schedule::NewJob;
use super::submit::{Declares, owner};
use super::system::JobSystem;
use crate::error::{ScheduleError, or_panic};
use crate::store::{JobId, Name, Slot};
use crate::work::{Context, FutureBody, Polled, Shared};

impl<'body, P: Platform> NewJob<'_, 'body, P> {
    /// Runs a future as a job, as [`JobSystem::spawn_future`]: with dependencies, in the background, or in a
    /// scope, where the future may borrow and the scope ends when it has.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (names, mut longest) = (["a", "abc", "ab"], "");
    /// js.scope(|scope| {
    ///     let (asked, answer) = js.event_with::<usize>("asked");
    ///     let pick = scope.job("pick").run_future(async { longest = names[answer.await] });
    ///     asked.complete_with(1);
    ///     pick.wait();
    /// });
    /// assert_eq!(longest, "abc");
    /// ```
    ///
    /// # Panics
    /// Where [`try_run_future`](NewJob::try_run_future) gives an error.
    #[track_caller]
    pub fn run_future<F>(self, future: F) -> Job<F::Output>
    where
        F: Future + Send + 'body,
        F::Output: Send + 'body,
    {
        or_panic(self.try_run_future(future))
    }

    /// As [`run_future`](NewJob::run_future), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// match js.job("load").try_run_future(async { 42 }) {
    ///     Ok(load) => assert_eq!(load.wait(), 42),
    ///     Err(error) => eprintln!("no room for the job: {error}"),
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`try_run`](NewJob::try_run). The future is dropped then.
    pub fn try_run_future<F>(self, future: F) -> Result<Job<F::Output>, ScheduleError>
    where
        F: Future + Send + 'body,
        F::Output: Send + 'body,
    {
        let (owner, table) = (owner(self.shared()), &Polled::<P, F>::TABLE);
        let mut future = Some(future);
        let put = &mut |job, slot: &Slot<P>| {
            if let Some(future) = future.take() {
                let body = FutureBody::new(&owner, job, future);
                // SAFETY: the job is new, and the table is that of its body. What the future borrows lives as
                // long as the job (see `NewJob::new`).
                unsafe { slot.put_body(body, table) };
            }
        };
        let flags = Slot::<P>::IS_HELD | Slot::<P>::IS_FUTURE;
        let id = self.submit(flags, put, &Declares::NOTHING)?;
        Ok(Job::new(owner, id))
    }
}

impl<P: Platform> JobSystem<P> {
    /// Runs a future as a job. The handle waits for its value, is awaited, or is the input of a further job.
    ///
    /// Each time that the future is woken it is polled once, as a ready job is run: on a worker, or on a
    /// thread that waits for it. While it is pending it holds no thread. A thread that waits for it helps
    /// with the jobs that it awaits by their handles or ids; a wait that can never end because of what a
    /// future awaits is not reported.
    ///
    /// Futures of any runtime can be polled here, as far as they need no more than a waker. The waker may be
    /// called by any thread at any time, also while the future is polled, after its end, and after the job
    /// system's; not by a [`sink`](crate::Builder::sink) of this job system, whose calls are refused.
    ///
    /// A panic of the future is the job's panic. Dropping the handle detaches the job, which goes on. If the
    /// job system ends while the future is pending, the future is dropped, and its handle says
    /// [`WaitError::ShutDown`]. It allocates once, for the waker, and once more for a future of more than 56
    /// bytes. A poll or a wake-up allocates nothing, and counts as a job ([`Stats::jobs`]).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.job("load").run(|_| "1 2 3".to_owned());
    /// let (picked, index) = js.event_with::<usize>("picked");
    /// let number = js.spawn_future("number", async move {
    ///     let text = load.await;
    ///     let index = index.await; // No thread waits here.
    ///     text.split(' ').nth(index).map(str::to_owned)
    /// });
    /// picked.complete_with(1);
    /// assert_eq!(number.wait().as_deref(), Some("2"));
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_run_future`] gives an error.
    ///
    /// [`WaitError::ShutDown`]: crate::WaitError::ShutDown
    /// [`Stats::jobs`]: crate::Stats::jobs
    #[track_caller]
    pub fn spawn_future<F>(&self, name: impl Into<Name>, future: F) -> Job<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        or_panic(self.job(name).try_run_future(future))
    }

    /// A future of the end of a job, of which there may be any number: it gives nothing, or the error that
    /// says why the job failed. It keeps the job system's memory, but not its workers.
    ///
    /// Polling runs nothing and never blocks, as for a [`Job`]. Dropping the future changes nothing for the
    /// job.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.when_done(js.job("load").schedule(|_| ()));
    /// let save = js.when_done(js.job("save").schedule(|_| panic!("the disk is full")));
    /// let both = js.spawn_future("both", async { load.await.and(save.await) });
    /// let error = both.wait().unwrap_err();
    /// assert!(error.to_string().ends_with("panicked: the disk is full"));
    /// ```
    ///
    /// # Errors
    /// The future gives those of [`try_wait`](JobSystem::try_wait).
    pub fn when_done(&self, id: impl Into<JobId>) -> WhenDone {
        when_done(self.shared(), id.into())
    }
}

impl<P: Platform> Context<'_, P> {
    /// Runs a future as a job, as [`JobSystem::spawn_future`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let outer = js.job("outer").run(|cx| cx.spawn_future("inner", async { 42 }));
    /// assert_eq!(outer.wait().wait(), 42);
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_run_future`] gives an error.
    #[track_caller]
    pub fn spawn_future<F>(&self, name: impl Into<Name>, future: F) -> Job<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        or_panic(self.job(name).try_run_future(future))
    }

    /// A future of the end of a job, as [`JobSystem::when_done`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let saved = js.job("make").run(|cx| {
    ///     let save = cx.when_done(cx.job("save").schedule(|_| println!("saved")));
    ///     cx.spawn_future("report", async { save.await.is_ok() })
    /// });
    /// assert!(saved.wait().wait());
    /// ```
    pub fn when_done(&self, id: impl Into<JobId>) -> WhenDone {
        when_done(self.shared, id.into())
    }
}

fn when_done<P: Platform>(shared: &Shared<P>, id: JobId) -> WhenDone {
    let owner = shared.this.upgrade();
    WhenDone::new(owner.expect("the caller keeps the job system alive"), id)
}
