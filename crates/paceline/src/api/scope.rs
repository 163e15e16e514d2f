//! The calls of a program on a [`Scope`] that make jobs with names: the same words as on the job system, for
//! bodies that borrow.

use platform::Platform;

use super::handle::{Event, Job, Latch};
use super::origin::Origin;
use super::schedule::NewJob;
use crate::error::or_panic;
use crate::store::{JobId, Name};
use crate::work::{Context, Scope};

impl<'scope, P: Platform> Scope<'scope, '_, P> {
    /// Begins the description of a job that may borrow, as [`JobSystem::job`](crate::JobSystem::job). The
    /// scope ends when the job has, and jobs outside of the scope may depend on it, too.
    ///
    /// The scope raises the first failure of its jobs, unless waits have reported all of them. A job that is
    /// cancelled has failed.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (mut positions, mut drawn) = (vec![0.0; 100], 0);
    /// js.scope(|scope| {
    ///     let steps = &mut positions;
    ///     let step = scope.job("step").schedule(|cx| cx.over(steps).for_each(|x| *x += 1.0));
    ///     let count = scope.job("count").run(|_| 100);
    ///     scope.job("draw").after(step).after(&count).schedule(|_| drawn = count.wait());
    /// });
    /// assert_eq!((positions[99], drawn), (1.0, 100));
    /// ```
    ///
    /// Two jobs of a scope cannot both hold `&mut x`, not even if one comes after the other: the compiler
    /// does not know the order. So the borrow travels, as the result of the first job:
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut positions = vec![0.0; 100];
    /// js.scope(|scope| {
    ///     let steps = &mut positions;
    ///     let step = scope.job("step").run(|cx| {
    ///         cx.over(&mut *steps).for_each(|x| *x += 1.0);
    ///         steps
    ///     });
    ///     let bounce = scope.job("bounce").with(step);
    ///     bounce.schedule(|cx, steps| cx.over(steps).for_each(|x| *x *= -1.0));
    /// });
    /// assert_eq!(positions[99], -1.0);
    /// ```
    ///
    /// Or `x` lies in a `Mutex`, and each job takes it with `try_lock`: as the jobs come one after the other,
    /// that never fails, and a forgotten `after` is an error instead of a wait inside of a job.
    #[track_caller]
    pub fn job(&'scope self, name: impl Into<Name>) -> NewJob<'scope, 'scope, P> {
        let name = name.into().as_str();
        // SAFETY: the scope is not left before its jobs have ended, and what lives as long as `'scope` lives
        // at least until the scope is left.
        unsafe { NewJob::new(Origin::InScope(self.shared, &self.jobs), name) }
    }

    /// Schedules a job that may borrow, as [`JobSystem::schedule`](crate::JobSystem::schedule). Where the id
    /// is not needed, [`spawn`](Scope::spawn) costs less.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut loaded = 0;
    /// js.scope(|scope| {
    ///     let load = scope.schedule(|_| loaded = 3);
    ///     js.wait(scope.job("show").after(load).schedule(|_| ()));
    /// });
    /// assert_eq!(loaded, 3);
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_schedule`] gives an error.
    #[track_caller]
    pub fn schedule<F>(&'scope self, body: F) -> JobId
    where
        F: FnOnce(&Context<'_, P>) + Send + 'scope,
    {
        self.job("job").schedule(body)
    }

    /// Makes a job without a body that is over when all of these are, as
    /// [`JobSystem::combine`](crate::JobSystem::combine). The scope does not wait for it.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut cells = [0; 4];
    /// js.scope(|scope| {
    ///     let fills = cells.iter_mut().map(|cell| scope.job("fill").schedule(|_| *cell = 1));
    ///     let all = scope.combine(fills);
    ///     scope.job("then").after(all).schedule(|_| ());
    /// });
    /// assert_eq!(cells, [1; 4]);
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_combine`] gives an error.
    #[track_caller]
    pub fn combine(&'scope self, ids: impl IntoIterator<Item = impl Into<JobId>>) -> JobId {
        or_panic(self.job("combine").after_all(ids).try_combine())
    }

    /// Makes a job without a body that is over when the returned handle is completed, as
    /// [`JobSystem::event`](crate::JobSystem::event). The scope does not wait for it, but for its jobs that
    /// depend on it.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let mut shown = false;
    /// js.scope(|scope| {
    ///     let loaded = scope.event("loaded");
    ///     scope.job("show").after(&loaded).schedule(|_| shown = true);
    ///     std::thread::spawn(move || loaded.complete());
    /// });
    /// assert!(shown);
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_event`] gives an error.
    #[track_caller]
    pub fn event(&'scope self, name: impl Into<Name>) -> Event {
        or_panic(self.job(name).try_event())
    }

    /// Makes an event with a value that may borrow, and the handle that the value goes to, as
    /// [`JobSystem::event_with`](crate::JobSystem::event_with). The scope does not wait for it, but for its
    /// jobs that depend on it.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let text = "one two three".to_owned();
    /// let longest = js.scope(|scope| {
    ///     let (found, word) = scope.event_with::<&str>("found");
    ///     scope.spawn(|_| {
    ///         let longest = text.split(' ').max_by_key(|word| word.len());
    ///         found.complete_with(longest.unwrap_or_default());
    ///     });
    ///     word.wait()
    /// });
    /// assert_eq!(longest, "three");
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_event_with`] gives an error.
    #[track_caller]
    pub fn event_with<T: Send + 'scope>(&'scope self, name: impl Into<Name>) -> (Event<T>, Job<T>) {
        or_panic(self.job(name).try_event_with())
    }

    /// Makes an event that is over when it has been completed `count` times, as
    /// [`JobSystem::latch`](crate::JobSystem::latch). The scope does not wait for it, but for its jobs that
    /// depend on it.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (mut cells, mut sum) = ([0; 4], 0);
    /// js.scope(|scope| {
    ///     let filled = scope.latch("filled", 4);
    ///     for cell in &mut cells {
    ///         let filled = filled.clone();
    ///         scope.spawn(move |_| {
    ///             *cell = 1;
    ///             filled.complete_one();
    ///         });
    ///     }
    ///     scope.job("count").after(&filled).schedule(|_| sum = 4);
    /// });
    /// assert_eq!((cells, sum), ([1; 4], 4));
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_latch`] gives an error.
    #[track_caller]
    pub fn latch(&'scope self, name: impl Into<Name>, count: usize) -> Latch {
        or_panic(self.job(name).try_latch(count))
    }
}
