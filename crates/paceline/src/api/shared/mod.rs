//! Data that jobs share as they declare: [`Shared`], and the guards for the program itself.
//!
//! What is here is sound with and without checks. A body, and the program itself, touch the data only while
//! they stand in its list of holders, and nobody gets into that list who collides with one that is in it.

mod access;
mod job;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

use platform::{Atomic, Lock, Ordering, Os, Platform};

use super::system::JobSystem;
use crate::access::{
    AccessError, AccessFault, AccessKind, Conflicting, Declared, Holder, Holders, Outside, Toucher,
    Who,
};
use crate::error::or_panic;
use crate::store::{CallSite, Name};
use crate::work;

pub use access::{Part, ReadAccess, WriteAccess};
pub use job::DeclaredJob;

/// Data that jobs read and write as they declare, from [`JobSystem::share`] or [`JobSystem::share_slice`].
///
/// A job that declares it ([`NewJob::reads`], [`NewJob::writes`]) gets a reference to it in its body, and
/// nothing else can touch it meanwhile. Between jobs the program itself has guards: [`read`](Shared::read)
/// and [`write`](Shared::write).
///
/// With [`Builder::checks`], a job that would touch it in no order with another one is refused when it is
/// scheduled. Without, the job that comes too early fails when it runs, and so do calls of `read` and
/// `write`. In neither case is there a data race.
///
/// Clones are handles of the same data. To make one costs two read-modify-writes, and a job that declares the
/// data takes one. The data is dropped with the last handle and the last such job.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let speeds = js.share_slice("speeds", vec![2.0; 100]);
/// let positions = js.share_slice("positions", vec![0.0; 100]);
/// let travel = js.job("travel").reads(&speeds).writes(&positions);
/// let travel = travel.for_each(|(speed, position)| *position += speed);
/// let far = js.job("far").after(travel).reads(&positions);
/// let far = far.run(|_cx, positions| positions.iter().filter(|&&position| position > 1.0).count());
/// assert_eq!(far.wait(), 100);
/// assert_eq!(positions.read()[99], 2.0);
/// ```
///
/// What is not declared is not there:
///
/// ```compile_fail,E0308
/// let js = paceline::JobSystem::new();
/// let (speeds, positions) = (js.share("speeds", 0), js.share("positions", 0));
/// js.job("travel").reads(&speeds).schedule(|_cx, (speed, position)| *position += *speed);
/// ```
///
/// And what is only read cannot be changed:
///
/// ```compile_fail,E0594
/// let js = paceline::JobSystem::new();
/// let speeds = js.share("speeds", 0);
/// js.job("brake").reads(&speeds).schedule(|_cx, speed| *speed = 0);
/// ```
///
/// [`NewJob::reads`]: crate::NewJob::reads
/// [`NewJob::writes`]: crate::NewJob::writes
/// [`Builder::checks`]: crate::Builder::checks
pub struct Shared<T: ?Sized, P: Platform = Os> {
    data: Arc<Data<T, P>>,
}

/// The data, and who touches it.
struct Data<T: ?Sized, P: Platform> {
    name: &'static str,
    /// Its number for the checks; without checks its address, which is as unique while it lives.
    number: u64,
    jobs: Weak<work::Shared<P>>,
    /// How many [`Shared`] there are.
    handles: P::AtomicU64,
    holders: P::Lock<Holders>,
    /// From a box.
    value: NonNull<T>,
    /// Invariant: the value is written through shared references to this.
    _value: PhantomData<*mut T>,
}

// SAFETY: the value is reached only through those who stand in the list of holders: by shared references if
// all of them read, which needs T: Sync and is asked for where reading begins (`ReadAccess`,
// `Shared::read`); by one at a time otherwise, on any thread, for which T: Send is enough.
unsafe impl<T: ?Sized + Send, P: Platform> Sync for Data<T, P> {}
// SAFETY: the value is dropped on any thread: T: Send.
unsafe impl<T: ?Sized + Send, P: Platform> Send for Data<T, P> {}

impl<T: ?Sized, P: Platform> Data<T, P> {
    fn declared(&self, kind: AccessKind, part: Range<usize>) -> Declared {
        Declared {
            resource: self.number,
            kind,
            part,
        }
    }

    fn take(&self, access: &Declared, who: Who) -> Result<(), Holder> {
        self.holders.with(|holders| holders.take(access, who))
    }

    fn give_back(&self, access: &Declared, who: Who) {
        self.holders.with(|holders| holders.give_back(access, who));
    }
}

impl<T: ?Sized, P: Platform> Drop for Data<T, P> {
    fn drop(&mut self) {
        if let Some(jobs) = self.jobs.upgrade() {
            jobs.checks.remove_resource(self.number);
        }
        // SAFETY: it came from a box (`Shared::new`), and nothing else can reach it any more.
        drop(unsafe { Box::from_raw(self.value.as_ptr()) });
    }
}

