//! Functions and data of C as bodies of jobs.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;
use std::panic::resume_unwind;
use std::ptr::null_mut;

use paceline::Context;

use crate::described::{Carried, any_text, put};
use crate::status::{Answer, Refusal, call, pl_status};
use crate::system::pl_system;

/// What a body may ask while it runs: see pl_context_worker, pl_context_system, pl_context_run_data and
/// pl_fail. It is valid until the body returns, on its own thread.
pub struct pl_context {
    system: &'static pl_system,
    /// What pl_graph_run or pl_graph_start was given.
    run_data: *mut c_void,
    worker: usize,
    failed: RefCell<Option<String>>,
}

/// The body of a job. `data` is what the description says. It must not end by longjmp. A C++ exception that
/// leaves it ends the process.
pub type pl_body = Option<unsafe extern "C-unwind" fn(context: *mut pl_context, data: *mut c_void)>;

/// The body of a loop: called with parts of its range, on several threads at the same time.
pub type pl_loop_body = Option<
    unsafe extern "C-unwind" fn(
        context: *mut pl_context,
        begin: usize,
        end: usize,
        data: *mut c_void,
    ),
>;

/// Called once with `data` when the body is gone.
pub type pl_release = Option<unsafe extern "C-unwind" fn(data: *mut c_void)>;

/// Where the data of a body are.
pub(crate) trait BodyData: Send + Sync + 'static {
    fn address(&self) -> *mut c_void;
}

/// The program's own place.
impl BodyData for Carried {
    fn address(&self) -> *mut c_void {
        self.0
    }
}

/// A copy in the job. The program's function may change it, as its own.
pub(crate) struct Copied<T>(std::cell::UnsafeCell<T>);

// SAFETY: only the program's function touches the bytes; a job runs once, and that a loop's body is called on
// several threads is said there.
unsafe impl<T: Send> Sync for Copied<T> {}

impl<T: Send + 'static> BodyData for Copied<T> {
    fn address(&self) -> *mut c_void {
        self.0.get().cast()
    }
}

/// A copy that has no room in the job: words at an address of their own, for so many bytes.
pub(crate) struct CopiedApart(Carried, usize);

impl BodyData for CopiedApart {
    fn address(&self) -> *mut c_void {
        self.0.0
    }
}

impl Drop for CopiedApart {
    fn drop(&mut self) {
        let words = std::ptr::slice_from_raw_parts_mut(self.0.0.cast::<u64>(), self.1.div_ceil(8));
        // SAFETY: `bind` made it of a box of as many words, and it is dropped once.
        drop(unsafe { Box::from_raw(words) });
    }
}

/// Words of data that fit into a job beside what else its body has.
const WORDS: usize = 5;
/// The bytes of it: longer data are copied to a place of their own, which allocates.
const INLINE_BYTES: usize = WORDS * 8;
/// The most that is copied.
const COPIED_MAX: usize = 1 << 20;

/// A body with its data.
pub(crate) struct Bound<F, D: BodyData> {
    system: &'static pl_system,
    function: F,
    release: pl_release,
    data: D,
}

impl<F, D: BodyData> Drop for Bound<F, D> {
    #[inline]
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the program's function with the program's data, once, when nothing else uses them.
            unsafe { release(self.data.address()) };
        }
    }
}

/// The function of a job, or of a loop.
pub(crate) type JobFunction = unsafe extern "C-unwind" fn(*mut pl_context, *mut c_void);
pub(crate) type LoopFunction =
    unsafe extern "C-unwind" fn(*mut pl_context, usize, usize, *mut c_void);

impl<D: BodyData> Bound<JobFunction, D> {
    pub(crate) fn run(&self, cx: &Context<'_>) {
        let data = self.data.address();
        // SAFETY: the program's function with the program's data, as it has described them.
        within(self.system, cx, null_mut(), |context| unsafe {
            (self.function)(context, data)
        });
    }
}

impl<D: BodyData> Bound<LoopFunction, D> {
    pub(crate) fn run(&self, part: Range<usize>, cx: &Context<'_>) {
        let data = self.data.address();
        // SAFETY: as above.
        within(self.system, cx, null_mut(), |context| unsafe {
            (self.function)(context, part.start, part.end, data)
        });
    }
}

