//! Jobs that may run twice: a piece that is late is run again by a thread that waits for it.

use std::ops::Range;
use std::sync::Arc;

use event::Nanos;
use platform::{Os, Platform};

use super::handle::{Event, Job};
use super::schedule::NewJob;
use super::submit::owner;
use crate::border::UserValue;
use crate::error::{ScheduleError, or_panic};
use crate::graph::{Driver, Failure};
use crate::policy::{Grain, Tuning};
use crate::store::{CancelToken, JobId, Label, Slot};
use crate::work::{Context, OnEnd, Pieces, Repeat, RepeatEnd, Shared};

/// The description of a job that may run twice, from [`NewJob::idempotent`].
///
/// ```
/// let js = paceline::JobSystem::new();
/// let heights = js.job("heights").idempotent().map(0..1000, |x| (x as f64).sqrt());
/// assert_eq!(heights.wait()[16], 4.0);
/// ```
#[must_use = "describe the job, then schedule it"]
pub struct IdempotentJob<'a, P: Platform = Os> {
    job: NewJob<'a, 'static, P>,
    grain: Grain,
}

impl<'a, P: Platform> NewJob<'a, 'static, P> {
    /// The job may be run twice, in whole or in pieces: running it again changes nothing. Then a wait for it
    /// need not wait until the kernel gives a CPU back to a worker that lost it in the middle of a body. A
    /// thread that waits and has nothing else to run makes another run of a piece
    /// - that has been running for twice as long as such a piece takes,
    /// - and whose thread has no CPU at that moment. (Without a CPU is also a body that sleeps.)
    ///
    /// The first result counts, exactly once, and the wait ends. The other run ends when its thread goes on;
    /// its result is dropped. **Two runs of a piece may run at the same time**, on two threads, and the later
    /// one may end after the wait, even in a later frame. So bodies are `Fn + Sync`, borrow nothing, and get
    /// no context; use what they are given by value or by `Arc`, and give results back instead of writing to
    /// shared data.
    ///
    /// A piece is begun at most twice. How long it takes is learnt, by the label of the job, so the first job
    /// with a label is not run twice unless it has several pieces. Nothing is run twice where the system
    /// does not say whether a thread has a CPU; Linux does. [`Stats::repeats`](crate::Stats::repeats) and
    /// [`repeats_won`](crate::Stats::repeats_won) count.
    ///
    /// The job is in no scope and declares no access. It allocates, and for each thread that may take part it
    /// is one more job; so it is for pieces of 20 us or more.
    ///
    /// The idea is that of the backup tasks of MapReduce (Dean and Ghemawat, 2004).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let path = js.job("path").idempotent().run(|| "the way home");
    /// assert_eq!(path.wait(), "the way home");
    /// ```
    pub fn idempotent(self) -> IdempotentJob<'a, P> {
        IdempotentJob {
            job: self,
            grain: Grain::Auto,
        }
    }
}

