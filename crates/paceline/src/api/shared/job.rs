//! The description of a job that has declared what it reads and writes: [`DeclaredJob`].

use platform::{Lane, Os, Platform};
use smallvec::SmallVec;

use super::access::{JobsOf, OfJobSystem, ReadAccess, WriteAccess};
use super::toucher;
use crate::access::{
    AccessError, AccessFault, Accesses, And, Conflicting, Declared, Places, Taken, Toucher,
};
use crate::api::handle::Job;
use crate::api::over::{LoopData, LoopItems};
use crate::api::schedule::NewJob;
use crate::api::submit::{Declares, refused};
use crate::error::{ScheduleError, or_panic};
use crate::store::{CancelToken, JobId, ThreadPin};
use crate::work::Context;

/// The description of a job that declares what it reads and writes, from [`NewJob::reads`],
/// [`NewJob::writes`] or [`NewJob::auto`]. Its body gets a reference for each, in the order of the calls: the
/// reference itself for one, a tuple for more, up to eight.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let (left, right, sum) = (js.share("left", 40), js.share("right", 2), js.share("sum", 0));
/// let add = js.job("add").reads(&left).reads(&right).writes(&sum);
/// js.wait(add.schedule(|_cx, (left, right, sum)| *sum = *left + *right));
/// assert_eq!(*sum.read(), 42);
/// ```
#[must_use = "describe the job, then schedule it"]
pub struct DeclaredJob<'a, 'body, A, P: Platform = Os> {
    job: NewJob<'a, 'body, P>,
    accesses: A,
    is_auto: bool,
    /// The name of data of another job system, if there was some.
    foreign: Option<&'static str>,
}

impl<'a, 'body, P: Platform> NewJob<'a, 'body, P> {
    /// The job reads this data: `&shared`, or a part of a slice. Its body gets a reference, and may run
    /// beside others that only read. Call it after the rest of the description, or go on describing.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let names = js.share_slice("names", ["one", "three"]);
    /// let count = js.job("count").reads(&names).run(|_cx, names| names.len());
    /// assert_eq!(count.wait(), 2);
    /// ```
    pub fn reads<S: ReadAccess<P>>(self, data: S) -> DeclaredJob<'a, 'body, (S::Reads,), P> {
        DeclaredJob::new(self).reads(data)
    }

    /// The job changes this data: `&shared`, or a part of a slice. Its body gets a mutable reference, and
    /// runs beside no other job that touches the data.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let heights = js.share_slice("heights", vec![1.0; 4]);
    /// let raise = js.job("raise").writes(heights.part(1..3)).schedule(|_cx, some| some.fill(2.0));
    /// js.wait(raise);
    /// assert_eq!(heights.read()[..], [1.0, 2.0, 2.0, 1.0]);
    /// ```
    pub fn writes<S: WriteAccess<P>>(self, data: S) -> DeclaredJob<'a, 'body, (S::Writes,), P> {
        DeclaredJob::new(self).writes(data)
    }

    /// Where it touches the same data as a job that was scheduled before it, and nothing orders the two, it
    /// comes after that job, as if [`after`](NewJob::after) had been called. So jobs that are all `auto` do
    /// what they would do one after the other, in the order of the calls that schedule them.
    ///
    /// It needs [`Builder::checks`](crate::Builder::checks).
    ///
    /// ```
    /// let js = paceline::Builder::new().checks(true).build().unwrap();
    /// let number = js.share("number", 20);
    /// js.job("add").writes(&number).schedule(|_cx, number| *number += 1);
    /// let double = js.job("double").auto().writes(&number).schedule(|_cx, number| *number *= 2);
    /// js.wait(double);
    /// assert_eq!(*number.read(), 42);
    /// ```
    pub fn auto(self) -> DeclaredJob<'a, 'body, (), P> {
        DeclaredJob::new(self).auto()
    }
}

impl<'a, 'body, P: Platform> DeclaredJob<'a, 'body, (), P> {
    fn new(job: NewJob<'a, 'body, P>) -> Self {
        DeclaredJob {
            job,
            accesses: (),
            is_auto: false,
            foreign: None,
        }
    }
}

impl<'a, 'body, A, P: Platform> DeclaredJob<'a, 'body, A, P> {
    fn declare<S: OfJobSystem<P>, With>(
        self,
        data: S,
        and: impl FnOnce(A, S) -> With,
    ) -> DeclaredJob<'a, 'body, With, P> {
        let (is_own, name) = data.belongs_to(JobsOf(self.job.shared()));
        DeclaredJob {
            accesses: and(self.accesses, data),
            is_auto: self.is_auto,
            foreign: self.foreign.or((!is_own).then_some(name)),
            job: self.job,
        }
    }

