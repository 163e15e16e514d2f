//! Jobs that get the values of others: [`NewJob::with`] and [`Job::then`].
//!
//! The handle of an input goes into the body of its successor, which comes after the job by an edge like any
//! other. So the successor runs only if all values are there, and then takes them. If it is cancelled
//! instead, its body is dropped, and the handles with it.
//!
//! In the body a handle is its ticket. The job system is there once for all of them, as a plain pointer.
//! Invariant: a body is called or dropped only while the slot that it lies in exists, or in the call that
//! makes the job. So the job system is there.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr::NonNull;

use platform::{Os, Platform};
use smallvec::SmallVec;

use super::handle::{Job, Owner, given_before};
use super::schedule::NewJob;
use crate::error::{ScheduleError, WaitError, or_panic};
use crate::store::{Body, JobId, Label, Ticket};
use crate::work::{Context, Shared, TypedAlone};

/// Jobs whose values a further job gets, by [`NewJob::with`]: the handle of one, a tuple of two to four, an
/// array, or a vector. Programs need no implementation of their own.
///
/// # Safety
/// Each ticket that `hand_over` returns is that of a handle that `each` has shown, and no handle is left.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let (width, height) = (js.job("width").run(|_| 4), js.job("height").run(|_| 3));
/// let area = js.job("area").with((width, height)).run(|_, (width, height)| width * height);
/// assert_eq!(area.wait(), 12);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no values for a job",
    label = "not the handle of a job or event with a value, nor several of them",
    note = "`with` takes the handle itself, a `Job<T>` from `run`, `event_with` or `then`; or a tuple of two \
            to four handles, an array, or a `Vec` of them",
    note = "to come after a job, an event or a latch without its value: `after(id)`"
)]
pub unsafe trait Inputs {
    /// The value, the tuple, the array, or the vector of values.
    type Values;

    /// The tickets of the jobs.
    #[doc(hidden)]
    type Tickets: AsRef<[u64]>;

    /// Calls `visit` with the handle of each.
    #[doc(hidden)]
    fn each(&self, visit: &mut dyn FnMut(InputHandle<'_>));

    /// The handles become inputs.
    #[doc(hidden)]
    fn hand_over(self) -> Self::Tickets;

    /// # Safety
    /// The jobs have values, which the caller has to itself.
    #[doc(hidden)]
    unsafe fn take(tickets: Self::Tickets, from: InputOwner<'_>) -> Self::Values;
}

/// A handle of any type. It has no example, because programs do not name it.
#[doc(hidden)]
pub struct InputHandle<'h> {
    id: JobId,
    owner: &'h dyn Owner,
}

/// The job system that inputs belong to. It has no example, because programs do not name it.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct InputOwner<'o>(&'o dyn Owner);

impl InputOwner<'_> {
    /// # Safety
    /// The job is over and has a `T`, which the caller has to itself.
    unsafe fn value<T>(self, ticket: u64) -> T {
        let job = Ticket(ticket);
        let place = or_panic(self.0.result(job));
        // SAFETY: the caller's promise.
        let value = unsafe { Body::take::<T>(place) };
        self.0.let_go(job, true);
        value
    }
}

// SAFETY: it is the one handle.
unsafe impl<T> Inputs for Job<T> {
    type Values = T;
    type Tickets = [u64; 1];

    fn each(&self, visit: &mut dyn FnMut(InputHandle<'_>)) {
        visit(InputHandle {
            id: self.id(),
            owner: self.owner(),
        });
    }

    fn hand_over(self) -> [u64; 1] {
        [self.into_parts().1.0]
    }

    unsafe fn take([ticket]: [u64; 1], from: InputOwner<'_>) -> T {
        // SAFETY: the caller's promise.
        unsafe { from.value(ticket) }
    }
}

// SAFETY: as above, for each.
unsafe impl<T, const N: usize> Inputs for [Job<T>; N] {
    type Values = [T; N];
    type Tickets = [u64; N];

    fn each(&self, visit: &mut dyn FnMut(InputHandle<'_>)) {
        for job in self {
            job.each(visit);
        }
    }

    fn hand_over(self) -> [u64; N] {
        self.map(|job| job.into_parts().1.0)
    }

    unsafe fn take(tickets: [u64; N], from: InputOwner<'_>) -> [T; N] {
        // SAFETY: the caller's promise.
        tickets.map(|ticket| unsafe { from.value(ticket) })
    }
}

// SAFETY: as above, for each.
unsafe impl<T> Inputs for Vec<Job<T>> {
    type Values = Vec<T>;
    type Tickets = Vec<u64>;