impl<P: Platform> IdempotentJob<'_, P> {
    /// How many items are in a piece of [`map`](IdempotentJob::map) or
    /// [`schedule_for`](IdempotentJob::schedule_for). Without this there are 64 pieces for each thread that
    /// can take part. A piece is what is run again, so long pieces gain less.
    ///
    /// ```
    /// use paceline::{Grain, JobSystem};
    /// let js = JobSystem::new();
    /// let job = js.job("squares").idempotent().grain(Grain::Items(10));
    /// assert_eq!(job.map(0..100, |x| x * x).wait()[99], 9801);
    /// ```
    pub fn grain(mut self, grain: Grain) -> Self {
        self.grain = grain;
        self
    }

    /// Schedules a body without a result, as [`NewJob::schedule`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// js.wait(js.job("warm the cache").idempotent().schedule(|| ()));
    /// ```
    ///
    /// # Panics
    /// Where [`try_run`](IdempotentJob::try_run) gives an error.
    #[track_caller]
    pub fn schedule<F>(self, body: F) -> JobId
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.run(body).id()
    }

    /// Schedules a body with a result, as [`NewJob::run`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let sum = js.job("sum").idempotent().run(|| (1..=100).sum::<u32>());
    /// assert_eq!(sum.wait(), 5050);
    /// ```
    ///
    /// # Panics
    /// Where [`try_run`](IdempotentJob::try_run) gives an error.
    #[track_caller]
    pub fn run<F, T>(self, body: F) -> Job<T>
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Send + 'static,
    {
        or_panic(self.try_run(body))
    }

    /// As [`run`](IdempotentJob::run), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let sum = js.job("sum").idempotent().try_run(|| (1..=100).sum::<u32>());
    /// assert_eq!(sum.unwrap().wait(), 5050);
    /// ```
    ///
    /// # Errors
    /// As [`NewJob::try_schedule`].
    pub fn try_run<F, T>(self, body: F) -> Result<Job<T>, ScheduleError>
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Send + 'static,
    {
        // There is one piece, and so one result.
        let only = |mut results: Vec<T>| results.swap_remove(0);
        self.submit(0..1, move |_| body(), only)
    }

    /// Schedules a loop: `body` is called with each item of the range, and the results are the job's, in
    /// the order of the items.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let squares = js.job("squares").idempotent().map(0..100, |x| x * x);
    /// assert_eq!(squares.wait()[99], 9801);
    /// ```
    ///
    /// # Panics
    /// Where [`try_map`](IdempotentJob::try_map) gives an error.
    #[track_caller]
    pub fn map<F, T>(self, range: Range<usize>, body: F) -> Job<Vec<T>>
    where
        F: Fn(usize) -> T + Send + Sync + 'static,
        T: Send + 'static,
    {
        or_panic(self.try_map(range, body))
    }

    /// As [`map`](IdempotentJob::map), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let squares = js.job("squares").idempotent().try_map(0..100, |x| x * x);
    /// assert_eq!(squares.unwrap().wait()[99], 9801);
    /// ```
    ///
    /// # Errors
    /// As [`NewJob::try_schedule`]; also if the range has 2³² items or more.
    pub fn try_map<F, T>(self, range: Range<usize>, body: F) -> Result<Job<Vec<T>>, ScheduleError>
    where
        F: Fn(usize) -> T + Send + Sync + 'static,
        T: Send + 'static,
    {
        let part = move |part: Range<usize>| part.map(&body).collect::<Vec<T>>();
        self.submit(range, part, |parts| parts.into_iter().flatten().collect())
    }

    /// Schedules a loop without results: `body` is called with disjoint parts of the range that make up the
    /// whole of it; some of them twice. What it does has to be the same when it is done twice, by two threads
    /// at a time.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// let js = paceline::JobSystem::new();
    /// let highest = Arc::new(AtomicU64::new(0));
    /// let found = highest.clone();
    /// let search = js.job("search").idempotent().schedule_for(0..1000, move |part| {
    ///     let best = part.map(|x| (x as u64 * 7919) % 1000).max().unwrap_or(0);
    ///     found.fetch_max(best, Ordering::Relaxed); // Twice is as good as once.
    /// });
    /// js.wait(search);
    /// assert_eq!(highest.load(Ordering::Relaxed), 999);
    /// ```
    ///
    /// # Panics
    /// Where [`try_map`](IdempotentJob::try_map) gives an error.
    #[track_caller]
    pub fn schedule_for<F>(self, range: Range<usize>, body: F) -> JobId
    where
        F: Fn(Range<usize>) + Send + Sync + 'static,
    {
        or_panic(self.submit(range, body, drop)).id()
    }

    /// Makes the event that stands for the job, and the jobs that run its pieces.
    fn submit<F, R, T>(
        self,
        items: Range<usize>,
        body: F,
        gather: fn(Vec<R>) -> T,
    ) -> Result<Job<T>, ScheduleError>
    where
        F: Fn(Range<usize>) -> R + Send + Sync + 'static,
        R: Send + 'static,
        T: Send + 'static,
    {
        let IdempotentJob { job, grain } = self;
        let count = items.len();
        let items_max = u32::MAX as usize;
        if count > items_max {
            return Err(ScheduleError::TooLong { items: count });
        }
        let (cx, shared) = (job.context()?, job.shared());
        let threads = shared.threads_at_once() as usize;
        let size = match grain {
            Grain::Auto => count.div_ceil(Tuning::REPEATABLE_PIECES * threads),
            Grain::Items(_) => grain.items() as usize,
        };
        let size = size.max(1);
        let (event, handle) = job.completion().try_event_with::<T>()?;
        let id = event.id();
        let token = job.token.map(|(token, _)| token.clone());
        let on_end = completer(owner(shared), event, token, gather);
        let typical = cx.piece_time(&job.label, size);
        // A waiting thread takes part, too, though all workers may have come before it.
        let words = threads + 1;
        let pieces = Arc::new(Pieces::new((items, size), words, typical, body, on_end));
        let late: Arc<dyn Repeat<P>> = pieces.clone();
        cx.repeats().add(id.ticket(), Arc::downgrade(&late));
        drop(late);
        let participants = threads.min(count.div_ceil(size)).max(1);
        for number in 0..participants {
            let pieces = UserValue::new(pieces.clone());
            let made = job.participant().try_schedule(move |cx| {
                let pieces = pieces.into_inner();
                cx.take_part(&pieces, size);
                // This may be the last owner of the body.
                cx.shared.panics.discard(UserValue::new(pieces));
            });
            match made {
                Ok(participant) => {
                    // Without room for the edge a wait takes part when another thread has begun.
                    _ = cx.add_completer(id, participant);
                }
                // Those that there are run all pieces.
                Err(_) if number > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(handle)
    }
}

/// Ends the job's event as the job ends.
fn completer<P, R, T>(
    system: Arc<Shared<P>>,
    event: Event<T>,
    token: Option<CancelToken>,
    gather: fn(Vec<R>) -> T,
) -> OnEnd<R>
where
    P: Platform,
    R: 'static,
    T: Send + 'static,
{
    Box::new(move |end| {
        let ticket = event.id().ticket();
        match end {
            RepeatEnd::Done(results) => event.complete_with(gather(results)),
            RepeatEnd::Panicked(payload) => {
                system.fail_event(event.into_id(), |label| Failure::panicked(label, payload));
            }
            RepeatEnd::Gone if token.is_some_and(|token| token.is_cancelled()) => {
                system.fail_event(event.into_id(), |label| Failure::CalledOff { label });
            }
            RepeatEnd::Gone => drop(event),
        }
        if let Some(repeats) = system.repeats.get() {
            repeats.forget(ticket);
        }
    })
}

impl<'a, P: Platform> NewJob<'a, 'static, P> {
    /// The description of a job that runs pieces of this one.
    fn participant(&self) -> NewJob<'a, 'static, P> {
        let mut job = self.completion();
        (job.flags, job.inherits) = (self.flags & !Slot::<P>::IS_RANKED, self.inherits);
        (job.is_quiet, job.pin, job.token) = (self.is_quiet, self.pin, self.token);
        job
    }

    /// The description of what is over when others have completed this job: it waits for the same.
    fn completion(&self) -> NewJob<'a, 'static, P> {
        let mut job = NewJob::labelled(self.from.copy(), self.label);
        job.after = self.after.clone();
        job
    }
}