impl<P: Platform> JobSystem<P> {
    /// Makes data that jobs can declare. Errors call it by this name. It allocates.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let score = js.share("score", 41);
    /// js.wait(js.job("win").writes(&score).schedule(|_cx, score| *score += 1));
    /// assert_eq!(*score.read(), 42);
    /// ```
    pub fn share<T: Send>(&self, name: impl Into<Name>, value: T) -> Shared<T, P> {
        Shared::new(self.shared(), name.into().as_str(), Box::new(value))
    }

    /// Makes a slice that jobs can declare, or parts of it ([`Shared::part`]). Its length stays what it is.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let heights = js.share_slice("heights", vec![1.0; 100]);
    /// let left = js.job("left").writes(heights.part(0..50)).for_each(|height| *height = 2.0);
    /// let right = js.job("right").writes(heights.part(50..100)).for_each(|height| *height = 3.0);
    /// js.wait(js.combine([left, right])); // They touch disjoint parts, and need no order.
    /// assert_eq!((heights.read()[49], heights.read()[50]), (2.0, 3.0));
    /// ```
    pub fn share_slice<T: Send>(
        &self,
        name: impl Into<Name>,
        items: impl Into<Box<[T]>>,
    ) -> Shared<[T], P> {
        Shared::new(self.shared(), name.into().as_str(), items.into())
    }
}

impl<T: ?Sized, P: Platform> Shared<T, P> {
    fn new(jobs: &work::Shared<P>, name: &'static str, value: Box<T>) -> Self {
        let value = NonNull::from(Box::leak(value));
        let number = jobs.checks.add_resource(name);
        Shared {
            data: Arc::new_cyclic(|this: &Weak<Data<T, P>>| Data {
                name,
                number: number.unwrap_or(this.as_ptr().cast::<()>().addr() as u64),
                jobs: jobs.this.clone(),
                handles: P::AtomicU64::new(1),
                holders: P::Lock::new(Holders::default()),
                value,
                _value: PhantomData,
            }),
        }
    }

    /// The name.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// assert_eq!(js.share("score", 0).name(), "score");
    /// ```
    pub fn name(&self) -> &'static str {
        self.data.name
    }

    /// A reference to the data for the program itself, between jobs that write it: after a wait for them. It
    /// waits for nothing. Jobs that write the data cannot be scheduled (with checks) or fail when they run
    /// (without) while the guard lives.
    ///
    /// ```
    /// let js = paceline::Builder::new().checks(true).build().unwrap();
    /// let score = js.share("score", 41);
    /// let win = js.job("win").writes(&score).schedule(|_cx, score| *score += 1);
    /// assert!(score.try_read().is_err());
    /// js.wait(win);
    /// assert_eq!(*score.read(), 42);
    /// ```
    ///
    /// # Panics
    /// Where [`try_read`](Shared::try_read) gives an error.
    #[track_caller]
    pub fn read(&self) -> Reading<'_, T, P>
    where
        T: Sync,
    {
        or_panic(self.try_read())
    }

    /// As [`read`](Shared::read), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let score = js.share("score", 0);
    /// let _change = score.write();
    /// assert!(score.try_read().is_err());
    /// ```
    ///
    /// # Errors
    /// With checks: if a job was scheduled that writes the data, and neither was it waited for nor does it
    /// come before the job that makes this call. Always: if anybody is writing the data at this moment.
    #[track_caller]
    pub fn try_read(&self) -> Result<Reading<'_, T, P>, AccessError>
    where
        T: Sync,
    {
        let held = self.hold(AccessKind::Reads, Location::caller())?;
        Ok(Reading(held, PhantomData))
    }

    /// A reference to change the data for the program itself, between jobs that touch it: after a wait for
    /// them. It waits for nothing. Jobs that touch the data cannot be scheduled (with checks) or fail when
    /// they run (without) while the guard lives.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let score = js.share("score", 0);
    /// *score.write() = 41;
    /// js.wait(js.job("win").writes(&score).schedule(|_cx, score| *score += 1));
    /// assert_eq!(*score.read(), 42);
    /// ```
    ///
    /// # Panics
    /// Where [`try_write`](Shared::try_write) gives an error.
    #[track_caller]
    pub fn write(&self) -> Writing<'_, T, P> {
        or_panic(self.try_write())
    }

    /// As [`write`](Shared::write), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let score = js.share("score", 0);
    /// let _look = score.read();
    /// assert!(score.try_write().is_err());
    /// ```
    ///
    /// # Errors
    /// As [`try_read`](Shared::try_read), also for those that only read.
    #[track_caller]
    pub fn try_write(&self) -> Result<Writing<'_, T, P>, AccessError> {
        let held = self.hold(AccessKind::Writes, Location::caller())?;
        Ok(Writing(held, PhantomData))
    }

    fn hold(
        &self,
        kind: AccessKind,
        site: CallSite,
    ) -> Result<HeldByProgram<'_, T, P>, AccessError> {
        let data = &*self.data;
        let access = data.declared(kind, Declared::WHOLE);
        let jobs = data.jobs.upgrade();
        let guard = match &jobs {
            Some(jobs) => {
                let cx = jobs.context().ok();
                jobs.checks.take(cx.as_ref(), &access, site)?
            }
            None => 0,
        };
        match data.take(&access, Who::Outside(site)) {
            Ok(()) => Ok(HeldByProgram {
                data,
                access,
                site,
                guard,
            }),
            Err(holder) => {
                if let Some(jobs) = &jobs {
                    jobs.checks.give_back(data.number, guard);
                }
                let first = toucher(&holder, jobs.as_deref());
                Err(AccessError::new(AccessFault::Running {
                    resource: data.name,
                    first,
                    second: Toucher::Outside(Outside::new(kind, site)),
                }))
            }
        }
    }
}

