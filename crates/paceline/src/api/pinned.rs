//! [`PinnedThread`]: a thread of the program that runs jobs which no other thread may run.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use platform::{Os, Platform};

use super::schedule::NewJob;
use super::system::JobSystem;
use crate::error::{ScheduleError, or_panic};
use crate::store::{Slot, ThreadPin};
use crate::work::Shared;

/// A thread of the program that runs the jobs which are pinned to it ([`JobSystem::pinned_thread`]). It
/// stays on its thread. Other threads have its [`pin`](PinnedThread::pin).
///
/// The thread runs such jobs
/// - in each of its waits outside of jobs, for a job, a scope, a loop and the like, whether the wait needs
///   them or not, also if the wait has a timeout: a job that has begun is not cut short;
/// - in a wait in the middle of a job, if the wait needs them to end, or is in their
///   [`Group`](crate::Group). Others could wait for that job;
/// - in [`run_jobs`](PinnedThread::run_jobs), and where it runs ready jobs anyway ([`JobSystem::pump`],
///   [`JobSystem::poll`], the drop of the job system).
///
/// So a thread that has nothing else to do waits for an event: `js.wait(&closing)`. A thread that waits for
/// something else, such as its window's messages, is told by [`on_ready`](PinnedThread::on_ready).
///
/// The next job is the one that has been ready longest, of the most urgent lane.
///
/// Jobs that are left when it is dropped, or when the thread ends, are called off: waits for them report
/// [`WaitError::CalledOff`](crate::WaitError::CalledOff). Of several for the same thread the last one counts.
/// If it outlives the job system, it does nothing.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let main = js.pinned_thread();
/// let pin = main.pin();
/// let window = std::thread::current().id();
/// js.scope(|s| {
///     s.spawn(move |cx| {
///         let show = cx.job("show").pinned_to(pin).run(|_| std::thread::current().id());
///         assert_eq!(show.wait(), window); // Not on the worker that asks.
///     });
/// });
/// ```
#[must_use = "jobs that are pinned to the thread are called off when it is dropped"]
pub struct PinnedThread<P: Platform = Os> {
    shared: Weak<Shared<P>>,
    pin: ThreadPin,
    /// Not Send, nor Sync.
    _here: PhantomData<*const ()>,
}

impl<P: Platform> JobSystem<P> {
    /// Has the calling thread run jobs that are pinned to it, as long as the returned value is there; see
    /// [`PinnedThread`]. Allocates the first time, and takes a short lock.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let main = js.pinned_thread();
    /// let title = js.job("set title").pinned_to(main.pin()).schedule(|_| println!("Paceline"));
    /// assert_eq!(main.run_jobs(), 1);
    /// assert!(js.is_done(title));
    /// ```
    ///
    /// # Panics
    /// Where [`try_pinned_thread`](JobSystem::try_pinned_thread) gives an error.
    #[track_caller]
    pub fn pinned_thread(&self) -> PinnedThread<P> {
        or_panic(self.try_pinned_thread())
    }

    /// As [`pinned_thread`](JobSystem::pinned_thread), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let main = js.try_pinned_thread().expect("few threads use this job system");
    /// assert_eq!(main.run_jobs(), 0);
    /// ```
    ///
    /// # Errors
    /// If the calling thread gets no thread slot, or in a fork's child; see [`ScheduleError`].
    pub fn try_pinned_thread(&self) -> Result<PinnedThread<P>, ScheduleError> {
        let shared = self.shared();
        let cx = shared.context()?;
        let number = shared.pins().arrive(cx.thread.index);
        Ok(PinnedThread {
            shared: shared.this.clone(),
            pin: ThreadPin::new(shared.id, number),
            _here: PhantomData,
        })
    }

    /// What to pin jobs to that a certain worker is to run: one for each worker that there is, in the order
    /// of their numbers. It runs them when nothing else is queued on it. Allocates, and takes short locks.
    ///
    /// A job that is pinned to a worker which leaves, because there are to be fewer, is called off. A program
    /// that wants to reach all of them has [`Builder::follow_machine`](crate::Builder::follow_machine) off.
    ///
    /// ```
    /// use paceline::Builder;
    /// let js = Builder::new().workers(2).follow_machine(false).build().unwrap();
    /// let numbers = js.worker_pins().into_iter();
    /// let numbers = numbers.map(|pin| js.job("number").pinned_to(pin).run(|cx| cx.worker()).wait());
    /// assert_eq!(numbers.collect::<Vec<_>>(), [0, 1]);
    /// ```
    #[cfg(feature = "pools")]
    pub fn worker_pins(&self) -> Vec<ThreadPin> {
        let shared = self.shared();
        let workers = shared.regular_workers();
        let numbers = workers
            .into_iter()
            .map(|thread| shared.pins().arrive(thread));
        numbers
            .map(|number| ThreadPin::new(shared.id, number))
            .collect()
    }
}