    fn described(self, change: impl FnOnce(NewJob<'a, 'body, P>) -> NewJob<'a, 'body, P>) -> Self {
        DeclaredJob {
            job: change(self.job),
            ..self
        }
    }

    /// It reads this data, too, as [`NewJob::reads`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (left, right) = (js.share("left", 40), js.share("right", 2));
    /// let sum = js.job("sum").reads(&left).reads(&right).run(|_cx, (left, right)| left + right);
    /// assert_eq!(sum.wait(), 42);
    /// ```
    pub fn reads<S>(self, data: S) -> DeclaredJob<'a, 'body, A::With, P>
    where
        S: ReadAccess<P>,
        A: And<S::Reads>,
    {
        self.declare(data, |accesses, data| accesses.and(data.reads()))
    }

    /// It changes this data, too, as [`NewJob::writes`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (from, to) = (js.share("from", 42), js.share("to", 0));
    /// js.wait(js.job("copy").reads(&from).writes(&to).schedule(|_cx, (from, to)| *to = *from));
    /// assert_eq!(*to.read(), 42);
    /// ```
    pub fn writes<S>(self, data: S) -> DeclaredJob<'a, 'body, A::With, P>
    where
        S: WriteAccess<P>,
        A: And<S::Writes>,
    {
        self.declare(data, |accesses, data| accesses.and(data.writes()))
    }

    /// Dependencies that are missing are added, as [`NewJob::auto`].
    ///
    /// ```
    /// let js = paceline::Builder::new().checks(true).build().unwrap();
    /// let number = js.share("number", 20);
    /// js.job("add").writes(&number).schedule(|_cx, number| *number += 1);
    /// let double = js.job("double").writes(&number).auto().schedule(|_cx, number| *number *= 2);
    /// js.wait(double);
    /// assert_eq!(*number.read(), 42);
    /// ```
    pub fn auto(mut self) -> Self {
        self.is_auto = true;
        self
    }

    /// It starts only after this job has ended, as [`NewJob::after`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let number = js.share("number", 20);
    /// let add = js.job("add").writes(&number).schedule(|_cx, number| *number += 1);
    /// let double = js.job("double").writes(&number).after(add);
    /// js.wait(double.schedule(|_cx, number| *number *= 2));
    /// assert_eq!(*number.read(), 42);
    /// ```
    pub fn after(self, id: impl Into<JobId>) -> Self {
        self.described(|job| job.after(id))
    }

    /// It starts only after all of these have ended, as [`NewJob::after_all`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let parts: Vec<_> = (0..4).map(|_| js.schedule(|_| ())).collect();
    /// let number = js.share("number", 41);
    /// js.wait(js.job("add").writes(&number).after_all(&parts).schedule(|_cx, number| *number += 1));
    /// assert_eq!(*number.read(), 42);
    /// ```
    pub fn after_all(self, ids: impl IntoIterator<Item = impl Into<JobId>>) -> Self {
        self.described(|job| job.after_all(ids))
    }

    /// Its lane, as [`NewJob::lane`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let input = js.share("input", 0);
    /// let read = js.job("read").writes(&input).lane(paceline::Lane::Frame);
    /// js.wait(read.schedule(|_cx, input| *input += 1));
    /// ```
    pub fn lane(self, lane: Lane) -> Self {
        self.described(|job| job.lane(lane))
    }

    /// What can call it off, as [`NewJob::cancelled_by`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (map, closing) = (js.share("map", 0), paceline::CancelToken::new());
    /// let bake = js.job("bake").writes(&map).cancelled_by(&closing);
    /// js.wait(bake.schedule(|_cx, map| *map += 1));
    /// ```
    pub fn cancelled_by(self, token: &'a CancelToken) -> Self {
        self.described(|job| job.cancelled_by(token))
    }

    /// The thread that alone runs it, as [`NewJob::pinned_to`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (scene, main) = (js.share("scene", 0), js.pinned_thread());
    /// let draw = js.job("draw").reads(&scene).pinned_to(main.pin());
    /// js.wait(draw.schedule(|_cx, scene| assert_eq!(*scene, 0)));
    /// ```
    pub fn pinned_to(self, thread: ThreadPin) -> Self {
        self.described(|job| job.pinned_to(thread))
    }

    /// It has no deadline, as [`NewJob::background`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let log = js.share("log", vec!["started"]);
    /// js.wait(js.job("save").reads(&log).background().schedule(|_cx, log| println!("{log:?}")));
    /// ```
    pub fn background(self) -> Self {
        self.described(NewJob::background)
    }