    fn each(&self, visit: &mut dyn FnMut(InputHandle<'_>)) {
        for job in self {
            job.each(visit);
        }
    }

    fn hand_over(self) -> Vec<u64> {
        self.into_iter().map(|job| job.into_parts().1.0).collect()
    }

    unsafe fn take(tickets: Vec<u64>, from: InputOwner<'_>) -> Vec<T> {
        let tickets = tickets.into_iter();
        // SAFETY: the caller's promise.
        tickets
            .map(|ticket| unsafe { from.value(ticket) })
            .collect()
    }
}

macro_rules! tuples_of_inputs {
    ($($count:literal: $($name:ident $T:ident),*;)*) => {$(
        // SAFETY: as above, for each.
        unsafe impl<$($T),*> Inputs for ($(Job<$T>,)*) {
            type Values = ($($T,)*);
            type Tickets = [u64; $count];

            fn each(&self, visit: &mut dyn FnMut(InputHandle<'_>)) {
                let ($($name,)*) = self;
                $($name.each(visit);)*
            }

            fn hand_over(self) -> [u64; $count] {
                let ($($name,)*) = self;
                [$($name.into_parts().1.0,)*]
            }

            unsafe fn take([$($name),*]: [u64; $count], from: InputOwner<'_>) -> Self::Values {
                // SAFETY: the caller's promise.
                unsafe { ($(from.value($name),)*) }
            }
        }
    )*};
}

tuples_of_inputs! {
    2: a A, b B;
    3: a A, b B, c C;
    4: a A, b B, c C, d D;
}

/// The inputs of a job, in its body.
struct HeldInputs<I: Inputs> {
    /// Lives as long as this; see the module.
    owner: NonNull<dyn Owner>,
    tickets: ManuallyDrop<I::Tickets>,
    _values: PhantomData<I>,
}

// SAFETY: an owner is shared between threads, tickets are names, and the values of jobs are Send (the calls
// that make jobs with values demand it).
unsafe impl<I: Inputs> Send for HeldInputs<I> {}

impl<I: Inputs> HeldInputs<I> {
    /// # Safety
    /// `owner` outlives the inputs, and the tickets are those of handles of its jobs.
    unsafe fn new(owner: &(dyn Owner + 'static), tickets: I::Tickets) -> Self {
        for &ticket in tickets.as_ref() {
            owner.is_input(Ticket(ticket));
        }
        HeldInputs {
            owner: NonNull::from(owner),
            tickets: ManuallyDrop::new(tickets),
            _values: PhantomData,
        }
    }

    /// The values, for the body that runs.
    fn take(self) -> I::Values {
        // A job with an input that failed does not run. If it did all the same, it would fail in its turn.
        if let Some(error) = self.failed() {
            error.raise();
        }
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the owner lives (see the module). `this` is never used again, so the tickets are taken
        // once. The jobs are over and have not failed, and the handles were the only ones.
        unsafe {
            let tickets = ManuallyDrop::take(&mut this.tickets);
            I::take(tickets, InputOwner(this.owner.as_ref()))
        }
    }

    /// The failure of an input.
    fn failed(&self) -> Option<WaitError> {
        // SAFETY: the owner lives; see the module.
        let owner = unsafe { self.owner.as_ref() };
        let mut tickets = self.tickets.as_ref().iter();
        tickets.find_map(|&ticket| owner.result(Ticket(ticket)).err())
    }
}

impl<I: Inputs> Drop for HeldInputs<I> {
    fn drop(&mut self) {
        // SAFETY: the owner lives (see the module), and the tickets are not used again.
        let (owner, tickets) =
            unsafe { (self.owner.as_ref(), ManuallyDrop::take(&mut self.tickets)) };
        for &ticket in tickets.as_ref() {
            owner.let_go(Ticket(ticket), false);
        }
    }
}

/// The description of a job that gets the values of others, from [`NewJob::with`].
///
/// ```
/// let js = paceline::JobSystem::new();
/// let load = js.job("load").run(|_| "1 2 3".to_owned());
/// let decode = js.job("decode").with(load).run(|_, text| text.split(' ').count());
/// assert_eq!(decode.wait(), 3);
/// ```
#[must_use = "describe the job, then schedule it"]
pub struct NewJobWith<'a, 'body, I: Inputs, P: Platform = Os> {
    job: NewJob<'a, 'body, P>,
    inputs: I,
}

impl<'a, 'body, P: Platform> NewJob<'a, 'body, P> {
    /// The job comes after these jobs and gets their values: the result of a job, or the value of an event.
    /// It takes their handles: that of one job, a tuple of two to four, an array, or a vector.
    ///
    /// If one of them fails, the job is cancelled, as after [`after`](NewJob::after), and the values of the
    /// others are dropped. An input takes 8 bytes of the 64 that the body may have without an allocation, and
    /// all of them together 16 more (a vector 24 and 16). Call it last, after the rest of the description.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (read, bytes) = js.event_with::<Vec<u8>>("read");
    /// let size = js.job("size").run(|_| 2);
    /// let decode = js.job("decode").background().with((bytes, size));
    /// let image = decode.run(|_cx, (bytes, size)| bytes.chunks(size).map(<[u8]>::to_vec).collect());
    /// read.complete_with(vec![1, 2, 3, 4]);
    /// let image: Vec<Vec<u8>> = image.wait();
    /// assert_eq!(image, [[1, 2], [3, 4]]);
    /// ```
    ///
    /// A value goes to one job. For several consumers it is an `Arc` that the first one clones on, or it lies
    /// where all of them look, and they come [after](NewJob::after) the job that puts it there:
    ///
    /// ```
    /// use std::sync::{Arc, OnceLock};
    /// let js = paceline::JobSystem::new();
    /// let mesh = Arc::new(OnceLock::new());
    /// let place = mesh.clone();
    /// let load = js.job("load").schedule(move |_| place.set(vec![3, 1, 2]).expect("it is set once"));
    /// let users = ["draw", "collide"].map(|name| {
    ///     let mesh = mesh.clone();
    ///     js.job(name).after(load).run(move |_| mesh.get().map_or(0, Vec::len))
    /// });
    /// assert_eq!(users.map(|user| user.wait()), [3, 3]);
    /// ```
    ///
    /// In a scope a mutable borrow can travel in this way, too: see [`Scope::job`](crate::Scope::job).
    ///
    /// # Panics
    /// The call that schedules the job panics if a handle has given its value before, as a future.
    pub fn with<I: Inputs + 'body>(self, inputs: I) -> NewJobWith<'a, 'body, I, P> {
        NewJobWith { job: self, inputs }
    }
}

impl<'a, 'body, I: Inputs + 'body, P: Platform> NewJobWith<'a, 'body, I, P> {
    /// Schedules a body without a result, which gets the values.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.job("load").run(|_| vec![3, 1, 2]);
    /// js.wait(js.job("show").with(load).schedule(|_cx, numbers| println!("{numbers:?}")));
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_schedule`] gives an error.
    #[track_caller]
    pub fn schedule<F>(self, body: F) -> JobId
    where
        F: FnOnce(&Context<'_, P>, I::Values) + Send + 'body,
    {
        or_panic(self.try_schedule(body))
    }

    /// As [`schedule`](NewJobWith::schedule), with an error instead of a panic.
    ///
    /// ```
    /// use paceline::{JobSystem, ScheduleError};
    /// let (js, other) = (JobSystem::new(), JobSystem::new());
    /// let foreign = other.job("load").run(|_| 42);
    /// let refused = js.job("show").with(foreign).try_schedule(|_, _| ());
    /// assert!(matches!(refused, Err(ScheduleError::Foreign { .. })));
    /// ```
    ///
    /// # Errors
    /// As [`NewJob::try_schedule`]. The values are dropped then.
    pub fn try_schedule<F>(self, body: F) -> Result<JobId, ScheduleError>
    where
        F: FnOnce(&Context<'_, P>, I::Values) + Send + 'body,
    {
        let (job, inputs) = self.wired()?;
        job.try_schedule(move |cx| body(cx, inputs.take()))
    }

    /// Schedules a body that gets the values, and whose own result is kept for the returned handle.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let parts: Vec<_> = (0..4).map(|part| js.job("part").run(move |_| part * part)).collect();
    /// let sum = js.job("sum").with(parts).run(|_cx, parts| parts.iter().sum::<i32>());
    /// assert_eq!(sum.wait(), 14);
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_run`] gives an error.
    #[track_caller]
    pub fn run<F, T>(self, body: F) -> Job<T>
    where
        F: FnOnce(&Context<'_, P>, I::Values) -> T + Send + 'body,
        T: Send + 'body,
    {
        or_panic(self.try_run(body))
    }

    /// As [`run`](NewJobWith::run), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.job("load").run(|_| 21);
    /// match js.job("double").with(load).try_run(|_cx, number| 2 * number) {
    ///     Ok(double) => assert_eq!(double.wait(), 42),
    ///     Err(error) => eprintln!("no room for the job: {error}"),
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`NewJob::try_run`]. The values are dropped then.
    pub fn try_run<F, T>(self, body: F) -> Result<Job<T>, ScheduleError>
    where
        F: FnOnce(&Context<'_, P>, I::Values) -> T + Send + 'body,
        T: Send + 'body,
    {
        let (job, inputs) = self.wired()?;
        job.try_run(move |cx| body(cx, inputs.take()))
    }

    /// The description, with the edges from the inputs, and the inputs, for the body.
    fn wired(self) -> Result<(NewJob<'a, 'body, P>, HeldInputs<I>), ScheduleError> {
        let NewJobWith { mut job, inputs } = self;
        let owner: &Shared<P> = job.shared();
        let mut are_there = true;
        let mut ids = SmallVec::<[JobId; 4]>::new();
        inputs.each(&mut |handle| {
            ids.push(handle.id);
            are_there &= std::ptr::addr_eq(handle.owner, owner);
        });
        job = job.after_all(ids);
        job.predecessors()?;
        if !are_there {
            given_before();
        }
        // SAFETY: the body is called or dropped by this job system, or in the call that makes the job. All
        // handles are its own, as their addresses have shown.
        let inputs = unsafe { HeldInputs::new(owner, inputs.hand_over()) };
        Ok((job, inputs))
    }
}

impl<T: 'static> Job<T> {
    /// Schedules a successor that gets the value, and whose own result is kept for the returned handle. Its
    /// name is "then", with the line of this call. For another name, a context, or jobs of a scope:
    /// `js.job("decode").with(handle).run(|cx, value| …)`; see [`NewJob::with`].
    ///
    /// If this job fails, the successor is cancelled. As any scheduling call it never blocks and runs
    /// nothing. There is no allocation if the closure has at most 40 bytes.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let load = js.job("load").run(|_| "1 2 3".to_owned());
    /// let count = load.then(|text| text.split(' ').count()).then(|count| count * 2);
    /// assert_eq!(count.wait(), 6);
    /// ```
    ///
    /// # Panics
    /// Where [`try_then`](Job::try_then) gives an error; if the handle has given its value before, as a
    /// future.
    #[track_caller]
    pub fn then<F, U>(self, then: F) -> Job<U>
    where
        F: FnOnce(T) -> U + Send + 'static,
        U: Send + 'static,
    {
        or_panic(self.try_then(then))
    }

    /// As [`then`](Job::then), with an error instead of a panic.
    ///
    /// ```
    /// use paceline::{JobSystem, ScheduleError};
    /// let js = JobSystem::new();
    /// let load = js.job("load").run(|_| 21);
    /// drop(js);
    /// let refused = load.try_then(|number| 2 * number);
    /// assert_eq!(refused.unwrap_err(), ScheduleError::ShutDown);
    /// ```
    ///
    /// # Errors
    /// As [`NewJob::try_run`]; also if the job system has ended. The value is dropped then.
    #[track_caller]
    pub fn try_then<F, U>(self, then: F) -> Result<Job<U>, ScheduleError>
    where
        F: FnOnce(T) -> U + Send + 'static,
        U: Send + 'static,
    {
        let label = Label {
            name: "then",
            site: Location::caller(),
        };
        let pool = self.id().pool;
        let (owner, job) = self.into_parts();
        // SAFETY: the body is called or dropped by the owner, or in this call. The handle was its own.
        let input = unsafe { HeldInputs::<Job<T>>::new(&*owner, [job.0]) };
        let made = schedule_alone(&*owner, label, job, move || then(input.take()));
        made.map(|made| Job::new(owner, JobId::new(pool, made)))
    }
}

/// Schedules a body that gets no context, after `after`.
fn schedule_alone<F, U>(
    owner: &dyn Owner,
    label: Label,
    after: Ticket,
    body: F,
) -> Result<Ticket, ScheduleError>
where
    F: FnOnce() -> U + Send + 'static,
    U: Send + 'static,
{
    // SAFETY: the table is that of the body, which borrows nothing.
    unsafe { owner.schedule(label, after, &mut Some(body), &TypedAlone::<F, U>::TABLE) }
}
