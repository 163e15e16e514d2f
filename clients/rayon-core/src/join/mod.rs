//! Two closures, possibly at the same time.

use std::ptr;

use crate::registry::{self, Here, Registry};
use crate::unwind;

/// What [`join_context`] tells a closure.
#[derive(Debug)]
pub struct FnContext {
    migrated: bool,
    /// Neither Send nor Sync.
    _here: std::marker::PhantomData<*mut ()>,
}

impl FnContext {
    #[inline]
    fn new(migrated: bool) -> Self {
        FnContext {
            migrated,
            _here: std::marker::PhantomData,
        }
    }

    /// Whether the closure runs on another thread than the one that called `join_context`.
    #[inline]
    pub fn migrated(&self) -> bool {
        self.migrated
    }
}

/// Calls both closures, possibly at the same time, and returns what they return. The first one runs on the
/// calling thread, if that is one of a pool.
///
/// ```
/// assert_eq!(rayon_core::join(|| 1 + 1, || 2 + 2), (2, 4));
/// ```
///
/// # Panics
/// If one of them does, when both have ended: with the panic of the first, if both do.
#[inline]
pub fn join<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    join_context(|_| oper_a(), |_| oper_b())
}

/// As [`join`], for closures that want to know whether they have come to another thread.
///
/// ```
/// let (a, _) = rayon_core::scope(|_| rayon_core::join_context(|a| a.migrated(), |b| b.migrated()));
/// assert!(!a);
/// ```
///
/// # Panics
/// As `join`.
#[inline]
pub fn join_context<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    registry::in_worker(|here, injected| {
        let context = here.context().expect("a worker is inside of a job");
        let home = Home::of(here);
        let mut second = Second {
            body: Some(oper_b),
            injected,
        };
        context.join(
            |_| oper_a(FnContext::new(injected)),
            move |context| {
                let oper_b = second.body.take().expect("it runs once");
                Here::with(|now| {
                    if home.is(now) {
                        return oper_b(FnContext::new(injected));
                    }
                    // SAFETY: that thread waits for this.
                    let registry = unsafe { home.registry() };
                    now.enter(registry, context, |_| oper_b(FnContext::new(true)))
                })
            },
        )
    })
}

/// The second half of a join. If the first one panics, the join drops it; it is to run all the same, and the
/// first panic is the one that counts.
struct Second<B, R>
where
    B: FnOnce(FnContext) -> R,
{
    body: Option<B>,
    injected: bool,
}

impl<B, R> Drop for Second<B, R>
where
    B: FnOnce(FnContext) -> R,
{
    #[inline]
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            run_all_the_same(body, self.injected);
        }
    }
}

#[cold]
fn run_all_the_same<R>(body: impl FnOnce(FnContext) -> R, injected: bool) {
    // Its result is dropped under the same roof.
    _ = unwind::halt_unwinding(|| drop(body(FnContext::new(injected))));
}

/// The thread that joins, as the other thread may know it.
struct Home {
    thread: *const Here,
    registry: *const Registry,
}

// SAFETY: the first is compared only, and a pool may be used by any thread.
unsafe impl Send for Home {}
// SAFETY: as above.
unsafe impl Sync for Home {}

impl Home {
    #[inline]
    fn of(here: &Here) -> Home {
        Home {
            thread: here,
            registry: here.registry().map_or(ptr::null(), ptr::from_ref),
        }
    }

    /// # Safety
    /// The thread is still in its join.
    unsafe fn registry(&self) -> &Registry {
        // SAFETY: its pool lives as long, by the caller's promise.
        unsafe { &*self.registry }
    }

    #[inline]
    fn is(&self, here: &Here) -> bool {
        ptr::eq(self.thread, here)
    }
}