/// A holder, as errors name it.
#[cold]
fn toucher<P: Platform>(holder: &Holder, jobs: Option<&work::Shared<P>>) -> Toucher {
    match (holder.who, jobs) {
        (Who::Outside(site), _) => Toucher::Outside(Outside::new(holder.kind, site)),
        (Who::Job(job), Some(jobs)) => {
            let label = jobs.graph.label_of(jobs.slot(job));
            Toucher::Job(Conflicting::new(label, holder.kind, holder.part.clone()))
        }
        // The job system is gone, and with it all bodies.
        (Who::Job(_), None) => unreachable!("a body runs without a job system"),
    }
}

impl<T: ?Sized, P: Platform> Clone for Shared<T, P> {
    fn clone(&self) -> Self {
        // Relaxed: a count. The handle that is cloned keeps it above zero.
        self.data.handles.fetch_add(1, Ordering::Relaxed);
        Shared {
            data: self.data.clone(),
        }
    }
}

impl<T: ?Sized, P: Platform> Drop for Shared<T, P> {
    /// # Panics
    /// With checks: if it is the last handle, and a job may be touching the data. (Not while the thread
    /// panics already.)
    fn drop(&mut self) {
        // Relaxed: a count. Nothing is read that other handles' threads have written.
        if self.data.handles.fetch_sub(1, Ordering::Relaxed) > 1 || std::thread::panicking() {
            return;
        }
        let Some(jobs) = self.data.jobs.upgrade().filter(|jobs| jobs.checks.is_on()) else {
            return;
        };
        let access = self.data.declared(AccessKind::Writes, Declared::WHOLE);
        let cx = jobs.context().ok();
        if let Some(job) = jobs.checks.unordered(cx.as_ref(), &access) {
            let resource = self.data.name;
            panic!(
                "{}",
                AccessError::new(AccessFault::Dropped { resource, job })
            );
        }
    }
}

impl<T: ?Sized, P: Platform> fmt::Debug for Shared<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared('{}')", self.data.name)
    }
}

/// The program stands in the list of holders.
struct HeldByProgram<'a, T: ?Sized, P: Platform> {
    data: &'a Data<T, P>,
    access: Declared,
    site: CallSite,
    guard: u64,
}

impl<T: ?Sized, P: Platform> Drop for HeldByProgram<'_, T, P> {
    fn drop(&mut self) {
        self.data.give_back(&self.access, Who::Outside(self.site));
        if let Some(jobs) = self.data.jobs.upgrade() {
            jobs.checks.give_back(self.data.number, self.guard);
        }
    }
}

/// A reference to [`Shared`] data, from [`Shared::read`].
///
/// ```
/// let js = paceline::JobSystem::new();
/// let names = js.share_slice("names", ["one", "two"]);
/// let reading = names.read();
/// assert_eq!(reading.len(), 2);
/// ```
#[must_use = "the reference ends when it is dropped"]
pub struct Reading<'a, T: ?Sized, P: Platform = Os>(HeldByProgram<'a, T, P>, PhantomData<&'a T>);

impl<T: ?Sized, P: Platform> Deref for Reading<'_, T, P> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this stands in the list of holders as one that reads, so nobody writes.
        unsafe { self.0.data.value.as_ref() }
    }
}

impl<T: ?Sized + fmt::Debug, P: Platform> fmt::Debug for Reading<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A reference to change [`Shared`] data, from [`Shared::write`].
///
/// ```
/// let js = paceline::JobSystem::new();
/// let names = js.share("names", vec!["one"]);
/// let mut writing = names.write();
/// writing.push("two");
/// assert_eq!(*writing, ["one", "two"]);
/// ```
#[must_use = "the reference ends when it is dropped"]
pub struct Writing<'a, T: ?Sized, P: Platform = Os>(
    HeldByProgram<'a, T, P>,
    PhantomData<&'a mut T>,
);

impl<T: ?Sized, P: Platform> Deref for Writing<'_, T, P> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this stands in the list of holders as one that writes, so it is alone.
        unsafe { self.0.data.value.as_ref() }
    }
}

impl<T: ?Sized, P: Platform> DerefMut for Writing<'_, T, P> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the borrow of this guard keeps its other references away. (A `NonNull` is
        // copied.)
        unsafe { &mut *self.0.data.value.as_ptr() }
    }
}

impl<T: ?Sized + fmt::Debug, P: Platform> fmt::Debug for Writing<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