impl<P: Platform> Context<'_, P> {
    /// How long a piece of this size has taken so far, under this label; zero if that is not known.
    fn piece_time(&self, label: &Label, size: usize) -> Nanos {
        let label = self.graph().label_number(label);
        let cost = self.own(|own| own.loops.cost_of(label));
        Nanos(cost.unwrap_or(0).saturating_mul(size as u64) / 1000)
    }

    /// For the job of a participant.
    fn take_part<F, R>(&self, pieces: &Arc<Pieces<P, R, F>>, size: usize)
    where
        F: Fn(Range<usize>) -> R,
        R: Send,
    {
        let drop_panics = pieces.take_part(&self.shared.platform);
        self.shared.panics.add_drops(drop_panics);
        let label = self.shared.slot(self.current_job()).label_number();
        let cost = pieces.typical().0.saturating_mul(1000) / size as u64;
        self.own(|own| own.loops.learn(label, (cost > 0).then_some(cost)));
    }
}

impl<P: Platform> Shared<P> {
    /// An event fails, of which the caller has the only right to complete it.
    fn fail_event(&self, event: JobId, failure: impl FnOnce(Label) -> Failure) {
        if let Ok(context) = self.context_at_last() {
            let failure = |label| {
                let failure = failure(label);
                if let Failure::Panicked { .. } = &failure {
                    context.counters().panicked.add(1);
                }
                failure
            };
            context.graph().fail_event(event.ticket(), failure);
            self.release_from_outside(&context, event.ticket());
        }
    }
}
