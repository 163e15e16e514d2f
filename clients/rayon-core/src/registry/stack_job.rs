//! A job whose body and result are on the stack of the thread that waits for it.
//!
//! The right to run it may be dropped, if the thread that it was for has left.

use std::cell::UnsafeCell;

use super::Here;
use crate::unwind::{Payload, halt_unwinding, resume_unwinding};

/// See the module. Its owner keeps it until it has run.
pub(crate) struct StackJob<F, R> {
    body: UnsafeCell<Option<F>>,
    result: UnsafeCell<Option<Result<R, Payload>>>,
}

/// The right to run a [`StackJob`] once.
pub(crate) struct StackJobRef {
    job: *const (),
    run: unsafe fn(*const (), &Here),
}

// SAFETY: `StackJob::to_run` makes it of bodies and results that may be sent.
unsafe impl Send for StackJobRef {}

impl<F, R> StackJob<F, R>
where
    F: FnOnce(&Here) -> R + Send,
    R: Send,
{
    pub(crate) fn new(body: F) -> Self {
        StackJob {
            body: UnsafeCell::new(Some(body)),
            result: UnsafeCell::new(None),
        }
    }

    /// What runs it, on any thread.
    ///
    /// # Safety
    /// It is made once, is run or dropped before the job goes away, and the job is left alone until then.
    pub(crate) unsafe fn to_run(&self) -> StackJobRef {
        StackJobRef {
            job: std::ptr::from_ref(self).cast(),
            run: Self::run,
        }
    }

    /// # Safety
    /// As [`to_run`](StackJob::to_run).
    unsafe fn run(job: *const (), here: &Here) {
        // SAFETY: the promise of `to_run`: the job is there, and this thread has it for itself.
        unsafe {
            let job = &*job.cast::<Self>();
            let body = (*job.body.get()).take().expect("a job runs once");
            *job.result.get() = Some(halt_unwinding(|| body(here)));
        }
    }

    /// What came of it.
    pub(crate) fn into_result(self) -> Result<R, Payload> {
        let result = self.result.into_inner();
        result.expect("it was waited for")
    }

    /// The result, or the panic goes on here.
    pub(crate) fn into_value(self) -> R {
        self.into_result()
            .unwrap_or_else(|payload| resume_unwinding(payload))
    }

    /// The same, if it has run.
    pub(crate) fn into_value_if_run(mut self) -> Option<R> {
        let has_run = self.result.get_mut().is_some();
        has_run.then(|| self.into_value())
    }
}

impl StackJobRef {
    pub(crate) fn run(self, here: &Here) {
        // SAFETY: the promise of `to_run`.
        unsafe { (self.run)(self.job, here) }
    }
}