    /// To schedule it wakes no thread, as [`NewJob::quiet`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let level = js.share("level", 0.5);
    /// let meter = js.job("meter").reads(&level).quiet().schedule(|_cx, level| println!("{level}"));
    /// js.flush();
    /// js.wait(meter);
    /// ```
    pub fn quiet(self) -> Self {
        self.described(NewJob::quiet)
    }
}

impl<'body, A: Accesses + Send + 'body, P: Platform> DeclaredJob<'_, 'body, A, P> {
    /// Schedules a body without a result, which gets references to exactly what was declared.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let score = js.share("score", 41);
    /// js.wait(js.job("win").writes(&score).schedule(|_cx, score| *score += 1));
    /// assert_eq!(*score.read(), 42);
    /// ```
    ///
    /// # Panics
    /// Where [`try_schedule`](DeclaredJob::try_schedule) gives an error.
    #[track_caller]
    pub fn schedule<F>(self, body: F) -> JobId
    where
        F: for<'i> FnOnce(&Context<'_, P>, A::Items<'i>) + Send + 'body,
    {
        or_panic(self.try_schedule(body))
    }

    /// As [`schedule`](DeclaredJob::schedule), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::Builder::new().checks(true).build().unwrap();
    /// let score = js.share("score", 0);
    /// let win = js.job("win").writes(&score).schedule(|_cx, score| *score += 1);
    /// let show = js.job("show").reads(&score).try_schedule(|_cx, score| println!("{score}"));
    /// assert!(show.is_err());
    /// js.wait(win);
    /// ```
    ///
    /// # Errors
    /// As [`NewJob::try_schedule`]. [`ScheduleError::Access`] if it declares the same data twice, once to
    /// write it, or data of another job system. With checks also if it touches the same data as a job that
    /// was scheduled before, one of the two changes it, and that job neither comes before this one nor was
    /// waited for. The body is dropped then, and nothing of it has run.
    pub fn try_schedule<F>(self, body: F) -> Result<JobId, ScheduleError>
    where
        F: for<'i> FnOnce(&Context<'_, P>, A::Items<'i>) + Send + 'body,
    {
        let (declared, is_auto) = (self.declared()?, self.is_auto);
        let accesses = &declared;
        let declares = Declares { accesses, is_auto };
        let holding = holding(self.accesses, body);
        self.job.try_schedule_as(holding, &declares)
    }

    /// Schedules a body whose result is kept for the returned handle.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let names = js.share_slice("names", ["one", "three"]);
    /// let longest = js.job("longest").reads(&names);
    /// let longest = longest.run(|_cx, names| names.iter().map(|name| name.len()).max());
    /// assert_eq!(longest.wait(), Some(5));
    /// ```
    ///
    /// # Panics
    /// Where [`try_run`](DeclaredJob::try_run) gives an error.
    #[track_caller]
    pub fn run<F, T>(self, body: F) -> Job<T>
    where
        F: for<'i> FnOnce(&Context<'_, P>, A::Items<'i>) -> T + Send + 'body,
        T: Send + 'body,
    {
        or_panic(self.try_run(body))
    }

    /// As [`run`](DeclaredJob::run), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let score = js.share("score", 42);
    /// let shown = js.job("show").reads(&score).try_run(|_cx, score| score.to_string());
    /// assert_eq!(shown.unwrap().wait(), "42");
    /// ```
    ///
    /// # Errors
    /// As [`try_schedule`](DeclaredJob::try_schedule).
    pub fn try_run<F, T>(self, body: F) -> Result<Job<T>, ScheduleError>
    where
        F: for<'i> FnOnce(&Context<'_, P>, A::Items<'i>) -> T + Send + 'body,
        T: Send + 'body,
    {
        let (declared, is_auto) = (self.declared()?, self.is_auto);
        let accesses = &declared;
        let declares = Declares { accesses, is_auto };
        let holding = holding(self.accesses, body);
        self.job.try_run_as(holding, &declares)
    }

    /// What it declares, as data.
    ///
    /// # Errors
    /// If that cannot be, whatever other jobs do.
    fn declared(&self) -> Result<SmallVec<[Declared; 8]>, ScheduleError> {
        let label = self.job.label;
        if let Some(resource) = self.foreign {
            return Err(refused(AccessFault::Foreign { resource, label }));
        }
        if self.is_auto && !self.job.shared().checks.is_on() {
            return Err(refused(AccessFault::Unchecked { label }));
        }
        let mut declared: SmallVec<[Declared; 8]> = SmallVec::new();
        let mut twice = None;
        self.accesses.each(&mut |access| {
            if declared.iter().any(|before| before.collides(&access.0)) {
                twice = Some(declared.len());
            }
            declared.push(access.0);
        });
        match twice {
            None => Ok(declared),
            Some(place) => Err(refused(AccessFault::DeclaredTwice {
                resource: name_of(&self.accesses, place),
                label,
            })),
        }
    }
}

