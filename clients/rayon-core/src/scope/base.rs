//! What both kinds of scopes have in common: their jobs, and the first panic of one.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use paceline::{Context, ScheduleError};

use crate::broadcast::or_panic;
use crate::latch::CountLatch;
use crate::registry::{BoxedJob, Here, LatchPtr, Registry};
use crate::unwind::{Payload, halt_unwinding, resume_unwinding};

/// A scope of rayon's.
pub(super) struct ScopeBase<'scope> {
    registry: Arc<Registry>,
    /// The job system's scope, in which the jobs are; empty if the thread that has opened this one is not of
    /// the pool.
    inner: OnceLock<Inner<'scope>>,
    /// The jobs, in the other case, and one more for the closure.
    jobs: CountLatch,
    panic: Mutex<Option<Payload>>,
    /// Invariant.
    _scope: PhantomData<Box<dyn FnOnce(&'scope ()) + Send + Sync + 'scope>>,
}

/// A scope of the job system. Jobs in it may borrow for `'scope`.
struct Inner<'scope>(*const paceline::Scope<'scope, 'scope>);

// SAFETY: such a scope may be used by any thread.
unsafe impl Send for Inner<'_> {}
// SAFETY: as above.
unsafe impl Sync for Inner<'_> {}

/// What a job finds its scope by.
pub(super) struct ScopePtr<T>(*const T);

// SAFETY: it is a reference, which lives as long as the job.
unsafe impl<T: Sync> Send for ScopePtr<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for ScopePtr<T> {}

impl<T> ScopePtr<T> {
    pub(super) fn new(scope: &T) -> Self {
        ScopePtr(scope)
    }

    /// # Safety
    /// This is called in a job of the scope: the scope does not end before it.
    pub(super) unsafe fn scope(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &*self.0 }
    }
}

impl<'scope> ScopeBase<'scope> {
    pub(super) fn new(registry: &Arc<Registry>) -> Self {
        ScopeBase {
            registry: Arc::clone(registry),
            inner: OnceLock::new(),
            jobs: CountLatch::new(1),
            panic: Mutex::new(None),
            _scope: PhantomData,
        }
    }

    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Calls `f`, and returns when all jobs have ended.
    pub(super) fn complete<R>(&self, here: &Here, f: impl FnOnce() -> R) -> R {
        let registry = Arc::clone(&self.registry);
        registry.in_adopted(here, |here| self.complete_in(here, f))
    }

    fn complete_in<R>(&self, here: &Here, f: impl FnOnce() -> R) -> R {
        let result = match here.context() {
            Some(context) if here.is_of(&self.registry) => context.scope(|scope| {
                let scope = std::ptr::from_ref(scope);
                // Only the lifetimes change.
                let _ = self.inner.set(Inner(scope.cast()));
                halt_unwinding(f)
            }),
            _ => {
                let result = halt_unwinding(f);
                self.jobs.count_down();
                self.jobs.wait(here);
                result
            }
        };
        let of_job = self
            .panic
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match (result, of_job) {
            (_, Some(payload)) | (Err(payload), None) => resume_unwinding(payload),
            (Ok(result), None) => result,
        }
    }

    /// Makes a job.
    pub(super) fn spawn(&self, body: impl FnOnce(&Here) + Send + 'scope) {
        let this = ScopePtr::new(self);
        if let Some(inner) = self.inner.get() {
            let job = move |context: &Context<'_>| {
                // SAFETY: this is a job of the scope.
                let this: &Self = unsafe { this.scope() };
                Here::with(|here| {
                    here.enter(&this.registry, context, |here| this.run(here, body));
                });
            };
            // SAFETY: the scope is open: a job of it, or its closure, calls this.
            return unsafe { &*inner.0 }.spawn(job);
        }
        let opens = self.one_more();
        let job = move |here: &Here| {
            // SAFETY: as above, until the count.
            let this: &Self = unsafe { this.scope() };
            this.run(here, body);
            drop(opens);
        };
        self.registry.schedule(unborrowed(Box::new(job)));
    }

    /// Makes a job for each thread of the pool.
    pub(super) fn spawn_on_each(&self, body: impl Fn(&Here) + Send + Sync + 'scope) {
        let (this, body) = (ScopePtr::new(self), Arc::new(body));
        if let Some(inner) = self.inner.get() {
            for pin in self.registry.pins() {
                let (this, body) = (ScopePtr(this.0), Arc::clone(&body));
                let job = move |context: &Context<'_>| {
                    // SAFETY: this is a job of the scope.
                    let this: &Self = unsafe { this.scope() };
                    let body = |here: &Here| this.run(here, |here| body(here));
                    Here::with(|here| here.enter(&this.registry, context, body));
                };
                // SAFETY: as in `spawn`.
                let scope = unsafe { &*inner.0 };
                // It is refused if the thread has left, as workers of a job system of the program's may.
                match scope.job("broadcast").pinned_to(pin).try_schedule(job) {
                    Ok(_) | Err(ScheduleError::NoSuchThread) => {}
                    Err(error) => or_panic(Err(error)),
                }
            }
            return;
        }
        let (_, refused) = self.registry.on_each(self.registry.pins(), || {
            let (this, body, opens) = (ScopePtr(this.0), Arc::clone(&body), self.one_more());
            unborrowed(Box::new(move |here: &Here| {
                // SAFETY: as in `spawn`.
                let this: &Self = unsafe { this.scope() };
                this.run(here, |here| body(here));
                drop(body);
                drop(opens);
            }))
        });
        or_panic(refused);
    }

    /// The scope does not end before this is dropped: a job has run then, or never will.
    fn one_more(&self) -> LatchPtr {
        self.jobs.increment();
        LatchPtr::new(&self.jobs)
    }

    /// Runs a body. The scope keeps the first panic.
    fn run(&self, here: &Here, body: impl FnOnce(&Here)) {
        if let Err(payload) = halt_unwinding(|| body(here)) {
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(payload);
        }
    }

    /// The addresses that tell scopes apart, for debugging.
    pub(super) fn id(&self) -> usize {
        self.registry.id()
    }
}

/// A job of a scope, which does not end before it has run.
pub(super) fn unborrowed<'scope>(job: Box<dyn FnOnce(&Here) + Send + 'scope>) -> BoxedJob {
    // SAFETY: only the lifetime changes. The scope waits for the job, and so what it borrows lives as long.
    unsafe { std::mem::transmute::<Box<dyn FnOnce(&Here) + Send + 'scope>, BoxedJob>(job) }
}