impl<F, D: BodyData> Bound<F, D> {
    /// Calls `run` with the function, a context and the data: the body of a graph's job.
    pub(crate) fn within<R>(
        &self,
        cx: &Context<'_>,
        run_data: *mut c_void,
        run: impl FnOnce(&F, *mut pl_context, *mut c_void) -> R,
    ) -> R {
        let data = self.data.address();
        within(self.system, cx, run_data, |context| {
            run(&self.function, context, data)
        })
    }

    pub(crate) fn function(&self) -> &F {
        &self.function
    }
}

/// Calls a function of C with a context. Its failure goes on as a panic, past the hook that would print it.
fn within<R>(
    system: &'static pl_system,
    cx: &Context<'_>,
    run_data: *mut c_void,
    run: impl FnOnce(*mut pl_context) -> R,
) -> R {
    let mut context = pl_context {
        system,
        run_data,
        worker: cx.worker(),
        failed: RefCell::new(None),
    };
    let result = run(&mut context);
    if let Some(text) = context.failed.into_inner() {
        fail(text);
    }
    result
}

/// The body that runs has failed, for this reason.
pub(crate) fn fail(reason: String) -> ! {
    resume_unwind(Box::new(reason))
}

/// Takes a body that was bound: what is done with it does not depend on where its data are.
pub(crate) trait Taker<F> {
    /// What it makes of the body.
    type Made;

    fn take<D: BodyData>(self, bound: Bound<F, D>) -> Answer<Self::Made>;
}

/// No allocation is made for it.
const _: () = assert!(size_of::<Bound<JobFunction, Copied<[u64; WORDS]>>>() <= 64);

/// The parts of a body, as C describes them. What becomes of them, the program's data are released.
pub(crate) struct BodyParts<F> {
    pub(crate) function: Option<F>,
    pub(crate) data: *mut c_void,
    pub(crate) data_size: usize,
    pub(crate) release: pl_release,
}

impl<F> Drop for BodyParts<F> {
    #[inline]
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the program's function with the program's data: no body took them.
            unsafe { release(self.data) };
        }
    }
}

impl<F> BodyParts<F> {
    /// Copies the data, if that was asked for, and hands on the whole.
    ///
    /// # Safety
    /// `data` has `data_size` bytes if that is not zero.
    #[inline(always)] // Or the parts are copied.
    pub(crate) unsafe fn bind<T: Taker<F>>(
        mut self,
        system: &'static pl_system,
        taker: T,
    ) -> Answer<T::Made> {
        if self.data_size != 0 {
            // SAFETY: the caller's promise.
            return unsafe { self.bind_copy(system, taker) };
        }
        let data = Carried(self.data);
        taker.take(self.bound(system, data)?)
    }

    /// The same for data that are copied.
    ///
    /// # Safety
    /// As [`bind`](BodyParts::bind).
    #[inline(never)]
    unsafe fn bind_copy<T: Taker<F>>(
        mut self,
        system: &'static pl_system,
        taker: T,
    ) -> Answer<T::Made> {
        let size = self.data_size;
        if self.function.is_none() {
            return Err(no_body());
        }
        if self.data.is_null() || size > COPIED_MAX {
            return Err(no_copy(size));
        }
        if size <= INLINE_BYTES {
            let mut words = [0_u64; WORDS];
            // SAFETY: there is room for `size` bytes, and the caller's promise.
            unsafe { self.copy_to(&mut words) };
            return taker.take(self.bound(system, Copied(words.into()))?);
        }
        let mut words = vec![0_u64; size.div_ceil(8)].into_boxed_slice();
        // SAFETY: as above.
        unsafe { self.copy_to(&mut words) };
        taker.take(self.bound(
            system,
            CopiedApart(Carried(Box::into_raw(words).cast()), size),
        )?)
    }

    /// # Safety
    /// `data` has `data_size` bytes, and `words` at least as many.
    #[inline]
    unsafe fn copy_to(&self, words: &mut [u64]) {
        let (from, to) = (self.data.cast::<u8>(), words.as_mut_ptr().cast());
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, self.data_size) };
    }

    #[inline]
    fn bound<D: BodyData>(&mut self, system: &'static pl_system, data: D) -> Answer<Bound<F, D>> {
        let function = self.function.take();
        Ok(Bound {
            system,
            function: function.ok_or_else(no_body)?,
            release: self.release.take(),
            data,
        })
    }
}

#[cold]
fn no_body() -> Refusal {
    Refusal::invalid("the body is a null pointer")
}