impl<P: Platform> NewJob<'_, '_, P> {
    /// This thread alone runs the job: the main thread, for what belongs to it, such as windows and
    /// graphics contexts. It does so in its waits, and in [`PinnedThread::run_jobs`]. The job may depend on
    /// others, have a result, be a future, be in a lane, and others may depend on it. A loop cannot be
    /// pinned. A second call takes the place of the first.
    ///
    /// Other threads that wait for the job run nothing of it. When it is ready it wakes its thread if that
    /// sleeps in a wait, also if it is quiet. The job takes a short lock when it is scheduled, when it is
    /// ready, and when it runs.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let main = js.pinned_thread();
    /// let mesh = js.job("load").run(|_| vec![0; 1000]);
    /// let upload = js.job("upload").pinned_to(main.pin()).with(mesh).run(|_, mesh| mesh.len());
    /// assert_eq!(upload.wait(), 1000); // It runs here.
    /// ```
    pub fn pinned_to(mut self, thread: ThreadPin) -> Self {
        self.pin = thread.number_in(self.shared().id);
        self.flags |= Slot::<P>::IS_PINNED;
        self
    }
}

impl<P: Platform> PinnedThread<P> {
    /// What other threads name this one by, in [`NewJob::pinned_to`](crate::NewJob::pinned_to).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let main = js.pinned_thread();
    /// assert_eq!(main.pin(), js.pinned_thread().pin());
    /// ```
    pub fn pin(&self) -> ThreadPin {
        self.pin
    }

    /// Runs jobs that are pinned to this thread and ready: as many as there are when it is called, so that a
    /// job which makes the next one does not keep the thread. Returns their number. Never blocks.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let main = js.pinned_thread();
    /// for n in 0..3 {
    ///     js.job("draw").pinned_to(main.pin()).schedule(move |_| println!("window {n}"));
    /// }
    /// assert_eq!(main.run_jobs(), 3);
    /// assert_eq!(main.run_jobs(), 0);
    /// ```
    pub fn run_jobs(&self) -> usize {
        let Some(shared) = self.shared.upgrade() else {
            return 0;
        };
        let Ok(cx) = shared.context() else { return 0 };
        let ready = cx.count_pinned();
        (0..ready).take_while(|_| cx.run_pinned(None)).count()
    }

    /// Has `hook` called whenever a job becomes ready that is pinned to this thread, instead of an earlier
    /// hook. The thread that makes it ready calls it, or this one: it should be short, such as a message to
    /// the loop that this thread waits in, and must not wait for jobs. A panic of it is counted
    /// ([`Stats::hook_panics`](crate::Stats::hook_panics)).
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// let js = paceline::JobSystem::new();
    /// let (wake, woken) = channel();
    /// let window = js.pinned_thread().on_ready(move || _ = wake.send(()));
    /// let title = js.job("set title").pinned_to(window.pin()).schedule(|_| println!("Paceline"));
    /// woken.recv().unwrap(); // The loop of the window's messages.
    /// window.run_jobs();
    /// assert!(js.is_done(title));
    /// ```
    pub fn on_ready(self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        if let Some(shared) = self.shared.upgrade() {
            shared
                .pins()
                .call(self.pin.number_in(shared.id), Arc::new(hook));
        }
        self
    }
}

impl<P: Platform> Drop for PinnedThread<P> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade()
            && let Ok(cx) = shared.context()
        {
            shared.pins().leave(&cx, false);
        }
    }
}

impl<P: Platform> fmt::Debug for PinnedThread<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PinnedThread").field(&self.pin).finish()
    }
}

#[cfg(all(test, feature = "pools"))]
mod tests {
    use crate::{Builder, ScheduleError};

    /// Goal: a worker runs what is pinned to it, also if it sleeps, and one that waits in the middle of a job
    /// for something that needs it. Method: rounds of jobs for each worker, while all sleep or one waits.
    #[test]
    fn workers_come_for_their_jobs() {
        let js = Builder::small()
            .workers(2)
            .follow_machine(false)
            .build()
            .unwrap();
        let pins = js.worker_pins();
        let rounds = if cfg!(miri) { 2 } else { 200 };
        for round in 0..rounds {
            let runs = pins
                .iter()
                .map(|&pin| js.job("here").pinned_to(pin).run(|cx| cx.worker()));
            let runs: Vec<_> = runs.collect();
            assert!(runs.into_iter().map(|job| job.wait()).eq([0, 1]));
            let pin = pins[round % 2];
            let waits = js
                .job("waits")
                .pinned_to(pin)
                .run(move |cx| cx.job("needed").pinned_to(pin).run(|cx| cx.worker()).wait());
            assert_eq!(waits.wait(), round % 2);
        }
    }

    /// Goal: no wait hangs for a worker that is gone, and no job is left for it. Method: jobs for it, until
    /// they are refused.
    #[test]
    fn a_worker_that_leaves_has_its_jobs_called_off() {
        let js = Builder::small()
            .workers(2)
            .follow_machine(false)
            .build()
            .unwrap();
        let pin = js.worker_pins()[1];
        js.resize(1).unwrap();
        let late = || js.job("late").pinned_to(pin).try_schedule(|_| ());
        let refused = loop {
            match late() {
                // It has not left yet: it runs the job, or leaves before.
                Ok(id) => _ = js.try_wait(id),
                Err(refused) => break refused,
            }
        };
        assert!(matches!(refused, ScheduleError::NoSuchThread));
    }
}