/// The name of the data of an access, by its place.
#[cold]
fn name_of<A: Accesses>(accesses: &A, place: usize) -> &'static str {
    let (mut number, mut name) = (0, "");
    accesses.each_keeper(&mut |keeper| {
        if number == place {
            name = keeper.name();
        }
        number += 1;
        true
    });
    name
}

/// An item of a loop over the data that was declared.
type DeclaredItem<'i, A> = <<<A as Accesses>::Items<'i> as LoopData>::Items as LoopItems>::Item;

impl<'body, A, P> DeclaredJob<'_, 'body, A, P>
where
    A: Accesses + Send + 'body,
    for<'i> A::Items<'i>: LoopData,
    P: Platform,
{
    /// Schedules a loop over the slices that were declared, side by side: `f` is called for each item, or for
    /// each tuple of items, by several threads. For more than this (chunks, sums, a grain) there is
    /// [`schedule`](DeclaredJob::schedule), with a body that calls [`Context::over`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let speeds = js.share_slice("speeds", vec![2.0; 100]);
    /// let positions = js.share_slice("positions", vec![0.0; 100]);
    /// let half = js.job("half").reads(speeds.part(0..50)).writes(positions.part(0..50));
    /// js.wait(half.for_each(|(speed, position)| *position += speed));
    /// assert_eq!((positions.read()[49], positions.read()[50]), (2.0, 0.0));
    /// ```
    ///
    /// # Panics
    /// Where [`try_schedule`](DeclaredJob::try_schedule) gives an error. The job fails if the slices have
    /// different lengths.
    #[track_caller]
    pub fn for_each<F>(self, f: F) -> JobId
    where
        F: for<'i> Fn(DeclaredItem<'i, A>) + Send + Sync + 'body,
    {
        let label = self.job.label;
        self.schedule(move |cx: &Context<'_, P>, items: A::Items<'_>| {
            cx.over(items).labelled(label).for_each(&f);
        })
    }
}

/// The body, which stands in the lists of holders of all that was declared while it runs.
fn holding<'body, A, F, T, P>(
    accesses: A,
    body: F,
) -> impl FnOnce(&Context<'_, P>) -> T + Send + 'body
where
    A: Accesses + Send + 'body,
    F: for<'i> FnOnce(&Context<'_, P>, A::Items<'i>) -> T + Send + 'body,
    P: Platform,
{
    move |cx| {
        let _holding = Holding::new(cx, &accesses);
        // SAFETY: the job stands in the list of holders for each, so nobody else touches what it writes, or
        // writes what it reads; nor does it do so itself twice, because then it would not have got there.
        let items = unsafe { accesses.items(Places(&[])) };
        body(cx, items)
    }
}

/// A job stands in the lists of holders of its accesses.
struct Holding<'a, A: Accesses> {
    accesses: &'a A,
    job: u64,
    /// Of how many, while it gets there.
    count: usize,
}

impl<'a, A: Accesses> Holding<'a, A> {
    /// # Panics
    /// If somebody has data with whom an access collides. That is the job's failure.
    fn new<P: Platform>(cx: &Context<'_, P>, accesses: &'a A) -> Self {
        let mut holding = Holding {
            accesses,
            job: cx.current_job().0,
            count: 0,
        };
        let mut taken = Ok(());
        accesses.each_keeper(&mut |keeper| {
            taken = keeper.take(holding.job);
            holding.count += usize::from(taken.is_ok());
            taken.is_ok()
        });
        if let Err(taken) = taken {
            drop(holding);
            fail(cx, &taken);
        }
        holding
    }
}

impl<A: Accesses> Drop for Holding<'_, A> {
    fn drop(&mut self) {
        let mut left = self.count;
        self.accesses.each_keeper(&mut |keeper| {
            if left > 0 {
                keeper.give_back(self.job);
                left -= 1;
            }
            left > 0
        });
    }
}

#[cold]
fn fail<P: Platform>(cx: &Context<'_, P>, taken: &Taken) -> ! {
    let label = cx.graph().label_of(cx.shared.slot(cx.current_job()));
    let (kind, part) = (taken.refused.kind, taken.refused.part.clone());
    let fault = AccessFault::Running {
        resource: taken.resource,
        first: toucher(&taken.holder, Some(cx.shared)),
        second: Toucher::Job(Conflicting::new(label, kind, part)),
    };
    panic!("{}", AccessError::new(fault));
}