#[cold]
fn no_copy(size: usize) -> Refusal {
    Refusal::invalid(format!(
        "data_size is {size}: data must then not be null, and a job keeps a copy of at most \
         {COPIED_MAX} bytes; pass a pointer and a data_size of 0 for more"
    ))
}

/// Says that the body has failed, for this reason; it returns as usual. Waits for the job say PL_FAILED,
/// those for jobs after it PL_CANCELLED, and pl_last_error() has the job's name and the reason. Of a loop
/// the pieces that have not begun are left out. The first reason counts. Null is "failed"; bytes that are
/// not UTF-8 are replaced.
///
/// # Safety
/// `context` is the one that the running body was called with; `reason` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_fail(context: *mut pl_context, reason: *const c_char) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let context = unsafe { running(context) }?;
        // SAFETY: the caller's promise.
        let reason = unsafe { any_text(reason) };
        let reason = reason.unwrap_or_else(|| "failed".to_owned());
        context.failed.borrow_mut().get_or_insert(reason);
        Ok(pl_status::PL_OK)
    })
}

/// The number of the thread that the body runs on, for data of which each thread has its own. It is less than
/// pl_thread_slots(), and two threads never have the same one at the same time. Costs a load. SIZE_MAX for a
/// null context.
///
/// # Safety
/// `context` is null, or the one that the running body was called with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_context_worker(context: *const pl_context) -> usize {
    // SAFETY: the caller's promise.
    unsafe { running(context) }.map_or(usize::MAX, |context| context.worker)
}

/// The job system that the body's job belongs to. Costs a load. Null for a null context.
///
/// # Safety
/// `context` is null, or the one that the running body was called with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_context_system(context: *const pl_context) -> *mut pl_system {
    let mut system = null_mut();
    // SAFETY: the caller's promise.
    if let Ok(context) = unsafe { running(context) } {
        // SAFETY: a place on this stack.
        unsafe { put(&mut system, std::ptr::from_ref(context.system).cast_mut()) };
    }
    system
}

/// The data of the run, as pl_graph_run or pl_graph_start was given them, if the body is that of a graph's
/// job. Null in other bodies. Costs a load. Null for a null context.
///
/// # Safety
/// `context` is null, or the one that the running body was called with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_context_run_data(context: *const pl_context) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { running(context) }.map_or(null_mut(), |context| context.run_data)
}

/// A point in a long background job at which it makes way for more urgent jobs: the worker rests here while
/// these wait for one and none is idle, and another worker takes its place. `rested`, which may be null, is 1
/// if it has rested, else 0. Call it once in 100 us or so. Hold no lock across it that an urgent job takes.
/// In other jobs it does nothing.
///
/// # Safety
/// `context` is the one that the running body was called with. `rested` is null or points to an int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pl_checkpoint(context: *mut pl_context, rested: *mut c_int) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let context = unsafe { running(context) }?;
        let js = context.system.js()?;
        let has_rested = js.enter(|cx| cx.checkpoint());
        // SAFETY: the caller's promise.
        unsafe { put(rested, c_int::from(has_rested)) };
        Ok(pl_status::PL_OK)
    })
}

/// Calls `function` with `data`. It may block on something that the job system knows nothing of: a file, a
/// lock, a device. A worker lends its core to another one meanwhile, if work is ready that no other is free
/// for; to start that one for the first time is to start a thread. A C++ exception that leaves `function`
/// ends the process.
///
/// # Safety
/// `context` is the one that the running body was called with. `function` may be called with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pl_blocking(
    context: *mut pl_context,
    function: Option<unsafe extern "C-unwind" fn(data: *mut c_void)>,
    data: *mut c_void,
) -> pl_status {
    call(|| {
        // SAFETY: the caller's promise.
        let context = unsafe { running(context) }?;
        let function =
            function.ok_or_else(|| Refusal::invalid("the function is a null pointer"))?;
        let js = context.system.js()?;
        // SAFETY: the caller's promise.
        js.enter(|cx| cx.blocking(|| unsafe { function(data) }));
        Ok(pl_status::PL_OK)
    })
}

/// # Safety
/// `context` is null, or the one that the running body was called with.
unsafe fn running<'c>(context: *const pl_context) -> Answer<&'c pl_context> {
    if context.is_null() {
        return Err(Refusal::invalid("the context is a null pointer"));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { &*context })
}
